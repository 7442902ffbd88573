"""The history of a repository as a table."""

import subprocess
import sys
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.schemas import COMMITS
from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.history import read_statistics
from tests.sources.conftest import LONG_AGO_NS, Tree

KEY = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n"
CODE = "class Pump:\n    def prime(self):\n        return 1\n\n    def stop(self):\n        return 2\n"

_EDITS = count(1)


def head(tree: Tree) -> str:
    return tree.git("rev-parse", "HEAD")


def read(tree: Tree, previous: pa.Table | None = None, limit: int = 500) -> pa.Table:
    return read_commits(tree.source(), head(tree), previous, limit)


def first(tree: Tree) -> dict[str, Any]:
    """Return the newest commit."""
    row: dict[str, Any] = read(tree, limit=1).to_pylist()[0]
    return row


def edit(tree: Tree, path: str, text: str | bytes, message: str = "edit") -> str:
    write(tree, path, text)
    return tree.commit(message)


def write(tree: Tree, path: str, text: str | bytes) -> None:
    tree.write(path, text, mtime_ns=LONG_AGO_NS + next(_EDITS) * 2_000_000_000)


def plumb(tree: Tree, message: bytes, *, author: bytes = b"Ada <a@b>", date: bytes = b"1700000000 +0000") -> str:
    """Write a commit that no porcelain command would, on top of HEAD or without a parent."""
    parent = tree.git("rev-list", "--max-count=1", "--all")
    lines = [b"tree " + tree.git("write-tree").encode(), *([b"parent " + parent.encode()] if parent else [])]
    lines += [b"author " + author + b" " + date, b"committer " + author + b" " + date, b"", message]
    made = subprocess.run(
        ["git", "-C", tree.root, "hash-object", "-t", "commit", "-w", "--stdin", "--literally"],
        input=b"\n".join(lines),
        check=True,
        capture_output=True,
    ).stdout.decode()
    tree.git("update-ref", "HEAD", made.strip())
    return made.strip()


def test_a_commit_says_who_changed_what_and_where(repository):
    edit(repository, "pump.py", CODE)
    repository.write("old.md", "one\ntwo\n")
    repository.write("logo.bin", b"\0\1\2")
    repository.commit("second")
    write(repository, "pump.py", CODE.replace("return 2", "return 3\n        # done"))
    repository.git("mv", "old.md", "new.md")
    write(repository, "logo.bin", b"\0\1\3")
    commit = repository.commit("Stop the pump\nat once\n\nIt ran dry.")

    row = first(repository)

    assert row["commit"] == commit
    assert row["parents"] == [repository.git("rev-parse", "HEAD~")]
    assert (row["author"], row["author_email"]) == ("Ada", "ada@example.org")
    assert row["authored_at"].timestamp() == int(repository.git("log", "-1", "--format=%at"))
    assert row["subject"] == "Stop the pump at once"
    assert row["message"] == "Stop the pump\nat once\n\nIt ran dry."
    assert [(file["status"], file["path"], file["renamed_from"]) for file in row["files"]] == [
        ("M", "logo.bin", None),
        ("R", "new.md", "old.md"),
        ("M", "pump.py", None),
    ]
    assert [(file["insertions"], file["deletions"]) for file in row["files"]] == [(None, None), (0, 0), (2, 1)]
    assert row["files"][2]["functions"] == ["def stop(self):"]
    assert (row["file_count"], row["insertions"], row["deletions"]) == (3, 2, 1)


def test_commits_come_newest_first_and_no_more_than_wanted(repository):
    ids = [edit(repository, "a.md", f"{number}\n") for number in range(4)]

    assert read(repository)["commit"].to_pylist() == ids[::-1]
    assert read(repository, limit=2)["commit"].to_pylist() == [ids[3], ids[2]]
    assert read(repository, limit=0).num_rows == 0


def test_a_merge_has_no_files_and_both_parents(repository):
    edit(repository, "a.md", "1\n")
    repository.git("checkout", "--quiet", "-b", "side")
    side = edit(repository, "b.md", "1\n")
    repository.git("checkout", "--quiet", "main")
    main = edit(repository, "c.md", "1\n")
    repository.git("merge", "--quiet", "--no-edit", "side")

    merge = first(repository)

    assert merge["parents"] == [main, side]
    assert (merge["files"], merge["file_count"], merge["insertions"]) == ([], 0, None)


