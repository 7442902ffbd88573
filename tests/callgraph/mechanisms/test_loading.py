"""JavaScript and TypeScript modules that an expression loads."""

import pytest

PAGE = "export function part() {}\nexport default function Page() {}\n"


@pytest.mark.parametrize(
    "written",
    [
        "import './page';",
        "async function run() { await import('./page'); }",
        'import(/* webpackChunkName: "page" */ `./page`);',
        "const Lazy = React.lazy(() => import('./page'));",
        "const routes = [{ path: '/', component: () => import('./page') }];",
        "const Page = dynamic(async () => (await import('./page')).Page, { ssr: false });",
        "vi.mock('./page');",
        "vi.mock('./page', async () => ({ ...(await vi.importActual('./page')) }));",
        "jest.mock('./page', () => ({ part: jest.fn() }), { virtual: true });",
        "const { part } = jest.requireActual('./page');",
        "const path = require.resolve('./page');",
        "app.use(require('./page'));",
        "const worker = new Worker(new URL('./page', import.meta.url));",
    ],
)
@pytest.mark.parametrize("ending", ["ts", "js", "tsx"])
def test_a_file_imports_what_it_loads(imports, ending, written):
    found = imports({f"use.{ending}": written, f"page.{ending}": PAGE})

    assert {(importer, loaded) for importer, loaded, _ in found} == {(f"use.{ending}", f"page.{ending}")}


@pytest.mark.parametrize("written", ["import(name);", "import(`./${name}`);", "mock('./page');", "api.mock('./page');"])
def test_a_name_that_is_computed_or_given_to_another_function_is_no_import(imports, written):
    assert imports({"use.ts": written, "page.ts": PAGE}) == set()


@pytest.mark.parametrize(
    "written",
    [
        "async function run() { const page = await import('./page'); page.part(); }",
        "async function run() { const { part } = await import('./page'); part(); }",
        "function run() { return import('./page').then(({ part }) => part()); }",
        "function run() { import('./page').then(page => { page.part(); }); }",
        "function run() { import('./page').then(function (page) { page.part(); }); }",
    ],
)
def test_a_function_of_a_module_that_was_loaded_is_called(calls, written):
    found = calls({"use.ts": written, "page.ts": PAGE})

    assert {(caller, callee) for caller, callee, _ in found} == {("use.ts::run", "page.ts::part")}


@pytest.mark.parametrize(
    "loader",
    [
        "React.lazy(() => import('./page'))",
        "defineAsyncComponent({ loader: () => import('./page') })",
        "dynamic(() => import('./page').then((page) => page.default))",
        "lazy(() => import('./page').then(page => ({ default: page.Page })))",
    ],
)
def test_a_component_that_is_loaded_later_is_what_its_module_exports(calls, loader):
    files = {"use.ts": f"const Later = {loader};\nfunction run() {{ return Later(); }}\n", "page.ts": PAGE}
    files["page.ts"] = "export function Page() {}\nexport default Page;\n"

    assert {(caller, callee) for caller, callee, _ in calls(files)} == {("use.ts::run", "page.ts::Page")}


@pytest.mark.parametrize("ending", ["tsx", "jsx", "js"])
@pytest.mark.parametrize(
    ("head", "used"),
    [
        ("import Page from './page';", "<Page />"),
        ("import { Page as View } from './page';", "<main><View wide>text</View></main>"),
        ("import * as pages from './page';", "<><pages.Page /></>"),
        ("const Later = React.lazy(() => import('./page'));", "<Suspense><Later /></Suspense>"),
    ],
)
def test_a_component_is_called_where_markup_uses_it(calls, ending, head, used):
    files = {
        f"use.{ending}": f"{head}\nexport function App() {{ return {used}; }}\n",
        f"page.{ending}": "export function Page() { return <main />; }\nexport default Page;\n",
    }

    assert {(caller, callee) for caller, callee, _ in calls(files)} == {(f"use.{ending}::App", f"page.{ending}::Page")}


def test_a_module_without_a_name_gives_none_to_the_file(calls):
    files = {"chart.js": "exports.draw = function () {};\n", "use.js": "import 'chart.js';\nchart.draw();\n"}

    assert calls(files) == set()


@pytest.mark.parametrize(
    "head",
    [
        "define(['./money', './till', 'jquery'], function (money, Till) {",
        "define('app', ['./money', './till'], (money, Till) => {",
        "require(['./money', './till'], function (money, Till) {",
        "define(function (require) { const money = require('./money'), Till = require('./till');",
    ],
)
@pytest.mark.parametrize(
    "money",
    [
        "define([], function () { function round() {} return { round: round }; });",
        "define(() => { return { round() {} }; });",
        "define({ round: function () {} });",
        "define(['exports'], function (exports) { exports.round = function () {}; });",
    ],
)
def test_modules_of_amd_are_given_what_they_depend_on(calls, head, money):
    found = calls(
        {
            "money.js": money,
            "till.js": "define(function () { class Till { open() {} } return Till; });",
            "app.js": head + " function run() { money.round(); new Till().open(); } return { run }; });",
        }
    )

    assert {(caller, called.partition("::")[0]) for caller, called, _ in found if "run" in caller} == {
        ("app.js::run", "money.js"),
        ("app.js::run", "till.js"),
    }
