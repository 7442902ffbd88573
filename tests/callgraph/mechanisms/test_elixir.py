"""Elixir: modules, clauses and arities, pipes and captures, `use`, protocols and behaviours."""

ONE_OF_TWO = "overrides what is called, one of 2"


def test_a_call_reaches_the_first_clause_of_its_arity(calls):
    found = calls(
        {
            "a.ex": """
            defmodule A do
              def sum(list), do: sum(list, 0)
              def sum([], total), do: total
              def sum([head | tail], total), do: sum(tail, head + total)
              def all(%{list: list} = _given, <<_, _::binary>> = _text), do: list |> sum(1)
            end
            """
        }
    )

    assert found == {
        ("A.sum", "A.sum~2", "type of the receiver"),
        ("A.sum~3", "A.sum~2", "type of the receiver"),
        ("A.all", "A.sum~2", "type of the receiver"),
    }


def test_what_is_piped_is_given_first(calls):
    found = calls(
        {
            "a.ex": """
            defmodule A do
              def run(text), do: text |> cut |> cut(2) |> Enum.map(&cut/1)
              def cut(text), do: text
              def cut(text, _at), do: text
            end
            """
        }
    )

    assert found == {("A.run", "A.cut", "type of the receiver"), ("A.run", "A.cut~2", "type of the receiver")}


def test_a_variable_that_is_called_is_no_function_of_its_name(calls):
    found = calls(
        {
            "a.ex": """
            defmodule A do
              def names(names), do: Enum.map(names, fn name -> names(name) end)
              def run(step), do: step.(1)
              def go do
                step = &other/1
                step.(names(2))
              end
              def step(x), do: x
              def other(x), do: x
              other = other(1)
              other.(other)
            end
            """
        }
    )

    assert found == {
        ("A.names", "A.names", "type of the receiver"),
        ("A.go", "A.names", "type of the receiver"),
        ("A.go", "A.other", "type of the receiver"),
        ("A", "A.other", "type of the receiver"),
    }


def test_what_callers_hand_on_is_called_in_every_clause(calls):
    found = calls(
        {
            "a.ex": """
            defmodule A do
              def go(list) do
                each(list, &show/1)
                each(list, &A.count/1)
              end
              defp each([], _fun), do: :ok
              defp each([head | tail], fun) do
                fun.(head)
                each(tail, fun)
              end
              def show(x), do: x
              def count(x), do: x
            end
            """
        }
    )

    assert {edge for edge in found if edge[2] == "argument of a caller"} == {
        ("A.each~2", "A.show", "argument of a caller"),
        ("A.each~2", "A.count", "argument of a caller"),
    }
    assert ("A.go", "A.show", "type of the receiver") not in found


def test_a_function_that_is_handed_on_is_referred_to(references):
    found = references(
        {
            "a.ex": """
            defmodule A do
              def go(list, show), do: Enum.map(list, &show/1) ++ Enum.map(list, show) ++ Enum.map(list, &A.count/1)
              def show(x), do: x
              def count(x), do: x
            end
            """
        }
    )

    assert found == {
        ("A.go", "A.show", "type of the receiver"),
        ("A.go", "A.count", "type of the receiver"),
    }


def test_heads_and_types_are_no_calls(calls):
    found = calls(
        {
            "a.ex": """
            defmodule A do
              @type price(x) :: x
              @spec total(price(term)) :: price(price(term))
              def total(x) when is_list(x), do: x
              @callback price(price(term)) :: term
              def price(x), do: x
            end
            """
        }
    )

    assert found == set()


def test_modules_are_found_by_alias_and_by_their_full_names(calls):
    found = calls(
        {
            "store.ex": "defmodule Shop.Store do\n  def put(x), do: x\nend\n",
            "shop.ex": "defmodule Shop do\n  def open, do: Shop.Store.put(1)\nend\n",
            "use.exs": """
            defmodule Use do
              alias Shop.Store, as: Depot
              alias Shop.{Store}
              def a, do: Depot.put(1)
              def b, do: Store.put(2)
              defmodule Inner do
                def c, do: Store.put(__MODULE__.d())
                def d, do: 1
              end
              def e, do: Inner.d()
            end
            Store.put(1)
            """,
        }
    )

    to = "store.ex::Shop.Store.put"
    assert found == {
        ("shop.ex::Shop.open", to, "type of the receiver"),
        ("use.exs::Use.a", to, "type of the receiver"),
        ("use.exs::Use.b", to, "type of the receiver"),
        ("use.exs::Use.Inner.c", to, "type of the receiver"),
        ("use.exs::Use.Inner.c", "use.exs::Use.Inner.d", "type of the receiver"),
        ("use.exs::Use.e", "use.exs::Use.Inner.d", "type of the receiver"),
    }


def test_only_what_is_imported_needs_no_module(calls):
    found = calls(
        {
            "a.ex": "defmodule A do\n  def round(x), do: x\n  def length(x), do: x\nend\n",
            "b.ex": """
            defmodule B do
              import A, only: [round: 1]
              def run(x), do: round(length(x))
            end
            defmodule C do
              import A
              def run(x), do: length(x)
            end
            defmodule D do
              def run(x), do: length(x)
            end
            defmodule E do
              import A, except: [length: 1]
              def run(x), do: round(length(x))
            end
            """,
        }
    )

    assert found == {
        ("b.ex::B.run", "a.ex::A.round", "type of the receiver"),
        ("b.ex::C.run", "a.ex::A.length", "type of the receiver"),
        ("b.ex::E.run", "a.ex::A.round", "type of the receiver"),
    }


