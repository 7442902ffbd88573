"""Class hierarchies: inheritance, mixins, overrides, and classes defined in several parts."""


def test_a_method_is_inherited_from_the_first_class_that_has_it(calls):
    found = calls(
        {
            "app.py": """
            class Root:
                def check(self): ...
                def close(self): ...
            class First(Root):
                def check(self): ...
            class Second(Root):
                def close(self): ...
            class Shop(First, Second): ...
            def run(shop: Shop):
                shop.check()
                shop.open()
            """
        }
    )

    assert found == {("run", "First.check", "class hierarchy")}


def test_super_is_what_the_class_inherits(calls):
    found = calls(
        {
            "app.py": """
            class Root:
                def __init__(self): ...
                def check(self): ...
            class Shop(Root):
                def __init__(self):
                    super().__init__()
                def check(self):
                    super().check()
                    super().close()
            """
        }
    )

    assert found == {
        ("Shop.__init__", "Root.__init__", "class hierarchy"),
        ("Shop.check", "Root.check", "class hierarchy"),
    }


def test_super_of_ecmascript_is_the_constructor_or_an_object(calls):
    found = calls(
        {
            "app.ts": """
            class Root { constructor() {} check() {} }
            class Shop extends Root {
              constructor() { super(); }
              check() { super.check(); super.close(); }
            }
            """
        }
    )

    assert found == {("Shop.constructor", "Root", "same file"), ("Shop.check", "Root.check", "class hierarchy")}


def test_super_of_ruby_is_the_method_of_the_same_name(calls):
    found = calls(
        {
            "app.rb": """
            module Loud
              def check
                super
              end
            end
            class Root
              def check
              end
              def close
              end
            end
            class Shop < Root
              include Loud
              def close
                super
              end
            end
            """
        }
    )

    assert found == {("Shop.close", "Root.close", "class hierarchy"), ("Loud.check", "Root.check", "class hierarchy")}


def test_super_of_java_and_of_an_interface(calls):
    found = calls(
        {
            "Shop.java": """
            interface Loud { default void ring() {} }
            class Root { Root(int at) {} void check() {} }
            class Shop extends Root implements Loud {
                Shop() { super(1); }
                void check() { super.check(); }
                public void ring() { Loud.super.ring(); }
            }
            """
        }
    )

    assert found == {
        ("Shop.Shop", "Root", "same file"),
        ("Shop.check", "Root.check", "class hierarchy"),
        ("Shop.ring", "Loud.ring", "type of the receiver"),
    }


def test_parent_of_php_and_base_of_csharp_are_what_the_class_inherits(calls):
    assert calls(
        {
            "shop.php": """
            <?php
            class Root { public function __construct() {} public function check() {} }
            class Shop extends Root {
                public function __construct() { parent::__construct(); }
                public function check() { parent::check(); }
            }
            """
        }
    ) == {("Shop.__construct", "Root.__construct", "class hierarchy"), ("Shop.check", "Root.check", "class hierarchy")}
    assert calls(
        {
            "Shop.cs": """
            class Root { public Root(int at) {} public virtual void Check() {} }
            class Shop : Root {
                public Shop() : base(1) {}
                public override void Check() { base.Check(); }
            }
            """
        }
    ) == {("Shop.Shop", "Root", "same file"), ("Shop.Check", "Root.Check", "class hierarchy")}


def test_super_of_kotlin_is_what_the_class_inherits(calls):
    found = calls(
        {
            "shop.kt": """
            open class Root(at: Int) { open fun check() {} }
            class Shop : Root(1) {
                override fun check() { super.check() }
            }
            """
        }
    )

    assert found == {("Shop", "Root", "same file"), ("Shop.check", "Root.check", "class hierarchy")}


def test_a_member_of_a_base_class_of_cpp_needs_no_object(calls):
    found = calls(
        {
            "shop.cpp": """
            struct Root { void check() {} void close() {} };
            struct Shop : public Root {
              void close() { Root::close(); }
              void run() { check(); close(); this->check(); }
            };
            struct Other { void none() { check(); } };
            """
        }
    )

    assert found == {
        ("Shop.close", "Root.close", "type of the receiver"),
        ("Shop.run", "Root.check", "class hierarchy"),
        ("Shop.run", "Shop.close", "type of the receiver"),
    }


