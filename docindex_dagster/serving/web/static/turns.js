// Display of a question with its answer, while it is written and once its citations are checked.
import { explainMarks, reason } from "./marks.js";
import { encoded, fileAddress } from "./places.js";
import { safe } from "./safe.js";
import { inLine, visible } from "./visible.js";

const STATES = ["supported", "doubtful", "unchecked", "missing"];
const LOOKS = { supported: "state good", doubtful: "badge warn", unchecked: "badge" };
const LINES = {
  stopped: "Stopped. The citations of a stopped answer are not checked.",
  broken: "The answer broke off.",
  is_cut: "The answer reached its token limit (llm.max_answer_tokens).",
  is_prompt_cut: "The model may have read only part of the sources, because its context window is small (llm.context_tokens).",
};

/** Add a turn at the end of the conversation. */
export function addTurn(turns, turn) {
  const element = document.getElementById("turn-template").content.firstElementChild.cloneNode(true);
  turns.append(element);
  element.querySelector(".question").textContent = visible(turn.question);
  const labels = turn.filters.map(([name, value]) => `${name}: ${value}`);
  if (turn.isAgent) labels.push("agent");
  show(element.querySelector(".narrowed"), labels.join(" · "));
  if (turn.state) showEnd(element, turn);
  else element.querySelector(".answer").setAttribute("aria-busy", "true");
  return element;
}

/** Append a piece of plain text. The next step of an agent clears it. */
export function showText(element, piece) {
  const answer = element.querySelector(".answer");
  answer.classList.add("raw");
  if (answer.firstChild) answer.firstChild.appendData(visible(piece));
  else answer.append(visible(piece));
}

export function showStep(element, step) {
  element.querySelector(".answer").replaceChildren();
  const line = document.createElement("li");
  line.className = step.is_error ? "step problem" : "step";
  const name = document.createElement("b");
  name.textContent = inLine(step.tool);
  line.append(name, inLine(` ${step.arguments} → ${step.outcome}`));
  const steps = element.querySelector(".steps");
  steps.append(line);
  steps.hidden = false;
}

/** Show the passages that the model reads; after the answer, those it cites, with the rest collapsed. */
export function showSources(element, turn) {
  const isCited = (passage) => turn.citations.some((citation) => citation.number === passage.number);
  const isOver = Boolean(turn.state) && turn.citations.length > 0;
  const [cited, rest] = [turn.passages.filter((one) => !isOver || isCited(one)), turn.passages.filter((one) => isOver && !isCited(one))];
  const [list, more] = element.querySelectorAll(".sources");
  list.replaceChildren(...cited.map((passage) => sourceOf(passage, turn.citations)));
  more.replaceChildren(...rest.map((passage) => sourceOf(passage, turn.citations)));
  element.querySelector(".rest").hidden = !rest.length;
  element.querySelector(".rest summary").textContent = `${rest.length} more that ${rest.length === 1 ? "was" : "were"} read`;
  element.querySelector(".read").hidden = !turn.passages.length;
  element.querySelector(".checks").textContent = turn.state ? checksOf(turn) : "";
}

/** Show the final answer with its marks, or why there is none. */
export function showEnd(element, turn) {
  const answer = element.querySelector(".answer");
  answer.removeAttribute("aria-busy");
  if (turn.html !== null) {
    answer.classList.remove("raw");
    answer.replaceChildren(...safe(turn.html));
    explainMarks(answer, turn.citations);
  } else if (!answer.firstChild && turn.text) showText(element, turn.text);
  if (!element.querySelector(".step")) for (const step of turn.steps) showStepBefore(element, step);
  showSources(element, turn);
  const lines = [LINES[turn.state], ...["is_cut", "is_prompt_cut"].filter((name) => turn[name]).map((name) => LINES[name])];
  show(element.querySelector(".state-line"), lines.filter(Boolean).join(" "));
  show(element.querySelector(".noted"), turn.notes.join(" "));
  showTrouble(element.querySelector(".trouble"), turn.problem);
  element.querySelector(".judge").hidden = !turn.text;
  element.querySelector(".usage").textContent = usageOf(turn);
  showVerdict(element, turn);
}

