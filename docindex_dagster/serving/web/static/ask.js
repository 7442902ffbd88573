// The page for questions: it sends a question, shows the answer as it arrives, and keeps the conversation in this browser.
import { filters, setFilters, startFilters } from "./filters.js";
import { keep, kept } from "./kept.js";
import { startMarks } from "./marks.js";
import { isShown, restorePane, shownPlace, startPane } from "./pane.js";
import { conversations, forget, forgetAll, newConversation, save } from "./past.js";
import { events } from "./stream.js";
import { note, say } from "./telling.js";
import { answerMarkdown, conversationMarkdown } from "./transcript.js";
import { addTurn, checksOf, showEnd, showSources, showStep, showText, showVerdict } from "./turns.js";
import { judge } from "./verdicts.js";
import { copy } from "./viewer.js";
import { inLine } from "./visible.js";

const FIELDS = { source: "sources", language: "languages", type: "types", kind: "kinds" };
const FORGOTTEN = "The server no longer has this conversation, for example after a restart. This question was asked without it.";
const UNREACHABLE = { title: "The server does not respond", detail: "Is it still running? Ask again once it is.", type: "" };
const BROKEN = { title: "The answer broke off", detail: "The connection to the server was lost.", type: "" };
let shown = null; // the current conversation
let writing = null; // aborts the request in progress
const turnOf = new WeakMap();
const byId = (id) => document.getElementById(id);

export function startAsk() {
  if (!document.body.classList.contains("asking")) return;
  const question = byId("question");
  byId("agent").checked = kept("agent") === "on";
  byId("agent").addEventListener("change", (event) => keep("agent", event.target.checked ? "on" : null));
  byId("ask").addEventListener("submit", submitted);
  question.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    byId("ask").requestSubmit();
  });
  question.addEventListener("change", remember);
  byId("stop").addEventListener("click", () => writing?.abort());
  byId("new").addEventListener("click", begin);
  byId("export").addEventListener("click", () => download(shown));
  byId("forget").addEventListener("click", () => forgetPast(null));
  byId("past-list").addEventListener("click", pastClicked);
  byId("turns").addEventListener("click", turnClicked);
  byId("turns").addEventListener("submit", judged);
  startMarks(byId("turns"));
  startFilters({ typed: remember, chosen: remember, home: question });
  startPane(markShown, question);
  window.addEventListener("popstate", restore);
  open(fromAddress());
  checkModel();
}

/** Return the conversation named in the URL, or a new one if this browser does not have it. */
function fromAddress() {
  const id = new URL(location.href).searchParams.get("c");
  return conversations().find((known) => known.id === id) ?? newConversation();
}

function open(conversation) {
  writing?.abort();
  shown = conversation;
  byId("turns").replaceChildren();
  for (const turn of shown.turns) turnOf.set(addTurn(byId("turns"), turn), turn);
  if (shown.turns.length) byId("question").value = "";
  showState();
  markShown();
}

function begin() {
  history.pushState(null, "", "/ask");
  open(newConversation());
  byId("question").value = "";
  remember();
  restorePane();
  byId("question").focus();
}

/** Store question, filters and conversation in the URL. Opening such a URL sends no question. */
function remember() {
  const query = new URLSearchParams();
  const first = shown.turns[0]?.question ?? byId("question").value;
  if (first.trim()) query.set("q", first);
  for (const [name, value] of filters()) query.set(name, value);
  if (shown.turns.length) query.set("c", shown.id);
  for (const [name, value] of shownPlace()) query.set(name, value);
  history.replaceState(null, "", `/ask${query.size ? `?${query}` : ""}`);
}

/** Show what the URL says, after the user has gone back or forward. */
function restore() {
  const query = new URL(location.href).searchParams;
  setFilters(query);
  filters();
  if ((query.get("c") ?? "") !== (shown.turns.length ? shown.id : "")) {
    open(fromAddress());
    if (!shown.turns.length) byId("question").value = query.get("q") ?? "";
  }
  restorePane();
}

function submitted(event) {
  event.preventDefault();
  const question = byId("question").value.trim();
  if (!question || writing) return;
  byId("question").value = "";
  ask(question);
}