def test_a_class_that_inherits_by_another_name_of_it_has_the_methods(calls):
    found = calls(
        {
            "root.py": "class Root:\n    def check(self): ...\n",
            "app.py": """
            import root
            from root import Root as Base
            class Shop(Base):
                def run(self):
                    self.check()
            class Till(root.Root):
                def run(self):
                    self.check()
            """,
        }
    )

    assert found == {
        ("app.py::Shop.run", "root.py::Root.check", "class hierarchy"),
        ("app.py::Till.run", "root.py::Root.check", "class hierarchy"),
    }


def test_mixins_of_ruby_come_before_the_base_class(calls):
    found = calls(
        {
            "app.rb": """
            module Loud
              def ring
              end
            end
            module Static
              def build
              end
            end
            class Root
              def ring
              end
            end
            class Shop < Root
              include Loud
              extend Static
              def run
                ring
              end
            end
            class Other < Root
              def run
                ring
              end
            end
            Shop.build
            """
        }
    )

    assert found == {
        ("Shop.run", "Loud.ring", "class hierarchy"),
        ("Other.run", "Root.ring", "class hierarchy"),
        ("app.rb", "Static.build", "class hierarchy"),
    }


def test_class_methods_of_a_concern_are_those_of_the_class(calls):
    found = calls(
        {
            "app.rb": """
            module Searchable
              module ClassMethods
                def search
                end
              end
            end
            class Shop
              include Searchable
            end
            class Other
            end
            Shop.search
            Other.search
            """
        }
    )

    assert found == {("app.rb", "Searchable.ClassMethods.search", "class hierarchy")}


def test_traits_of_php_come_before_the_base_class(calls):
    found = calls(
        {
            "shop.php": """
            <?php
            trait Loud { public function ring() {} public function bell() {} }
            class Root { public function ring() {} }
            class Shop extends Root {
                use Loud { Loud::bell as chime; }
                public function run() { $this->ring(); $this->chime(); }
            }
            """
        }
    )

    assert found == {("Shop.run", "Loud.ring", "class hierarchy"), ("Shop.run", "Loud.bell", "type of the receiver")}


def test_a_mixin_of_ecmascript_gives_a_class_that_inherits_what_it_is_given(calls):
    found = calls(
        {
            "app.ts": """
            class Root { check() {} }
            class Other { check() {} }
            const Loud = (Base: any) => class extends Base { ring() {} };
            class Shop extends Loud(Root) {
              run() { this.check(); this.ring(); }
            }
            """
        }
    )

    assert found == {
        ("Shop", "Loud", "same file"),
        ("Shop.run", "Root.check", "class hierarchy"),
        ("Shop.run", "Loud.ring", "class hierarchy"),
    }


def test_a_class_that_a_function_gives_has_what_it_inherits(calls):
    found = calls(
        {
            "app.ts": """
            class Root { check() {} close() {} }
            class Other { check() {} close() {} }
            function loud() {
              return class extends Root {
                ring() { super.close(); }
              };
            }
            class Shop extends loud() {
              run() { this.check(); this.ring(); }
            }
            """
        }
    )

    assert found == {
        ("Shop", "loud", "same file"),
        ("Shop.run", "Root.check", "class hierarchy"),
        ("Shop.run", "loud.ring", "class hierarchy"),
        ("loud.ring", "Root.close", "type of the receiver"),
    }


def test_a_method_that_the_base_class_calls_on_itself_is_that_of_derived_classes_in_ecmascript(calls):
    found = calls(
        {
            "app.ts": """
            abstract class Root {
              run() { this.step(); }
            }
            class First extends Root { step() {} }
            class Second extends First { step() {} }
            class Other { step() {} }
            """
        }
    )

    assert found == {("Root.run", "First.step", "class hierarchy"), ("Root.run", "Second.step", "class hierarchy")}


def test_a_method_that_the_base_class_has_itself_may_be_overridden(calls):
    found = calls(
        {
            "app.js": """
            class Root {
              run() { this.step(); }
              step() {}
            }
            class First extends Root { step() {} }
            class Plain extends Root {}
            class Other { step() {} }
            """
        }
    )

    assert found == {("Root.run", "Root.step", "type of the receiver"), ("Root.run", "First.step", "class hierarchy")}


def test_a_method_that_a_class_or_module_calls_on_itself_is_that_of_derived_classes_in_ruby(calls):
    found = calls(
        {
            "app.rb": """
            class Root
              def run
                step
                self.leap
              end
            end
            class First < Root
              def step
              end
            end
            class Second < Root
              def leap
              end
            end
            class Other
              def step
              end
            end
            module Loud
              def ring
                bell
              end
            end
            class Door
              include Loud
              def bell
              end
            end
            """
        }
    )

    assert found == {
        ("Root.run", "First.step", "class hierarchy"),
        ("Root.run", "Second.leap", "class hierarchy"),
        ("Loud.ring", "Door.bell", "class hierarchy"),
    }


