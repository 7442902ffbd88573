"""Measure how soon an agent finds a saved edit.

    python -m benchmarks.agents [--files 1000] [--edits 10]

A client of the Model Context Protocol starts `docindex mcp --watch` on a library of generated Python files. It appends
a new function to one file after another and searches for it ten times a second until it is found. Times are wall-clock
seconds from the end of the write to the answer. No other docindex process runs.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters, stdio_client

_ASK_EVERY_S = 0.1
_PAUSE_S = 1.0
_FOLDERS = 40


def main() -> None:
    """Print the seconds of each edit, the median and the maximum."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = _write(root, arguments.files)
        took = anyio.run(_edit_and_ask, root, files[: arguments.edits])
    print(" ".join(f"{seconds:.2f}" for seconds in took))
    print(f"{len(files)} files: median {statistics.median(took):.2f} s, slowest {max(took):.2f} s")


def _write(root: Path, count: int) -> list[Path]:
    files = [root / "code" / f"part{number % _FOLDERS}" / f"module{number}.py" for number in range(count)]
    for number, file in enumerate(files):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f'def work_{number}(a):\n    """Does the work of number {number}."""\n    return a + {number}\n\n\n'
            f"class Thing{number}:\n    def go(self):\n        return work_{number}({number})\n"
        )
    (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "code"\n')
    return files


async def _edit_and_ask(root: Path, edited: list[Path]) -> list[float]:
    command = StdioServerParameters(
        command=sys.executable, args=["-m", "docindex_dagster.cli", "mcp", "--watch"], cwd=root
    )
    took = []
    async with Client(stdio_client(command)) as client:
        await _found(client, "work_0")
        await anyio.sleep(5 * _PAUSE_S)  # for loading after the first run
        for number, file in enumerate(edited):
            await anyio.sleep(_PAUSE_S)
            file.write_text(f"def quite_new_{number}():\n    return 'fresh {number}'\n")
            saved = time.perf_counter()
            await _found(client, f"quite_new_{number}")
            took.append(time.perf_counter() - saved)
    return took


async def _found(client: Client, name: str) -> None:
    while True:
        result = await client.call_tool("search", {"query": name, "top_k": 1})
        if f"def {name}" in getattr(result.content[0], "text", ""):
            return
        await anyio.sleep(_ASK_EVERY_S)


if __name__ == "__main__":
    main()
