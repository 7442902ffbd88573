// Saying that a result answers what was searched for, where questions are collected; pressed again, it is taken back.
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
  say(noted.is_noted ? "Noted as an answer" : "No longer noted");
}
