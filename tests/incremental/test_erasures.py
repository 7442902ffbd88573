"""Tests that no file contains a byte of an erased text, for random texts, edits and slices of tables."""

import os
import random
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from docindex_dagster.core import tables
from docindex_dagster.core.files import remove_tree
from docindex_dagster.core.layout import Layout
from docindex_dagster.embedding.static import StaticEmbedder
from docindex_dagster.memory.fold import fold
from docindex_dagster.stores import maintenance, row_files
from docindex_dagster.stores.doctor import examine
from docindex_dagster.stores.prune import prune
from docindex_dagster.stores.publish import withdraw
from tests.conftest import chunks_of, publish_rows, vectors_of
from tests.memory import talks
from tests.memory.logs import DOMAIN
from tests.traces import contents, hiding_places

ROUNDS = 200
_WINDOW = 8  # consecutive bytes of an erased text that count as a leak
_LETTERS = re.compile(rb"[A-Za-z]{%d,}" % _WINDOW)
_EMBEDDER = StaticEmbedder()
_EDGES = ("!first.py", "~last.py")  # paths that sort before and after all others

Say = Callable[[str], None]


class Texts:
    """Random texts: kept parts are in lower case, erased parts in upper case."""

    def __init__(self, number: int) -> None:
        self.chance = random.Random(number)
        self.secrets: list[str] = []

    def staying(self) -> str:
        return f"{self._letters(8)} {self._letters(self.chance.randint(1, 90))}"

    def erased(self) -> str:
        """Return a text with a secret, which stands alone or before, after or within text that may remain elsewhere."""
        stays, secret = self.staying(), self._letters(self.chance.randint(_WINDOW, 150)).upper()
        self.secrets.append(secret)
        return self.chance.choice([secret, stays + secret, secret + stays, stays[:12] + secret + stays[12:]])

    def _letters(self, number: int) -> str:
        return "".join(self.chance.choices(string.ascii_lowercase, k=number))

    def bytes_left(self, home: Path) -> dict[str, int]:
        """Return the number of leaked bytes in each file or store that contains any."""
        cases = [secret for each in self.secrets for secret in (each.encode(), each.lower().encode())]
        windows = {each[start : start + _WINDOW] for each in cases for start in range(len(each) - _WINDOW + 1)}
        found: Counter[str] = Counter()
        for place, data in contents(home):  # each file comes twice: raw and decoded
            found[place] += sum(_bytes_of(run, windows) for run in _LETTERS.findall(data))
        return {place: number for place, number in found.items() if number}


def _bytes_of(run: bytes, windows: set[bytes]) -> int:
    starts = [start for start in range(len(run) - _WINDOW + 1) if run[start : start + _WINDOW] in windows]
    return len({place for start in starts for place in range(start, start + _WINDOW)})


class Sources:
    """An index of two sources whose files are edited, added and removed."""

    def __init__(self, layout: Layout, texts: Texts) -> None:
        self.layout, self.texts, self.chance = layout, texts, texts.chance
        self.files = {key: self._files() for key in ("library/a", "git/b")}
        self.ids: set[str] = set()

    def _files(self) -> dict[str, list[str]]:
        names = {f"{self.chance.choice('abc')}{number:02}.py" for number in range(self.chance.randint(2, 9))}
        return {name: [self.texts.staying() for _ in range(self.chance.randint(1, 3))] for name in names}

    def publish(self, key: str, beside: Mapping[str, list[str]] = MappingProxyType({})) -> None:
        """Publish a source; its tables are slices of larger ones, with the rows of `beside` around its own."""
        whole = chunks_of({**self.files[key], **beside}, key)
        paths = whole["path"].to_pylist()
        rows = [number for number, path in enumerate(paths) if path in self.files[key]]
        chunks, vectors = (each.slice(rows[0], len(rows)) for each in (whole, vectors_of(whole)))
        tables.write(self.layout.table("chunks", key), tables.stamp(chunks, tables.data_version(chunks)))
        tables.write(self.layout.table("embeddings", key), tables.stamp(vectors, tables.data_version(vectors)))
        publish_rows(self.layout, key, chunks, vectors)

    def leak(self, key: str) -> None:
        """Publish a source with secrets in some of its files, then without them."""
        before = dict(self.files[key])
        leaked = {path: [self.texts.erased()] for path in self._some([*before, *_EDGES])}
        self.files[key] = before | leaked
        self.publish(key)
        self.ids |= ids_of(self.files[key], key)
        edited = {path: [self.texts.staying()] for path in self._some(before)}
        self.files[key] = before | edited
        self.publish(key, {path: texts for path, texts in leaked.items() if path in _EDGES})

    def _some(self, paths: Iterable[str]) -> list[str]:
        return [path for path in paths if self.chance.random() < 0.4]


