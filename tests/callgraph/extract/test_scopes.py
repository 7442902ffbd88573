"""Each statement belongs to the scope that resolves its names."""

from textwrap import dedent

from docindex_dagster.callgraph.ir import THIS, Assignment, Attribute, FileIR, Name, path
from tests.callgraph.extract.reading import read


def python(source: str) -> FileIR:
    return read("python", dedent(source))


def called(found: FileIR) -> list[tuple[str, object]]:
    return [(call.scope, call.callee) for call in found.calls]


def test_a_call_stands_in_the_innermost_definition_around_it():
    found = python("""
        start()

        class Shop:
            def sell(self):
                pay()

                def later():
                    ship()
    """)

    assert called(found) == [
        ("", Name("start")),
        ("Shop.sell", Name("pay")),
        ("Shop.sell.later", Name("ship")),
    ]


def test_a_decorator_and_a_default_stand_outside_of_the_function():
    found = python("""
        @route("/")
        def sell(store=make()):
            pay()
    """)

    assert called(found) == [("", Name("route")), ("", Name("make")), ("sell", Name("pay"))]
    assert [(one.scope, one.decorated) for one in found.decorators] == [("", "sell")]


def test_the_second_definition_of_a_name_is_another_scope():
    found = python("""
        def sell():
            pay()

        def sell():
            ship()
    """)

    assert called(found) == [("sell", Name("pay")), ("sell~2", Name("ship"))]


def test_the_first_parameter_of_a_method_is_the_object_itself():
    found = python("""
        class Shop:
            def sell(self):
                self.pay(self)

        def sell(self):
            self = other
            self.pay()
    """)

    pay, other = found.calls
    assert pay.callee is Attribute(THIS, "pay")
    assert pay.arguments[0].value is THIS
    assert other.callee is path("self.pay")


def test_a_name_alone_is_a_call_in_ruby_where_it_is_no_variable():
    found = read("ruby", "def sell\n  order = 1\n  order\n  pay\nend\n")

    assert called(found) == [("sell", Name("pay"))]


def test_variables_that_hide_others_have_names_of_their_own():
    body = "order := first()\nif ok {\norder := second()\norder.pay()\n}\norder.ship()"
    found = read("go", f"package p\nfunc f() {{\n{body}\n}}\n")

    targets = [one.target for one in found.assignments if isinstance(one, Assignment)]
    assert targets == [Name("order"), Name("order~2")]
    methods = [call.callee for call in found.calls if isinstance(call.callee, Attribute)]
    assert methods == [path("order~2.pay"), path("order.ship")]


def test_lambdas_have_parameters_of_their_own():
    found = read("java", "class A { void f() { a.each(x -> x.go()); b.each(x -> x.stop()); } }")

    assert [one.target for one in found.assignments] == [Name("x~1"), Name("x~2")]
    assert [call.callee for call in found.calls if call.arguments == ()] == [path("x~1.go"), path("x~2.stop")]


def test_places_are_lines_from_one_and_bytes_from_nought():
    found = python("ä = 1\npay()\n".replace("ä", "é"))

    assert (found.calls[0].line, found.calls[0].byte) == (2, 7)


def test_a_language_without_calls_has_definitions_alone():
    found = read("sql", "create table orders (id int);")

    assert [one.name for one in found.definitions] == ["orders"]
    assert found == FileIR(definitions=found.definitions)
