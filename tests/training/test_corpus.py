"""Training corpus of the static model: permissively licensed repositories outside all benchmarks. Training pairs."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from training.licences import ALLOWED, Entry, named_by, out_of_order, problems_of, read_corpus
from training.mirrors import check_out, mirror_of, read_exclusions
from training.pairs import DOCUMENTS, SCHEMA, pairs_of
from training.sample import read_pairs

FOLDER = Path(__file__).parent.parent.parent / "training"
CORPUS = read_corpus(FOLDER / "corpus.csv")
NEVER = (FOLDER / "never.txt").read_text().split()

MODULE = '''\
"""Sessions of users."""

import time


class SessionStore:
    """SessionStore keeps the sessions of users that are signed in."""

    def purge(self, now):
        """Remove all sessions that have expired.

        Args:
            now: seconds since the epoch
        """
        for key in [key for key, session in self.sessions.items() if session.expires < now]:
            del self.sessions[key]

    def renew(self, key):
        session = self.sessions[key]
        # a session that was used lives for another hour
        session.expires = time.time() + 3600
        session.uses += 1
        return session
'''
PAGE = """\
# Deploying sessions

## Behind a proxy

The proxy must pass on the address of the client in a header. Without it every session seems to come from the proxy.

Set `trusted_proxies` to the networks that the proxies are in, so that nobody else can forge the header of an address.
"""


# Corpus.


def test_every_licence_is_permissive():
    assert not {entry.repository for entry in CORPUS if not named_by(entry.licence) <= ALLOWED}


def test_no_repository_of_a_benchmark_is_in_the_corpus():
    names = {name.lower() for name in NEVER} | {name.lower().rpartition("/")[2] for name in NEVER}

    assert not [entry.repository for entry in CORPUS if entry.repository.lower() in names]
    assert not [entry.repository for entry in CORPUS if entry.repository.lower().rpartition("/")[2] in names]


def test_each_repository_is_there_once_at_a_whole_revision():
    assert not out_of_order(CORPUS)
    assert {len(entry.revision) for entry in CORPUS} == {40}


def test_what_is_left_out_is_of_the_corpus():
    assert set(read_exclusions(FOLDER / "exclusions.csv")) <= {entry.repository for entry in CORPUS}


def test_a_licence_that_is_not_allowed_is_reported(tmp_path, mirror):
    entry = mirror("GNU GENERAL PUBLIC LICENSE Version 3, 29 June 2007 " + "and so on " * 90)

    assert "LICENSE: GPL is not an allowed licence" in problems_of(entry, tmp_path, NEVER)


# Pairs.


@pytest.fixture
def mirror(tmp_path, git):
    def make(licence: str) -> Entry:
        path = tmp_path / "ada+sessions" / "repo"
        path.mkdir(parents=True)
        git(path, "init", "-q")
        for name, text in {
            "LICENSE": licence,
            "src/store.py": MODULE,
            "docs/deploy.md": PAGE,
            "gpl/a.py": MODULE,
        }.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_text(text)
        git(path, "add", ".")
        git(path, "commit", "-qm", "first")
        return Entry("ada/sessions", git(path, "rev-parse", "HEAD").strip(), "MIT")

    return make


@pytest.fixture
def checkout(tmp_path: Path, mirror: Callable[[str], Entry]) -> Path:
    entry = mirror("MIT")
    target = tmp_path / "checkout"
    check_out(mirror_of(tmp_path, entry), entry.revision, target, ("gpl/",))
    return target


def test_a_checkout_holds_what_is_not_excluded(checkout):
    assert sorted(path.name for path in checkout.rglob("*") if path.is_file()) == ["LICENSE", "deploy.md", "store.py"]


def made(checkout: Path, seeds: int = 20) -> list[dict[str, str]]:
    return [row for seed in range(seeds) for row in pairs_of(checkout, "ada/sessions", seed).to_pylist()]


def test_pairs_are_of_code_and_of_documents(checkout):
    kinds = Counter((row["kind"], row["language"]) for row in made(checkout))

    assert {("docstring", "python"), ("name", "python"), ("comment", "python")} <= set(kinds)
    assert {("heading", DOCUMENTS), ("sentence", DOCUMENTS)} <= set(kinds)


def test_a_query_is_taken_out_of_its_passage(checkout):
    for row in made(checkout):
        if row["kind"] in {"docstring", "comment", "sentence"}:
            assert row["query"] not in " ".join(row["passage"].split())
        if row["kind"] == "name" and row["query"] == "session store":
            assert "SessionStore" not in row["passage"]


def test_a_docstring_is_asked_without_what_it_describes_and_without_its_parameters(checkout):
    queries = {row["query"] for row in made(checkout) if row["kind"] == "docstring"}

    assert "keeps the sessions of users that are signed in." in queries
    assert "Remove all sessions that have expired." in queries
    assert not [query for query in queries if "epoch" in query]


def test_the_same_seed_gives_the_same_pairs(checkout):
    assert pairs_of(checkout, "ada/sessions", 3).equals(pairs_of(checkout, "ada/sessions", 3))


def test_pairs_that_repeat_a_benchmark_are_left_out(tmp_path, checkout):
    pairs = pairs_of(checkout, "ada/sessions", 0)
    (tmp_path / "pairs").mkdir()
    pq.write_table(pairs, tmp_path / "pairs" / "ada+sessions.parquet")
    pq.write_table(SCHEMA.empty_table(), tmp_path / "pairs" / "none+nothing.parquet")
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "copied.py").write_text(MODULE)

    everything, clean = (read_pairs(tmp_path / "pairs", 0, found) for found in ((), [tmp_path / "bench"]))

    assert len(everything) == len(pairs)
    assert set(everything["repository"].to_pylist()) == {"ada/sessions"}
    kinds = set(zip(clean["kind"].to_pylist(), clean["language"].to_pylist(), strict=True))
    assert ("heading", DOCUMENTS) in kinds
    assert ("docstring", "python") not in kinds
