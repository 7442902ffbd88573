"""Scopes: the innermost definition wins, and shadowed names are not found."""


def test_the_innermost_function_of_a_name_is_called(calls):
    found = calls(
        {
            "app.py": """
            def check(): ...
            def outer():
                def check(): ...
                check()
            def other():
                check()
            """
        }
    )

    assert found == {("outer", "outer.check", "same scope"), ("other", "check", "same file")}


def test_a_parameter_hides_a_function_of_its_name(calls):
    found = calls(
        {
            "app.py": """
            def check(): ...
            def run(check):
                check()
            """
        }
    )

    assert found == set()


def test_a_parameter_is_also_what_is_given_where_what_is_assigned_lies_outside(calls):
    found = calls(
        {
            "app.py": """
            import typing as t
            class Card:
                def check(self): ...
            class Cash:
                def check(self): ...
            def run(with_: Card):
                with_ = t.get(with_)
                with_.check()
            def other(with_: Card):
                with_ = Cash()
                with_.check()
            """
        }
    )

    assert found == {
        ("run", "Card.check", "type of the receiver"),
        ("other", "Cash", "same file"),
        ("other", "Cash.check", "type of the receiver"),
    }


def test_a_function_that_is_defined_again_is_the_last_one_in_python(calls):
    found = calls(
        {
            "app.py": """
            def check(): ...
            def check(): ...
            def run():
                check()
            """
        }
    )

    assert found == {("run", "check~2", "same file")}


def test_a_method_of_python_needs_its_object(calls):
    found = calls(
        {
            "app.py": """
            class Shop:
                def check(self): ...
                def run(self):
                    check()
                def go(self):
                    self.check()
            """
        }
    )

    assert found == {("Shop.go", "Shop.check", "type of the receiver")}


def test_the_body_of_a_class_of_python_sees_its_own_names_alone(calls):
    found = calls(
        {
            "app.py": """
            class Base:
                def above(): ...
            class Shop(Base):
                def make(): ...
                made = make()
                other = above()
            """
        }
    )

    assert found == {("Shop", "Shop.make", "type of the receiver")}


def test_self_is_another_object_where_a_function_assigns_to_it(calls):
    found = calls(
        {
            "app.py": """
            class Other:
                def check(self): ...
            class Shop:
                def check(self): ...
                def run(self):
                    self = Other()
                    self.check()
                def go(self):
                    def inner():
                        self.check()
                    inner()
            """
        }
    )

    assert found == {
        ("Shop.run", "Other", "same file"),
        ("Shop.run", "Other.check", "type of the receiver"),
        ("Shop.go", "Shop.go.inner", "same scope"),
        ("Shop.go.inner", "Shop.check", "type of the receiver"),
    }


def test_a_class_method_makes_objects_of_its_class(calls):
    found = calls(
        {
            "app.py": """
            class Shop:
                def check(self): ...
                @classmethod
                def create(cls):
                    made = cls()
                    made.check()
            """
        }
    )

    assert found == {("Shop.create", "Shop", "same scope"), ("Shop.create", "Shop.check", "type of the receiver")}


def test_the_class_of_an_object_makes_another_one(calls):
    found = calls(
        {
            "app.py": """
            class Card:
                def again(self):
                    return type(self)()
                def other(self):
                    return self.__class__()
            def run(card: Card):
                type(card)().again()
            def made():
                return type("Card", (), {})()
            """
        }
    )

    assert found == {
        ("Card.again", "Card", "same scope"),
        ("Card.other", "Card", "same scope"),
        ("run", "Card", "type of the receiver"),
        ("run", "Card.again", "type of the receiver"),
    }


def test_what_a_default_calls_runs_where_the_function_is_defined(calls):
    found = calls(
        {
            "app.py": """
            def limit(): ...
            def run(most=limit()): ...
            """
        }
    )

    assert found == {("app.py", "limit", "same file")}


def test_a_method_of_an_object_literal_is_not_found_by_its_name_alone(calls):
    found = calls(
        {
            "app.js": """
            const table = { start() {} };
            function run() { start(); }
            function go() { table.start(); }
            """
        }
    )

    assert found == {("go", "table.start", "type of the receiver")}


def test_functions_of_one_name_in_several_blocks_of_javascript_are_ambiguous(calls):
    found = calls(
        {
            "app.js": """
            if (fast) { function start() {} } else { function start() {} }
            function run() { start(); }
            """
        }
    )

    assert found == set()