async function ask(question) {
  const conversation = shown;
  const turn = newTurn(question);
  conversation.turns.push(turn);
  const element = addTurn(byId("turns"), turn);
  turnOf.set(element, turn);
  element.querySelector(".question").scrollIntoView({ block: "start" });
  const own = new AbortController();
  writing = own;
  remember();
  showState();
  say("Searching");
  try {
    await answer(conversation, turn, element, own.signal);
    turn.state ||= turn.problem ? "failed" : "done";
  } catch {
    turn.state = own.signal.aborted ? "stopped" : "failed";
    if (!own.signal.aborted) turn.problem = turn.text ? BROKEN : UNREACHABLE;
  }
  if (writing === own) writing = null;
  showEnd(element, turn);
  save(conversation);
  showState();
  if (shown === conversation) say(summaryOf(turn));
}

function newTurn(question) {
  return {
    question,
    filters: filters(),
    isAgent: byId("agent").checked,
    text: "",
    html: null,
    passages: [],
    citations: [],
    steps: [],
    notes: [],
    model: null,
    generation: null,
    usage: null,
    problem: null,
    verdict: null,
    state: "",
  };
}

/** Ask and process the events. If the server has forgotten the conversation, ask without it. */
async function answer(conversation, turn, element, signal) {
  let response = await request(conversation, turn, signal);
  if (response.status === 404 && conversation.server) {
    turn.notes.push(FORGOTTEN);
    conversation.server = null;
    response = await request(conversation, turn, signal);
  }
  if (!response.ok) {
    turn.problem = await problemOf(response);
    return;
  }
  for await (const { name, data } of events(response.body)) applyEvent(conversation, turn, element, name, data);
  if (turn.html === null && !turn.problem) turn.problem = BROKEN;
}

function request(conversation, turn, signal) {
  const asked = { question: turn.question, agent: turn.isAgent, html: true };
  for (const [name, value] of turn.filters) asked[FIELDS[name] ?? name] = name in FIELDS ? [value] : value;
  if (conversation.server) asked.conversation = conversation.server;
  const headers = { "Content-Type": "application/json", Accept: "text/event-stream" };
  return fetch("/api/v1/ask", { method: "POST", body: JSON.stringify(asked), headers, signal });
}

async function problemOf(response) {
  try {
    return await response.json();
  } catch {
    return { title: `The server responded with ${response.status}`, detail: response.statusText, type: "" };
  }
}

function applyEvent(conversation, turn, element, name, data) {
  switch (name) {
    case "sources":
      turn.generation = data.generation;
      turn.notes.push(...data.warnings);
      addPassages(turn, element, data.passages);
      say(`${data.passages.length} passages found`);
      break;
    case "step":
      turn.text = "";
      turn.steps.push({ tool: data.tool, arguments: data.arguments, outcome: data.outcome, is_error: data.is_error });
      showStep(element, data);
      addPassages(turn, element, data.passages);
      break;
    case "delta":
      turn.text += data.text;
      showText(element, data.text);
      break;
    case "answer":
      for (const field of ["text", "html", "model", "is_cut", "is_prompt_cut"]) turn[field] = data[field];
      turn.citations = data.citations.map(({ claim, support, chunk_ids, ...kept }) => kept);
      if (data.is_broken) turn.state = "broken";
      conversation.server = data.conversation;
      break;
    case "usage":
      turn.usage = data;
      break;
    case "error":
      turn.problem = data.problem ?? data;
      break;
  }
}

/** Add passages that the model reads. Their text stays on the server. */
function addPassages(turn, element, passages) {
  const known = new Map(turn.passages.map((passage) => [passage.number, passage]));
  for (const { text, chunk_ids, ...passage } of passages) known.set(passage.number, passage);
  turn.passages = [...known.values()].sort((a, b) => a.number - b.number);
  showSources(element, turn);
}

function summaryOf(turn) {
  if (turn.problem) return turn.problem.title;
  return turn.state === "stopped" ? "Stopped" : `Answered. ${checksOf(turn)}`;
}