def ids_of(files: dict[str, list[str]], key: str) -> set[str]:
    chunks = chunks_of(files, key)
    return {value for name in ("chunk_id", "row_hash", "embed_text_hash") for value in chunks[name].to_pylist()}


def erase_of_sources(folder: Path, number: int) -> dict[str, int]:
    """Publish secrets, erase them, and return the leaked bytes."""
    texts = Texts(number)
    sources = Sources(Layout(folder / "home"), texts)
    for key in sources.files:
        sources.publish(key)
    for _ in range(texts.chance.randint(1, 3)):
        sources.leak(texts.chance.choice(sorted(sources.files)))
        if texts.chance.random() < 0.3:
            maintenance.maintain(sources.layout)
    if texts.chance.random() < 0.2:
        withdraw(sources.layout, "git/b")
        sources.ids |= ids_of(sources.files.pop("git/b"), "git/b")

    prune(sources.layout, set(sources.files), erase=True)

    assert list(examine(sources.layout)) == []
    assert hiding_places(sources.layout.home) == []
    gone = sources.ids.difference(*(ids_of(files, key) for key, files in sources.files.items()))
    found = [place for place, data in contents(sources.layout.home) if any(each.encode() in data for each in gone)]
    return texts.bytes_left(sources.layout.home) | dict.fromkeys((f"{place}, ids" for place in found), 32)


def erase_of_memory(folder: Path, number: int) -> dict[str, int]:
    """Write secrets into a memory domain, fold it now and then, forget them, and return the leaked bytes."""
    texts = Texts(number)
    settings = talks.project(folder / "project")
    log, home = talks.log_of(settings), talks.home_of(settings)
    ids = []
    for at in range(1, texts.chance.randint(3, 20)):
        if texts.chance.random() < 0.4:
            ids.append(talks.say(log, texts.erased(), at, texts.chance.choice("ab")))
        else:
            talks.say(log, texts.staying(), at, texts.chance.choice("ab"))
        if texts.chance.random() < 0.15:
            fold(settings, DOMAIN, embedder=_EMBEDDER)
    for each in ids:
        log.forget("message", each)

    fold(settings, DOMAIN, embedder=_EMBEDDER, erase=True)

    found = [place for place, data in contents(home.home) if any(each.encode() in data for each in ids)]
    return texts.bytes_left(home.home) | dict.fromkeys((f"{place}, ids" for place in found), 32)


@pytest.fixture(autouse=True)
def _small_sources_have_several_files_and_packs(monkeypatch):
    monkeypatch.setattr(row_files, "_SMALL", 4)
    monkeypatch.setattr(maintenance, "_MAX_LOOSE", 2)


def erase_in_rounds(folder: Path, number: int, rounds: int) -> int:
    """Run rounds of erasures and return the number of leaked bytes; the first round with a leak fails."""
    total = 0
    for each in range(number, number + rounds):
        for erase in (erase_of_sources, erase_of_memory):
            left = erase(folder / f"{each}", each)
            remove_tree(folder / f"{each}")  # a Tantivy thread may still lock its folder
            assert left == {}, f"round {each}"
            total += sum(left.values())
    return total


def test_random_erasures_leave_no_byte(folder):
    assert erase_in_rounds(folder, 1, rounds=2) == 0


@pytest.mark.states
def test_hundreds_of_random_erasures_leave_no_byte(folder, say: Say):
    number = int(os.environ.get("DOCINDEX_TEST_SEED") or random.SystemRandom().randrange(1 << 32))
    say(f"to repeat these rounds: make test-states DOCINDEX_TEST_SEED={number}")

    left = erase_in_rounds(folder, number, ROUNDS)

    say(f"{ROUNDS} rounds of random erasure: {left} bytes")
