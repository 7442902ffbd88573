from typing import get_args

import pytest
from tree_sitter_language_pack import SupportedLanguage

from docindex_dagster.sources import languages
from docindex_dagster.sources.classify import classify, classify_name


@pytest.mark.parametrize(
    ("path", "source_type", "language", "loader"),
    [
        ("README.md", "doc", "markdown", "markdown"),
        ("docs/Guide.MARKDOWN", "doc", "markdown", "markdown"),
        ("docs/page.mdx", "doc", "markdown", "mdx"),
        ("docs/index.rst", "doc", "rst", "rst"),
        ("notes.txt", "doc", None, "text"),
        ("site/index.htm", "doc", "html", "html"),
        ("manual.adoc", "doc", "asciidoc", "asciidoc"),
        ("analysis.ipynb", "doc", "jupyter", "notebook"),
        ("LICENSE", "doc", None, "text"),
        ("LICENSE-MIT", "doc", None, "text"),
        ("tests/README.md", "doc", "markdown", "markdown"),
        ("src/app.py", "code", "python", "code"),
        ("src/app.pyi", "code", "python", "code"),
        ("src/latest.py", "code", "python", "code"),
        ("main.go", "code", "go", "code"),
        ("src/lib.rs", "code", "rust", "code"),
        ("web/App.tsx", "code", "tsx", "code"),
        ("web/app.jsx", "code", "javascript", "code"),
        ("web/contest.ts", "code", "typescript", "code"),
        ("src/Main.java", "code", "java", "code"),
        ("src/Contest.java", "code", "java", "code"),
        ("src/Order.cs", "code", "csharp", "code"),
        ("lib/x.cpp", "code", "cpp", "code"),
        ("schema.sql", "code", "sql", "code"),
        ("make.bat", "code", None, "code"),
        ("tests/helpers.py", "test", "python", "code"),
        ("pkg/test_app.py", "test", "python", "code"),
        ("pkg/app_test.py", "test", "python", "code"),
        ("pkg/conftest.py", "test", "python", "code"),
        ("pkg/server_test.go", "test", "go", "code"),
        ("pkg/testdata/input.go", "test", "go", "code"),
        ("web/app.spec.ts", "test", "typescript", "code"),
        ("web/app.test.jsx", "test", "javascript", "code"),
        ("web/__tests__/app.js", "test", "javascript", "code"),
        ("src/test/java/Helper.java", "test", "java", "code"),
        ("src/OrderTest.java", "test", "java", "code"),
        ("src/OrderIT.java", "test", "java", "code"),
        ("Shop.Tests/Orders.cs", "test", "csharp", "code"),
        ("app/order_spec.rb", "test", "ruby", "code"),
        ("lib/buffer_unittest.cc", "test", "cpp", "code"),
        ("run.bats", "test", "bash", "code"),
        ("pyproject.toml", "config", "toml", "code"),
        (".github/workflows/ci.yml", "config", "yaml", "code"),
        ("tests/fixture.json", "config", "json", "code"),
        ("setup.cfg", "config", "ini", "code"),
        ("Dockerfile", "config", "dockerfile", "code"),
        ("docker/Dockerfile.dev", "config", "dockerfile", "code"),
        ("Makefile", "config", "make", "code"),
        ("CMakeLists.txt", "config", "cmake", "code"),
        ("go.mod", "config", "gomod", "code"),
        ("dev-requirements.txt", "config", "requirements", "code"),
        ("requirements-test.txt", "config", "requirements", "code"),
        (".editorconfig", "config", "ini", "code"),
        ("data.unknown", "doc", None, "text"),
        ("bin/something", "doc", None, "text"),
    ],
)
def test_a_path_tells_the_kind(path, source_type, language, loader):
    kind = classify(path.encode(), b"")
    assert (kind.source_type, kind.language, kind.loader) == (source_type, language, loader)


