// Parts of a page that refresh automatically, more often while work is in progress.
import { content, part } from "./fetching.js";

const BUSY_MS = 700;
const IDLE_MS = 15000;
const soon = new Map();

export function startParts() {
  for (const element of document.querySelectorAll("[data-part]:not([data-once])")) {
    schedule(element, element.id === "pulse" ? 0 : wait(element));
  }
  document.addEventListener("visibilitychange", () => document.hidden || refreshAll());
}

/** Refresh all parts now, for example after something was started. */
export function refreshAll() {
  for (const element of document.querySelectorAll("[data-part]:not([data-once])")) schedule(element, 0);
}

function busy(element) {
  return Number(element.querySelector("[data-busy]")?.dataset.busy ?? 0);
}

function wait(element) {
  return busy(element) ? BUSY_MS : IDLE_MS;
}

function schedule(element, ms) {
  clearTimeout(soon.get(element));
  soon.set(element, setTimeout(() => refresh(element), ms));
}

async function refresh(element) {
  if (!document.hidden) {
    const before = busy(element);
    const answer = await part(element.dataset.part);
    if (answer?.ok) {
      replace(element, answer.html);
      if (busy(element) < before) await then(element.dataset.then);
    }
  }
  schedule(element, wait(element));
}

/** React to the end of some work: reload the page, or refresh another part that is now out of date. */
async function then(what) {
  if (!what) return;
  if (what === "reload") return location.reload();
  const other = document.querySelector(what);
  const answer = await part(other.dataset.part);
  if (answer?.ok) replace(other, answer.html);
}

/** Replace the content if it has changed. The keyboard focus stays where it is. */
function replace(element, html) {
  const fresh = document.createElement("div");
  fresh.append(...content(html));
  if (fresh.innerHTML === element.innerHTML) return;
  const focused = element.contains(document.activeElement) ? document.activeElement.id : "";
  const opened = element.querySelector("details[open]");
  if (opened && !focused) return; // a menu is open
  element.replaceChildren(...fresh.childNodes);
  if (focused) document.getElementById(focused)?.focus();
}