def test_a_method_that_runs_on_objects_of_one_derived_class_is_overridden_there_alone(calls):
    found = calls(
        {
            "app.js": """
            class Root {
              run() { this.step(); }
              step() {}
            }
            class First extends Root {
              go() { this.run(); }
              step() {}
            }
            class Second extends Root { step() {} }
            """
        }
    )

    assert found == {
        ("First.go", "Root.run", "class hierarchy"),
        ("Root.run", "Root.step", "type of the receiver"),
        ("Root.run", "First.step", "class hierarchy"),
    }


def test_derived_classes_of_tests_are_none_of_what_is_tested(calls):
    found = calls(
        {
            "src/root.ts": "export class Root { run() { this.step(); } }\n",
            "src/first.ts": "import { Root } from './root';\nclass First extends Root { step() {} }\n",
            "tests/fake.test.ts": "import { Root } from '../src/root';\nclass Fake extends Root { step() {} }\n",
        }
    )

    assert found == {("src/root.ts::Root.run", "src/first.ts::First.step", "class hierarchy")}


def test_a_call_on_an_object_of_a_declared_class_is_that_of_this_class_alone(calls):
    found = calls(
        {
            "Shop.java": """
            interface Pay { void check(); }
            class Card implements Pay { public void check() {} }
            class Shop { void run(Pay with) { with.check(); } }
            """
        }
    )

    assert found == {("Shop.run", "Pay.check", "type of the receiver")}


def test_the_parts_of_a_partial_class_are_one(calls):
    found = calls(
        {
            "Shop.cs": "namespace S;\npartial class Shop { void Run() { Check(); none.Check(); } Till till; }\n",
            "Shop.Parts.cs": "namespace S;\npartial class Shop { void Check() { till.Open(); } }\n",
            "Till.cs": "namespace S;\nclass Till { public void Open() {} }\n",
            "Other.cs": "namespace T;\npartial class Shop { void Check() {} }\n",
        }
    )

    assert found == {
        ("Shop.cs::Shop.Run", "Shop.Parts.cs::Shop.Check", "type of the receiver"),
        ("Shop.Parts.cs::Shop.Check", "Till.cs::Till.Open", "type of the receiver"),
    }


def test_a_class_of_ruby_may_be_opened_again(calls):
    found = calls(
        {
            "shop.rb": "class Shop\n  def run\n    check\n    ring\n  end\nend\n",
            "more.rb": "class Shop\n  include Loud\n  def check\n    @till = Till.new\n  end\nend\n",
            "loud.rb": "module Loud\n  def ring\n  end\nend\n",
            "till.rb": "class Till\n  def open\n  end\nend\n",
            "again.rb": "class Shop\n  def go\n    @till.open\n  end\nend\n",
            "other.rb": "class Other\n  def check\n  end\nend\n",
        }
    )

    assert found == {
        ("shop.rb::Shop.run", "more.rb::Shop.check", "type of the receiver"),
        ("shop.rb::Shop.run", "loud.rb::Loud.ring", "class hierarchy"),
        ("more.rb::Shop.check", "till.rb::Till", "same package"),
        ("again.rb::Shop.go", "till.rb::Till.open", "type of the receiver"),
    }


def test_methods_of_go_may_stand_in_other_files_and_be_embedded(calls):
    found = calls(
        {
            "shop.go": "package shop\ntype Till struct{}\ntype Shop struct {\n\tTill\n\tname string\n}\n",
            "more.go": "package shop\nfunc (t *Till) Open() {}\nfunc (s *Shop) Run() { s.Open(); s.Close() }\n",
            "other.go": "package shop\ntype Other struct{}\nfunc (o Other) Close() {}\n",
        }
    )

    assert found == {("more.go::Shop.Run", "more.go::Till.Open", "class hierarchy")}


def test_impls_of_rust_add_methods_wherever_they_are(calls):
    found = calls(
        {
            "src/lib.rs": """
            mod more;
            pub struct Till;
            pub trait Loud { fn ring(&self) {} fn bell(&self); }
            impl Loud for Till { fn bell(&self) {} }
            fn run(till: &Till) { till.open(); till.bell(); till.ring(); till.close(); }
            """,
            "src/more.rs": """
            use crate::Till;
            impl Till { pub fn open(&self) {} }
            impl Other { pub fn close(&self) {} }
            """,
        }
    )

    assert found == {
        ("src/lib.rs::run", "src/more.rs::Till.open", "type of the receiver"),
        ("src/lib.rs::run", "src/lib.rs::Till.bell", "type of the receiver"),
        ("src/lib.rs::run", "src/lib.rs::Loud.ring", "class hierarchy"),
    }


