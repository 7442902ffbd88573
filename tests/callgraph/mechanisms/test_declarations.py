"""C and C++: declarations with bodies elsewhere, templates, typedefs, function pointers."""


def test_a_call_of_what_is_declared_reaches_the_body(calls):
    found = calls(
        {
            "shop.hpp": "struct Shop { void check(); void close() {} };\nvoid look();\n",
            "shop.cpp": '#include "shop.hpp"\nvoid Shop::check() { close(); }\nvoid look() {}\n',
            "other.cpp": "struct Shop { void check(); };\nvoid Shop::check() {}\nvoid hidden() {}\n",
            "app.cpp": '#include "shop.hpp"\nvoid run(Shop& shop) { shop.check(); look(); hidden(); }\n',
        }
    )

    assert found == {
        ("shop.cpp::Shop.check", "shop.hpp::Shop.close", "type of the receiver"),
        ("app.cpp::run", "shop.cpp::Shop.check", "type of the receiver"),
        ("app.cpp::run", "shop.cpp::look", "imported name"),
    }


def test_of_several_bodies_the_one_with_the_types_of_the_declaration_is_meant(calls):
    found = calls(
        {
            "shop.hpp": "struct Shop { void show(int at); void show(double at, int by); };\n",
            "shop.cpp": '#include "shop.hpp"\nvoid Shop::show(double at, int by) {}\nvoid Shop::show(int at) {}\n',
            "app.cpp": '#include "shop.hpp"\nvoid run(Shop& shop) { shop.show(1); }\n',
        }
    )

    assert found == {("app.cpp::run", "shop.cpp::Shop.show~2", "type of the receiver")}


def test_a_declaration_in_the_file_leads_to_the_one_body(calls):
    found = calls(
        {
            "pay.c": "void check(void) {}\nstatic void hidden(void) {}\n",
            "app.c": "extern void check(void);\nvoid hidden(void);\nvoid run(void) { check(); hidden(); }\n",
        }
    )

    assert found == {("app.c::run", "pay.c::check", "imported name")}


def test_of_several_bodies_the_one_that_knows_the_declaration_is_meant(calls):
    found = calls(
        {
            "check.h": "void check(void);\n",
            "unix.c": '#include "check.h"\nvoid check(void) {}\n',
            "tool.c": "void check(void) {}\n",
            "app.c": '#include "check.h"\nvoid run(void) { check(); }\n',
        }
    )

    assert found == {("app.c::run", "unix.c::check", "imported name")}


def test_a_struct_has_the_name_that_a_typedef_gives_it(calls):
    found = calls(
        {
            "a.c": """
            typedef struct { void (*check)(void); } Shop;
            struct till { int at; void (*open)(void); };
            typedef struct till Till;
            static void look(void) {}
            static void unlock(void) {}
            static void other(void) {}
            static Shop one = { look };
            void start(Till *till) { till->open = unlock; }
            void run(Shop *shop) { shop->check(); }
            void go(Till *till) { till->open(); }
            void tag(struct till *till) { till->open(); }
            """
        }
    )

    assert found == {
        ("run", "look", "type of the receiver"),
        ("go", "unlock", "type of the receiver"),
        ("tag", "unlock", "type of the receiver"),
    }


def test_a_struct_with_a_tag_has_the_other_name_that_its_typedef_gives_it(calls):
    found = calls(
        {
            "a.c": """
            typedef struct till { void (*open)(void); } Till;
            static void unlock(void) {}
            static Till one = { unlock };
            void go(Till *till) { till->open(); }
            void tag(struct till *till) { till->open(); }
            """
        }
    )

    assert found == {("go", "unlock", "type of the receiver"), ("tag", "unlock", "type of the receiver")}


def test_a_pointer_to_a_function_is_what_is_assigned_to_it(calls):
    found = calls(
        {
            "a.c": """
            typedef void (*check_t)(void);
            static void look(void) {}
            static void see(void) {}
            static void other(void) {}
            static check_t global;
            void start(void) { global = look; }
            void run(void) { global(); }
            void local(void) { check_t it = &see; it(); (*it)(); }
            """
        }
    )

    assert found == {("run", "look", "same file"), ("local", "see", "same file")}


