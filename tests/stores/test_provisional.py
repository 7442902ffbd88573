"""A generation with a provisional graph, and the complete graph that replaces it."""

from dataclasses import replace
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from docindex_dagster.chunking.inputs import MADE_FROM
from docindex_dagster.core import tables
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import GraphSettings, load_settings
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.graph import extraction
from docindex_dagster.graph.extraction import EVERYTHING, Extraction, GraphPlan, provisional
from docindex_dagster.pipeline import publication as stage
from docindex_dagster.runner.run import index
from docindex_dagster.search.engine import search
from docindex_dagster.search.model import Hit, Mode
from docindex_dagster.sources import registry
from docindex_dagster.status import catalog
from docindex_dagster.stores import generation, graph_files, lance_table, link_files, maintenance, prune, tantivy_index
from docindex_dagster.stores.doctor import examine, roll_back
from docindex_dagster.stores.generation import Generation, PublishedSource, read_generation
from docindex_dagster.stores.publish import Publication, publish, published_from
from docindex_dagster.stores.published_tables import open_tables
from docindex_dagster.stores.reader import open_reader
from docindex_dagster.stores.rows import SourceRows
from tests.conftest import MODEL, chunks_of, extracted, vectors_of

KEY = "library/sample"
BEFORE = {"a.py": ["alpha reads a file", "beta writes a file"], "b.py": ["gamma sorts numbers"]}
AFTER = {**BEFORE, "b.py": ["gamma sorts letters", "delta is new"]}


class Killed(BaseException):
    pass


def die(*_args: object, **_options: object) -> None:
    raise Killed


class Run:
    """A run on some files that publishes a provisional graph first and the complete graph later."""

    def __init__(self, layout: Layout, files: dict[str, list[str]]) -> None:
        self.layout = layout
        self.previous = extraction.read(layout, KEY)
        chunks = chunks_of(files, KEY)
        self.chunks = tables.stamp(
            chunks.replace_schema_metadata({MADE_FROM: repr(files).encode()}), tables.column_version(chunks, "row_hash")
        )
        self.made_from = repr(files)
        self.vectors = vectors_of(chunks)
        tables.write(layout.table("chunks", KEY), self.chunks)
        tables.write(layout.table("embeddings", KEY), self.vectors)

    def first(self, plan: GraphPlan = EVERYTHING) -> Publication:
        return self._publish(provisional(self.previous, self.chunks, plan))

    def second(self, plan: GraphPlan = EVERYTHING) -> Publication:
        return self._publish(extracted(self.layout, KEY, self.chunks, plan))

    def _publish(self, made: Extraction) -> Publication:
        return publish(self.layout, SourceRows(KEY, self.chunks, self.vectors, made), MODEL)


def shown(layout: Layout) -> dict[str, pa.Table]:
    """Return all rows that readers see."""
    opened = open_tables(open_reader(layout), [KEY])
    return {
        name: getattr(opened, name).to_arrow().replace_schema_metadata(None)
        for name in ("chunks", "embeddings", "nodes", "edges")
    }


def published(layout: Layout) -> Generation:
    found = read_generation(layout)
    assert found is not None
    return found


def entry(layout: Layout) -> PublishedSource:
    return published(layout).sources[KEY]


def state(layout: Layout) -> dict[str, tuple[int, int]]:
    files = (path for path in layout.stores.rglob("*") if path.is_file())
    return {str(path.relative_to(layout.stores)): (path.stat().st_ino, path.stat().st_mtime_ns) for path in files}


@pytest.mark.parametrize("has_previous", [False, True])
def test_published_in_two_steps_it_is_what_it_is_published_at_once(tmp_path, has_previous):
    once, twice = Layout(tmp_path / "once"), Layout(tmp_path / "twice")
    for layout in (once, twice):
        if has_previous:
            Run(layout, BEFORE).second()
        run = Run(layout, AFTER)
        if layout is twice:
            run.first()
        run.second()

    assert replace(published(once), sources={}) == replace(published(twice), sources={})
    assert replace(entry(once), changed_at="") == replace(entry(twice), changed_at="")
    assert shown(once) == shown(twice)
    assert {file.name for file in once.graph.iterdir()} == {file.name for file in twice.graph.iterdir()}
    assert list(examine(twice)) == []


