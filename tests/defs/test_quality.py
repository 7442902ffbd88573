"""`retrieval_quality`: what the nightly evaluation reports, when it warns, and when it skips."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import dagster as dg
import pytest

from docindex_dagster.core.layout import Layout
from docindex_dagster.definitions import build_definitions
from docindex_dagster.defs.resources import Project as ProjectResource
from docindex_dagster.search.model import Scored
from docindex_dagster.search.reranking import providers
from docindex_dagster.search.reranking.protocol import Passage
from tests.conftest import git_alone
from tests.defs.conftest import QUIET
from tests.evaluation.conftest import index_all, write_project

QUALITY = dg.AssetKey("retrieval_quality")
CHECK = "retrieval_is_as_good_as_before"
TOPICS = (
    *("violins", "trumpets", "cellos", "flutes", "oboes", "clarinets", "bassoons", "harps", "timpani", "cymbals"),
    *("tubas", "horns", "pianos", "organs", "guitars", "lutes", "lyres", "banjos", "drums", "gongs", "zithers"),
)


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory) -> Path:
    """The project of the evaluation tests, with one file and one commit for each of more than twenty topics."""
    root: Path = tmp_path_factory.mktemp("nights") / "project"
    with pytest.MonkeyPatch.context() as patch:
        git = git_alone(patch)
        write_project(root, git)
        imported = ("git", "fast-import", "--quiet")
        subprocess.run(imported, cwd=root / "station", check=True, input="".join(map(of_topic, TOPICS)), text=True)
        git(root / "station", "reset", "-q", "--hard")
    index_all(root)
    return root


def of_topic(topic: str) -> str:
    """Return a commit in `git fast-import` format."""
    text = f'def tune() -> None:\n    """Tune the {topic} before the concert."""\n'
    subject = f"Tune the {topic} before the concert"
    head = f"commit refs/heads/main\ncommitter Ada <ada@example.com> 1700000000 +0000\ndata {len(subject)}\n{subject}\n"
    on_top = "from refs/heads/main^0\n" if topic == TOPICS[0] else ""
    return f"{head}{on_top}M 100644 inline src/{topic}.py\ndata {len(text)}\n{text}\n"


class Reversing:
    """Reranker that puts the worst passage first."""

    candidates = 50

    def rerank(self, query: str, passages: Sequence[Passage]) -> list[Scored]:
        return [passage.scored for passage in reversed(passages)]


@pytest.fixture
def root(indexed_once, tmp_path) -> Path:
    folder: Path = tmp_path / "project"
    shutil.copytree(indexed_once, folder)
    return folder


@pytest.fixture
def night(root):
    """Run the nightly job and return its metadata and check."""
    with dg.DagsterInstance.ephemeral() as instance:

        def run() -> tuple[dict[str, dg.MetadataValue], dg.AssetCheckEvaluation]:
            job = build_definitions(root).resolve_job_def("evaluate_retrieval")
            result = job.execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET)
            assert result.success
            (made,) = result.asset_materializations_for_node("retrieval_quality")
            (check,) = result.get_asset_check_evaluations()
            return dict(made.metadata), check

        yield run


def settings(root: Path, text: str) -> None:
    config = root / "docindex.toml"
    config.write_text(f"{config.read_text()}\n[evaluation]\n{text}\n")


def test_a_night_shows_numbers_that_plot_and_tables(night):
    metadata, check = night()

    assert metadata["questions"].value == 4 + len(TOPICS)
    for name in ("hit_1", "hit_5", "hit_10", "mrr", "ndcg_10"):
        low, mean, high = (metadata[f"{name}{end}"].value for end in ("_low", "", "_high"))
        assert 0 <= low <= mean <= high <= 1
    assert metadata["hit_10"].value > 0.9
    assert [row.data["name"] for row in metadata["by_source"].records] == ["git/station"]
    assert {row.data["name"] for row in metadata["by_language"].records} == {"python", "markdown"}
    assert list(metadata["worst"].records[0].data) == ["source", "question", "wanted", "found"]
    assert check.passed
    assert "change" not in metadata


def test_the_next_night_compares_the_same_questions(night):
    night()

    metadata, check = night()

    assert (metadata["change"].value, metadata["compared"].value) == (0.0, 4 + len(TOPICS))
    assert check.passed


def test_a_drop_warns_and_says_of_what(night, root, monkeypatch):
    before, _ = night()
    monkeypatch.setattr(providers, "PROVIDERS", replace(providers.PROVIDERS, ours={"mmr": lambda _: Reversing()}))
    (root / "docindex.toml").write_text((root / "docindex.toml").read_text() + '\n[rerank]\nprovider = "mmr"\n')

    metadata, check = night()

    lost = metadata["ndcg_10"].value - before["ndcg_10"].value
    assert lost < -0.5
    assert metadata["change"].value == pytest.approx(lost, abs=1e-3)
    assert not check.passed
    assert check.severity is dg.AssetCheckSeverity.WARN
    reasons = {row.data["source"]: row.data["reason"] for row in check.metadata["sources"].records}
    assert set(reasons) == {"all", "git/station"}
    assert reasons["all"].startswith(f"NDCG@10 {metadata['change'].value:+.3f} (")


def test_the_questions_of_users_are_asked_as_well(night, root):
    (root / "mine.csv").write_text("question,path\nwhat moves water to the tank,manual/guide.md\n")
    settings(root, 'file = "mine.csv"')

    metadata, _ = night()

    assert metadata["questions"].value == 5 + len(TOPICS)
    assert {row.data["name"] for row in metadata["by_source"].records} == {"git/station", "library/manual"}


def test_the_sample_is_bounded_by_the_settings(night, root):
    settings(root, "questions = 3")

    assert night()[0]["questions"].value == 3


def test_where_there_is_no_history_there_is_nothing_to_ask(night, root):
    (root / "docindex.toml").write_text('[[source]]\nkind = "library"\npath = "manual"\n')

    metadata, check = night()

    assert metadata["questions"].value == 0
    assert check.passed


def test_before_anything_is_indexed_a_night_does_nothing(night, root):
    shutil.rmtree(root / ".docindex")

    assert night()[0]["questions"].value == 0


def test_what_is_remembered_has_no_word_of_a_question(night, root):
    night()

    remembered = json.loads(Layout(root / ".docindex").evaluation.read_text())
    assert all(len(key) == 16 for key in remembered["ndcg_10"])
    assert "concert" not in json.dumps(remembered)
    assert len(remembered["ndcg_10"]) == 4 + len(TOPICS)


@pytest.mark.parametrize(("text", "asks"), [("", True), ("questions = 0", False)])
def test_the_schedule_asks_for_it_each_night_unless_it_is_switched_off(root, text, asks):
    settings(root, text)
    repository = build_definitions(root).get_repository_def()
    with (
        dg.instance_for_test() as instance,
        dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=datetime(2026, 11, 21, 3, tzinfo=UTC),
            repository_def=repository,
            resources={"project": ProjectResource(root=str(root))},
        ) as context,
    ):
        tick = repository.get_schedule_def("nightly_evaluation").evaluate_tick(context)

    assert bool(tick.run_requests) is asks


def test_runs_of_sources_do_not_wait_for_it(root):
    job = build_definitions(root).resolve_job_def("index_source")

    assert QUALITY not in job.asset_layer.executable_asset_keys
    assert not [key for key in job.asset_layer.asset_graph.asset_check_keys if key.name == CHECK]


def test_machines_that_share_the_stores_do_not_measure(root, monkeypatch):
    monkeypatch.setenv("DOCINDEX_STORAGE__URL", "s3://bucket/prefix")
    repository = build_definitions(root).get_repository_def()

    assert QUALITY not in repository.asset_graph.get_all_asset_keys()
    assert not repository.has_job("evaluate_retrieval")
    assert repository.get_job("index_source")
    assert "nightly_evaluation" not in [schedule.name for schedule in repository.schedule_defs]
