"""The files that a bug report is about, each view tested alone on an index of a few files."""

import pyarrow as pa
import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.schemas import CHUNKS, COMMIT_PATH
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.candidates import Pool
from docindex_dagster.search.engine import search
from docindex_dagster.search.filters import Filters
from docindex_dagster.search.locate import locate, rank_views
from docindex_dagster.search.model import Granularity, Hit, Intent, Mode
from docindex_dagster.search.report import parse_report
from docindex_dagster.search.weights import WEIGHTS
from docindex_dagster.stores.reader import Reader, open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of

COMMIT, BROAD_COMMIT = f"{COMMIT_PATH}{'a1' * 20}", f"{COMMIT_PATH}{'b2' * 20}"
NAMESAKES = [f"lib/{letter}/common.py" for letter in "abcdef"]
FILES = {
    "src/flow/valve.py": ["valve opens and closes", "seal keeps the valve tight"],
    "src/flow/pump.py": ["pump moves water"],
    "src/flow/tank.py": ["tank stores goods"],
    "src/mill/wheel.py": ["wheel turns slowly"],
    "src/mill/stone.py": ["stone grinds corn"],
    "src/mill/sieve.py": ["sieve keeps flour"],
    "tests/test_wheel.py": ["test_wheel turns the wheel slowly and squeaks"],
    "docs/wheel.md": ["Wheels turn slowly and squeak"],
    COMMIT: [
        "Fix the flour that falls through\n\nA box has a gap, and dust got lost.\n\nM src/mill/sieve.py +3 -1: sieve"
    ],
    BROAD_COMMIT: ["Flour falls through\n\nM src/mill/stone.py\nM src/mill/wheel.py\nM src/flow/pump.py"],
    **{path: ["shared stuff"] for path in NAMESAKES},
}
TYPES = {"tests/test_wheel.py": "test", "docs/wheel.md": "doc", COMMIT: "commit", BROAD_COMMIT: "commit"}
BODY = "Something is wrong here, please help."


@pytest.fixture(scope="module")
def reader(tmp_path_factory) -> Reader:
    layout = Layout(tmp_path_factory.mktemp("index"))
    chunks = chunks_of(FILES)
    types = [TYPES.get(path, "code") for path in chunks["path"].to_pylist()]
    chunks = chunks.set_column(CHUNKS.get_field_index("source_type"), CHUNKS.field("source_type"), pa.array(types))
    publish_rows(layout, "library/sample", chunks, vectors_of(chunks))
    return open_reader(layout)


def find(reader: Reader, report: str, **options) -> list[Hit]:
    options = {"mode": Mode.BM25, "granularity": Granularity.FILE, **options}
    return search(reader, report, StaticEmbedder, **options)


def signals(hit: Hit) -> set[str]:
    return {signal.name for signal in hit.signals}


@pytest.mark.parametrize(
    ("report", "path"),
    [
        (f"The stone no longer grinds\n{BODY}", "src/mill/stone.py"),
        (f"It is broken\n{BODY}\nThe stone no longer grinds corn.", "src/mill/stone.py"),
        (f"It is broken\n{BODY} See src/flow/tank.py.", "src/flow/tank.py"),
        (f"It is broken\n{BODY} See tank.py.", "src/flow/tank.py"),
        (f"It is broken\n{BODY} I call `flow.tank.fill`.", "src/flow/tank.py"),
        (f"It is broken\n{BODY} I call `flow::tank::fill`.", "src/flow/tank.py"),
        (f'It is broken\n{BODY}\n  File "/home/ada/src/flow/tank.py", line 1, in fill', "src/flow/tank.py"),
        (f"It is broken\n{BODY}\n  at a.b.C.fill(tank.py:1)", "src/flow/tank.py"),
        (f"Flour falls through\n{BODY}", "src/mill/sieve.py"),
    ],
)
def test_a_report_finds_the_file(reader, report, path):
    assert find(reader, report)[0].path == path


@pytest.mark.parametrize(
    ("frame", "order"),
    [
        ('  File "/home/ada/src/flow/{}.py", line 1, in run', ["valve", "tank", "pump"]),
        ("  at run (/home/ada/src/flow/{}.py:1:1)", ["pump", "tank", "valve"]),
    ],
)
def test_the_innermost_frame_counts_most(reader, frame, order):
    """A traceback of Python ends with it, and others begin with it."""
    frames = "\n".join(frame.format(name) for name in ("pump", "tank", "valve"))
    mentions = {
        hit.path: signal.contribution
        for hit in find(reader, f"It is broken\n{BODY}\n{frames}")
        for signal in hit.signals
        if signal.name == "mention"
    }

    assert sorted(mentions, key=lambda path: -mentions[path]) == [f"src/flow/{name}.py" for name in order]


