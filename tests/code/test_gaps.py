"""Limits in docs/reference/languages.md. If a test fails, a newer grammar lifted the limit: remove it from the page."""

import pytest

from docindex_dagster.code.extraction import Outline, extract
from docindex_dagster.code.parsers import parse


def outline_of(language: str, code: str) -> Outline:
    return extract(parse(code.encode(), language), code.encode(), language)


@pytest.mark.parametrize(
    ("language", "code", "symbols"),
    [
        ("tsx", "const Row = memo(() => <li/>);", ""),
        ("elixir", "def f do\n  add = fn a, b -> a + b end\nend", "function f"),
        ("cpp", "namespace a { int f(); }\nint a::f() { return 0; }", "module a, method a.f"),
        ("swift", "struct P { var x, y: Int }", "struct P, property P.x"),
        ("bash", "lib::f() { :; }", "method lib.f"),
        ("lua", "local t = { inner = { f = function() end } }", "function f"),
        ("elixir", "defmodule A do\n  def f(0), do: 1\n  def f(n), do: n\nend", "module A, function A.f, function A.f"),
        ("elixir", "defimpl P, for: [List, Map] do\n  def x(a), do: a\nend", "impl List, method List.x"),
        ("haskell", "pattern Empty = Closed", ""),
        ("sql", "CREATE PROCEDURE p() LANGUAGE sql AS $$ SELECT 1 $$;", ""),
    ],
)
def test_symbols(language, code, symbols):
    found = outline_of(language, code).symbols
    assert ", ".join(f"{symbol.kind} {symbol.qualified_name}" for symbol in found) == symbols


@pytest.mark.parametrize(
    ("language", "code", "parameters", "return_type"),
    [
        ("haskell", "name, title :: a -> Text\nname = id", None, None),
        ("haskell", "f :: a -> b -> c -> d -> e -> g -> h\nf = undefined", None, "g -> h"),
        ("haskell", "(<+>) :: Int -> Int -> Int\na <+> b = a", None, "Int"),
        ("elixir", "def left <~> right, do: left", None, None),
    ],
)
def test_parameters_and_return_types(language, code, parameters, return_type):
    (symbol,) = outline_of(language, code).symbols
    assert (symbol.parameters, symbol.return_type) == (parameters, return_type)


@pytest.mark.parametrize(
    ("language", "code", "calls"),
    [
        ("java", "class A extends B { A() { super(1); } }", ""),
        ("java", "class A { A() { this(1); } }", ""),
        ("csharp", "class A : B { A(int x) : base(x) {} }", ""),
        ("javascript", "class A extends B { constructor() { super(); } }", ""),
        ("kotlin", "class A : B(1)", ""),
        ("scala", "val x = name.trim", ""),
        ("ruby", "x = tokens", ""),
        ("go", "package p\nvar x = List[int](y)", "List"),
        ("bash", '"$command" now\nsudo ls', "sudo"),
        ("elixir", "@type id :: pos_integer()", "pos_integer"),
        ("zig", "fn f() void { std.debug.print(1); }", "print"),
        ("sql", "CREATE FUNCTION f() RETURNS int AS $$ BEGIN PERFORM g(); RETURN h(); END $$ LANGUAGE plpgsql;", ""),
        ("sql", "CREATE FUNCTION f() RETURNS int AS 'SELECT g()' LANGUAGE sql;", ""),
    ],
)
def test_calls(language, code, calls):
    assert " ".join(call.name for call in outline_of(language, code).calls) == calls


@pytest.mark.parametrize(
    ("language", "code", "imports", "exports"),
    [
        ("rust", "pub use a::b;", ("a::b",), None),
        ("typescript", "namespace N { export const f = 1; }", (), ("f",)),
        ("php", "<?php use A\\{B, C};", ("A",), None),
        ("scala", "import a.b, c.d", ("a.b, c.d",), None),
    ],
)
def test_imports_and_exports(language, code, imports, exports):
    outline = outline_of(language, code)
    assert (outline.imports, outline.exports) == (imports, exports)
