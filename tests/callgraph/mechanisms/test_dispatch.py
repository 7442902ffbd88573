"""Dynamic dispatch: overrides that may run instead of the method that a call names."""

from docindex_dagster.graph import queries
from tests.graph.samples import opened

ONE_OF_ONE, ONE_OF_TWO = "overrides what is called, one of 1", "overrides what is called, one of 2"
SHAPES = {
    "Shape.java": "interface Shape {\n  double area();\n}\n",
    "Circle.java": "class Circle implements Shape {\n  public double area() { return 1; }\n}\n",
    "Square.java": "class Square implements Shape {\n  public double area() { return 2; }\n}\n",
    "Use.java": "class Use {\n  double sum(Shape shape) { return shape.area(); }\n}\n",
}


def test_a_call_through_an_interface_may_run_each_implementation(calls, may_calls):
    assert calls(SHAPES) == {("Use.java::Use.sum", "Shape.java::Shape.area", "type of the receiver")}
    assert may_calls(SHAPES) == {
        ("Use.java::Use.sum", "Circle.java::Circle.area", ONE_OF_TWO),
        ("Use.java::Use.sum", "Square.java::Square.area", ONE_OF_TWO),
    }


def test_a_method_may_be_overridden_below_the_class_of_the_receiver_and_not_beside_it(may_calls):
    found = may_calls(
        {
            "app.py": """
            class Root:
                def check(self): ...
            class Inner(Root):
                def close(self): ...
            class Leaf(Inner):
                def check(self): ...
            class Beside(Root):
                def check(self): ...
            def run(inner: Inner):
                inner.check()
                inner.close()
            """
        }
    )

    assert found == {("run", "Leaf.check", ONE_OF_ONE)}


def test_what_is_caught_may_be_of_a_class_below(may_calls):
    found = may_calls(
        {
            "app.py": """
            class Refused(Exception):
                def show(self): ...
            class Expired(Refused):
                def show(self): ...
            def run():
                try: ...
                except Refused as error:
                    error.show()
            """
        }
    )

    assert found == {("run", "Expired.show", ONE_OF_ONE)}


def test_a_class_that_a_variable_holds_may_be_one_below(calls, may_calls):
    files = {
        "app.py": """
        class Root:
            kind: "type[Root]"
            def again(self):
                return type(self)()
            def other(self):
                return self.kind()
            @classmethod
            def made(cls):
                return cls()
        class Leaf(Root): ...
        def run(kind: type[Root]):
            kind()
        def named():
            make = Root
            make()
            Root()
        """
    }

    callers = ("Root.again", "Root.other", "Root.made", "run")
    assert {call[:2] for call in calls(files)} == {(caller, "Root") for caller in (*callers, "named")}
    assert may_calls(files) == {(caller, "Leaf", ONE_OF_ONE) for caller in callers}


def test_a_call_of_the_base_class_by_name_runs_that_alone(may_calls):
    found = may_calls(
        {
            "app.py": """
            class Root:
                def check(self): ...
            class Leaf(Root):
                def check(self):
                    super().check()
            class Last(Leaf):
                def check(self): ...
            """
        }
    )

    assert found == set()


def test_a_trait_of_rust_is_dispatched_to_its_impls(may_calls):
    found = may_calls(
        {
            "src/main.rs": """
            trait Shape {
                fn area(&self) -> f64;
            }
            struct Circle;
            impl Shape for Circle {
                fn area(&self) -> f64 { 1.0 }
            }
            fn sum(shape: &dyn Shape) -> f64 {
                shape.area()
            }
            """
        }
    )

    assert {(caller, callee.partition("~")[0]) for caller, callee, _ in found} == {("sum", "Circle.area")}


def test_a_type_of_go_implements_an_interface_of_which_it_has_all_methods(may_calls):
    found = may_calls(
        {
            "go.mod": "module zoo\n",
            "zoo.go": """
            package zoo

            type Animal interface {
            \tSpeak() string
            \tMove()
            }

            type Dog struct{}

            func (d *Dog) Speak() string { return "" }
            func (d *Dog) Move()         {}

            type Rock struct{}

            func (r Rock) Speak() string { return "" }

            func Hear(a Animal) { a.Speak() }
            """,
        }
    )

    assert found == {("zoo.go::Hear", "zoo.go::Dog.Speak", ONE_OF_ONE)}


def test_of_very_many_overriding_methods_none_is_named(may_calls):
    leaves = "".join(f"class Leaf{n}(Root):\n    def check(self): ...\n" for n in range(60))
    source = f"class Root:\n    def check(self): ...\n{leaves}def run(root: Root):\n    root.check()\n"

    assert may_calls({"app.py": source}) == set()


def test_callers_and_impact_show_what_may_call_an_implementation():
    graph = opened(SHAPES)

    for steps in (queries.callers(graph, "Circle.area"), queries.impact(graph, "Circle.area", depth=1)):
        found = {(step.predicate, step.subject.rpartition("::")[2], step.resolution) for step in steps}
        assert ("may_call", "Use.sum", ONE_OF_TWO) in found
