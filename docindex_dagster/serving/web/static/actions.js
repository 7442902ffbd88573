// Buttons and forms that change something: they call the API and show its response.
import { note } from "./telling.js";
import { forgetAll } from "./past.js";
import { refreshAll } from "./parts.js";

export function startActions() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-post], button[data-delete]");
    if (button) act(button);
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      if (!event.composedPath().includes(menu) || button) menu.open = false; // the clicked element may have been removed
    }
  });
  document.addEventListener("submit", (event) => {
    if (event.target.matches("form[action='/logout']")) forgetAll();
    const form = event.target.closest("form[data-post]");
    if (!form) return;
    event.preventDefault();
    add(form);
  });
  for (const element of document.querySelectorAll("[data-here]")) {
    element.textContent = location.origin + element.dataset.here;
  }
}

async function act(button) {
  button.disabled = true;
  const isDelete = "delete" in button.dataset;
  const answer = await ask(isDelete ? "DELETE" : "POST", button.dataset.delete ?? button.dataset.post, button.dataset.body);
  if (answer) note(button.dataset.done);
  button.disabled = false;
  refreshAll();
}

async function add(form) {
  const values = Object.fromEntries([...new FormData(form)].filter(([, value]) => value.trim()));
  const button = form.querySelector("button");
  button.disabled = true;
  const added = await ask("POST", form.dataset.post, JSON.stringify(values));
  if (added) {
    const key = added.source.split("/").map(encodeURIComponent).join("/");
    await ask("POST", `/api/v1/sources/${key}/index`, "{}");
    location.reload();
  }
  button.disabled = false;
}

/** Return the API's response, or show its error and return null. */
export async function ask(method, address, body) {
  try {
    const answer = await fetch(address, { method, body, headers: body ? { "Content-Type": "application/json" } : {} });
    const data = await answer.json();
    if (answer.ok) return data;
    note(`${data.title}: ${data.detail}`, true);
  } catch {
    note("The server does not respond. Is it still running?", true);
  }
  return null;
}
