"""Callbacks: the arguments that functions and library methods pass to them."""


def test_a_function_that_is_given_is_called_by_what_it_is_given_to(calls):
    assert calls(
        {
            "a.py": """
            def look(): ...
            def other(): ...
            def run(callback):
                callback()
            def start():
                run(look)
                print(other)
            """
        }
    ) == {("run", "look", "argument of a caller"), ("start", "run", "same file")}
    assert calls(
        {
            "a.js": """
            function look() {}
            function other() {}
            function run(callback) { callback.call(null); }
            function start() { run(look); find(other); }
            """
        }
    ) == {("run", "look", "argument of a caller"), ("start", "run", "same file")}
    assert calls(
        {
            "a.go": """
            package shop
            func look() {}
            func other() {}
            func run(callback func()) { callback() }
            func start() { run(look); find(other) }
            """
        }
    ) == {("run", "look", "argument of a caller"), ("start", "run", "same file")}
    assert calls(
        {
            "a.c": """
            static void look(void) {}
            static void other(void) {}
            static void run(void (*callback)(void)) { callback(); }
            void start(void) { run(look); find(&other); }
            void again(void) { run(&look); }
            """
        }
    ) == {("run", "look", "argument of a caller"), ("start", "run", "same file"), ("again", "run", "same file")}
    assert calls(
        {
            "a.java": """
            class Shop {
                static void look() {}
                static void other() {}
                static void run(Runnable callback) { callback.run(); }
                static void start() { run(Shop::look); }
            }
            """
        }
    ) == {("Shop.run", "Shop.look", "argument of a caller"), ("Shop.start", "Shop.run", "type of the receiver")}
    assert calls(
        {
            "a.cs": """
            class Shop {
                static void Look() {}
                static void Other() {}
                static void Run(Action callback) { callback(); callback.Invoke(); }
                static void Start() { Run(Look); }
            }
            """
        }
    ) == {("Shop.Run", "Shop.Look", "argument of a caller"), ("Shop.Start", "Shop.Run", "type of the receiver")}
    assert calls(
        {
            "a.kt": """
            fun look() {}
            fun other() {}
            fun run(callback: () -> Unit) { callback() }
            fun start() { run(::look) }
            """
        }
    ) == {("run", "look", "argument of a caller"), ("start", "run", "same file")}
    assert calls(
        {
            "a.rs": """
            fn look() {}
            fn other() {}
            fn run(callback: fn()) { callback(); }
            fn start() { run(look); }
            """
        }
    ) == {("run", "look", "argument of a caller"), ("start", "run", "same file")}
    assert calls(
        {
            "a.php": """
            <?php
            function look() {}
            function other() {}
            function run(callable $callback) { $callback(); }
            function start() { run(look(...)); }
            class Shop {
                public function check() {}
                public function run() { call_user_func([$this, 'check']); }
            }
            """
        }
    ) == {
        ("run", "look", "argument of a caller"),
        ("start", "run", "same file"),
        ("Shop.run", "Shop.check", "type of the receiver"),
    }


def test_a_function_without_a_name_is_given_what_the_function_gives_it(calls):
    assert calls(
        {
            "a.js": """
            class Card { check() {} }
            class Cash { check() {} }
            function each(callback) { callback(1, new Card()); }
            function run() { each((at, card) => card.check()); }
            function none() { each((card) => card.check()); }
            """
        }
    ) == {
        ("each", "Card", "same file"),
        ("run", "each", "same file"),
        ("run", "Card.check", "type of the receiver"),
        ("none", "each", "same file"),
    }
    assert calls(
        {
            "a.js": """
            class Card { check() {} }
            class Cash { check() {} }
            function each(callback) { callback.apply(null, new Card()); inner(callback); }
            function inner(done) { done(new Cash()); }
            function run() { each((card) => card.check()); }
            """
        }
    ) == {
        *(("each", "Card", "same file"), ("each", "inner", "same file"), ("inner", "Cash", "same file")),
        *(
            ("run", "each", "same file"),
            ("run", "Card.check", "type of the receiver"),
            ("run", "Cash.check", "type of the receiver"),
        ),
    }
    assert calls(
        {
            "a.java": """
            class Card { void check() {} }
            class Cash { void check() {} }
            class Shop {
                void each(Consumer<Card> callback) {}
                void run() { each(card -> card.check()); }
            }
            """
        }
    ) == {
        *(("Shop.run", "Shop.each", "type of the receiver"), ("Shop.run", "Card.check", "type of the receiver")),
    }
    assert calls(
        {
            "a.cs": """
            class Card { public void Check() {} }
            class Cash { public void Check() {} }
            class Shop {
                void Each(Action<Card> callback) {}
                void Run() { Each(card => card.Check()); }
            }
            """
        }
    ) == {("Shop.Run", "Shop.Each", "type of the receiver"), ("Shop.Run", "Card.Check", "type of the receiver")}
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            class Cash { fun check() {} }
            fun each(callback: (Card) -> Unit) {}
            fun run() { each { card -> card.check() } }
            fun it_() { each { it.check() } }
            """
        }
    ) == {
        ("run", "each", "same file"),
        ("run", "Card.check", "type of the receiver"),
        ("it_", "each", "same file"),
        ("it_", "Card.check", "type of the receiver"),
    }


def test_a_named_function_is_given_what_those_give_to_which_it_is_given(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def each(callback):
                callback(Card())
            def look(card):
                card.check()
            def other(card):
                card.check()
            def run():
                each(look)
            """
        }
    ) == {
        *(("each", "Card", "same file"), ("each", "look", "argument of a caller")),
        *(("look", "Card.check", "type of the receiver"), ("run", "each", "same file")),
    }
    assert calls(
        {
            "a.ts": """
            class Card { check() {} }
            class Cash { check() {} }
            function look(card) { card.check(); }
            function other(card) { card.check(); }
            function run(cards: Card[]) { cards.forEach(look); }
            """
        }
    ) == {("look", "Card.check", "type of the receiver")}