def test_a_frame_of_a_library_with_the_same_name_does_not_count(reader):
    frame = '  File "/usr/lib/python3/storage/tank.py", line 1, in fill'

    assert not any("mention" in signals(hit) for hit in find(reader, f"It is broken\n{BODY}\n{frame}"))


def test_earlier_commits_that_resemble_the_report_count_for_their_files(reader):
    hit = find(reader, f"Something falls through\n{BODY}")[0]

    assert (hit.path, "history" in signals(hit)) == ("src/mill/sieve.py", True)


def test_a_commit_that_changes_many_files_counts_less_for_each(reader):
    values = {
        hit.path: signal.contribution
        for hit in find(reader, f"Flour falls through\n{BODY}")
        for signal in hit.signals
        if signal.name == "history"
    }

    assert values["src/mill/sieve.py"] > values["src/mill/stone.py"] == values["src/flow/pump.py"]


def test_a_name_that_many_files_share_mentions_none(reader):
    assert not any("mention" in signals(hit) for hit in find(reader, f"It is broken\n{BODY} See common.py."))


def test_a_chunk_below_the_end_of_a_full_ranking_counts_as_its_last_one(reader):
    text = f"The stone\n{BODY} See src/flow/tank.py."
    report, pool = parse_report(text), Pool(reader, Filters(), 1)
    found = locate(pool, report, rank_views(pool, text, report, None), WEIGHTS, 10, is_by_file=True)
    tank = next(item for item in found if any(signal.name == "mention" for signal in item.signals))

    assert any(signal.name == "title" and signal.rank is None and signal.contribution for signal in tank.signals)


def test_code_comes_before_tests_and_documents(reader):
    found = [hit.path for hit in find(reader, f"The wheel squeaks and turns slowly\n{BODY}")]

    assert found[0] == "src/mill/wheel.py"


@pytest.mark.parametrize(
    ("title", "path"),
    [("The test of the wheel squeaks", "tests/test_wheel.py"), ("The docs say that wheels squeak", "docs/wheel.md")],
)
def test_unless_the_title_is_about_them(reader, title, path):
    assert find(reader, f"{title}\n{BODY}")[0].path == path


def test_commits_are_not_among_the_results(reader):
    assert COMMIT not in {hit.path for hit in find(reader, f"Fix the flour that falls through\n{BODY}")}


def test_filters_hold_for_every_view(reader):
    report = f"Flour falls through\n{BODY} See src/flow/tank.py."
    found = find(reader, report, filters=Filters(path_glob="src/flow/pump.py"))

    assert {hit.path for hit in found} <= {"src/flow/pump.py"}


def test_the_contributions_of_all_signals_add_up_to_the_score(reader):
    for granularity in Granularity:
        for hit in find(reader, f"The valve is not tight\n{BODY} See tank.py.", granularity=granularity):
            assert sum(signal.contribution for signal in hit.signals) == pytest.approx(hit.score)


def test_the_best_chunk_of_a_file_has_what_its_other_chunks_contribute(reader):
    by_file = find(reader, f"The valve opens\n{BODY} It keeps nothing tight.")[0]

    assert (by_file.path, "file" in signals(by_file)) == ("src/flow/valve.py", True)


def test_a_report_without_any_known_word_finds_nothing(reader):
    assert find(reader, "xyzzy\nplugh") == []


def test_the_intent_can_be_given(reader):
    assert find(reader, "the stone no longer grinds")[0].intent is Intent.TOPIC
    assert find(reader, "the stone no longer grinds", intent=Intent.CHANGE)[0].intent is Intent.CHANGE
    assert find(reader, f"The stone\n{BODY}")[0].intent is Intent.CHANGE
    assert find(reader, f"The stone\n{BODY}", intent=Intent.TOPIC)[0].intent is Intent.TOPIC


def test_vectors_count_where_there_are_some(reader):
    hits = find(reader, f"The stone no longer grinds\n{BODY}", mode=Mode.HYBRID)

    assert "prose" in signals(hits[0])
