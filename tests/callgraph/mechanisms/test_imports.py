"""Imports resolve to a file and to a name in it."""

import pytest


def test_an_alias_of_python_stands_for_what_is_imported(calls):
    found = calls(
        {
            "shop/pay.py": "def check(): ...\ndef close(): ...\n",
            "shop/app.py": """
            from shop.pay import check as look
            import shop.pay as till
            def run():
                look()
                till.close()
                check()
            """,
        }
    )

    assert found == {
        ("shop/app.py::run", "shop/pay.py::check", "imported name"),
        ("shop/app.py::run", "shop/pay.py::close", "imported name"),
    }


def test_a_package_of_python_passes_on_what_it_imports(calls):
    found = calls(
        {
            "shop/__init__.py": "from .pay import check\nfrom .more import *\n",
            "shop/pay.py": "def check(): ...\ndef close(): ...\n",
            "shop/more.py": "def extra(): ...\n",
            "app.py": """
            import shop
            from shop import check, extra
            def run():
                check()
                extra()
                shop.check()
                shop.close()
            """,
        }
    )

    assert found == {
        ("app.py::run", "shop/pay.py::check", "imported name"),
        ("app.py::run", "shop/more.py::extra", "imported name"),
    }


def test_a_module_of_a_package_is_found_below_it(calls):
    found = calls(
        {
            "shop/__init__.py": "NAME = 'shop'\n",
            "shop/pay.py": "def check(): ...\n",
            "other/pay.py": "def check(): ...\n",
            "app.py": """
            from shop import pay
            import shop.pay
            def run():
                pay.check()
            def go():
                shop.pay.check()
            """,
        }
    )

    assert found == {
        ("app.py::run", "shop/pay.py::check", "imported name"),
        ("app.py::go", "shop/pay.py::check", "imported name"),
    }


def test_a_folder_without_init_is_a_package_too(calls):
    found = calls(
        {
            "src/shop/pay.py": "def check(): ...\n",
            "app.py": "from shop import pay\ndef run():\n    pay.check()\n",
        }
    )

    assert found == {("app.py::run", "src/shop/pay.py::check", "imported name")}


def test_dots_lead_upwards_from_the_file(calls):
    found = calls(
        {
            "shop/__init__.py": "NAME = 1\n",
            "shop/pay.py": "def check(): ...\n",
            "shop/till/__init__.py": "NAME = 1\n",
            "shop/till/pay.py": "def check(): ...\n",
            "shop/till/app.py": """
            from . import pay
            from .. import pay as above
            def run():
                pay.check()
            def go():
                above.check()
            """,
        }
    )

    assert found == {
        ("shop/till/app.py::run", "shop/till/pay.py::check", "imported name"),
        ("shop/till/app.py::go", "shop/pay.py::check", "imported name"),
    }


def test_of_several_modules_of_one_name_the_one_beside_is_imported(calls):
    found = calls(
        {
            "a/pay.py": "def check(): ...\n",
            "a/app.py": "import pay\ndef run():\n    pay.check()\n",
            "b/deep/pay.py": "def check(): ...\n",
        }
    )

    assert found == {("a/app.py::run", "a/pay.py::check", "imported name")}


def test_all_of_a_module_is_imported_by_a_star(calls):
    found = calls(
        {
            "pay.py": "def check(): ...\n",
            "other.py": "def close(): ...\n",
            "app.py": "from pay import *\ndef run():\n    check()\n    close()\n",
        }
    )

    assert found == {("app.py::run", "pay.py::check", "imported name")}


def test_what_a_function_imports_is_known_in_it_alone(calls):
    found = calls(
        {
            "pay.py": "def check(): ...\n",
            "app.py": """
            def run():
                from pay import check
                check()
            def other():
                check()
            """,
        }
    )

    assert found == {("app.py::run", "pay.py::check", "imported name")}


