"""What is read from one file of each language; `tests/fixtures/code` holds them."""

from pathlib import Path

import pytest

from docindex_dagster.code.extract import extract
from docindex_dagster.code.parse import parse
from docindex_dagster.code.symbols import Symbol

FIXTURES = Path(__file__).parent.parent / "fixtures" / "code"

LANGUAGES = {
    "inventory.py": "python",
    "session.ts": "typescript",
    "Panel.tsx": "tsx",
    "queue.js": "javascript",
    "Ledger.java": "java",
    "server.go": "go",
    "cache.rs": "rust",
    "buffer.c": "c",
    "matrix.cpp": "cpp",
    "Orders.cs": "csharp",
    "parser.rb": "ruby",
    "Mailer.php": "php",
}

# Lines of the whole definition with comments and decorators, kind, qualified name.
SYMBOLS = {
    "inventory.py": """
        14-31 function retry
        20-29 function retry.decorate
        21-27 function retry.decorate.wrapper
        34-51 class Item
        43-46 method Item.label
        48-51 method Item.parse
        54-73 class Store
        55-56 class Store.Full
        58-60 method Store.__init__
        62-73 method Store.load
        78-79 function main
    """,
    "session.ts": """
        6-12 interface SessionOptions
        9-10 method SessionOptions.onEnd
        14-14 type Handler
        16-19 enum State
        21-54 class Session
        31-34 method Session.constructor
        36-41 method Session.refresh
        43-45 method Session.isOpen
        47-49 method Session.handle
        51-53 method Session.state
        56-58 class Shape
        57-57 method Shape.area
        60-64 function main
        61-61 function main.say
        66-67 function add
        69-69 function parse
        70-72 function parse
        74-76 function ids
        78-80 module legacy
        79-79 function legacy.old
        82-86 module Geometry
        83-85 function Geometry.norm
    """,
    "Panel.tsx": """
        4-7 type PanelProps
        9-19 function Panel
        12-12 function Panel.toggle
        21-24 function useFold
        26-40 class Boundary
        29-31 method Boundary.getDerivedStateFromError
        33-39 method Boundary.render
    """,
    "queue.js": """
        9-38 class Queue
        15-17 method Queue.of
        19-22 method Queue.constructor
        24-29 method Queue.run
        31-33 method Queue.onError
        35-37 method Queue.[Symbol.iterator]
        40-46 function read
        42-44 function read.resolve
        48-48 function later
        50-50 function double
        50-50 function half
        52-54 function legacy
        56-60 function count
        62-64 method module.exports.close
        66-68 function Badge
    """,
    "Ledger.java": """
        7-59 class Ledger
        17-20 method Ledger.Ledger
        22-26 method Ledger.close
        28-38 method Ledger.post
        31-34 method Ledger.post.run
        40-49 class Ledger.Entry
        42-44 method Ledger.Entry.Entry
        46-48 method Ledger.Entry.isDebit
        51-58 enum Ledger.Side
        55-57 method Ledger.Side.other
        61-68 interface Auditor
        62-63 method Auditor.accepts
        65-67 method Auditor.name
        70-72 interface Audited
        71-71 method Audited.by
    """,
    "server.go": """
        15-19 struct Server
        21-26 interface Store
        23-24 method Store.Get
        29-30 type Option
        32-34 struct options
        37-37 type Alias
        39-48 function New
        50-57 method Server.ServeHTTP
        59-62 method options.Limit
        60-60 struct options.Limit.local
        64-64 function main
    """,
    "cache.rs": """
        7-8 constant TTL
        10-17 struct Entry
        19-23 enum Error
        25-25 type Result
        27-35 trait Storable
        29-30 method Storable.size
        32-34 method Storable.is_empty
        37-55 impl Entry
        38-46 method Entry.new
        42-44 function Entry.new.now
        48-54 method Entry.refresh
        57-61 impl Entry
        58-60 method Entry.fmt
        63-68 module helpers
        65-67 function helpers.clamp
        70-75 macro entry
        77-80 union Bits
        82-82 constant COUNT
    """,
    "buffer.c": """
        6-6 macro MAX
        8-17 struct buffer
        19-20 enum status
        22-25 union word
        27-27 type offset_t
        29-32 struct node
        29-32 type node_t
        34-36 struct point
        38-38 type visitor
        44-51 function buffer_grow
        53-61 function buffer_line
        63-63 function main
    """,
    "matrix.cpp": """
        6-57 module math
        8-10 module math.detail.impl
        9-9 function math.detail.impl.clamp
        12-42 class math.Matrix
        16-16 enum math.Matrix.Order
        18-19 method math.Matrix.Matrix
        20-20 method math.Matrix.~Matrix
        22-24 method math.Matrix.at
        26-27 method math.Matrix.cast
        29-29 method math.Matrix.print
        31-33 method math.Matrix.operator+=
        35-37 struct math.Matrix.Cell
        44-49 method math.Matrix.multiply
        51-51 method math.Matrix.Matrix
        53-55 function math.operator<<
        59-62 union Value
        64-64 type Table
        65-65 type byte
        67-68 type Number
        70-74 function sum
        76-78 method math.detail.find
    """,
    "Orders.cs": """
        6-68 module Shop.Orders
        8-13 enum Shop.Orders.Status
        15-15 type Shop.Orders.Changed
        17-20 interface Shop.Orders.IRepository
        19-19 method Shop.Orders.IRepository.FindAsync
        22-60 class Shop.Orders.Order
        31-35 method Shop.Orders.Order.Order
        37-37 property Shop.Orders.Order.Number
        39-40 property Shop.Orders.Order.Total
        44-53 method Shop.Orders.Order.PayAsync
        48-51 function Shop.Orders.Order.PayAsync.Accepts
        55-55 method Shop.Orders.Order.+
        57-57 method Shop.Orders.Order.Equals
        59-59 class Shop.Orders.Order.Line
        62-67 struct Shop.Orders.Money
        66-66 method Shop.Orders.Money.Money
    """,
    "parser.rb": """
        6-57 module Config
        10-11 class Config.Error
        13-56 class Config.Parser
        21-24 method Config.Parser.initialize
        26-31 method Config.Parser.parse
        33-35 method Config.Parser.open
        38-40 method Config.Parser.default
        43-43 method Config.Parser.valid?
        45-47 method Config.Parser.<=>
        51-55 method Config.Parser.tokens
        59-61 class Config.Loader
        60-60 method Config.Loader.load
        63-65 method main
    """,
    "Mailer.php": """
        15-21 interface Sendable
        20-20 method Sendable.send
        23-33 trait Queues
        27-32 method Queues.later
        35-44 enum Priority
        40-43 method Priority.default
        46-74 class Mailer
        58-62 method Mailer.__construct
        64-71 method Mailer.send
        73-73 method Mailer.body
        76-82 function broadcast
    """,
}

