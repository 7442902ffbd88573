"""Types of variables, fields and parameters: declared, constructed, assigned, narrowed or injected."""


def test_what_is_made_has_the_methods_of_its_class(calls):
    card = "class Card { constructor() {} check() {} }\nclass Cash { check() {} }\n"
    assert calls({"a.ts": f"{card}function run() {{ const card = new Card(); card.check(); new Cash(); }}"}) == {
        ("run", "Card", "same file"),
        ("run", "Card.check", "type of the receiver"),
        ("run", "Cash", "same file"),
    }
    assert calls(
        {
            "a.java": """
            class Card { Card(int at) {} void check() {} }
            class Cash { void check() {} }
            class Shop { void run() { var card = new Card(1); card.check(); } }
            """
        }
    ) == {("Shop.run", "Card", "same file"), ("Shop.run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.cpp": """
            struct Card { Card(int at) {} void check() {} };
            struct Cash { void check() {} };
            void heap() { auto card = new Card(1); card->check(); }
            void stack() { Card card(1); card.check(); }
            void braces() { Card card{1}; card.check(); }
            void direct() { Card(1).check(); }
            """
        }
    ) == {
        *(("heap", "Card", "same file"), ("heap", "Card.check", "type of the receiver")),
        *(("stack", "Card", "same file"), ("stack", "Card.check", "type of the receiver")),
        *(("braces", "Card", "same file"), ("braces", "Card.check", "type of the receiver")),
        *(("direct", "Card", "same file"), ("direct", "Card.check", "type of the receiver")),
    }
    assert calls(
        {
            "a.cs": """
            class Card { public void Check() {} }
            class Cash { public void Check() {} }
            class Shop {
                Card field = new();
                void Run() { Card card = new(); card.Check(); }
                Card Go() => new();
            }
            """
        }
    ) == {
        ("Shop", "Card", "same file"),
        ("Shop.Run", "Card", "same file"),
        ("Shop.Run", "Card.Check", "type of the receiver"),
        ("Shop.Go", "Card", "same file"),
    }
    assert calls(
        {
            "a.kt": """
            class Card(val at: Int) { fun check() {} }
            class Cash { fun check() {} }
            fun run() { val card = Card(1); card.check() }
            """
        }
    ) == {("run", "Card", "same file"), ("run", "Card.check", "type of the receiver")}


def test_a_constructor_that_is_written_runs_by_the_name_of_its_class(calls):
    assert calls({"a.py": "class Card:\n    def __init__(self): ...\ndef run():\n    Card()\n"}) == {
        ("run", "Card", "same file")
    }
    assert calls({"a.rb": "class Card\n  def initialize\n  end\nend\ndef run\n  Card.new\nend\n"}) == {
        ("run", "Card", "same file")
    }


def test_a_class_method_that_is_called_new_is_itself_called(calls):
    found = calls(
        {
            "a.rb": """
            class Card
              def self.new
              end
            end
            module Cash
            end
            def run
              Card.new
              Cash.new
            end
            """
        }
    )

    assert found == {("run", "Card.new", "type of the receiver")}


def test_a_declared_parameter_has_the_methods_of_its_type(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def run(card: Card, other: "Cash | None", none):
                card.check()
                none.check()
            def go(other: "Cash | None"):
                other.check()
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("go", "Cash.check", "type of the receiver")}
    assert calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c *Card) Check() {}
            type Cash struct{}
            func (c Cash) Check() {}
            func run(card *Card) { card.Check() }
            """
        }
    ) == {("run", "Card.Check", "type of the receiver")}
    assert calls(
        {
            "a.php": """
            <?php
            class Card { public function check() {} }
            class Cash { public function check() {} }
            function run(?Card $card, $none) { $card->check(); $none->check(); }
            /** @param Cash $cash */
            function go($cash) { $cash->check(); }
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("go", "Cash.check", "type of the receiver")}


