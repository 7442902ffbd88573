// Color scheme switch: system, light or dark.
import { keep, kept } from "./kept.js";

const NAMES = { system: "system", light: "light", dark: "dark" };
const NEXT = { system: "light", light: "dark", dark: "system" };

export function startColours() {
  const button = document.getElementById("theme");
  if (!button) return;
  show(button, kept("theme") ?? "system");
  button.addEventListener("click", () => show(button, NEXT[document.documentElement.dataset.theme ?? "system"]));
}

function show(button, theme) {
  const selected = theme in NAMES ? theme : "system";
  keep("theme", selected === "system" ? null : selected);
  if (selected === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = selected;
  const label = `Colours: ${NAMES[selected]}`;
  button.setAttribute("aria-label", label);
  button.title = label;
}