IMPORTS = {
    "inventory.py": ("asyncio", "os.path", "collections.abc", "dataclasses", ".", "..ledger"),
    "session.ts": ("node:events", "./token", "fs", "./errors"),
    "Panel.tsx": ("react", "./Button"),
    "queue.js": ("events", "node:path", "fs"),
    "Ledger.java": ("java.util.List", "java.util.function", "java.util.Objects.requireNonNull"),
    "server.go": ("context", "net/http", "github.com/example/log", "time"),
    "cache.rs": ("std::collections::{BTreeMap, HashMap}", "std::fmt", "crate::clock::Clock as Time"),
    "buffer.c": ("stdio.h", "sys/types.h", "buffer.h"),
    "matrix.cpp": ("vector", "matrix.hpp"),
    "Orders.cs": ("System", "System.Collections.Generic", "System.Math", "System.Text.Json"),
    "parser.rb": ("json", "lexer"),
    "Mailer.php": ("App\\Contracts\\Transport", "App\\Queue", "strlen"),
}

SIGNATURES = [
    ("inventory.py", "retry.decorate.wrapper", "async def wrapper(*args, **kwargs)"),
    ("inventory.py", "Item", "class Item"),
    ("inventory.py", "Store", "class Store[T](dict[str, T])"),
    ("inventory.py", "Store.load", "async def load(self, path: str, *, limit: int = LIMIT) -> Iterator[Item]"),
    ("session.ts", "SessionOptions", "export interface SessionOptions<T = unknown> extends Base"),
    ("session.ts", "Handler", "export type Handler<T> = (value: T) => Promise<void>"),
    ("session.ts", "State", "export const enum State"),
    (
        "session.ts",
        "Session",
        "export class Session<T extends object> extends EventEmitter implements Disposable",
    ),
    ("session.ts", "Session.refresh", "async refresh(force = false): Promise<Token>"),
    ("session.ts", "Session.handle", "handle = async (event: string): Promise<void>"),
    ("session.ts", "add", "export const add = (a: number, b: number): number"),
    ("session.ts", "legacy", 'declare module "legacy"'),
    ("Panel.tsx", "Panel", "export const Panel: React.FC<PanelProps> = ({ title, children })"),
    ("queue.js", "Queue.run", "async run({ limit = LIMIT } = {})"),
    ("queue.js", "double", "double = x"),
    ("queue.js", "module.exports.close", "module.exports.close = function close(queue)"),
    (
        "Ledger.java",
        "Ledger",
        "public final class Ledger<K extends Comparable<K>> extends Base implements AutoCloseable",
    ),
    ("Ledger.java", "Ledger.post", "public <T extends Entry> T post(@NonNull T entry, Function<T, K> key)"),
    ("Ledger.java", "Ledger.Entry", "public record Entry(String account, long cents)"),
    ("server.go", "Server", "type Server[T any] struct"),
    ("server.go", "Store", "type Store[T any] interface"),
    ("server.go", "Option", "Option func(*options)"),
    (
        "server.go",
        "Server.ServeHTTP",
        "func (s *Server[T]) ServeHTTP(w http.ResponseWriter, r *http.Request)",
    ),
    ("cache.rs", "Entry.refresh", "pub async fn refresh<F>(&mut self, load: F) -> Result<()> where F: FnOnce() -> V,"),
    ("cache.rs", "Entry.new", "pub fn new(value: V, clock: &dyn Time) -> Self"),
    ("cache.rs", "entry", "macro_rules! entry"),
    ("buffer.c", "MAX", "#define MAX(a, b)"),
    ("buffer.c", "point", "typedef struct point"),
    ("buffer.c", "visitor", "typedef int (*visitor)(const node_t *node, void *context)"),
    ("buffer.c", "buffer_grow", "static int buffer_grow(struct buffer *buffer, size_t more)"),
    ("matrix.cpp", "math.Matrix", "template <typename T, int N = 4> class Matrix : public Base<T>"),
    ("matrix.cpp", "math.Matrix.print", "virtual void print(std::ostream& out) = 0"),
    (
        "matrix.cpp",
        "math.Matrix.multiply",
        "template <typename T> Matrix<T> Matrix<T>::multiply(const Matrix<T>& other) const",
    ),
    ("matrix.cpp", "sum", "static auto sum(const vector<int>& xs) -> long"),
    (
        "Orders.cs",
        "Shop.Orders.Order.PayAsync",
        "public async Task<bool> PayAsync<T>(T card, CancellationToken token = default) where T : ICard",
    ),
    ("Orders.cs", "Shop.Orders.Order.Number", "public int Number"),
    ("parser.rb", "Config.Parser", "class Parser < Base"),
    ("parser.rb", "Config.Parser.open", "def self.open(path, **options)"),
    ("parser.rb", "Config.Parser.valid?", "def valid?"),
    ("Mailer.php", "Mailer", "final class Mailer extends Base implements Sendable"),
    ("Mailer.php", "Mailer.body", "abstract protected function body(string ...$parts): string|null"),
]

