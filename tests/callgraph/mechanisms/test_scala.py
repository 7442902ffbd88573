"""Scala: companions, mixins, methods without parentheses, patterns, comprehensions, extensions and packages."""

from tests.callgraph.mechanisms.conftest import Calls


def _pairs(calls: Calls, **files: str) -> set[tuple[str, str]]:
    """Return the edges, with file names that omit the extension."""
    found = calls({f"{name}.scala": text for name, text in files.items()})
    return {(caller.replace(".scala", ""), callee.replace(".scala", "")) for caller, callee, _ in found}


def test_a_class_is_made_with_and_without_new(calls):
    found = _pairs(
        calls,
        app="""
        class Till(size: Int) { def count(): Int = 1 }
        case class Tea(name: String)
        object Shop {
          val till = new Till(1)
          def run() = { Tea("x"); till.count(); new Till(2).count() }
        }
        """,
    )

    assert found == {("Shop", "Till"), ("Shop.run", "Tea"), ("Shop.run", "Till.count"), ("Shop.run", "Till")}


def test_apply_of_the_companion_runs_where_its_name_is_called(calls):
    found = _pairs(
        calls,
        app="""
        class Till private (size: Int) { def count(): Int = 1 }
        object Till {
          def apply(size: Int): Till = new Till(size)
        }
        case class Tea(name: String, price: Int)
        object Tea {
          def apply(name: String): Tea = Tea(name, 1)
        }
        object Shop {
          def run() = { Till(1).count(); Tea("x"); Tea("x", 2) }
        }
        """,
    )

    assert found == {
        ("Till.apply", "Till"),
        ("Tea.apply", "Tea"),
        ("Shop.run", "Till.apply"),
        ("Shop.run", "Till.count"),
        ("Shop.run", "Tea.apply"),
        ("Shop.run", "Tea"),
    }


def test_an_object_that_is_called_runs_its_own_apply(calls):
    found = _pairs(
        calls,
        app="""
        trait Parser { def apply(text: String): Int }
        class Digit extends Parser { def apply(text: String): Int = 1 }
        object Shop {
          def run(parser: Parser, digit: Digit) = { parser("x"); digit("y") }
        }
        """,
    )

    assert found == {("Shop.run", "Parser.apply"), ("Shop.run", "Digit.apply")}


def test_a_method_without_brackets_is_called_by_its_name(calls):
    found = _pairs(
        calls,
        app="""
        class Tea { def cup: Cup = new Cup; def name = "x"; val price = 1; def take(x: Int) = x }
        class Cup { def wash() = 1 }
        class Shop {
          private def tea: Tea = new Tea
          def run() = {
            tea.cup.wash()
            println(tea.name)
            val price = tea.price
            List(1).map(tea.take)
          }
        }
        """,
    )

    assert found == {
        ("Tea.cup", "Cup"),
        ("Shop.tea", "Tea"),
        ("Shop.run", "Shop.tea"),
        ("Shop.run", "Tea.cup"),
        ("Shop.run", "Cup.wash"),
        ("Shop.run", "Tea.name"),
    }


def test_the_trait_that_is_mixed_in_last_is_looked_at_first(calls):
    found = _pairs(
        calls,
        app="""
        trait Named { def label(): Int = 1; def name(): Int = 2 }
        trait Loud extends Named { override def label(): Int = super.label() }
        trait Quiet extends Named { override def label(): Int = 3 }
        class Duck extends Named with Loud with Quiet {
          def run() = { label(); super.label(); super[Loud].label(); name() }
        }
        """,
    )

    assert found == {
        ("Loud.label", "Named.label"),
        ("Duck.run", "Quiet.label"),
        ("Duck.run", "Loud.label"),
        ("Duck.run", "Named.name"),
    }


def test_a_trait_is_looked_at_behind_all_that_extend_it(calls):
    found = _pairs(
        calls,
        app="""
        trait Named { def label(): Int = 1 }
        trait Loud extends Named { override def label(): Int = 2 }
        trait Quiet extends Named
        class Duck extends Loud with Quiet { def run() = label() }
        """,
    )

    assert found == {("Duck.run", "Loud.label")}