def test_self_of_rust_is_the_type_that_an_impl_is_for(calls):
    found = calls(
        {
            "lib.rs": """
            struct Till;
            impl Till {
                fn new() -> Self { Self::build() }
                fn build() -> Till { Till }
                fn run(&self) { self.open(); Self::new().open(); }
                fn open(&self) {}
            }
            struct Other;
            impl Other { fn open(&self) {} }
            """
        }
    )

    assert found == {
        ("Till.new", "Till.build", "type of the receiver"),
        ("Till.run", "Till.open", "type of the receiver"),
        ("Till.run", "Till.new", "type of the receiver"),
    }


def test_a_trait_of_rust_may_add_methods_to_types_of_the_library(calls):
    found = calls(
        {
            "lib.rs": """
            trait Loud { fn ring(&self); }
            impl Loud for String { fn ring(&self) {} }
            struct Other;
            impl Other { fn bell(&self) {} }
            fn run(name: String) { name.ring(); name.bell(); }
            """
        }
    )

    assert found == {("run", "String.ring", "type of the receiver")}


def test_what_an_object_of_rust_derefs_to_has_the_method(calls):
    found = calls(
        {
            "lib.rs": """
            struct Till;
            impl Till { fn open(&self) {} }
            struct Guard { till: Till }
            impl std::ops::Deref for Guard { type Target = Till; fn deref(&self) -> &Till { &self.till } }
            fn run(guard: Guard) { guard.open(); guard.close(); }
            """
        }
    )

    assert found == {("run", "Till.open", "type of the receiver")}


def test_what_a_type_parameter_of_rust_is_bound_by_has_the_method(calls):
    found = calls(
        {
            "lib.rs": """
            trait Pay { fn check(&self); }
            trait Bank { fn lock(&self); }
            struct Other;
            impl Other { fn check(&self) {} }
            fn run<T: Pay>(with: T) { with.check(); }
            fn go<T>(with: T) where T: Bank { with.lock(); }
            fn any<T>(with: T) { with.check(); }
            """
        }
    )

    assert found == {("run", "Pay.check", "type of the receiver"), ("go", "Bank.lock", "type of the receiver")}


def test_constants_of_enumerations_are_objects_of_them(calls):
    assert calls(
        {
            "Size.java": """
            enum Size {
                BIG { void grow() { super.grow(); } }, SMALL;
                void grow() {}
                static Size first() { return BIG; }
            }
            class Shop { void run() { Size.SMALL.grow(); Size.first().grow(); } }
            class Other { void grow() {} }
            """
        }
    ) == {
        ("Shop.run", "Size.grow", "type of the receiver"),
        ("Shop.run", "Size.first", "type of the receiver"),
        ("Size.BIG.grow", "Size.grow", "type of the receiver"),
    }
    assert calls(
        {
            "size.php": """
            <?php
            enum Size {
                case Big;
                public function grow() {}
            }
            function run() { Size::Big->grow(); }
            """
        }
    ) == {("run", "Size.grow", "type of the receiver")}
    assert calls(
        {
            "size.rs": """
            enum Size { Big, Small(u8) }
            impl Size { fn grow(&self) {} }
            fn run() { Size::Big.grow(); let size = Size::Big; size.grow(); }
            """
        }
    ) == {("run", "Size.grow", "type of the receiver")}
    assert calls(
        {
            "size.kt": """
            enum class Size {
                BIG, SMALL;
                fun grow() {}
            }
            class Other { fun grow() {} }
            fun run() { Size.BIG.grow() }
            """
        }
    ) == {("run", "Size.grow", "type of the receiver")}
    assert calls(
        {
            "size.cs": """
            enum Size { Big, Small }
            enum Other { Big }
            static class Sizes { public static void Grow(this Size size) {} }
            static class Others { public static void Grow(this Other other) {} }
            class Shop { void Run() { Size.Big.Grow(); } }
            """
        }
    ) == {("Shop.Run", "Sizes.Grow", "type of the receiver")}
    assert calls(
        {
            "size.go": """
            package shop
            type Size int
            const (
                Big Size = iota
                Small
            )
            func (s Size) Grow() {}
            type Other int
            func (o Other) Grow() {}
            func run() { Small.Grow() }
            """
        }
    ) == {("run", "Size.Grow", "type of the receiver")}


