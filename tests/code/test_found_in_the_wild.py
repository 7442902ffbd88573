"""Code from real repositories that grammars and queries got wrong."""

import time

import pytest

from docindex_dagster.code.extraction import extract
from docindex_dagster.code.parsers import broken_spans, parse
from docindex_dagster.code.source_rewrites import REWRITES, blank_misplaced_macros, blank_statements
from docindex_dagster.code.symbols import Symbol


def symbols(source: str, language: str) -> list[Symbol]:
    data = source.encode()
    return list(extract(parse(data, language), data, language).symbols)


def outline(source: str, language: str) -> list[str]:
    return [f"{symbol.kind} {symbol.qualified_name}" for symbol in symbols(source, language)]


def is_whole(source: str, language: str) -> bool:
    return not broken_spans(parse(source.encode(), language))


MACROS = """
BEGIN_SHOP_NAMESPACE

// What is sold.
enum Kind { kBook, kFilm };

class SHOP_API SHOP_ALIGNED(8) Basket final : public Base {
 public:
  SHOP_INLINE explicit Basket(int room) : room_(room) {}
  int room() const SHOP_REQUIRES(lock_) { return room_; }
  Item* shop_nonnull first() { return items_; }
};

// Counts the baskets.
SHOP_EXTERN int count_baskets(const Basket* all);

// Sorts.
SHOP_EXPORT template <typename T> struct Sorted {};

// Adds.
SHOP_API Basket* add(Basket* to, int item) { return to; }

END_SHOP_NAMESPACE
"""


def test_macros_that_a_grammar_has_no_place_for() -> None:
    assert is_whole(MACROS, "cpp")
    assert outline(MACROS, "cpp") == [
        "enum Kind",
        "class Basket",
        "method Basket.Basket",
        "method Basket.room",
        "method Basket.first",
        "struct Sorted",
        "function add",
    ]


def test_a_macro_before_a_declaration_belongs_to_it() -> None:
    *_, sorted_, add = symbols(MACROS, "cpp")
    assert (sorted_.signature, sorted_.docstring) == ("SHOP_EXPORT template <typename T> struct Sorted", "Sorts.")
    assert (add.signature, add.decorators, add.docstring) == (
        "Basket* add(Basket* to, int item)",
        ("SHOP_API",),
        "Adds.",
    )


def test_conditionals_that_break_code_are_read_by_their_first_branch() -> None:
    source = """
    int wait_for(int events) {
    #ifdef HAVE_EPOLL
      while (epoll_ready(events)) {
    #else
      while (poll_ready(events)) {
    #endif
        handle(events);
      }
      return events;
    }

    int after(void) { return 1; }
    """
    assert is_whole(source, "c")
    assert outline(source, "c") == ["function wait_for", "function after"]


def test_conditionals_of_sound_code_keep_all_branches() -> None:
    source = """
#ifdef _WIN32
int open_win(void) { return 1; }
#else
int open_unix(void) { return 2; }
#endif
"""
    assert outline(source, "c") == ["function open_win", "function open_unix"]


def test_a_default_method_between_conditionals() -> None:
    source = """
    public interface ILog
    {
        ILog With(string name)
    #if DEFAULT_METHODS
            => new Log(name)
    #endif
        ;

        void Write(string text);
    }
    """
    assert is_whole(source, "csharp")
    assert outline(source, "csharp") == ["interface ILog", "method ILog.With", "method ILog.Write"]


def test_types_among_the_arguments_of_macros() -> None:
    source = """
namespace {
DEFINE_FLAG(int, retries, 1, "how often");
DEFINE_FLAG(std::string, name, "none", "of what");
DEFINE_FLAG(unsigned long, room, 4000000000004L, "for how much");
int after() { return 1; }
}
"""
    assert is_whole(source, "cpp")
    assert "function after" in outline(source, "cpp")


def test_operators_of_cpp() -> None:
    source = """
struct Money {
  operator int() const { return 1; }
  operator std::less<Money>() const { return {}; }
  Money& operator()(int x) { return *this; }
};
Money& bank::Money::operator/=(double r) { return *this; }
Money::operator bool() const { return true; }
Node *&slot(int i) { return slots[i]; }
int (max)() { return 9; }
"""
    assert outline(source, "cpp") == [
        "struct Money",
        "method Money.operator int",
        "method Money.operator std::less<Money>",
        "method Money.operator()",
        "method bank.Money.operator/=",
        "method Money.operator bool",
        "function slot",
        "function max",
    ]


def test_template_arguments_are_no_path() -> None:
    source = "template <> struct Limits<std::pair<a::B, int>> { int low() { return 0; } };"
    assert outline(source, "cpp") == [
        "struct Limits<std::pair<a::B, int>>",
        "method Limits<std::pair<a::B, int>>.low",
    ]


def test_a_function_whose_head_a_macro_makes() -> None:
    assert outline("TEST_CASE(opens_twice) {\n  check();\n}\n", "c") == ["function TEST_CASE"]