def test_what_is_declared_as_one_of_several_types_has_the_methods_of_each(calls):
    found = calls(
        {
            "a.py": """
            from typing import Union
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def run(way: Card | Cash | None):
                way.check()
            def named(way: Union[Card, Cash]):
                way.check()
            """
        }
    )
    assert found == {
        (caller, f"{way}.check", "type of the receiver") for caller in ("run", "named") for way in ("Card", "Cash")
    }
    assert calls(
        {
            "a.ts": """
            class Card { check() {} }
            class Cash { check() {} }
            function run(way: Card | Cash | undefined) { way.check(); }
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("run", "Cash.check", "type of the receiver")}


def test_what_is_declared_as_an_object_or_a_function_may_be_either(calls):
    assert calls(
        {
            "a.py": """
            import typing as t
            class Card:
                def check(self): ...
            def pay(): ...
            def run(way: "Card | t.Callable[[], None]"):
                way.check()
                way()
            def choose() -> "Card | t.Callable[[], None]":
                def other(): ...
                return other
            def go():
                run(pay)
                choose()()
            """
        }
    ) == {
        ("run", "Card.check", "type of the receiver"),
        ("run", "pay", "argument of a caller"),
        ("go", "run", "same file"),
        ("go", "choose", "same file"),
        ("go", "choose.other", "returned type"),
    }


def test_a_wrapper_has_the_methods_of_what_it_holds(calls):
    assert calls(
        {
            "a.py": """
            from typing import Annotated, Optional
            class Card:
                def check(self): ...
            def run(card: Optional[Card]):
                card.check()
            def go(card: Annotated[Card, "paid"], cls: type[Card]):
                cls()
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("go", "Card", "type of the receiver")}
    assert calls(
        {
            "a.ts": """
            class Card { check() {} }
            async function find(): Promise<Card> { return cards[0]; }
            async function run() { const card = await find(); card.check(); }
            function go(card: Readonly<Card>) { card.check(); }
            """
        }
    ) == {
        ("run", "find", "same file"),
        ("run", "Card.check", "type of the receiver"),
        ("go", "Card.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.rs": """
            use std::rc::Rc;
            use std::cell::RefCell;
            struct Card;
            impl Card { fn check(&self) {} }
            fn run(card: Rc<Card>) { card.clone().check(); }
            fn go(card: Rc<RefCell<Card>>) { card.borrow_mut().check(); }
            fn maybe(card: Option<Card>) { card.unwrap().check(); }
            fn fails(card: Result<Card, String>) -> Option<()> { card?.check(); None }
            fn none(card: Option<Card>) { card.check(); }
            """
        }
    ) == {
        ("run", "Card.check", "type of the receiver"),
        ("go", "Card.check", "type of the receiver"),
        ("maybe", "Card.check", "type of the receiver"),
        ("fails", "Card.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.cs": """
            using System.Threading.Tasks;
            class Card { public void Check() {} }
            class Shop {
                Task<Card> Find() { return null; }
                async Task Run() { var card = await Find(); card.Check(); }
            }
            """
        }
    ) == {("Shop.Run", "Shop.Find", "type of the receiver"), ("Shop.Run", "Card.Check", "type of the receiver")}


def test_an_alias_of_a_type_is_the_type(calls):
    assert calls(
        {
            "a.ts": """
            class Card { check() {} }
            type Plastic = Card;
            function run(card: Plastic) { card.check(); }
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.rs": """
            struct Card;
            impl Card { fn check(&self) {} }
            type Plastic = Card;
            fn run(card: &Plastic) { card.check(); }
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c Card) Check() {}
            type Plastic = Card
            func run(card Plastic) { card.Check() }
            """
        }
    ) == {("run", "Card.Check", "class hierarchy")}
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            typealias Plastic = Card
            fun run(card: Plastic) { card.check() }
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.cpp": """
            struct Card { void check() {} };
            using Plastic = Card;
            void run(Plastic* card) { card->check(); }
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}


def test_a_field_is_what_it_is_declared_to_be(calls):
    assert calls(
        {
            "a.ts": """
            class Card { check() {} }
            class Cash { check() {} }
            class Shop {
              card: Card;
              constructor(private cash: Cash) {}
              run() { this.card.check(); }
              go() { this.cash.check(); }
            }
            """
        }
    ) == {("Shop.run", "Card.check", "type of the receiver"), ("Shop.go", "Cash.check", "type of the receiver")}
    assert calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c Card) Check() {}
            type Cash struct{}
            func (c Cash) Check() {}
            type Shop struct { card *Card; cash Cash }
            func (s *Shop) Run() { s.card.Check() }
            """
        }
    ) == {("Shop.Run", "Card.Check", "type of the receiver")}
    assert calls(
        {
            "a.php": """
            <?php
            class Card { public function check() {} }
            class Cash { public function check() {} }
            class Shop {
                private Card $card;
                /** @var Cash */
                private $cash;
                public function __construct(private Card $other) {}
                public function run() { $this->card->check(); }
                public function go() { $this->cash->check(); }
                public function on() { $this->other->check(); }
            }
            """
        }
    ) == {
        ("Shop.run", "Card.check", "type of the receiver"),
        ("Shop.go", "Cash.check", "type of the receiver"),
        ("Shop.on", "Card.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.rs": """
            struct Card;
            impl Card { fn check(&self) {} }
            struct Cash;
            impl Cash { fn check(&self) {} }
            struct Shop { card: Card }
            struct Pair(Card, Cash);
            impl Shop { fn run(&self) { self.card.check(); } }
            impl Pair { fn run(&self) { self.1.check(); } }
            """
        }
    ) == {("Shop.run", "Card.check", "type of the receiver"), ("Pair.run", "Cash.check", "type of the receiver")}


def test_an_attribute_is_what_methods_assign_to_it(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            class Shop:
                def __init__(self):
                    self.card = Card()
                def run(self):
                    self.card.check()
                    self.cash.check()
            class Other:
                def __init__(self):
                    self.cash = Cash()
            """
        }
    ) == {
        ("Shop.__init__", "Card", "same file"),
        ("Shop.run", "Card.check", "type of the receiver"),
        ("Other.__init__", "Cash", "same file"),
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
            class Shop
              attr_reader :card
              def initialize
                @card = Card.new
                @other = Cash.new
              end
              def run
                @card.check
              end
              def go
                card.check
              end
            end
            """
        }
    ) == {
        ("Shop.initialize", "Card", "same file"),
        ("Shop.initialize", "Cash", "same file"),
        ("Shop.run", "Card.check", "type of the receiver"),
        ("Shop.go", "Card.check", "type of the receiver"),
    }


def test_an_attribute_is_what_the_constructor_is_given(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            class Shop:
                def __init__(self, card, other=None):
                    self.card = card
                    self.other = other
                def run(self):
                    self.card.check()
                def go(self):
                    self.other.check()
            def start():
                Shop(Card(), other=Cash())
            """
        }
    ) == {
        ("Shop.run", "Card.check", "type of the receiver"),
        ("Shop.go", "Cash.check", "type of the receiver"),
        ("start", "Shop", "same file"),
        ("start", "Card", "same file"),
        ("start", "Cash", "same file"),
    }
    assert calls(
        {
            "a.js": """
            class Card { check() {} }
            class Cash { check() {} }
            class Shop {
              constructor(card) { this.card = card; }
              run() { this.card.check(); }
            }
            function start() { new Shop(new Card()); new Cash(); }
            """
        }
    ) == {
        ("Shop.run", "Card.check", "type of the receiver"),
        ("start", "Shop", "same file"),
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
            Shop = Struct.new(:card, :name) do
              def run
                card.check
              end
            end
            Shop.new(Card.new, 1)
            """
        }
    ) == {
        ("Shop.run", "Card.check", "type of the receiver"),
        ("a.rb", "Card", "same file"),
        ("a.rb", "Shop", "same file"),
    }


def test_a_field_of_functions_is_what_objects_are_written_with(calls):
    assert calls(
        {
            "a.go": """
            package shop
            type Shop struct { name string; check func() }
            func (s Shop) Run() { s.check() }
            func look() {}
            func other() {}
            func start() { _ = Shop{name: "a", check: look}; other() }
            """
        }
    ) == {("Shop.Run", "look", "argument of a caller"), ("start", "other", "same file")}
    assert calls(
        {
            "a.go": """
            package shop
            type Shop struct { name string; check func() }
            func (s *Shop) Run() { s.check() }
            func look() {}
            func other() {}
            func start(s *Shop) { s.check = look }
            """
        }
    ) == {("Shop.Run", "look", "argument of a caller")}
    assert calls(
        {
            "a.rs": """
            struct Shop { check: fn() }
            impl Shop { fn run(&self) { (self.check)(); } }
            fn look() {}
            fn other() {}
            fn start() -> Shop { Shop { check: look } }
            """
        }
    ) == {("Shop.run", "look", "argument of a caller")}
    assert calls(
        {
            "a.c": """
            struct shop { int name; void (*check)(void); };
            static void look(void) {}
            static void other(void) {}
            static struct shop one = { 1, look };
            static struct shop two = { .check = look, .name = 2 };
            void run(struct shop *s) { s->check(); }
            """
        }
    ) == {("run", "look", "type of the receiver")}
    assert calls(
        {
            "a.c": """
            struct shop { int name; void (*check)(void); };
            static void look(void) {}
            static void other(void) {}
            void start(struct shop *s) { s->check = look; }
            void run(struct shop *s) { s->check(); }
            """
        }
    ) == {("run", "look", "type of the receiver")}
    assert calls(
        {
            "a.java": """
            class Shop {
                Runnable check;
                Shop(Runnable check) { this.check = check; }
                void run() { check.run(); }
            }
            class Main {
                static void look() {}
                static void other() {}
                void start() { new Shop(Main::look); }
            }
            """
        }
    ) == {("Main.start", "Shop", "same file"), ("Shop.run", "Main.look", "argument of a caller")}


def test_a_type_of_functions_with_a_name_is_called_by_what_it_is_given(calls):
    found = calls(
        {
            "a.go": """
            package shop
            type Check func(at int) Card
            type Card struct{}
            func (c Card) Pay() {}
            func run(check Check) { check(1).Pay() }
            func look(at int) Card { return Card{} }
            func start() { run(look) }
            """
        }
    )

    assert found == {
        ("run", "look", "argument of a caller"),
        ("run", "Card.Pay", "type of the receiver"),
        ("start", "run", "same file"),
    }


def test_a_type_parameter_is_what_an_object_is_made_for(calls):
    assert calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c Card) Check() {}
            type Cash struct{}
            func (c Cash) Check() {}
            type Box[T any] struct { held T }
            func (b Box[T]) Get() T { return b.held }
            func run(box Box[Card]) { box.Get().Check() }
            """
        }
    ) == {("run", "Box.Get", "type of the receiver"), ("run", "Card.Check", "type of the receiver")}
    assert calls(
        {
            "a.java": """
            class Card { void check() {} }
            class Cash { void check() {} }
            class Box<K, T> { T get(K key) { return null; } }
            class Cards extends Box<String, Card> {}
            class Shop {
                void run(Box<String, Card> box) { box.get("a").check(); }
                void go(Cards box) { box.get("a").check(); }
            }
            """
        }
    ) == {
        ("Shop.run", "Box.get", "type of the receiver"),
        ("Shop.run", "Card.check", "type of the receiver"),
        ("Shop.go", "Box.get", "class hierarchy"),
        ("Shop.go", "Card.check", "type of the receiver"),
    }
    assert calls(
        {
            "a.rs": """
            struct Card;
            impl Card { fn check(&self) {} }
            struct Box2<T> { held: T }
            impl<T> Box2<T> { fn get(&self) -> &T { &self.held } }
            fn run(two: Box2<Card>) { two.held.check(); }
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}


def test_type_arguments_of_a_call_say_what_it_makes(calls):
    assert calls(
        {
            "a.kt": """
            class Card { fun check() {} }
            class Cash { fun check() {} }
            class Box<T>(val held: T) { fun get(): T = held }
            fun run() {
                val cards = mutableListOf<Card>()
                cards.first().check()
            }
            fun go() {
                val box = Box<Cash>(Cash())
                box.get().check()
            }
            """
        }
    ) == {
        ("run", "Card.check", "type of the receiver"),
        *(
            ("go", "Box", "same file"),
            ("go", "Cash", "same file"),
            ("go", "Box.get", "type of the receiver"),
            ("go", "Cash.check", "type of the receiver"),
        ),
    }


def test_an_object_of_kotlin_without_a_class_is_of_its_first_type(calls):
    found = calls(
        {
            "a.kt": """
            interface Pay { fun check() {} }
            class Other { fun check() {} }
            fun run() {
                val it = object : Pay {}
                it.check()
            }
            """
        }
    )

    assert found == {("run", "Pay.check", "type of the receiver")}


def test_a_bounded_type_parameter_has_the_methods_of_its_bound(calls):
    assert calls(
        {
            "a.java": """
            interface Pay { void check(); }
            class Other { void check() {} }
            class Shop {
                <T extends Pay> void run(T with) { with.check(); }
                <T> void any(T with) { with.check(); }
            }
            """
        }
    ) == {("Shop.run", "Pay.check", "type of the receiver")}
    assert calls(
        {
            "a.cs": """
            interface Pay { void Check(); }
            class Other { public void Check() {} }
            class Shop {
                void Run<T>(T with) where T : Pay { with.Check(); }
                void Any<T>(T with) { with.Check(); }
            }
            """
        }
    ) == {("Shop.Run", "Pay.Check", "type of the receiver")}
    assert calls(
        {
            "a.kt": """
            interface Pay { fun check() }
            class Other { fun check() {} }
            fun <T : Pay> run(with: T) { with.check() }
            fun <T> any(with: T) { with.check() }
            """
        }
    ) == {("run", "Pay.check", "type of the receiver")}


def test_a_type_parameter_of_python_has_the_methods_of_its_bound(calls):
    assert calls(
        {
            "a.py": """
            import typing as t
            class Card:
                def check(self): ...
            T = t.TypeVar("T", bound="Card")
            Free = t.TypeVar("Free")
            def run(card: T) -> T:
                card.check()
                return card
            def go():
                run(1).check()
            def free(card: Free):
                card.check()
            """
        }
    ) == {
        ("run", "Card.check", "type of the receiver"),
        ("go", "run", "same file"),
        ("go", "Card.check", "type of the receiver"),
    }


def test_a_generic_class_of_python_makes_objects_with_its_arguments_too(calls):
    assert calls(
        {
            "a.py": """
            import typing as t
            T = t.TypeVar("T")
            class Box(t.Generic[T]):
                def open(self): ...
            def run():
                Box[int]().open()
            """
        }
    ) == {("run", "Box", "same file"), ("run", "Box.open", "type of the receiver")}


def test_what_is_tested_to_be_of_a_type_has_its_methods(calls):
    assert calls(
        {
            "a.php": """
            <?php
            class Card { public function check() {} }
            class Cash { public function check() {} }
            function run($with) { if ($with instanceof Card) { $with->check(); } }
            function both($with) {
                if ($with instanceof Card) { return; }
                if ($with instanceof Cash) { $with->check(); }
            }
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def run(given):
                if isinstance(given, Card):
                    given.check()
            def either(given):
                if isinstance(given, (Card, Cash)):
                    given.check()
            def both(given):
                if isinstance(given, Card): ...
                if isinstance(given, Cash):
                    given.check()
            """
        }
    ) == {("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.java": """
            class Card { void check() {} }
            class Cash { void check() {} }
            class Shop { void run(Object with) { if (with instanceof Card card) { card.check(); } } }
            """
        }
    ) == {("Shop.run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c Card) Check() {}
            type Cash struct{}
            func (c Cash) Check() {}
            func run(with any) {
                switch it := with.(type) {
                case Card:
                    it.Check()
                case Cash:
                    _ = it
                }
            }
            func assert(with any) { with.(Cash).Check() }
            """
        }
    ) == {("run", "Card.Check", "type of the receiver"), ("assert", "Cash.Check", "type of the receiver")}


