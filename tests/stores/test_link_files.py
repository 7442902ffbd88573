"""The link file, an optional copy that lets a process build its first context without opening the graph."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import exclusive_if_free
from docindex_dagster.core.settings import CONFIG_NAME, Settings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph.links import Links, links
from docindex_dagster.runner.run import index
from docindex_dagster.search.service import Request, context_of
from docindex_dagster.sources import registry
from docindex_dagster.stores import link_files
from docindex_dagster.stores.doctor import examine, roll_back
from docindex_dagster.stores.generation import read_generation
from docindex_dagster.stores.prune import erase_stores
from docindex_dagster.stores.publish import withdraw
from docindex_dagster.stores.reader import open_reader
from tests.models import TinyEmbedder

CALLER = "from gear import engage\n\ndef irrigate(field):\n    '''Water the dry field.'''\n    return engage(field)\n"
CALLEE = "def engage(unit):\n    unit.ratio *= 2\n    return unit\n"
OTHER_CALLER = "from gear import engage\n\ndef plough(field):\n    return engage(field)\n"
OTHER_LIBRARY = '[[source]]\nkind = "library"\nname = "other"\npath = "files"\n'


class Project:
    """Two files in an indexed library, one of which calls the other."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.settings: Settings = load_settings(root)
        self.layout = Layout(self.settings.home)

    @classmethod
    def create(cls, root: Path, tables: str = "") -> "Project":
        (root / "files").mkdir()
        (root / CONFIG_NAME).write_text(f'[[source]]\nkind = "library"\npath = "files"\n{tables}')
        project = cls(root)
        project.write("gear.py", CALLEE)
        project.write("water.py", CALLER)
        return project

    def write(self, name: str, text: str) -> None:
        (self.root / "files" / name).write_text(text)
        self.index()

    def index(self, *, full: bool = False) -> None:
        for source in registry.sources(self.settings).values():
            index(self.settings, source, StaticEmbedder(), full=full)

    @property
    def files(self) -> list[Path]:
        return sorted(self.layout.links.glob("*"))

    @property
    def read(self) -> Links | None:
        generation = read_generation(self.layout)
        return link_files.read(self.layout, generation) if generation else None


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Project.create(tmp_path_factory.mktemp("indexed")).root


@pytest.fixture
def project(tmp_path: Path, indexed_once: Path) -> Project:
    shutil.copytree(indexed_once, tmp_path, dirs_exist_ok=True)
    return Project(tmp_path)


@pytest.fixture
def linked(project: Project) -> Project:
    assert link_files.bring_up_to_date(project.layout)
    return project


def has_links(project: Project) -> bool:
    return project.read is not None


def values(found: Links) -> tuple[list[str], list[int], list[int], list[float]]:
    return found.chunk_ids.to_pylist(), found.begins.tolist(), found.targets.tolist(), found.weights.tolist()


def test_it_holds_the_links_of_the_graph(linked):
    reader = open_reader(linked.layout)

    assert len(reader.links.weights) == 2
    assert "graph" not in vars(reader)
    assert values(reader.links) == values(links(reader.graph))


def test_it_is_written_once(linked):
    (file,) = linked.files
    before = file.stat()

    assert not link_files.bring_up_to_date(linked.layout)
    assert file.stat() == before


def test_a_context_that_finds_it_opens_no_graph(linked):
    code = (
        "import sys; from pathlib import Path; from docindex_dagster.core.layout import Layout;"
        "from docindex_dagster.core.settings import load_settings;"
        "from docindex_dagster.search.service import Request, context_of;"
        "from docindex_dagster.stores.reader import open_reader;"
        "settings = load_settings(Path(sys.argv[1])); reader = open_reader(Layout(settings.home));"
        "found = context_of(settings, reader, Request('water the dry field'), 1000);"
        "print(len(found.passages), 'graph' in vars(reader))"
    )
    done = subprocess.run([sys.executable, "-c", code, linked.root], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["2", "False"]


def test_who_only_reads_writes_nothing(project):
    context_of(project.settings, open_reader(project.layout), Request("water the dry field"), 1000)

    assert project.files == []


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def of_another_shape(file: Path) -> None:
    write(file, pa.table({"chunk_id": ["x"]}))


def leading_nowhere(file: Path) -> None:
    table = table_of(file)
    lists = table["links"].combine_chunks()
    targets = pa.array(np.full(len(lists.values), 1_000, np.int32))
    wrong = pa.StructArray.from_arrays([targets, lists.values.field("weight")], fields=list(lists.type.value_type))
    write(file, table.set_column(1, table.schema.field(1), pa.ListArray.from_arrays(lists.offsets, wrong, lists.type)))


def of_rows_that_begin_nowhere(file: Path) -> None:
    table = table_of(file)
    lists = table["links"].combine_chunks()
    wrong = pa.ListArray.from_arrays(pa.array([0, 1_000_000, 2], pa.int32()), lists.values, lists.type)
    write(file, table.set_column(1, table.schema.field(1), wrong))


def turned(file: Path) -> None:
    """Reorder the chunks without reordering their links."""
    table = table_of(file)
    write(file, table.set_column(0, table.schema.field(0), table["chunk_id"].take(pa.array([1, 0]))))


def table_of(file: Path) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(file.read_bytes())).read_all()