def test_names_of_ecmascript_are_imported_under_others(calls):
    found = calls(
        {
            "pay.ts": "export function check() {}\nfunction close() {}\nexport { close as shut };\n",
            "app.ts": """
            import { check as look, shut } from './pay';
            import * as pay from './pay';
            function run() { look(); shut(); }
            function go() { pay.check(); }
            function none() { check(); }
            """,
        }
    )

    assert found == {
        ("app.ts::run", "pay.ts::check", "imported name"),
        ("app.ts::run", "pay.ts::close", "imported name"),
        ("app.ts::go", "pay.ts::check", "imported name"),
    }


def test_a_default_export_has_any_name(calls):
    found = calls(
        {
            "pay.ts": "export default function check() {}\nexport function close() {}\n",
            "till.ts": "class Till { open() {} }\nexport default new Till();\n",
            "app.ts": """
            import look from './pay';
            import till from './till';
            function run() { look(); }
            function go() { till.open(); }
            """,
        }
    )

    assert found == {
        ("till.ts", "till.ts::Till", "same file"),
        ("app.ts::run", "pay.ts::check", "imported name"),
        ("app.ts::go", "till.ts::Till.open", "type of the receiver"),
    }


def test_a_file_exports_what_others_have(calls):
    found = calls(
        {
            "pay.ts": "export function check() {}\nexport function close() {}\n",
            "till.ts": "export function open() {}\n",
            "index.ts": "export * from './till';\nexport { check as look } from './pay';\n",
            "app.ts": """
            import { look, open, close } from '.';
            function run() { look(); open(); close(); }
            """,
        }
    )

    assert found == {
        ("app.ts::run", "pay.ts::check", "imported name"),
        ("app.ts::run", "till.ts::open", "imported name"),
    }


def test_commonjs_exports_functions_one_by_one_or_in_an_object(calls):
    found = calls(
        {
            "pay.js": "function check() {}\nfunction close() {}\nmodule.exports = { check, shut: close };\n",
            "till.js": "exports.open = function () {};\nmodule.exports.lock = () => {};\n",
            "app.js": """
            const { check, shut: end } = require('./pay');
            const till = require('./till');
            function run() { check(); end(); }
            function go() { till.open(); till.lock(); }
            """,
        }
    )

    assert found == {
        ("app.js::run", "pay.js::check", "imported name"),
        ("app.js::run", "pay.js::close", "imported name"),
        ("app.js::go", "till.js::exports.open", "imported name"),
        ("app.js::go", "till.js::module.exports.lock", "imported name"),
    }


def test_a_module_of_commonjs_may_be_one_function_or_class(calls):
    found = calls(
        {
            "pay.js": "module.exports = function check() {};\n",
            "till.js": "class Till { open() {} }\nmodule.exports = Till;\n",
            "app.js": """
            const look = require('./pay');
            const Till = require('./till');
            function run() { look(); }
            function go() { new Till().open(); }
            """,
        }
    )

    assert found == {
        ("app.js::run", "pay.js::check", "imported name"),
        ("app.js::go", "till.js::Till", "imported name"),
        ("app.js::go", "till.js::Till.open", "type of the receiver"),
    }


def test_commonjs_passes_on_what_another_file_exports(calls):
    found = calls(
        {
            "pay.js": "exports.check = function () {};\n",
            "index.js": "module.exports = { ...require('./pay') };\n",
            "app.js": "const all = require('./index');\nfunction run() { all.check(); }\n",
        }
    )

    assert found == {("app.js::run", "pay.js::exports.check", "imported name")}