export function showVerdict(element, turn) {
  for (const button of element.querySelectorAll("[data-verdict]")) {
    button.setAttribute("aria-pressed", String(button.dataset.verdict === turn.verdict));
  }
}

/** Return the number of citations by check result. */
export function checksOf(turn) {
  const count = turn.citations.length;
  if (!count) return turn.html === null ? "" : "The answer contains no citations.";
  const counts = STATES.map((state) => [turn.citations.filter((citation) => citation.state === state).length, state]);
  const words = counts.filter(([number]) => number).map(([number, state]) => `${number} ${state}`);
  const stale = turn.citations.filter((citation) => citation.stale).length;
  if (stale) words.push(`${stale} with changed lines`);
  return `${count} citation${count === 1 ? "" : "s"}: ${words.join(", ")}`;
}

function showStepBefore(element, step) {
  const kept = [...element.querySelector(".answer").childNodes];
  showStep(element, step);
  element.querySelector(".answer").replaceChildren(...kept);
}

function sourceOf(passage, citations) {
  const element = document.getElementById("source-template").content.firstElementChild.cloneNode(true);
  const own = citations.filter((citation) => citation.number === passage.number);
  element.dataset.number = passage.number;
  element.querySelector(".number").textContent = passage.number;
  const link = element.querySelector("a");
  link.href = addressOf(passage);
  link.textContent = inLine(placeOf(passage));
  const badges = element.querySelector(".badges");
  badges.append(badge(passage.source), ...(passage.name ? [badge(passage.name)] : []));
  for (const state of STATES) if (own.some((citation) => citation.state === state)) badges.append(badge(state, LOOKS[state]));
  if (passage.stale) badges.append(badge(document.body.dataset.changed, "badge warn"));
  const because = own.filter((citation) => citation.state === "doubtful" || citation.stale).map(reason);
  show(element.querySelector(".because"), [...new Set(because)].join(" "));
  return element;
}

function addressOf(passage) {
  const isCommit = passage.path.startsWith(".git/commit/");
  const lines = isCommit ? {} : { from: passage.start_line, to: passage.end_line === passage.start_line ? "" : passage.end_line };
  return fileAddress(encoded(`${passage.source}/${passage.path}`), lines) + (lines.from ? `#L${lines.from}` : "");
}

function placeOf(passage) {
  const page = passage.page === null ? "" : `, page ${passage.page}`;
  const lines = passage.start_line === passage.end_line ? passage.start_line : `${passage.start_line}–${passage.end_line}`;
  return `${passage.path}:${lines}${page}`;
}

function badge(text, look = "badge") {
  const element = document.createElement("span");
  element.className = look;
  element.textContent = inLine(text);
  return element;
}

function showTrouble(element, problem) {
  element.hidden = !problem;
  if (!problem) return;
  element.querySelector("h3").textContent = problem.title;
  element.querySelector(".detail").textContent = problem.detail;
  const link = element.querySelector("a");
  const isLogin = problem.status === 401;
  link.textContent = isLogin ? "Log in" : "About this problem";
  link.href = isLogin ? `/login?next=${encodeURIComponent(location.pathname + location.search)}` : problem.type;
  link.parentElement.hidden = !problem.type;
}

function usageOf(turn) {
  const { usage, model } = turn;
  if (!usage) return "";
  const words = [model ?? "without a model", `${usage.total_s.toFixed(1)} s`];
  if (model) words.splice(1, 0, `${usage.prompt_tokens.toLocaleString("en")} + ${usage.completion_tokens.toLocaleString("en")} tokens`);
  if (usage.dollars !== null) words.push(`$${usage.dollars.toFixed(4)}`);
  return words.join(" · ");
}

function show(element, text) {
  element.textContent = visible(text);
  element.hidden = !text;
}
