// Filters of a search or a question.
const NAMES = ["source", "language", "type", "kind", "path", "mode"];
const ANY = { mode: "hybrid" };

/** Call `typed` while a text filter is edited and `chosen` when one is selected. Clearing all focuses the field `home`. */
export function startFilters({ typed, chosen, home }) {
  for (const [name, field] of fields()) {
    if (name === "path") field.addEventListener("input", typed);
    else field.addEventListener("change", chosen);
  }
  document.getElementById("clear").addEventListener("click", (event) => {
    event.preventDefault();
    setFilters(new URLSearchParams());
    chosen();
    home.focus();
  });
}

/** Return the active filters by name, and highlight their fields. */
export function filters() {
  const found = [];
  for (const [name, field] of fields()) {
    const value = field.value.trim();
    const isSet = value !== (ANY[name] ?? "");
    field.classList.toggle("set", isSet);
    if (isSet) found.push([name, value]);
  }
  document.getElementById("clear").hidden = !found.some(([name]) => name !== "mode");
  return found;
}

/** Set the filters from a URL's parameters. */
export function setFilters(query) {
  for (const [name, field] of fields()) field.value = query.get(name) ?? ANY[name] ?? "";
}

function fields() {
  return NAMES.map((name) => [name, document.getElementById(`by-${name}`)]).filter(([, field]) => field);
}
