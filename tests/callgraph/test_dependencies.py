"""A file is resolved again after any change in a file that was read for it, for each kind of lookup."""

from collections.abc import Mapping

import pytest

from docindex_dagster.graph.source_graph import Graph
from tests.graph.built import build_graph, update_graph
from tests.graph.samples import chunks_of

Edge = tuple[str, str, str]

PAINT = "class Paint:\n    def mix(self): ...\n"
INK = "class Ink:\n    def mix(self): ...\n"
ZIG_PAINT = 'const List = @import("a.zig").List;\nconst Paint = struct { pub fn mix(_: Paint) void {} };\n'
# Each change to the second file, and the edge of the first file that it adds.
CASES: dict[str, tuple[dict[str, str], tuple[str, str, str], Edge]] = {
    "a definition by its name": (
        {"a.rb": "def go\n  Paint.new.mix\nend\n"},
        ("b.rb", "", "class Paint\n  def mix\n  end\nend\n"),
        ("a.rb::go", "calls", "b.rb::Paint.mix"),
    ),
    "a definition by its full name": (
        {"a.java": "package shop;\nclass A {\n  void go() { Paint.mix(); }\n}\n"},
        ("b.java", "package shop;\n", "package shop;\nclass Paint {\n  static void mix() {}\n}\n"),
        ("a.java::A.go", "calls", "b.java::Paint.mix"),
    ),
    "a function that is added to a type": (
        {"a.kt": "package shop\nclass Paint\nfun go(paint: Paint) { paint.mix() }\n"},
        ("b.kt", "package shop\n", "package shop\nfun Paint.mix() {}\n"),
        ("a.kt::go", "calls", "b.kt::Paint.mix"),
    ),
    "who calls a function": (
        {"a.py": f"{PAINT}def go(one):\n    one.mix()\n"},
        ("b.py", "import a\n", "import a\na.go(a.Paint())\n"),
        ("a.py::go", "calls", "a.py::Paint.mix"),
    ),
    "who calls a function with something else": (
        {"a.py": f"{PAINT}{INK}def go(one):\n    one.mix()\n"},
        ("b.py", "import a\na.go(a.Paint())\n", "import a\na.go(a.Ink())\n"),
        ("a.py::go", "calls", "a.py::Ink.mix"),
    ),
    "who is given a function": (
        {"a.py": f"{PAINT}def go(one):\n    one.mix()\n"},
        ("b.py", "", "import a\ndef each(call):\n    call(a.Paint())\neach(a.go)\n"),
        ("a.py::go", "calls", "a.py::Paint.mix"),
    ),
    "a derived class": (
        {"a.py": "class Base:\n    def mix(self): ...\ndef go(one: Base):\n    one.mix()\n"},
        ("b.py", "import a\n", "import a\nclass Paint(a.Base):\n    def mix(self): ...\n"),
        ("a.py::go", "may_call", "b.py::Paint.mix"),
    ),
    "the base of a derived class": (
        {"a.py": "class Base:\n    def mix(self): ...\nclass Other: ...\ndef go(one: Base):\n    one.mix()\n"},
        (
            "b.py",
            "from a import Base, Other\nclass Paint(Other):\n    def mix(self): ...\n",
            "from a import Base, Other\nclass Paint(Base):\n    def mix(self): ...\n",
        ),
        ("a.py::go", "may_call", "b.py::Paint.mix"),
    ),
    "an assignment to a field": (
        {"a.go": "package shop\n\ntype Shop struct {\n\tgo_ func()\n}\n\nfunc run(s *Shop) { s.go_() }\n"},
        ("b.go", "package shop\n", "package shop\n\nfunc mix() {}\n\nfunc fill(s *Shop) { s.go_ = mix }\n"),
        ("a.go::run", "calls", "b.go::mix"),
    ),
    "an object that is written with its fields": (
        {"a.go": "package shop\n\ntype Shop struct {\n\tgo_ func()\n}\n\nfunc run(s *Shop) { s.go_() }\n"},
        ("b.go", "package shop\n", "package shop\n\nfunc mix() {}\n\nvar shop = Shop{go_: mix}\n"),
        ("a.go::run", "calls", "b.go::mix"),
    ),
    "what is put into a field in C": (
        {
            "a.h": "struct shop { void (*go)(void); };\n",
            "a.c": '#include "a.h"\nvoid run(struct shop *s) { s->go(); }\n',
        },
        (
            "b.c",
            '#include "a.h"\nstatic void mix(void) {}\n',
            '#include "a.h"\nstatic void mix(void) {}\nvoid fill(struct shop *s) { s->go = mix; }\n',
        ),
        ("a.c::run", "calls", "b.c::mix"),
    ),
    "which file declares a function": (
        {"a.c": '#include "b.h"\nvoid run(void) { mix(); }\n', "c.c": "void mix(void) {}\n"},
        ("b.h", "\n", "void mix(void);\n"),
        ("a.c::run", "calls", "c.c::mix"),
    ),
    "a variable of another file": (
        {"a.c": '#include "b.h"\nvoid run(void) { hook(); }\n'},
        ("b.h", "static void mix(void) {}\n", "static void mix(void) {}\nstatic void (*hook)(void) = mix;\n"),
        ("a.c::run", "calls", "b.h::mix"),
    ),
    "a name of the same folder": (
        {"a.go": "package shop\n\nfunc run() { mix() }\n"},
        ("b.go", "package shop\n", "package shop\n\nfunc mix() {}\n"),
        ("a.go::run", "calls", "b.go::mix"),
    ),
    "a namespace": (
        {"a.cs": "namespace Shop;\nclass A {\n  void Go() { Stock.Paint.Mix(); }\n}\n"},
        ("b.cs", "\n", "namespace Stock;\nclass Paint {\n  public static void Mix() {}\n}\n"),
        ("a.cs::A.Go", "calls", "b.cs::Paint.Mix"),
    ),
    "a namespace that all files use": (
        {
            "a.cs": "namespace Shop;\nclass A {\n  void Go() { Paint.Mix(); }\n}\n",
            "c.cs": "namespace Stock;\nclass Paint {\n  public static void Mix() {}\n}\n",
        },
        ("b.cs", "\n", "global using Stock;\n"),
        ("a.cs::A.Go", "calls", "c.cs::Paint.Mix"),
    ),
    "what a function calls": (
        {"a.js": "import { each } from './b'\nexport class Paint { mix() {} }\neach((one) => one.mix())\n"},
        (
            "b.js",
            "export function each(call) {}\n",
            "import { Paint } from './a'\nexport function each(call) { call(new Paint()) }\n",
        ),
        ("a.js", "calls", "a.js::Paint.mix"),
    ),
    "a file with fixtures": (
        {"paint.py": PAINT, "test_a.py": "def test_go(one):\n    one.mix()\n"},
        (
            "conftest.py",
            "",
            "import pytest\nfrom paint import Paint\n@pytest.fixture\ndef one():\n    return Paint()\n",
        ),
        ("test_a.py::test_go", "calls", "paint.py::Paint.mix"),
    ),
    "where an import leads": (
        {"a.js": "import { mix } from './b'\nexport function go() { mix() }\n"},
        ("b.js", "", "export function mix() {}\n"),
        ("a.js::go", "calls", "b.js::mix"),
    ),
    "a table of Lua that all files see": (
        {"a.lua": "function go()\n  Paint.mix()\nend\n"},
        ("b.lua", "local x = 1\n", "Paint = {}\nfunction Paint.mix() end\n"),
        ("a.lua::go", "calls", "b.lua::Paint.mix"),
    ),
    "a field of a table of Lua": (
        {"a.lua": "Shop = {}\nShop.__index = Shop\nfunction Shop:go() self.mix() end\n"},
        (
            "b.lua",
            "local function mix() end\n",
            "local function mix() end\nlocal shop = setmetatable({}, Shop)\nshop.mix = mix\n",
        ),
        ("a.lua::Shop.go", "calls", "b.lua::mix"),
    ),
    "a table of Lua that is made from another one": (
        {"a.lua": "local Base = {}\nfunction Base:go() self:mix() end\nfunction Base:mix() end\nreturn Base\n"},
        (
            "b.lua",
            "local Base = require('a')\nlocal Paint = {}\nfunction Paint:mix() end\n",
            "local Base = require('a')\nlocal Paint = setmetatable({}, {__index = Base})\nfunction Paint:mix() end\n",
        ),
        ("a.lua::Base.go", "calls", "b.lua::Paint.mix"),
    ),
    "what a file of Lua gives": (
        {"a.lua": "local b = require('b')\nfunction go() b() end\n"},
        ("b.lua", "local function mix() end\n", "local function mix() end\nreturn mix\n"),
        ("a.lua::go", "calls", "b.lua::mix"),
    ),
    "how many files of Lua define a name for all": (
        {"a.lua": "function go() mix() end\n", "c.lua": "function mix() end\n"},
        ("b.lua", "function mix() end\n", "local function mix() end\n"),
        ("a.lua::go", "calls", "c.lua::mix"),
    ),
    "a file that a shell loads": (
        {"a.sh": "source b.sh\ngo() { mix; }\n"},
        ("b.sh", "", "mix() { :; }\n"),
        ("a.sh::go", "calls", "b.sh::mix"),
    ),
    "who loads a file into a shell": (
        {"a.sh": "go() { mix; }\n", "c.sh": "mix() { :; }\n"},
        ("b.sh", "source c.sh\n", "source c.sh\nsource a.sh\n"),
        ("a.sh::go", "calls", "c.sh::mix"),
    ),
    "a file of a pattern that a shell loads": (
        {"a.sh": 'for part in parts/*.sh; do\n  source "$part"\ndone\ngo() { mix; }\n'},
        ("parts/b.sh", "", "mix() { :; }\n"),
        ("a.sh::go", "calls", "parts/b.sh::mix"),
    ),
    "a file of Zig that is a type": (
        {"a.zig": 'const B = @import("B.zig");\nfn go(b: *B) void { b.mix(); }\n'},
        ("B.zig", "count: u32,\n", "count: u32,\npub fn mix(self: *@This()) void { _ = self; }\n"),
        ("a.zig::go", "calls", "B.zig::mix"),
    ),
    "what a type of Zig is made for": (
        {"a.zig": "pub fn List(comptime T: type) type {\n  return struct { pub fn go(x: T) void { x.mix(); } };\n}\n"},
        ("b.zig", ZIG_PAINT, f"{ZIG_PAINT}const Paints = List(Paint);\n"),
        ("a.zig::List.go", "calls", "b.zig::Paint.mix"),
    ),
}