def test_a_library_and_a_repository_without_commits_have_no_history(repository, library):
    for source in (repository.source(), library.source()):
        assert read_commits(source, None, None, 500).num_rows == 0
    assert read_statistics(repository.source(), None).commits == 0


def amend(tree: Tree) -> None:
    tree.git("commit", "--quiet", "--amend", "--message", "reworded")


def reset(tree: Tree) -> None:
    tree.git("reset", "--quiet", "--hard", "HEAD~2")


def rebase(tree: Tree) -> None:
    tree.git("checkout", "--quiet", "-b", "side", "HEAD~2")
    edit(tree, "side.md", "1\n")
    tree.git("rebase", "--quiet", "main")


def switch(tree: Tree) -> None:
    tree.git("checkout", "--quiet", "-b", "other", "HEAD~1")
    edit(tree, "other.md", "1\n")


def grow(tree: Tree) -> None:
    for number in range(3):
        edit(tree, f"new{number}.py", CODE)


@pytest.mark.parametrize("change", [amend, reset, rebase, switch, grow])
@pytest.mark.parametrize("limit", [500, 3])
def test_reading_what_is_new_gives_what_reading_everything_gives(repository, tmp_path, change, limit):
    for number in range(5):
        edit(repository, "a.py", CODE + f"# {number}\n")
    before = read(repository, limit=limit)
    figures = read_statistics(repository.source(), head(repository))
    file = tmp_path / "commits.parquet"
    tables.write(file, before)

    change(repository)

    incremental, full = read(repository, tables.read(file), limit), read(repository, limit=limit)
    assert incremental.equals(full)
    assert incremental.schema.metadata == full.schema.metadata
    source = repository.source()
    assert read_statistics(source, head(repository), figures) == read_statistics(source, head(repository))


def test_only_new_commits_are_read(repository):
    edit(repository, "a.md", "1\n")
    before = read(repository)
    marked = before.set_column(9, COMMITS.field("message"), pa.array(["as it was read before"]))
    edit(repository, "a.md", "2\n", "new")

    messages = read(repository, marked)["message"].to_pylist()

    assert messages == ["new", "as it was read before"]


def test_a_table_of_another_version_is_not_reused(repository):
    edit(repository, "a.md", "1\n")
    full = read(repository)

    assert read(repository, full.drop_columns(["files"])).equals(full)
    assert read(repository, full.replace_schema_metadata(None)).equals(full)


def test_where_a_shallow_clone_ends_nothing_seems_to_be_added(repository, tmp_path):
    for number in range(3):
        edit(repository, f"{number}.md", "1\n")
    clone = Tree(tmp_path / "clone", "git")
    url = f"file://{repository.root}"
    subprocess.run(["git", "clone", "--quiet", "--depth=2", url, clone.root], check=True, capture_output=True)

    rows = read(clone).to_pylist()

    assert [row["file_count"] for row in rows] == [1, 0]
    figures = read_statistics(clone.source(), head(clone))
    assert (figures.commits, figures.is_shallow) == (2, True)
    clone.git("fetch", "--quiet", "--unshallow")
    assert read_statistics(clone.source(), head(clone), figures).commits == 3


def test_the_figures_of_a_repository(repository):
    edit(repository, "a.md", "1\n", "one")
    repository.git("tag", "v1")
    repository.git("branch", "side")
    repository.git("update-ref", "refs/remotes/origin/side", "HEAD")
    repository.git("update-ref", "refs/remotes/origin/far/away", "HEAD")
    repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/side")
    latest = edit(repository, "a.md", "2\n", "two")

    figures = read_statistics(repository.source(), latest)

    assert (figures.commits, figures.branches, figures.tags, figures.is_shallow) == (2, 3, 1, False)
    assert (figures.latest_commit, figures.latest_subject) == (latest, "two")
    assert figures.latest_date is not None
    assert figures.latest_date.endswith("+00:00")


