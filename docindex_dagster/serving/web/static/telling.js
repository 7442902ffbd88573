// Messages for the user: temporary notes, and announcements for screen readers.
const SHOWN_MS = 6000;

export function say(text) {
  document.getElementById("said").textContent = text;
}

export function note(text, isBad = false) {
  const element = document.createElement("p");
  element.className = isBad ? "note bad" : "note";
  element.textContent = text;
  document.getElementById("notes").append(element);
  setTimeout(() => element.remove(), isBad ? 2 * SHOWN_MS : SHOWN_MS);
}
