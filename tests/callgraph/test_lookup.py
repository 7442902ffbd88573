"""Lookups across all files find every definition and read only the files they need."""

from docindex_dagster.callgraph.ir import Definition, FileIR
from docindex_dagster.callgraph.program import Index, Lookup, Units
from docindex_dagster.callgraph.tabling import Table
from docindex_dagster.callgraph.units import Chunks, Unit
from docindex_dagster.graph.reuse import OfferedKeys

PATHS = [f"{letter}.py" for letter in "abcdef"]


class Files:
    """Six files that define `run`. Records the paths of the files that were built."""

    def __init__(self) -> None:
        self.made: list[str] = []
        units = Units(dict.fromkeys(PATHS), self._make)
        offered = OfferedKeys.of(units, units, most=100)
        index = Index.of([*units], *offered.keys_at({path: at for at, path in enumerate(units)}))
        units.clear()
        self.made.clear()
        self.table = Table()
        self.named: Lookup[Definition] = Lookup("named", index, units, self.table)

    def _make(self, path: str) -> Unit:
        self.made.append(path)
        run = Definition("run", "run", "function", "run", "", None, is_local=False, line=1, byte=0)
        return Unit(path, "python", FileIR(definitions=(run,)), is_test=False, chunks=Chunks(["id"], [1], [0]))


def test_no_more_files_are_read_than_are_wanted():
    files = Files()

    assert [path for path, _ in files.named.get("python", "run", 2)] == ["a.py", "b.py"]
    assert files.named.has("python", "run")
    assert next(files.named.each("python", "run"))[0] == "a.py"
    assert files.made == ["a.py", "b.py"]


def test_what_is_left_is_found_when_it_is_wanted():
    files = Files()
    files.named.get("python", "run", 2)
    begun = files.named.each("python", "run")
    next(begun)

    assert [path for path, _ in files.named.get("python", "run")] == PATHS
    assert [path for path, _ in begun] == PATHS[1:]
    assert files.made == PATHS


def test_each_look_is_noted():
    files = Files()
    looks = [
        files.named.get("python", "run", 1),
        files.named.has("python", "run"),
        list(files.named.each("python", "run")),
        files.named.get("python", "absent"),
    ]

    assert len(files.table.reads) == len(looks)
    assert len({*files.table.reads}) == 2