def test_paths_of_tsconfig_and_names_of_packages_lead_to_folders(calls):
    found = calls(
        {
            "tsconfig.json": '{"compilerOptions": {"baseUrl": ".", "paths": {"@lib/*": ["lib/*"]}}}',
            "lib/pay.ts": "export function check() {}\n",
            "packages/till/package.json": '{"name": "@shop/till"}',
            "packages/till/src/index.ts": "export function open() {}\n",
            "packages/bank/package.json": '{"name": "bank", "imports": {"#in/*": "./inner/*.ts"}}',
            "packages/bank/inner/vault.ts": "export function lock() {}\n",
            "packages/bank/app.ts": "import { lock } from '#in/vault';\nfunction run() { lock(); }\n",
            "app.ts": """
            import { check } from '@lib/pay';
            import { open } from '@shop/till';
            import { lock } from '#in/vault';
            function run() { check(); open(); lock(); }
            """,
        }
    )

    assert found == {
        ("app.ts::run", "lib/pay.ts::check", "imported name"),
        ("app.ts::run", "packages/till/src/index.ts::open", "imported name"),
        ("packages/bank/app.ts::run", "packages/bank/inner/vault.ts::lock", "imported name"),
    }


def test_files_of_a_folder_of_go_share_their_names(calls):
    found = calls(
        {
            "pay.go": "package shop\nfunc check() {}\n",
            "app.go": "package shop\nfunc run() { check() }\n",
            "other/pay.go": "package other\nfunc check() {}\n",
            "tool/app.go": "package tool\nfunc run() { check() }\n",
        }
    )

    assert found == {("app.go::run", "pay.go::check", "same package")}


def test_a_package_of_go_is_the_folder_below_its_module(calls):
    found = calls(
        {
            "go.mod": "module example.com/shop\n",
            "pay/pay.go": "package pay\nfunc Check() {}\n",
            "pay/pay_test.go": "package pay\nfunc Helper() {}\n",
            "bank/v2/bank.go": "package vault\nfunc Open() {}\nfunc Lock() {}\n",
            "app.go": """
            package shop
            import (
                "example.com/shop/pay"
                "example.com/shop/bank/v2"
                till "example.com/shop/bank/v2"
                "example.com/other/pay2"
            )
            func run() { pay.Check(); vault.Open(); pay.Helper(); pay2.Check() }
            func go_() { till.Lock() }
            """,
        }
    )

    assert found == {
        ("app.go::run", "pay/pay.go::Check", "imported name"),
        ("app.go::run", "bank/v2/bank.go::Open", "imported name"),
        ("app.go::go_", "bank/v2/bank.go::Lock", "imported name"),
    }


def test_without_a_go_mod_a_package_is_the_folder_with_the_end_of_its_path(calls):
    found = calls(
        {
            "pay/pay.go": "package pay\nfunc Check() {}\n",
            "app.go": 'package shop\nimport "github.com/ann/shop/pay"\nfunc run() { pay.Check() }\n',
        }
    )

    assert found == {("app.go::run", "pay/pay.go::Check", "imported name")}


def test_paths_of_rust_lead_through_the_crate(calls):
    found = calls(
        {
            "src/lib.rs": "mod pay;\nmod till;\nfn top() {}\n",
            "src/pay.rs": """
            pub fn check() {}
            pub fn up() { super::top(); crate::till::drawer::open(); }
            """,
            "src/till/mod.rs": """
            pub mod drawer;
            use crate::pay::check as look;
            use crate::pay::*;
            use self::drawer::open;
            fn run() { look(); open(); up(); }
            """,
            "src/till/drawer.rs": "pub fn open() {}\n",
        }
    )

    assert found == {
        ("src/pay.rs::up", "src/lib.rs::top", "imported name"),
        ("src/pay.rs::up", "src/till/drawer.rs::open", "imported name"),
        ("src/till/mod.rs::run", "src/pay.rs::check", "imported name"),
        ("src/till/mod.rs::run", "src/till/drawer.rs::open", "imported name"),
        ("src/till/mod.rs::run", "src/pay.rs::up", "imported name"),
    }


