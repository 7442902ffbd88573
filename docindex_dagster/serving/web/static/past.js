// Conversations that this browser keeps: the newest, so many, so large.
import { keep, kept } from "./kept.js";

const NAME = "asked";
const MOST = 50;
const MOST_CHARACTERS = 2_000_000; // browsers give a site five million

/** The newest first. */
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

/** Keep a conversation as the newest one; the oldest go where there is no room. */
export function save(conversation) {
  const turns = conversation.turns.filter((turn) => turn.text);
  if (!turns.length || conversation.isForgotten) return;
  const others = conversations().filter((one) => one.id !== conversation.id);
  write([shortened({ ...conversation, at: Date.now(), turns }), ...others]);
}

export function forget(id) {
  write(conversations().filter((one) => one.id !== id));
}

export function forgetAll() {
  keep(NAME, null);
}

/** A conversation that has room, without its oldest turns if it must be. */
function shortened(conversation) {
  let turns = conversation.turns;
  while (turns.length > 1 && JSON.stringify(turns).length > MOST_CHARACTERS) turns = turns.slice(1);
  return { ...conversation, turns };
}

function write(found) {
  let size = 0;
  let fitting = found.slice(0, MOST).filter((one) => (size += JSON.stringify(one).length) <= MOST_CHARACTERS);
  while (!keep(NAME, JSON.stringify(fitting)) && fitting.length) fitting = fitting.slice(0, -1);
}
