"""Check that MCP answers stay within their token budget.

    python -m benchmarks.budgets [PROJECT] [--max-tokens N]

A client of the Model Context Protocol calls `docindex mcp` fifty times in a project that indexes checkouts of flask,
gin and gson. The calls cover all tools, large and small results, and cursors. Tokens are counted with the packed
model's tokenizer and as a quarter of the characters. The exit code is 1 if an answer exceeds its budget.
"""

import argparse
import re
import sys
import time
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from docindex_dagster.core.tokenizer import count_tokens

_QUESTIONS = (
    "how are sessions signed",
    "what happens when a view function returns a tuple",
    "route groups with middleware",
    "how to leave out null fields",
    "register a custom type adapter",
    "error handling",
    "test client",
    "kafka connector zookeeper",
)
_SYMBOLS = ("Flask", "Flask.make_response", "gin.Engine.Run", "Context.JSON", "Gson.toJson", "JsonReader.peek")
_CURSOR = re.compile(r'cursor "(\d+)"')
_DEFAULT = 2000
_CALLS = 50

Call = tuple[str, dict[str, Any]]


def main() -> None:
    """Print the tokens of each call, then the maximum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("project", type=Path, nargs="?", default=Path())
    parser.add_argument("--max-tokens", type=int)
    arguments = parser.parse_args()
    given = {} if arguments.max_tokens is None else {"max_tokens": arguments.max_tokens}
    budget = arguments.max_tokens or _DEFAULT
    sizes = anyio.run(_ask_all, arguments.project, given)
    over = [call for call, size in sizes if size > budget]
    largest = max(size for _, size in sizes)
    print(f"{len(sizes)} calls, budget {budget}: largest {largest} tokens, {len(over)} over the budget")
    sys.exit(bool(over))


def _calls() -> list[Call]:
    calls: list[Call] = [("status", {})]
    calls += [("search", {"query": question}) for question in _QUESTIONS]
    calls += [("search", {"query": question, "top_k": 50}) for question in _QUESTIONS[:4]]
    calls += [("search", {"query": text, "mode": "literal", "top_k": 50}) for text in ("return", "Context", "null")]
    calls += [("search", {"query": "json", "mode": "graph", "granularity": "file", "top_k": 50})]
    calls += [("context", {"query": question}) for question in _QUESTIONS]
    calls += [("show", {"reference": page}) for page in ("src/flask/app.py", "gin.go", "UserGuide.md", "CHANGELOG.md")]
    calls += [("find_similar", {"place": page, "top_k": 50}) for page in ("src/flask/app.py:1000", "gin.go:300")]
    for question in ("callers", "callees", "impact"):
        calls += [("graph", {"question": question, "symbol": symbol}) for symbol in _SYMBOLS[1:5]]
    calls += [("graph", {"question": "neighbors", "symbol": "Flask", "depth": 2}), ("graph", {"question": "stats"})]
    calls += [("log", {"top_k": 50}), ("log", {"query": "session"}), ("why", {"path": "gin.go"})]
    return calls


async def _ask_all(project: Path, given: dict[str, Any]) -> list[tuple[Call, int]]:
    command = StdioServerParameters(command=sys.executable, args=["-m", "docindex_dagster.cli", "mcp"], cwd=project)
    sizes: list[tuple[Call, int]] = []
    async with Client(stdio_client(command)) as client:
        queue = _calls()
        while queue and len(sizes) < _CALLS:
            name, arguments = queue.pop(0)
            wanted = arguments if name == "why" else arguments | given
            began = time.perf_counter()
            result = await client.call_tool(name, wanted)
            text = "\n".join(part.text for part in result.content if part.type == "text")
            size = count_tokens([text])[0]
            seconds = time.perf_counter() - began
            sizes.append(((name, arguments), size))
            print(f"{size:6} tokens {len(text) // 4:6} by characters {seconds:6.2f} s  {name} {arguments}"[:150])
            if result.is_error:
                print(f"       {text}")
            if (cursor := _CURSOR.search(text)) and "cursor" not in arguments:
                queue.append((name, arguments | {"cursor": cursor[1]}))
    return sizes


if __name__ == "__main__":
    main()