def test_use_runs_the_macro_and_gives_what_it_quotes(calls):
    found = calls(
        {
            "a.ex": """
            defmodule Base do
              defmacro __using__(_options) do
                quote do
                  import Text
                  def name, do: limit()
                  def limit, do: 1
                  defoverridable name: 0
                end
              end
              def other(x), do: x
            end
            defmodule Text do
              def cut(x), do: x
            end
            defmodule User do
              use Base
              def name, do: super()
              def run(x), do: cut(limit() + other(x))
            end
            """
        }
    )

    assert found == {
        ("Base.__using__.name", "Base.__using__.limit", "same scope"),
        ("User", "Base.__using__", "type of the receiver"),
        ("User.name", "Base.__using__.name", "class hierarchy"),
        ("User.run", "Base.__using__.limit", "class hierarchy"),
        ("User.run", "Text.cut", "class hierarchy"),
    }


def test_a_call_of_a_protocol_may_run_its_implementations(calls, may_calls):
    program = {
        "shape.ex": """
        defprotocol Shape do
          def area(shape)
        end
        defmodule Circle do
          defstruct [:radius]
          def double(circle), do: area(circle)
          def area(circle), do: Shape.area(circle) + help(circle)
          defp help(x), do: x
        end
        defimpl Shape, for: Circle do
          def area(circle), do: help(circle)
          defp help(x), do: x
        end
        defimpl Shape, for: Integer do
          def area(side), do: Integer.area(side)
        end
        """
    }

    assert calls(program) == {
        ("Circle.double", "Circle.area", "type of the receiver"),
        ("Circle.area", "Shape.area", "type of the receiver"),
        ("Circle.area", "Circle.help", "type of the receiver"),
        ("Circle.area~2", "Circle.help~2", "type of the receiver"),
    }
    assert may_calls(program) == {
        ("Circle.area", "Circle.area~2", ONE_OF_TWO),
        ("Circle.area", "Integer.area", ONE_OF_TWO),
    }


def test_what_implements_a_protocol_for_a_module_is_none_of_its_functions(calls):
    found = calls(
        {
            "circle.ex": """
            defmodule Circle do
              @callback title(term) :: term
              def name(circle), do: to_string(title(circle))
              def title(circle), do: circle
            end
            """,
            "chars.ex": """
            defimpl String.Chars, for: Circle do
              def to_string(circle), do: Circle.title(circle)
            end
            """,
        }
    )

    assert found == {
        ("circle.ex::Circle.name", "circle.ex::Circle.title~2", "type of the receiver"),
        ("chars.ex::Circle.to_string", "circle.ex::Circle.title~2", "type of the receiver"),
    }


def test_a_module_in_a_variable_is_called_by_the_callback_that_it_implements(calls):
    found = calls(
        {
            "a.ex": """
            defmodule Channel do
              @callback send(term) :: :ok
            end
            defmodule Mail do
              @behaviour Channel
              def send(text), do: text
            end
            defmodule Use do
              @channels %{mail: Mail}
              @default Mail
              def run(name, text) do
                module = Map.get(@channels, name)
                module.send(text)
              end
              def usual(text), do: @default.send(text)
              def direct(text), do: Mail.send(text)
              def unknown(module, text), do: module.send(text)
            end
            """
        }
    )

    assert found == {
        ("Use.run", "Mail.send", "type of the receiver"),
        ("Use.run", "Channel.send", "type of the receiver"),
        ("Use.usual", "Mail.send", "type of the receiver"),
        ("Use.usual", "Channel.send", "type of the receiver"),
        ("Use.direct", "Mail.send", "type of the receiver"),
    }


def test_a_function_is_called_by_its_name_as_an_atom_and_by_a_delegate(calls):
    found = calls(
        {
            "a.ex": """
            defmodule A do
              def run(x), do: x
              def stop, do: :ok
            end
            defmodule B do
              defdelegate run(x), to: A
              defdelegate halt, to: A, as: :stop
              def now, do: apply(A, :run, [1])
              def later, do: spawn(A, :stop, [])
              def other(name), do: apply(A, name, [1])
            end
            """
        }
    )

    assert found == {
        ("B.run", "A.run", "type of the receiver"),
        ("B.halt", "A.stop", "type of the receiver"),
        ("B.now", "A.run", "type of the receiver"),
        ("B.later", "A.stop", "type of the receiver"),
    }


def test_a_field_of_a_struct_holds_what_it_is_written_with(calls):
    found = calls(
        {
            "a.ex": """
            defmodule Job do
              defstruct [:worker, tries: 0]
              def new, do: %__MODULE__{worker: Mail}
              def run(%__MODULE__{worker: worker}), do: worker.send(1)
              def again(%Job{} = job), do: job.worker.send(job.tries)
              def worker(_), do: 1
            end
            defmodule Mail do
              def send(x), do: x
            end
            """
        }
    )

    assert found == {
        ("Job.run", "Mail.send", "type of the receiver"),
        ("Job.again", "Mail.send", "type of the receiver"),
    }
