"""Answers are found once, carry what was looked at, and are kept for others only where these would find the same."""

from docindex_dagster.graph.resolution.memo import Looks, Memo


class Asked:
    """A memo, with the questions that were followed."""

    def __init__(self) -> None:
        self.looks: Looks = []
        self.memo = Memo(self.looks)
        self.followed: list[str] = []

    def ask(self, name: str, *leads: str, key: int = 0) -> frozenset[str]:
        """What `name` stands for: itself, and what the questions stand for to which it leads."""
        return self.memo.settled(name, frozenset(), self._find, name, leads, key)

    def _find(self, name: str, leads: tuple[str, ...], key: int) -> frozenset[str]:
        self.followed.append(name)
        if key:
            self.looks.append(key)
        return frozenset({name}).union(*(self.cycle(lead) for lead in leads))

    def cycle(self, name: str) -> frozenset[str]:
        """`left` leads to `right`, and that back to `left`."""
        return self.ask(name, *{"left": ["right"], "right": ["left"]}.get(name, []))


def test_an_answer_is_found_once_for_all_files():
    asked = Asked()
    for _ in range(2):
        asked.memo.start()
        assert asked.ask("one") == {"one"}

    assert asked.followed == ["one"]


def test_an_answer_that_is_kept_brings_what_was_looked_at_to_each_file():
    asked = Asked()
    for _ in range(2):
        asked.memo.start()
        asked.ask("one", "two", key=7)
        asked.looks.append(9)

        assert asked.memo.looked() == [7, 9]


def test_what_was_found_in_a_cycle_is_found_anew_for_the_next_file():
    asked = Asked()
    asked.memo.start()
    assert asked.cycle("left") == {"left", "right"}
    assert asked.cycle("left") == {"left", "right"}
    assert asked.followed == ["left", "right"]

    asked.memo.start()
    assert asked.cycle("right") == {"left", "right"}
    assert asked.followed == ["left", "right", "right", "left"]


def test_a_chain_that_is_too_long_ends():
    memo = Memo([])

    def follow(number: int) -> int:
        return memo.settled(number, number, follow, number + 1)

    assert 40 < follow(0) < 100


def test_callers_are_asked_twice_in_a_row():
    memo = Memo([])

    def callers(number: int) -> int:
        return memo.asking_callers(number, callers, number + 1)

    assert callers(0) == 2
    assert memo.uncached(callers, 0) == 0


def test_an_answer_for_which_callers_could_not_be_asked_is_not_taken_where_they_can():
    memo = Memo([])

    def parameter() -> str:
        return memo.settled("parameter", "", lambda: memo.asking_callers("unknown", lambda: "given"))

    assert memo.uncached(parameter) == "unknown"
    assert parameter() == "given"
    assert memo.uncached(parameter) == "unknown"


def test_an_answer_without_callers_is_found_once_whether_they_may_be_asked_or_not():
    asked = Asked()
    asked.memo.uncached(asked.ask, "one")
    asked.ask("one")

    assert asked.followed == ["one"]
