"""Query classification by form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Intent
from docindex_dagster.search.query import understand
from docindex_dagster.stores.reader import open_reader
from tests.conftest import chunks_of, publish_rows, vectors_of


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("parse_date", Intent.NAME),
        ("HTTPAdapter", Intent.NAME),
        ("std::vector::push_back", Intent.NAME),
        ("Session.send()", Intent.NAME),
        ("empty?", Intent.NAME),
        ("src/http/client.py", Intent.NAME),
        ("client.py:12", Intent.NAME),
        ("C:\\code\\main.c", Intent.NAME),
        ("Table.send", Intent.NAME),
        ("cart.add", Intent.NAME),
        ("router.get", Intent.NAME),
        ("std.mem.eql", Intent.NAME),
        ("Vec.push", Intent.NAME),
        ("setup.cfg", Intent.NAME),
        ("main.rs:12:3", Intent.NAME),
        ("App.vue", Intent.NAME),
        ("Cargo.toml", Intent.NAME),
        ("TypeError: unsupported operand type(s)", Intent.ERROR),
        ("error[E0308]: mismatched types", Intent.ERROR),
        ("how to install it behind a proxy", Intent.EXPLAIN),
        ("What formats can be read", Intent.EXPLAIN),
        ("can I run it without a network", Intent.EXPLAIN),
        ("how routes are registered", Intent.TOPIC),
        ("request body parsing", Intent.TOPIC),
        ("名前 を 探す", Intent.TOPIC),
        ("an example of a custom adapter", Intent.EXAMPLE),
        ("usages of parse_date", Intent.EXAMPLE),
        ("The pump stops\n\nIt stops when the valve closes.", Intent.CHANGE),
        ("The pump stops\n\n", Intent.TOPIC),
    ],
)
def test_the_intent_follows_from_the_form(text, intent):
    assert understand(text).intent is intent


@pytest.mark.parametrize("intent", Intent)
def test_a_given_intent_replaces_it(intent):
    assert understand("parse_date", intent=intent).intent is intent
    assert understand("how to parse a date", intent=intent).intent is intent


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
    assert query.name is None or query.intent is Intent.NAME


def test_what_ends_as_indexed_files_do_is_a_path():
    assert understand("table.send").name == "send"
    assert understand("table.send", {"send"}.__contains__).name is None


@pytest.mark.parametrize(("path", "reason"), [("lib/table.py", "definition"), ("lib/pump.send", "path")])
def test_a_name_is_a_path_only_where_a_file_ends_so(layout, path, reason):
    chunks = chunks_of({path: ["send a table of pumps"], "lib/other.py": ["table of pumps"]})
    publish_rows(layout, "library/sample", chunks, vectors_of(chunks))

    best = search(open_reader(layout), "pump.send", StaticEmbedder)[0]

    assert best.path == path
    assert reason in {signal.name for signal in best.signals}