CALLING = [  # parameters and return type
    ("inventory.py", "Item.parse", ("line: str", "/", "*", "strict: bool = False"), '"Item"'),
    ("inventory.py", "main", (), "int"),
    ("inventory.py", "Item", None, None),
    ("session.ts", "Session.refresh", ("force = false",), "Promise<Token>"),
    ("Panel.tsx", "useFold", ("initial: T",), "[T, (value: T) => void]"),
    ("queue.js", "double", ("x",), None),
    ("Ledger.java", "Ledger.close", (), "void"),
    ("server.go", "options.Limit", (), "(limit int, ok bool)"),
    ("server.go", "New", ("addr string", "store Store[T]", "opts ...Option"), "*Server[T]"),
    ("cache.rs", "Storable.size", ("&self",), "usize"),
    ("buffer.c", "buffer_line", ("const struct buffer *buffer", "int number", "..."), "char *"),
    ("matrix.cpp", "math.Matrix.operator+=", ("const Matrix& other",), "Matrix &"),
    ("matrix.cpp", "sum", ("const vector<int>& xs",), "long"),
    ("Orders.cs", "Shop.Orders.Order.PayAsync", ("T card", "CancellationToken token = default"), "Task<bool>"),
    ("parser.rb", "Config.Parser.initialize", ("path", "strict: false", "&block"), None),
    ("Mailer.php", "broadcast", ("iterable $mailers", "callable $then"), "void"),
]

DECORATORS = [
    ("inventory.py", "Item", ("@dataclass(frozen=True)",)),
    ("inventory.py", "Item.label", ("@property",)),
    ("inventory.py", "Store", None),
    ("session.ts", "Session", ('@Injectable({ scope: "request" })',)),
    ("session.ts", "Session.refresh", ("@Log()",)),
    ("Ledger.java", "Ledger.close", ("@Override", '@Deprecated(since = "2")')),
    ("cache.rs", "Entry.new", ("#[inline]", "#[must_use]")),
    ("matrix.cpp", "sum", ("[[nodiscard]]",)),
    ("Orders.cs", "Shop.Orders.Order", ("[Serializable]", '[Table("orders")]')),
    ("Mailer.php", "Mailer.send", ("#[Retry(times: 3)]",)),
]