def test_what_is_in_a_collection_is_given_to_functions_and_comprehensions(calls):
    found = _pairs(
        calls,
        app="""
        class Tea { def brew() = 1; def pour() = 2; def cup(): Cup = new Cup; def boil() = 4; def cool() = 5 }
        class Cup { def wash() = 1 }
        class Shop(list: List[Tea], shelf: Map[String, Tea]) {
          def run() = {
            list.map(_.brew())
            list.foreach { tea => tea.pour() }
            for (one <- list; cup = one.cup()) cup.wash()
            list foreach (x => x.boil())
            shelf.map { case (name, tea) => tea.cool() }
          }
          def cups() = list.map(_.cup()).foreach(_.wash())
        }
        """,
    )

    assert found == {
        ("Tea.cup", "Cup"),
        ("Shop.run", "Tea.brew"),
        ("Shop.run", "Tea.pour"),
        ("Shop.run", "Tea.cup"),
        ("Shop.run", "Cup.wash"),
        ("Shop.run", "Tea.boil"),
        ("Shop.run", "Tea.cool"),
        ("Shop.cups", "Tea.cup"),
        ("Shop.cups", "Cup.wash"),
    }


def test_a_pattern_tells_what_its_parts_are(calls):
    found = _pairs(
        calls,
        app="""
        sealed trait Shape
        case class Circle(size: Int, pen: Pen) extends Shape
        case class Square(ink: Ink) extends Shape { def side() = 1 }
        class Pen { def draw() = 1 }
        class Ink { def flow() = 1 }
        enum Mark { case Line(pen: Pen); case Dot }
        object Shop {
          def run(shape: Shape, mark: Mark, some: Option[Pen]) = {
            shape match {
              case Circle(_, pen) => pen.draw()
              case square: Square => square.side()
              case whole @ Square(ink) => ink.flow()
            }
            mark match { case Mark.Line(pen) => pen.draw() }
          }
          def one(some: Option[Ink]) = some match { case Some(ink) => ink.flow() }
        }
        """,
    )

    assert found == {
        ("Shop.run", "Pen.draw"),
        ("Shop.run", "Square.side"),
        ("Shop.run", "Ink.flow"),
        ("Shop.one", "Ink.flow"),
    }


def test_an_operator_of_a_class_is_called_between_its_operands(calls):
    found = _pairs(
        calls,
        app="""
        class Money(amount: Int) {
          def +(other: Money): Money = this
          def |(other: Money) = this
          def plus(other: Money): Money = other
        }
        object Shop { def run(a: Money, b: Money) = { a + b; a plus b; a | b } }
        """,
    )

    assert found == {("Shop.run", "Money.+"), ("Shop.run", "Money.|"), ("Shop.run", "Money.plus")}


def test_methods_are_added_to_a_type(calls):
    found = _pairs(
        calls,
        app="""
        object Syntax {
          implicit class Rich(text: String) { def shout(): String = loud(); def loud(): String = text }
        }
        extension (text: String)
          def whisper(): String = text
          def twice(n: Int): String = text.whisper()
        object Shop { def run(text: String) = { text.shout(); text.twice(2); "x".whisper() } }
        """,
    )

    assert found == {
        ("Syntax.Rich.shout", "Syntax.Rich.loud"),
        ("String.twice", "String.whisper"),
        ("Shop.run", "Syntax.Rich.shout"),
        ("Shop.run", "String.twice"),
        ("Shop.run", "String.whisper"),
    }


def test_an_instance_without_a_name_is_not_found_by_that_of_its_type(calls):
    found = _pairs(
        calls,
        app="""
        trait Show[A]:
          def show(a: A): String
        given Show[Int] with
          def show(a: Int): String = text(a)
          def text(a: Int): String = "x"
        given texts: Show[String] with
          def show(a: String): String = a
        def run[A](a: A)(using one: Show[A]) =
          one.show(a)
          texts.show("x")
          summon[Show[A]].show(a)
        """,
    )

    assert found == {("Show.show~2", "Show.text"), ("run", "Show.show"), ("run", "texts.show")}


def test_imports_name_packages_objects_and_what_is_in_them(calls):
    found = _pairs(
        calls,
        app="""
        package shop.front
        import shop.back.{Till, Tea => Leaf}
        import shop.back.Tools._
        import shop.util._
        object Shop { def run(till: Till) = { till.count(); new Leaf; fix(); help() } }
        """,
        back="""
        package shop.back
        class Till { def count() = 1 }
        class Tea
        object Tools { def fix() = 1 }
        """,
        util="""
        package shop
        package object util { def help() = 1 }
        """,
    )

    assert found == {
        ("app::Shop.run", "back::Till.count"),
        ("app::Shop.run", "back::Tea"),
        ("app::Shop.run", "back::Tools.fix"),
        ("app::Shop.run", "util::util.help"),
    }


