"""JavaScript and TypeScript imports that need configuration: compiler aliases, packages, workspaces."""

import json

import pytest

from docindex_dagster.callgraph.languages.ecmascript_configs import read_configurations
from docindex_dagster.callgraph.modules import Modules
from tests.graph.samples import edges, opened


def project(paths=None, **values):
    """Return the text of a tsconfig.json with these paths."""
    return json.dumps({"compilerOptions": {"paths": paths or {}}, **values})


def references(*paths):
    """Return the text of a tsconfig.json that has no files of its own."""
    return json.dumps({"files": [], "references": [{"path": path} for path in paths]})


DATES = "export function day() {}\n"
PAGE = "import { day } from '@/dates';\nexport function show() { day(); }\n"


def reached(calls, files):
    """Return pairs of a caller and a function called in another file."""
    return {(caller, callee) for caller, callee, resolution in calls(files) if resolution == "imported name"}


@pytest.mark.parametrize(
    "config",
    [
        '{"compilerOptions": {"paths": {"@/*": ["./src/*"]}}, "include": ["**/*.ts", "**/*.tsx"]}',
        '\ufeff{\n  // aliases\n  "compilerOptions": {"paths": {"@/*": ["src/*"],}, /* none */},\n}\n',
        '{"compilerOptions": {"baseUrl": "src", "paths": {"@/*": ["*"]}, "outDir": "https://x/*"}}',
        '{"compilerOptions": {"paths": {"@/*": ["./generated/*", "./src/*"]}}}',
        '{"compilerOptions": {"paths": {"@/*": ["${configDir}/src/*"]}}}',
    ],
)
@pytest.mark.parametrize("name", ["tsconfig.json", "jsconfig.json"])
def test_an_alias_is_read_from_json_with_comments(calls, name, config):
    files = {name: config, "src/dates.ts": DATES, "src/page.ts": PAGE}

    assert reached(calls, files) == {("src/page.ts::show", "src/dates.ts::day")}


def test_an_alias_of_vite_stands_in_a_configuration_that_another_refers_to(calls):
    files = {
        "tsconfig.json": references("./tsconfig.app.json", "./config/web.json"),
        "tsconfig.app.json": '{"compilerOptions": {"baseUrl": ".", "paths": {"@/*": ["src/*"]}}, "include": ["src"]}',
        "config/web.json": '{"compilerOptions": {"paths": {"~/*": ["../web/*"]}}, "include": ["../web/**/*.ts"]}',
        "src/dates.ts": DATES,
        "src/page.ts": PAGE,
        "web/dates.ts": DATES,
        "web/page.ts": PAGE.replace("@/", "~/"),
    }

    assert reached(calls, files) == {
        ("src/page.ts::show", "src/dates.ts::day"),
        ("web/page.ts::show", "web/dates.ts::day"),
    }


def test_of_configurations_in_one_folder_the_one_counts_that_includes_the_file(calls):
    files = {
        "tsconfig.json": references("./tsconfig.app.json", "./tsconfig.e2e.json"),
        "tsconfig.app.json": project({"@/*": ["src/*"]}, include=["src/**/*"]),
        "tsconfig.e2e.json": project({"@/*": ["e2e/*"]}, include=["e2e/**/*"]),
        **{
            f"{folder}/{name}": text
            for folder in ("src", "e2e")
            for name, text in (("dates.ts", DATES), ("page.ts", PAGE))
        },
    }

    assert reached(calls, files) == {
        ("src/page.ts::show", "src/dates.ts::day"),
        ("e2e/page.ts::show", "e2e/dates.ts::day"),
    }


@pytest.mark.parametrize(
    ("extends", "files"),
    [
        ('"../../tsconfig.base.json"', {"tsconfig.base.json": "base"}),
        ('"../../tools/web"', {"tools/web.json": "base"}),
        ('["../../strict.json", "../../tools/web.json"]', {"strict.json": "{}", "tools/web.json": "base"}),
        (
            '"@acme/config/web.json"',
            {"tools/config/package.json": '{"name": "@acme/config"}', "tools/config/web.json": "base"},
        ),
        (
            '"../mid.json"',
            {"apps/mid.json": '{"extends": ["./mid.json", "../tools/web.json"]}', "tools/web.json": "base"},
        ),
    ],
)
def test_an_alias_may_stand_in_what_a_configuration_extends(calls, extends, files):
    depth = {"tsconfig.base.json": ".", "tools/web.json": "..", "tools/config/web.json": "../.."}
    files = {
        path: project({"@/*": [f"{depth[path]}/libs/*"]}) if text == "base" else text for path, text in files.items()
    }
    files |= {"apps/shop/tsconfig.json": f'{{"extends": {extends}}}', "libs/dates.ts": DATES, "apps/shop/page.ts": PAGE}

    assert reached(calls, files) == {("apps/shop/page.ts::show", "libs/dates.ts::day")}