def test_methods_of_the_library_give_elements_to_functions(calls):
    assert calls(
        {
            "a.ts": """
            class Card { check() {} }
            class Cash { check() {} }
            function each(cards: Card[]) { cards.forEach((card) => card.check()); }
            function second(cards: Card[]) { cards.reduce((sum, card) => card.check(), 0); }
            function none(cards: Card[]) { cards.forEach((card, at) => at.check()); }
            """
        }
    ) == {("each", "Card.check", "type of the receiver"), ("second", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.java": """
            class Card { void check() {} }
            class Cash { void check() {} }
            class Shop { void run(List<Card> cards) { cards.forEach(card -> card.check()); } }
            """
        }
    ) == {("Shop.run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.cs": """
            class Card { public bool Check() { return true; } }
            class Cash { public bool Check() { return true; } }
            class Shop { void Run(List<Card> cards) { cards.Where(card => card.Check()); } }
            """
        }
    ) == {("Shop.Run", "Card.Check", "type of the receiver")}
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            class Cash { fun check() {} }
            fun run(cards: List<Card>) { cards.filter { it.check() } }
            fun same(card: Card) { card.let { it.check() } }
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("same", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.rs": """
            struct Card;
            impl Card { fn check(&self) {} }
            struct Cash;
            impl Cash { fn check(&self) {} }
            fn run(cards: Vec<Card>) { cards.iter().for_each(|card| card.check()); }
            fn some(card: Option<Card>) { card.map(|it| it.check()); }
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("some", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.cpp": """
            #include <algorithm>
            #include <vector>
            struct Card { void check() {} };
            struct Cash { void check() {} };
            void run(std::vector<Card> cards) {
              std::for_each(cards.begin(), cards.end(), [](auto& card) { card.check(); });
            }
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}


def test_a_fold_gives_what_it_begins_with(calls):
    assert calls(
        {
            "a.js": """
            class Card { check() {} }
            class Cash { check() {} }
            function run(names) { names.reduce((sum, name) => sum.check(name), new Card()); }
            """
        }
    ) == {("run", "Card", "same file"), ("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.rb": """
            class Card
              def check
              end
            end
            def run(names)
              names.inject(Card.new) { |sum, name| sum.check }
            end
            """
        }
    ) == {("run", "Card", "same file"), ("run", "Card.check", "type of the receiver")}


def test_blocks_of_ruby_are_given_what_is_yielded(calls):
    found = calls(
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
            class Box
              def each
                yield Card.new
              end
              def both(&block)
                block.call(1, Cash.new)
              end
              def on(&block)
                each(&block)
              end
            end
            def run
              Box.new.each { |card| card.check }
            end
            def two
              Box.new.both { |at, cash| cash.check }
            end
            def passed
              Box.new.on { |card| card.check }
            end
            """
        }
    )

    assert found == {
        *(
            ("Box.each", "Card", "same file"),
            ("Box.both", "Cash", "same file"),
            ("Box.on", "Box.each", "type of the receiver"),
        ),
        *(
            ("run", "Box", "same file"),
            ("run", "Box.each", "type of the receiver"),
            ("run", "Card.check", "type of the receiver"),
        ),
        *(
            ("two", "Box", "same file"),
            ("two", "Box.both", "type of the receiver"),
            ("two", "Cash.check", "type of the receiver"),
        ),
        *(
            ("passed", "Box", "same file"),
            ("passed", "Box.on", "type of the receiver"),
            ("passed", "Card.check", "type of the receiver"),
        ),
    }


def test_other_methods_of_an_enumerable_of_ruby_give_what_each_gives(calls):
    found = calls(
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
            class Box
              include Enumerable
              def initialize(card)
                @card = card
              end
              def each
                yield @card
              end
            end
            def run
              Box.new(Card.new).map { |card| card.check }
            end
            """
        }
    )

    assert found == {
        ("run", "Card", "same file"),
        ("run", "Box", "same file"),
        ("run", "Card.check", "type of the receiver"),
    }


def test_lambdas_of_kotlin_have_a_receiver(calls):
    found = calls(
        {
            "a.kt": """
            class Card {
                fun check() {}
                fun count() {}
            }
            class Cash { fun check() {} }
            fun build(init: Card.() -> Unit) {}
            fun run() { build { check() } }
            fun own() { build { this.count() } }
            fun applied(card: Card) { card.apply { check() } }
            fun with_(card: Card) { with(card) { count() } }
            fun also_(card: Card) { card.also { check() } }
            """
        }
    )

    assert found == {
        *(("run", "build", "same file"), ("run", "Card.check", "type of the receiver")),
        *(("own", "build", "same file"), ("own", "Card.count", "type of the receiver")),
        *(("applied", "Card.check", "type of the receiver"), ("with_", "Card.count", "type of the receiver")),
    }


def test_a_receiver_of_kotlin_around_others_needs_no_object(calls):
    found = calls(
        {
            "a.kt": """
            class Page {
                fun row(init: Row.() -> Unit) {}
                fun title() {}
            }
            class Row { fun cell() {} }
            class Other { fun cell() {} }
            fun page(init: Page.() -> Unit) {}
            fun run() {
                page {
                    row {
                        cell()
                        title()
                    }
                }
            }
            fun labelled() {
                page { row { this@page.title() } }
            }
            """
        }
    )

    assert found == {
        ("run", "page", "same file"),
        ("run", "Page.row", "type of the receiver"),
        ("run", "Row.cell", "type of the receiver"),
        ("run", "Page.title", "type of the receiver"),
        ("labelled", "page", "same file"),
        ("labelled", "Page.row", "type of the receiver"),
        ("labelled", "Page.title", "type of the receiver"),
    }


def test_a_method_that_is_bound_to_its_object_is_called(calls):
    assert calls(
        {
            "a.js": """
            class Card {
              constructor() { this.check = this.look.bind(this); }
              look() {}
              run() { this.check(); }
            }
            function each(callback) { callback(); }
            function start() { const card = new Card(); each(card.look.bind(card)); }
            """
        }
    ) == {
        *(("Card.run", "Card.look", "type of the receiver"), ("each", "Card.look", "argument of a caller")),
        *(("start", "Card", "same file"), ("start", "each", "same file")),
    }
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def each(callback):
                callback()
            def start():
                each(Card().check)
            """
        }
    ) == {
        ("each", "Card.check", "argument of a caller"),
        ("start", "each", "same file"),
        ("start", "Card", "same file"),
    }
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            class Cash { fun check() {} }
            fun each(callback: () -> Unit) { callback() }
            fun start(card: Card) { each(card::check) }
            """
        }
    ) == {("each", "Card.check", "argument of a caller"), ("start", "each", "same file")}
    assert calls(
        {
            "a.java": """
            class Cash { void look() {} }
            class Shop {
                void each(Runnable callback) { callback.run(); }
                void look() {}
                void start() { each(this::look); }
            }
            """
        }
    ) == {
        ("Shop.each", "Shop.look", "argument of a caller"),
        ("Shop.start", "Shop.each", "type of the receiver"),
    }
    assert calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c Card) Check() {}
            type Cash struct{}
            func (c Cash) Check() {}
            func each(callback func()) { callback() }
            func start(card Card) { each(card.Check) }
            """
        }
    ) == {("each", "Card.Check", "argument of a caller"), ("start", "each", "same file")}


def test_a_lambda_of_cpp_is_part_of_the_function_around_it(calls):
    found = calls(
        {
            "a.cpp": """
            struct Card { void check() {} };
            struct Cash { void check() {} };
            void look() {}
            void run(Card card) {
              each([&](Card& it) { it.check(); look(); });
            }
            """
        }
    )

    assert found == {("run", "Card.check", "type of the receiver"), ("run", "look", "same file")}


def test_parameters_of_one_name_have_the_types_of_their_own_functions(calls):
    found = calls(
        {
            "a.java": """
            class Card { void check() {} }
            class Cash { void count() {} void check() {} }
            class Shop {
                void run(List<Card> cards, List<Cash> more) {
                    cards.forEach(it -> it.check());
                    more.forEach(it -> it.count());
                }
            }
            """
        }
    )

    assert found == {
        ("Shop.run", "Card.check", "type of the receiver"),
        ("Shop.run", "Cash.count", "type of the receiver"),
    }