def test_a_cast_says_what_something_is(calls):
    assert calls(
        {"a.java": "class Card { void check() {} }\nclass Shop { void run(Object x) { ((Card) x).check(); } }\n"}
    ) == {("Shop.run", "Card.check", "type of the receiver")}
    assert calls(
        {"a.cpp": "struct Card { void check() {} };\nvoid run(void* x) { static_cast<Card*>(x)->check(); }\n"}
    ) == {("run", "Card.check", "type of the receiver")}
    assert calls(
        {
            "a.py": """
            import typing as t
            class Card:
                def check(self): ...
            def run(x):
                t.cast(Card, x).check()
            def quoted(x):
                card = t.cast("Card | None", x)
                card.check()
            def plain(x):
                t.cast(None, x).check()
            """
        }
    ) == {("run", "Card.check", "type of the receiver"), ("quoted", "Card.check", "type of the receiver")}


def test_what_is_caught_is_an_object_of_what_it_is_caught_as(calls):
    assert calls(
        {
            "a.py": """
            class Refused(Exception):
                def show(self): ...
            class Lost(Exception):
                def find(self): ...
            def run():
                try: ...
                except Refused as error:
                    error.show()
            def either():
                try: ...
                except (Refused, Lost) as error:
                    error.find()
            """
        }
    ) == {("run", "Refused.show", "type of the receiver"), ("either", "Lost.find", "type of the receiver")}