def write(file: Path, table: pa.Table) -> None:
    file.unlink()
    with pa.ipc.new_file(str(file), table.schema) as out:
        out.write_table(table)


@pytest.mark.parametrize(
    "damage",
    [
        Path.unlink,
        cut,
        lambda file: file.write_bytes(b"\0" * 500),
        of_another_shape,
        leading_nowhere,
        of_rows_that_begin_nowhere,
    ],
)
def test_without_it_the_graph_is_read_and_the_next_writer_mends_it(linked, damage: Callable[[Path], object]):
    expected = values(open_reader(linked.layout).links)
    (file,) = linked.files
    damage(file)

    assert linked.read is None
    assert values(open_reader(linked.layout).links) == expected
    assert [*examine(linked.layout)] == []

    assert link_files.bring_up_to_date(linked.layout)
    assert linked.read is not None


def test_one_with_other_links_is_found_by_the_doctor_and_mended_by_a_full_run(linked):
    (file,) = linked.files
    turned(file)

    assert [finding.store for finding in examine(linked.layout)] == ["link file"]

    linked.index(full=True)
    assert link_files.bring_up_to_date(linked.layout)
    assert [*examine(linked.layout)] == []


def test_without_a_graph_there_is_none(tmp_path):
    project = Project.create(tmp_path, "[graph]\nenabled = false\n")

    assert not link_files.bring_up_to_date(project.layout)
    assert project.files == []


def test_an_edit_that_changes_the_graph_makes_another_and_those_of_the_last_two_generations_stay(linked):
    (first,) = linked.files
    linked.write("plough.py", OTHER_CALLER)
    assert linked.read is None

    assert link_files.bring_up_to_date(linked.layout)
    assert first in linked.files
    assert len(linked.files) == 2

    linked.write("plough.py", OTHER_CALLER + "\n\ndef sow(field):\n    return plough(field)\n")
    assert first not in linked.files


def test_other_rules_make_another(linked, monkeypatch):
    monkeypatch.setattr(link_files, "LINKS_VERSION", "another")

    assert linked.read is None
    assert link_files.bring_up_to_date(linked.layout)
    assert len(linked.files) == 2


def test_after_a_rollback_the_one_of_that_generation_is_read(linked):
    expected = values(open_reader(linked.layout).links)
    linked.write("plough.py", OTHER_CALLER)
    assert link_files.bring_up_to_date(linked.layout)

    roll_back(linked.layout)

    assert linked.read is not None
    assert values(linked.read) == expected


def test_until_a_new_model_takes_over_that_of_the_old_one_serves_and_then_there_is_another(tmp_path):
    project = Project.create(tmp_path, OTHER_LIBRARY)
    new = TinyEmbedder()
    project.index()
    assert link_files.bring_up_to_date(project.layout)
    first, second = registry.sources(project.settings).values()

    index(project.settings, first, new)
    assert has_links(project)  # searches still use the old file
    assert not link_files.bring_up_to_date(project.layout)

    index(project.settings, second, new)
    assert read_generation(project.layout).model == new.name
    assert not has_links(project)
    assert link_files.bring_up_to_date(project.layout)
    assert [*examine(project.layout)] == []


def test_of_what_is_erased_nothing_is_left_in_it(linked):
    gone = {*open_reader(linked.layout).links.chunk_ids.to_pylist()}
    (linked.root / "files" / "water.py").unlink()
    linked.index()
    assert link_files.bring_up_to_date(linked.layout)
    gone -= {*open_reader(linked.layout).links.chunk_ids.to_pylist()}

    erase_stores(linked.layout)

    (file,) = linked.files
    assert gone
    assert not any(chunk_id.encode() in file.read_bytes() for chunk_id in gone)
    assert [*examine(linked.layout)] == []


def test_when_the_last_source_goes_so_does_it(linked):
    withdraw(linked.layout, "library/files")
    assert not link_files.bring_up_to_date(linked.layout)
    assert open_reader(linked.layout).links.weights.tolist() == []


def test_it_is_not_written_while_a_generation_is_made(project):
    with exclusive_if_free(project.layout.publication_lock, "a run"):
        assert not link_files.bring_up_to_date(project.layout)

    assert project.files == []


def test_of_a_generation_that_was_replaced_meanwhile_none_is_left(project, monkeypatch):
    def slowly(graph):
        project.write("plough.py", OTHER_CALLER)
        return links(graph)

    monkeypatch.setattr(link_files, "links", slowly)
    assert not link_files.bring_up_to_date(project.layout)
    assert project.files == []


def test_of_a_graph_that_is_damaged_there_is_none_and_nobody_fails(project):
    for file in project.layout.graph.glob("*.nodes.parquet"):
        file.unlink()

    assert not link_files.bring_up_to_date(project.layout)
    assert project.files == []


def test_several_writers_at_once_leave_one_whole_file(project):
    code = (
        "import sys; from pathlib import Path; from docindex_dagster.core.layout import Layout;"
        "from docindex_dagster.stores.link_files import bring_up_to_date; bring_up_to_date(Layout(Path(sys.argv[1])))"
    )
    writers = [subprocess.Popen([sys.executable, "-c", code, project.layout.home]) for _ in range(4)]

    assert [writer.wait(60) for writer in writers] == [0] * 4
    assert len(project.files) == 1
    assert [*examine(project.layout)] == []
    assert project.read is not None