@pytest.mark.parametrize(
    ("first_line", "language"),
    [
        (b"#!/bin/sh", "bash"),
        (b"#!/usr/bin/env python3", "python"),
        (b"#!/usr/bin/env -S python3.11 -u", "python"),
        (b"#! /usr/local/bin/node --harmony", "javascript"),
        (b"#!/usr/bin/env PYTHONPATH=. python", "python"),
        (b"#!/usr/bin/env -S uv run --script", "python"),
        (b"#!/usr/bin/env -S uv run --quiet --python 3.12 --script", "python"),
        (b"#!/usr/bin/env -S uvx --from rich python", "python"),
        (b"#!/usr/bin/env -S pipx run", "python"),
        (b"#!/usr/bin/env pipx run", "python"),
        (b"#!/usr/bin/env -S poetry run python", "python"),
        (b"#!/usr/bin/env nix-shell\n#! nix-shell -i python3 -p python3Packages.rich", "python"),
        (b"#! /usr/bin/env nix-shell\n#! nix-shell -p bash jq\n#! nix-shell -i bash", "bash"),
        (b"#!nix-shell -i runghc -p ghc", "haskell"),
        (b"#!/usr/bin/env -S nix shell nixpkgs#nodejs --command node", "javascript"),
        (b"#!/usr/bin/env rust-script", "rust"),
        (b"#!/usr/bin/env -S npx tsx", "typescript"),
        (b"#!/usr/bin/env -S deno run --allow-net", "typescript"),
        (b"#!/usr/bin/env -S go run", "go"),
        (b"#!/usr/bin/env -S stack runghc --package text", "haskell"),
        (b"#!/usr/bin/lua5.4", "lua"),
        (b"#!/usr/bin/env ruby3.2", "ruby"),
    ],
)
def test_a_script_without_ending_tells_by_its_first_line(first_line, language):
    kind = classify(b"bin/tool", first_line + b"\nrest\n")
    assert (kind.source_type, kind.language, kind.loader) == ("code", language, "code")
    assert classify_name(b"bin/tool") is None


@pytest.mark.parametrize("line", [b"#!/opt/odd", b"#!/opt/odd python", b"#!", b"#!/usr/bin/env", b"#!\xff\xfe -i x"])
def test_an_unknown_interpreter_leaves_a_script_as_text(line):
    assert classify(b"bin/tool", line + b"\n").loader == "text"


@pytest.mark.parametrize("name", ["install", "version", "history", "bin/INSTALL", "install-deps", "todo", "news"])
def test_a_script_that_is_named_like_a_document_is_a_script(name):
    kind = classify(name.encode(), b"#!/usr/bin/env bash\necho\n")
    assert (kind.source_type, kind.language, kind.loader) == ("code", "bash", "code")
    assert classify(name.encode(), b"Install it with make.\n").loader == "text"


def test_a_document_by_its_ending_is_one_also_if_it_begins_like_a_script():
    assert classify(b"install.txt", b"#!/bin/sh\n").loader == "text"
    assert classify(b"INSTALL.md", b"#!/bin/sh\n").loader == "markdown"


def test_a_header_is_cpp_when_it_holds_what_c_has_not():
    assert classify(b"a.h", b"struct point { int x; };\n").language == "c"
    assert classify(b"a.h", b"namespace geo {\nclass Point;\n}\n").language == "cpp"


