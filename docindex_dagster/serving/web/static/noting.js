// Button that marks a result as an answer to the query, if questions are collected. A second click removes the mark.
import { ask } from "./actions.js";
import { say } from "./telling.js";

export function startNoting() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-answers]");
    if (button) note(button);
  });
}

async function note(button) {
  const question = JSON.parse(button.closest("[data-question]").dataset.question);
  const answers = button.getAttribute("aria-pressed") !== "true";
  button.setAttribute("aria-busy", "true");
  const noted = await ask("POST", "/api/v1/questions", JSON.stringify({ question, place: button.dataset.answers, answers, origin: "page" }));
  button.removeAttribute("aria-busy");
  if (!noted) return;
  button.setAttribute("aria-pressed", String(noted.is_noted));
  say(noted.is_noted ? "Marked as an answer" : "No longer marked as an answer");
}
