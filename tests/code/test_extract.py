"""Symbol extraction, including broken and hostile code; test_outlines.py covers each language."""

import pytest

from docindex_dagster.code.extraction import Outline, extract
from docindex_dagster.code.parsers import parse
from docindex_dagster.code.symbols import Symbol


def outline_of(code: str, language: str) -> Outline:
    return extract(parse(code.encode(), language), code.encode(), language)


def symbols_of(code: str, language: str) -> tuple[Symbol, ...]:
    return outline_of(code, language).symbols


def calls_of(code: str, language: str) -> list[str]:
    return [call.name for call in outline_of(code, language).calls]


def test_comment_above_a_blank_line_does_not_belong_to_the_definition():
    (symbol,) = symbols_of("// Section.\n\nfunc f() {}\n".replace("func", "function"), "javascript")
    assert (symbol.start_line, symbol.docstring) == (3, None)


def test_comment_behind_other_code_does_not_belong_to_the_definition_below():
    (symbol,) = symbols_of("let x = 1; // one\nfunction f() {}\n", "javascript")
    assert (symbol.start_line, symbol.docstring) == (2, None)


def test_comment_at_the_end_of_a_block_does_not_belong_to_the_definition_below():
    first, second = symbols_of("def a():\n    pass\n    # end of a\n# above b\ndef b(): ...\n", "python")
    assert (first.end_line, second.start_line) == (3, 4)


def test_comment_behind_the_end_of_a_definition_belongs_to_it():
    source = "struct a { int x; };  // the end\nint y;\n"
    (symbol,) = symbols_of(source, "c")
    assert source[: symbol.end_byte].endswith("// the end")


def test_language_without_a_query_has_no_symbols_and_unknown_imports():
    source = b"key: value\n"
    tree = parse(source, "yaml")
    assert extract(tree, source, "yaml").symbols == ()
    assert extract(tree, source, "yaml").imports is None


def test_broken_code_keeps_the_symbols_around_the_error():
    names = [symbol.name for symbol in symbols_of("def a(): pass\n\n)(\n\ndef b(): pass\n", "python")]
    assert names == ["a", "b"]


def test_text_that_is_no_code_has_no_symbols_and_takes_no_time():
    assert symbols_of("(){}[]<>;:'#/\\" * 40_000, "typescript") == ()


def test_names_of_endlessly_nested_functions_stay_short():
    symbols = symbols_of("function f(){" * 5_000 + "}" * 5_000, "javascript")
    assert 0 < len(symbols) <= 100


def test_calls_of_a_long_chain_are_reported_by_their_names():
    chain = "client" + "".join(f".step{number}({number})" for number in range(100))
    assert calls_of(chain, "python") == calls_of(chain, "javascript")
    assert set(calls_of(chain, "python")) == {"client.step0", *(f"step{number}" for number in range(1, 100))}


@pytest.mark.parametrize("language", ["javascript", "ruby", "swift"])
def test_endless_chain_of_calls_takes_no_time(language):
    assert 0 < len(calls_of("x = a" + ".b(1)" * 50_000, language)) <= 1000


def test_endless_list_of_names_takes_no_time():
    names = ", ".join(f"name{number}" for number in range(10_000))
    assert len(symbols_of(f"package p\nvar {names} = func() {{}}", "go")) == 1


@pytest.mark.parametrize(
    ("language", "code", "name"),
    [
        ("cpp", "auto x = std::make_unique<Solver<T>>(left);", "std::make_unique"),
        ("cpp", "auto x = (a<b)->run();", "run"),
        ("cpp", "auto x = static_cast<int>(y.size());", "y.size"),
        ("csharp", "class A { object x = lines.GroupBy<Line, Key>(key); }", "lines.GroupBy"),
        ("rust", "static X: V = Vec::<u8>::new();", "Vec::new"),
        ("go", "package p\nvar x = pool.New[int](1, 2)", "pool.New"),
        ("typescript", "const x = await load<Row>(1);", "load"),
        ("haskell", "total = foldl' (+) 0", "foldl'"),
    ],
)
def test_type_arguments_and_marks_leave_the_name_of_what_is_called(language, code, name):
    assert calls_of(code, language) == [name]


@pytest.mark.parametrize(
    ("code", "exports"),
    [
        ("exports.read = read;", ("read",)),
        ("module.exports.read = () => 1;", ("read",)),
        ("module.exports = { read, write: put };", ("read", "write")),
        ("other.exports.read = 1;", None),
    ],
)
def test_exports_of_commonjs(code, exports):
    assert outline_of(code, "javascript").exports == exports


@pytest.mark.parametrize("path", ["'a.php'", '"a.php"', "__DIR__ . 'a.php'", '__DIR__ . "a.php"'])
@pytest.mark.parametrize("word", ["require", "require_once", "include", "include_once"])
def test_files_that_php_includes_are_imports(word, path):
    assert outline_of(f"<?php {word} {path};", "php").imports == ("a.php",)


def test_exports_that_are_added_later_count_too():
    code = "__all__ = ['a']\n__all__ += ('b',)\n"
    assert outline_of(code, "python").exports == ("a", "b")


def test_operators_are_exported_with_their_brackets():
    assert outline_of("module A ((<+>), (<>)) where\n", "haskell").exports == ("<+>", "<>")
