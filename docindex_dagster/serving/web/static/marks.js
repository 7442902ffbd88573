// The marks of an answer: what their checks say, and which source each one means.

const REASONS = {
  supported: () => "Supported: these lines have what the sentence names.",
  doubtful: (citation) =>
    citation.better === null
      ? "Doubtful: these lines have hardly anything of what the sentence names."
      : `Doubtful: [${citation.better}] has more of what the sentence names.`,
  unchecked: () => "Not checked: the sentence names nothing that could be looked for.",
  missing: (citation) => `There is no passage ${citation.number}: nothing is cited here.`,
};

/** What the check of a citation says, in words. */
export function reason(citation) {
  const words = [REASONS[citation.state]?.(citation) ?? citation.state];
  if (citation.stale) words.push("The lines have changed since they were indexed.");
  if (citation.is_moved) words.push("They are other lines than the sentence says.");
  return words.join(" ");
}

/** The mark of a citation as text: [1], [2?], [3 missing]. */
export function sign(citation) {
  const more = { doubtful: "?", missing: " missing" }[citation.state] ?? "";
  return `[${citation.number}${more}${citation.stale ? " changed" : ""}]`;
}

/** Say in the marks of an answer what their checks say; those with lines open beside the answer. */
export function explainMarks(answer, citations) {
  const left = [...citations];
  for (const mark of answer.querySelectorAll(".citation")) {
    const number = Number(/\d+/.exec(mark.textContent)?.[0]);
    const at = left.findIndex((citation) => citation.number === number);
    if (at < 0) continue;
    const [citation] = left.splice(at, 1);
    mark.textContent = sign(citation);
    mark.title = reason(citation);
    mark.dataset.number = number;
    mark.classList.toggle("stale", citation.stale === true);
    if (mark.matches("a[href]")) mark.dataset.open = "";
  }
}

/** While a mark or a source is pointed at or has the focus, both are lit. */
export function startMarks(turns) {
  for (const event of ["pointerover", "focusin"]) turns.addEventListener(event, (one) => light(one.target, true));
  for (const event of ["pointerout", "focusout"]) turns.addEventListener(event, (one) => light(one.target, false));
}

function light(target, isLit) {
  const number = target.closest(".citation, .source")?.dataset.number;
  if (!number) return;
  for (const one of target.closest(".turn").querySelectorAll(`[data-number="${CSS.escape(number)}"]`)) one.classList.toggle("lit", isLit);
}
