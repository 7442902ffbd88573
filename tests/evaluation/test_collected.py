"""Collected questions: lines that an evaluation can read, without duplicates, even with concurrent writers."""

import json
import multiprocessing
import stat
from pathlib import Path

import pytest

from docindex_dagster.core.errors import QueryError, QuestionError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import Settings, load_settings
from docindex_dagster.evaluation.collected_questions import MOST_BYTES, collect, delete_answer, noted_places
from docindex_dagster.evaluation.question_file import read_questions
from docindex_dagster.evaluation.questions import IndexedFile, Target

KEYS = Target("git/app", "src/keys.py", (10, 20))
GUIDE = Target("git/app", "guide.md")
TOKEN = "ghp_" + "Zq3x8Kd0vN4mYt7Rb1Lw9Gs6Hc2Jf5Pa0UeE"
WRITERS, EACH = 3, 15


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    (tmp_path / "docindex.toml").touch()
    return load_settings(tmp_path)


@pytest.fixture
def file(settings: Settings) -> Path:
    return Layout(settings.home).questions


def records(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_a_question_is_a_line_with_what_answers_it_and_who_noted_it(settings, file):
    noted = collect(settings, "how are \n sessions  signed", KEYS, "page")

    assert (noted.question, noted.is_noted, noted.is_new) == ("how are sessions signed", True, True)
    assert records(file) == [
        {
            "question": "how are sessions signed",
            "path": "src/keys.py:10-20",
            "source": "git/app",
            "origin": "page",
        }
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_group_reads_it_where_it_reads_the_index(settings, file):
    grouped = settings.model_copy(update={"access": settings.access.model_copy(update={"group": True})})

    collect(grouped, "how", KEYS, "cli")

    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_an_evaluation_reads_it_with_its_origins(settings, file, warn):
    collect(settings, "how are sessions signed", KEYS, "page")
    collect(settings, "how are sessions signed", GUIDE, "mcp")
    collect(settings, "what is «häßlich» \u200d\U0001f469", GUIDE, "api")
    files = {"git/app": {path: IndexedFile("code", "python") for path in ("src/keys.py", "guide.md")}}

    signed, ugly = read_questions(settings, file, files, warn)

    assert (signed.targets, signed.origins) == ((KEYS, GUIDE), ("page", "mcp"))
    assert (ugly.text, ugly.origins) == ("what is «häßlich» \u200d\U0001f469", ("api",))


def test_the_same_pair_counts_once_whoever_notes_it(settings, file):
    collect(settings, "how", KEYS, "cli")
    again = collect(settings, " how ", KEYS, "mcp")
    other = collect(settings, "how", Target("git/app", "src/keys.py", (11, 20)), "mcp")

    assert (again.is_noted, again.is_new, other.is_new) == (True, False, True)
    assert [record["origin"] for record in records(file)] == ["cli", "mcp"]


def test_it_can_be_taken_back_and_all_else_stays_byte_for_byte(settings, file):
    collect(settings, "how", KEYS, "page")
    mine = b'{"path": ["a.md"], "question": "how"}\r\n\nno JSON "how"\n[["how"]]\n'
    with file.open("ab") as opened:
        opened.write(mine)
    collect(settings, "how", GUIDE, "page")
    assert noted_places(settings, "how") == {("git/app", "src/keys.py:10-20"), ("git/app", "guide.md")}

    first, again = delete_answer(settings, "how ", KEYS), delete_answer(settings, "how", KEYS)
    delete_answer(settings, "how", GUIDE)

    assert (first.is_noted, first.is_new, again.is_new) == (False, True, False)
    assert file.read_bytes() == mine
    assert noted_places(settings, "how") == frozenset()


def test_what_was_never_noted_is_taken_back_without_a_file(settings, file):
    assert not delete_answer(settings, "how", KEYS).is_new
    assert not file.exists()
    assert noted_places(settings, "how") == frozenset()


def test_a_last_line_without_an_end_is_not_torn(settings, file):
    Layout(settings.home).prepare()
    file.write_text('{"question": "mine", "path": "a.md"}')

    collect(settings, "how", KEYS, "cli")

    assert [record["question"] for record in records(file)] == ["mine", "how"]


@pytest.mark.parametrize(
    ("question", "target", "message"),
    [
        ("  ", KEYS, "the question is empty"),
        ("???", KEYS, "the question is empty"),
        ("how " * 501, KEYS, "more than 2,000 characters"),
        ("how", Target("git/app", "a\nb.py", (1, 2)), "invalid path"),
        ("how", Target("git/app", " a.py", (1, 2)), "cannot be written"),
        ("how", Target("git/app", "a:7"), "cannot be written"),
        ("how", Target("git/app", "a.py", (9, 3)), "invalid lines 9-3"),
    ],
)
def test_what_would_break_the_file_is_not_noted(settings, file, question, target, message):
    with pytest.raises(QuestionError, match=message):
        collect(settings, question, target, "api")

    assert not file.exists()


def test_a_question_that_holds_a_secret_is_not_noted_nor_is_the_secret_repeated(settings, file):
    with pytest.raises(QueryError, match="contains a secret") as error:
        collect(settings, f"who uses {TOKEN}", KEYS, "api")

    assert TOKEN not in str(error.value)
    assert not file.exists()


def test_a_full_file_takes_no_more_and_says_what_to_do(settings, file):
    Layout(settings.home).prepare()
    file.write_bytes(b"\n" * (MOST_BYTES - 10))

    with pytest.raises(QueryError, match=r"questions\.jsonl is full: move"):
        collect(settings, "how", KEYS, "api")

    assert file.stat().st_size == MOST_BYTES - 10


def _write(root: Path, writer: int) -> None:
    settings = load_settings(root)
    for number in range(EACH):
        collect(settings, f"what {number}", KEYS, "api")  # the same question from every writer
        collect(settings, f"what {number} of {writer}", KEYS, "mcp")
        collect(settings, f"not {number} of {writer}", KEYS, "page")
        delete_answer(settings, f"not {number} of {writer}", KEYS)


def test_of_many_that_write_and_take_back_nothing_is_lost_torn_or_twice_there(settings, file):
    with multiprocessing.get_context("spawn").Pool(WRITERS) as pool:
        pool.starmap(_write, [(settings.root, writer) for writer in range(WRITERS)])

    common = [f"what {number}" for number in range(EACH)]
    own = [f"what {number} of {writer}" for number in range(EACH) for writer in range(WRITERS)]
    assert sorted(str(record["question"]) for record in records(file)) == sorted([*common, *own])
