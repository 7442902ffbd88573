"""Query classification by form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.query import Kind, understand
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("parse_date", Kind.SYMBOL),
        ("HTTPAdapter", Kind.SYMBOL),
        ("std::vector::push_back", Kind.SYMBOL),
        ("Session.send()", Kind.SYMBOL),
        ("empty?", Kind.SYMBOL),
        ("src/http/client.py", Kind.PATH),
        ("client.py:12", Kind.PATH),
        ("C:\\code\\main.c", Kind.PATH),
        ("Table.send", Kind.SYMBOL),
        ("cart.add", Kind.SYMBOL),
        ("router.get", Kind.SYMBOL),
        ("std.mem.eql", Kind.SYMBOL),
        ("Vec.push", Kind.SYMBOL),
        ("setup.cfg", Kind.PATH),
        ("main.rs:12:3", Kind.PATH),
        ("App.vue", Kind.PATH),
        ("Cargo.toml", Kind.PATH),
        ("TypeError: unsupported operand type(s)", Kind.ERROR),
        ("error[E0308]: mismatched types", Kind.ERROR),
        ("how to install it behind a proxy", Kind.QUESTION),
        ("What formats can be read", Kind.QUESTION),
        ("can I run it without a network", Kind.QUESTION),
        ("how routes are registered", Kind.TEXT),
        ("request body parsing", Kind.TEXT),
        ("名前 を 探す", Kind.TEXT),
    ],
)
def test_the_kind_follows_from_the_form(text, kind):
    assert understand(text).kind is kind


@pytest.mark.parametrize(
    ("text", "name"), [("Session.send()", "send"), ("parse_date", "parse_date"), ("a parse_date b", None)]
)
def test_only_a_symbol_has_a_name(text, name):
    assert understand(text).name == name


def test_words_that_only_join_others_do_not_count_in_sentences():
    assert understand("how to install it with the proxy").terms == ("install", "proxy")


@pytest.mark.parametrize("text", ["is", "how to do this"])
def test_where_there_are_no_others_they_do(text):
    assert understand(text).terms == tuple(text.split())


@given(st.text())
def test_any_text_is_understood_and_no_term_comes_twice(text):
    query = understand(text)

    assert len(set(query.terms)) == len(query.terms)
    assert (query.name is not None) == (query.kind is Kind.SYMBOL)


def test_what_ends_as_indexed_files_do_is_a_path():
    assert understand("table.send").kind is Kind.SYMBOL
    assert understand("table.send", {"send"}.__contains__).kind is Kind.PATH


@pytest.mark.parametrize(("path", "reason"), [("lib/table.py", "definition"), ("lib/pump.send", "path")])
def test_a_name_is_a_path_only_where_a_file_ends_so(layout, path, reason):
    chunks = chunks_of({path: ["send a table of pumps"], "lib/other.py": ["table of pumps"]})
    publish_rows(layout, "library/sample", chunks, vectors_of(chunks))

    best = search(open_reader(layout), "pump.send", StaticEmbedder)[0]

    assert best.path == path
    assert reason in {signal.name for signal in best.signals}
