"""Import configurations: an unreadable one is reported, and a changed one is read again."""

import json

import pytest

from docindex_dagster.graph.build import without_code
from docindex_dagster.graph.failures import sentence_unreadable
from docindex_dagster.status import catalog
from tests.conftest import publish_rows, vectors_of
from tests.graph.built import build_graph, update_graph
from tests.graph.samples import chunks_of

CODE = {"src/dates.ts": "export function day() {}\n", "src/page.ts": "import { day } from '@/dates';\nday();\n"}
CONFIG = json.dumps({"compilerOptions": {"paths": {"@/*": ["./src/*"]}}})


def imports(graph):
    rows = graph.triples.to_pylist()
    return {(row["subject"], row["object"]) for row in rows if row["predicate"] == "imports"}


@pytest.mark.parametrize(
    ("path", "text", "reason"),
    [
        ("tsconfig.json", '{"compilerOptions": {', "Expecting property name enclosed in double quotes"),
        ("apps/web/tsconfig.app.json", "[]", "expected an object"),
        (
            "jsconfig.json",
            '{"extends": "./.nuxt/tsconfig.json"}',
            "extends ./.nuxt/tsconfig.json, which is not in the",
        ),
        ("package.json", '{"name": "a"', "Expecting ',' delimiter"),
        ("Cargo.toml", "[package\n", "Expected ']' at the end of a table declaration"),
        ("go.mod", "go 1.22\n", "no module directive found"),
    ],
)
def test_a_configuration_that_cannot_be_read_is_reported_wherever_the_index_is(layout, path, text, reason):
    chunks = chunks_of({**CODE, path: text})
    graph = build_graph(chunks)

    assert [*graph.unreadable] == [path]
    assert reason in graph.unreadable[path]
    assert graph.problems == {}
    assert graph.is_settled
    publication = publish_rows(layout, "library/sample", chunks, vectors_of(chunks))
    assert publication.graph_problem == sentence_unreadable(graph.unreadable)
    (entry,) = catalog.entries(layout)
    assert catalog.index_limitations(entry) == ["1 configuration file cannot be read, so imports may be unresolved"]
    assert not catalog.is_degraded(entry)


def test_a_file_that_is_extended_is_a_configuration_whatever_its_name():
    chunks = chunks_of({**CODE, "tsconfig.json": '{"extends": "./tools/web"}', "tools/web.json": "{"})

    assert build_graph(chunks).unreadable.keys() == {"tools/web.json"}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({}, {"tsconfig.json": CONFIG}),
        ({"tsconfig.json": CONFIG}, {}),
        ({"tsconfig.json": "{"}, {"tsconfig.json": CONFIG}),
        (
            {"tsconfig.json": '{"extends": "./web.json"}'},
            {"tsconfig.json": '{"extends": "./web.json"}', "web.json": CONFIG},
        ),
        (
            {"tsconfig.json": '{"extends": "./web.json"}', "web.json": CONFIG},
            {"tsconfig.json": '{"extends": "./web.json"}'},
        ),
        (
            {"tsconfig.json": '{"extends": "./web.json"}', "web.json": "{}"},
            {"tsconfig.json": '{"extends": "./web.json"}', "web.json": CONFIG},
        ),
    ],
)
def test_after_an_edit_of_a_configuration_the_graph_is_that_of_a_build_from_nothing(before, after):
    graph, chunks = build_graph(chunks_of({**CODE, **before})), chunks_of({**CODE, **after})

    updated, anew = update_graph(graph, chunks), build_graph(chunks)

    assert updated.triples.to_pylist() == anew.triples.to_pylist()
    assert updated.nodes.to_pylist() == anew.nodes.to_pylist()


def test_a_file_that_appears_under_a_name_that_only_an_alias_knows_is_imported():
    config = json.dumps({"compilerOptions": {"paths": {"@dates": ["./src/calendar.ts"]}}})
    page = {"tsconfig.json": config, "src/page.ts": "import { day } from '@dates';\nday();\n"}

    graph = update_graph(build_graph(chunks_of(page)), chunks_of({**page, "src/calendar.ts": CODE["src/dates.ts"]}))

    assert ("src/page.ts", "src/calendar.ts::day") in imports(graph)


def test_a_file_that_cannot_be_read_as_a_configuration_costs_no_other_file_its_graph(monkeypatch):
    from docindex_dagster.graph import build

    files = {**CODE, "tsconfig.json": "{"}
    graph = build_graph(chunks_of(files))
    monkeypatch.setattr(build, "build_graph", None)

    edited = update_graph(graph, chunks_of({**files, "src/dates.ts": "export function day() {}\nday();\n"}))

    assert edited.unreadable == graph.unreadable


def test_what_another_process_is_sent_has_the_configurations_that_others_extend():
    chunks = chunks_of({**CODE, "tsconfig.json": '{"extends": "./web.json"}', "web.json": CONFIG, "data.json": "[1]"})

    kept = {row["path"] for row in without_code(chunks).to_pylist() if row["text"]}

    assert kept == {"tsconfig.json", "web.json"}


@pytest.mark.parametrize(
    "files",
    [
        {
            "src/page.tsx": 'import { Menu } from "@/menu";\n',
            "src/menu.tsx": 'import * as Primitive from "menus";\nexport const Menu = Primitive.Root;\n',
            "tsconfig.json": CONFIG,
        },
        {"shop/cart.py": "from shop.compat import json\n", "shop/compat.py": "import json\n"},
        {"page.js": "import { auth } from './lib/auth';\n", "lib/auth.js": "export { auth } from 'outside';\n"},
    ],
    ids=["an alias", "Python", "a relative path"],
)
def test_an_import_of_what_a_file_has_from_elsewhere_leads_to_the_file(files):
    user, offering, *_ = files
    found = imports(build_graph(chunks_of(files)))

    assert [target for path, target in found if path == user] == [offering]
