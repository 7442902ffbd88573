"""Callers: untyped parameters get their types from the arguments at call sites."""


def test_a_parameter_is_what_the_callers_give(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            class Other:
                def check(self): ...
            def run(one, two=None):
                one.check()
            def go(one, two=None):
                two.check()
            def start():
                run(Card(), Other())
                go(Other(), two=Cash())
            """
        }
    ) == {
        *(
            ("run", "Card.check", "type of the receiver"),
            ("go", "Cash.check", "type of the receiver"),
            ("start", "run", "same file"),
            ("start", "go", "same file"),
        ),
        *(("start", "Card", "same file"), ("start", "Cash", "same file"), ("start", "Other", "same file")),
    }
    assert calls(
        {
            "a.js": """
            class Card { check() {} }
            class Cash { check() {} }
            function run(one) { one.check(); }
            function start() { run(new Card()); other(new Cash()); }
            """
        }
    ) == {
        ("run", "Card.check", "type of the receiver"),
        ("start", "run", "same file"),
        ("start", "Card", "same file"),
        ("start", "Cash", "same file"),
    }
    assert calls(
        {
            "a.rb": """
            class Card
              def check
              end
            end
            class Cash
              def check
              end
            end
            def run(one)
              one.check
            end
            run(Card.new)
            other(Cash.new)
            """
        }
    ) == {
        ("run", "Card.check", "type of the receiver"),
        ("a.rb", "run", "same file"),
        ("a.rb", "Card", "same file"),
        ("a.rb", "Cash", "same file"),
    }
    assert calls(
        {
            "a.php": """
            <?php
            class Card { public function check() {} }
            class Cash { public function check() {} }
            function run($one) { $one->check(); }
            function start() { run(new Card()); other(new Cash()); }
            """
        }
    ) == {
        ("run", "Card.check", "type of the receiver"),
        ("start", "run", "same file"),
        ("start", "Card", "same file"),
        ("start", "Cash", "same file"),
    }


def test_what_the_callers_of_the_callers_give_is_followed(calls):
    found = calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def inner(it):
                it.check()
            def outer(it):
                inner(it)
            def start():
                outer(Card())
            """
        }
    )

    assert found == {
        ("inner", "Card.check", "type of the receiver"),
        ("outer", "inner", "same file"),
        ("start", "outer", "same file"),
        ("start", "Card", "same file"),
    }


def test_callers_in_other_files_are_found_by_the_name_under_which_they_import(calls):
    found = calls(
        {
            "shop.ts": "export function run(it) { it.check(); }\nfunction hidden(it) { it.check(); }\n",
            "pay.ts": "export default function pay(it) { it.close(); }\n",
            "app.ts": """
            import { run as start } from './shop';
            import charge from './pay';
            class Card { check() {} close() {} }
            class Cash { check() {} }
            function main() { start(new Card()); charge(new Card()); hidden(new Cash()); }
            """,
        }
    )

    assert found == {
        ("shop.ts::run", "app.ts::Card.check", "type of the receiver"),
        ("pay.ts::pay", "app.ts::Card.close", "type of the receiver"),
        ("app.ts::main", "shop.ts::run", "imported name"),
        ("app.ts::main", "pay.ts::pay", "imported name"),
        ("app.ts::main", "app.ts::Card", "same file"),
        ("app.ts::main", "app.ts::Cash", "same file"),
    }


def test_a_function_of_the_same_name_has_other_callers(calls):
    found = calls(
        {
            "a.py": "class Card:\n    def check(self): ...\ndef run(it):\n    it.check()\nrun(Card())\n",
            "b.py": "class Cash:\n    def check(self): ...\ndef run(it):\n    it.check()\n",
        }
    )

    assert found == {
        ("a.py", "a.py::run", "same file"),
        ("a.py", "a.py::Card", "same file"),
        ("a.py::run", "a.py::Card.check", "type of the receiver"),
    }


