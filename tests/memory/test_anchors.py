"""Anchors from messages to indexed code and their changes: real repositories and folders, indexed as users do."""

import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.safe_text import well_formed
from docindex_dagster.core.settings import load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.memory.anchors import MOST, Anchored, anchors_of, check_anchors, inspect_anchors, mentions_in
from docindex_dagster.memory.message import Anchor
from docindex_dagster.runner.run import index
from docindex_dagster.search.live_index import Live
from docindex_dagster.sources import registry
from docindex_dagster.stores.reader import Reader, open_reader
from tests.incremental.work_trees import Repository

CONFIG = """
[graph]
enabled = true

[[source]]
kind = "git"
name = "plant"
path = "plant"

[[source]]
kind = "library"
path = "manuals"
"""
PUMP = '''"""Pumps."""


class PumpStation:
    """Several pumps."""

    def open_valve(self, litres: int) -> int:
        return litres * 2

    def close(self) -> None:
        self.open_valve(0)


def fill_tank(litres: int) -> int:
    return PumpStation().open_valve(litres)


def drain():
    return fill_tank(0)
'''
RELAY = """class RelayBoard:
    def close(self):
        return 1

    def trip(self):
        return 2


def main():
    return RelayBoard().close()
"""
CODE = {
    "plant/water/pump.py": PUMP,
    "plant/power/relay.py": RELAY,
    "plant/power/__init__.py": "import os\n",
    "plant/water/__init__.py": "import sys\n",
    "plant/setup.py": "def main():\n    return 'set up'\n",
    "plant/tests/test_pump.py": "def test_flow():\n    assert 1\n\n\ndef fill_tank():\n    return 0\n",
    "plant/tests/test_relay.py": "def test_flow():\n    assert 2\n",
    "plant/web/app.js": "export function renderGauge(value) {\n  return `${value} bar`;\n}\n",
    "manuals/Pump Guide.md": "# Pumps\n\nHow to prime one.\n",
    "manuals/setup.md": "# Setting up\n\nFirst, read this.\n",
}


def anchors_in(reader: Reader, text: str) -> tuple[Anchor, ...]:
    """Return the anchors of messages with this text."""
    return anchors_of(reader, mentions_in(well_formed(text)))


@dataclass
class Plant:
    """A project with a repository and a folder."""

    root: Path

    @classmethod
    def create(cls, root: Path) -> "Plant":
        plant = cls(root)
        Repository.create(root / "plant")
        for path, text in CODE.items():
            plant.write(path, text)
        (root / "docindex.toml").write_text(CONFIG)
        plant.index()
        return plant

    def write(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def edit(self, path: str, old: str, new: str) -> None:
        text = (self.root / path).read_text()
        assert old in text
        self.write(path, text.replace(old, new))

    def move(self, path: str, to: str) -> None:
        (self.root / to).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).rename(self.root / to)

    def index(self) -> None:
        Repository(self.root / "plant").commit()
        settings = load_settings(self.root)
        for source in registry.sources(settings).values():
            index(settings, source, StaticEmbedder())

    @property
    def reader(self) -> Reader:
        return open_reader(Layout(load_settings(self.root).home))

    def anchor(self, text: str) -> Anchor:
        (anchor,) = anchors_in(self.reader, text)
        return anchor

    def look(self, anchor: Anchor, *, impact: bool = False) -> Anchored:
        (found,) = inspect_anchors(load_settings(self.root), self.reader, [anchor], impact=impact)
        return found


@pytest.fixture(scope="module")
def untouched(tmp_path_factory) -> Plant:
    return Plant.create(tmp_path_factory.mktemp("plant") / "project")


@pytest.fixture
def plant(untouched: Plant, tmp_path: Path) -> Plant:
    """A modifiable copy of the indexed project."""
    shutil.copytree(untouched.root, tmp_path / "project", symlinks=True)
    return Plant(tmp_path / "project")


def named(plant: Plant, text: str) -> list[tuple[str, str | None]]:
    return [(anchor.path, anchor.name) for anchor in anchors_in(plant.reader, text)]


PUMP_FILE, RELAY_FILE = "water/pump.py", "power/relay.py"


