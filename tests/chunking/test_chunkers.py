"""Chunkers: selection per file, chunkers from other packages, and the chunker for messages."""

import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.chunking.chunker import ChunkOptions, FileDrafts, Sizes, SourceFile, cut_at
from docindex_dagster.chunking.chunkers import load_choice, load_chunker
from docindex_dagster.chunking.documents import chunk_messages
from docindex_dagster.chunking.worker import check_drafts
from docindex_dagster.core import tables
from docindex_dagster.core.errors import ChunkerError, SettingsError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import check_settings
from docindex_dagster.core.tokenizer import count_tokens
from tests.examples import docindex, install

OPTIONS = ChunkOptions(Sizes(), code_chars=1500)
MINUTES = "Ada opened the meeting. Everybody had read the paper. " * 40 + "\n\nNobody objected!\n"


# Selection.


def test_the_last_glob_that_matches_decides():
    choice = load_choice({"*.txt": "rst", "notes/**": "messages", "/notes/plan.txt": "text"})

    assert choice.name_for("a/b.txt", "text") == "rst"
    assert choice.name_for("notes/a/b.txt", "text") == "messages"
    assert choice.name_for("notes/plan.txt", "text") == "text"
    assert choice.name_for("a.md", "markdown") == "markdown"


def test_a_path_with_bytes_that_are_no_text_is_matched_as_it_is_on_the_disk():
    assert load_choice({"caf?.txt": "rst"}).name_for("caf%E9.txt", "text") == "rst"


def test_a_chunker_that_is_not_there_is_reported_with_those_that_are():
    with pytest.raises(
        ChunkerError, match=r"chunker 'grekin' not found.*docindex\.chunkers; available: .*code.*messages"
    ):
        load_choice({"*.feature": "grekin"})


@pytest.mark.parametrize("glob", ["", " ", "!*.md", "# all", "docs/", "a\nb"])
def test_what_is_no_glob_for_files_is_refused(glob, tmp_path):
    with pytest.raises(SettingsError, match="must be a file glob"):
        check_settings(tmp_path, {"chunking": {"chunkers": {glob: "rst"}}})


def test_every_loader_of_discovery_has_a_chunker():
    for name in ("code", "markdown", "mdx", "rst", "html", "asciidoc", "notebook", "text", "lines", "messages"):
        assert load_chunker(name)(SourceFile("a", "Some words.\n"), OPTIONS).drafts[0].text.strip() == "Some words."


# Splitting at positions.


@given(st.text(alphabet="ab \n\u00e9"), st.lists(st.integers(-2, 30)))
def test_what_is_cut_at_places_is_whole(text, offsets):
    drafts = cut_at(text, offsets)

    assert "".join(draft.text for draft in drafts) == (text if text.strip() else "")
    if drafts:
        check_drafts(FileDrafts(drafts), text)


# Messages.


def test_messages_end_with_a_sentence_and_repeat_the_last_ones():
    found = chunk_messages(SourceFile("minutes.txt", MINUTES), OPTIONS).drafts

    assert len(found) > 1
    assert all(draft.chunk_type == "message" and re.search(r"[.!]\s*$", draft.text) for draft in found)
    assert max(count_tokens([draft.text for draft in found])) <= 256
    for before, after in pairwise(found):
        shared = MINUTES.encode()[after.start_byte : before.end_byte].decode()
        assert "Everybody had read the paper." in shared
        assert 0 < count_tokens([shared])[0] <= 32


@given(st.text(alphabet="ab.! \n\u00e9", max_size=3000))
def test_messages_lose_nothing(text):
    drafts = chunk_messages(SourceFile("a.txt", text), OPTIONS).drafts

    end: int | None = 0
    for draft in drafts:
        assert draft.start_byte <= end < draft.end_byte
        end = draft.end_byte
    assert end == (len(text.encode()) if text.strip() else 0)


# Chunks from other packages.

