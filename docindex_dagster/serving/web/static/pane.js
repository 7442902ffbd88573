// Pane with a file, next to search results or an answer. The URL says which file is open.
import { content, newest } from "./fetching.js";
import { encoded, fileAddress, placeOf } from "./places.js";
import { say } from "./telling.js";
import { reveal } from "./viewer.js";

const PLACE = ["at", "from", "to", "symbol"];
const wide = matchMedia("(min-width: 68rem)");
const getFile = newest();
let changed = () => {};
let home = null;

/** Open links in the pane on wide screens. `whenChanged` highlights the open file's link; `field` takes the focus back. */
export function startPane(whenChanged, field) {
  changed = whenChanged;
  home = field;
  document.addEventListener("click", clicked);
  const shown = document.querySelector("#pane .viewer");
  if (shown) reveal(shown);
  changed();
}

/** Return the open file as URL parameters. */
export function shownPlace() {
  const now = new URL(location.href).searchParams;
  return PLACE.filter((name) => now.has(name)).map((name) => [name, now.get(name)]);
}

/** Return whether a link points to the open file. */
export function isShown(link) {
  const now = new URL(location.href).searchParams;
  const place = placeOf(link.href);
  return place !== null && place.at === now.get("at") && place.from === (now.get("from") ?? "");
}

/** Close the file and focus the link that opened it. Return false if no file is open. */
export function closeFile() {
  if (!document.querySelector("#pane > *")) return false;
  const opener = [...document.querySelectorAll("main a[data-open]")].find((link) => !link.closest("#pane") && isShown(link));
  const url = new URL(location.href);
  for (const name of PLACE) url.searchParams.delete(name);
  history.pushState(null, "", url);
  empty();
  (opener ?? home).focus();
  return true;
}

/** Show what the URL says, after the user has gone back or forward. */
export function restorePane() {
  const query = new URL(location.href).searchParams;
  const at = query.get("at");
  if (!at) return empty();
  const place = { at, encoded: encoded(at) };
  for (const name of ["from", "to", "symbol"]) place[name] = query.get(name) ?? "";
  return open(place, false);
}

function clicked(event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
  if (event.target.closest("[data-close]")) return closeFile();
  const snippet = event.target.closest("[data-open-too]");
  const link = snippet ? snippet.closest(".hit").querySelector("a.open") : event.target.closest("a[data-open]");
  if (!link || (snippet && String(getSelection()))) return;
  const href = typeof link.href === "string" ? link.href : link.href.baseVal; // an SVG link's href is an object
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
  changed();
  say(`Opened ${place.at}`);
}

function empty() {
  document.getElementById("pane").replaceChildren();
  document.body.classList.remove("with-pane");
  changed();
}