def test_a_missing_file_costs_one_commit_its_lines(repository):
    edit(repository, "a.py", "1\n", "whole")
    edit(repository, "b.py", "lost\n", "broken")
    lost = repository.git("rev-parse", "HEAD:b.py")
    edit(repository, "c.py", "1\n", "whole again")
    place = repository.root / ".git" / "objects" / lost[:2] / lost[2:]
    place.unlink()
    (repository.root / "b.py").unlink()

    rows = {row["subject"]: row for row in read(repository).to_pylist()}

    assert {subject: row["insertions"] for subject, row in rows.items()} == {
        "whole": 1,
        "broken": None,
        "whole again": 1,
    }
    assert [file["path"] for file in rows["broken"]["files"]] == ["b.py"]


def test_a_clone_without_file_contents_has_messages_and_names_and_fetches_nothing(repository, tmp_path):
    for number in range(30):
        edit(repository, "a.py", f"{number}\n", f"edit {number}")
    repository.git("config", "uploadpack.allowFilter", "true")
    clone = Tree(tmp_path / "clone", "git")
    url = f"file://{repository.root}"
    command = ["git", "clone", "--quiet", "--no-checkout", "--filter=blob:none", url, str(clone.root)]
    subprocess.run(command, check=True, capture_output=True)
    objects = clone.git("count-objects", "-v")

    rows = read(clone).to_pylist()

    assert [row["subject"] for row in rows] == [f"edit {number}" for number in reversed(range(30))]
    assert {row["insertions"] for row in rows} == {None}
    assert {file["path"] for row in rows for file in row["files"]} == {"a.py"}
    assert clone.git("count-objects", "-v") == objects


@pytest.mark.parametrize("path", [".env", "deploy.pem", "credentials.json", "notes.txt", "values.yaml", "key_of_ours"])
def test_nothing_of_a_file_that_may_hold_a_secret_is_recorded_but_its_name(repository, path):
    edit(repository, path, KEY + "TOKEN=hunter2\n" + "x\n" * 9)
    edit(repository, path, KEY + "TOKEN=hunter2\n" + "x\n" * 9 + "y\n")

    row = first(repository)

    assert [file["path"] for file in row["files"]] == [path]
    assert row["insertions"] == 1
    assert not any(word in repr(row) for word in ("MII", "hunter2", "TOKEN", "BEGIN"))


@pytest.mark.parametrize(
    ("message", "subject"),
    [
        (b"", ""),
        (b"\n\n  \n", ""),
        (b"caf\xe9 au lait, d\xe9j\xe0 vu, \xe9t\xe9", "café au lait, déjà vu, été"),
        ("caf\u00e9".encode(), "café"),
        (b"a\x1b[31mred\x07\x7f", "a[31mred"),
        (b"/" + b"a" * 40, "/" + "a" * 40),
        (b":100644 100644 aa bb M", ":100644 100644 aa bb M"),
        (b"nul\0after", "nul"),
        (b"x" * 5000, "x" * 200),
    ],
)
def test_any_message_becomes_text(repository, message, subject):
    edit(repository, "a.md", "1\n")
    plumb(repository, message)

    assert first(repository)["subject"] == subject
    assert read(repository).num_rows == 2


def test_a_message_in_an_encoding_of_its_own_is_read_in_it(repository):
    repository.write("a.md")
    repository.git("add", ".")
    file = repository.root.parent / "message"
    file.write_bytes("Größe für Übung".encode("latin-1"))
    repository.git("-c", "i18n.commitEncoding=ISO-8859-1", "commit", "--quiet", "--file", str(file))

    assert first(repository)["subject"] == "Größe für Übung"


def test_a_message_of_ten_megabytes_is_cut(repository):
    edit(repository, "a.md", "1\n")
    plumb(repository, b"subject\n\n" + b"long line of words\n" * 550_000)

    row = first(repository)

    assert row["subject"] == "subject"
    assert 10_000 < len(row["message"]) <= 20_000


@pytest.mark.parametrize("date", [b"99999999999999999999 +0000", b"-5 +0000", b"yesterday", b"253402300800 +0000"])
def test_what_is_no_date_is_none(repository, tmp_path, date):
    edit(repository, "a.md", "1\n")
    plumb(repository, b"when?", date=date)

    table = read(repository)

    assert table.num_rows == 2
    assert table["authored_at"][0].as_py() is None or table["authored_at"][0].as_py().year <= 9999
    assert read_statistics(repository.source(), head(repository)).commits == 2