TEXT = "Feature: Cash\n\nScenario: Withdraw\n  Given an account\n"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"text": " \n"}, "has no text"),
        ({"start_line": 0}, "has lines 0 to"),
        ({"end_line": 99}, "has lines 1 to 99 of 5"),
        ({"text": "invented"}, "does not match bytes"),
        ({"end_byte": None}, "has only one of start_byte and end_byte"),
        ({"parent_index": 0}, "continues draft 0, which is not before it"),
    ],
)
def test_drafts_that_do_not_fit_the_file_are_refused(changes, problem):
    draft = replace(cut_at(TEXT, [])[0], **changes)

    with pytest.raises(ChunkerError, match=problem):
        check_drafts(FileDrafts((draft,)), TEXT)


def test_no_draft_of_a_file_with_text_is_refused():
    with pytest.raises(ChunkerError, match="no draft"):
        check_drafts(FileDrafts(()), TEXT)


# The example from the documentation, installed and used.

FEATURE = """\
Feature: Cash machine
  So that people get money at night.

  Scenario: Enough in the account
    Given an account with 100 crowns
    When its owner asks for 20
    Then the machine gives 20

  @slow
  Scenario: An empty machine
    Given no money in the machine
    When somebody asks for 20
    Then the machine says why it gives nothing
"""
BROKEN = "def fails(file, options):\n    raise KeyError(file.path)\n\n\ndef lies(file, options):\n    return None\n"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example, with two chunkers that fail."""
    folder = tmp_path_factory.mktemp("docindex-gherkin")
    return install(folder, "how-to/write-a-chunker.md", broken=("fails", "lies"), code=BROKEN)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, site: Path) -> Path:
    """Index a project whose settings use the chunkers."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "bank").mkdir()
    (folder / "bank" / "cash.feature").write_text(FEATURE)
    (folder / "bank" / "broken.one").write_text("First words.\n")
    (folder / "bank" / "broken.two").write_text("Second words.\n")
    (folder / "docindex.toml").write_text(
        '[[source]]\nkind = "library"\npath = "bank"\n\n[chunking.chunkers]\n'
        '"*.feature" = "gherkin"\n"*.one" = "fails"\n"*.two" = "lies"\n'
    )
    assert docindex(folder, site, "index").returncode == 0
    return folder


def chunks_of(project: Path, name: str) -> list[dict[str, Any]]:
    table = tables.read(Layout(project / ".docindex").table("chunks", "library/bank"))
    assert table is not None
    return [row for row in table.to_pylist() if row["path"] == name]


def test_the_example_of_the_documentation_cuts_a_feature_by_its_scenarios(project):
    found = chunks_of(project, "cash.feature")

    assert "".join(row["text"] for row in found) == FEATURE
    assert [(row["start_line"], row["heading_path"]) for row in found] == [
        (1, ["Cash machine"]),
        (4, ["Cash machine", "Enough in the account"]),
        (9, ["Cash machine", "An empty machine"]),
    ]
    assert not any(row["fallback"] for row in found)


def test_a_chunker_that_fails_costs_its_file_the_structure_and_says_so(project):
    (broken,) = chunks_of(project, "broken.one")
    (wrong,) = chunks_of(project, "broken.two")

    assert broken["text"] == "First words.\n"
    assert broken["fallback"] == "KeyError: 'broken.one'"
    assert wrong["text"] == "Second words.\n"
    assert wrong["fallback"].startswith("AttributeError")


def test_why_tells_which_chunker_cuts_a_file(project, site):
    result = docindex(project, site, "why", "bank/cash.feature")

    assert "chunked by gherkin (chunking.chunkers)" in " ".join(result.stdout.split())


def test_a_chunker_whose_package_is_gone_stops_the_run_and_says_what_there_is(project, tmp_path):
    result = docindex(project, tmp_path, "index")

    assert result.returncode != 0
    assert "chunker 'gherkin' not found" in " ".join(result.stderr.split())
