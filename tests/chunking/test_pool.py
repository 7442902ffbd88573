"""Parsing workers: a file that crashes or hangs one loses its own structure, and other files are unaffected."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path, PosixPath
from typing import Any

import pytest

from docindex_dagster.chunking import pool, worker
from docindex_dagster.chunking.chunker import ChunkOptions, Sizes
from docindex_dagster.chunking.pool import chunk_in_workers
from docindex_dagster.chunking.rows import FileJob
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.schemas import CHUNKS
from docindex_dagster.sources.classify import classify
from tests.sources_of_code import run_in_a_source

FIXTURES = Path(__file__).parent.parent / "fixtures"
OPTIONS = ChunkOptions(Sizes(), code_chars=1500)
MOST = 1 << 20
CODE = "def first():\n    return 1\n\n\ndef second():\n    return 2\n"


class CrashesWorker(PosixPath):
    """Path that crashes the worker that uses it, like a fault in a parser, but not the parent process."""

    def __fspath__(self) -> str:
        if os.environ.get("TOKENIZERS_PARALLELISM") == "false":
            os._exit(139)
        return super().__fspath__()


class HangsWorker(PosixPath):
    def __fspath__(self) -> str:
        if os.environ.get("TOKENIZERS_PARALLELISM") == "false":
            time.sleep(600)
        return super().__fspath__()


def job(root: Path, name: str) -> FileJob:
    (root / name).write_text(CODE)
    identity = "library/x", "library", name, digest(CODE.encode()), "code", "python", None, False
    return FileJob(*identity, root, chunker="code", size=len(CODE), max_file_bytes=MOST)


def chunk(jobs: list[FileJob], workers: int, timeout_s: float = 60) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    counted = 0
    for count, result in chunk_in_workers(jobs, OPTIONS, workers=workers, timeout_s=timeout_s):
        counted += count
        assert result.rows.schema == CHUNKS
        for row in result.rows.to_pylist():
            found.setdefault(row["path"], []).append(row)
    assert counted == len(jobs)
    return found


@pytest.mark.parametrize(
    ("kind", "timeout_s", "reason"), [(CrashesWorker, 60, "crash: "), (HangsWorker, 3, "time-out: ")]
)
def test_only_the_file_to_blame_is_cut_as_text(tmp_path, kind, timeout_s, reason):
    jobs = [job(tmp_path, "a.py"), job(kind(tmp_path), "b.py"), job(tmp_path, "c.py")]

    found = chunk(jobs, workers=1, timeout_s=timeout_s)

    assert {path: rows[0]["fallback"] for path, rows in found.items() if path != "b.py"} == {"a.py": None, "c.py": None}
    assert found["b.py"][0]["fallback"].startswith(reason)
    assert "".join(row["text"] for row in found["b.py"]) == CODE


def fail_after_the_first(jobs: list[FileJob]) -> None:
    for _ in chunk_in_workers(jobs, OPTIONS, workers=1, timeout_s=600):
        raise RuntimeError("the consumer fails")


def test_what_a_failed_run_left_in_the_worker_does_not_hold_up_the_next(tmp_path):
    fine, endless = job(tmp_path, "a.py"), job(HangsWorker(tmp_path), "b.py")
    with pytest.raises(RuntimeError):
        fail_after_the_first([replace(one, size=1 << 20) for one in (fine, endless)])  # each file in its own batch

    started = time.monotonic()
    found = chunk([job(tmp_path, "c.py")], workers=1)

    assert [row["fallback"] for row in found["c.py"]] == [None] * len(found["c.py"])
    assert time.monotonic() - started < 60  # includes starting a new worker on a busy machine


def test_the_worker_stays_after_a_run_that_succeeded(tmp_path):
    chunk([job(tmp_path, "a.py")], workers=1)
    workers = multiprocessing.active_children()
    chunk([job(tmp_path, "b.py")], workers=1)

    assert [one.pid for one in workers] == [one.pid for one in multiprocessing.active_children()]


def test_ctrl_c_does_not_reach_a_worker_even_while_it_starts(tmp_path, capfd):
    jobs = [job(tmp_path, "a.py"), job(tmp_path, "b.py")]

    with ThreadPoolExecutor() as other:
        found = other.submit(chunk, jobs, workers=2)
        while not found.done():
            for pid in filter(None, (worker.pid for worker in multiprocessing.active_children())):
                with suppress(ProcessLookupError):  # the worker may have exited
                    os.kill(pid, signal.SIGINT)
            time.sleep(0.01)

    assert {path: rows[0]["fallback"] for path, rows in found.result().items()} == {"a.py": None, "b.py": None}
    # A worker that is dismissed during startup may print an error, but not an interrupt.
    assert "KeyboardInterrupt" not in capfd.readouterr().err


def fixture_job(path: Path) -> FileJob:
    data = path.read_bytes()
    kind = classify(path.name.encode(), data)
    identity = "library/x", "library", path.name, digest(data), kind.source_type, kind.language, None, False
    return FileJob(*identity, path.parent, kind.loader, len(data), max_file_bytes=MOST)


def test_one_worker_and_two_give_the_same_rows(tmp_path):
    by_suffix = {path.suffix: path for path in sorted(FIXTURES.glob("*/*")) if path.is_file()}
    jobs = [*map(fixture_job, by_suffix.values()), *(job(tmp_path, f"{number}.py") for number in range(150))]

    assert chunk(jobs, workers=1) == chunk(jobs, workers=2)


def test_a_file_too_large_for_its_structure_is_cut_by_lines_and_says_so(tmp_path, monkeypatch):
    large, small = job(tmp_path, "large.py"), job(tmp_path, "small.py")
    monkeypatch.setattr(worker, "_MAX_PARSED", len(CODE))

    table = worker.chunk_files([replace(large, size=len(CODE) + 1), small], OPTIONS).rows

    reported = dict(zip(table["path"].to_pylist(), table["fallback"].to_pylist(), strict=True))
    assert reported == {
        "large.py": f"too-large: {len(CODE) + 1} bytes; structure is read from files of at most {len(CODE)} bytes",
        "small.py": None,
    }


def test_a_file_that_is_gone_is_reported_and_the_others_go_on(tmp_path):
    jobs = [job(tmp_path, "a.py"), job(tmp_path, "gone.py")]
    (tmp_path / "gone.py").unlink()

    (result,) = (result for _, result in chunk_in_workers(jobs, OPTIONS, workers=1, timeout_s=60))

    assert [path for path, _ in result.left_out] == ["gone.py"]
    assert set(result.rows["path"].to_pylist()) == {"a.py"}


def test_documents_are_cut_together_since_what_reads_them_takes_long_to_load(tmp_path, monkeypatch):
    monkeypatch.setattr(pool, "_BATCH_FILES", 2)
    document = replace(job(tmp_path, "page.md"), source_type="doc", language="markdown", chunker="markdown")
    jobs = [job(tmp_path, "a.py"), document, job(tmp_path, "b.py"), document]

    batches = [
        set(result.rows["source_type"].to_pylist())
        for _, result in chunk_in_workers(jobs, OPTIONS, workers=2, timeout_s=60)
    ]

    assert batches == [{"doc"}, {"code"}]


WITHOUT_GUARD = """
from pathlib import Path
from docindex_dagster.embedding.providers import load_embedder
from docindex_dagster.runner.run import index
from docindex_dagster.core.settings import Settings, SourceSettings
from docindex_dagster.sources.registry import find

