"""What is read from one file of each language; `tests/fixtures/code` holds them."""

from pathlib import Path

import pytest

from docindex_dagster.code.extract import Outline, extract
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
    "Catalog.kt": "kotlin",
    "Library.swift": "swift",
    "Bank.scala": "scala",
    "pool.zig": "zig",
    "deploy.sh": "bash",
    "account.lua": "lua",
    "queue.ex": "elixir",
    "Ledger.hs": "haskell",
    "shop.sql": "sql",
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
    "Catalog.kt": """
        9-10 type Lookup
        12-12 constant LIMIT
        14-75 class Catalog
        24-24 property Catalog.seen
        26-28 property Catalog.size
        30-33 property Catalog.pageSize
        35-35 property Catalog.cheap
        41-44 method Catalog.constructor
        46-54 method Catalog.find
        50-50 function Catalog.find.valid
        56-56 method Catalog.find
        58-58 method Catalog.describe
        60-62 method Catalog.close
        65-71 method Catalog.of
        74-74 class Catalog.Cursor
        77-80 class Item
        79-79 method Item.plus
        82-86 interface Source
        83-83 method Source.open
        85-85 method Source.read
        88-90 interface Pricer
        89-89 method Pricer.price
        92-101 enum Size
        95-98 class Size.LARGE
        97-97 method Size.LARGE.next
        100-100 method Size.next
        103-108 class Registry
        105-105 property Registry.items
        107-107 method Registry.open
        110-111 class Price
        113-113 class Audited
        115-116 method List.shorten
        118-118 method Item.isFree
        120-120 property Item.label
        122-122 function double
        124-126 function half
        128-133 function main
        130-130 method main.price
    """,
    "Library.swift": """
        5-6 type Token
        8-8 constant limit
        12-87 class Shelf
        18-26 enum Shelf.Failure
        22-25 property Shelf.Failure.isFull
        28-28 property Shelf.books
        30-34 property Shelf.count
        36-38 method Shelf.sorter
        40-40 property Shelf.empty
        42-46 method Shelf.init
        48-50 method Shelf.init
        52-54 method Shelf.deinit
        56-70 method Shelf.lend
        65-65 function Shelf.lend.known
        72-74 method Shelf.lend
        76-78 method Shelf.open
        80-82 method Shelf.subscript
        84-86 method Shelf.==
        89-99 interface Readable
        91-91 type Readable.ID
        93-93 property Readable.title
        95-95 method Readable.init
        97-98 method Readable.read
        101-107 struct Point
        102-102 property Point.x
        104-106 method Point.move
        109-112 enum Tree
        114-121 class Counter
        115-115 property Counter.value
        117-120 method Counter.increment
        123-127 impl Shelf
        124-124 property Shelf.description
        126-126 method Shelf.dump
        129-131 impl Array
        130-130 method Array.total
        133-134 function double
        136-136 function <+>
        138-139 macro checked
        141-147 function run
    """,
    "Bank.scala": """
        8-9 type Id
        11-17 trait Failure
        13-13 method Failure.message
        15-16 method Failure.shown
        19-26 class Failure
        20-20 class Failure.Closed
        20-20 method Failure.Closed.message
        22-25 class Failure.Short
        24-24 method Failure.Short.message
        28-73 class Bank
        37-37 type Bank.Entry
        38-38 type Bank.Result
        40-40 property Bank.entries
        41-41 property Bank.Limit
        42-42 property Bank.first
        44-45 method Bank.this
        47-58 method Bank.post
        54-54 function Bank.post.valid
        60-60 method Bank.post
        62-62 method Bank.+
        64-64 method Bank.describe
        66-68 method Bank.close
        70-72 class Bank.Cursor
        71-71 method Bank.Cursor.next
        75-88 class Bank
        76-76 method Bank.double
        78-78 property Bank.half
        80-81 method Bank.apply
        83-85 class Bank.Shorter
        84-84 method Bank.Shorter.shorten
        87-87 method Bank.toId
        90-98 enum Side
        95-98 method Side.other
        101-104 enum Shape
        106-109 trait Show
        108-108 method Show.show
        109-109 method Show.print
        111-112 impl Show
        112-112 method Show.show
        114-114 property names
        116-119 class Amounts
        117-117 type Amounts.Amount
        122-123 method List.joined
        126-128 module syntax
        127-127 method syntax.times
        130-132 function run
    """,
    "pool.zig": """
        10-10 constant Allocator
        12-13 constant limit
        15-15 property open_count
        17-21 enum Error
        23-48 function Pool
        33-36 method Pool.init
        38-46 method Pool.take
        50-87 struct Connection
        55-62 enum Connection.State
        59-61 method Connection.State.isBusy
        64-64 constant Connection.timeout
        66-77 method Connection.open
        79-86 method Connection.close
        80-84 struct Connection.close.Closer
        81-83 method Connection.close.Closer.run
        89-96 union Value
        93-95 method Value.isNumber
        98-101 struct Header
        103-105 struct Handle
        104-104 method Handle.handle_free
        107-108 type Visitor
        110-110 function socket
        112-115 function pool_add
        117-117 property pool_version
        119-119 constant shut
        123-127 function less
        124-126 method less.compare
        133-133 function hidden
        135-139 function main
        141-143 function takes nothing from an empty pool
    """,
    "deploy.sh": """
        9-10 constant TIMEOUT
        11-11 constant RELEASES
        11-11 constant KEEP
        16-25 function usage
        27-32 function upload
        34-42 function switch_to
        37-40 function switch_to.relink
        44-44 method lib.host_is_up
        46-56 function each_host
        58-58 function wait_all
        61-64 function report
        66-66 function report
        74-81 function main
    """,
    "account.lua": """
        7-7 constant LIMIT
        16-24 function Account.new
        26-35 method Account.deposit
        37-39 method Account.history.add
        41-54 function dump
        46-49 function dump.quote
        51-51 function dump.pad
        56-60 function M.transfer
        70-73 function Handlers.open
        74-74 function Handlers.close
        76-76 function daily
        81-81 function double
        83-83 function Account.__eq
        86-86 function globally
        91-91 function M.spelled out
    """,
    "queue.ex": """
        1-101 module Shop.Queue
        14-14 constant Shop.Queue.limit
        17-18 type Shop.Queue.id
        19-19 type Shop.Queue.state
        20-20 type Shop.Queue.token
        22-23 method Shop.Queue.take
        24-24 macro Shop.Queue.traced
        30-36 function Shop.Queue.start_link
        38-41 function Shop.Queue.put
        43-45 function Shop.Queue.put
        47-47 function Shop.Queue.put
        49-50 function Shop.Queue.size
        54-57 function Shop.Queue.init
        59-70 function Shop.Queue.handle_call
        72-76 function Shop.Queue.push
        78-86 macro Shop.Queue.timed
        88-88 macro Shop.Queue.is_late
        89-89 macro Shop.Queue.is_big
        90-90 function Shop.Queue.all
        92-92 function Shop.Queue.<~>
        93-93 function Shop.Queue.-
        95-100 module Shop.Queue.Full
        99-99 function Shop.Queue.Full.exception
        103-107 interface Shop.Priced
        104-106 method Shop.Priced.price
        109-111 impl Shop.Job
        110-110 method Shop.Job.price
        113-115 impl List
        114-114 method List.price
    """,
    "Ledger.hs": """
        19-20 type Key
        22-23 type Elem
        25-35 enum Ledger
        37-37 struct Account
        39-41 enum Term
        43-51 class Auditor
        45-45 type Auditor.Report
        47-49 method Auditor.accepts
        51-51 method Auditor.name
        51-51 method Auditor.title
        53-57 impl Ledger
        55-57 method Ledger.<>
        59-65 impl Account
        60-65 method Account.accepts
        62-65 function Account.accepts.go
        69-86 function post
        86-86 function post.clamp
        88-90 function total
        93-93 function double
        94-94 function half
        98-100 function <+>
        102-102 function limitOf
        104-105 function twice
        107-110 function clamped
        115-115 function c_sin
        117-121 function main
        119-119 function main.greet
    """,
    "shop.sql": """
        4-4 module shop
        6-7 enum shop.status
        9-12 struct shop.money
        14-22 struct shop.customers
        24-30 struct Orders
        32-32 property Orders.orders_by_customer
        34-34 struct archive.orders
        35-35 struct scratch
        37-43 type shop.open_orders
        45-49 type best_customers
        51-63 function shop.order_total
        65-67 function shop.order_total
        69-78 function touch
        80-81 function Orders.orders_touch
        83-84 function shop.Late Orders
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
    "Catalog.kt": ("kotlinx.coroutines.delay", "kotlin.math.max", "shop.money"),
    "Library.swift": ("Foundation", "Network.Endpoint", "LibraryCore"),
    "Bank.scala": (
        "scala.concurrent.{ExecutionContext, Future}",
        "scala.util.chaining._",
        "java.time.Instant, java.util.UUID",
        "bank.money.Cents as Money",
    ),
    "pool.zig": ("std", "builtin", "config.zig", "sys/socket.h", "extra.zig"),
    "deploy.sh": ('$(dirname "$0")/lib/log.sh', "./lib/retry.sh", "$HOME/.fleet"),
    "account.lua": ("cjson.safe", "bank.clock", "bank.log", "bank.optional"),
    "queue.ex": ("GenServer", "Ecto.Query", "Shop.{Job, Worker}", "Shop.Clock", "Logger"),
    "Ledger.hs": ("Data.Map.Strict", "Data.List", "Prelude", "Data.Text"),
    "shop.sql": ("pgcrypto",),
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
    (
        "Catalog.kt",
        "Catalog",
        (
            "abstract class Catalog<T : Comparable<T>>(private val source: Source<T>, val limit: Int = LIMIT)"
            " : Base(source), AutoCloseable"
        ),
    ),
    ("Catalog.kt", "Catalog.find", "suspend fun find(key: T, retries: Int = 3): Item?"),
    ("Catalog.kt", "Catalog.size", "val size: Int"),
    ("Catalog.kt", "Catalog.pageSize", "var pageSize: Int"),
    ("Catalog.kt", "Catalog.constructor", "constructor(limit: Int)"),
    (
        "Catalog.kt",
        "Catalog.of",
        "fun <T : Comparable<T>> of(source: Source<T>, limit: Int = LIMIT): Catalog<T> where T : Any",
    ),
    ("Catalog.kt", "LIMIT", "const val LIMIT = 20"),
    ("Catalog.kt", "List.shorten", "inline fun <reified T> List<T>.shorten(limit: Int): List<T>"),
    (
        "Library.swift",
        "Shelf",
        "public final class Shelf<Book: Readable & Sendable>: Base, ObservableObject where Book.ID == Token",
    ),
    (
        "Library.swift",
        "Shelf.lend",
        "public func lend(_ token: Token, to reader: inout Reader, days: Int = 14) async throws -> Book?",
    ),
    ("Library.swift", "Shelf.count", "public var count: Int"),
    ("Library.swift", "Shelf.books", "private(set) var books: [Book]"),
    ("Library.swift", "Array", "extension Array where Element == Int"),
    ("Library.swift", "double", "let double"),
    ("Library.swift", "checked", "public macro checked<T>(_ value: T) -> (T, String)"),
    (
        "Bank.scala",
        "Bank",
        (
            "abstract class Bank[K <: Comparable[K], +V](val name: String, limit: Int = 20)"
            "(implicit ec: ExecutionContext) extends Base(name) with AutoCloseable"
        ),
    ),
    (
        "Bank.scala",
        "Bank.post",
        "def post[T <: V](key: K, value: => T, more: T*)(using clock: Clock): Future[Either[Failure, T]]",
    ),
    ("Bank.scala", "Bank.Limit", "val Limit: Int"),
    ("Bank.scala", "Side", "enum Side(val sign: Int)"),
    ("Bank.scala", "names", "given names: Ordering[String]"),
    ("pool.zig", "Pool", "pub fn Pool(comptime T: type, comptime size: usize) type"),
    ("pool.zig", "Connection", "pub const Connection = struct"),
    ("pool.zig", "Connection.State", "pub const State = enum(u8)"),
    (
        "pool.zig",
        "Connection.open",
        "pub fn open(allocator: Allocator, comptime name: []const u8, args: anytype) !*Connection",
    ),
    ("pool.zig", "socket", 'extern "c" fn socket(domain: c_int, kind: c_int, ...) c_int'),
    ("pool.zig", "open_count", "threadlocal var open_count: u32 = 0"),
    ("deploy.sh", "upload", "function upload"),
    ("deploy.sh", "switch_to", "function switch_to()"),
    ("deploy.sh", "TIMEOUT", "readonly TIMEOUT=30"),
    ("account.lua", "Account.deposit", "function Account:deposit(amount, note)"),
    ("account.lua", "M.transfer", "M.transfer = function(from, to, amount)"),
    ("account.lua", "dump.pad", "local pad = function(n)"),
    ("queue.ex", "Shop.Queue", "defmodule Shop.Queue"),
    ("queue.ex", "Shop.Queue.start_link", "def start_link(opts \\\\ [])"),
    ("queue.ex", "Shop.Queue.handle_call", "def handle_call({:put, job}, _from, state)"),
    ("queue.ex", "Shop.Queue.is_late", "defguard is_late(job) when job.due < 0"),
    ("queue.ex", "Shop.Queue.all", "defdelegate all(), to: Worker, as: :jobs"),
    ("queue.ex", "List", "defimpl Shop.Priced, for: [List, Map]"),
    ("Ledger.hs", "Ledger", "data Ledger k a"),
    ("Ledger.hs", "Auditor", "class (Show a) => Auditor a"),
    ("Ledger.hs", "Account.accepts.go", "go :: Int -> Bool"),
    ("Ledger.hs", "post", "post :: (Ord k) => k -> Int -> Ledger k Int -> Either Text (Ledger k Int)"),
    ("Ledger.hs", "half", "half x"),
    ("shop.sql", "shop.customers", "CREATE TABLE IF NOT EXISTS shop.customers"),
    ("shop.sql", "shop.status", "CREATE TYPE shop.status"),
    ("shop.sql", "shop.open_orders", "CREATE OR REPLACE VIEW shop.open_orders"),
    ("shop.sql", "touch", "CREATE OR REPLACE FUNCTION touch() RETURNS trigger"),
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
    ("Catalog.kt", "Catalog", ("private val source: Source<T>", "val limit: Int = LIMIT"), None),
    ("Catalog.kt", "Catalog.find", ("key: T", "retries: Int = 3"), "Item?"),
    ("Catalog.kt", "Catalog.describe", ("vararg keys: T",), "String"),
    ("Catalog.kt", "Catalog.close", (), None),
    ("Catalog.kt", "Catalog.size", None, "Int"),
    ("Catalog.kt", "double", ("price: Long",), None),
    ("Catalog.kt", "half", ("price: Long",), "Long"),
    ("Library.swift", "Shelf.lend", ("_ token: Token", "to reader: inout Reader", "days: Int = 14"), "Book?"),
    ("Library.swift", "Shelf.init", ("limit: Int = 20", "_ names: String..."), None),
    ("Library.swift", "Shelf.subscript", ("index: Int",), "Book"),
    ("Library.swift", "Shelf.sorter", ("first", "second"), "Bool"),
    ("Library.swift", "Counter.increment", (), "Int"),
    ("Bank.scala", "Bank", ("val name: String", "limit: Int = 20", "ec: ExecutionContext"), None),
    ("Bank.scala", "Bank.post", ("key: K", "value: => T", "more: T*", "clock: Clock"), "Future[Either[Failure, T]]"),
    ("Bank.scala", "Bank.describe", None, "String"),
    ("Bank.scala", "Bank.double", ("cents: Long",), None),
    ("pool.zig", "Pool.take", ("self: *Self",), "Error!T"),
    (
        "pool.zig",
        "Connection.open",
        ("allocator: Allocator", "comptime name: []const u8", "args: anytype"),
        "!*Connection",
    ),
    ("pool.zig", "socket", ("domain: c_int", "kind: c_int", "..."), "c_int"),
    ("pool.zig", "pool_add", ("a: u32", "b: u32"), "u32"),
    ("deploy.sh", "upload", None, None),
    ("account.lua", "Account.new", ("owner", "..."), None),
    ("account.lua", "Account.deposit", ("amount", "note"), None),
    ("queue.ex", "Shop.Queue.push", ("%{jobs: jobs} = state", "job"), None),
    ("queue.ex", "Shop.Queue.take", ("id",), "{:ok, Job.t()} | :error"),
    ("queue.ex", "Shop.Queue.size", None, None),
    ("Ledger.hs", "Auditor.accepts", ("_", "_"), "Bool"),
    ("Ledger.hs", "post", ("_", "_", "Closed"), "Either Text (Ledger k Int)"),
    ("Ledger.hs", "c_sin", None, "Double"),
    ("Ledger.hs", "main", None, "IO ()"),
    (
        "shop.sql",
        "shop.order_total",
        ("IN customer_id bigint", "since timestamptz DEFAULT '2020-01-01'"),
        "numeric",
    ),
    ("shop.sql", "shop.Late Orders", ("days int",), "SETOF shop.money"),
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
    ("Catalog.kt", "Catalog", ("@Serializable",)),
    ("Catalog.kt", "Catalog.find", ("@Throws(IOException::class)", "@JvmOverloads")),
    ("Catalog.kt", "Item", None),
    ("Library.swift", "Shelf", ("@MainActor", "@available(iOS 15, *)")),
    ("Library.swift", "Shelf.books", ("@Published",)),
    ("Bank.scala", "Bank", ('@deprecated("use Vault", since = "2")',)),
    ("Bank.scala", "Bank.post", ("@throws[IllegalStateException]", "@inline")),
    ("Bank.scala", "run", ("@main",)),
    ("pool.zig", "main", None),
    ("queue.ex", "Shop.Queue.put", ('@deprecated "Use push/2"',)),
    ("queue.ex", "Shop.Queue.handle_call", ("@impl GenServer",)),
    ("queue.ex", "Shop.Queue.push", ("@spec push(%__MODULE__{}, Job.t()) :: %__MODULE__{}",)),
    ("Ledger.hs", "clamped", ("{-# INLINE clamped #-}",)),
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
    ("Catalog.kt", "Catalog", "What can be sold.\n\n@param T what it is known by"),
    ("Catalog.kt", "Catalog.find", None),
    ("Catalog.kt", "Lookup", "Looks a price up."),
    ("Library.swift", "Shelf", "A shelf of books.\n\nNot safe for use by two readers."),
    ("Library.swift", "Shelf.lend", "Lends one book."),
    ("Library.swift", "Shelf.init", None),
    ("Bank.scala", "Bank", "Keeps the accounts of one bank.\n\n@tparam K the kind of key"),
    ("Bank.scala", "List.joined", "Joins them."),
    ("Bank.scala", "Failure.shown", None),
    ("pool.zig", "Pool", "Holds what may be used again.\n\nNot safe for use by two threads."),
    ("pool.zig", "Pool.init", "Makes an empty pool."),
    ("pool.zig", "Connection.open", None),
    ("deploy.sh", "usage", "Says how the script is called.\n\nNothing is read but the name of the script."),
    ("deploy.sh", "switch_to.relink", "Points at what runs now."),
    (
        "account.lua",
        "Account.new",
        "Makes an account.\nIt starts without any money.\n@param owner string\n@return Account",
    ),
    ("account.lua", "dump", "Turns a table into text.\nKeys are sorted."),
    ("account.lua", "Handlers.open", "Called once the bank opens."),
    ("queue.ex", "Shop.Queue", "Keeps jobs until a worker takes them.\n\nNot meant for more than one node."),
    ("queue.ex", "Shop.Queue.id", "What a job is known by."),
    ("queue.ex", "Shop.Queue.start_link", "Starts a queue.\n\nIt takes the name of its module."),
    ("queue.ex", "Shop.Queue.timed", "Runs a block and logs how long it took, as `#{ms}`."),
    ("queue.ex", "Shop.Queue.push", None),
    ("queue.ex", "Shop.Queue.size", None),
    ("Ledger.hs", "Ledger", "All accounts of a bank.\n\nNever empty."),
    ("Ledger.hs", "clamped", "At most a hundred."),
    ("Ledger.hs", "post", "Posts an amount.\n\nAmounts below zero are refused."),
    ("Ledger.hs", "twice", "Not a word of Haddock."),
    ("shop.sql", "shop.customers", "Who buys.\nOne row a person."),
    ("shop.sql", "shop.order_total", "Adds up the orders of a customer.\n\nThose that are not paid count too."),
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


# What is called, each name once, in the order of the file.
CALLS = {
    "inventory.py": """
        range function asyncio.sleep field line.partition Item int __init__ super len self.Full osp.join
        open Item.parse units.run main
    """,
    "session.ts": """
        this.token.renew this.state this.dispatch console.log say argv.join fs.parse Math.abs
    """,
    "Panel.tsx": """
        useState setOpen
    """,
    "queue.js": """
        require Queue slice job this.emit path.join fs.promises.readFile resolve Promise setTimeout once
    """,
    "Ledger.java": """
        requireNonNull entries.clear Runnable entries.add task.run
    """,
    "server.go": """
        opt s.store.Get r.Context log.Print
    """,
    "cache.rs": """
        self.size clock.seconds now load Ok write x.min
    """,
    "buffer.c": """
        strchr
    """,
    "Orders.cs": """
        Round lines.Sum Accepts card.Charge left.With
    """,
    "parser.rb": """
        require require_relative include attr_reader tokens.each block_given? new parse @path.nil?
        other.path JSON.parse File.read raise e.message names.map Config::Parser.open puts
    """,
    "Mailer.php": """
        trim $transport.deliver $mailer.send
    """,
    "Bank.scala": """
        this valid Future.successful Right Future.failed IllegalStateException keys.foreach println
        entries.keys.map foreach Cursor bank.core.internal.Opener.open text.take mkString to Bank bank.post
    """,
    "Catalog.kt": """
        mutableMapOf larger lazy seen.values.filter source.open emptySource println repeat delay source.read
        takeIf keys.mapNotNull source.close shop.catalog.internal.open Item HashMap take args.forEach
        registry.price
    """,
    "Ledger.hs": """
        Map.union accounts go Map.insertWith min sortOn Map.elems div f putStrLn greet mapM_ total
    """,
    "Library.swift": """
        books.removeLast Shelf super.init names.forEach print self.init books.removeAll books.first
        Failure.missing reader.inbox.receive tokens.compactMap reduce Foundation.Thread.sleep append make
        Box body
    """,
    "account.lua": """
        require new pcall setmetatable tag assert info json.encode clock.now table.insert format string.rep
        pad quote tostring deposit coroutine.wrap io.lines coroutine.yield M.transfer Account.new
    """,
    "deploy.sh": """
        set dirname cat retry cd ln relink ping shift lib::host_is_up log::warn jobs wait printf sort uniq
        trap usage exit upload wait_all each_host report main
    """,
    "pool.zig": """
        create destroy print run Pool init take expectError main hidden
    """,
    "queue.ex": """
        pos_integer Job.t Macro.t GenServer.start_link is_integer GenServer.call is_list Enum.each put
        length all Keyword.get Logger.debug Process.send_after self later push Enum.take then quote
        Logger.info unquote Time.now Enum.zip Enum.map Shop.Priced.price Enum.sum
    """,
    "shop.sql": """
        now gen_random_uuid lower coalesce sum rank count touch shop.order_total upper
    """,
}

EXPORTS = {
    "session.ts": "SessionOptions Handler State Session default main add old norm",
    "Panel.tsx": "Panel useFold Boundary default",
    "queue.js": "Queue read later Badge",
    "server.go": "Server Store Option Alias New",
    "cache.rs": "TTL Entry Error Result Storable",
    "Bank.scala": "apply twice",
    "Ledger.hs": "Ledger Account owner Auditor post + total Data.Map",
    "deploy.sh": "FLEET_REGION upload main each_host",
    "pool.zig": "pool_add pool_version hidden",
}


def outline_of(file: str) -> Outline:
    source = (FIXTURES / file).read_bytes()
    return extract(parse(source, LANGUAGES[file]), source, LANGUAGES[file])


@pytest.mark.parametrize("file", sorted(CALLS))
def test_what_is_called_is_told_by_its_path(file):
    calls = outline_of(file).calls

    assert list(dict.fromkeys(call.name for call in calls)) == CALLS[file].split()
    assert [call.start_byte for call in calls] == sorted(call.start_byte for call in calls)


@pytest.mark.parametrize("file", sorted(EXPORTS))
def test_what_is_exported_in_words_is_told(file):
    assert outline_of(file).exports == tuple(EXPORTS[file].split())
