"""No text is paid for twice after failures, interrupts, kills, or a switch to another model and back."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.errors import EmbeddingError
from docindex_dagster.core.events import Event, Progress, listening
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.settings import EmbeddingSettings
from docindex_dagster.embedding import cache
from docindex_dagster.embedding.build import EmbeddingResult
from docindex_dagster.embedding.cache import VectorSpill, embed
from docindex_dagster.embedding.openai import OpenAIEmbedder
from docindex_dagster.stores.generation import read_generation, read_next
from docindex_dagster.stores.prune import orphans, prune
from tests.conftest import chunks_of
from tests.embedding.openai_server import KEY, Fault, OpenAIServer, serving
from tests.models import TinyEmbedder

SOURCE = "git/sample"
CHUNKS = chunks_of({f"file{number}.py": [f"function{number} reads number {number}"] for number in range(40)}, SOURCE)
CHECKOUT = Path(__file__).parents[2]


@pytest.fixture
def api() -> Iterator[OpenAIServer]:
    with serving() as server:
        yield server


def model(api: OpenAIServer, **options: Any) -> OpenAIEmbedder:
    given = {"base_url": api.url, "dimensions": 8, "batch_size": 4, "concurrency": 3, "retries": 1, "timeout_s": 5}
    return OpenAIEmbedder(EmbeddingSettings(provider="openai", **given | options), first_wait_s=0.01)


def run(layout: Layout, embedder: Any, chunks: pa.Table = CHUNKS, key: str = SOURCE, **options: Any) -> EmbeddingResult:
    """Embed like a run, which writes the table and publishes it."""
    path = layout.table("embeddings", key)
    result = embed(layout, key, chunks, None if options.get("full") else tables.read(path), embedder, **options)
    tables.write(path, result.table)
    cache.clear_spill(layout, key, result.table)
    return result


def failing(api: OpenAIServer, layout: Layout, fault: Fault, after: int, **options: Any) -> str:
    """Run until the API fails after `after` requests, and return the error message."""
    api.faults.extend([Fault()] * after)
    api.always = fault
    with pytest.raises(EmbeddingError) as caught:
        run(layout, model(api, **options))
    api.always = None
    api.faults.clear()
    return str(caught.value)


# Failures.


@pytest.mark.parametrize("concurrency", [1, 3])
@pytest.mark.parametrize("fault", [Fault(500), Fault(401), Fault(reset=True)], ids=["500", "401", "reset"])
def test_vectors_from_before_a_failure_are_kept_and_the_next_run_goes_on_from_there(api, layout, fault, concurrency):
    why = failing(api, layout, fault, after=5, concurrency=concurrency)

    assert "20 of 40 texts are embedded and kept: the next run continues from there" in why
    assert api.texts() == 20

    result = run(layout, model(api, concurrency=concurrency))
    assert result.embedded == 20
    assert api.texts() == 40
    assert api.twice == []
    assert not layout.spilled_vectors(SOURCE).exists()


def test_a_resumed_run_gives_the_table_that_an_undisturbed_one_gives(api, layout):
    failing(api, layout, Fault(503), after=4)
    undisturbed = run(Layout(layout.home / "other"), model(api)).table

    assert run(layout, model(api)).table.equals(undisturbed)


def test_one_bad_text_ends_the_run_after_all_others_were_embedded(api, layout):
    api.refuse = lambda text: "unsafe input" if "function7 " in text else None

    with pytest.raises(
        EmbeddingError, match=r"starts with 'file7.py function7 function': unsafe input.*39 of 40 texts"
    ):
        run(layout, model(api))

    assert api.texts() == 39
    api.refuse = lambda _: None
    assert run(layout, model(api)).embedded == 1
    assert api.twice == []


def test_what_is_under_way_when_another_request_fails_arrives_and_is_kept(api, layout):
    api.faults.extend([Fault(401, delay_s=0.2), Fault(delay_s=0.6), Fault(delay_s=0.6)])

    with pytest.raises(EmbeddingError, match="8 of 40 texts"):
        run(layout, model(api))

    assert len(api.requests) == 3
    run(layout, model(api))
    assert api.twice == []


def test_a_run_that_is_interrupted_keeps_its_vectors(api, layout):
    def interrupt(event: Event) -> None:
        if isinstance(event, Progress) and event.done == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), listening(interrupt):
        run(layout, model(api))

    assert 20 <= api.texts() <= 32
    run(layout, model(api))
    assert api.texts() == 40
    assert api.twice == []


def test_progress_is_reported_in_texts(api, layout):
    reported: list[Event] = []
    with listening(reported.append):
        run(layout, model(api))

    done = [event.done for event in reported if isinstance(event, Progress)]
    assert (done[0], done[-1], len(done)) == (0, 40, 11)
    assert done == sorted(done)


def test_texts_that_an_interrupted_run_embedded_and_the_next_needs_no_more_are_not_lost(api, layout):
    failing(api, layout, Fault(500), after=10 - 1, concurrency=1)
    run(layout, model(api), CHUNKS.slice(30))
    assert api.texts() == 40

    run(layout, model(api))
    assert api.twice == []


def test_another_branch_takes_what_an_interrupted_run_embedded(api, layout):
    failing(api, layout, Fault(500), after=5)
    run(layout, model(api), chunks_of({"file0.py": ["function0 reads number 0"]}, f"{SOURCE}@dev"), f"{SOURCE}@dev")
    run(layout, model(api))

    assert api.twice == []


# Parts on disk.


def test_a_part_that_a_power_cut_left_damaged_costs_its_vectors_only(api, layout):
    failing(api, layout, Fault(500), after=5)
    first, second, *_ = sorted(layout.spilled_vectors(SOURCE).iterdir())
    first.write_bytes(first.read_bytes()[:100])
    data = bytearray(second.read_bytes())
    rows = tables.read_part(second)["vector"].chunk(0).flatten().to_numpy(zero_copy_only=False).tobytes()
    at = data.index(rows)
    data[at : at + len(rows)] = bytes(len(rows))
    second.write_bytes(data)

    result = run(layout, model(api))

    assert result.embedded == 20 + 8
    assert not layout.spilled_vectors(SOURCE).exists()


def test_vectors_that_cannot_be_used_are_not_kept(layout):
    class Spoilt(TinyEmbedder):
        def embed_documents(self, texts):
            vectors = super().embed_documents(texts)
            vectors[1] = np.nan
            return vectors

    with pytest.raises(Exception, match="vectors_are_finite"):
        run(layout, Spoilt())
    (part,) = VectorSpill(layout, SOURCE).parts()
    assert part.num_rows == 39

    assert run(layout, TinyEmbedder()).embedded == 1


def test_vectors_of_another_shape_are_refused(layout):
    class Short(TinyEmbedder):
        def embed_documents(self, texts):
            return super().embed_documents(texts)[:-1]

    with pytest.raises(EmbeddingError, match=r"tiny: expected vectors of shape \(40, 8\), got \(39, 8\)"):
        run(layout, Short())


def test_prune_and_the_removal_of_a_source_leave_no_parts_behind(api, layout):
    failing(api, layout, Fault(500), after=2)
    parts = layout.spilled_vectors(SOURCE)

    assert [orphan.path for orphan in orphans(layout, {SOURCE})] == []
    assert parts in [orphan.path for orphan in prune(layout, set())]
    assert not parts.exists()

    failing(api, layout, Fault(500), after=2)
    cache.remove(layout, SOURCE)
    assert not parts.exists()


# Models.


def test_going_to_another_model_and_back_embeds_nothing_again(api, layout):
    first, second = model(api), model(api, model="bge", dimensions=16)
    before = run(layout, first).table
    assert run(layout, second).embedded == 40

    back = run(layout, first)
    assert (back.embedded, back.reused) == (0, 40)
    assert back.table.equals(before)
    for embedder in (second, first, second):
        assert run(layout, embedder).embedded == 0


def test_edits_while_another_model_is_in_use_cost_the_first_one_only_themselves(api, layout):
    first, second = model(api), model(api, dimensions=16)
    run(layout, first)
    run(layout, second)
    for number in range(12):
        edited = chunks_of({"new.py": [f"function{number} is edited"]}, SOURCE)
        run(layout, second, pa.concat_tables([CHUNKS, edited]))

    assert run(layout, first, pa.concat_tables([CHUNKS, edited])).embedded == 1
    assert api.twice == []


def test_what_an_interrupted_change_of_model_embedded_outlives_a_change_back(api, layout):
    run(layout, model(api))
    failing(api, layout, Fault(500), after=5, dimensions=16)
    run(layout, model(api))

    assert run(layout, model(api, dimensions=16)).embedded == 20
    assert api.twice == []


def test_a_full_run_reuses_nothing_of_its_model_and_keeps_those_of_others(api, layout):
    first, second = model(api), model(api, dimensions=16)
    run(layout, first)
    run(layout, second, full=True)
    assert run(layout, second, full=True).embedded == 40

    assert run(layout, first).embedded == 0


def test_what_is_kept_of_a_model_is_bounded_by_the_size_of_the_repository_with_its_branches(api, layout, monkeypatch):
    monkeypatch.setattr(cache, "_MIN_LIMIT_ROWS", 10)
    small = CHUNKS.slice(0, 2)
    run(layout, model(api))
    run(layout, model(api), small, f"{SOURCE}@small")
    run(layout, model(api, dimensions=16))  # the cache must keep the first model's 40 vectors
    for number in range(20):  # a small branch writes many parts
        edited = chunks_of({"new.py": [f"function{number} is edited"]}, f"{SOURCE}@small")
        run(layout, model(api), edited, f"{SOURCE}@small")

    assert run(layout, model(api)).embedded == 0
    assert api.twice == []


# Complete runs.


CONFIG = """
[embedding]
provider = "openai"
base_url = "{url}"
dimensions = 8
batch_size = 5
concurrency = 2
retries = 0
"""


def project(root: Path, api: OpenAIServer, sources: int = 1) -> None:
    declared = "".join(f'[[source]]\nkind = "library"\npath = "notes{at}"\n\n' for at in range(sources))
    (root / "docindex.toml").write_text(declared + CONFIG.format(url=api.url))
    for at in range(sources):
        (root / f"notes{at}").mkdir()
        for number in range(30):
            (root / f"notes{at}" / f"page{number}.md").write_text(f"# Page {number}\n\nThe pump {number} of {at}.\n")


def start(root: Path, *arguments: str, **variables: str) -> "subprocess.Popen[str]":
    kept_variables = {name: value for name, value in os.environ.items() if not name.startswith(("D", "OPENAI"))}
    return subprocess.Popen(
        [sys.executable, "-m", "docindex_dagster.cli", *arguments],
        cwd=CHECKOUT,
        env=kept_variables | {"DOCINDEX_ROOT": str(root), "DOCINDEX_TRUST": "1"} | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def docindex(root: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    process = start(root, *arguments, **variables)
    out, err = process.communicate(timeout=120)
    return process.returncode, " ".join((out + err).split())


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGKILL, id="killed"),
        pytest.param(signal.SIGINT, id="interrupted", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_is_stopped_half_way_embeds_nothing_twice(api, tmp_path, how):
    project(tmp_path, api)
    api.answers = 3
    process = start(tmp_path, "index")
    until = time.monotonic() + 60
    while api.hanging < 2 and time.monotonic() < until:  # both threads saved their results
        time.sleep(0.02)
    assert api.texts() == 15
    os.killpg(process.pid, how)
    if how == signal.SIGINT:
        api.over.set()  # aborts the requests in flight
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in out + err
    api.over.clear()
    api.answers = float("inf")

    code, output = docindex(tmp_path, "index")

    assert code == 0, output
    assert api.texts() == 30 + 1  # plus the golden query
    assert api.twice == []
    assert not list((tmp_path / ".docindex" / "arrived").glob("*"))


@pytest.mark.slow
def test_a_change_of_model_on_several_sources_is_interrupted_resumed_and_taken_back(api, tmp_path):
    project(tmp_path, api, sources=2)
    config = tmp_path / "docindex.toml"
    layout = Layout(tmp_path / ".docindex")
    assert docindex(tmp_path, "index")[0] == 0
    assert api.texts() == 60 + 2  # plus the golden queries

    text = config.read_text()
    config.write_text(text.replace("dimensions = 8", 'dimensions = 16\nmodel = "bge"'))
    api.faults.extend([Fault()] * 10)  # enough for one source with its golden query and half of the other source
    api.always = Fault(503)
    code, output = docindex(tmp_path, "index")
    assert code == 1
    assert "answered 503: temporary failure, try again later" in output
    assert "15 of 30 texts are embedded and kept" in output
    assert read_generation(layout).model == "openai/text-embedding-3-large/8"
    assert read_next(layout).model == "openai/bge/16"
    api.always = None
    assert docindex(tmp_path, "search", "pump 7", "--mode", "vector")[0] == 0  # uses the old model and the old index

    assert docindex(tmp_path, "index")[0] == 0
    assert read_generation(layout).model == "openai/bge/16"
    assert sum(times for (name, _, _), times in api.answered.items() if name == "bge") - queries(api, "bge") == 60

    config.write_text(text)
    asked = len(api.requests)
    assert docindex(tmp_path, "index")[0] == 0
    assert read_generation(layout).model == "openai/text-embedding-3-large/8"
    assert all(len(request["input"]) == 1 for request in api.requests[asked:])  # only golden queries


def queries(api: OpenAIServer, name: str) -> int:
    """Count golden queries, whose requests have a single text."""
    return sum(len(asked["input"]) == 1 for asked in api.requests if asked["model"] == name)


def test_the_key_is_shown_nowhere(api, tmp_path):
    project(tmp_path, api)
    secret = {"DOCINDEX_EMBEDDING__API_KEY": KEY, "OPENAI_API_KEY": f"{KEY}-2", "OPENAI_LOG": "debug"}
    api.key = "another"
    code, output = docindex(tmp_path, "index", "--debug", **secret)
    assert code == 1
    assert "answered 401: it requires a key or rejects this one" in output
    outputs = [output]

    api.key = KEY
    for command in (("index", "--run"), ("search", "pump", "--json")):
        code, output = docindex(tmp_path, *command, **secret)
        assert code == 0, output
        outputs.append(output)

    assert {key for key in api.keys if key} == {f"Bearer {KEY}"}
    assert not [output for output in outputs if KEY in output]
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert any("dagster" in path.parts and path.suffix == ".db" for path in files)
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


def test_a_run_records_requests_tokens_and_cost(api, tmp_path):
    import dagster as dg

    project(tmp_path, api)
    lines = "    pump + tank + valve +\n" * 3_000
    (tmp_path / "notes0" / "long.py").write_text(f"x = (\n{lines}    1\n)\n")
    config = tmp_path / "docindex.toml"
    config.write_text(config.read_text() + "price = 2.0\n\n[chunking]\ncode_chars = 200000\n")
    code, output = docindex(tmp_path, "index", "--run")
    assert code == 0, output
    assert "a text was longer than the limit of openai/text-embedding-3-large/8 and truncated" in output

    with dg.DagsterInstance.from_config(str(Layout(tmp_path / ".docindex").dagster)) as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("embeddings"))
        reported = {name: value.value for name, value in event.asset_materialization.metadata.items()}
    assert reported["requests"] == 7
    assert reported["tokens"] > 5000
    assert reported["cost"] == pytest.approx(reported["tokens"] * 2e-6, abs=1e-6)
    assert reported["cut"] == 1
    assert json.dumps(reported["model"]) == '"openai/text-embedding-3-large/8"'
