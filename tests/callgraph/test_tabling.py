"""Each query is answered once and records what it read. Files reuse an answer only if they would find the same."""

from docindex_dagster.callgraph.tabling import Memo, Query, Table


class Asked:
    """Query over names. Records the names that were resolved."""

    def __init__(self) -> None:
        self.table = Table()
        self.query: Query[[str, tuple[str, ...], int], frozenset[str]] = Query(self.table, "names", frozenset())
        self.query.answered_by(self._find)
        self.followed: list[str] = []

    def ask(self, name: str, *leads: str, key: int = 0) -> frozenset[str]:
        """Return `name` and all names reachable through `leads`."""
        return self.query(name, leads, key)

    def _find(self, name: str, leads: tuple[str, ...], key: int) -> frozenset[str]:
        self.followed.append(name)
        if key:
            self.table.reads.append(key)
        return frozenset({name}).union(*(self.cycle(lead) for lead in leads))

    def cycle(self, name: str) -> frozenset[str]:
        """Resolve a name in a cycle of `left` and `right`."""
        return self.ask(name, *{"left": ["right"], "right": ["left"]}.get(name, []))


def test_an_answer_is_found_once_for_all_files():
    asked = Asked()
    for _ in range(2):
        asked.table.start()
        assert asked.ask("one") == {"one"}

    assert asked.followed == ["one"]


def test_an_answer_that_is_tabled_brings_what_was_read_for_it_to_each_file():
    asked = Asked()
    for _ in range(2):
        asked.table.start()
        asked.ask("one", "two", key=7)
        asked.table.reads.append(9)

        assert asked.table.looked() == [7, 9]


def test_what_was_found_in_a_cycle_is_found_anew_for_the_next_file():
    asked = Asked()
    asked.table.start()
    assert asked.cycle("left") == {"left", "right"}
    assert asked.cycle("left") == {"left", "right"}
    assert asked.followed == ["left", "right"]

    asked.table.start()
    assert asked.cycle("right") == {"left", "right"}
    assert asked.followed == ["left", "right", "right", "left"]


def test_a_chain_that_is_too_long_ends():
    query: Query[[int], int] = Query(Table(), "chain", 0)
    deepest = []

    def follow(number: int) -> int:
        deepest.append(number)
        return query(number + 1)

    query.answered_by(follow)
    query(0)

    assert 40 < max(deepest) < 100


def test_callers_are_asked_twice_in_a_row():
    table = Table()

    def callers(number: int) -> int:
        return table.asking_callers(number, callers, number + 1)

    assert callers(0) == 2
    assert table.without_callers(callers, 0) == 0


def test_an_answer_for_which_callers_could_not_be_asked_is_not_taken_where_they_can():
    table = Table()
    parameter: Query[[], str] = Query(table, "parameter", "")
    parameter.answered_by(lambda: table.asking_callers("unknown", lambda: "given"))

    assert table.without_callers(parameter) == "unknown"
    assert parameter() == "given"
    assert table.without_callers(parameter) == "unknown"


def test_an_answer_without_callers_is_found_once_whether_they_may_be_asked_or_not():
    asked = Asked()
    asked.table.without_callers(asked.ask, "one")
    asked.ask("one")

    assert asked.followed == ["one"]


def test_answers_are_forgotten_where_they_are_many(monkeypatch):
    monkeypatch.setattr("docindex_dagster.callgraph.tabling._MAX_GOALS", 0)
    asked = Asked()
    followed = []
    short: Query[[], str] = Query(asked.table, "short", "")

    def find() -> str:
        followed.append("short")
        return asked.table.asking_callers("unknown", lambda: "given")

    short.answered_by(find)
    for _ in range(2):
        asked.table.start()
        for _ in range(2):
            asked.ask("one")
            asked.table.without_callers(short)

    assert asked.followed == ["one", "one"]
    assert followed == ["short", "short"]


def test_an_error_leaves_the_table_as_it_was():
    asked = Asked()
    failing: Query[[], str] = Query(asked.table, "failing", "")

    def fail() -> str:
        asked.table.reads.append(5)
        raise KeyError

    failing.answered_by(fail)
    asked.table.start()
    for _ in range(2):
        try:
            failing()
        except KeyError:
            asked.ask("one", key=7)

    assert asked.table.looked() == [5, 7]


def test_arguments_that_mean_the_same_are_answered_once():
    table = Table()
    query: Query[[str], str] = Query(table, "lower", "")
    found: list[str] = []

    def find(name: str) -> str:
        found.append(name)
        return name

    query.answered_by(find, lambda name: (name.lower(),))
    table.start()

    assert [query("One"), query("ONE"), query("one")] == ["one"] * 3
    assert found == ["one"]


def test_what_asks_no_query_is_worked_out_once_and_read_each_time():
    table = Table()
    found: list[int] = []

    def find(key: int) -> int:
        found.append(key)
        table.reads.append(key)
        return key + 1

    memo = Memo(table, find)
    for _ in range(2):
        table.start()
        table.reads.append(9)

        assert memo(7) == 8
        assert table.looked() == [7, 9]
    assert found == [7]