settings = Settings(root=Path(__file__).parent, source=(SourceSettings(kind="library", path="notes"),))
index(settings, find(settings, "notes"), load_embedder(settings.embedding))
"""


def test_a_script_without_a_main_guard_gets_an_error_and_does_not_wait_for_itself(tmp_path):
    job(tmp_path, "a.py")
    (tmp_path / "notes").mkdir()
    (tmp_path / "a.py").rename(tmp_path / "notes" / "a.py")
    (tmp_path / "script.py").write_text(WITHOUT_GUARD)

    command = [sys.executable, tmp_path / "script.py"]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)

    assert ended.returncode == 1
    last = ended.stderr.strip().splitlines()[-1]
    assert "WorkerError: the processes that parse files exit as soon as they start" in last
    assert 'below `if __name__ == "__main__":`' in last


WITH_GUARD = """
from pathlib import Path
from tests.chunking.test_pool import cut

if __name__ == "__main__":
    cut(str(Path.cwd()))
"""


def test_a_source_with_modules_of_its_own_runs_none_of_them(tmp_path):
    ended = run_in_a_source(WITH_GUARD, tmp_path)

    assert (ended.returncode, ended.stderr) == (0, "")


AFTER_A_CRASH = """
import os
from docindex_dagster.chunking.pool import _pool
from pebble import ProcessExpired

if __name__ == "__main__":
    with _pool(1) as pool:
        try:
            pool.schedule(os._exit, (139,)).result()
        except ProcessExpired:
            print(pool.schedule(len, ("abc",)).result())
"""


def test_the_worker_that_replaces_one_that_crashed_runs_no_module_of_a_source(tmp_path):
    ended = run_in_a_source(AFTER_A_CRASH, tmp_path)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "3\n", "")


def cut(root: str) -> None:
    """Chunk a file, like a run that Dagster launched in its own process."""
    assert chunk([job(Path(root), "page.md")], workers=1)


def test_a_process_that_cut_files_ends_with_its_worker(tmp_path):
    (tmp_path / "page.md").write_text("# Page\n\nA page.\n")
    process = multiprocessing.get_context("spawn").Process(target=cut, args=(str(tmp_path),))
    process.start()
    process.join(60)
    try:
        assert process.exitcode == 0
    finally:
        process.kill()


def test_a_worker_that_was_started_ahead_cuts(tmp_path):
    pool._close_idle_pools()
    before = set(multiprocessing.active_children())

    pool.start_ahead()
    while not (started := set(multiprocessing.active_children()) - before):
        time.sleep(0.01)

    assert len(chunk([job(tmp_path, "a.py")], workers=1)) == 1
    assert set(multiprocessing.active_children()) - before == started