def test_a_crate_of_rust_is_found_by_the_name_in_its_cargo_file(calls):
    found = calls(
        {
            "pay-core/Cargo.toml": '[package]\nname = "pay-core"\n',
            "pay-core/src/lib.rs": "pub mod card;\npub use card::check;\n",
            "pay-core/src/card.rs": "pub fn check() {}\npub fn close() {}\n",
            "app/Cargo.toml": '[package]\nname = "app"\n',
            "app/src/main.rs": """
            use pay_core::{check, card::close};
            fn run() { check(); close(); }
            fn other() { elsewhere::check(); }
            """,
        }
    )

    assert found == {
        ("app/src/main.rs::run", "pay-core/src/card.rs::check", "imported name"),
        ("app/src/main.rs::run", "pay-core/src/card.rs::close", "imported name"),
    }


@pytest.mark.parametrize(
    "cargo",
    [
        '[dependencies]\npay = { path = "../core", package = "pay-core" }\n',
        '[dev-dependencies.pay]\npackage = "pay-core"\n',
        '[target."cfg(unix)".dependencies]\npay = { package = "pay-core" }\n',
        '[workspace.dependencies]\npay = { package = "pay-core" }\n',
    ],
)
def test_a_crate_of_rust_may_have_another_name_where_it_is_used(calls, cargo):
    found = calls(
        {
            "app/Cargo.toml": f'[package]\nname = "app"\n{cargo}',
            "app/src/main.rs": "use pay::check;\nfn run() { check(); pay::close(); }\n",
            "core/Cargo.toml": '[package]\nname = "pay-core"\n[lib]\nname = "core_of_pay"\n',
            "core/src/lib.rs": "pub fn check() {}\npub fn close() {}\n",
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("app/src/main.rs::run", "core/src/lib.rs::check"),
        ("app/src/main.rs::run", "core/src/lib.rs::close"),
    }


@pytest.mark.parametrize(
    ("attributes", "file"),
    [
        ('#[path = "inner/far.rs"]', "src/inner/far.rs"),
        ('#[path = "../shared/far.rs"]', "shared/far.rs"),
        ('#[cfg(unix)]\n#[path = "far_unix.rs"]', "src/far_unix.rs"),
        ('#[path = "far_unix.rs"]\n#[cfg(unix)]', "src/far_unix.rs"),
    ],
)
def test_a_module_of_rust_lies_where_its_attribute_says(calls, attributes, file):
    found = calls(
        {
            "src/main.rs": f"{attributes}\nmod far;\nuse crate::far::go;\nfn run() {{ go(); far::stop(); }}\n",
            file: "pub fn go() {}\npub fn stop() {}\n",
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("src/main.rs::run", f"{file}::go"),
        ("src/main.rs::run", f"{file}::stop"),
    }


def test_a_module_that_an_attribute_places_has_the_module_around_it(calls):
    found = calls(
        {
            "src/main.rs": "mod near;\nfn check() {}\nfn close() {}\n",
            "src/near/mod.rs": '#[path = "../../shared/far.rs"]\nmod far;\npub fn look() {}\n',
            "shared/far.rs": "use super::look;\nfn go() { look(); super::super::check(); crate::close(); }\n",
        }
    )

    assert {(caller, callee) for caller, callee, _ in found} == {
        ("shared/far.rs::go", "src/near/mod.rs::look"),
        ("shared/far.rs::go", "src/main.rs::check"),
        ("shared/far.rs::go", "src/main.rs::close"),
    }


def test_files_of_rust_that_place_each_other_end(calls):
    found = calls(
        {
            "src/a.rs": '#[path = "b.rs"]\nmod b;\nfn go() { crate::stop(); super::stop(); }\n',
            "src/b.rs": '#[path = "a.rs"]\nmod a;\npub fn stop() {}\n',
        }
    )

    assert ("src/a.rs::go", "src/b.rs::stop") in {(caller, callee) for caller, callee, _ in found}


def test_a_module_that_is_written_in_a_file_has_imports_of_its_own(calls):
    found = calls(
        {
            "src/lib.rs": """
            mod pay;
            mod inner {
                use crate::pay::check;
                pub use crate::pay::close;
                pub fn run() { check(); }
            }
            fn other() { check(); inner::close(); }
            """,
            "src/pay.rs": "pub fn check() {}\npub fn close() {}\n",
        }
    )

    assert found == {
        ("src/lib.rs::inner.run", "src/pay.rs::check", "type of the receiver"),
        ("src/lib.rs::other", "src/pay.rs::close", "type of the receiver"),
    }


def test_a_function_of_ruby_is_there_where_its_file_is_required(calls):
    found = calls(
        {
            "lib/pay.rb": "def check\nend\n",
            "lib/till.rb": "require_relative 'pay'\ndef open_till\nend\n",
            "lib/app.rb": "require_relative 'till'\ndef run\n  check()\nend\n",
            "bin/app.rb": "require 'till'\ndef go\n  open_till()\nend\n",
            "lib/other.rb": "def none\n  check()\nend\n",
        }
    )

    assert found == {
        ("lib/app.rb::run", "lib/pay.rb::check", "same package"),
        ("bin/app.rb::go", "lib/till.rb::open_till", "same package"),
    }


def test_classes_of_ruby_are_found_wherever_they_are(calls):
    found = calls(
        {
            "app/pay.rb": "module Shop\n  class Pay\n    def self.check\n    end\n  end\nend\n",
            "app/other.rb": "class Pay\n  def self.check\n  end\nend\n",
            "app/app.rb": "def run\n  Shop::Pay.check\nend\ndef go\n  Pay.check\nend\n",
        }
    )

    assert found == {
        ("app/app.rb::run", "app/pay.rb::Shop.Pay.check", "type of the receiver"),
        ("app/app.rb::go", "app/other.rb::Pay.check", "type of the receiver"),
    }


def test_a_function_of_c_is_found_by_the_header_that_is_included(calls):
    found = calls(
        {
            "pay.h": "void check(void);\n",
            "pay.c": '#include "pay.h"\n#define LOOK check\nvoid check(void) {}\nvoid hidden(void) {}\n',
            "lib/other.c": "void check(void) {}\n",
            "all.h": '#include "pay.h"\n',
            "app.c": '#include "all.h"\nvoid run(void) { check(); hidden(); }\n',
        }
    )

    assert found == {("app.c::run", "pay.c::check", "imported name")}


def test_an_include_leads_to_the_file_beside_or_to_the_one_whose_path_ends_so(calls):
    found = calls(
        {
            "include/shop/pay.h": "inline void check() {}\n",
            "other/pay.h": "inline void check() {}\n",
            "src/app.cpp": "#include <shop/pay.h>\nvoid run() { check(); }\n",
            "src/none.cpp": "void none() { check(); }\n",
        }
    )

    assert found == {("src/app.cpp::run", "include/shop/pay.h::check", "imported name")}


def test_a_header_of_the_library_is_none_of_the_source(calls):
    found = calls(
        {
            "compat/string.h": "inline void copy() {}\n",
            "src/app.cpp": "#include <string.h>\nvoid run() { copy(); }\n",
        }
    )

    assert found == set()


def test_a_using_declaration_of_cpp_brings_one_name(calls):
    found = calls(
        {
            "shop.cpp": """
            namespace shop { void check() {} void close() {} }
            namespace till = shop;
            namespace app {
            using shop::check;
            void run() { check(); close(); }
            void go() { till::close(); }
            }
            """
        }
    )

    assert found == {("app.run", "shop.check", "imported name"), ("app.go", "shop.close", "same file")}


def test_names_of_php_are_those_of_its_namespace_or_imported(calls):
    found = calls(
        {
            "src/Pay.php": """
            <?php
            namespace Shop\\Pay;
            class Card { public function check() {} }
            function close() {}
            """,
            "src/Card.php": "<?php\nnamespace Bank;\nclass Card { public function check() {} }\n",
            "src/App.php": """
            <?php
            namespace Shop;
            use Shop\\Pay\\Card as Plastic;
            use function Shop\\Pay\\close;
            function run() { $card = new Plastic(); $card->check(); close(); }
            function full() { return new \\Bank\\Card(); }
            function inner() { Pay\\close(); }
            function none() { return new Card(); }
            """,
        }
    )

    assert found == {
        ("src/App.php::run", "src/Pay.php::Card", "same package"),
        ("src/App.php::run", "src/Pay.php::Card.check", "type of the receiver"),
        ("src/App.php::run", "src/Pay.php::close", "same package"),
        ("src/App.php::full", "src/Card.php::Card", "same package"),
        ("src/App.php::inner", "src/Pay.php::close", "same package"),
    }


def test_a_function_of_php_outside_of_all_namespaces_is_seen_in_them(calls):
    found = calls(
        {
            "helpers.php": "<?php\nfunction check() {}\n",
            "bank.php": "<?php\nnamespace Bank;\nfunction close() {}\n",
            "app.php": "<?php\nnamespace Shop;\nfunction run() { check(); close(); }\n",
        }
    )

    assert found == {("app.php::run", "helpers.php::check", "same package")}


def test_classes_of_java_are_those_of_the_package_or_imported(calls):
    found = calls(
        {
            "shop/Pay.java": "package shop;\nclass Pay { static void check() {} }\n",
            "bank/Pay.java": "package bank;\npublic class Pay { public static void check() {} }\n",
            "bank/Vault.java": "package bank;\npublic class Vault { public static void lock() {} }\n",
            "shop/App.java": """
            package shop;
            import bank.Vault;
            class App { void run() { Pay.check(); Vault.lock(); } }
            """,
            "app/Main.java": """
            package app;
            import bank.*;
            import static shop.Pay.check;
            class Main {
                void run() { Pay.check(); }
                void go() { check(); }
                void full() { shop.Pay.check(); }
            }
            """,
        }
    )

    assert found == {
        ("shop/App.java::App.run", "shop/Pay.java::Pay.check", "type of the receiver"),
        ("shop/App.java::App.run", "bank/Vault.java::Vault.lock", "type of the receiver"),
        ("app/Main.java::Main.run", "bank/Pay.java::Pay.check", "type of the receiver"),
        ("app/Main.java::Main.go", "shop/Pay.java::Pay.check", "imported name"),
        ("app/Main.java::Main.full", "shop/Pay.java::Pay.check", "type of the receiver"),
    }


def test_functions_of_kotlin_are_those_of_the_package_or_imported(calls):
    found = calls(
        {
            "Pay.kt": "package shop\nfun check() {}\nobject Till { fun open() {} }\n",
            "Bank.kt": "package bank\nfun check() {}\nfun lock() {}\nfun close() {}\n",
            "App.kt": """
            package shop
            import bank.lock as shut
            import bank.close
            fun run() { check(); shut(); close(); Till.open() }
            """,
            "Main.kt": "package main\nfun run() { check() }\n",
        }
    )

    assert found == {
        ("App.kt::run", "Pay.kt::check", "same package"),
        ("App.kt::run", "Bank.kt::lock", "imported name"),
        ("App.kt::run", "Bank.kt::close", "imported name"),
        ("App.kt::run", "Pay.kt::Till.open", "type of the receiver"),
    }


def test_java_calls_what_kotlin_defines_outside_of_classes_and_its_objects(calls):
    found = calls(
        {
            "shop/Money.kt": "package shop\nfun round() {}\nobject Till { fun open() {} }\n",
            "bank/Safe.kt": "package bank\nfun lock() {}\nfun shut() {}\n",
            "shop/Pay.java": "package shop;\nclass Pay { void run() { MoneyKt.round(); Till.INSTANCE.open(); } }\n",
            "app/App.java": """
            package app;
            import bank.SafeKt;
            import shop.Till;
            import static bank.SafeKt.shut;
            import kotlin.io.ConsoleKt;
            class App { void run() { SafeKt.lock(); shut(); Till.INSTANCE.open(); ConsoleKt.println(); } }
            """,
        }
    )

    assert {(caller, called) for caller, called, _ in found} == {
        ("shop/Pay.java::Pay.run", "shop/Money.kt::round"),
        ("shop/Pay.java::Pay.run", "shop/Money.kt::Till.open"),
        ("app/App.java::App.run", "bank/Safe.kt::lock"),
        ("app/App.java::App.run", "bank/Safe.kt::shut"),
        ("app/App.java::App.run", "shop/Money.kt::Till.open"),
    }


def test_classes_of_csharp_are_those_of_the_namespaces_around_or_used(calls):
    found = calls(
        {
            "Pay.cs": "namespace Shop;\npublic class Pay { public static void Check() {} }\n",
            "Bank.cs": "namespace Bank;\npublic class Vault { public static void Lock() {} }\n",
            "Hidden.cs": "namespace Other;\npublic class Safe { public static void Lock() {} }\n",
            "Global.cs": "global using World;\n",
            "World.cs": "namespace World;\npublic class Map { public static void Draw() {} }\n",
            "App.cs": """
            using Bank;
            using Box = Other.Safe;
            namespace Shop.Inner
            {
                class App
                {
                    void Run() { Pay.Check(); Vault.Lock(); Map.Draw(); Safe.Lock(); }
                    void Go() { Box.Lock(); Bank.Vault.Lock(); }
                }
            }
            """,
        }
    )

    assert found == {
        ("App.cs::Shop.Inner.App.Run", "Pay.cs::Pay.Check", "type of the receiver"),
        ("App.cs::Shop.Inner.App.Run", "Bank.cs::Vault.Lock", "type of the receiver"),
        ("App.cs::Shop.Inner.App.Run", "World.cs::Map.Draw", "type of the receiver"),
        ("App.cs::Shop.Inner.App.Go", "Hidden.cs::Safe.Lock", "type of the receiver"),
        ("App.cs::Shop.Inner.App.Go", "Bank.cs::Vault.Lock", "type of the receiver"),
    }


def test_a_macro_of_rust_is_the_nearest_of_its_name(calls):
    found = calls(
        {
            "a/src/lib.rs": "macro_rules! check { () => {} }\nmod app;\n",
            "a/src/app.rs": "fn run() { check!(); }\nfn check() {}\n",
            "b/src/lib.rs": "macro_rules! check { () => {} }\nfn run() { check!(); other!(); }\n",
        }
    )

    assert found == {
        ("a/src/app.rs::run", "a/src/lib.rs::check", "same package"),
        ("b/src/lib.rs::run", "b/src/lib.rs::check", "same file"),
    }


def test_what_stands_in_a_macro_of_rust_is_called(calls):
    found = calls(
        {
            "lib.rs": """
            struct Card;
            impl Card { fn pay(&self) -> u8 { 1 } }
            fn check() -> u8 { 1 }
            fn run(card: &Card) { println!("{} {}", check(), card.pay()); }
            """
        }
    )

    assert found == {("run", "check", "same file"), ("run", "Card.pay", "type of the receiver")}


def test_a_macro_of_c_is_called_where_it_is_included(calls):
    found = calls(
        {
            "pay.h": "#define CHECK(x) ((x) + 1)\n",
            "app.c": """
            #include "pay.h"
            #define LOOK check
            void check(void) {}
            void run(void) { CHECK(1); LOOK(); }
            """,
            "none.c": "void none(void) { CHECK(1); }\n",
        }
    )

    assert found == {("app.c::run", "pay.h::CHECK", "imported name"), ("app.c::run", "app.c::check", "same file")}