@pytest.mark.parametrize(
    ("text", "path", "name"),
    [
        ("I edited water/pump.py.", PUMP_FILE, None),
        ("see `pump.py`, please", PUMP_FILE, None),
        ("./water/pump.py:12: error", PUMP_FILE, None),
        (r"C:\work\plant\water\pump.py", PUMP_FILE, None),
        ('File "/home/ada/plant/water/pump.py", line 7', PUMP_FILE, None),
        ("/home/ada/plant/setup.py", "setup.py", None),
        ("read `Pump Guide.md` first", "Pump Guide.md", None),
        ("PumpStation is slow", PUMP_FILE, "PumpStation"),
        ("the open_valve method", PUMP_FILE, "PumpStation.open_valve"),
        ("PumpStation.close fails", PUMP_FILE, "PumpStation.close"),
        ("PumpStation#close fails", PUMP_FILE, "PumpStation.close"),
        ("PumpStation::close fails", PUMP_FILE, "PumpStation.close"),
        ("self.open_valve(3)", PUMP_FILE, "PumpStation.open_valve"),
        ("call drain() again", PUMP_FILE, "drain"),
        ("call trip() again", RELAY_FILE, "RelayBoard.trip"),
        ("call `drain` again", PUMP_FILE, "drain"),
        ("call `drain(now=True)` again", PUMP_FILE, "drain"),
        ("water.pump.drain", PUMP_FILE, "drain"),
        ("fill_tank, which a test has as well", PUMP_FILE, "fill_tank"),
        ("renderGauge draws it", "web/app.js", "renderGauge"),
    ],
)
def test_a_text_names_code_as_people_and_programs_write_it(untouched, text, path, name):
    assert named(untouched, text) == [(path, name)]


@pytest.mark.parametrize(
    "text",
    [
        "we drain the tank and close the main valve",  # words that happen to be names
        "`trip`",  # a plain word whose symbol is in a class
        "`close`",  # two symbols match, each in a class
        "close()",
        "main()",  # two files define it
        "__init__.py",
        "test_flow",
        "valve_opened",  # no such symbol
        "water/pipe.py and/or power/relay.rb",
        "/usr/lib/python3/setup.py",  # belongs to another project
        "https://example.com/water/pump.py",
        "numpy.drain",
        "",
    ],
)
def test_what_is_ambiguous_elsewhere_or_prose_is_no_anchor(untouched, text):
    assert named(untouched, text) == []


def test_a_file_that_the_text_names_settles_which_definition_is_meant(untouched):
    assert named(untouched, "`close` in power/relay.py") == [(RELAY_FILE, "RelayBoard.close"), (RELAY_FILE, None)]
    assert named(untouched, "main() of setup.py") == [("setup.py", "main"), ("setup.py", None)]


def test_a_list_of_failed_tests_names_each_in_its_file(untouched):
    text = "FAILED tests/test_pump.py::test_flow - assert 1\nFAILED tests/test_relay.py::test_flow"

    assert named(untouched, text) == [
        ("tests/test_pump.py", None),
        ("tests/test_pump.py", "test_flow"),
        ("tests/test_relay.py", None),
        ("tests/test_relay.py", "test_flow"),
    ]


def test_anchors_come_in_the_order_of_the_text_each_once_and_not_too_many(untouched):
    text = "drain() of PumpStation, drain(), renderGauge"
    assert [name for _, name in named(untouched, text)] == ["drain", "PumpStation", "renderGauge"]

    everything = " ".join(f"{path.partition('/')[2]}" for path in CODE) + " drain() PumpStation open_valve renderGauge"
    assert len(named(untouched, everything)) == MOST


def test_untouched_code_is_fresh_and_its_lines_are_known(plant):
    found = plant.look(plant.anchor("open_valve"))

    assert (found.state, found.path, found.start_line, found.end_line) == ("fresh", PUMP_FILE, 7, 8)
    assert found.edited is False
    assert plant.look(plant.anchor("water/pump.py")).state == "fresh"


