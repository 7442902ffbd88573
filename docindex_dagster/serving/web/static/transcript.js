// Answers as Markdown, with the check results and a list of their sources.
import { reason, markText } from "./marks.js";
import { inLine, visible } from "./visible.js";

/** Return an answer with the sources that it cites. */
export function answerMarkdown(turn) {
  const cited = turn.citations.filter((citation) => citation.state !== "missing");
  const lines = turn.passages
    .filter((passage) => cited.some((citation) => citation.number === passage.number))
    .map((passage) => sourceLine(passage, cited.filter((citation) => citation.number === passage.number)));
  return `${withCheckResults(turn).trimEnd()}\n${lines.length ? `\nSources:\n\n${lines.join("\n")}\n` : ""}`;
}

/** Return a complete conversation, for a file. */
export function conversationMarkdown(conversation) {
  return conversation.turns
    .filter((turn) => turn.text)
    .map((turn) => `## ${inLine(turn.question.replace(/\s+/g, " ")).trim()}\n\n${answerMarkdown(turn)}`)
    .join("\n");
}

/** Return the text with check results in its marks. Positions count code points, not UTF-16 units. */
function withCheckResults(turn) {
  const characters = [...turn.text];
  const shown = [];
  let end = 0;
  for (const citation of turn.citations) {
    if (citation.start >= end) {
      shown.push(characters.slice(end, citation.start).join(""));
      end = citation.end;
    }
    shown.push(markText(citation));
  }
  return visible(shown.join("") + characters.slice(end).join(""));
}

function sourceLine(passage, citations) {
  const reasons = [...new Set(citations.map(reason))].join(" ");
  return `- [${passage.number}] ${code(`${passage.source}/${passage.path}:${passage.start_line}-${passage.end_line}`)}: ${reasons}`;
}

/** Return a code span that backticks in the text cannot close. */
function code(text) {
  const longest = Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const fence = "`".repeat(longest + 1);
  return longest ? `${fence} ${inLine(text)} ${fence}` : fence + inLine(text) + fence;
}
