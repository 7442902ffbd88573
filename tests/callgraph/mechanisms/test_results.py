"""Return types: declared, inferred from return statements, or the receiver itself; and the elements of collections."""


def test_a_call_gives_what_its_function_is_declared_to_return(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def find() -> Card: ...
            def run():
                find().check()
            """
        }
    ) == {("run", "find", "same file"), ("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.java": """
            class Card { void check() {} }
            class Cash { void check() {} }
            class Shop {
                Card find() { return null; }
                void run() { find().check(); var it = find(); it.check(); }
            }
            """
        }
    ) == {("Shop.run", "Shop.find", "type of the receiver"), ("Shop.run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.cpp": """
            struct Card { void check() {} };
            struct Cash { void check() {} };
            Card* find();
            void run() { find()->check(); auto it = find(); it->check(); }
            Card* find() { return nullptr; }
            """
        }
    ) == {("run", "find", "same file"), ("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.php": """
            <?php
            class Card { public function check() {} }
            class Cash { public function check() {} }
            class Shop {
                public function find(): Card {}
                /** @return Cash */
                public function other() {}
                public function run() { $this->find()->check(); }
                public function go() { $this->other()->check(); }
            }
            """
        }
    ) == {
        *(("Shop.run", "Shop.find", "type of the receiver"), ("Shop.run", "Card.check", "type of the receiver")),
        *(("Shop.go", "Shop.other", "type of the receiver"), ("Shop.go", "Cash.check", "type of the receiver")),
    }


def test_a_call_gives_what_the_returns_of_its_function_say(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def find(fast):
                made = Card()
                return made
            def run():
                find(1).check()
            """
        }
    ) == {("find", "Card", "same file"), ("run", "find", "same file"), ("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.js": """
            class Card { check() {} }
            class Cash { check() {} }
            const find = () => new Card();
            function run() { find().check(); }
            """
        }
    ) == {("find", "Card", "same file"), ("run", "find", "same file"), ("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.rb": """
            class Card
              def check
              end
            end
            def find
              puts 1
              Card.new
            end
            def run
              find.check
            end
            """
        }
    ) == {("find", "Card", "same file"), ("run", "find", "same file"), ("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            fun find() = Card()
            fun run() { find().check() }
            """
        }
    ) == {("find", "Card", "same file"), ("run", "find", "same file"), ("run", "Card.check", "type of the receiver")}


def test_of_a_function_that_is_declared_to_return_one_its_returns_say_which(calls):
    assert calls(
        {
            "a.py": """
            import typing as t
            def opener() -> t.Callable[[str], int]:
                def opened(path): ...
                return opened
            DEFAULT = opener()
            def run():
                DEFAULT("a")
                opener()("b")
            """
        }
    ) == {
        ("a.py", "opener", "same file"),
        ("run", "opener", "same file"),
        ("run", "opener.opened", "returned type"),
    }


def test_a_wrapper_that_is_named_like_what_it_wraps_is_the_wrapper(calls):
    assert calls(
        {
            "a.py": """
            from functools import update_wrapper
            def checked(function):
                def wrapper(): ...
                return update_wrapper(wrapper, function)
            def pay(): ...
            def run():
                checked(pay)()
            """
        }
    ) == {("run", "checked", "same file"), ("run", "checked.wrapper", "returned type")}


def test_what_one_caller_gives_is_not_what_another_gets_back(calls):
    found = calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def same(it):
                return it
            def run():
                same(Card()).check()
            def go():
                same(Cash())
            """
        }
    )

    assert found == {
        ("run", "same", "same file"),
        ("run", "Card", "same file"),
        ("go", "same", "same file"),
        ("go", "Cash", "same file"),
    }