def test_a_pattern_of_rust_takes_parts_out_of_what_it_matches(calls):
    found = calls(
        {
            "a.rs": """
            struct Card;
            impl Card { fn check(&self) {} }
            struct Cash;
            impl Cash { fn check(&self) {} fn count(&self) {} }
            enum Pay { With(Card), By { cash: Cash }, Two(Cash, Card) }
            fn run(pay: Pay) { match pay { Pay::With(one) => one.check(), _ => {} } }
            fn named(pay: Pay) { if let Pay::By { cash } = pay { cash.count(); } }
            fn second(pay: Pay) { if let Pay::Two(one, two) = pay { two.check(); } }
            fn some(card: Option<Card>) { if let Some(it) = card { it.check(); } }
            fn pair(both: (Cash, Card)) { let (one, two) = both; two.check(); }
            """
        }
    )

    assert found == {
        ("run", "Card.check", "type of the receiver"),
        ("named", "Cash.count", "type of the receiver"),
        ("second", "Card.check", "type of the receiver"),
        ("some", "Card.check", "type of the receiver"),
        ("pair", "Card.check", "type of the receiver"),
    }


def test_parts_of_an_object_are_taken_out_by_their_names(calls):
    found = calls(
        {
            "a.ts": """
            class Card { check() {} }
            class Shop { card: Card; other: any; }
            function run(shop: Shop) { const { card } = shop; card.check(); }
            function go({ card: it }: Shop) { it.check(); }
            function none({ other }: Shop) { other.check(); }
            """
        }
    )

    assert found == {("run", "Card.check", "type of the receiver"), ("go", "Card.check", "type of the receiver")}