def test_all_further_arguments_are_a_collection(calls):
    found = calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def run(first, *rest):
                for one in rest:
                    one.check()
            def start():
                run(Cash(), Card())
            """
        }
    )

    assert found == {
        ("run", "Card.check", "type of the receiver"),
        ("start", "run", "same file"),
        ("start", "Card", "same file"),
        ("start", "Cash", "same file"),
    }


def test_a_default_says_what_a_parameter_is(calls):
    found = calls(
        {
            "a.js": """
            class Card { check() {} }
            class Cash { check() {} }
            const card = new Card();
            function run(one = card) { one.check(); }
            """
        }
    )

    assert found == {("a.js", "Card", "same file"), ("run", "Card.check", "type of the receiver")}


def test_what_is_tested_does_not_get_what_tests_give(calls):
    found = calls(
        {
            "src/shop.py": "def run(it):\n    it.check()\n",
            "tests/test_shop.py": """
            from src.shop import run
            class Fake:
                def check(self): ...
            def test_run():
                run(Fake())
            """,
        }
    )

    assert found == {
        ("tests/test_shop.py::test_run", "src/shop.py::run", "imported name"),
        ("tests/test_shop.py::test_run", "tests/test_shop.py::Fake", "same file"),
    }


def test_the_type_of_a_literal_says_what_its_methods_take(calls):
    found = calls(
        {
            "a.ts": """
            class Card { check() {} }
            class Cash { check() {} }
            interface Rule { apply(card: Card): void; }
            const rule: Rule = { apply(card) { card.check(); } };
            const other = { apply(card) { card.check(); } };
            """
        }
    )

    assert found == {("rule.apply", "Card.check", "type of the receiver")}


def test_a_decorator_is_given_the_function_that_it_decorates(calls):
    found = calls(
        {
            "a.py": """
            def logged(function):
                def inner():
                    function()
                return inner
            @logged
            def run(): ...
            def other(): ...
            """
        }
    )

    assert found == {("a.py", "logged", "same file"), ("logged.inner", "run", "argument of a caller")}


def test_a_decorator_may_make_an_object_of_a_function(calls):
    found = calls(
        {
            "a.py": """
            from typing import Callable
            class Command:
                def invoke(self): ...
            class Other:
                def invoke(self): ...
            def command() -> Callable[..., Command]: ...
            def plain(f) -> Command: ...
            @command()
            def run(): ...
            @plain
            def go(): ...
            def start():
                run.invoke()
            def other():
                go.invoke()
            """
        }
    )

    assert found == {
        *(("a.py", "command", "same file"), ("a.py", "plain", "same file")),
        *(("start", "Command.invoke", "type of the receiver"), ("other", "Command.invoke", "type of the receiver")),
    }


def test_overloads_of_a_decorator_say_what_it_makes(calls):
    found = calls(
        {
            "a.py": """
            from typing import Callable, overload
            class Command:
                def invoke(self): ...
            @overload
            def command(f: Callable) -> Command: ...
            @overload
            def command(f: None = None) -> Callable[..., Command]: ...
            def command(f=None):
                return f
            @command
            def run(): ...
            def start():
                run.invoke()
            """
        }
    )

    assert found == {("a.py", "command~3", "same file"), ("start", "Command.invoke", "type of the receiver")}


def test_a_property_is_read_as_what_it_returns(calls):
    assert calls(
        {
            "a.py": """
            from functools import cached_property
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            class Shop:
                @property
                def card(self) -> Card: ...
                @cached_property
                def other(self):
                    return Cash()
                def plain(self) -> Cash: ...
                def run(self):
                    self.card.check()
                def go(self):
                    self.other.check()
                def none(self):
                    self.plain.check()
            """
        }
    ) == {
        ("Shop.other", "Cash", "same file"),
        ("Shop.run", "Card.check", "type of the receiver"),
        ("Shop.go", "Cash.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.ts": """
            class Card { check() {} }
            class Cash { check() {} }
            class Shop {
              get card() { return new Card(); }
              plain() { return new Cash(); }
              run() { this.card.check(); }
              none() { this.plain.check(); }
            }
            """
        }
    ) == {
        ("Shop.card", "Card", "same file"),
        ("Shop.plain", "Cash", "same file"),
        ("Shop.run", "Card.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            class Cash { fun check() {} }
            class Shop {
                val card: Card
                    get() = find()
                val other by lazy { Cash() }
                fun run() { card.check() }
                fun go() { other.check() }
            }
            fun find() = Card()
            """
        }
    ) == {
        *(("Shop.card", "find", "same file"), ("Shop", "Cash", "same file"), ("find", "Card", "same file")),
        *(("Shop.run", "Card.check", "type of the receiver"), ("Shop.go", "Cash.check", "type of the receiver")),
    }
    assert calls(
        {
            "a.cs": """
            class Card { public void Check() {} }
            class Cash { public void Check() {} }
            class Shop {
                public Card Card { get; } = new Card();
                void Run() { Card.Check(); this.Card.Check(); }
            }
            """
        }
    ) == {("Shop", "Card", "same file"), ("Shop.Run", "Card.Check", "type of the receiver")}


def test_a_fixture_gives_a_test_what_it_returns(calls):
    found = calls(
        {
            "conftest.py": """
            import pytest
            from shop import Card
            @pytest.fixture
            def card():
                return Card()
            """,
            "shop.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            """,
            "tests/test_shop.py": """
            import pytest
            from shop import Cash
            @pytest.fixture()
            def cash(card):
                card.check()
                return Cash()
            def test_card(card):
                card.check()
            def test_cash(cash):
                cash.check()
            def helper(card):
                card.check()
            class TestInner:
                @pytest.fixture
                def card(self):
                    return Cash()
                def test_own(self, card):
                    card.check()
            """,
        }
    )

    assert found == {
        ("conftest.py::card", "shop.py::Card", "imported name"),
        ("tests/test_shop.py::cash", "shop.py::Cash", "imported name"),
        ("tests/test_shop.py::cash", "shop.py::Card.check", "type of the receiver"),
        ("tests/test_shop.py::test_card", "shop.py::Card.check", "type of the receiver"),
        ("tests/test_shop.py::test_cash", "shop.py::Cash.check", "type of the receiver"),
        ("tests/test_shop.py::TestInner.card", "shop.py::Cash", "imported name"),
        ("tests/test_shop.py::TestInner.test_own", "shop.py::Cash.check", "type of the receiver"),
    }
