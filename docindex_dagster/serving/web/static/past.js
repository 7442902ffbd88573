// Past conversations kept in this browser: the newest ones, limited in number and size.
import { keep, kept } from "./kept.js";

const NAME = "asked";
const MOST = 50;
const MOST_CHARACTERS = 2_000_000; // browsers allow five million per site

/** Return the conversations, newest first. */
export function conversations() {
  try {
    const found = JSON.parse(kept(NAME) ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

export function newConversation() {
  const id = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return { id, at: Date.now(), server: null, turns: [] };
}

/** Store a conversation as the newest one. The oldest are dropped if space runs out. */
export function save(conversation) {
  const turns = conversation.turns.filter((turn) => turn.text);
  if (!turns.length || conversation.isForgotten) return;
  const others = conversations().filter((other) => other.id !== conversation.id);
  write([shortened({ ...conversation, at: Date.now(), turns }), ...others]);
}

export function forget(id) {
  write(conversations().filter((other) => other.id !== id));
}

export function forgetAll() {
  keep(NAME, null);
}

/** Return a conversation without its oldest turns if it is too large. */
function shortened(conversation) {
  let turns = conversation.turns;
  while (turns.length > 1 && JSON.stringify(turns).length > MOST_CHARACTERS) turns = turns.slice(1);
  return { ...conversation, turns };
}

function write(found) {
  let size = 0;
  let fitting = found.slice(0, MOST).filter((conversation) => (size += JSON.stringify(conversation).length) <= MOST_CHARACTERS);
  while (!keep(NAME, JSON.stringify(fitting)) && fitting.length) fitting = fitting.slice(0, -1);
}
