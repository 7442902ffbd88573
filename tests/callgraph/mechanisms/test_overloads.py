"""Overload resolution and extension functions."""


def test_the_number_of_arguments_chooses_the_overload(calls):
    assert calls(
        {
            "a.java": """
            class Shop {
                void show() {}
                void show(int one) {}
                void show(int one, int two) {}
                void none() { show(); }
                void one() { show(1); }
                void two() { show(1, 2); }
            }
            """
        }
    ) == {
        ("Shop.none", "Shop.show", "type of the receiver"),
        ("Shop.one", "Shop.show~2", "type of the receiver"),
        ("Shop.two", "Shop.show~3", "type of the receiver"),
    }
    assert calls(
        {
            "a.cpp": """
            void show() {}
            void show(int one) {}
            void none() { show(); }
            void one() { show(1); }
            """
        }
    ) == {("none", "show", "same file"), ("one", "show~2", "same file")}


def test_the_types_of_arguments_choose_the_overload(calls):
    assert calls(
        {
            "a.java": """
            class Card {}
            class Gold extends Card {}
            class Cash {}
            class Shop {
                void show(String text) {}
                void show(int number) {}
                void show(Card card) {}
                void show(Cash cash) {}
                void show(Object any) {}
                void text() { show("a"); }
                void number() { show(1); }
                void card(Card card) { show(card); }
                void cash() { show(new Cash()); }
                void gold(Gold gold) { show(gold); }
                void list(List<String> list) { show(list); }
            }
            """
        }
    ) == {
        *(
            ("Shop.text", "Shop.show", "type of the receiver"),
            ("Shop.number", "Shop.show~2", "type of the receiver"),
            ("Shop.card", "Shop.show~3", "type of the receiver"),
        ),
        *(
            ("Shop.cash", "Shop.show~4", "type of the receiver"),
            ("Shop.cash", "Cash", "same file"),
            ("Shop.gold", "Shop.show~3", "type of the receiver"),
        ),
        ("Shop.list", "Shop.show~5", "type of the receiver"),
    }
    assert calls(
        {
            "a.kt": """
            class Card
            fun show(text: String) {}
            fun show(number: Int) {}
            fun show(card: Card) {}
            fun text() { show("a" + 1) }
            fun number() { show(1) }
            fun card(card: Card) { show(card) }
            """
        }
    ) == {("text", "show", "same file"), ("number", "show~2", "same file"), ("card", "show~3", "same file")}
    assert calls(
        {
            "a.cs": """
            class Shop {
                void Show(string text) {}
                void Show(double number) {}
                void Show(System.Action run) {}
                void Text() { Show("a" + 1); }
                void Number() { Show(1.5); }
                void Lambda() { Show(() => Text()); }
            }
            """
        }
    ) == {
        *(("Shop.Text", "Shop.Show", "type of the receiver"), ("Shop.Number", "Shop.Show~2", "type of the receiver")),
        *(("Shop.Lambda", "Shop.Show~3", "type of the receiver"), ("Shop.Lambda", "Shop.Text", "type of the receiver")),
    }
    assert calls(
        {
            "a.cpp": """
            #include <string>
            struct Card {};
            using Text = std::string;
            void show(const Card& card) {}
            void show(int number) {}
            void show(const Text& text) {}
            void text() { show("a"); }
            void number() { show(1); }
            void card(Card one) { show(one); }
            """
        }
    ) == {("text", "show~3", "same file"), ("number", "show~2", "same file"), ("card", "show", "same file")}


def test_what_fits_equally_well_is_left_open_where_all_types_are_known(calls):
    found = calls(
        {
            "a.java": """
            class Card {}
            class Cash {}
            class Shop {
                void show(Card card) {}
                void show(Cash cash) {}
                void run(Thing thing) { show(thing); }
            }
            """
        }
    )

    assert found == set()


def test_an_overload_of_the_base_class_is_called_where_that_of_the_class_takes_too_little(calls):
    found = calls(
        {
            "a.java": """
            class Root { void show(int one, int two) {} void show() {} }
            class Shop extends Root {
                void show(int one) {}
                void run() { show(1, 2); }
                void go() { show(1); }
            }
            """
        }
    )

    assert found == {("Shop.run", "Root.show", "class hierarchy"), ("Shop.go", "Shop.show", "type of the receiver")}