function showState() {
  const isWriting = writing !== null;
  byId("send").hidden = isWriting;
  byId("stop").hidden = !isWriting;
  const has = shown.turns.length > 0;
  byId("start-ask").hidden = has;
  byId("question-label").textContent = has ? "Follow-up question" : "Question";
  byId("new").hidden = byId("export").hidden = !has;
  showPast();
}

function showPast() {
  const past = conversations();
  byId("past").hidden = !past.length;
  byId("past-list").replaceChildren(...past.map(pastRow));
}

function pastRow(conversation) {
  const row = byId("past-template").content.firstElementChild.cloneNode(true);
  const title = inLine(conversation.turns[0].question);
  row.dataset.id = conversation.id;
  row.querySelector("span").textContent = title;
  row.querySelector("small").textContent = new Date(conversation.at).toLocaleString();
  row.querySelector("[data-export]").setAttribute("aria-label", `Export ${title}`);
  row.querySelector("[data-forget]").setAttribute("aria-label", `Delete ${title}`);
  if (conversation.id === shown.id) row.querySelector("[data-reopen]").setAttribute("aria-current", "true");
  return row;
}

function pastClicked(event) {
  const id = event.target.closest("li")?.dataset.id;
  const conversation = conversations().find((known) => known.id === id);
  if (!conversation) return;
  if (event.target.closest("[data-export]")) download(conversation);
  if (event.target.closest("[data-forget]")) forgetPast(id);
  if (!event.target.closest("[data-reopen]")) return;
  byId("past").open = false;
  history.pushState(null, "", "/ask");
  open(conversation);
  setFilters(new URLSearchParams(conversation.turns.at(-1).filters));
  remember();
  restorePane();
}

/** Delete a conversation or, for null, all. If it is the current one, clear the page as well. */
function forgetPast(id) {
  if (id === null) forgetAll();
  else forget(id);
  if (id === null || id === shown.id) {
    shown.isForgotten = true; // so that an answer in progress does not store it again
    begin();
  } else showPast();
  byId("past").querySelector("summary").focus();
  say(id === null ? "All conversations deleted" : "Conversation deleted");
}

function turnClicked(event) {
  const element = event.target.closest(".turn");
  const button = event.target.closest("button");
  const turn = turnOf.get(element);
  if (!button || !turn) return;
  if ("copyAnswer" in button.dataset) copy(answerMarkdown(turn)).then((isDone) => note(isDone ? "Answer copied" : "The browser does not allow copying", !isDone));
  if ("verdict" in button.dataset) {
    const form = element.querySelector(".comment");
    form.dataset.verdict = button.dataset.verdict;
    form.hidden = false;
    form.elements.comment.focus();
  }
  if ("again" in button.dataset && !writing) {
    shown.turns.splice(shown.turns.indexOf(turn), 1);
    element.remove();
    ask(turn.question);
  }
}

async function judged(event) {
  event.preventDefault();
  const element = event.target.closest(".turn");
  const [form, turn, conversation] = [event.target, turnOf.get(element), shown];
  if (!(await judge(turn, form.dataset.verdict, form.elements.comment.value.trim()))) return;
  turn.verdict = form.dataset.verdict;
  form.hidden = true;
  form.reset();
  showVerdict(element, turn);
  element.querySelector(`[data-verdict="${turn.verdict}"]`).focus();
  save(conversation);
}

function markShown() {
  for (const link of document.querySelectorAll("#turns a[data-open]")) (link.closest(".source") ?? link).classList.toggle("shown", isShown(link));
}

function download(conversation) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([conversationMarkdown(conversation)], { type: "text/markdown" }));
  link.download = `docindex-${new Date(conversation.at).toISOString().slice(0, 10)}.md`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

/** Warn before the first question if the language model cannot answer. */
async function checkModel() {
  if (!byId("model")) return;
  try {
    const found = await (await fetch("/api/v1/llm")).json();
    const place = byId("unreachable");
    place.textContent = found.problem ? `The language model is not available: ${found.problem}` : "";
    place.hidden = !found.problem;
  } catch {
    // The first question will report the problem.
  }
}
