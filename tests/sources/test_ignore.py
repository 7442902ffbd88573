import os
import re
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from docindex_dagster.sources.ignore import parse, translate
from docindex_dagster.sources.model import Source
from docindex_dagster.sources.rules import path_rules
from docindex_dagster.sources.walk import walk


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (b"*.md", [b"a.md", b".md"], [b"a/b.md", b"a.mdx"]),
        (b"a?c", [b"abc", b"a\xffc"], [b"a/c", b"ac"]),
        (b"**/b", [b"b", b"a/b", b"a/a/b"], [b"ab", b"b/a"]),
        (b"a/**", [b"a/b", b"a/b/c"], [b"a"]),
        (b"a/**/b", [b"a/b", b"a/x/b", b"a/x/y/b"], [b"a/xb", b"ab"]),
        (b"a**b", [b"ab", b"axxb"], [b"a/b"]),
        (b"[a-c]x", [b"ax", b"cx"], [b"dx", b"-x"]),
        (b"[!a]x", [b"bx"], [b"ax", b"/x"]),
        (b"[]-]", [b"]", b"-"], [b"a"]),
        (b"[[:digit:]x]", [b"7", b"x"], [b":", b"d"]),
        (rb"\*", [b"*"], [b"a"]),
        (rb"[\]]", [b"]"], [b"\\"]),
        (b"a\nb*", [b"a\nb", b"a\nb\n"], [b"a"]),
    ],
)
def test_a_glob_matches_what_it_does_in_git(pattern, matching, other):
    expression = re.compile(translate(pattern), re.DOTALL)
    assert [path for path in [*matching, *other] if expression.match(path)] == matching


@pytest.mark.parametrize("pattern", [b"[a", b"a\\", b"[[:nonsense:]]", b"[a\\"])
def test_a_malformed_glob_matches_nothing(pattern):
    expression = re.compile(translate(pattern), re.DOTALL)
    assert not any(expression.match(path) for path in (b"a", b"z", b"[a", b"a\\", pattern))


def test_many_stars_match_in_reasonable_time():
    started = time.perf_counter()
    assert not re.compile(translate(b"*a" * 40 + b"b"), re.DOTALL).match(b"a" * 4000)
    assert not re.compile(translate(b"**/a/" * 12 + b"b"), re.DOTALL).match(b"a/" * 400)
    assert time.perf_counter() - started < 5


def test_the_last_rule_that_matches_decides():
    rules = parse(b"# comment\n*.log\n\n!keep.log\r\nkeep.log/\n", ".gitignore")
    assert [
        (rule.line, rule.text) if (rule := rules.decide(name, name, is_folder=False)) else None
        for name in (b"a.log", b"keep.log", b"a.md")
    ] == [(2, b"*.log"), (4, b"!keep.log"), None]
    of_folder = rules.decide(b"keep.log", b"keep.log", is_folder=True)
    assert of_folder is not None
    assert of_folder.line == 5


_GLOB_PARTS = ("a", "b", "ab", "*", "**", "?", "[ab]", "[!a]", "[[:alpha:]]", "/", "/", "\\a", " ", "\\ ", ".", "\n")
_NAMES = st.sampled_from(["a", "b", "ab", "a.b", "a b", "x"])
_PATHS = st.lists(_NAMES, min_size=1, max_size=4).map("/".join)
_LINES = st.lists(
    st.tuples(st.sampled_from(["", "", "!", "#"]), st.lists(st.sampled_from(_GLOB_PARTS), max_size=5)).map(
        lambda parts: parts[0] + "".join(parts[1])
    ),
    max_size=5,
).map("\n".join)


@given(paths=st.sets(_PATHS, min_size=1, max_size=12), top=_LINES, inner=_LINES, folder=_PATHS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@example(paths={"a/b/x"}, top="b/\n!a/", inner="", folder="x")
def test_a_library_is_pruned_as_git_would_prune_it(tmp_path_factory, paths, top, inner, folder):
    # Contrary to its documentation, git treats "**" after a literal as a complete path component.
    assume(not re.search(r"[^/\n!]\*\*", top + "\n" + inner))
    root = tmp_path_factory.mktemp("tree")
    for path in sorted(paths):
        _write(root / path)
    _write(root / ".gitignore", top)
    _write(root / folder / ".gitignore", inner)
    subprocess.run(["git", "init", "--quiet", root], check=True)
    listed = subprocess.run(
        ["git", "-C", root, "ls-files", "-z", "--others", "--exclude-standard"], check=True, capture_output=True
    )
    source = Source(key="library/x", kind="library", name="x", path=root)
    kept = {entry.path for entry in walk(path_rules(source)) if entry.reason is None}
    assert kept == set(listed.stdout.split(b"\0")) - {b""}


def _write(path: Path, text: str = "") -> None:
    """Write a file unless a folder occupies its path or a file occupies its parent's."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        assert os.path.lexists(path) or any(parent.is_file() for parent in path.parents)