DOCSTRINGS = [
    ("inventory.py", "retry", "Call an async function again when it fails.\n\nOnly `OSError` is retried."),
    ("inventory.py", "Item", "One kind of thing."),
    ("inventory.py", "Store.load", "Read items from a file."),
    ("inventory.py", "Store", None),
    ("session.ts", "Session", "Holds what a user may do.\n\nNot safe for use by two tabs."),
    ("session.ts", "SessionOptions.onEnd", "Called once the session ends."),
    ("Panel.tsx", "Boundary.render", "Shows the panel, or nothing at all."),
    ("queue.js", "read", "Reads one file."),
    ("Ledger.java", "Ledger", "Keeps the accounts of one bank.\n\n@param <K> the kind of key"),
    ("server.go", "New", "New makes a server.\n\nIt does not listen yet."),
    ("server.go", "Option", "Option changes a server."),
    ("server.go", "Server.ServeHTTP", None),
    ("cache.rs", "Entry.new", "Makes an entry that is born now."),
    ("buffer.c", "buffer", "A growing array of bytes."),
    ("matrix.cpp", "math.Matrix", "A dense matrix."),
    ("Orders.cs", "Shop.Orders.Order", "One order of one customer."),
    ("parser.rb", "Config.Parser", "Turns text into settings.\n\nOne parser reads one file."),
    ("Mailer.php", "Mailer", "Sends one message.\n\n@template T"),
]


def symbols_of(code: str | bytes, language: str) -> tuple[Symbol, ...]:
    source = code.encode() if isinstance(code, str) else code
    return extract(parse(source, language), source, language).symbols


def fixture_symbols(file: str) -> tuple[Symbol, ...]:
    return symbols_of((FIXTURES / file).read_bytes(), LANGUAGES[file])


def fixture_symbol(file: str, qualified_name: str) -> Symbol:
    return next(symbol for symbol in fixture_symbols(file) if symbol.qualified_name == qualified_name)


@pytest.mark.parametrize("file", SYMBOLS)
def test_symbols_are_found_in_file_order_with_comments_and_decorators(file):
    found = [f"{s.start_line}-{s.end_line} {s.kind} {s.qualified_name}" for s in fixture_symbols(file)]
    assert found == [line.strip() for line in SYMBOLS[file].strip().splitlines()]


@pytest.mark.parametrize("file", SYMBOLS)
def test_qualified_name_is_the_parent_and_the_name(file):
    for symbol in fixture_symbols(file):
        assert symbol.qualified_name == (f"{symbol.parent}.{symbol.name}" if symbol.parent else symbol.name)


@pytest.mark.parametrize("file", SYMBOLS)
def test_lines_are_those_of_the_bytes(file):
    source = (FIXTURES / file).read_bytes()
    for symbol in fixture_symbols(file):
        assert symbol.start_line == source.count(b"\n", 0, symbol.start_byte) + 1
        assert symbol.end_line == source.count(b"\n", 0, symbol.end_byte - 1) + 1


@pytest.mark.parametrize(("file", "imports"), IMPORTS.items())
def test_imports_are_named_as_written(file, imports):
    source = (FIXTURES / file).read_bytes()
    assert extract(parse(source, LANGUAGES[file]), source, LANGUAGES[file]).imports == imports


@pytest.mark.parametrize(("file", "name", "signature"), SIGNATURES)
def test_signature_is_the_head_on_one_line(file, name, signature):
    assert fixture_symbol(file, name).signature == signature


@pytest.mark.parametrize(("file", "name", "parameters", "return_type"), CALLING)
def test_parameters_and_return_type_are_as_written(file, name, parameters, return_type):
    symbol = fixture_symbol(file, name)
    assert (symbol.parameters, symbol.return_type) == (parameters, return_type)


@pytest.mark.parametrize(("file", "name", "decorators"), DECORATORS)
def test_decorators_are_as_written(file, name, decorators):
    assert fixture_symbol(file, name).decorators == decorators


@pytest.mark.parametrize(("file", "name", "docstring"), DOCSTRINGS)
def test_docstring_has_no_comment_marks(file, name, docstring):
    assert fixture_symbol(file, name).docstring == docstring


@pytest.mark.parametrize("file", SYMBOLS)
def test_windows_line_ends_change_no_symbol(file):
    source = (FIXTURES / file).read_bytes().replace(b"\n", b"\r\n")
    unix, windows = fixture_symbols(file), symbols_of(source, LANGUAGES[file])
    assert [(s.qualified_name, s.start_line, s.signature, s.docstring) for s in windows] == [
        (s.qualified_name, s.start_line, s.signature, s.docstring) for s in unix
    ]


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
