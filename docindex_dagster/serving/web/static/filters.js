// What a search or a question is narrowed to.
const NAMES = ["source", "language", "type", "kind", "path", "mode"];
const ANY = { mode: "hybrid" };

/** Call `typed` as a filter is written, `chosen` as one is chosen; clearing them goes on in the field `home`. */
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

/** The filters that are set, by name; they are shown as such. */
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

/** Set those of an address. */
export function setFilters(query) {
  for (const [name, field] of fields()) field.value = query.get(name) ?? ANY[name] ?? "";
}

function fields() {
  return NAMES.map((name) => [name, document.getElementById(`by-${name}`)]).filter(([, field]) => field);
}
