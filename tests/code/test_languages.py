import pytest

from docindex_dagster.code.languages import LANGUAGES, grammar_for, has_symbols
from docindex_dagster.code.parsers import ParseError, parse, query_for

CLASSIFIED = """
    python typescript tsx javascript java go rust c cpp csharp ruby php kotlin swift scala bash lua elixir haskell zig
    sql html css scss json toml yaml xml vue svelte dockerfile make cmake perl r julia dart clojure erlang ocaml fsharp
    elm groovy powershell proto graphql terraform hcl nix vim fortran ada objc solidity latex ini
"""


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_grammar_loads_and_parses(language):
    assert parse(b"x = 1\n", language).root_node.end_byte > 0


@pytest.mark.parametrize("language", sorted(name for name in LANGUAGES if has_symbols(name)))
def test_every_query_compiles(language):
    assert query_for(language).pattern_count > 0


def test_every_language_that_files_are_classified_as_has_a_grammar():
    assert [language for language in CLASSIFIED.split() if grammar_for(language) is None] == []


def test_unknown_language_has_no_grammar():
    assert grammar_for("batch") is None
    assert not has_symbols("batch")


def test_parsing_an_unknown_language_names_it():
    with pytest.raises(ParseError, match="batch"):
        parse(b"echo on", "batch")