def test_call_signatures_without_semicolons() -> None:
    source = """
export interface Get<E> {
  // one handler
  <P extends string, R extends Answer<any> = any>(
    path: P
  ): Router<E>

  // two handlers
  <P extends string, R extends Answer<any> = any, R2 extends Answer<R> = any>(
    path: P,
    handler: Handler<P, R>
  ): Router<E>
}

export abstract class Event {
  abstract answer(text: string): void
}
"""
    assert is_whole(source, "typescript")
    assert outline(source, "typescript") == ["interface Get", "class Event", "method Event.answer"]


@pytest.mark.parametrize("language", ["javascript", "typescript"])
def test_functions_of_object_literals_and_named_ones(language: str) -> None:
    source = """
module.exports = function render(name) {
  return function inner(body) { return body; };
};
$.color.make = function (red) { return red; };
var routes = {
  list: function (request) { return 1; },
  show: async (request) => { await request; },
  small: x => x,
};
app.use(function onError(error) { throw error; });
"""
    assert outline(source, language) == [
        "function render",
        "function render.inner",
        "method $.color.make",
        "method routes.list",
        "method routes.show",
        "method routes.small",
        "function onError",
    ]


def test_members_of_csharp_without_a_plain_name() -> None:
    source = """
class Money {
    public static implicit operator Money(string text) => new Money();
    public int this[int at] { get { return at; } }
    public event Handler Changed { add { } remove { } }
}
"""
    assert outline(source, "csharp") == [
        "class Money",
        "method Money.Money",
        "property Money.this",
        "property Money.Changed",
    ]


def test_implementations_for_types_without_a_name() -> None:
    source = """
impl Answer for (Status, u8) {
    fn send(self) {}
}
impl Answer for &'static str {}
impl Answer for [u8] {}
"""
    assert outline(source, "rust") == [
        "impl (Status, u8)",
        "method (Status, u8).send",
        "impl str",
        "impl [u8]",
    ]


@pytest.mark.parametrize("macro", ["NO_COPY", "Q_DISABLE_COPY(Pump)", "DECLARE_AS(Pump, (int))"])
def test_a_struct_on_one_line_may_end_in_a_macro(macro: str) -> None:
    source = f"struct Pump {{ int flow; {macro} }};\nclass Valve {{ int go() {{ return 1; }} {macro} }};\n"
    source += "struct Tank { int x; };\n"
    assert is_whole(source, "cpp")
    assert outline(source, "cpp") == ["struct Pump", "class Valve", "method Valve.go", "struct Tank"]


def test_statements_that_the_grammar_of_sql_does_not_know() -> None:
    source = """
GRANT ALL ON ALL TABLES IN SCHEMA shop TO clerk WITH GRANT OPTION;
ALTER DEFAULT PRIVILEGES FOR ROLE admin IN SCHEMA shop GRANT ALL ON TABLES TO clerk;

CREATE FUNCTION shop.total() RETURNS integer LANGUAGE plpgsql AS $$
DECLARE found integer;
BEGIN
  IF EXISTS (SELECT FROM pg_event_trigger_ddl_commands() AS ev) THEN
    grant select on table shop.orders to clerk with grant option;
  END IF;
  RETURN found;
END
$$;

CREATE TABLE shop.orders (id integer PRIMARY KEY);
"""
    assert is_whole(source, "sql")
    assert outline(source, "sql") == ["function shop.total", "struct shop.orders"]


def test_escaped_expansions_of_bash() -> None:
    source = """
count() {
  if eval "(( \\\\${#${name}[@]} > 0 ))"; then
    echo some
  fi
}
after() { echo; }
"""
    assert outline(source, "bash") == ["function count", "function after"]


HEAPS = {
    "conditionals": b"#if A\n#else\n",
    "unclosed": b"#if A\nAPI_X int f(MACRO_C(((\n",
    "comments": b"/* ",
    "quotes": b"\" ' $$ $a$ ",
    "macros": b"MACRO_NAME MACRO_NAME(a) ",
    "classes": b"class MACRO_NAME ",
    "brackets": b"MACRO_NAME((((",
    "blanks": b"MACRO_BEGIN\n" + b" " * 50,
}


@pytest.mark.parametrize("heap", HEAPS.values(), ids=HEAPS)
def test_other_readings_keep_their_length_and_take_linear_time(heap: bytes) -> None:
    source = heap * (500_000 // len(heap))
    started = time.process_time()
    for language in ("c", "cpp", "csharp", "typescript", "sql", "bash"):
        for read in REWRITES[language]:
            assert len(read(source, [(0, len(source))])) == len(source)
    assert len(blank_misplaced_macros(source)) == len(source)
    assert time.process_time() - started < 20


def test_a_statement_under_many_comments_takes_linear_time():
    source = b"SELECT 1;" + b"\n  -- a note \n \t /* another */ " * 5000 + b"EXPLAIN x;"
    started = time.process_time()

    read = blank_statements(source, [(0, len(source))])

    assert read.strip() == b"SELECT 1;"
    assert time.process_time() - started < 20
