"""Unchanged files are not opened: each test changes bytes behind an unchanged timestamp to detect reads."""

import os
import time

import pyarrow as pa
import pytest

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources.discovery import discover
from tests.sources.conftest import LONG_AGO_NS, rows

SECOND_NS = 1_000_000_000


def test_an_unchanged_file_is_not_opened(library):
    library.write("a.md", "old text\n")
    before = discover(library.source())
    library.write("a.md", "new text\n")
    assert discover(library.source(), before).equals(before)


@pytest.mark.parametrize("data", [b"a\0b", b"// @generated\n", b"  "])
def test_a_reason_found_in_the_content_is_kept(library, data):
    library.write("a.go", data)
    before = discover(library.source())
    library.write("a.go", b"x" * len(data))
    assert discover(library.source(), before).equals(before)


@pytest.mark.parametrize(("text", "mtime_ns"), [("longer text\n", LONG_AGO_NS), ("new text\n", LONG_AGO_NS + 1)])
def test_another_size_or_time_stamp_is_a_reason_to_look(library, text, mtime_ns):
    library.write("a.md", "old text\n")
    before = discover(library.source())
    library.write("a.md", text, mtime_ns=mtime_ns)
    assert library.discover(before)["a.md"]["content_hash"] == digest(text.encode())


def test_a_file_written_just_before_the_last_walk_is_read_again(library):
    just_now = time.time_ns()
    library.write("a.md", "old text\n", mtime_ns=just_now)
    before = discover(library.source())
    library.write("a.md", "new text\n", mtime_ns=just_now)
    assert library.discover(before)["a.md"]["content_hash"] == digest(b"new text\n")


def test_a_time_stamp_from_the_future_is_never_trusted(library):
    library.write("a.md", "old text\n", mtime_ns=time.time_ns() + 10**12)
    before = discover(library.source())
    library.write("a.md", "new text\n", mtime_ns=rows(before)["a.md"]["mtime_ns"])
    assert library.discover(before)["a.md"]["content_hash"] == digest(b"new text\n")


def test_settings_are_always_asked_again(library):
    library.write("a.py", "x = 1\n")
    library.write("docs/b.md", "text\n")
    before = discover(library.source())
    assert library.discover(before, exclude=("docs/",))["docs/"]["skipped_reason"] == "excluded: docs/"
    assert library.discover(before, max_file_bytes=5)["a.py"]["skipped_reason"].startswith("too-large")
    assert library.discover(before, include_code=False)["a.py"]["skipped_reason"].startswith("code-not-wanted")


@pytest.mark.parametrize(
    "settings", [{"exclude": ("a.py",)}, {"max_file_bytes": 1}, {"include_code": False}, {"include": ("*.md",)}]
)
def test_a_file_that_was_skipped_unread_is_read_when_the_settings_let_it_in(library, settings):
    library.write("a.py", "x = 1\n")
    before = discover(library.source(**settings))
    after = library.discover(before)["a.py"]
    assert (after["skipped_reason"], after["content_hash"]) == (None, digest(b"x = 1\n"))


def test_a_table_of_other_rules_or_without_metadata_is_not_trusted(library):
    library.write("a.md", "old text\n")
    before = discover(library.source())
    library.write("a.md", "new text\n")
    for metadata in (None, {**before.schema.metadata, b"docindex.rules": b"0"}):
        found = library.discover(before.replace_schema_metadata(metadata))
        assert found["a.md"]["content_hash"] == digest(b"new text\n")


def test_removed_files_go_and_new_ones_come(library):
    library.write_all("a.md", "b.md")
    before = discover(library.source())
    (library.root / "a.md").unlink()
    library.write("c.md")
    assert list(library.discover(before)) == ["b.md", "c.md"]


def test_an_incremental_table_equals_a_full_one(library):
    library.write("a.h", "class A;\n")
    library.write("tool", "#!/bin/sh\n")
    library.write("odd\xe9.md", "caf\xe9\n".encode("latin-1"))
    before = discover(library.source())
    library.write("a.h", "class B {};\n", mtime_ns=LONG_AGO_NS + 5)
    after: pa.Table = discover(library.source(), before)
    assert after.equals(discover(library.source()))


def test_a_file_whose_time_stamp_changed_is_looked_at_and_stays_the_same(repository):
    place = repository.write("a.md", "old text\n")
    repository.commit()
    before = discover(repository.source())
    os.utime(place, ns=(LONG_AGO_NS + 7, LONG_AGO_NS + 7))
    after = repository.discover(before)["a.md"]
    assert after == rows(before)["a.md"] | {"mtime_ns": LONG_AGO_NS + 7}


def test_git_is_believed_when_a_change_kept_size_and_time_stamp(repository):
    repository.write("a.md", "old text\n")
    repository.commit()
    before = discover(repository.source())
    time.sleep(1.1)  # git compares the ctime, which cannot be set, in whole seconds
    repository.write("a.md", "new text\n")
    after = repository.discover(before)["a.md"]
    assert (after["content_hash"], after["is_uncommitted"]) == (digest(b"new text\n"), True)


def test_a_change_that_is_taken_back_gives_the_first_hash_again(repository):
    repository.write("a.md", "old text\n")
    repository.commit()
    repository.write("a.md", "new text\n", mtime_ns=LONG_AGO_NS + 5 * SECOND_NS)
    modified = discover(repository.source())
    assert rows(modified)["a.md"]["git_blob"] is None
    repository.write("a.md", "old text\n", mtime_ns=LONG_AGO_NS + 9 * SECOND_NS)
    after = repository.discover(modified)["a.md"]
    assert (after["content_hash"], after["is_uncommitted"]) == (digest(b"old text\n"), False)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
@pytest.mark.parametrize("kind", ["library", "repository"])
def test_a_file_that_may_be_read_no_more_is_noticed_by_nothing_but_its_mode(request, kind):
    place = request.getfixturevalue(kind)
    for name in ("a.md", "b.md"):
        place.write(name)
    if kind == "repository":
        place.commit()
    first = discover(place.source())

    (place.root / "b.md").chmod(0)
    closed = discover(place.source(), first)
    assert rows(closed)["b.md"]["skipped_reason"] == "unreadable: Permission denied"

    (place.root / "b.md").chmod(0o644)
    assert rows(discover(place.source(), closed)) == rows(first)
