"""Measure the time that docindex adds to a model's response.

    python -m benchmarks.asking BENCH FOLDER... [--chunks 20000]

The benchmark publishes the given number of chunks, as `latency` does. A local server with OpenAI's API starts each
answer after half a second. All results are in milliseconds, without that delay:

- the search for a question with 8,000 tokens of context in a warm process: median and 95th percentile of 100 questions
- the first word of `docindex ask` on a terminal and `docindex search --context 8000` for the same question, alternately
  in new processes; the difference is the overhead of docindex
- later questions in `docindex ask --chat`
"""

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.latency import cut, milliseconds, publish_share, questions
from docindex_dagster.answering import DEFAULT_TOKENS
from docindex_dagster.answering.question import Question, Retrieved, retrieve
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import CONFIG_NAME, load_settings
from docindex_dagster.llm.chat import Delta, Usage
from docindex_dagster.search.live_index import Live
from docindex_dagster.stores import link_files
from tests.llm.chats import MODEL, OPENAI, serving
from tests.terminals import Terminal

WORD = "Heartbeatword"
WAIT_S = 0.5  # delay of the model
TURNS = 9


def retrieving(live: Live, asked: Sequence[str]) -> str:
    """Return the milliseconds of the search for each question."""

    def ask(text: str) -> Retrieved:
        return live.reading(lambda reader: retrieve(live.settings, reader, Question(text), text, DEFAULT_TOKENS))

    return milliseconds(ask, asked)


def until(root: Path, sign: str, *arguments: str) -> float:
    """Return the seconds until a command in a terminal prints a text."""
    started = time.perf_counter()
    command = Terminal(arguments, root, columns=200)
    command.wait_for(sign)
    seconds = time.perf_counter() - started
    command.end()
    return seconds


def chatting(root: Path, asked: Sequence[str]) -> list[float]:
    """Return the seconds until the first word of each later question, without the model's delay."""
    command = Terminal(["ask", "--chat", asked[0]], root, columns=200)
    command.wait_for("in all")
    seconds = []
    for count, text in enumerate(asked[1:], start=2):
        started = time.perf_counter()
        command.type_line(text)
        command.wait_for_count(WORD, count)
        seconds.append(time.perf_counter() - started - WAIT_S)
        command.wait_for_count("in all", count)
    command.type_line("/quit")
    command.end()
    return seconds


def main() -> None:
    """Print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bench", type=Path)
    parser.add_argument("folders", type=Path, nargs="+", metavar="FOLDER")
    parser.add_argument("--chunks", type=int, default=20_000)
    arguments = parser.parse_args()
    asked = questions(arguments.bench)
    with tempfile.TemporaryDirectory(prefix="docindex-asking-") as folder, serving() as server:
        root = Path(folder)
        (root / CONFIG_NAME).write_text("")
        layout = Layout(load_settings(root).home)
        publish_share(layout, cut(arguments.folders), arguments.chunks)
        link_files.bring_up_to_date(layout)  # as runs do
        live = Live(load_settings(root))
        count = live.reading(lambda reader: reader.searcher.num_docs)
        print(f"{count:,} chunks; system load {os.getloadavg()[0]:.1f}{'':<9} p50     p95  ms")
        print(f"search for a question, warm                {retrieving(live, asked)}")
        server.replies = [OPENAI.reply(Delta(f"{WORD} [1]."), Usage(1, 1), delay_s=WAIT_S)]
        for name, value in {"PROVIDER": "openai", "MODEL": MODEL, "BASE_URL": server.address + OPENAI.prefix}.items():
            os.environ[f"DOCINDEX_LLM__{name}"] = value
        searched, answered = [], []
        for text in asked[:TURNS]:
            searched.append(until(root, "##", "search", text, "--context", str(DEFAULT_TOKENS)))
            answered.append(until(root, WORD, "ask", text) - WAIT_S)
        shown(searched, "docindex search --context, new process")
        shown(answered, "docindex ask, first word, without the model")
        added = [one - other for one, other in zip(answered, searched, strict=True)]
        shown(added, "  more than the search")
        shown(chatting(root, asked[: TURNS + 1]), "docindex ask --chat, without the model")


def shown(seconds: Sequence[float], what: str) -> None:
    """Print the median and the maximum."""
    print(f"{what:<42} {statistics.median(seconds) * 1000:7.0f} {max(seconds) * 1000:7.0f}")


if __name__ == "__main__":
    os.environ.pop("DOCINDEX_ROOT", None)
    main()