MORE_ABOVE = ('"""Pumps."""', '"""Pumps.\n\nAnd more.\n"""')
OTHER_LINES = ("litres * 2", "litres * 3")
STATES = [
    ("PumpStation.open_valve", OTHER_LINES, "changed"),
    ("PumpStation", OTHER_LINES, "changed"),  # the change is in one of its methods
    ("PumpStation.open_valve", MORE_ABOVE, "fresh"),
    ("water/pump.py", MORE_ABOVE, "changed"),
    ("drain()", ("def drain():\n    return fill_tank(0)\n", ""), "gone"),
    ("drain()", ("drain", "empty_tank"), "gone"),
]


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed anew", "on the disk alone"])
@pytest.mark.parametrize(("text", "edit", "state"), STATES)
def test_an_edit_is_noticed_by_what_it_touches(plant, text, edit, state, indexed):
    anchor = plant.anchor(text)
    plant.edit("plant/water/pump.py", *edit)
    if indexed:
        plant.index()

    found = plant.look(anchor)
    assert found.state == state
    assert found.edited is (None if indexed and state == "gone" else not indexed)


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed anew", "on the disk alone"])
def test_a_fresh_symbol_has_the_lines_where_it_is_now(plant, indexed):
    anchor = plant.anchor("PumpStation.open_valve")
    plant.edit("plant/water/pump.py", *MORE_ABOVE)
    if indexed:
        plant.index()

    assert (plant.look(anchor).start_line, plant.look(anchor).end_line) == (10, 11)


@pytest.mark.parametrize("indexed", [True, False], ids=["indexed anew", "on the disk alone"])
@pytest.mark.parametrize("text", ["drain()", "water/pump.py"])
def test_with_its_file_it_is_gone(plant, text, indexed):
    anchor = plant.anchor(text)
    (plant.root / "plant/water/pump.py").unlink()
    if indexed:
        plant.index()

    assert plant.look(anchor).state == "gone"


def test_a_decorator_belongs_to_a_symbol_as_soon_as_it_is_indexed(plant):
    anchor = plant.anchor("drain()")
    plant.edit("plant/water/pump.py", "def drain", "@cache\ndef drain")
    plant.index()

    assert plant.look(anchor).state == "changed"


def test_a_moved_file_and_what_it_defines_are_found_where_they_are(plant):
    file, symbol = plant.anchor("water/pump.py"), plant.anchor("PumpStation.open_valve")
    plant.move("plant/water/pump.py", "plant/hydraulics/station.py")
    plant.index()

    assert (plant.look(file).state, plant.look(file).path) == ("moved", "hydraulics/station.py")
    assert (plant.look(symbol).state, plant.look(symbol).path) == ("moved", "hydraulics/station.py")


def test_a_symbol_may_move_into_another_class_with_its_text(plant):
    method = plant.anchor("PumpStation.open_valve")
    lines = "    def open_valve(self, litres: int) -> int:\n        return litres * 2\n"
    plant.edit("plant/water/pump.py", lines, "")
    plant.write("plant/power/relay.py", RELAY.replace("class RelayBoard:\n", f"class RelayBoard:\n{lines}\n"))
    plant.index()

    found = plant.look(method)
    assert (found.state, found.path, found.name) == ("moved", RELAY_FILE, "RelayBoard.open_valve")


def test_its_indentation_is_no_part_of_a_symbol(plant):
    function = plant.anchor("drain()")
    plant.edit("plant/water/pump.py", "def drain():\n    return fill_tank(0)\n", "")
    plant.edit("plant/power/relay.py", "    def trip", "    def drain():\n        return fill_tank(0)\n\n    def trip")
    plant.index()

    assert (plant.look(function).state, plant.look(function).name) == ("moved", "RelayBoard.drain")


def test_a_symbol_that_moved_and_was_edited_is_known_by_its_qualified_name(plant):
    method = plant.anchor("PumpStation.open_valve")
    plant.write("plant/water/station.py", PUMP.replace("litres * 2", "litres * 3"))
    (plant.root / "plant/water/pump.py").unlink()
    plant.index()

    assert (plant.look(method).state, plant.look(method).path) == ("moved", "water/station.py")


def test_another_definition_of_a_plain_word_is_not_the_one_that_is_gone(plant):
    main = next(anchor for anchor in anchors_in(plant.reader, "main() in power/relay.py") if anchor.name)
    plant.edit("plant/power/relay.py", "def main():\n    return RelayBoard().close()\n", "")
    plant.index()

    assert plant.look(main).state == "gone"


def test_code_may_move_to_another_source(plant):
    symbol = plant.anchor("renderGauge")
    plant.move("plant/web/app.js", "manuals/app.js")
    plant.index()

    found = plant.look(symbol)
    assert (found.state, found.source, found.path) == ("moved", "library/manuals", "app.js")


