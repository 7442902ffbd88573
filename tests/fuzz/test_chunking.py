"""Real files with all kinds of damage pass through the parsing worker without a crash, a hang, or a lost byte."""

import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from docindex_dagster.chunking.chunker import ChunkOptions, Sizes
from docindex_dagster.chunking.pool import chunk_in_workers
from docindex_dagster.chunking.rows import FileJob
from docindex_dagster.code.languages import LANGUAGES, has_symbols
from docindex_dagster.core.hashing import digest
from docindex_dagster.core.tokenizer import count_tokens
from docindex_dagster.sources.classify import classify
from docindex_dagster.sources.text import read_document
from tests.pdfs import HOSTILE

pytestmark = pytest.mark.fuzz

SECONDS = float(os.environ.get("DOCINDEX_TEST_SECONDS") or 600)
SEED = int(os.environ.get("DOCINDEX_TEST_SEED") or time.time())
TIME_OUT_S = 10
ENDINGS = ["md", "mdx", "rst", "html", "adoc", "ipynb", "txt", "pdf", "css", "ml", "json"]
ROUND = 300  # examples
FIXTURES = Path(__file__).parent.parent / "fixtures"
# Formats whose text is that of the file. For other formats, the text is extracted.
KEPT_AS_IT_IS = {"code", "markdown", "text", "asciidoc"}
WHITE = re.compile(r"\s{9,}")  # belongs to the neighboring text, whatever its length
SIZES = (Sizes(), Sizes(target=30, overlap=8, maximum=60, minimum=4))

TOKENS = [
    *(b"(", b")", b"{", b"}", b"[", b"]", b"<", b">", b"/>", b'"', b"'", b"`", b"```\n", b'"""', b"'''", b"/*", b"*/"),
    *(b"#", b"//", b"--", b"\\", b";", b":", b"::", b"=>", b"->", b"@", b"$", b"${", b"%", b"=begin\n", b"=end\n"),
    *(
        b"\n",
        b"\r\n",
        b"\r",
        b"\n\n\n",
        b"\t",
        b" ",
        b"\x00",
        b"\xff",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"\xed\xa0\x80",
    ),
    *(
        b"---\n",
        b"===\n",
        b"# ",
        b"* ",
        b"1. ",
        b"| a | b |\n",
        b"> ",
        b".. note::\n\n   ",
        b".. _x:\n",
        b"|x|",
        b":a:`b`",
    ),
    *(
        b"<div>",
        b"</div>",
        b"<!--",
        b"-->",
        b"import a from 'b'\n",
        b"export const a = {",
        b"{/*",
        b"*/}",
        b"$$",
        b":::\n",
    ),
    *(
        b"def f():\n",
        b"class A {",
        b"function f(",
        b"if ",
        b"else",
        b"end\n",
        b"#if X\n",
        b"#endif\n",
        b"a.",
        b"f()",
        b"async ",
    ),
    *("é".encode(), "漢".encode(), "\u202e".encode(), "😀".encode(), "\u0301".encode(), "x".encode("utf-16")),
]


@dataclass(frozen=True)
class Damaged:
    """A damaged file. Its name determines its format."""

    name: str
    data: bytes

    def __repr__(self) -> str:
        return f"{self.name}: {self.data!r}"


def originals() -> Iterator[tuple[str, bytes]]:
    yield from ((f"{name}.pdf", data) for name, data in HOSTILE.items() if len(data) < 100_000)
    for path in sorted(FIXTURES.glob("*/*")):
        if path.is_file() and path.suffix != ".outline":
            yield path.name, path.read_bytes()


