// Text of files and models, of which no character hides or turns what follows; templates do the same on the server.
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** The same with a mark for each character that cannot be seen; lines and tabs stay. */
export function visible(text) {
  return text.replace(UNSEEN, (character) => (character === "\n" || character === "\t" ? character : "\ufffd"));
}

/** In one line. */
export function inLine(text) {
  return text.replace(UNSEEN, "\ufffd");
}
