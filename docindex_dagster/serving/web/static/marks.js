// Citation marks of an answer: the results of their checks, and the highlighting of their sources.

const REASONS = {
  supported: () => "Supported: these lines contain what the sentence names.",
  doubtful: (citation) =>
    citation.better === null
      ? "Doubtful: these lines contain hardly anything that the sentence names."
      : `Doubtful: [${citation.better}] contains more of what the sentence names.`,
  unchecked: () => "Not checked: the sentence contains nothing checkable.",
  missing: (citation) => `Passage ${citation.number} does not exist: nothing is cited here.`,
};

/** Return the result of a citation's check as text. */
export function reason(citation) {
  const words = [REASONS[citation.state]?.(citation) ?? citation.state];
  if (citation.stale) words.push("The lines have changed since they were indexed.");
  if (citation.is_moved) words.push("They differ from the lines that the sentence names.");
  return words.join(" ");
}

/** Return the mark of a citation as text: [1], [2?] or [3 missing]. */
export function markText(citation) {
  const suffix = { doubtful: "?", missing: " missing" }[citation.state] ?? "";
  return `[${citation.number}${suffix}${citation.stale ? " changed" : ""}]`;
}

/** Show the check results in the marks of an answer, and let those with lines open next to it. */
export function explainMarks(answer, citations) {
  const remaining = [...citations];
  for (const mark of answer.querySelectorAll(".citation")) {
    const number = Number(/\d+/.exec(mark.textContent)?.[0]);
    const at = remaining.findIndex((citation) => citation.number === number);
    if (at < 0) continue;
    const [citation] = remaining.splice(at, 1);
    mark.textContent = markText(citation);
    mark.title = reason(citation);
    mark.dataset.number = number;
    mark.classList.toggle("stale", citation.stale === true);
    if (mark.matches("a[href]")) mark.dataset.open = "";
  }
}

/** Highlight a mark and its source together while the pointer or focus is on either. */
export function startMarks(turns) {
  for (const event of ["pointerover", "focusin"]) turns.addEventListener(event, ({ target }) => highlight(target, true));
  for (const event of ["pointerout", "focusout"]) turns.addEventListener(event, ({ target }) => highlight(target, false));
}

function highlight(target, isLit) {
  const number = target.closest(".citation, .source")?.dataset.number;
  if (!number) return;
  for (const element of target.closest(".turn").querySelectorAll(`[data-number="${CSS.escape(number)}"]`)) element.classList.toggle("lit", isLit);
}