def edited(data: bytes, edit: tuple[str, float, float, bytes, int]) -> bytes:
    kind, place, length, token, times = edit
    start = int(place * len(data))
    end = min(len(data), start + int(length**3 * len(data)) + 1)
    match kind:
        case "delete":
            return data[:start] + data[end:]
        case "repeat":
            return data[:end] + data[start:end] * min(times, 1 + (64 << 10) // max(end - start, 1)) + data[end:]
        case "insert":
            return data[:start] + token * times + data[start:]
        case "replace":
            return data[:start] + token + data[end:]
        case "move":
            rest = data[:start] + data[end:]
            at = int(length * len(rest))
            return rest[:at] + data[start:end] + rest[at:]
        case _:
            return data[:start]


EDITS = st.tuples(
    st.sampled_from(["delete", "repeat", "insert", "replace", "move", "truncate"]),
    st.floats(0, 1),
    st.floats(0, 1),
    st.sampled_from(TOKENS) | st.binary(max_size=8),
    st.sampled_from([1, 1, 2, 3, 50, 2000]),
)


@st.composite
def damaged(draw: st.DrawFn) -> Damaged:
    name, data = draw(st.sampled_from([*originals()]))
    if draw(st.integers(0, 9)) == 0:  # use the extension of another format
        name = f"file.{draw(st.sampled_from(ENDINGS))}"
    for edit in draw(st.lists(EDITS, min_size=1, max_size=8)):
        data = edited(data, edit)
    return Damaged(name, data)


def check(file: Damaged, sizes: Sizes, folder: Path, slow: Path) -> None:
    kind = classify(file.name.encode(), file.data)
    path = folder / file.name
    path.write_bytes(file.data)
    job = FileJob(
        "library/x",
        "library",
        file.name,
        digest(file.data),
        kind.source_type,
        kind.language,
        commit=None,
        is_uncommitted=False,
        root=folder,
        chunker=kind.loader,
        size=len(file.data),
        max_file_bytes=len(file.data),
    )
    options = ChunkOptions(sizes, code_chars=1500)
    ((_, result),) = chunk_in_workers([job], options, workers=1, timeout_s=TIME_OUT_S)
    rows = result.rows.to_pylist()
    text = read_document(folder, file.name, job.max_file_bytes)[0].text
    path.unlink()

    assert not result.left_out
    fallbacks = {row["fallback"] or "" for row in rows}
    assert not any(reason.startswith("crash") for reason in fallbacks)
    if any(reason.startswith("time-out") for reason in fallbacks):  # some grammars are slow on random tokens
        (slow / f"{len([*slow.iterdir()])}-{file.name}").write_bytes(file.data)
        return
    if kind.loader in KEPT_AS_IT_IS:
        assert fallbacks <= {""}
        end, data = 0, text.encode()
        for row in rows:
            assert row["start_byte"] <= end < row["end_byte"]
            assert data[row["start_byte"] : row["end_byte"]] == row["text"].encode()
            end = row["end_byte"]
        assert end == len(data) or (end == 0 and not text.strip())
    if kind.loader == "pdf":
        assert rows
    if kind.loader != "code":
        assert all(count <= sizes.maximum for count in count_tokens([WHITE.sub("\n", row["text"]) for row in rows]))
    assert all(row["text"].encode().strip() for row in rows)


def test_every_language_with_symbols_takes_part():
    languages = {classify(name.encode(), data).language for name, data in originals()}

    assert {language for language in LANGUAGES if has_symbols(language)} <= languages


def test_damaged_files_are_cut_without_a_crash_a_hang_or_a_lost_byte(tmp_path):
    examples = 0
    slow = tmp_path / "slow"
    slow.mkdir()

    @given(damaged(), st.sampled_from(SIZES))
    @settings(
        max_examples=ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    def round_of_examples(file: Damaged, sizes: Sizes) -> None:
        nonlocal examples
        examples += 1
        check(file, sizes, tmp_path, slow)

    started, number = time.monotonic(), SEED
    while time.monotonic() - started < SECONDS:
        seed(number)(round_of_examples)()
        number += 1
    timed_out = [*slow.iterdir()]
    sys.stdout.write(f"\n{examples} damaged files in {time.monotonic() - started:.0f} s, from seed {SEED}; ")
    sys.stdout.write(f"cut as text after {TIME_OUT_S} s: {len(timed_out)} {slow if timed_out else ''}\n")
    assert len(timed_out) <= examples / 100
