// Single-letter shortcuts, which the user can turn off.
import { keep, kept } from "./kept.js";
import { closeFile } from "./pane.js";
import { copyLink, shownViewer } from "./viewer.js";

export function startKeys() {
  const dialog = document.getElementById("keys");
  const isOn = document.getElementById("keys-on");
  isOn.checked = kept("keys") !== "off";
  isOn.addEventListener("change", () => keep("keys", isOn.checked ? null : "off"));
  document.getElementById("help")?.addEventListener("click", () => dialog.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || dialog.open) return;
    if (event.key === "Escape") return escape(event);
    if (!isOn.checked || isTyping(event.target)) return;
    const act = SHORTCUTS[event.key];
    if (act && act(dialog) !== false) event.preventDefault();
  });
}

const SHORTCUTS = {
  "/": () => {
    const field = document.getElementById("q");
    field?.focus();
    field?.select();
  },
  j: () => step(1),
  k: () => step(-1),
  o: outline,
  a: ask,
  y: () => copyLink(),
  "[": () => stepOutline(-1),
  "]": () => stepOutline(1),
  "?": (dialog) => dialog.showModal(),
};

function isTyping(element) {
  return element.closest("input:not([type=checkbox]), textarea, select") !== null;
}

/** Go to the next or previous result or list row. */
function step(by) {
  const links = [...document.querySelectorAll(".hit a.open, .commit a.subject, .card h2 a, .jobs tbody th a")];
  if (!links.length) return false;
  const at = links.findIndex((link) => link === document.activeElement || link.closest(".hit")?.contains(document.activeElement));
  const next = links[Math.min(Math.max(at + by, 0), links.length - 1)];
  next.focus({ preventScroll: true });
  (next.closest("li, tr") ?? next).scrollIntoView({ block: "nearest" });
}

/** Focus the question field, or open the page for questions with the current search. */
function ask() {
  const field = document.getElementById("question");
  if (field) field.focus();
  else location.assign(document.querySelector("a[data-ask]")?.href ?? "/ask");
}

function outline() {
  const details = shownViewer()?.querySelector(".outline");
  if (!details) return false;
  const isInside = details.contains(document.activeElement);
  details.open = !details.open || !isInside;
  if (details.open) (details.querySelector("[aria-current]") ?? details.querySelector("a")).focus();
}

function stepOutline(by) {
  const links = [...(shownViewer()?.querySelectorAll(".outline a") ?? [])];
  if (!links.length) return false;
  const at = links.findIndex((link) => link.hasAttribute("aria-current"));
  const next = links[Math.min(Math.max(at + by, 0), links.length - 1)];
  for (const link of links) link.removeAttribute("aria-current");
  next.setAttribute("aria-current", "true");
  next.click();
}

/** Close the topmost of menu, outline and file; otherwise leave the search box. */
function escape(event) {
  const menu = document.querySelector("details.menu[open]");
  if (menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
    return;
  }
  const list = document.activeElement.closest?.(".outline");
  if (list?.open) {
    list.open = false;
    list.querySelector("summary").focus();
    return;
  }
  if (isTyping(event.target)) {
    if (!event.target.value || event.target.type !== "search") event.target.blur();
    return;
  }
  closeFile();
}
