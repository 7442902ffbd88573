"""Compare indexing and searching with semble, in whole processes.

    python -m benchmarks.peers SEMBLE CORPUS...

Each tool indexes a copy of each corpus with the words of docindex's static model: cold, with nothing changed, after an
edit of one file, and after an edit while `docindex watch` runs. Then it searches. For docindex, "searchable" means that
text and vectors of a cold run are published, "cold" includes the graph, and "first search" is `docindex search QUERY
FOLDER` of a folder that is not indexed yet. The tools alternate, so that both run under the same load. The table shows
medians, with the ratio to semble in parentheses. Kingfisher's rules for secrets, compiled once per machine (4 s of CPU
time), are compiled in advance. semble indexes in the process that searches: its times are those of `semble search`,
docindex's those of `docindex index` or of a search. If `rg` is available, a literal search is timed, too.

SEMBLE is the command in its own environment; README.md explains how to install it.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from docindex_dagster.core.settings import CONFIG_NAME
from docindex_dagster.sources import secrets

_REPETITIONS = 5
_QUESTION = "where is a connection closed after an error"
_WORD = "return"
_WATCHED = "one file, `watch` running"
_CASES = ("searchable", "cold", "first search", "nothing changed", "one file", _WATCHED, "search")
_LIKE_COLD = {"searchable", "first search"}  # compared with the same run of semble
_POLL_S = 0.002
_CACHE = "cache"
_DOCINDEX = (sys.executable, "-m", "docindex_dagster.cli")
_EXPORT = """
import sys, numpy, tokenizers
from model2vec import StaticModel
from tokenizers.models import WordPiece
from tokenizers.normalizers import Lowercase
from tokenizers.pre_tokenizers import BertPreTokenizer
with numpy.load(sys.argv[1], allow_pickle=False) as arrays:
    tokens = arrays["tokens"].tobytes().decode().split("\\n")
    rows = arrays["rows"] * arrays["scales"].astype(numpy.float32)[:, None]