def test_a_variable_of_another_file_is_what_is_assigned_there(calls):
    found = calls(
        {
            "a.h": "extern void (*hook)(void);\n",
            "a.c": '#include "a.h"\nvoid (*hook)(void);\nvoid look(void) {}\nvoid start(void) { hook = look; }\n',
            "b.c": '#include "a.h"\nvoid run(void) { hook(); }\n',
            "c.c": "void (*other)(void);\nvoid none(void) { other(); }\n",
        }
    )

    assert found == {("b.c::run", "a.c::look", "same file")}


def test_a_template_is_what_it_is_used_with(calls):
    found = calls(
        {
            "a.cpp": """
            struct Card { void check() {} };
            struct Cash { void check() {} };
            template <typename T> struct Box {
              T held;
              void run() { held.check(); }
            };
            void start() { Box<Card> box; box.run(); }
            """
        }
    )

    assert found == {("Box.run", "Card.check", "type of the receiver"), ("start", "Box.run", "type of the receiver")}


def test_a_member_is_set_by_the_initialisers_of_the_constructor(calls):
    found = calls(
        {
            "a.cpp": """
            struct Root { Root(int at) {} };
            struct Till { Till(int at) {} void open() {} };
            struct Shop : Root {
              Till till;
              std::function<void()> check;
              Shop() : Root(1), till(2), check(look) {}
              void run() { till.open(); check(); }
            };
            void look() {}
            void other() {}
            """
        }
    )

    assert found == {
        *(
            ("Shop.Shop", "Root", "class hierarchy"),
            ("Shop.run", "Till.open", "type of the receiver"),
            ("Shop.run", "look", "type of the receiver"),
        ),
    }


def test_a_type_in_a_base_class_is_known_in_the_class(calls):
    found = calls(
        {
            "a.cpp": """
            struct Card { void check() {} };
            struct Root { using Pay = Card; };
            struct Shop : Root { void run(Pay* with) { with->check(); } };
            struct Other { void none(Pay* with) { with->check(); } };
            """
        }
    )

    assert found == {("Shop.run", "Card.check", "type of the receiver")}


def test_a_test_with_a_fixture_is_a_member_of_it(calls):
    found = calls(
        {
            "a.cpp": """
            #include <gtest/gtest.h>
            struct ShopTest : testing::Test { void check() {} };
            TEST_F(ShopTest, Runs) { check(); }
            TEST(Other, Runs) { check(); }
            """
        }
    )

    assert found == {("TEST_F", "ShopTest.check", "type of the receiver")}


def test_values_of_a_map_and_parts_of_a_pair_are_taken_out(calls):
    found = calls(
        {
            "a.cpp": """
            #include <map>
            struct Card { void check() {} };
            struct Cash { void check() {} };
            void run(std::map<int, Card> cards) { for (auto& pair : cards) pair.second.check(); }
            """
        }
    )

    assert found == {("run", "Card.check", "type of the receiver")}


def test_a_method_is_written_outside_of_its_namespace_and_class(calls):
    found = calls(
        {
            "a.cpp": """
            namespace shop { namespace inner {
            struct Till { void open(); void lock() {} };
            void check() {}
            } }
            using namespace shop;
            void check() {}
            void inner::Till::open() { lock(); check(); }
            """
        }
    )

    assert found == {
        ("inner.Till.open", "shop.inner.Till.lock", "type of the receiver"),
        ("inner.Till.open", "shop.inner.check", "same file"),
    }


def test_what_looks_like_a_declared_function_makes_an_object_of_variables(calls):
    found = calls(
        {
            "a.cpp": """
            struct Till {};
            struct Card { Card(Till till) {} void check() {} };
            struct Cash { void check() {} };
            void run(Till till) { Card card(till); card.check(); }
            """
        }
    )

    assert found == {("run", "Card", "same file"), ("run", "Card.check", "type of the receiver")}


def test_a_macro_is_in_no_namespace(calls):
    found = calls(
        {
            "pay.hpp": "namespace shop {\n#define CHECK(x) ((x) + 1)\n}\n",
            "app.cpp": '#include "pay.hpp"\nvoid run() { CHECK(1); }\n',
            "none.cpp": "void none() { CHECK(1); }\n",
        }
    )

    assert found == {("app.cpp::run", "pay.hpp::shop.CHECK", "imported name")}