def test_the_name_of_a_function_expression_is_seen_in_it_alone(calls):
    found = calls(
        {
            "app.js": """
            function again() {}
            each(function walk() { again(); });
            function run() { walk(); }
            """
        }
    )

    assert found == {("walk", "again", "same file")}


def test_an_arrow_function_has_the_this_of_what_is_around_it(calls):
    found = calls(
        {
            "app.js": """
            class Shop {
              check() {}
              run(names) { names.forEach((name) => this.check(name)); }
            }
            class Other { check() {} }
            """
        }
    )

    assert found == {("Shop.run", "Shop.check", "type of the receiver")}


def test_a_block_of_go_hides_a_variable_for_its_own_length(calls):
    shop = """
        package shop
        type Card struct{}
        func (c Card) Pay() {}
        type Cash struct{}
        func (c Cash) Pay() {}
        """
    found = calls(
        {
            "app.go": f"""{shop}
        func inner(ok bool) {{
            with := Card{{}}
            if ok {{
                with := Cash{{}}
                with.Pay()
            }}
            _ = with
        }}
        func outer(ok bool) {{
            with := Card{{}}
            if ok {{
                with := Cash{{}}
                _ = with
            }}
            with.Pay()
        }}
        """
        }
    )

    assert found == {("inner", "Cash.Pay", "type of the receiver"), ("outer", "Card.Pay", "type of the receiver")}


def test_a_declaration_of_rust_hides_the_one_before_it(calls):
    found = calls(
        {
            "app.rs": """
            struct Card;
            impl Card { fn new() -> Card { Card } fn pay(&self) {} }
            struct Cash;
            impl Cash { fn new() -> Cash { Cash } fn pay(&self) {} }
            fn last() {
                let with = Card::new();
                let with = Cash::new();
                with.pay();
            }
            fn block() {
                let with = Card::new();
                { let with = Cash::new(); }
                with.pay();
            }
            """
        }
    )

    assert found == {
        ("last", "Card.new", "type of the receiver"),
        ("last", "Cash.new", "type of the receiver"),
        ("last", "Cash.pay", "type of the receiver"),
        ("block", "Card.new", "type of the receiver"),
        ("block", "Cash.new", "type of the receiver"),
        ("block", "Card.pay", "type of the receiver"),
    }


def test_a_variable_of_a_function_of_go_hides_a_function(calls):
    found = calls(
        {
            "app.go": """
            package shop
            func check() {}
            func run(check func()) { check() }
            func other() { check() }
            """
        }
    )

    assert found == {("other", "check", "same file")}


def test_a_name_of_ruby_is_a_call_where_it_is_no_variable(calls):
    found = calls(
        {
            "shop.rb": """
            class Shop
              def total
                3
              end
              def run
                total = 1
                puts total
              end
              def other
                puts total
              end
            end
            """
        }
    )

    assert found == {("Shop.other", "Shop.total", "type of the receiver")}


def test_what_a_method_of_ruby_returns_without_parentheses_is_followed(calls):
    found = calls(
        {
            "shop.rb": """
            class Card
              def pay
              end
            end
            class Cash
              def pay
              end
            end
            class Shop
              def card
                Card.new
              end
              def run
                card.pay
              end
            end
            """
        }
    )

    assert found == {
        ("Shop.card", "Card", "same file"),
        ("Shop.run", "Shop.card", "type of the receiver"),
        ("Shop.run", "Card.pay", "type of the receiver"),
    }


def test_a_class_method_of_ruby_makes_objects_by_new_alone(calls):
    found = calls(
        {
            "shop.rb": """
            class Shop
              def self.build
                new.check
              end
              def check
              end
            end
            class Other
              def check
              end
            end
            """
        }
    )

    assert found == {("Shop.build", "Shop", "same scope"), ("Shop.build", "Shop.check", "type of the receiver")}


def test_a_method_of_java_needs_no_object_in_its_class(calls):
    found = calls(
        {
            "Shop.java": """
            class Shop {
                int check;
                void check() {}
                void run() { check(); }
                class Till {
                    void go() { check(); }
                    void own() { Shop.this.check(); }
                }
            }
            class Other { void check() {} }
            """
        }
    )

    assert found == {
        ("Shop.run", "Shop.check", "type of the receiver"),
        ("Shop.Till.go", "Shop.check", "type of the receiver"),
        ("Shop.Till.own", "Shop.check", "type of the receiver"),
    }


