// The switch of colours: as the system, light, dark.
import { keep, kept } from "./kept.js";

const NAMES = { system: "as the system", light: "light", dark: "dark" };
const NEXT = { system: "light", light: "dark", dark: "system" };

export function startColours() {
  const button = document.getElementById("theme");
  if (!button) return;
  show(button, kept("theme") ?? "system");
  button.addEventListener("click", () => show(button, NEXT[document.documentElement.dataset.theme ?? "system"]));
}

function show(button, theme) {
  const chosen = theme in NAMES ? theme : "system";
  keep("theme", chosen === "system" ? null : chosen);
  if (chosen === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
  const label = `Colours: ${NAMES[chosen]}`;
  button.setAttribute("aria-label", label);
  button.title = label;
}
