"""Fully qualified PHP names, which begin with a backslash."""

import pytest

PAY = """
<?php
namespace Shop\\Pay;
function check() {}
interface Payable { function pay(); }
trait Counts { function count() {} }
class Base { function base() {} }
class Card { function pay() {} }
"""


@pytest.mark.parametrize(
    ("use", "body", "callee"),
    [
        ("use \\Shop\\Pay\\Card;", "(new Card())->pay();", "Card.pay"),
        ("use \\Shop\\Pay\\Card as Plastic;", "(new Plastic())->pay();", "Card.pay"),
        ("use \\Shop\\Pay\\{Base, Card as Plastic};", "(new Plastic())->pay();", "Card.pay"),
        ("use function \\Shop\\Pay\\{check};", "check();", "check"),
        ("use function \\Shop\\Pay\\check as look;", "look();", "check"),
        ("", "\\Shop\\Pay\\check();", "check"),
    ],
)
def test_a_name_that_is_used_may_begin_at_the_root(calls, use, body, callee):
    files = {"Pay.php": PAY, "Cart.php": f"<?php\nnamespace Shop\\Till;\n{use}\nfunction run() {{ {body} }}\n"}

    assert ("Cart.php::run", f"Pay.php::{callee}") in {(caller, found) for caller, found, _ in calls(files)}


@pytest.mark.parametrize(
    ("head", "body", "callee"),
    [
        ("extends \\Shop\\Pay\\Base", "function run() { $this->base(); }", "Base.base"),
        ("extends \\Shop\\Pay\\Base implements \\Countable", "function run() { parent::base(); }", "Base.base"),
        ("", "use \\Shop\\Pay\\Counts; function run() { $this->count(); }", "Counts.count"),
        ("", "function run(\\Shop\\Pay\\Card $card) { $card->pay(); }", "Card.pay"),
        ("", "function run(?\\Shop\\Pay\\Card $card) { $card->pay(); }", "Card.pay"),
        ("", "private \\Shop\\Pay\\Card|\\Closure $card; function run() { $this->card->pay(); }", "Card.pay"),
        ("", "/** @var \\Shop\\Pay\\Card */ private $card; function run() { $this->card->pay(); }", "Card.pay"),
    ],
)
def test_a_type_may_begin_at_the_root(calls, head, body, callee):
    files = {"Pay.php": PAY, "Cart.php": f"<?php\nnamespace Shop\\Till;\nclass Cart {head} {{ {body} }}\n"}

    assert ("Cart.php::Cart.run", f"Pay.php::{callee}") in {(caller, found) for caller, found, _ in calls(files)}


def test_a_class_outside_of_all_namespaces_is_found_from_within_one(calls):
    files = {
        "Base.php": "<?php\nclass Base { function base() {} }\n",
        "till/Base.php": "<?php\nnamespace Till;\nclass Base { function base() {} }\n",
        "till/Cart.php": "<?php\nnamespace Till;\nclass Cart extends \\Base { function run() { $this->base(); } }\n",
    }

    assert {(caller, found) for caller, found, _ in calls(files)} == {
        ("till/Cart.php::Cart.run", "Base.php::Base.base")
    }