def test_of_two_aliases_the_nearest_and_the_most_specific_counts(calls):
    files = {
        "tsconfig.json": project({"@/*": ["a/*"], "@/dates/*": ["b/*"], "@/dates": ["c/dates"]}),
        "near/tsconfig.json": project({"@/*": ["./*"]}),
        **dict.fromkeys(("a/dates.ts", "a/dates/day.ts", "b/day.ts", "c/dates.ts", "near/dates.ts"), DATES),
        "page.ts": PAGE,
        "near/page.ts": PAGE,
        "deep.ts": PAGE.replace("@/dates", "@/dates/day"),
    }

    assert reached(calls, files) == {
        ("page.ts::show", "c/dates.ts::day"),
        ("near/page.ts::show", "near/dates.ts::day"),
        ("deep.ts::show", "b/day.ts::day"),
    }


@pytest.mark.parametrize(
    ("package", "module", "path"),
    [
        ('{"name": "@acme/ui", "exports": {".": "./lib/start.ts"}}', "@acme/ui", "lib/start.ts"),
        (
            '{"name": "@acme/ui", "exports": {"./*": {"types": "./dist/*.d.ts", "import": "./dist/*.mjs"}}}',
            "@acme/ui/start",
            "src/start.ts",
        ),
        ('{"name": "ui", "exports": {"./parts/*": ["./none/*.ts", "./src/*.ts"]}}', "ui/parts/start", "src/start.ts"),
        ('{"name": "ui", "main": "dist/esm/start.js"}', "ui", "src/start.ts"),
        ('{"name": "ui", "types": "./source/start.d.ts"}', "ui", "source/start.ts"),
        ('{"name": "ui"}', "ui/start", "start.ts"),
    ],
)
def test_a_package_of_a_workspace_says_which_files_it_exports(calls, package, module, path):
    files = {
        "packages/ui/package.json": package,
        f"packages/ui/{path}": DATES,
        "apps/shop/page.ts": PAGE.replace("@/dates", module),
    }

    assert reached(calls, files) == {("apps/shop/page.ts::show", f"packages/ui/{path}::day")}


def test_of_packages_with_one_name_the_nearest_is_meant(calls):
    files = {
        **{f"examples/{one}/packages/ui/package.json": '{"name": "ui"}' for one in "ab"},
        **{f"examples/{one}/packages/ui/index.ts": DATES for one in "ab"},
        **{f"examples/{one}/app/page.ts": PAGE.replace("@/dates", "ui") for one in "ab"},
    }

    assert reached(calls, files) == {
        (f"examples/{one}/app/page.ts::show", f"examples/{one}/packages/ui/index.ts::day") for one in "ab"
    }


def test_a_workspace_may_give_a_package_another_name(calls):
    files = {
        "packages/ui/package.json": '{"name": "@acme/ui"}',
        "packages/ui/index.ts": DATES,
        "app/package.json": '{"dependencies": {"ui": "workspace:@acme/ui@*"}, "imports": {"#ui": "@acme/ui"}}',
        "app/page.ts": PAGE.replace("@/dates", "ui"),
        "app/other.ts": PAGE.replace("@/dates", "#ui"),
    }

    assert reached(calls, files) == {
        ("app/page.ts::show", "packages/ui/index.ts::day"),
        ("app/other.ts::show", "packages/ui/index.ts::day"),
    }


@pytest.mark.parametrize(
    "files",
    [
        {"tsconfig.json": '{"extends": "./tsconfig.json"}'},
        {"tsconfig.json": '{"extends": ["./a.json", "./a.json"]}', "a.json": '{"extends": "./tsconfig.json"}'},
        {"tsconfig.json": '{"references": [{"path": "."}, {"path": 3}, 4], "compilerOptions": []}'},
        {"tsconfig.json": project({"@/*": [1, None, ""], "@": "src"}, include=2, extends={"a": 1})},
        {"tsconfig.json": '{"extends": "../../etc/passwd.json"}', "package.json": '{"exports": [{"a": [[]]}]}'},
        {"tsconfig.json": "[" * 100_000, "package.json": '{"exports": {"": null, "./*": {"import": 4}}}'},
    ],
)
def test_a_configuration_that_says_nothing_sensible_costs_no_other_import(files):
    found = opened({**files, "dates.ts": DATES, "page.ts": "import { day } from './dates';\nday();\n"})

    assert ("page.ts", "imports", "dates.ts") in edges(found, "imports")


@pytest.mark.parametrize("count", [20_000])
def test_a_string_that_never_ends_takes_no_more_steps_than_it_has_characters(count):
    for text in ('"' + '\\"' * count, "/*" * count, '{"a": ' + "," * count, "[" * count):
        modules = Modules(frozenset({"tsconfig.json"}), {"tsconfig.json": text}.__getitem__)
        assert not read_configurations(modules).aliases
        assert modules.unreadable.keys() == {"tsconfig.json"}