def test_a_long_definition_is_covered_by_all_of_its_chunks(plant):
    steps = [f"    level = fill_tank(level + {number})  # step {number} of the long routine\n" for number in range(400)]
    plant.write("plant/water/routine.py", "def run_routine(level):\n" + "".join(steps) + "    return level\n")
    plant.index()
    anchor = plant.anchor("run_routine")
    assert plant.look(anchor).state == "fresh"

    plant.edit("plant/water/routine.py", "level + 399)", "level - 399)")
    plant.index()
    assert plant.look(anchor).state == "changed"


def test_of_an_overloaded_symbol_each_definition_counts(plant):
    plant.write(
        "plant/water/flow.py",
        "if fast:\n    def set_flow():\n        pass\nelse:\n    def set_flow():\n        return 1\n",
    )
    plant.index()
    anchor = plant.anchor("set_flow")
    assert plant.look(anchor).state == "fresh"

    plant.edit("plant/water/flow.py", "return 1", "return 2")
    plant.index()
    assert plant.look(anchor).state == "changed"


def test_of_code_that_is_not_indexed_nothing_is_known(plant, tmp_path):
    anchor = plant.anchor("drain()")
    warnings: list[str] = []
    nothing = Live(load_settings(tmp_path / "nothing"))

    assert [found.state for found in check_anchors(nothing, [anchor], warnings, impact=False)] == ["unknown"]
    assert warnings == []
    elsewhere = Anchor("git/away", PUMP_FILE, "drain_all", anchor.chunk_hash)
    assert plant.look(elsewhere).state == "unknown"


def test_without_the_folder_only_the_index_says_what_is_there(plant):
    anchor = plant.anchor("drain()")
    (plant.root / "plant").rename(plant.root / "away")

    assert (plant.look(anchor).state, plant.look(anchor).edited) == ("fresh", None)


def test_what_depends_on_it_comes_on_demand_the_nearest_first_and_none_of_its_own_parts(plant):
    anchor = plant.anchor("PumpStation")

    found = plant.look(anchor, impact=True)
    assert [step.subject.partition("::")[2] for step in found.impact][:2] == ["fill_tank", "drain"]
    assert found.dependents == len(found.impact) == 2
    assert plant.look(anchor).dependents is None


def test_without_a_graph_nothing_is_said_of_what_depends_on_it(plant):
    plant.write("docindex.toml", CONFIG.replace("enabled = true", "enabled = false"))
    plant.index()

    found = plant.look(plant.anchor("PumpStation"), impact=True)
    assert (found.state, found.dependents, found.impact) == ("fresh", None, ())


HOSTILE = {
    "dots": "." * 1_000_000,
    "letters": "a" * 1_000_000,
    "backticks": "`" * 1_000_000,
    "open backticks": "`a " * 300_000,
    "dotted": "a." * 500_000,
    "calls": "()" * 500_000,
    "underscores": "a_b(" * 250_000,
    "capitals": "Aa" * 500_000,
    "colons": "a::" * 300_000,
    "folders": "a/" * 500_000,
    "half characters": "\udc80`a\ud800`" * 100_000,
    "NUL": "a_b\0" * 200_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_text_takes_longer_than_its_length_explains(untouched, text):
    begun = time.thread_time()
    assert anchors_in(untouched.reader, text) == ()
    assert time.thread_time() - begun < 2


def test_half_characters_in_names_and_paths_are_no_matter(untouched):
    assert named(untouched, "`\ud800.py` \udc80_x `a\udc80b.md` drain()") == [(PUMP_FILE, "drain")]


PIECES = st.sampled_from(
    ["drain", "drain()", "`drain`", "PumpStation", ".", "close", "::", "/", "water/pump.py", "pump.py", " ", "\n", "`"]
)


@pytest.fixture(scope="module")
def reader(untouched: Plant) -> Reader:
    return untouched.reader


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.lists(PIECES | st.text(max_size=5), max_size=12).map("".join))
def test_every_anchor_is_of_something_that_the_text_holds(untouched, reader, text):
    anchors = anchors_in(reader, text)

    assert len(set(anchors)) == len(anchors) <= MOST
    for anchor in anchors:
        assert (anchor.name or anchor.path).rpartition("." if anchor.name else "/")[2] in text
    found = inspect_anchors(load_settings(untouched.root), reader, anchors)
    assert [each.state for each in found] == ["fresh"] * len(anchors)


def test_only_so_much_is_read_of_a_text():
    names = [f"name_{number}" for number in range(1000)]
    assert len(mentions_in(" ".join(names))) == len(mentions_in(" ".join(names * 2))) < len(names)