@pytest.mark.parametrize(
    ("name", "text", "source_type", "language"),
    [
        (
            "i18n/app_de.ts",
            '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE TS>\n<TS version="2.1">\n',
            "config",
            "xml",
        ),
        ("app_fr.ts", '<!DOCTYPE TS><TS version="2.0">\n', "config", "xml"),
        ("app.ts", "export const a = <T>(x: T) => x;\n", "code", "typescript"),
        ("cast.ts", "<any>window;\n", "code", "typescript"),
        (
            "manifests/init.pp",
            "class nginx (String $user = 'www') {\n  package { 'nginx': ensure => present }\n}\n",
            "code",
            "puppet",
        ),
        ("site.pp", "node default {\n  include apt\n}\n", "code", "puppet"),
        ("vhost.pp", "define apache::vhost($port) {\n}\n", "code", "puppet"),
        ("unit1.pp", "unit Unit1;\ninterface\ntype\n  TShop = class(TObject)\n  end;\nend.\n", "code", "pascal"),
        ("View.h", "#import <UIKit/UIKit.h>\n@interface View : UIView\n@end\n", "code", "objc"),
        ("Proto.h", "@protocol Shop <NSObject>\n- (void)sell;\n@end\n", "code", "objc"),
        ("Fwd.h", "@class Cart;\nNSString *name(Cart *cart);\n", "code", "objc"),
        ("geo.h", "/** @class Point */\nclass Point {};\n", "code", "cpp"),
        ("main.o.d", "main.o: main.c util.h \\\n  shop.h\n", "config", "make"),
        ("deps/x.d", "build/x.o build/x.d: src/x.c\n", "config", "make"),
        ("app.d", "module app;\nimport std.stdio;\nvoid main() { writeln(1); }\n", "code", "d"),
        ("label.d", "void f() {\nagain: goto again;\n}\n", "code", "d"),
        ("trace.d", "#pragma D option quiet\nsyscall::open:entry\n{\n}\n", "code", None),
        ("family.pl", ":- module(family, [parent/2]).\nparent(ann, bob).\n", "code", None),
        ("rules.pl", "grandparent(X, Z) :- parent(X, Y), parent(Y, Z).\n", "code", None),
        ("grammar.pl", "greeting --> [hello], name.\n", "code", None),
        ("run.pl", "use strict;\nmy $x = shift;\nprint $x;\n", "code", "perl"),
        ("add.cl", "__kernel void add(__global float *a) {}\n", "code", "c"),
        ("mul.cl", "kernel void mul(global int *a) {}\n", "code", "c"),
        ("shop.cl", "(defun sell (x) x)\n", "code", "commonlisp"),
        ("Cart.cls", "public with sharing class Cart {\n}\n", "code", "apex"),
        ("Cart.trigger", "trigger Cart on Order (before insert) {}\n", "code", "apex"),
        ("paper.cls", "\\NeedsTeXFormat{LaTeX2e}\n\\ProvidesClass{paper}\n", "doc", None),
        ("Cart.vb.cls", "VERSION 1.0 CLASS\nBEGIN\nEND\n", "code", None),
        ("Index.razor", '@page "/"\n<h1>Hi</h1>\n', "code", "razor"),
        ("Index.cshtml", "@model Cart\n", "code", "razor"),
        ("index.jsp", "<%@ page %>\n", "code", None),
    ],
)
def test_what_a_file_holds_decides_between_languages_that_share_an_ending(name, text, source_type, language):
    kind = classify(name.encode(), text.encode())
    assert (kind.source_type, kind.language) == (source_type, language)


def test_an_m_file_is_objective_c_when_it_imports():
    assert classify(b"a.m", b"function y = f(x)\n").language == "matlab"
    assert classify(b"a.m", b"#import <Foundation/Foundation.h>\n").language == "objc"


@pytest.mark.parametrize(
    ("text", "loader"),
    [
        (b"Title\n=====\n\n.. note:: Restructured.\n", "rst"),
        (b".. _install guide:\n\nText.\n", "rst"),
        (b"   .. code-block:: c\n", "text"),
        (b"and so on\n.. more\n.. _\n", "text"),
        (b"Title\n=====\n\nPlain.\n", "text"),
    ],
)
def test_a_text_file_with_directives_or_targets_is_restructured_text(text, loader):
    assert classify(b"docs/intro.txt", text).loader == loader
    assert classify(b"requirements.txt", text).loader == "code"
    assert classify(b"notes.org", text).loader == "text"


def test_every_language_is_one_of_the_grammar_pack():
    named = {*languages.CODE, *languages.CONFIG, *languages.NAMED_CONFIG, *languages.INTERPRETERS.values()} - {None}
    assert named - {"ejs", "razor"} <= set(get_args(SupportedLanguage))


def test_no_ending_means_two_kinds():
    tables = (languages.CODE, languages.CONFIG, languages.DOCUMENTS)
    endings = [ending for table in tables for words in table.values() for ending in words.split()]
    assert len(endings) == len(set(endings))