def test_parts_of_a_tuple_of_python_go_to_several_names(calls):
    found = calls(
        {
            "a.py": """
            class Card:
                def check(self): ...
            class Cash:
                def count(self): ...
            def pay() -> tuple[str, Card | None, Cash]: ...
            def each() -> list[tuple[Card, Cash]]: ...
            def run():
                name, card, cash = pay()
                card.check()
                cash.count()
            def loop():
                for card, cash in each():
                    card.check()
                    cash.count()
            def comprehended():
                return [(card.check(), cash.count()) for card, cash in each()]
            def written():
                card, cash = Card(), Cash()
                card.check()
                cash.count()
            def zipped(cards: list[Card], cashes: list[Cash]):
                for card, cash in zip(cards, cashes):
                    card.check()
                    cash.count()
            def rest():
                name, *others = pay()
                others.check()
            def pairs(by_name: dict[str, tuple[Cash, Card]], cards: list[Card]):
                for name, both in by_name.items():
                    both.check()
                for at, card in enumerate(cards):
                    card.check()
            """
        }
    )

    both = {("Card.check", "type of the receiver"), ("Cash.count", "type of the receiver")}
    made = {("Card", "same file"), ("Cash", "same file")}
    assert found == {
        *(("run", *call) for call in both | {("pay", "same file")}),
        *(("loop", *call) for call in both | {("each", "same file")}),
        *(("comprehended", *call) for call in both | {("each", "same file")}),
        *(("written", *call) for call in both | made),
        *(("zipped", *call) for call in both),
        ("rest", "pay", "same file"),
        ("pairs", "Card.check", "type of the receiver"),
    }


