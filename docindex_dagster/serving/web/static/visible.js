// Text of files and models without characters that hide or reorder text. Templates do the same on the server.
const INVISIBLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Replace each invisible character with a replacement character; line breaks and tabs stay. */
export function visible(text) {
  return text.replace(INVISIBLE, (character) => (character === "\n" || character === "\t" ? character : "\ufffd"));
}

/** Do the same for line breaks and tabs, so that the text stays on one line. */
export function inLine(text) {
  return text.replace(INVISIBLE, "\ufffd");
}
