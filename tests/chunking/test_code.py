import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.chunking.chunker import Draft
from docindex_dagster.chunking.code import chunk_code
from docindex_dagster.code.parsers import ParseError

FIXTURES = {
    language: (Path(__file__).parent.parent / "fixtures" / "code" / file).read_text()
    for language, file in {
        "python": "inventory.py",
        "typescript": "session.ts",
        "tsx": "Panel.tsx",
        "javascript": "queue.js",
        "java": "Ledger.java",
        "go": "server.go",
        "rust": "cache.rs",
        "c": "buffer.c",
        "cpp": "matrix.cpp",
        "csharp": "Orders.cs",
        "ruby": "parser.rb",
        "php": "Mailer.php",
    }.items()
}


def dense(text: str) -> int:
    return len("".join(text.split()))


def outline(drafts: tuple[Draft, ...]) -> list[str]:
    """Format each chunk as `lines type symbol part <parent`."""
    return [
        f"{draft.start_line}-{draft.end_line} {draft.chunk_type}"
        + (f" {draft.symbol.qualified_name}" if draft.symbol else "")
        + (f" part {draft.part_number}" if draft.part_number else "")
        + (f" <{draft.parent_index}" if draft.parent_index is not None else "")
        for draft in drafts
    ]


@st.composite
def mutated_code(draw):
    """Generate a fixture with a few spans removed, repeated or replaced."""
    text = FIXTURES[draw(st.sampled_from(sorted(FIXTURES)))]
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 80)))
        noise = st.sampled_from(
            ["", "{", "}", ")", '"', "'", "\n", "\r", "\t\n\n", "é漢😀", "/*", "#", text[start:end] * 2]
        )
        text = text[:start] + draw(noise) + text[end:]
    if draw(st.booleans()):
        text = text.replace("\n", "\r\n")
    return text


TEXTS = st.one_of(mutated_code(), st.text(max_size=300))
LANGUAGES = st.sampled_from([*sorted(FIXTURES), "json", "yaml", "html", "bash", "haskell"])


@settings(max_examples=150, deadline=None)
@given(TEXTS, LANGUAGES, st.integers(1, 600))
def test_chunks_put_end_to_end_are_the_file(text, language, budget):
    drafts = chunk_code(text, language, budget).drafts
    data = text.encode()
    assert "".join(draft.text for draft in drafts) == text or dense(text) == 0
    position: int | None = 0
    for draft in drafts:
        assert draft.start_byte == position
        assert data[draft.start_byte : draft.end_byte].decode() == draft.text
        assert draft.start_line == data.count(b"\n", 0, draft.start_byte) + 1
        assert draft.end_line == data.count(b"\n", 0, draft.end_byte - 1) + 1
        position = draft.end_byte


@settings(max_examples=100, deadline=None)
@given(mutated_code(), LANGUAGES, st.integers(1, 600))
def test_no_chunk_exceeds_the_budget_or_is_blank(text, language, budget):
    assert all(0 < dense(draft.text) <= budget for draft in chunk_code(text, language, budget).drafts)


@settings(max_examples=100, deadline=None)
@given(mutated_code(), LANGUAGES, st.integers(50, 600))
def test_every_symbol_begins_in_one_chunk_and_parts_follow_their_head(text, language, budget):
    drafts = chunk_code(text, language, budget).drafts
    starts = [symbol.start_byte for draft in drafts for symbol in draft.symbols]
    assert starts == sorted(starts)
    for index, draft in enumerate(drafts):
        assert all(draft.start_byte <= symbol.start_byte < draft.end_byte for symbol in draft.symbols)
        assert draft.parent_index is None or draft.parent_index < index


@settings(max_examples=30, deadline=None)
@given(mutated_code(), LANGUAGES)
def test_chunking_is_deterministic(text, language):
    assert chunk_code(text, language, 200) == chunk_code(text, language, 200)


@pytest.mark.parametrize("language", sorted(FIXTURES))
def test_symbols_that_fit_are_never_cut(language):
    drafts = chunk_code(FIXTURES[language], language, 400).drafts
    ends = {draft.end_byte for draft in drafts}
    for draft in drafts:
        for symbol in draft.symbols:
            text = FIXTURES[language].encode()[symbol.start_byte : symbol.end_byte].decode()
            assert dense(text) > 400 or symbol.end_byte <= draft.end_byte, symbol.qualified_name
    assert len(ends) == len(drafts)


@pytest.mark.parametrize("language", sorted(FIXTURES))
def test_chunks_begin_at_a_line_and_not_with_a_closing_bracket(language):
    for draft in chunk_code(FIXTURES[language], language, 400).drafts:
        line = FIXTURES[language].encode()[: draft.start_byte]
        assert not line or line.endswith(b"\n")
        assert not draft.text.lstrip().startswith((")", "]", "}", "end"))


def test_small_file_is_one_chunk_with_its_largest_symbol():
    text = "import os\n\ndef a():\n    pass\n\ndef b():\n    return os.getcwd()\n"
    (draft,) = chunk_code(text, "python").drafts
    assert (draft.text, draft.chunk_type, draft.symbol.name) == (text, "function", "b")
    assert [symbol.name for symbol in draft.symbols] == ["a", "b"]


