"""Compare ignore rules with those of git and pathspec.

    python -m benchmarks.ignore_rules [--files 1500]

Random ignore files and paths are checked with `git check-ignore`, `docindex_dagster.sources.ignore` and pathspec. The
benchmark also measures fifty thousand paths, and a pattern that makes a regular expression backtrack.
"""

import argparse
import random
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

from pathspec import GitIgnoreSpec

from docindex_dagster.sources.ignore import RuleSet, parse

_PARTS = (
    "a",
    "b",
    "ab",
    "*",
    "**",
    "?",
    "[ab]",
    "[!a]",
    "[a-",
    "\\*",
    "\\#",
    "!",
    "\\",
    "/",
    "a/",
    "**/",
    "/**",
    "é",
    "[[:alpha:]]",
    "[]a]",
    "[^b]",
    "a*b",
    "a**b",
    " ",
    "\\ ",
)
_NAMES = ("a", "b", "ab", "aab", "é", "a*b", "#", "!", "[a-", "axb", "]", "\\\\", " ")
_USUAL = (
    "*.pyc",
    "__pycache__/",
    "/build/",
    "node_modules/",
    "*.log",
    "docs/_build/",
    "!keep.log",
    "dist",
    "**/target/**",
)
_PATHS = 50_000
_EVIL = "a*" * 20 + "b"


def ignored_by_git(repository: Path, lines: Sequence[str], paths: Sequence[str]) -> set[str]:
    (repository / ".gitignore").write_text("\n".join(lines) + "\n", encoding="utf-8")
    asked = ["git", "-C", str(repository), "check-ignore", "--no-index", "-z", "--stdin"]
    ignored = subprocess.run(asked, input="\0".join(paths).encode() + b"\0", capture_output=True, check=False).stdout
    return set(ignored.decode().split("\0")) - {""}


def ignored_by_us(rules: RuleSet, path: str) -> bool:
    """Check parents first, as the walk does."""
    parts = path.split("/")
    for depth, name in enumerate(parts, start=1):
        rule = rules.decide("/".join(parts[:depth]).encode(), name.encode(), is_folder=depth < len(parts))
        if rule is not None and not rule.is_negated:
            return True
    return False


def cpu_s(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def compare(files: int) -> None:
    chance = random.Random(7)
    decisions = ours_differ = theirs_differ = refused = 0
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["git", "init", "-q", folder], check=True)
        for _ in range(files):
            lines = ["".join(chance.choices(_PARTS, k=chance.randint(1, 4))) for _ in range(chance.randint(1, 3))]
            paths = sorted({"/".join(chance.choices(_NAMES, k=chance.randint(1, 3))) for _ in range(12)})
            expected = ignored_by_git(Path(folder), lines, paths)
            rules = parse("\n".join(lines).encode(), "")
            decisions += len(paths)
            ours_differ += sum(ignored_by_us(rules, path) != (path in expected) for path in paths)
            try:
                spec = GitIgnoreSpec.from_lines(lines)
            except Exception:  # noqa: BLE001 it raises several kinds
                refused += 1
            else:
                theirs_differ += sum(spec.match_file(path) != (path in expected) for path in paths)
    print(f"{decisions:,} decisions over {files:,} ignore files, unlike git: docindex {ours_differ}, ", end="")
    print(f"pathspec {theirs_differ}, and {refused} files that it rejects")


def measure() -> None:
    paths = [f"src/package{number % 50}/module{number}/file{number}.py" for number in range(_PATHS)]
    rules, spec = parse("\n".join(_USUAL).encode(), ""), GitIgnoreSpec.from_lines(_USUAL)
    pairs = [(path.encode(), path.rsplit("/", 1)[1].encode()) for path in paths]
    ours = cpu_s(lambda: [rules.decide(path, name, is_folder=False) for path, name in pairs])
    theirs = cpu_s(lambda: [spec.match_file(path) for path in paths])
    print(f"{_PATHS:,} paths, CPU time: docindex {ours:.2f} s, pathspec {theirs:.2f} s")
    evil = cpu_s(lambda: parse(_EVIL.encode(), "").decide(b"a" * 40, b"a" * 40, is_folder=False))
    print(f"{_EVIL} against forty a: docindex {evil * 1e3:.1f} ms, ", end="", flush=True)
    code = f"from pathspec import GitIgnoreSpec; GitIgnoreSpec.from_lines([{_EVIL!r}]).match_file('a' * 40)"
    try:
        subprocess.run([sys.executable, "-c", code], check=True, timeout=20)
        print("pathspec ends")
    except subprocess.TimeoutExpired:
        print("pathspec over 20 s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=1500)
    warnings.simplefilter("ignore", FutureWarning)  # from pathspec, for ranges in brackets
    compare(parser.parse_args().files)
    measure()


if __name__ == "__main__":
    main()