def test_a_variable_of_java_hides_a_field_of_another_type(calls):
    found = calls(
        {
            "Shop.java": """
            class Card { void pay() {} }
            class Cash { void pay() {} }
            class Shop {
                Card with;
                void run() { with.pay(); }
                void go() { Cash with = find(); with.pay(); }
            }
            """
        }
    )

    assert found == {("Shop.run", "Card.pay", "type of the receiver"), ("Shop.go", "Cash.pay", "type of the receiver")}


def test_a_local_function_of_kotlin_hides_one_of_the_file(calls):
    found = calls(
        {
            "shop.kt": """
            fun check() {}
            fun run() {
                fun check() {}
                check()
            }
            fun other() { check() }
            """
        }
    )

    assert found == {("run", "run.check", "same scope"), ("other", "check", "same file")}


def test_a_function_of_a_namespace_of_cpp_hides_one_outside_of_it(calls):
    found = calls(
        {
            "shop.cpp": """
            void check() {}
            namespace shop {
            void check() {}
            void run() { check(); }
            void outside() { ::check(); }
            }
            void other() { check(); }
            void qualified() { shop::check(); }
            """
        }
    )

    assert found == {
        ("shop.run", "shop.check", "same file"),
        ("shop.outside", "check", "same file"),
        ("other", "check", "same file"),
        ("qualified", "shop.check", "same file"),
    }


def test_names_of_a_namespace_of_cpp_are_seen_where_it_is_used(calls):
    found = calls(
        {
            "shop.cpp": """
            namespace shop { void check() {} }
            namespace bank { void check() {} }
            using namespace shop;
            void run() { check(); }
            """
        }
    )

    assert found == {("run", "shop.check", "same file")}


def test_a_member_of_cpp_needs_no_object_in_its_class(calls):
    found = calls(
        {
            "shop.cpp": """
            void check() {}
            class Shop {
              void check() {}
              void run() { check(); }
            };
            void other() { check(); }
            """
        }
    )

    assert found == {("Shop.run", "Shop.check", "type of the receiver"), ("other", "check", "same file")}


def test_a_static_function_of_c_is_seen_in_its_file_alone(calls):
    found = calls(
        {
            "a.c": "static void check(void) {}\nvoid run(void) { check(); }\n",
            "b.c": "static void check(void) {}\nvoid go(void) { check(); }\n",
            "c.c": "void none(void) { check(); }\n",
        }
    )

    assert found == {("a.c::run", "a.c::check", "same file"), ("b.c::go", "b.c::check", "same file")}


def test_a_variable_of_php_is_no_function(calls):
    found = calls(
        {
            "shop.php": """
            <?php
            function check() {}
            function run($check) { $check(); check(); }
            function none($check) { $check(); }
            """
        }
    )

    assert found == {("run", "check", "same file")}


def test_self_and_static_of_php_are_the_class(calls):
    found = calls(
        {
            "shop.php": """
            <?php
            class Shop {
                public static function create() { $made = new self(); $made->check(); return new static(); }
                public function check() {}
                public function again() { static::create()->check(); }
            }
            class Other { public function check() {} }
            """
        }
    )

    assert found == {
        ("Shop.create", "Shop", "same scope"),
        ("Shop.create", "Shop.check", "type of the receiver"),
        ("Shop.again", "Shop.create", "type of the receiver"),
        ("Shop.again", "Shop.check", "type of the receiver"),
    }


def test_a_module_of_rust_sees_its_own_names_and_by_super_those_around_it(calls):
    found = calls(
        {
            "lib.rs": """
            fn check() {}
            mod inner {
                fn check() {}
                pub fn run() { check(); }
                pub fn outside() { super::check(); }
                pub fn own() { self::check(); }
            }
            fn other() { check(); inner::run(); }
            """
        }
    )

    assert found == {
        ("inner.run", "inner.check", "type of the receiver"),
        ("inner.outside", "check", "imported name"),
        ("inner.own", "inner.check", "type of the receiver"),
        ("other", "check", "same file"),
        ("other", "inner.run", "type of the receiver"),
    }


def test_a_function_that_is_added_to_a_class_that_is_not_known_is_called_by_its_imported_name(calls):
    found = calls(
        {
            "Basket.kt": """
            package shop
            import shop.internal.commonAdd
            class Basket {
                class Builder {
                    fun add(line: Int) = commonAdd(line)
                }
            }
            """,
            "Common.kt": """
            package shop.internal
            fun Basket.Builder.commonAdd(line: Int) {}
            """,
        }
    )

    assert {callee for _, callee, _ in found} == {"Common.kt::Builder.commonAdd"}
