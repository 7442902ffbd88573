"""`docindex graph import` and `docindex graph export --format scip`: arguments and output."""

import shutil
from pathlib import Path

import pytest

from docindex_dagster.graph.scip.format import index_message
from tests.cli.conftest import index_in
from tests.graph.scip.samples import FIXTURES

CAST = "manual/shop/cart.py:16  Cart.add calls shop/goods.py::Item.price  precise, scip-python"


def write(folder: Path) -> None:
    shutil.copytree(FIXTURES / "python" / "shop", folder / "manual" / "shop")
    shutil.copy(FIXTURES / "python.scip", folder / "index.scip")


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("indexed"), write=write)


@pytest.fixture
def shop(run_indexed):
    return run_indexed


def test_an_index_is_imported_and_the_next_run_brings_it_into_the_graph(shop):
    answer = shop("graph", "import", "index.scip")
    assert answer.code == 0
    assert answer.out == (
        "library/manual: 3 files indexed by scip-python, which resolves 16 of 18 calls (89%); "
        "run `docindex index library/manual` to update the graph\n"
    )
    assert CAST not in shop("graph", "callers", "Item.price").out
    assert shop("index").code == 0
    assert CAST in shop("graph", "callers", "Item.price").out
    assert shop("graph", "import", "--remove", "manual").out == (
        "library/manual: removed; run `docindex index library/manual` to update the graph\n"
    )
    assert shop("index").code == 0
    assert CAST not in shop("graph", "callers", "Item.price").out


def test_a_file_that_changed_is_named_by_the_run_that_indexes_it(shop):
    shop("graph", "import", "index.scip", "library/manual")
    file = Path("manual/shop/cart.py")
    file.write_text(f"# more\n{file.read_text()}")
    answer = shop("index")
    assert "1 files changed since their precise index was imported: shop/cart.py" in answer.out + answer.err
    answer = shop("index")  # even though nothing changed
    assert "1 files changed since their precise index was imported: shop/cart.py" in answer.out + answer.err


def test_documents_that_do_not_fit_are_named_with_the_reason(shop):
    Path("manual/shop/cart.py").write_text("")
    answer = shop("graph", "import", "index.scip")
    assert answer.code == 0
    assert "1 refused (changed since it was indexed: run `docindex index`): shop/cart.py" in answer.err
    assert "2 files indexed by scip-python" in answer.out


def test_what_was_imported_goes_with_its_source(shop):
    shop("graph", "import", "index.scip")
    assert [*Path(".docindex/tables/precise_index").iterdir()] != []
    assert shop("source", "remove", "manual").code == 0
    assert [*Path(".docindex/tables/precise_index").iterdir()] == []


def test_there_may_be_nothing_to_remove(shop):
    assert shop("graph", "import", "--remove").out == "library/manual: no imported index to remove\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("graph", "import"), "pass a file to import, or --remove"),
        (("graph", "import", "nothing.scip"), "nothing.scip: No such file"),
        (("graph", "import", "manual/shop/cart.py"), "is damaged, or not a SCIP file"),
        (("graph", "import", "index.scip", "library/nothing"), "library/nothing"),
        (("graph", "export", "--format", "scip", "--around", "fill", "out.scip"), "SCIP exports the full graph"),
        (
            ("graph", "export", "--format", "scip", "out.scip", "--output", "other.scip"),
            "pass FILE or --output, not both",
        ),
    ],
)
def test_a_mistake_is_a_line_that_says_what_is_wrong(shop, arguments, message):
    answer = shop(*arguments)
    assert answer.code != 0
    assert message in " ".join((answer.out + answer.err).split())
    assert "Traceback" not in answer.err


def test_machines_that_share_an_index_have_none(shop, monkeypatch):
    monkeypatch.setenv("DOCINDEX_STORAGE__URL", "s3://bucket/index")
    answer = shop("graph", "import", "index.scip")
    assert answer.code != 0
    assert "`docindex graph import` is not available" in " ".join(answer.err.split())


def test_the_graph_is_written_as_an_index(shop):
    answer = shop("graph", "export", "--format", "scip", "out.scip")
    assert answer.code == 0
    message = index_message().FromString(Path("out.scip").read_bytes())
    assert [one.relative_path for one in message.documents] == [
        "pump.py",
        "shop/__init__.py",
        "shop/cart.py",
        "shop/goods.py",
    ]
    occurrences = sum(len(document.occurrences) for document in message.documents)
    assert answer.out == f"out.scip: 4 documents, {occurrences} occurrences\n"
    assert shop("graph", "import", "out.scip").out.startswith("library/manual: 4 files indexed by docindex")