def edges(graph: Graph) -> set[Edge]:
    triples = graph.triples
    return set(zip(*(triples[name].to_pylist() for name in ("subject", "predicate", "object")), strict=True))


def without_empty(files: Mapping[str, str]) -> dict[str, str]:
    """Return the existing files, skipping files without text."""
    return {path: text for path, text in files.items() if text}


@pytest.mark.parametrize("case", CASES)
def test_what_changes_in_another_file_is_read_again(case):
    files, (path, before, after), edge = CASES[case]
    old = chunks_of(without_empty({**files, path: before}))
    new = chunks_of({**files, path: after})
    graph = build_graph(old)
    assert edge not in edges(graph)

    updated = update_graph(graph, new)

    assert edge in edges(updated)
    assert updated.triples.equals(build_graph(new).triples)
    assert edges(update_graph(updated, old)) == edges(graph)


def test_an_edge_names_the_chunk_that_has_its_line():
    functions = "".join(
        f"def f{n}(order):\n    total = order.total()\n    return f{n + 1}(total)\n\n\n" for n in range(100)
    )
    chunks = chunks_of({"a.py": f"class Order:\n    def total(self): ...\n\n\n{functions}"})
    lines = {row["chunk_id"]: (row["start_line"], row["end_line"]) for row in chunks.to_pylist()}
    assert len(lines) > 3

    for row in build_graph(chunks).triples.to_pylist():
        first, last = lines[row["chunk_id"]]
        assert first <= row["line"] <= last
