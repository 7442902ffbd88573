"""Measure how well and how fast real repositories are parsed and chunked.

    python -m benchmarks.parsing FOLDER... [--by-language] [--steps] [--plot FILE.svg]

For each git work tree or folder, the benchmark reads the code files that discovery would index and that have a grammar.
It prints:

- the share of bytes in error nodes of their trees (outermost nodes, each byte once; missing nodes have no bytes)
- the share of files that fall back to text (an exception, mostly loose tokens instead of a tree, or a time-out)
- the number of chunks, the share of them with a symbol (in languages with symbols), and their size in non-whitespace
  characters (10th, 50th and 90th percentile)
- MB parsed and chunked per second of one core, with grammars and queries loaded
- the growth of the process's memory (peak, Linux only) and the size of the largest file

Files are read one by one.
"""

import argparse
import gc
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from benchmarks.corpus import CodeFile, code_files, revision
from docindex_dagster.chunking.chunker import ChunkOptions, Draft, Sizes
from docindex_dagster.chunking.code import chunk_code
from docindex_dagster.chunking.packing import chunk_lines
from docindex_dagster.chunking.references import file_ir, parse_code
from docindex_dagster.chunking.rows import FileJob
from docindex_dagster.chunking.worker import chunk_files
from docindex_dagster.code.extraction import is_token_heap
from docindex_dagster.code.languages import can_contain_symbols, has_symbols
from docindex_dagster.code.parsers import broken_spans, parse
from docindex_dagster.core.garbage_collection import gc_disabled
from docindex_dagster.core.settings import ChunkingSettings

_SETTINGS = ChunkingSettings()
_BATCH = 32  # files per worker job
_OPTIONS = ChunkOptions(Sizes(), _SETTINGS.code_chars)
_COLOURS = ("#3b6fb6", "#d98032", "#4f9d69")


@dataclass(frozen=True, slots=True)
class Parsed:
    """The result of parsing a file."""

    language: str
    size: int  # bytes
    broken: int  # of them in error nodes
    is_text: bool  # whether it fell back to text
    chunks: tuple[int, ...]  # non-whitespace characters of each
    with_symbol: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Group:
    """The files of a repository or a language."""

    name: str
    files: Sequence[Parsed]

    @property
    def size(self) -> int:
        """Total bytes."""
        return sum(file.size for file in self.files)

    @property
    def chunks(self) -> list[int]:
        """Non-whitespace characters of each chunk."""
        return [chunk for file in self.files for chunk in file.chunks]

    @property
    def share_with_symbol(self) -> float:
        """Share of chunks with a symbol, in languages with symbols."""
        files = [file for file in self.files if has_symbols(file.language)]
        return sum(file.with_symbol for file in files) / (sum(len(file.chunks) for file in files) or 1)

    def row(self) -> str:
        """Return a row of the table."""
        seconds = sum(file.seconds for file in self.files) or 1
        low, middle, high = _percentiles(self.chunks)
        return (
            f"{self.name:<26}{len(self.files):>7}{self.size / 1e6:>8.2f}"
            f"{sum(file.broken for file in self.files) / self.size:>10.3%}"
            f"{sum(file.is_text for file in self.files) / len(self.files):>9.2%}"
            f"{len(self.chunks):>8}{self.share_with_symbol:>10.1%}"
            f"{low:>7.0f}{middle:>6.0f}{high:>6.0f}{self.size / 1e6 / seconds:>7.2f}"
        )


_COLUMNS = ("files", 7), ("MB", 8), ("errors", 10), ("as text", 9), ("chunks", 8), ("symbol", 10), ("p10", 7)
_HEAD = f"{'':<26}" + "".join(f"{name:>{width}}" for name, width in (*_COLUMNS, ("p50", 6), ("p90", 6), ("MB/s", 7)))


def parsed(file: CodeFile) -> Parsed:
    """Parse and chunk a file as a worker does."""
    text = file.text()
    started = time.process_time()
    drafts = _chunked(text, file.language)
    seconds = time.process_time() - started
    data = text.encode()
    tree = parse(data, file.language)
    is_text = drafts is None or is_token_heap(tree.root_node) or seconds > _SETTINGS.parse_timeout_s
    drafts = chunk_lines(text, _SETTINGS.code_chars) if drafts is None else drafts
    return Parsed(
        language=file.language,
        size=len(data),
        broken=sum(end - start for start, end in broken_spans(tree)),
        is_text=is_text,
        chunks=tuple(len("".join(draft.text.split())) for draft in drafts),
        with_symbol=sum(draft.symbol is not None for draft in drafts),
        seconds=seconds,
    )


def _chunked(text: str, language: str) -> tuple[Draft, ...] | None:
    try:
        return chunk_code(text, language, _SETTINGS.code_chars).drafts
    except Exception as error:  # noqa: BLE001 as in a worker
        print(f"  {type(error).__name__}: {error}"[:200])
        return None


