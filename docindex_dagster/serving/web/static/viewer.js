// File viewer: marking lines, copying a link to them, and showing related code.
import { content, newest } from "./fetching.js";
import { fileAddress } from "./places.js";
import { note } from "./telling.js";

const getRelations = newest();
let first = null; // the start of a range

export function startViewer() {
  document.addEventListener("click", (event) => {
    const number = event.target.closest(".code a.n");
    if (number && !event.ctrlKey && !event.metaKey) {
      event.preventDefault();
      choose(number.closest(".viewer"), Number(number.dataset.n), event.shiftKey);
    }
    if (event.target.closest("[data-copy-link]")) copyLink();
    const entry = event.target.closest(".outline a[data-lines]");
    const viewer = entry?.closest(".viewer");
    if (entry && viewer.querySelector(".code") && !event.ctrlKey && !event.metaKey) {
      const [from, to] = entry.dataset.lines.split("-").map(Number);
      if (document.getElementById(`L${from}`)) {
        event.preventDefault();
        first = from;
        mark(viewer, from, to);
        document.getElementById(`L${from}`).scrollIntoView({ block: "start" });
      }
    }
  });
}

/** Return the open file, if there is one. */
export function shownViewer() {
  return document.querySelector(".viewer");
}

/** Scroll the marked lines into view, in a pane that scrolls on its own. */
export function reveal(viewer, line) {
  const target = (line && viewer.querySelector(`#L${line}`)) || viewer.querySelector(".marked");
  target?.scrollIntoView({ block: "center" });
}

export function copyLink() {
  const viewer = shownViewer();
  if (!viewer) return;
  const asked = { from: viewer.dataset.from, to: viewer.dataset.to === viewer.dataset.from ? "" : viewer.dataset.to };
  const link = location.origin + fileAddress(viewer.dataset.place, asked) + (asked.from ? `#L${asked.from}` : "");
  copy(link).then((isDone) => note(isDone ? "Link copied" : link, !isDone));
}

export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return false; // not allowed, or not a secure context: the note shows the link instead
  }
}

function choose(viewer, line, isRange) {
  if (!isRange || first === null) first = isRange && viewer.dataset.from ? Number(viewer.dataset.from) : line;
  mark(viewer, Math.min(first, line), Math.max(first, line));
}

async function mark(viewer, from, to) {
  viewer.dataset.from = from;
  viewer.dataset.to = to;
  for (const line of viewer.querySelectorAll(".code .line")) {
    const number = Number(line.querySelector(".n").dataset.n);
    line.classList.toggle("marked", from <= number && number <= to);
  }
  const caption = viewer.querySelector("[data-lines]");
  caption.textContent = from === to ? `line ${from}` : `lines ${from}–${to}`;
  const asked = { from, to: to === from ? "" : to };
  remember(viewer, asked);
  const answer = await getRelations(fileAddress(viewer.dataset.place, asked, "/part/relations/"));
  if (answer?.ok) viewer.querySelector("[data-relations]").replaceChildren(...content(answer.html));
}

/** Store the lines in the URL of the file's page, or of the search or answer next to the file. */
function remember(viewer, asked) {
  if (document.body.classList.contains("reading")) {
    history.replaceState(null, "", `${fileAddress(viewer.dataset.place, asked)}#L${asked.from}`);
    return;
  }
  const url = new URL(location.href);
  url.searchParams.delete("symbol");
  for (const name of ["from", "to"]) {
    if (asked[name]) url.searchParams.set(name, asked[name]);
    else url.searchParams.delete(name);
  }
  history.replaceState(history.state, "", url);
}
