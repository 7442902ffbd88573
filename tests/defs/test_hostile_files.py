"""Malformed and malicious files: a run succeeds and accounts for each of them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from docindex_dagster.core import tables
from docindex_dagster.sources.paths import path_to_name
from docindex_dagster.stores.doctor import examine
from tests.defs.conftest import KEY, Project

PROSE = "The quick brown fox jumps over the lazy dog, and nobody minds. "
# Name, content, and the start of the skip reason; None if the file is indexed.
FILES: list[tuple[bytes, bytes, str | None]] = [
    (b"nul.txt", b"some\0bytes\0" * 20, "binary"),
    (b"latin-1.md", "# Café\n\nGarçon, l'addition s'il vous plaît! Déjà vu.\n".encode("latin-1"), None),
    (b"utf-16.txt", PROSE.encode("utf-16"), None),
    (b"utf-16-be.py", b"\xfe\xff" + "x = 1\n".encode("utf-16-be"), None),
    (b"five-megabytes.js", b"x" * 5_000_000, "too-large"),
    (b"long-line.js", b"var a=" + b"1+" * 400_000 + b"1", "minified"),
    (b"long-line.txt", PROSE.encode() * 15_000, None),
    (b"nested.py", b"(" * 10_000 + b")" * 10_000, "minified"),
    (b"nested-lines.py", b"(\n" * 10_000 + b")\n" * 10_000, None),
    (b"nested.json", b"[\n" * 10_000 + b"]\n" * 10_000, None),
    (b"nested.html", b"<div>\n" * 10_000 + PROSE.encode() + b"</div>\n" * 10_000, None),
    (b"nested.md", b">" * 10_000 + PROSE.encode(), None),
    (b"nested.rst", b"".join(b"  " * level + b"* item\n\n" for level in range(400)), None),
    (b"empty.md", b"", "empty"),
    (b"blank.py", b" \n\t\n\r\n", "empty"),
    (b"new\nline.md", PROSE.encode(), None),
    (b"not-utf-8-\xff\xfe.md", PROSE.encode(), None),
    (b"-rf --help.md", PROSE.encode(), None),
    (b'it\'s "quoted".py', b"def quoted() -> None:\n    pass\n", None),
    (b"%41%2e.md", PROSE.encode(), None),
    ("emoji 🙂.md".encode(), PROSE.encode(), None),
    (b"truncated.txt", PROSE.encode() + "é".encode()[:1], None),
    (b"crlf.py", b"def a():\r\n    return 1\r\n\r\n\r\ndef b():\r\n    return 2\r\n", None),
    (b"lone-cr.txt", b"one\rtwo\rthree " + PROSE.encode(), None),
    (b"bom.py", b"\xef\xbb\xbfdef with_bom():\n    return 1\n", None),
    (b"unclosed.md", b"# Title\n\n```python\nnever closed\n", None),
    (b"broken.ipynb", b'{"cells": [{"cell_type": "code", ', None),
    (b"invisible.md", "\u200b\u200c\u200d".encode(), None),
    (b"half-written.py", b"class Half:\n    def method(self, a, b", None),
    (b"directives.rst", b".. include:: /etc/passwd\n\n.. raw:: html\n   :file: /etc/passwd\n\n" + PROSE.encode(), None),
    (b"id_rsa", b"-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n", "secret"),
    (b".env", b"TOKEN=hunter2\n", "secret"),
]


def as_link(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


SPECIAL: list[tuple[str, Callable[[Path], None], str]] = [
    ("link-cycle", as_link("."), "symlink"),
    ("link-to-itself", as_link("link-to-itself"), "symlink"),
    ("link-outside.md", as_link("/etc/hostname"), "symlink"),
    ("broken-link.md", as_link("nowhere"), "symlink"),
    ("pipe.md", os.mkfifo, "special-file"),
]


@pytest.fixture
def hostile(project: Project) -> Project:
    for name, content, _ in FILES:
        (Path(os.fsdecode(os.fsencode(project.notes) + b"/" + name))).write_bytes(content)
    for special, make, _ in SPECIAL:
        make(project.notes / special)
    unreadable = project.notes / "unreadable.md"
    unreadable.write_text(PROSE)
    unreadable.chmod(0)
    return project


def test_every_hostile_file_is_indexed_or_skipped_for_its_reason(hostile):
    assert hostile.index().success

    found = tables.read(hostile.layout.table("discovered_files", KEY))
    reasons = dict(zip(found["path"].to_pylist(), found["skipped_reason"].to_pylist(), strict=True))
    chunked = set(tables.read(hostile.layout.table("chunks", KEY))["path"].to_pylist())
    expected = [(path_to_name(name), reason) for name, _, reason in FILES]
    expected += [(name, reason) for name, _, reason in SPECIAL]
    for name, reason in expected:
        if reason is None:
            assert reasons[name] is None, name
            assert name in chunked
        else:
            assert (reasons[name] or "").startswith(f"{reason}: "), (name, reasons[name])
            assert name not in chunked
    assert list(examine(hostile.layout)) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root can read every file")
def test_a_file_without_permission_is_skipped_and_the_run_goes_on(hostile):
    assert hostile.index().success

    found = tables.read(hostile.layout.table("discovered_files", KEY))
    reasons = dict(zip(found["path"].to_pylist(), found["skipped_reason"].to_pylist(), strict=True))
    assert reasons["unreadable.md"].startswith("unreadable: ")


def test_nothing_outside_the_source_and_no_secret_reaches_the_index(hostile):
    hostile.index()

    texts = "\n".join(tables.read(hostile.layout.table("chunks", KEY))["text"].to_pylist())
    assert "root:x:0:0" not in texts
    assert Path("/etc/hostname").read_text().strip() not in texts.split()
    assert "hunter2" not in texts


def test_a_five_megabyte_line_can_be_indexed_where_the_settings_allow_it(project):
    config = project.root / "docindex.toml"
    config.write_text(config.read_text() + "\n[discovery]\nmax_file_bytes = 10000000\n")
    (project.notes / "huge.txt").write_text(PROSE * (5_000_000 // len(PROSE)))

    assert project.index().success

    chunks = tables.read(project.layout.table("chunks", KEY))
    assert max(chunks["token_count"].to_pylist()) <= 2048
    assert "huge.txt" in chunks["path"].to_pylist()


def test_indexing_hostile_files_again_changes_nothing(hostile):
    hostile.index()
    before = hostile.layout.current.read_bytes()

    assert hostile.index().success
    assert hostile.layout.current.read_bytes() == before
