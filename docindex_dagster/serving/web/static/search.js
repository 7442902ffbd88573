// Search as you type, and a file beside the results. The address always says what is shown.
import { content, newest } from "./fetching.js";
import { encoded, fileAddress, placeOf } from "./places.js";
import { say } from "./telling.js";
import { reveal } from "./viewer.js";

const PAUSE_MS = 160; // behind the last key
const ANEW_MS = 2500; // after so long, typing is another search in the history
const FILTERS = ["source", "language", "type", "kind", "path", "mode"];
const PLACE = ["at", "from", "to", "symbol"];
const wide = matchMedia("(min-width: 68rem)");
const getResults = newest();
const getFile = newest();
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
  document.getElementById("by-path").addEventListener("input", typed);
  for (const name of FILTERS) {
    if (name !== "path") document.getElementById(`by-${name}`).addEventListener("change", () => ask(true));
  }
  document.getElementById("clear").addEventListener("click", (event) => {
    event.preventDefault();
    for (const name of FILTERS) document.getElementById(`by-${name}`).value = name === "mode" ? "hybrid" : "";
    ask(true);
    form.elements.q.focus();
  });
  document.addEventListener("click", clicked);
  window.addEventListener("popstate", restore);
  const shown = document.querySelector("#pane .viewer");
  if (shown) reveal(shown);
  markShown();
}

export function closeFile() {
  if (!document.querySelector("#pane > *")) return false;
  const url = new URL(location.href);
  const place = url.searchParams.get("at");
  for (const name of PLACE) url.searchParams.delete(name);
  history.pushState(null, "", url);
  empty();
  const link = [...document.querySelectorAll(".hit a.open")].find((one) => placeOf(one.href)?.at === place);
  (link ?? document.getElementById("q")).focus();
  return true;
}

function typed() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const isAnew = Date.now() - typedAt > ANEW_MS;
    typedAt = Date.now();
    ask(isAnew);
  }, PAUSE_MS);
}

/** The search of the form, with the file that is shown. */
function asked() {
  const query = new URLSearchParams();
  const text = document.getElementById("q").value;
  if (text.trim()) query.set("q", text);
  for (const name of FILTERS) {
    const field = document.getElementById(`by-${name}`);
    const value = name === "mode" && field.value === "hybrid" ? "" : field.value.trim();
    field.classList.toggle("set", Boolean(value));
    if (value) query.set(name, value);
  }
  document.getElementById("clear").hidden = !FILTERS.some((name) => name !== "mode" && query.has(name));
  return query;
}

function ask(isAnew) {
  clearTimeout(timer);
  const query = asked();
  const now = new URL(location.href);
  for (const name of PLACE) if (now.searchParams.has(name)) query.set(name, now.searchParams.get(name));
  const address = `/${query.size ? `?${query}` : ""}`;
  if (address !== location.pathname + location.search) history[isAnew ? "pushState" : "replaceState"](null, "", address);
  document.title = query.get("q") ? `${query.get("q")} · docindex` : "docindex";
  return show(asked());
}

async function show(query) {
  const results = document.getElementById("results");
  results.setAttribute("aria-busy", "true");
  const answer = await getResults(`/part/results?${query}`);
  if (!answer) return;
  results.removeAttribute("aria-busy");
  if (answer.unreachable) return say("The server does not answer");
  results.replaceChildren(...content(answer.html));
  results.scrollTop = 0;
  for (const element of results.querySelectorAll("[data-here]")) element.textContent = location.origin + element.dataset.here;
  say(results.querySelector("[data-said]")?.dataset.said ?? "");
  markShown();
}

function clicked(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (event.target.closest("[data-close]")) return closeFile();
  const more = event.target.closest("a[data-more]");
  if (more) {
    event.preventDefault();
    return addMore(more);
  }
  const snippet = event.target.closest("[data-open-too]");
  const link = snippet ? snippet.closest(".hit").querySelector("a.open") : event.target.closest("a[data-open]");
  if (!link || (snippet && String(getSelection()))) return;
  const href = typeof link.href === "string" ? link.href : link.href.baseVal; // an SVG's is an object
  const place = placeOf(href);
  if (!place || place.at.includes("/.git/commit/") || !wide.matches) {
    if (snippet) location.assign(href);
    return;
  }
  event.preventDefault();
  open(place);
}

async function open(place, isNew = true) {
  const answer = await getFile(fileAddress(place.encoded, place, "/part/file/"));
  if (!answer || answer.unreachable) return;
  const pane = document.getElementById("pane");
  pane.replaceChildren(...content(answer.html));
  document.body.classList.add("with-pane");
  if (isNew) {
    const url = new URL(location.href);
    for (const name of PLACE) url.searchParams.delete(name);
    for (const name of PLACE) if (place[name]) url.searchParams.set(name, place[name]);
    history.pushState(null, "", url);
  }
  const viewer = pane.querySelector(".viewer");
  if (viewer) reveal(viewer, place.line);
  markShown();
  say(`Opened ${place.at}`);
}

function empty() {
  document.getElementById("pane").replaceChildren();
  document.body.classList.remove("with-pane");
  markShown();
}

function markShown() {
  const query = new URL(location.href).searchParams;
  for (const hit of document.querySelectorAll(".hit")) {
    const place = placeOf(hit.querySelector("a.open").href);
    hit.classList.toggle("shown", place?.at === query.get("at") && place?.from === (query.get("from") ?? ""));
  }
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

/** Show what the address says, after the browser went back or forth. */
function restore() {
  const query = new URL(location.href).searchParams;
  document.getElementById("q").value = query.get("q") ?? "";
  for (const name of FILTERS) document.getElementById(`by-${name}`).value = query.get(name) ?? (name === "mode" ? "hybrid" : "");
  show(asked());
  const at = query.get("at");
  if (!at) return empty();
  const place = { at, encoded: encoded(at) };
  for (const name of ["from", "to", "symbol"]) place[name] = query.get(name) ?? "";
  return open(place, false);
}