def test_odd_names_of_files_and_authors_are_text(repository):
    edit(repository, "a.md", "1\n")
    repository.write(b"caf\xe9.md")
    repository.write("two\nlines.md")
    repository.write("/".join(["deep"] * 20) + "/x.md")
    repository.git("add", ".")
    plumb(repository, b"odd", author=b"Andr\xe9 \x1b <no-one@nowhere>")

    row = first(repository)

    assert {file["path"] for file in row["files"]} >= {"caf%E9.md", "two\nlines.md"}
    assert row["insertions"] == 3
    assert row["author"].startswith("Andr")
    assert "\x1b" not in row["author"]


def test_ten_thousand_files_are_counted_and_the_first_are_named(repository):
    blob = repository.git("hash-object", "-w", "--stdin", "--path=x")
    index = "".join(f"100644 {blob}\tfile{number:05}.md\n" for number in range(10_000))
    subprocess.run(["git", "-C", repository.root, "update-index", "--index-info"], input=index.encode(), check=True)
    plumb(repository, b"vendor")

    row = first(repository)

    assert (row["file_count"], len(row["files"])) == (10_000, 100)
    assert (row["insertions"], row["deletions"]) == (None, None)


def test_a_file_that_becomes_a_link_does_not_shift_the_lines_of_the_next(repository):
    repository.write("a.py", "1\n")
    edit(repository, "b.py", "1\n")
    (repository.root / "a.py").unlink()
    (repository.root / "a.py").symlink_to("b.py")
    edit(repository, "b.py", "1\n2\n3\n")

    files = {file["path"]: file for file in first(repository)["files"]}

    assert files["a.py"]["status"] == "T"
    assert (files["b.py"]["insertions"], files["b.py"]["deletions"]) == (2, 0)


def test_settings_of_the_repository_neither_run_programs_nor_change_what_is_read(repository, tmp_path):
    edit(repository, "a.py", CODE)
    edit(repository, "a.py", CODE.replace("return 2", "return 3"))
    plain = read(repository)
    trap = tmp_path / "trap"
    repository.write(".gitattributes", "*.py diff=trap\n")
    for name, value in {
        "diff.external": f"touch {trap}",
        "diff.trap.command": f"touch {trap}",
        "diff.trap.textconv": f"touch {trap}; cat",
        "diff.orderFile": "nowhere",
        "diff.noprefix": "true",
        "diff.relative": "true",
        "diff.algorithm": "patience",
        "diff.context": "9",
        "log.showRoot": "false",
        "log.showSignature": "true",
        "gpg.program": f"touch {trap}",
        "core.pager": f"touch {trap}",
        "color.ui": "always",
        "format.pretty": "oneline",
        "core.quotePath": "true",
        "i18n.logOutputEncoding": "UTF-16",
    }.items():
        repository.git("config", name, value)

    assert read(repository)["file_count"].to_pylist() == plain["file_count"].to_pylist()
    assert read(repository)["insertions"].to_pylist() == plain["insertions"].to_pylist()
    assert read(repository)["message"].to_pylist() == plain["message"].to_pylist()
    assert not trap.exists()


def test_a_large_change_is_read_without_being_held(repository):
    lines = "".join(f"some words of line {number}\n" for number in range(20_000))
    for number in range(60):
        repository.write(f"vendor/part{number}.txt", lines)
    repository.write("vendor/huge.txt", lines * 10)
    repository.commit("vendor everything")
    code = (
        "import resource, sys; from pathlib import Path; from docindex_dagster.sources.model import Source;"
        "from docindex_dagster.sources.commits import read_commits;"
        "read = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; before = read();"
        "source = Source('git/x', 'git', 'x', Path(sys.argv[1]));"
        "row, = read_commits(source, sys.argv[2], None, 9).to_pylist();"
        "print(row['insertions'], read() - before)"
    )
    command = [sys.executable, "-c", code, repository.root, head(repository)]
    insertions, kibibytes = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    assert int(insertions) == 60 * 20_000
    assert int(kibibytes) < 20_000  # the patch has 35 MB
