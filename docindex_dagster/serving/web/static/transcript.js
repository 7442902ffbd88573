// Answers as Markdown, with what their checks say and a list of their sources.
import { reason, sign } from "./marks.js";
import { inLine, visible } from "./visible.js";

/** An answer, and the sources that it cites. */
export function answerMarkdown(turn) {
  const cited = turn.citations.filter((citation) => citation.state !== "missing");
  const lines = turn.passages
    .filter((passage) => cited.some((citation) => citation.number === passage.number))
    .map((passage) => sourceLine(passage, cited.filter((citation) => citation.number === passage.number)));
  return `${signed(turn).trimEnd()}\n${lines.length ? `\nSources:\n\n${lines.join("\n")}\n` : ""}`;
}

/** A whole conversation, for a file. */
export function conversationMarkdown(conversation) {
  return conversation.turns
    .filter((turn) => turn.text)
    .map((turn) => `## ${inLine(turn.question.replace(/\s+/g, " ")).trim()}\n\n${answerMarkdown(turn)}`)
    .join("\n");
}

/** The text with what the checks say in its marks; positions count characters, not units of UTF-16. */
function signed(turn) {
  const characters = [...turn.text];
  const shown = [];
  let end = 0;
  for (const citation of turn.citations) {
    if (citation.start >= end) {
      shown.push(characters.slice(end, citation.start).join(""));
      end = citation.end;
    }
    shown.push(sign(citation));
  }
  return visible(shown.join("") + characters.slice(end).join(""));
}

function sourceLine(passage, citations) {
  const reasons = [...new Set(citations.map(reason))].join(" ");
  return `- [${passage.number}] ${code(`${passage.source}/${passage.path}:${passage.start_line}-${passage.end_line}`)}: ${reasons}`;
}

/** A code span, from which no backtick of the text leads out. */
function code(text) {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest ? `${fence} ${inLine(text)} ${fence}` : fence + inLine(text) + fence;
}
