"""Swift: extensions, protocols with default methods, initializers, closures, patterns and modules."""


def test_a_name_in_a_method_is_a_member_of_its_class(calls):
    found = calls(
        {
            "app.swift": """
            class Shop {
              let till = Till()
              func open() { check(); self.check(); till.count(); Shop.make() }
              func check() {}
              static func make() -> Shop { return Shop() }
            }
            class Till { func count() {} }
            """
        }
    )

    assert found == {
        ("Shop", "Till", "same file"),
        ("Shop.open", "Shop.check", "type of the receiver"),
        ("Shop.open", "Till.count", "type of the receiver"),
        ("Shop.open", "Shop.make", "type of the receiver"),
        ("Shop.make", "Shop", "same scope"),
    }


def test_an_extension_in_another_file_adds_members(calls):
    found = calls(
        {
            "Shop.swift": """
            class Shop { func check() {} }
            func run(shop: Shop) { shop.open() }
            """,
            "Open.swift": """
            extension Shop {
              func open() { check(); close() }
              func close() { Shop().check() }
            }
            """,
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("Shop.swift::run", "Open.swift::Shop.open"),
        ("Open.swift::Shop.open", "Shop.swift::Shop.check"),
        ("Open.swift::Shop.open", "Open.swift::Shop.close"),
        ("Open.swift::Shop.close", "Shop.swift::Shop"),
        ("Open.swift::Shop.close", "Shop.swift::Shop.check"),
    }


def test_a_default_method_of_a_protocol_is_that_of_its_extension(calls):
    found = calls(
        {
            "app.swift": """
            protocol Priced { func price() -> Int; func label() }
            extension Priced { func label() { price() } }
            struct Tea: Priced { func price() -> Int { return 1 } }
            func show(any: Priced, tea: Tea) { any.label(); tea.label() }
            func each<T: Priced>(one: T) { one.price() }
            """
        }
    )

    assert found == {
        ("Priced.label~2", "Priced.price", "type of the receiver"),
        ("show", "Priced.label", "type of the receiver"),
        ("show", "Priced.label~2", "class hierarchy"),
        ("each", "Priced.price", "type of the receiver"),
    }


def test_an_extension_adds_to_a_type_of_the_library(calls):
    found = calls(
        {
            "app.swift": """
            extension String {
              func shout() -> String { return loud() }
              func loud() -> String { return self }
            }
            extension Collection { func second() {} }
            func run(text: String, list: [Int]) { text.shout(); "a".loud(); list.second(); list.third() }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("String.shout", "String.loud"),
        ("run", "String.shout"),
        ("run", "String.loud"),
        ("run", "Collection.second"),
    }


def test_init_is_called_by_name_and_by_the_type(calls):
    found = calls(
        {
            "app.swift": """
            class Root { init(name: String) {} }
            class Shop: Root {
              override init(name: String) { super.init(name: name) }
              convenience init() { self.init(name: "x") }
            }
            func run() { Shop(); Shop.init(name: "y"); Box<Int>(1) }
            struct Box<T> { init(_ x: T) {} }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("Shop.init", "Root.init"),
        ("Shop.init~2", "Shop.init"),
        ("run", "Shop"),
        ("run", "Shop.init"),
        ("run", "Box"),
    }


def test_optional_chains_and_bindings_are_followed(calls):
    found = calls(
        {
            "app.swift": """
            class Till { func count() {}; func next() -> Till? { return nil } }
            class Shop {
              var till: Till?
              func run(other: Till?) {
                till?.count()
                guard let till = till else { return }
                till.next()?.count()
                if let other = other?.next(), let third = other.next() { third.count() }
                while let one = till.next() { one.count() }
              }
            }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("Shop.run", "Till.count"),
        ("Shop.run", "Till.next"),
    }


def test_a_closure_is_given_what_is_in_the_collection(calls):
    found = calls(
        {
            "app.swift": """
            struct Tea { func price() -> Int { return 1 }; func brew() {}; func cup() -> Cup { return Cup() } }
            struct Cup { func fill() {}; func wash() {} }
            func run(list: [Tea], shelf: [String: Tea]) {
              list.map { $0.price() }
              list.filter({ tea in tea.brew() })
              list.map { $0.cup() }.first?.fill()
              for (_, tea) in shelf { tea.cup().wash() }
            }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("Tea.cup", "Cup"),
        ("run", "Tea.price"),
        ("run", "Tea.brew"),
        ("run", "Tea.cup"),
        ("run", "Cup.fill"),
        ("run", "Cup.wash"),
    }


def test_a_case_gives_what_it_was_made_with(calls):
    found = calls(
        {
            "app.swift": """
            enum Shape { case circle(Int, Pen), square(pen: Ink) }
            struct Pen { func draw() {} }
            struct Ink { func flow() {} }
            func run(shape: Shape, any: Any) {
              switch shape {
              case .circle(_, let pen): pen.draw()
              case let .square(ink): ink.flow()
              }
              switch any {
              case let pen as Pen: pen.draw()
              default: break
              }
            }
            func one(shape: Shape) {
              if case .circle(let size, let pen) = shape { pen.draw() }
            }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("run", "Pen.draw"),
        ("run", "Ink.flow"),
        ("one", "Pen.draw"),
    }


def test_labels_tell_overloads_apart(calls):
    found = calls(
        {
            "app.swift": """
            class Shop {
              func add(item: String) {}
              func add(note: String) {}
            }
            func run(shop: Shop) { shop.add(note: "x") }
            """
        }
    )

    assert found == {("run", "Shop.add~2", "type of the receiver")}


def test_the_folder_of_a_target_is_its_module(calls):
    found = calls(
        {
            "Sources/Shop/Till.swift": "func count() {}",
            "Sources/Shop/Open.swift": "func open() { count() }",
            "Sources/Bank/Count.swift": "func count() {}",
            "Sources/Bank/Save.swift": "func save() { count() }",
            "Tests/ShopTests/OpenTests.swift": "@testable import Shop\nfunc check() { open(); count() }",
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("Sources/Shop/Open.swift::open", "Sources/Shop/Till.swift::count"),
        ("Sources/Bank/Save.swift::save", "Sources/Bank/Count.swift::count"),
        ("Tests/ShopTests/OpenTests.swift::check", "Sources/Shop/Open.swift::open"),
        ("Tests/ShopTests/OpenTests.swift::check", "Sources/Shop/Till.swift::count"),
    }


def test_a_member_without_its_type_is_of_the_type_that_is_wanted(calls):
    found = calls(
        {
            "app.swift": """
            struct Pen { static func red() -> Pen { return Pen() } }
            func pen() -> Pen { return .red() }
            func run() { let one: Pen = .red() }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("Pen.red", "Pen"),
        ("pen", "Pen.red"),
        ("run", "Pen.red"),
    }


def test_what_is_called_like_a_function_runs_its_method(calls):
    found = calls(
        {
            "app.swift": """
            struct Adder { func callAsFunction(_ x: Int) -> Int { return x } }
            func twice(_ f: (Int) -> Int) { f(1) }
            func double(x: Int) -> Int { return x }
            func run(add: Adder) { add(1); twice(double) }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("run", "Adder.callAsFunction"),
        ("run", "twice"),
        ("twice", "double"),
    }


def test_an_optional_gives_itself_to_a_closure_and_a_subscript_what_is_in_the_collection(calls):
    found = calls(
        {
            "app.swift": """
            struct Tea { func price() -> Int { return 1 }; func brew() {}; func pour() {} }
            func run(tea: Tea?, list: [Tea], shelf: [String: Tea]) {
              tea.map { $0.price() }
              list[0].brew()
              shelf["x"]?.pour()
            }
            """
        }
    )

    assert {callee for _, callee, _ in found} == {"Tea.price", "Tea.brew", "Tea.pour"}


def test_the_first_of_a_collection_is_read_with_and_without_brackets(calls):
    found = calls(
        {
            "app.swift": """
            struct Tea { func price() -> Int { return 1 }; func brew() {} }
            func run(list: [Tea]) {
              list.first?.price()
              list.last(where: { one in true })?.brew()
            }
            """
        }
    )

    assert {callee for _, callee, _ in found} == {"Tea.price", "Tea.brew"}


def test_a_call_behind_an_operator_is_that_of_what_stands_last(calls):
    found = calls(
        {
            "app.swift": """
            class Shop {
              let till = Till()
              func price() -> Int { return 1 }
              func sum() -> Int { return 1 + price() * till.count() + 2 }
              func closed() -> Bool { return !isOpen() }
              func isOpen() -> Bool { return true }
            }
            class Till { func count() -> Int { return 1 } }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("Shop", "Till"),
        ("Shop.sum", "Shop.price"),
        ("Shop.sum", "Till.count"),
        ("Shop.closed", "Shop.isOpen"),
    }


def test_a_name_without_its_label_is_none_of_the_function(calls):
    found = calls(
        {
            "app.swift": """
            func save(text: String) {}
            class Root { func add(name: String) {} }
            class Shop: Root {
              func add(price: Int) { add(name: "x"); save("x"); save(text: "x") { } }
            }
            """
        }
    )

    assert found == {("Shop.add", "Root.add", "class hierarchy"), ("Shop.add", "save", "same file")}


def test_a_function_that_is_given_to_init_is_called_where_it_is_stored(calls):
    found = calls(
        {
            "app.swift": """
            struct Task {
              let work: (Int) -> Int
              init(work: @escaping (Int) -> Int) { self.work = work }
              func run() { work(1) }
            }
            func double(x: Int) -> Int { return x }
            func start() { Task(work: double).run() }
            """
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("Task.run", "double"),
        ("start", "Task"),
        ("start", "Task.run"),
    }