tokens, rows = [*tokens, "[UNK]"], numpy.vstack([rows, numpy.zeros((1, rows.shape[1]), numpy.float32)])
words = tokenizers.Tokenizer(WordPiece({token: at for at, token in enumerate(tokens)}, unk_token="[UNK]"))
words.normalizer, words.pre_tokenizer = Lowercase(), BertPreTokenizer()
StaticModel(rows.astype(numpy.float32), words).save_pretrained(sys.argv[2])
"""


@dataclass(slots=True)
class Race:
    """One corpus, indexed by both tools.

    Attributes:
        semble: its command.
        model: the folder of its model.
        corpus: a copy, which is edited.
        room: a folder for caches and projects.
        seconds: by case and tool.
        edits: number of edited files.
    """

    semble: Path
    model: Path
    corpus: Path
    room: Path
    seconds: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    edits: int = 0

    def repeat(self, number: int) -> None:
        """Run all cases once, with each tool."""
        cache, project = self.room / f"semble-{number}", self.room / f"docindex-{number}"
        project.mkdir()
        (project / CONFIG_NAME).write_text(f'[[source]]\nkind = "library"\npath = "{self.corpus}"\n', "utf-8")
        self._semble("cold", cache)
        self._cold(project)
        # Without the list of projects, the project that has just indexed the folder would answer.
        unlisted = {"XDG_CONFIG_HOME": str(self.room / _CACHE)}
        self._docindex("first search", self.room, "search", _QUESTION, str(self.corpus), "--yes", variables=unlisted)
        for case in ("nothing changed", "one file"):
            if case == "one file":
                self._edit()
            self._semble(case, cache)
            self._docindex(case, project, "index")
        with self._watched(project):
            self._edit()
            self._docindex(_WATCHED, project, "index")
        self._semble(_WATCHED, cache)
        self._semble("search", cache)
        self._docindex("search", project, "search", _QUESTION, "-k", "5")
        self._docindex("literal", project, "search", _WORD, "--mode", "literal", "-k", "5")
        if ripgrep := shutil.which("rg"):
            self._timed("literal", "ripgrep", [ripgrep, "--fixed-strings", "--line-number", _WORD, str(self.corpus)])
        for folder in (cache, project, self.room / _CACHE):
            shutil.rmtree(folder)

    def rows(self) -> Iterator[str]:
        """Return a table row for each tool: medians and their ratio to semble."""
        for tool in dict.fromkeys(name for _, name in self.seconds):
            cells = []
            for case in (*_CASES, "literal"):
                seconds = self.seconds.get((case, tool), [])
                theirs = self.seconds.get(("cold" if case in _LIKE_COLD else case, "semble"), [])
                median = f"{statistics.median(seconds):.2f}" if seconds else "-"
                is_compared = seconds and theirs and tool != "semble"
                ratio = f" ({statistics.median(seconds) / statistics.median(theirs):.2f})" if is_compared else ""
                cells.append(median + ratio)
            yield f"| {self.corpus.name} | {tool} | {' | '.join(cells)} |"

    @contextmanager
    def _watched(self, project: Path) -> Iterator[None]:
        """Run `docindex watch` after a first edit is indexed."""
        subprocess.run([*_DOCINDEX, "index"], cwd=project, check=True, capture_output=True)
        with subprocess.Popen([*_DOCINDEX, "watch"], cwd=project, stdout=subprocess.PIPE, text=True) as process:
            try:
                _read_line(process)  # the first output: the watched folder
                self._edit()
                _read_line(process)  # the second output: the indexed edit
                yield
            finally:
                process.kill()

    def _semble(self, case: str, cache: Path) -> None:
        model = {"SEMBLE_CACHE_LOCATION": str(cache), "SEMBLE_MODEL_NAME": str(self.model), "HF_HUB_OFFLINE": "1"}
        command = [str(self.semble), "search", _QUESTION, str(self.corpus), "--content", "all"]
        self._timed(case, "semble", command, environment=model)

    def _docindex(self, case: str, folder: Path, *arguments: str, variables: Mapping[str, str] | None = None) -> None:
        environment = {"XDG_CACHE_HOME": str(self.room / _CACHE), **(variables or {})}
        self._timed(case, "docindex", [*_DOCINDEX, *arguments], folder=folder, environment=environment)

    def _cold(self, project: Path) -> None:
        """Index; record when the first generation is published and when the run ends."""
        started, current = time.perf_counter(), project / ".docindex" / "stores" / "CURRENT"
        with subprocess.Popen(
            [*_DOCINDEX, "index"], cwd=project, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as run:
            while not current.exists() and run.poll() is None:
                time.sleep(_POLL_S)
            self.seconds["searchable", "docindex"].append(time.perf_counter() - started)
            if run.wait():
                raise SystemExit("docindex index failed")
        self.seconds["cold", "docindex"].append(time.perf_counter() - started)

    def _timed(
        self,
        case: str,
        tool: str,
        command: Sequence[str],
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        started = time.perf_counter()
        done = subprocess.run(
            command,
            cwd=folder or self.room,
            env={**os.environ, **(environment or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        self.seconds[case, tool].append(time.perf_counter() - started)
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")

    def _edit(self) -> None:
        """Append a line to a file in the middle."""
        self.edits += 1
        paths = sorted(path for path in self.corpus.rglob("*") if path.is_file() and path.suffix in _SUFFIXES)
        with paths[len(paths) // 2].open("a", encoding="utf-8") as file:
            file.write(f"\n// zebrafinch{self.edits}\n")


def _read_line(process: "subprocess.Popen[str]") -> None:
    if process.stdout is None or not process.stdout.readline():
        raise SystemExit("docindex watch has ended")


_SUFFIXES = (".py", ".go", ".rs", ".c", ".cc", ".h", ".java", ".ts", ".js", ".rb", ".php", ".cs")


def main() -> None:
    """Print a row for each corpus and tool."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("semble", type=Path)
    parser.add_argument("corpora", type=Path, nargs="+", metavar="CORPUS")
    parser.add_argument("--repetitions", type=int, default=_REPETITIONS)
    arguments = parser.parse_args()
    semble = arguments.semble.absolute()
    os.environ["DOCINDEX_TRUST"] = "1"  # the projects belong to the benchmark
    print(f"| corpus | tool | {' | '.join(_CASES)} | literal search |\n|{'---|' * (len(_CASES) + 3)}", flush=True)
    with tempfile.TemporaryDirectory(prefix="docindex-peers-") as folder:
        os.environ["KF_RULE_CACHE_DIR"] = str(Path(folder, "rules"))
        secrets.load_detector()
        model = _model(semble, Path(folder, "model"))
        for corpus in arguments.corpora:
            room = Path(folder, f"room-{corpus.name}")
            copied = Path(shutil.copytree(corpus, Path(folder, "corpora", corpus.name), symlinks=True))
            room.mkdir()
            race = Race(semble, model, copied, room)
            for number in range(arguments.repetitions):
                race.repeat(number)
            print("\n".join(race.rows()), flush=True)


def _model(semble: Path, folder: Path) -> Path:
    """Convert the static model to the format of semble's library, with the interpreter of semble's environment."""
    from docindex_dagster.embedding import static

    ours = Path(static.__file__).with_name(static.FILE)
    subprocess.run([semble.with_name("python"), "-c", _EXPORT, ours, folder], check=True)
    return folder


if __name__ == "__main__":
    main()