def test_the_one_caller_of_a_function_gets_back_what_it_gives(calls):
    found = calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def same(it):
                return it
            def run():
                same(Card()).check()
            """
        }
    )

    assert found == {
        ("run", "same", "same file"),
        ("run", "Card", "same file"),
        ("run", "Card.check", "type of the receiver"),
    }


def test_a_method_that_returns_its_object_may_be_followed_by_others(calls):
    assert calls(
        {
            "a.js": """
            class Query { where() { return this; } run() {} }
            class Sub extends Query { limit() {} }
            class Other { run() {} limit() {} }
            function go() { new Sub().where().limit(); }
            """
        }
    ) == {
        ("go", "Sub", "same file"),
        ("go", "Query.where", "class hierarchy"),
        ("go", "Sub.limit", "type of the receiver"),
    }
    assert calls(
        {
            "a.py": """
            from typing import Self
            class Query:
                def where(self) -> Self: ...
                def order(self):
                    return self
            class Sub(Query):
                def limit(self): ...
            def go(sub: Sub):
                sub.where().order().limit()
            """
        }
    ) == {
        ("go", "Query.where", "class hierarchy"),
        ("go", "Query.order", "class hierarchy"),
        ("go", "Sub.limit", "type of the receiver"),
    }
    assert calls(
        {
            "a.rb": """
            class Query
              def where
                self
              end
              def run
              end
            end
            def go
              Query.new.where.run
            end
            """
        }
    ) == {
        ("go", "Query", "same file"),
        ("go", "Query.where", "type of the receiver"),
        ("go", "Query.run", "type of the receiver"),
    }
    assert calls(
        {
            "a.rs": """
            struct Query;
            impl Query {
                fn new() -> Self { Query }
                fn filter(self) -> Self { self }
                fn run(self) {}
            }
            struct Other;
            impl Other { fn run(self) {} }
            fn go() { Query::new().filter().run(); }
            """
        }
    ) == {
        ("go", "Query.new", "type of the receiver"),
        ("go", "Query.filter", "type of the receiver"),
        ("go", "Query.run", "type of the receiver"),
    }
    assert calls(
        {
            "a.php": """
            <?php
            class Query { public function where(): static { return $this; } public function run() {} }
            class Sub extends Query { public function limit() {} }
            function go() { (new Sub())->where()->limit(); }
            """
        }
    ) == {
        ("go", "Sub", "same file"),
        ("go", "Query.where", "class hierarchy"),
        ("go", "Sub.limit", "type of the receiver"),
    }


def test_a_class_method_gives_an_object_of_the_class_that_is_named(calls):
    found = calls(
        {
            "a.py": """
            class Query:
                @classmethod
                def build(cls):
                    return cls()
            class Sub(Query):
                def limit(self): ...
            class Other:
                def limit(self): ...
            def go():
                Sub.build().limit()
            """
        }
    )

    assert found == {
        ("Query.build", "Query", "same scope"),
        ("go", "Query.build", "class hierarchy"),
        ("go", "Sub.limit", "type of the receiver"),
    }


def test_a_branch_may_be_any_of_its_sides(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            class Other:
                def check(self): ...
            def run(ok):
                it = Card() or Cash()
                it.check()
            """
        }
    ) == {
        ("run", "Card", "same file"),
        ("run", "Cash", "same file"),
        ("run", "Card.check", "type of the receiver"),
        ("run", "Cash.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            class Cash { fun count() {} }
            fun run(ok: Boolean) {
                val it = if (ok) Card() else Cash()
                it.check()
                it.count()
            }
            """
        }
    ) == {
        ("run", "Card", "same file"),
        ("run", "Cash", "same file"),
        ("run", "Card.check", "type of the receiver"),
        ("run", "Cash.count", "type of the receiver"),
    }
    assert calls(
        {
            "a.rs": """
            struct Card;
            impl Card { fn new() -> Card { Card } fn check(&self) {} }
            struct Other;
            impl Other { fn check(&self) {} }
            fn run(ok: bool) { let it = match ok { true => Card::new(), false => Card::new() }; it.check(); }
            """
        }
    ) == {("run", "Card.new", "type of the receiver"), ("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.php": """
            <?php
            class Card { public function check() {} }
            class Cash { public function count() {} }
            class Other { public function check() {} }
            function run($ok) {
                $it = match ($ok) { 1 => new Card(), 2 => new Cash() };
                $it->check();
                $it->count();
            }
            function go(?Card $given) { ($given ?? new Other())->check(); }
            """
        }
    ) == {
        *(
            ("run", "Card", "same file"),
            ("run", "Cash", "same file"),
            ("run", "Card.check", "type of the receiver"),
            ("run", "Cash.count", "type of the receiver"),
        ),
        *(
            ("go", "Card.check", "type of the receiver"),
            ("go", "Other", "same file"),
            ("go", "Other.check", "type of the receiver"),
        ),
    }


def test_an_element_of_a_collection_is_what_it_is_declared_to_hold(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def each(cards: list[Card]):
                for card in cards:
                    card.check()
            def key(cards: dict[str, Card]):
                cards["a"].check()
            def pair(cards: dict[str, Card]):
                for name, card in cards.items():
                    card.check()
            def none(cards: list[Card]):
                cards.check()
            """
        }
    ) == {
        ("each", "Card.check", "type of the receiver"),
        ("key", "Card.check", "type of the receiver"),
        ("pair", "Card.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c Card) Check() {}
            type Cash struct{}
            func (c Cash) Check() {}
            func each(cards []Card) { for _, card := range cards { card.Check() } }
            func key(cards map[string]*Card) { cards["a"].Check() }
            func sent(cards chan Card) { card := <-cards; card.Check() }
            """
        }
    ) == {
        ("each", "Card.Check", "type of the receiver"),
        ("key", "Card.Check", "type of the receiver"),
        ("sent", "Card.Check", "type of the receiver"),
    }
    assert calls(
        {
            "a.java": """
            class Card { void check() {} }
            class Cash { void check() {} }
            class Shop {
                void each(List<Card> cards) { for (var card : cards) card.check(); }
                void one(Map<String, Card> cards) { cards.get("a").check(); }
                void arrays(Card[] cards) { cards[0].check(); }
            }
            """
        }
    ) == {
        ("Shop.each", "Card.check", "type of the receiver"),
        ("Shop.one", "Card.check", "type of the receiver"),
        ("Shop.arrays", "Card.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.cpp": """
            #include <vector>
            struct Card { void check() {} };
            struct Cash { void check() {} };
            void each(std::vector<Card>& cards) { for (auto& card : cards) card.check(); }
            void one(std::map<int, Card*> cards) { cards[1]->check(); cards.find(2)->second->check(); }
            void held(std::unique_ptr<Card> card) { card->check(); }
            """
        }
    ) == {
        ("each", "Card.check", "type of the receiver"),
        ("one", "Card.check", "type of the receiver"),
        ("held", "Card.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.rs": """
            struct Card;
            impl Card { fn check(&self) {} }
            fn each(cards: Vec<Card>) { for card in cards.iter() { card.check(); } }
            fn first(cards: &[Card]) { cards.first().unwrap().check(); }
            fn key(cards: HashMap<String, Card>) { if let Some(card) = cards.get("a") { card.check(); } }
            """
        }
    ) == {
        ("each", "Card.check", "type of the receiver"),
        ("first", "Card.check", "type of the receiver"),
        ("key", "Card.check", "type of the receiver"),
    }


def test_an_element_of_a_collection_is_what_is_put_into_it(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            class Shop:
                def __init__(self):
                    self.cards = []
                def add(self):
                    self.cards.append(Card())
                def run(self):
                    for card in self.cards:
                        card.check()
            def local():
                cards = [Card()]
                cards[0].check()
            """
        }
    ) == {
        *(("Shop.add", "Card", "same file"), ("Shop.run", "Card.check", "type of the receiver")),
        *(("local", "Card", "same file"), ("local", "Card.check", "type of the receiver")),
    }
    assert calls(
        {
            "a.rb": """
            class Card
              def check
              end
            end
            class Shop
              def initialize
                @cards = []
              end
              def add
                @cards << Card.new
              end
              def run
                @cards.each { |card| card.check }
              end
            end
            """
        }
    ) == {("Shop.add", "Card", "same file"), ("Shop.run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.cpp": """
            #include <vector>
            struct Shop {
              std::vector<std::function<void()>> handlers;
              void add() { handlers.push_back(look); }
              void run() { for (auto& handler : handlers) handler(); }
              static void look() {}
              static void other() {}
            };
            """
        }
    ) == {("Shop.run", "Shop.look", "element of a collection")}


