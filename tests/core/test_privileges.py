"""Lists every setting with whether it needs trust, so that each new setting must be classified."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from docindex_dagster.core import git_folders
from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.privileges import Privileged, privileges_of, without_ignored
from docindex_dagster.core.settings import Settings, check_settings

NEEDS_TRUST = """
access.group chunking.chunkers discovery.secrets embedding.base_url embedding.model embedding.provider evaluation.file
graph.concepts llm.base_url llm.model llm.provider llm.question_tokens memory rerank.model rerank.provider rerank.url
retention.days serve.hosts serve.trace_texts storage summaries.budget_tokens summaries.enabled
"""
HARMLESS = """
chunking.code_chars chunking.max_tokens chunking.min_tokens chunking.overlap_tokens chunking.parse_timeout_s
chunking.target_tokens chunking.workers discovery.max_file_bytes embedding.batch_size embedding.concurrency
embedding.device embedding.dimensions embedding.price embedding.requests_per_minute embedding.retries
embedding.timeout_s embedding.tokens_per_minute evaluation.collect evaluation.commits evaluation.questions graph.code
graph.enabled graph.file_timeout_s graph.max_triples_per_chunk graph.timeout_s history.commits llm.concurrency
llm.context_tokens llm.max_answer_tokens llm.price_in llm.price_out llm.question_dollars
llm.retries llm.timeout_s rerank.candidates rerank.relevance rerank.timeout_s rerank.weight
schedule.max_age_hours schedule.nightly schedule.remote_interval_s schedule.timezone schedule.verify
search.candidates search.default_source search.look_s search.top_k serve.concurrency serve.max_body_bytes serve.queue
summaries.max_tokens summaries.min_chars summaries.source_types
"""
# Settings that come from the environment alone, or are decided per table.
ELSEWHERE = {
    "root",
    "home",
    "source",
    "alerts.webhook",
    "embedding.api_key",
    "llm.api_key",
    "rerank.api_key",
    "serve.token",
}


def _settings(model: type[BaseModel], prefix: str = "") -> Iterator[tuple[str, bool]]:
    for name, field in model.model_fields.items():
        is_privileged = any(isinstance(mark, Privileged) for mark in field.metadata)
        section = field.annotation
        if not is_privileged and isinstance(section, type) and issubclass(section, BaseModel):
            yield from _settings(section, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", is_privileged


def test_each_setting_is_known_to_need_trust_or_not():
    found = dict(_settings(Settings))

    assert {name for name, is_privileged in found.items() if is_privileged} == set(NEEDS_TRUST.split())
    assert {name for name, is_privileged in found.items() if not is_privileged} - ELSEWHERE == set(HARMLESS.split())


@pytest.mark.parametrize(
    ("values", "names"),
    [
        ({"embedding": {"provider": "static"}}, []),
        ({"embedding": {"provider": "static", "batch_size": 3}}, []),
        ({"embedding": {"provider": "minilm"}}, ["embedding.provider"]),
        ({"embedding": {"provider": "openai"}}, ["embedding.provider"]),
        ({"embedding": {"base_url": "https://x.example/v1"}}, ["embedding.base_url"]),
        ({"discovery": {"secrets": "skip"}}, []),
        ({"summaries": {"enabled": False}}, []),
        ({"summaries": {"budget_tokens": 900_000}, "llm": {"question_tokens": 0}}, []),
        ({"summaries": {"budget_tokens": 1_000_001}}, ["summaries.budget_tokens"]),
        ({"llm": {"question_tokens": "200001"}}, ["llm.question_tokens"]),
        ({"retention": {"days": 30}}, []),
        ({"retention": {"days": 29}}, ["retention.days"]),
        ({"summaries": {"enabled": "true"}}, ["summaries.enabled"]),
        ({"chunking": {"chunkers": {"*.feature": "lines"}}}, []),
        ({"chunking": {"chunkers": {"*.feature": "lines", "*": "theirs"}}}, ["chunking.chunkers"]),
        ({"memory": {"per_second": 1}}, ["memory"]),
        ({"storage": {"url": "s3://bucket/prefix"}}, ["storage"]),
        ({"serve": {"hosts": ["evil.example"], "queue": 3}}, ["serve.hosts"]),
        ({"embedding": "static"}, []),  # rejected by its value
    ],
)
def test_a_value_needs_trust_unless_it_stays_on_this_machine(tmp_path, values, names):
    asked = privileges_of(Settings, tmp_path, values)

    assert [privilege.name for privilege in asked] == names
    assert privileges_of(Settings, tmp_path, without_ignored(Settings, tmp_path, values, asked)) == []


def test_what_is_left_are_settings_that_can_be_used(tmp_path):
    values = {
        "llm": {"provider": "openai", "model": "m", "timeout_s": 5},
        "summaries": {"enabled": True, "max_tokens": 50},
        "rerank": {"provider": "remote", "url": "https://x.example", "weight": 0.1},
        "embedding": {"provider": "openai", "model": "m", "dimensions": 64},
    }
    kept = check_settings(
        tmp_path, without_ignored(Settings, tmp_path, values, privileges_of(Settings, tmp_path, values))
    )

    assert (kept.llm.provider, kept.llm.timeout_s) == ("none", 5)
    assert (kept.summaries.enabled, kept.summaries.max_tokens) == (False, 50)
    assert (kept.rerank.provider, kept.rerank.weight) == ("none", 0.1)
    assert (kept.embedding.provider, kept.embedding.base_url) == ("static", None)


def test_settings_are_trusted_together_and_sources_one_by_one(tmp_path):
    table = {"kind": "git", "url": "https://x.example/a"}
    first = {"embedding": {"provider": "openai"}, "llm": {"provider": "openai", "model": "m"}, "source": [table]}
    second = {**first, "llm": {"provider": "openai", "model": "n"}}
    before, after = (privileges_of(Settings, tmp_path, values) for values in (first, second))

    assert set(before) & set(after) == {privilege for privilege in before if privilege.name == "source"}


@pytest.mark.parametrize(
    ("table", "needs_trust"),
    [
        ({"path": "."}, False),
        ({"path": "docs", "submodules": True}, True),
        ({"path": "missing"}, False),
        ({"path": ".."}, True),
        ({"path": "docs/../../other"}, True),
        ({"path": "~"}, True),
        ({"path": "/etc"}, True),
        ({"path": "out"}, True),
        ({"path": "folders/{library}"}, True),
        ({"path": ".", "branch": "main"}, True),
        ({"path": ".", "branches": ["main"]}, True),
        ({"url": "https://x.example/a"}, True),
        ({"url": "", "path": "."}, True),
    ],
)
def test_a_source_needs_trust_unless_it_is_a_folder_of_the_checkout(tmp_path, table, needs_trust):
    root = tmp_path / "checkout"
    (root / "folders").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    (root / "docs").mkdir()
    (root / "out").symlink_to(tmp_path / "other")
    (root / "folders" / "evil").symlink_to(tmp_path / "other")

    asked = privileges_of(Settings, root, {"source": [{"kind": "git", **table}]})

    assert bool(asked) == needs_trust


def _link(place: Path, target: Path) -> None:
    place.rename(place.with_name(f"{place.name}-aside"))
    place.symlink_to(target)


def test_a_git_folder_that_cannot_be_listed_is_refused_as_its_links_are_not_known(tmp_path, git, monkeypatch):
    git(tmp_path, "init")
    scandir = os.scandir

    def listed(folder: str):
        if folder.endswith("/.git/refs"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", listed)

    with pytest.raises(SourceError, match=r"refs, which may contain symbolic links; make it readable"):
        git_folders.external_references(tmp_path)
    assert privileges_of(Settings, tmp_path, {"source": [{"kind": "git", "path": "."}]})[0].name == "source"


def _borrow_in_another_way(how: str, root: Path, other: Path) -> None:
    own = root / ".git"
    match how:
        case "a link that stays inside":
            _link(own / "refs", root / "refs")
        case "a link in a folder that is named like one of git's":
            (own / "refs/heads/logs").mkdir()
            (own / "refs/heads/logs/all").symlink_to(other)
        case "a link in a folder that is named like one of loose objects":
            (own / "refs/heads/objects/ab").mkdir(parents=True)
            (own / "refs/heads/objects/ab/all").symlink_to(other)
        case "a link for git-lfs":
            (own / "lfs/objects/ab").mkdir(parents=True)
            (own / "lfs/objects/ab/cd").symlink_to(other)
        case "a bare repository":
            own.rename(root / "inner")
            for part in (root / "inner").iterdir():
                part.rename(root / part.name)
            (root / "commondir").write_text(f"{other}\n")


def _borrow(how: str, root: Path, other: Path) -> None:
    """Make the repository in `root` read from `other` through a git mechanism."""
    own = root / ".git"
    match how:
        case "a link":
            _link(own / "objects", other / "objects")
        case "a nested link":
            _link(own / "refs" / "heads", other / "refs" / "heads")
        case "an alternate":
            (own / "objects" / "info" / "alternates").write_text(f"{other}/objects\n")
        case "an alternate beside a NUL":
            (own / "objects" / "info" / "alternates").write_bytes(b"%b/objects\nx\0y\n" % bytes(other))
        case "a FIFO in its place":
            os.mkfifo(own / "objects" / "info" / "alternates")
        case "gitdir":
            own.rename(root / "inner")
            own.write_text("gitdir: inner\n")
            _link(root / "inner" / "objects", other / "objects")
        case "commondir":
            (own / "commondir").write_text("../common\n")
            (root / "common").mkdir()
            (root / "common" / "objects").symlink_to(other / "objects")
        case _:
            _borrow_in_another_way(how, root, other)


@pytest.mark.parametrize(
    "how",
    [
        "a link",
        "a nested link",
        "an alternate",
        "an alternate beside a NUL",
        "a FIFO in its place",
        "gitdir",
        "commondir",
        "a link that stays inside",
        "a link in a folder that is named like one of git's",
        "a link in a folder that is named like one of loose objects",
        "a link for git-lfs",
        "a bare repository",
    ],
)
def test_a_repository_that_borrows_from_another_one_needs_trust(tmp_path, git, how):
    other, root = tmp_path / "other", tmp_path / "checkout"
    for folder in (other, root):
        folder.mkdir()
        git(folder, "init")
    source = {"source": [{"kind": "git", "path": "."}]}
    assert privileges_of(Settings, root, source) == []
    _borrow(how, root, other / ".git")
    git_folders._scans.clear()

    (asked,) = privileges_of(Settings, root, source)
    assert "reads" in asked.value


def test_the_users_home_needs_trust_even_as_a_project(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    (tmp_path / "user").mkdir()

    for root in (tmp_path, tmp_path / "user"):
        assert privileges_of(Settings, root, {"source": [{"kind": "library", "path": "."}]})


def test_white_space_at_the_end_of_a_git_folder_belongs_to_its_name(tmp_path):
    (tmp_path / ".git").write_text("gitdir: inner \n")

    assert git_folders.git_folder(tmp_path) == tmp_path / "inner "