def test_several_results_of_go_go_to_several_variables(calls):
    found = calls(
        {
            "a.go": """
            package shop
            type Card struct{}
            func (c Card) Check() {}
            type Cash struct{}
            func (c Cash) Check() {}
            func find() (int, Card) { return 1, Card{} }
            func run() { at, card := find(); at.Check(); card.Check() }
            func two() { a, b := Cash{}, 1; a.Check(); b.Check() }
            """
        }
    )

    assert found == {
        ("run", "find", "same file"),
        ("run", "Card.Check", "type of the receiver"),
        ("two", "Cash.Check", "type of the receiver"),
    }


def test_an_object_that_is_called_runs_the_method_for_that(calls):
    assert calls(
        {
            "a.py": """
            class Card:
                def __call__(self): ...
            class Cash: ...
            def run(card: Card, cash: Cash):
                card()
                cash()
            """
        }
    ) == {("run", "Card.__call__", "type of the receiver")}
    assert calls(
        {"a.php": "<?php\nclass Card { public function __invoke() {} }\nfunction run(Card $card) { $card(); }\n"}
    ) == {("run", "Card.__invoke", "type of the receiver")}
    assert calls({"a.kt": "class Card { operator fun invoke() {} }\nfun run(card: Card) { card() }\n"}) == {
        ("run", "Card.invoke", "type of the receiver")
    }
    assert calls({"a.cpp": "struct Card { void operator()() {} };\nvoid run(Card card) { card(); }\n"}) == {
        ("run", "Card.operator()", "type of the receiver")
    }
    assert calls(
        {"a.rb": "class Card\n  def call\n  end\nend\ndef run\n  card = Card.new\n  card.()\n  card.call\nend\n"}
    ) == {("run", "Card", "same file"), ("run", "Card.call", "type of the receiver")}