def test_the_first_step_has_the_new_text_and_the_graph_of_files_that_are_the_same(layout):
    Run(layout, BEFORE).second()

    publication = Run(layout, AFTER).first()

    assert (publication.source.unlinked, publication.source.files, publication.source.inputs) == (1, 2, None)
    assert publication.lance.added == 1
    graph = open_reader(layout).graph
    assert f"{KEY}!a.py::alpha" in graph.numbers
    assert f"{KEY}!b.py::gamma" not in graph.numbers
    assert graph.unlinked_files == "linking 1 of 2 files: not all of their calls are in this answer yet"
    assert list(examine(layout)) == []


def test_the_second_step_writes_the_graph_and_nothing_else(layout, monkeypatch):
    Run(layout, BEFORE).second()
    run = Run(layout, AFTER)
    run.first()
    before = state(layout)
    for store in (lance_table, tantivy_index):
        monkeypatch.setattr(store, "reconcile", die)
    monkeypatch.setattr(lance_table, "open_for_writing", die)

    publication = run.second()

    changed = {name for name, stamp in state(layout).items() if before.get(name) != stamp}
    assert {Path(name).parent.name or name for name in changed} == {"graph", layout.current.name}
    assert not publication.is_new
    assert publication.source.unlinked is None
    assert publication.generation.table_version == read_generation(layout).table_version


def test_each_step_done_again_touches_no_file(layout):
    run = Run(layout, AFTER)
    run.first()
    before = state(layout)
    run.first()
    assert state(layout) == before

    run.second()
    before = state(layout)
    run.second()
    run.first()  # the complete graph stays
    assert state(layout) == before


def test_rows_that_are_published_keep_their_graph_also_while_one_of_another_plan_is_extracted(layout):
    Run(layout, BEFORE).second()
    before = state(layout)
    plan = GraphPlan(GraphSettings(code=False))
    run = Run(layout, BEFORE)

    run.first(plan)

    assert state(layout) == before
    assert run.second(plan).source.graph_made_by == plan.fingerprint


def test_rolling_back_goes_to_the_generation_before_the_run(layout):
    Run(layout, BEFORE).second()
    before = shown(layout)
    run = Run(layout, AFTER)
    run.first()
    run.second()
    after = shown(layout)

    roll_back(layout)
    assert shown(layout) == before
    roll_back(layout)
    assert shown(layout) == after


def test_rolling_back_between_the_steps_goes_to_the_generation_before_the_run(layout):
    Run(layout, BEFORE).second()
    before = shown(layout)
    run = Run(layout, AFTER)
    run.first()

    roll_back(layout)

    assert shown(layout) == before
    run.second()
    assert entry(layout).unlinked is None
    assert list(examine(layout)) == []


@pytest.mark.parametrize("place", [(generation, "_write"), (tables, "copy"), (graph_files, "write")])
def test_who_is_killed_in_the_second_step_leaves_the_first_and_the_next_run_completes_it(layout, monkeypatch, place):
    Run(layout, BEFORE).second()
    run = Run(layout, AFTER)
    run.first()
    before = shown(layout)
    with monkeypatch.context() as patch:
        patch.setattr(*place, die)
        with pytest.raises(Killed):
            run.second()
    assert shown(layout) == before
    assert published_from(layout, KEY, run.made_from, None, MODEL) is None

    Run(layout, AFTER).second()

    assert published_from(layout, KEY, run.made_from, None, MODEL) is not None
    assert list(examine(layout)) == []
    named = read_generation(layout).graph_files() | read_generation(layout, previous=True).graph_files()
    assert {file.name for file in layout.graph.iterdir()} == named