def test_a_function_is_added_to_a_type_of_the_program(calls):
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            class Cash
            fun Card.pay() { check() }
            fun Card.charge() { this.check() }
            fun run(card: Card, cash: Cash) { card.pay(); cash.pay() }
            """
        }
    ) == {
        ("Card.pay", "Card.check", "type of the receiver"),
        ("Card.charge", "Card.check", "type of the receiver"),
        ("run", "Card.pay", "type of the receiver"),
    }
    assert calls(
        {
            "a.cs": """
            class Card { public void Check() {} }
            class Cash {}
            static class CardExtensions {
                public static void Pay(this Card card) { card.Check(); }
            }
            class Shop {
                void Run(Card card) { card.Pay(); }
                void None(Cash cash) { cash.Pay(); }
            }
            """
        }
    ) == {
        ("CardExtensions.Pay", "Card.Check", "type of the receiver"),
        ("Shop.Run", "CardExtensions.Pay", "type of the receiver"),
    }


def test_this_is_the_type_to_which_a_function_is_added(calls):
    found = calls(
        {
            "Card.kt": "package shop\nclass Card { fun check() {} }\nclass Cash { fun check() {} }\n",
            "App.kt": "package shop\nfun Card.pay() { this.check() }\n",
        }
    )

    assert found == {("App.kt::Card.pay", "Card.kt::Card.check", "type of the receiver")}


def test_a_function_is_added_to_a_type_of_the_library(calls):
    assert calls(
        {
            "a.kt": """
            fun String.shout(): String = this
            fun Int.shout(): Int = this
            fun List<String>.each() {}
            fun run(text: String) { text.shout() }
            fun go(at: Int) { at.shout() }
            fun list(all: List<String>) { all.each() }
            """
        }
    ) == {
        ("run", "String.shout", "type of the receiver"),
        ("go", "Int.shout", "type of the receiver"),
        ("list", "List.each", "type of the receiver"),
    }
    assert calls(
        {
            "a.cs": """
            static class Texts { public static string Shout(this string text) => text; }
            static class Numbers { public static int Shout(this int number) => number; }
            class Shop { void Run(string text) { text.Shout(); } }
            """
        }
    ) == {("Shop.Run", "Texts.Shout", "type of the receiver")}


def test_a_function_that_is_added_to_a_type_is_seen_where_it_is_imported(calls):
    assert calls(
        {
            "shop/Texts.kt": "package shop\nfun String.shout() {}\n",
            "bank/Texts.kt": "package bank\nfun String.shout() {}\n",
            "shop/App.kt": "package shop\nfun run(text: String) { text.shout() }\n",
            "main/App.kt": "package main\nimport bank.shout\nfun run(text: String) { text.shout() }\n",
            "none/App.kt": "package none\nfun run(text: String) { text.shout() }\n",
        }
    ) == {
        ("shop/App.kt::run", "shop/Texts.kt::String.shout", "type of the receiver"),
        ("main/App.kt::run", "bank/Texts.kt::String.shout", "type of the receiver"),
    }
    assert calls(
        {
            "Texts.cs": "namespace Shop;\nstatic class Texts { public static void Shout(this string text) {} }\n",
            "App.cs": "using Shop;\nclass App { void Run(string text) { text.Shout(); } }\n",
            "None.cs": "class None { void Run(string text) { text.Shout(); } }\n",
        }
    ) == {("App.cs::App.Run", "Texts.cs::Texts.Shout", "type of the receiver")}


def test_a_function_that_is_added_to_a_type_parameter_fits_its_bound(calls):
    found = calls(
        {
            "a.kt": """
            interface Pay
            class Card : Pay
            class Cash
            fun <T : Pay> T.charge() {}
            fun <T> T.log() {}
            fun run(card: Card) { card.charge() }
            fun none(cash: Cash) { cash.charge() }
            fun any(cash: Cash) { cash.log() }
            """
        }
    )

    assert found == {("run", "charge", "type of the receiver"), ("any", "log", "type of the receiver")}


def test_a_member_comes_before_a_function_that_is_added(calls):
    found = calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            fun Card.check() {}
            fun run(card: Card) { card.check() }
            """
        }
    )

    assert found == {("run", "Card.check", "type of the receiver")}