def measure(folder: Path, exclude: Sequence[str], *, lists_errors: bool) -> Group:
    """Parse the files of a repository; print their row and the memory growth."""
    files = list(code_files(folder, exclude))
    for language in {file.language for file in files}:
        chunk_code("\n", language)  # loads what the language needs
    gc.collect()
    before = _memory_kib("VmRSS")
    _forget_peak()
    results = [parsed(file) for file in files]
    grown = (_memory_kib("VmHWM") - before) / 1024
    group = Group(f"{folder.name} {revision(folder)}", results)
    largest = max(result.size for result in results) / 1e6
    print(f"{group.row()}   +{grown:.0f} MiB, largest file {largest:.2f} MB", flush=True)
    if lists_errors:
        worst = sorted(zip(results, files, strict=True), key=lambda pair: -pair[0].broken)
        for result, file in worst[:20]:
            if result.broken:
                print(f"  {result.broken:>8} of {result.size:>8} error bytes: {file.path}")
    return group


_Batch = Sequence[tuple[CodeFile, str]]
_STEPS: Mapping[str, Callable[[_Batch], object]] = {
    "parse": lambda files: [parse(text.encode(), file.language) for file, text in files],
    "chunks": lambda files: [chunk_code(text, file.language, _SETTINGS.code_chars) for file, text in files],
    "references": lambda files: [
        file_ir(parse_code(text, file.language), file.language, file.path) for file, text in files
    ],
    "worker": lambda files: chunk_files([_job(file, text) for file, text in files], _OPTIONS),
}


def _job(file: CodeFile, text: str) -> FileJob:
    return FileJob(
        root=file.root,
        source="library/steps",
        source_kind="library",
        path=file.path,
        source_type="code",
        language=file.language,
        chunker="code",
        size=len(text.encode()),
        commit=None,
        is_uncommitted=False,
        content_hash="",
        wants_references=True,
    )


def steps(folder: Path, exclude: Sequence[str]) -> str:
    """Return a row of the table of `--steps`."""
    texts = [(file, file.text()) for file in code_files(folder, exclude) if can_contain_symbols(file.language)]
    size = sum(len(text.encode()) for _, text in texts)
    speeds = ""
    for step in _STEPS.values():
        least = float("inf")
        for _ in range(3):
            with gc_disabled():
                started = time.process_time()
                for at in range(0, len(texts), _BATCH):
                    step(texts[at : at + _BATCH])
                least = min(least, time.process_time() - started)
            gc.collect()
        speeds += f"{size / 1e6 / least:>11.2f}"
    return f"{folder.name:<26}{len(texts):>7}{size / 1e6:>8.2f}{speeds}"


def _memory_kib(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:"))


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _percentiles(values: Sequence[int]) -> tuple[float, float, float]:
    tenths = quantiles([*values, *values] or [0, 0], n=10, method="inclusive")  # also for one value
    return tenths[0], tenths[4], tenths[8]


def by(key: Callable[[Parsed], str], files: Iterable[Parsed]) -> list[Group]:
    """Group files, the largest group first."""
    found: defaultdict[str, list[Parsed]] = defaultdict(list)
    for file in files:
        found[key(file)].append(file)
    return sorted((Group(name, group) for name, group in found.items()), key=lambda group: -group.size)


def plot(languages: Sequence[Group], file: Path) -> None:
    """Draw the sizes of chunks, over all languages and in each of the largest. Requires the extra `bench`."""
    from matplotlib import rcParams
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 4.6), layout="tight")
    left, right = figure.subplots(1, 2, gridspec_kw={"width_ratios": (5, 6)})
    sizes = [size for group in languages for size in group.chunks]
    left.hist(sizes, bins=range(0, _SETTINGS.code_chars + 1, 50), color=_COLOURS[0])
    left.axvline(_SETTINGS.code_chars, color="#888888", linewidth=0.8)
    left.set_ylabel("chunks")
    shown = [group for group in languages if has_symbols(group.name)]
    right.boxplot(
        [group.chunks for group in shown],
        orientation="horizontal",
        tick_labels=[group.name for group in shown],
        whis=(10, 90),
        showfliers=False,
        widths=0.6,
        patch_artist=True,
        boxprops={"facecolor": _COLOURS[0], "linewidth": 0},
        medianprops={"color": _COLOURS[1], "linewidth": 1.6},
    )
    right.invert_yaxis()
    left.set_xlabel(f"non-whitespace characters per chunk, of {len(sizes):,}")
    right.set_xlabel("by language: median, quartiles, 10th and 90th percentile")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    rcParams["svg.hashsalt"] = "docindex"  # reproducible output
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    """Print a row for each repository and, if requested, for each language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--exclude", action="append", default=[], metavar="GLOB", help="exclude files, as in settings")
    parser.add_argument("--by-language", action="store_true", help="also a row for each language, over all folders")
    parser.add_argument("--errors", action="store_true", help="also the files with the most error bytes")
    parser.add_argument("--steps", action="store_true", help="only the speed of each step")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the chunk sizes")
    arguments = parser.parse_args()
    if arguments.steps:
        print(f"{'':<26}  files      MB" + "".join(f"{name:>11}" for name in _STEPS))
        for folder in arguments.folders:
            print(steps(folder.absolute(), arguments.exclude), flush=True)
        return
    print(_HEAD)
    groups = [
        measure(folder.absolute(), arguments.exclude, lists_errors=arguments.errors) for folder in arguments.folders
    ]
    files = [file for group in groups for file in group.files]
    print(Group("all", files).row())
    languages = by(lambda file: file.language, files)
    if arguments.by_language:
        print(f"\n{_HEAD}")
        for group in languages:
            print(group.row())
    if arguments.plot:
        plot(languages, arguments.plot)


if __name__ == "__main__":
    main()