def test_top_level_code_without_a_symbol_is_module():
    (draft,) = chunk_code("import os\nprint(os.name)\n", "python").drafts
    assert (draft.chunk_type, draft.symbol, draft.has_code) == ("module", None, True)


def test_large_class_becomes_its_head_and_its_methods():
    method = "    def m{0}(self):\n        return '{1}'\n\n"
    fields = "".join(f"    field_{i}: int = {i}\n" for i in range(4))
    methods = "".join(method.format(i, "x" * 60) for i in range(4))
    text = f"import os\n\n\nclass Big:\n    '''Holds much.'''\n{fields}\n{methods}\ndef after():\n    return 1\n"
    assert outline(chunk_code(text, "python", 200).drafts) == [
        "1-10 class Big part 1",
        "11-16 method Big.m0 <0",
        "17-23 method Big.m2 <0",
        "24-25 function after",
    ]


def test_method_that_does_not_fit_is_split_into_parts_below_its_class():
    body = "".join(f"        call_number_{i}(argument)\n" for i in range(12))
    head = "class Big:\n    a_rather_long_field: int = 10000000000\n"
    text = f"{head}\n    def run(self):\n{body}\n    def stop(self): ...\n"
    assert outline(chunk_code(text, "python", 150).drafts) == [
        "1-3 class Big part 1",
        "4-9 method Big.run part 1 <0",
        "10-13 method Big.run part 2 <1",
        "14-17 method Big.run part 3 <1",
        "18-18 method Big.stop <0",
    ]


def test_definition_stays_with_its_comment_and_decorators():
    function = "# Says what f{0} does, at some length.\n@decorated\ndef f{0}():\n    return 'some text'\n\n"
    drafts = chunk_code("".join(function.format(i) for i in range(6)), "python", 80).drafts
    assert len(drafts) == 6
    assert all(draft.text.startswith("# Says") for draft in drafts)


def test_module_that_holds_one_large_type_leaves_the_chunk_to_it():
    text = "namespace a {\nclass B {\n  void first() {}\n  void second() {}\n};\n}\n"
    (draft,) = chunk_code(text, "cpp").drafts
    assert draft.symbol.qualified_name == "a.B"


def test_closing_brackets_stay_with_what_they_close():
    method = "        public int M{0}() {{ return {0}; }}\n"
    text = "namespace N {\n    class C {\n" + "".join(method.format(i) for i in range(20)) + "    }\n}\n"
    drafts = chunk_code(text, "csharp", 100).drafts
    assert drafts[-1].text.endswith("    }\n}\n")
    assert "M19" in drafts[-1].text


def test_language_without_a_query_is_cut_along_its_tree():
    text = '{\n  "first": [' + "1, " * 30 + '1],\n  "second": [' + "2, " * 30 + "2]\n}\n"
    result = chunk_code(text, "json", 80)
    assert [draft.text.strip()[:8] for draft in result.drafts] == ['{\n  "fir', '"second"']
    assert result.imports is None


def test_imports_of_the_file_are_given_once():
    assert chunk_code("import b\nimport a\nimport b\n", "python").imports == ("b", "a")


def test_empty_and_blank_files_have_no_chunks():
    assert chunk_code("", "python").drafts == ()
    assert chunk_code("\n \n", "python").drafts == ()


def test_unknown_language_is_an_error_that_names_it():
    with pytest.raises(ParseError, match="batch"):
        chunk_code("echo off", "batch")


@pytest.mark.parametrize(
    ("language", "text"),
    [
        pytest.param("python", "(" * 10_000 + ")" * 10_000, id="parentheses"),
        pytest.param("json", "[" * 10_000 + "]" * 10_000, id="brackets"),
        pytest.param("javascript", "[" * 10_000, id="brackets that never close"),
        pytest.param("c", "void f() " + "{" * 10_000 + "}" * 10_000, id="blocks"),
        pytest.param("javascript", "function f(){" * 10_000 + "}" * 10_000, id="functions"),
        pytest.param("json", "[" + "1," * 500_000 + "1]", id="a million characters in one line"),
        pytest.param("python", "x = '" + "a" * 1_000_000 + "'", id="a string of a million characters"),
        pytest.param("javascript", "/*a*/" * 200_000, id="comments in one line"),
        pytest.param("typescript", "(){}[]<>;:'#" * 50_000, id="no code at all"),
    ],
)
def test_hostile_file_is_cut_within_seconds(language, text):
    started = time.process_time()
    drafts = chunk_code(text, language).drafts
    assert time.process_time() - started < 10
    assert "".join(draft.text for draft in drafts) == text
    assert max(dense(draft.text) for draft in drafts) <= 1500


def test_a_long_script_of_a_page_is_cut_at_its_functions():
    body = "  go();\n" * 50
    functions = "\n".join(f"function step{number}() {{\n{body}}}" for number in range(6))
    text = f"<template>\n  <p/>\n</template>\n\n<script>\n{functions}\n</script>\n"
    drafts = chunk_code(text, "vue", 400).drafts
    assert "".join(draft.text for draft in drafts) == text
    assert {f"step{number}" for number in range(6)} <= {draft.symbol.name for draft in drafts if draft.symbol}
    starts = [draft.text.strip() for draft in drafts]
    assert all(any(start.startswith(f"function step{number}") for start in starts) for number in range(1, 6))