def test_a_companion_object_of_kotlin_is_named_by_its_class(calls):
    found = calls(
        {
            "shop.kt": """
            class Shop {
                companion object { fun build(): Shop = Shop() }
                fun run() { build() }
                fun check() {}
            }
            class Named {
                companion object Maker {
                    fun make() {}
                }
            }
            class Other { fun check() {} }
            fun go() { Shop.build().check(); Named.make(); Other.make() }
            """
        }
    )

    assert found == {
        ("Shop.build", "Shop", "same scope"),
        ("Shop.run", "Shop.build", "type of the receiver"),
        ("go", "Shop.build", "type of the receiver"),
        ("go", "Shop.check", "type of the receiver"),
        ("go", "Named.Maker.make", "class hierarchy"),
    }


def test_a_class_without_a_name_has_what_it_inherits(calls):
    assert calls(
        {
            "Shop.java": """
            class Root { void check() {} void run() {} }
            class Other { void check() {} }
            class Shop { Root make() { return new Root() { void run() { check(); } }; } }
            """
        }
    ) == {("Shop.make.run", "Root.check", "type of the receiver"), ("Shop.make", "Root", "same file")}
    assert calls(
        {
            "shop.kt": """
            open class Root { fun check() {} }
            class Other { fun check() {} }
            fun make() = object : Root() { fun run() { check() } }
            """
        }
    ) == {("make.run", "Root.check", "type of the receiver"), ("make", "Root", "same file")}


def test_methods_of_a_prototype_are_those_of_its_objects(calls):
    found = calls(
        {
            "app.js": """
            function Root() {}
            Root.prototype.check = function () {};
            function Shop() { this.till = new Till(); }
            Shop.prototype = Object.create(Root.prototype);
            Shop.prototype.run = function () { this.check(); this.till.open(); };
            function Till() {}
            Till.prototype.open = function () {};
            function Other() {}
            Other.prototype.check = function () {};
            function go() { const shop = new Shop(); shop.run(); shop.check(); }
            """
        }
    )

    assert found == {
        ("Shop", "Till", "same file"),
        ("Shop.prototype.run", "Root.prototype.check", "class hierarchy"),
        ("Shop.prototype.run", "Till.prototype.open", "type of the receiver"),
        ("go", "Shop", "same file"),
        ("go", "Shop.prototype.run", "type of the receiver"),
        ("go", "Root.prototype.check", "class hierarchy"),
    }


def test_objects_that_are_written_out_have_the_methods_in_them(calls):
    found = calls(
        {
            "app.js": """
            const shop = {
              check() {},
              run() { this.check(); },
              close: () => {},
              find,
            };
            const other = { check() {} };
            function find() {}
            function go() { shop.run(); shop.close(); shop.find(); shop.none(); }
            """
        }
    )

    assert found == {
        ("shop.run", "shop.check", "type of the receiver"),
        ("go", "shop.run", "type of the receiver"),
        ("go", "shop.close", "type of the receiver"),
        ("go", "find", "type of the receiver"),
    }


def test_an_object_in_a_field_has_the_methods_in_it(calls):
    found = calls(
        {
            "app.ts": """
            class Shop {
              doors = { open() {}, close: () => {} };
              run() { this.doors.open(); this.doors.lock(); }
            }
            const other = { lock() {} };
            """
        }
    )

    assert found == {("Shop.run", "Shop.doors.open", "type of the receiver")}


def test_an_object_takes_over_what_is_spread_in_it(calls):
    found = calls(
        {
            "app.ts": """
            const base = { check() {} };
            const other = { close() {} };
            const shop = { ...base, open() {} };
            function run() { shop.check(); shop.open(); shop.close(); }
            """
        }
    )

    assert found == {("run", "base.check", "type of the receiver"), ("run", "shop.open", "type of the receiver")}


def test_a_function_gives_an_object_with_functions_of_its_own(calls):
    found = calls(
        {
            "app.js": """
            function make() {
              function check() {}
              return { check, close() {} };
            }
            function check() {}
            function run() { const made = make(); made.check(); made.close(); }
            """
        }
    )

    assert found == {
        ("run", "make", "same file"),
        ("run", "make.check", "type of the receiver"),
        ("run", "make.close", "type of the receiver"),
    }


def test_a_function_has_what_is_put_into_it(calls):
    found = calls(
        {
            "app.js": """
            function shop() {}
            shop.check = function () {};
            shop.look = find;
            function find() {}
            function other() {}
            other.close = function () {};
            function run() { shop.check(); shop.look(); shop.close(); }
            """
        }
    )

    assert found == {("run", "shop.check", "type of the receiver"), ("run", "find", "same file")}