def test_a_run_that_is_killed_between_the_steps_is_completed_by_the_next(tmp_path, monkeypatch):
    root = tmp_path / "project"
    (root / "lib").mkdir(parents=True)
    (root / "lib" / "a.py").write_text("def one():\n    return two()\n\n\ndef two():\n    return 2\n")
    (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "lib"\n')
    settings = load_settings(root)
    source = registry.sources(settings)["library/lib"]

    def first_alone(layout: Layout, rows: SourceRows, model: object, **options: object) -> Publication:
        made = provisional(None, rows.chunks, EVERYTHING)
        publish(layout, replace(rows, extraction=made), MODEL)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(stage, "publish", first_alone)
        with pytest.raises(Killed):
            index(settings, source, StaticEmbedder())
    layout = Layout(settings.home)
    assert read_generation(layout).sources[source.key].unlinked == 1
    assert search(open_reader(layout), "two", StaticEmbedder)

    done = index(settings, source, StaticEmbedder())

    assert (done.source.unlinked, done.source.lacks_of_graph) == (None, False)
    assert "library/lib!a.py::two" in open_reader(layout).graph.numbers
    assert index(settings, source, StaticEmbedder()).source == done.source


def test_a_reader_of_the_first_step_goes_on_after_the_second(layout):
    Run(layout, BEFORE).second()
    run = Run(layout, AFTER)
    run.first()
    reader = open_reader(layout)

    run.second()
    Run(layout, BEFORE).second()

    assert reader.table.count_rows() == 4
    assert f"{KEY}!a.py::alpha" in reader.graph.numbers
    assert f"{KEY}!b.py::gamma" not in reader.graph.numbers


def test_who_opens_the_first_step_while_the_second_replaces_it_gets_a_graph(layout, monkeypatch):
    run = Run(layout, AFTER)
    run.first()
    mapped = graph_files.mapped

    def second_meanwhile(layout: Layout, generation: Generation) -> dict[str, pa.Buffer]:
        monkeypatch.setattr(graph_files, "mapped", mapped)
        run.second()
        return mapped(layout, generation)

    monkeypatch.setattr(graph_files, "mapped", second_meanwhile)

    reader = open_reader(layout)

    assert f"{KEY}!b.py::delta" in reader.graph.numbers


def test_a_pack_that_took_the_first_step_does_not_keep_its_graph(layout, monkeypatch):
    monkeypatch.setattr(maintenance, "_MAX_LOOSE", 1)
    run = Run(layout, AFTER)
    run.first()
    maintenance.maintain(layout)
    assert entry(layout).pack is not None

    run.second()

    assert f"{KEY}!b.py::delta" in open_reader(layout).graph.numbers
    assert list(examine(layout)) == []
    assert read_generation(layout).loose_graph_files() <= {file.name for file in layout.graph.iterdir()}
    assert len(list(layout.rows.iterdir())) == 1


def test_an_erasure_between_the_steps_does_no_harm(layout):
    Run(layout, BEFORE).second()
    run = Run(layout, AFTER)
    run.first()

    prune.erase_stores(layout)
    assert list(examine(layout)) == []
    run.second()

    assert list(examine(layout)) == []
    assert shown(layout)["edges"].num_rows == extraction.read(layout, KEY).graph.triples.num_rows


@pytest.mark.parametrize("previous", [None, BEFORE])
def test_searches_walk_in_a_provisional_graph(layout, previous):
    if previous:
        Run(layout, previous).second()
    Run(layout, AFTER).first()
    warned: list[str] = []

    def found(mode: Mode) -> list[Hit]:
        return search(open_reader(layout), "file", StaticEmbedder, mode=mode, warn=warned.append)

    assert found(Mode.HYBRID)
    assert not [one for one in warned if one.startswith("linking")]
    found(Mode.GRAPH)

    number = 1 if previous else 2
    assert f"linking {number} of 2 files: not all of their calls are in this answer yet" in warned
    link_files.bring_up_to_date(layout)
    assert list(examine(layout)) == []


def test_a_source_that_is_linked_is_not_degraded(layout):
    Run(layout, BEFORE).second()
    run = Run(layout, AFTER)
    run.first()

    (known,) = catalog.entries(layout)

    assert catalog.index_limitations(known) == ["linking 1 of 2 files"]
    assert not catalog.is_degraded(known)
    run.second()
    assert catalog.index_limitations(catalog.entries(layout)[0]) == []


def test_a_generation_of_an_earlier_version_opens(layout):
    Run(layout, BEFORE).second()
    written = orjson.loads(layout.current.read_bytes())
    del written["sources"][KEY]["unlinked"]
    layout.current.write_bytes(orjson.dumps(written))

    assert entry(layout).unlinked is None
    assert open_reader(layout).graph.unlinked_files == ""
    assert Run(layout, AFTER).first().source.unlinked == 1