def test_what_a_class_is_given_is_called(calls):
    found = _pairs(
        calls,
        app="""
        class Task(name: String, work: String => Int) { def run(): Int = work(name) }
        object Shop {
          def count(text: String): Int = 1
          def each(times: Int)(work: Int => Int): Int = work(times)
          def double(x: Int): Int = x
          def start() = { new Task("x", count).run(); each(2)(double) }
        }
        """,
    )

    assert ("Task.run", "Shop.count") in found
    assert {("Shop.start", "Task"), ("Shop.start", "Task.run"), ("Shop.start", "Shop.each")} <= found


def test_apply_that_nobody_wrote_makes_an_object(calls):
    found = _pairs(
        calls,
        app="""
        case class Tea(name: String) { def brew() = 1 }
        object Tea { def green: Tea = apply("green") }
        object Shop { def run() = Tea.apply("x").brew() }
        """,
    )

    assert found == {("Tea.green", "Tea"), ("Shop.run", "Tea"), ("Shop.run", "Tea.brew")}


def test_a_class_and_the_object_of_its_name_have_their_own_members(calls):
    found = _pairs(
        calls,
        app="""
        class Till { def count(): Int = 1 }
        object Till { def count(): Int = 2 }
        object Shop { def run(till: Till) = till.count(); def all() = Till.count() }
        """,
    )

    assert found == {("Shop.run", "Till.count"), ("Shop.all", "Till.count~2")}


def test_what_is_imported_may_be_named_from_a_package_around(calls):
    found = _pairs(
        calls,
        app="""
        package shop.front
        import back.Till
        import Tools._
        object Shop { def run(till: Till) = { till.count(); fix() } }
        object Tools { def fix() = 1 }
        """,
        back="""
        package shop.front.back
        class Till { def count() = 1 }
        """,
    )

    assert found == {("app::Shop.run", "back::Till.count"), ("app::Shop.run", "app::Tools.fix")}


def test_arguments_may_stand_in_several_brackets_and_behind_a_collection(calls):
    found = _pairs(
        calls,
        app="""
        class Tea { def brew() = 1; def pour() = 2; def cool() = 3; def cup = 4 }
        object Shop {
          def make(name: String)(size: Int): Tea = new Tea
          def run(list: List[Tea], one: Tea) = {
            make("x")(1).brew()
            list(0).pour()
            (one :: list).foreach(_.cool())
            list.foldLeft(0)((sum, tea) => sum + tea.cup)
          }
        }
        """,
    )

    assert found == {
        ("Shop.make", "Tea"),
        ("Shop.run", "Shop.make"),
        ("Shop.run", "Tea.brew"),
        ("Shop.run", "Tea.pour"),
        ("Shop.run", "Tea.cool"),
        ("Shop.run", "Tea.cup"),
    }


def test_a_variable_hides_others_for_the_length_of_its_block(calls):
    found = _pairs(
        calls,
        app="""
        class Tea { def brew() = 1 }
        class Cup { def wash() = 1 }
        object Shop {
          def run(any: Any) = {
            any match {
              case one: Tea => one.brew()
              case one: Cup => println("x")
            }
            for (one <- List(new Cup)) one.wash()
          }
        }
        """,
    )

    assert found == {("Shop.run", "Cup"), ("Shop.run", "Tea.brew"), ("Shop.run", "Cup.wash")}


def test_the_type_that_a_trait_asks_for_has_members_of_its_own(calls):
    found = _pairs(
        calls,
        app="""
        trait Till { def count() = 1 }
        trait Shop { self: Till =>
          def run() = { count(); self.count(); self.stop() }
          def stop() = 1
        }
        """,
    )

    assert found == {("Shop.run", "Till.count"), ("Shop.run", "Shop.stop")}


def test_each_package_of_a_file_is_in_the_one_before(calls):
    found = _pairs(
        calls,
        app="""
        package shop
        package front
        object Shop { def run() = { help(); open() } }
        """,
        util="""
        package object shop { def help() = 1 }
        """,
        other="""
        package shop.front
        def open() = 1
        """,
        user="""
        import shop.front.Shop
        object User { def run() = Shop.run() }
        """,
    )

    assert found == {
        ("app::Shop.run", "util::shop.help"),
        ("app::Shop.run", "other::open"),
        ("user::User.run", "app::Shop.run"),
    }