def test_what_is_copied_or_collected_holds_the_same(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            def run(cards: list[Card]):
                for card in sorted(cards):
                    card.check()
            def go(cards: list[Card]):
                for at, card in enumerate([one for one in cards]):
                    card.check()
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("go", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.ts": """
            class Card { check() {} }
            function run(cards: Card[]) { for (const card of cards.filter(ok)) card.check(); }
            function go(cards: Map<string, Card>) { for (const card of Array.from(cards.values())) card.check(); }
            function spread(cards: Card[]) { for (const card of [...cards]) card.check(); }
            function ok() {}
            """
        }
    ) == {
        ("run", "Card.check", "type of the receiver"),
        ("go", "Card.check", "type of the receiver"),
        ("spread", "Card.check", "type of the receiver"),
    }


def test_what_a_mapping_makes_of_the_elements_is_held_afterwards(calls):
    card = (
        "class Card { Cash pay() { return null; } }\nclass Cash { void count() {} }\nclass Other { void count() {} }\n"
    )
    assert calls(
        {
            "a.java": card
            + """
            class Shop {
                void run(List<Card> cards) { cards.stream().map(card -> card.pay()).forEach(it -> it.count()); }
                void go(List<Card> cards) { cards.stream().map(Card::pay).forEach(it -> it.count()); }
            }
            """
        }
    ) == {
        ("Shop.run", "Card.pay", "type of the receiver"),
        ("Shop.run", "Cash.count", "type of the receiver"),
        ("Shop.go", "Cash.count", "type of the receiver"),
    }
    assert calls(
        {
            "a.cs": """
            class Card { public Cash Pay() { return null; } }
            class Cash { public void Count() {} }
            class Other { public void Count() {} }
            class Shop {
                void Run(List<Card> cards) { foreach (var it in cards.Select(card => card.Pay())) it.Count(); }
            }
            """
        }
    ) == {("Shop.Run", "Card.Pay", "type of the receiver"), ("Shop.Run", "Cash.Count", "type of the receiver")}
    assert calls(
        {
            "a.kt": """
            class Card { fun pay(): Cash = Cash() }
            class Cash { fun count() {} }
            class Other { fun count() {} }
            fun run(cards: List<Card>) { cards.map { it.pay() }.forEach { it.count() } }
            """
        }
    ) == {
        ("Card.pay", "Cash", "same file"),
        ("run", "Card.pay", "type of the receiver"),
        ("run", "Cash.count", "type of the receiver"),
    }


def test_an_object_that_can_be_iterated_holds_what_its_method_gives(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            class Box:
                def __getitem__(self, at) -> Card: ...
            def run(box: Box):
                box[0].check()
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.rs": """
            struct Card;
            impl Card { fn check(&self) {} }
            struct Cards;
            impl Iterator for Cards { type Item = Card; fn next(&mut self) -> Option<Card> { None } }
            fn run(cards: Cards) { for card in cards { card.check(); } }
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.cpp": """
            struct Card { void check() {} };
            struct Box { Card& operator[](int at); Card* operator->(); };
            void run(Box box) { box[0].check(); }
            void go(Box box) { box->check(); }
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("go", "Card.check", "type of the receiver")}


def test_a_class_that_is_a_collection_holds_what_that_holds(calls):
    assert calls(
        {
            "a.cs": """
            using System.Collections.Generic;
            class Card { public void Check() {} }
            class Cash { public void Check() {} }
            class Deck : List<Card> {}
            class Shop { void Run(Deck deck) { foreach (var card in deck) card.Check(); } }
            """
        }
    ) == {("Shop.Run", "Card.Check", "type of the receiver")}
    assert calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c Card) Check() {}
            type Cash struct{}
            func (c Cash) Check() {}
            type Deck []Card
            func (d Deck) Run() { for _, card := range d { card.Check() } }
            """
        }
    ) == {("Deck.Run", "Card.Check", "type of the receiver")}


def test_a_table_of_functions_calls_any_of_them(calls):
    assert calls(
        {
            "a.py": """
            def first(): ...
            def second(): ...
            def other(): ...
            TABLE = {"a": first, "b": second}
            def run(name):
                TABLE[name]()
            def go(name):
                TABLE.get(name)()
            """
        }
    ) == {
        ("run", "first", "element of a collection"),
        ("run", "second", "element of a collection"),
        ("go", "first", "element of a collection"),
        ("go", "second", "element of a collection"),
    }
    assert calls(
        {
            "a.js": """
            function first() {}
            function other() {}
            const table = { first, second() {}, third: () => {} };
            function run(name) { table[name](); }
            function one() { table.third(); }
            """
        }
    ) == {
        ("run", "first", "element of a collection"),
        ("run", "table.second", "element of a collection"),
        ("run", "table.third", "element of a collection"),
        ("one", "table.third", "type of the receiver"),
    }
    assert calls(
        {
            "a.go": """
            package shop
            func first() {}
            func second() {}
            func other() {}
            var table = map[string]func(){"a": first, "b": second}
            func run(name string) { table[name]() }
            """
        }
    ) == {("run", "first", "element of a collection"), ("run", "second", "element of a collection")}
    assert calls(
        {
            "a.c": """
            static void first(void) {}
            static void second(void) {}
            static void third(void) {}
            static void other(void) {}
            struct row { const char *name; void (*run)(void); };
            static const struct row table[] = { { "a", first }, { "b", second } };
            static void (*list[])(void) = { first };
            static const struct { const char *name; void (*run)(void); } rows[] = { { "a", second }, { .run = third } };
            void each(int at) { rows[at].run(); }
            void run(int at) { table[at].run(); }
            void go(int at) { list[at](); }
            """
        }
    ) == {
        ("run", "first", "type of the receiver"),
        ("run", "second", "type of the receiver"),
        ("go", "first", "element of a collection"),
        ("each", "second", "element of a collection"),
        ("each", "third", "element of a collection"),
    }


def test_a_table_that_is_declared_to_hold_functions_holds_those_that_are_written(calls):
    assert calls(
        {
            "a.py": """
            import typing as t
            def card(): ...
            def cash(): ...
            WAYS: t.Mapping[str, t.Callable[[], None]] = {"card": card, "cash": cash}
            DEFAULT: t.Callable[[], None] = cash
            def run(name):
                WAYS[name]()
            def get(name):
                way = WAYS.get(name)
                way()
            def default():
                DEFAULT()
            """
        }
    ) == {
        *((caller, way, "element of a collection") for caller in ("run", "get") for way in ("card", "cash")),
        ("default", "cash", "same file"),
    }


def test_helpers_in_a_table_are_none_of_its_entries(calls):
    found = calls(
        {
            "a.js": """
            const table = {
              first() { this.helper(); },
              helper() {},
            };
            function run(name) { table[name](); }
            """
        }
    )

    assert found == {
        ("table.first", "table.helper", "type of the receiver"),
        ("run", "table.first", "element of a collection"),
    }


def test_a_module_whose_functions_are_read_by_a_computed_name_calls_any_of_them(calls):
    found = calls(
        {
            "steps.js": "exports.first = () => {};\nexports.second = () => {};\nfunction hidden() {}\n",
            "app.js": "const steps = require('./steps');\nfunction run(name) { steps[name](); }\n",
        }
    )

    assert found == {
        ("app.js::run", "steps.js::exports.first", "element of a collection"),
        ("app.js::run", "steps.js::exports.second", "element of a collection"),
    }


def test_what_a_table_is_besides_makes_its_functions_uncertain(calls):
    found = calls(
        {
            "a.js": """
            let table = { first() {} };
            table = load();
            function run(name) { table[name](); }
            """
        }
    )

    assert found == set()


def test_text_and_numbers_of_the_library_choose_among_functions(calls):
    found = calls(
        {
            "a.java": """
            class Shop {
                void show(String text) {}
                void show(double number) {}
                void run(Thing thing) { show(thing.toString()); }
                void go() { show(Math.sqrt(2)); }
            }
            """
        }
    )

    assert found == {
        ("Shop.run", "Shop.show", "type of the receiver"),
        ("Shop.go", "Shop.show~2", "type of the receiver"),
    }
