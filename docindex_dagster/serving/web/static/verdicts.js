// A user's verdict on an answer, stored in a file on the server.
import { note } from "./telling.js";

const CITED = ["number", "state", "source", "path", "start_line", "end_line"];

/** Send a verdict. Return whether it was stored. */
export async function judge(turn, verdict, comment) {
  const citations = turn.citations.map((citation) => Object.fromEntries(CITED.map((name) => [name, citation[name] ?? (name.endsWith("line") ? 0 : null)])));
  const { question, text: answer, model, generation } = turn;
  const body = JSON.stringify({ verdict, question, answer, citations, comment, model, generation });
  try {
    const noted = await fetch("/ask/feedback", { method: "POST", body, headers: { "Content-Type": "application/json" } });
    if (noted.ok) {
      note("Thank you for your feedback");
      return true;
    }
    const problem = await noted.json();
    note(`${problem.title}: ${problem.detail}`, true);
  } catch {
    note("The server does not respond. Is it still running?", true);
  }
  return false;
}
