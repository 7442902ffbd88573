// Search as you type. The URL always matches what is shown.
import { content, newest } from "./fetching.js";
import { filters, setFilters, startFilters } from "./filters.js";
import { isShown, restorePane, shownPlace, startPane } from "./pane.js";
import { say } from "./telling.js";

const PAUSE_MS = 160; // after the last keystroke
const NEW_ENTRY_MS = 2500; // after this pause, typing creates a new history entry
const getResults = newest();
let timer = null;
let typedAt = 0;

export function startSearch() {
  if (!document.body.classList.contains("searching")) return;
  const form = document.getElementById("search");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    ask(true);
  });
  form.elements.q.addEventListener("input", typed);
  startFilters({ typed, chosen: () => ask(true), home: form.elements.q });
  document.addEventListener("click", clicked);
  window.addEventListener("popstate", restore);
  startPane(markShown, form.elements.q);
}

function typed() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const isNewEntry = Date.now() - typedAt > NEW_ENTRY_MS;
    typedAt = Date.now();
    ask(isNewEntry);
  }, PAUSE_MS);
}

/** Return the search in the form as URL parameters. */
function currentQuery() {
  const query = new URLSearchParams();
  const text = document.getElementById("q").value;
  if (text.trim()) query.set("q", text);
  for (const [name, value] of filters()) query.set(name, value);
  return query;
}

function ask(isNewEntry) {
  clearTimeout(timer);
  const query = currentQuery();
  for (const [name, value] of shownPlace()) query.set(name, value);
  const address = `/${query.size ? `?${query}` : ""}`;
  if (address !== location.pathname + location.search) history[isNewEntry ? "pushState" : "replaceState"](null, "", address);
  document.title = query.get("q") ? `${query.get("q")} · docindex` : "docindex";
  return show(currentQuery());
}

async function show(query) {
  const results = document.getElementById("results");
  results.setAttribute("aria-busy", "true");
  const answer = await getResults(`/part/results?${query}`);
  if (!answer) return;
  results.removeAttribute("aria-busy");
  if (answer.unreachable) return say("The server does not respond");
  results.replaceChildren(...content(answer.html));
  results.scrollTop = 0;
  for (const element of results.querySelectorAll("[data-here]")) element.textContent = location.origin + element.dataset.here;
  say(results.querySelector("[data-said]")?.dataset.said ?? "");
  markShown();
}

function clicked(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  const more = event.target.closest("a[data-more]");
  if (!more) return;
  event.preventDefault();
  addMore(more);
}

function markShown() {
  for (const hit of document.querySelectorAll(".hit")) hit.classList.toggle("shown", isShown(hit.querySelector("a.open")));
}

async function addMore(link) {
  const url = new URL(link.href);
  const answer = await getResults(`/part/results${url.search}`);
  if (!answer?.ok) return;
  const fresh = document.createElement("div");
  fresh.append(...content(answer.html));
  const added = [...fresh.querySelectorAll(".hit")];
  document.querySelector("#results .hits").append(...added);
  const next = fresh.querySelector(".more");
  const old = document.querySelector("#results .more");
  if (next) old.replaceWith(next);
  else old.remove();
  added[0]?.querySelector("a.open").focus();
  say(`${added.length} more results`);
}

/** Show what the URL says, after the user has gone back or forward. */
function restore() {
  const query = new URL(location.href).searchParams;
  document.getElementById("q").value = query.get("q") ?? "";
  setFilters(query);
  show(currentQuery());
  restorePane();
}
