"""The output of one command is valid input for the next."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from docindex_dagster.core.settings import load_settings
from docindex_dagster.search.live_index import Live
from docindex_dagster.serving.tools import Tools
from tests.cli.conftest import index_in

CART = '''\
class Cart:
    """Holds apples."""

    def add(self, item, count=1):
        """Add an apple."""
        return self.check(item)

    def check(self, item):
        return bool(item)


def checkout():
    cart = Cart()
    cart.add("apple", 2)
    return send_order(cart)
'''
ORDER = """\
export class Order {
  send(amount) {
    return total(amount);
  }
}

function total(amount) {
  return amount;
}
"""
GUIDE = "# Apples\n\n## Checkout\n\nCall `Cart.add` of `src/shop/cart.py` to add an apple.\n"


def write(folder: Path) -> None:
    files = {
        "shop/src/shop/cart.py": CART,
        "shop/src/order.js": ORDER,
        "shop/docs/apples.md": GUIDE,
        "shop/.github/deploy.yml": "name: deploy the hidden apples\n",
        "shop/github/deploy.yml": "name: deploy the plain apples\n",
        "shop/.hidden.md": "# Hidden\n\nMarmots are hidden here.\n",
        "manual/cart.py": "def push():\n    return 'a cart of the manual'\n",
        "other/cart.py": "def push():\n    return 'a cart of the other'\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    for command in ("init -q", "add .", "-c user.name=Ada -c user.email=a@example.com commit -qm Apples"):
        subprocess.run(["git", *command.split()], cwd=folder / "shop", check=True)


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory):
    return index_in(tmp_path_factory.mktemp("shop"), "shop", "other", write=write)


@pytest.fixture
def shop(run_indexed):
    return run_indexed


PRINTED = {
    "search": (["search", "add an apple"], r"^ *\d+ (\S+:\d+)  "),
    "search of a source": (["search", "add an apple", "--source", "shop"], r"^ *\d+ (\S+:\d+)  "),
    "literal": (["search", "-m", "literal", "apple"], r"^(\S+?:\d+:\d+:)"),
    "literal, files": (["search", "-m", "literal", "apple", "--files"], r"^(\S+)$"),
    "similar": (["similar", "shop/src/shop/cart.py:4"], r"^ *\d+ (\S+:\d+)  "),
    "show": (["show", "shop/src/shop/cart.py"], r"^(\S+:\d+)  \d+-\d+"),
    "show, the id": (["show", "shop/src/shop/cart.py"], r"chunk \d+ of \d+, (\w{32})"),
    "context": (["search", "add an apple", "--context", "900"], r"^## (\S+ \S+:\d+-\d+)$"),
    "ask": (["ask", "how do I add an apple", "--no-llm"], r"^ *\d+ ✓ (\S+:\d+-\d+)  "),
    "graph, the place": (["graph", "neighbors", "Cart.add"], r"^(\S+:\d+)  "),
    "graph, a subject": (["graph", "neighbors", "src/shop/cart.py"], r"^\S+:\d+  (\S+\.(?:md|py)\S*(?: > \w+)?) [a-z]"),
    "graph, an object": (["graph", "neighbors", "Cart.add"], r" [a-z_]+ (\S+\.py(?:::\S+)?)  "),
    "graph, nodes in JSON": (["graph", "neighbors", "Cart.add", "--json"], r'"(?:subject|object)": "(.+)"'),
    "why": (["why", "shop/src/shop/cart.py"], r"^(\S+: \S+) will be indexed"),
    "log": (["log"], r"^(\w{10}) "),
    "show of a commit": (["show", "HEAD"], r"^(\S+  commit \w{40})$"),
}  # fmt: skip


def printed(shop, name):
    command, pattern = PRINTED[name]
    if "HEAD" in command:
        command = ["show", shop("log").out.split()[0]]
    out = shop(*command).out
    found = [place for place in re.findall(pattern, out, re.MULTILINE) if "external:" not in place]
    assert found, out
    return found


@pytest.mark.parametrize("name", PRINTED)
def test_what_a_command_prints_is_accepted_by_the_next(shop, name):
    for place in printed(shop, name):
        assert (place, shop("show", place).err) == (place, "")
        assert (place, shop("similar", place, "-k", "1").code) == (place, 0)
        if name not in {"log", "show of a commit"}:
            assert (place, shop("graph", "neighbors", place).err) == (place, "")
            assert (place, " will be indexed" in shop("why", place).out) == (place, True)


@pytest.mark.parametrize(
    ("tool", "arguments", "pattern"),
    [
        ("search", {"query": "add an apple"}, r"^\d+\. (\S+ \S+:\d+) "),
        ("search", {"query": "add an apple"}, r"^   file: (.+)$"),
        ("search", {"query": "apple", "mode": "literal"}, r"^(\S+ \S+)$"),
        ("find_similar", {"place": "shop/src/shop/cart.py#L4"}, r"^\d+\. (\S+ \S+:\d+) "),
        ("context", {"query": "add an apple"}, r"^## (\S+ \S+:\d+-\d+)$"),
        ("show", {"reference": "Cart"}, r"^(\S+ \S+:\d+-\d+) \("),
        ("graph", {"question": "neighbors", "symbol": "Cart.add"}, r"^(\S.*?) -\S+-> .*$"),
        ("graph", {"question": "neighbors", "symbol": "Cart.add"}, r"^\S.* -\S+-> (.+) \(.*$"),
        ("graph", {"question": "callers", "symbol": "Cart.add"}, r"\((\S+:\d+);"),
        ("why", {"path": "shop/src/shop/cart.py"}, r"^(\S+: \S+) will be indexed"),
        ("log", {}, r"^(\S+ \w{10}) "),
    ],
)
def test_what_a_tool_answers_is_accepted_by_the_next(shop, tool, arguments, pattern):
    tools = Tools(Live(load_settings(Path.cwd())), lambda _: {})
    answer = getattr(tools, tool)(**arguments)
    found = re.findall(pattern, answer, re.MULTILINE)
    assert found, answer
    for place in found:
        assert tools.show(reference=place)
        assert tools.find_similar(place=place)
        if tool != "log":
            assert tools.graph("neighbors", symbol=place)
            assert " will be indexed" in tools.why(path=place)


@pytest.mark.parametrize(
    "written",
    [
        *("Cart.add", "Cart.add()", "Cart::add", "Cart#add", "cart.add(x, y)", "Cart->add", "git/shop Cart.add"),
        *("shop/src/shop/cart.py:5", "shop/src/shop/cart.py:4-6", "shop/src/shop/cart.py#L5"),
        "shop src/shop/cart.py:6:9",
        *("git/shop!src/shop/cart.py::Cart.add", "src/shop/cart.py::Cart.add", "./shop/../shop/src/shop/cart.py:4"),
        r"shop\src\shop\cart.py:5",
    ],
)  # fmt: skip
def test_a_method_has_many_names(shop, written):
    assert shop("graph", "callers", written).out.startswith("shop/src/shop/cart.py:14  checkout calls Cart.add  ")
    assert "Add an apple." in shop("show", written).out


def test_the_words_of_a_reference_need_no_quotes(shop):
    assert "Add an apple." in shop("show", "git/shop", "src/shop/cart.py:4").out
    assert "checkout calls" in shop("graph", "callers", "git/shop", "src/shop/cart.py:4").out


def test_a_path_on_disk_shows_the_file_of_its_source_alone(shop, monkeypatch):
    assert "of the other" not in shop("show", "manual/cart.py").out
    assert "of the manual" not in shop("show", "other/cart.py").out
    monkeypatch.setenv("DOCINDEX_ROOT", str(Path.cwd()))
    monkeypatch.chdir("other")
    assert "of the manual" not in shop("show", "cart.py").out
    assert "of the manual" not in shop("show", "./cart.py:1").out


def test_lines_that_span_chunks_show_all_of_them(shop):
    chunks = json.loads(shop("show", "shop/docs/apples.md:1-5", "--json").out)
    assert chunks == json.loads(shop("show", "shop/docs/apples.md", "--json").out)


@pytest.mark.parametrize(
    ("path", "found"),
    [("shop/.github", "hidden"), (".github", "hidden"), ("shop/github", "plain"), ("github", "plain")],
)
def test_a_leading_dot_is_part_of_a_path(shop, path, found):
    (hit,) = json.loads(shop("search", "deploy", "--path", path, "--json").out)
    assert f"deploy the {found} apples" in hit["text"]


@pytest.mark.parametrize("here", [".", "shop", "shop/docs"])
def test_a_hidden_file_is_found_from_any_folder(shop, monkeypatch, here):
    hidden = os_relative(Path("shop/.hidden.md"), Path(here))
    monkeypatch.setenv("DOCINDEX_ROOT", str(Path.cwd()))
    monkeypatch.chdir(here)
    assert "Marmots are hidden here." in shop("show", hidden).out
    assert "will be indexed" in shop("why", hidden).out
    assert "Marmots are hidden here." in shop("search", "marmots", "--path", hidden).out
    assert "Marmots are hidden here." in shop("search", "marmots", f"./{hidden}").out
    assert shop("index", hidden).code == 0


def os_relative(file: Path, folder: Path) -> str:
    return str(file.relative_to(folder) if file.is_relative_to(folder) else Path("..", file.relative_to("shop")))


def test_an_absent_symbol_or_line_is_an_error(shop):
    assert "no indexed chunk is named 'Cart.remove'" in shop("show", "Cart.remove").err
    assert "'Cart.remove()' not found in the graph" in shop("graph", "callers", "Cart.remove()").err
    assert "the last indexed line is 15" in shop("show", "shop/src/shop/cart.py#L99").err


def test_a_source_behind_a_link_is_known_by_its_real_path(run, tmp_path):
    shutil.rmtree("manual")
    real = tmp_path / "real" / "handbook"
    real.mkdir(parents=True)
    (real / "pump.md").write_text("# Pump\n\nPrime the pump.\n")
    Path("link").symlink_to("real")
    assert run("index", "link/handbook").code == 0

    for path in ("link/handbook/pump.md", "real/handbook/pump.md", str(real / "pump.md"), f"{real}/pump.md:3"):
        assert "will be indexed" in run("why", path).out
        assert "Prime the pump." in run("show", path).out
        assert "Prime the pump." in run("search", "pump", "--path", path.removesuffix(":3")).out
    searched = run("search", "pump", "real/handbook")
    assert "Prime the pump." in searched.out
    assert "indexing" not in searched.err
