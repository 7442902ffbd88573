from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from docindex_dagster.chunking.chunker import Draft, FileDrafts, Sizes
from docindex_dagster.chunking.documents import chunk_document
from docindex_dagster.core.tokenizer import TokenCounter, count_tokens

FIXTURES = Path(__file__).parent.parent / "fixtures" / "documents"
LOADERS = ("markdown", "mdx", "rst", "html", "text", "notebook", "asciidoc")
SMALL = Sizes(target=40, overlap=10, maximum=80, minimum=12)


def count_words(texts: Sequence[str]) -> list[int]:
    return [len(text.split()) for text in texts]


def chunk(
    text: str, loader: str = "markdown", sizes: Sizes = SMALL, count: TokenCounter = count_words
) -> tuple[Draft, ...]:
    return chunk_document(text, path="docs/file.md", loader=loader, sizes=sizes, count_tokens=count).drafts


def words(prefix: str, count: int) -> str:
    return " ".join(f"{prefix}{number}" for number in range(count))


def sentences(prefix: str, count: int, length: int = 5) -> str:
    return " ".join(f"{words(f'{prefix}{number}x', length)}." for number in range(count))


def without_overlap(drafts: tuple[Draft, ...]) -> str:
    text, end = b"", 0
    for draft in drafts:
        assert draft.start_byte is not None
        assert draft.end_byte is not None
        assert draft.start_byte <= end
        text += draft.text.encode()[end - draft.start_byte :]
        end = draft.end_byte
    return text.decode()


class TestMetadata:
    def test_each_chunk_knows_its_headings(self):
        body = words("w", 20)
        drafts = chunk(f"# Guide\n\n{body}\n\n## Install\n\n{body}\n\n### Linux\n\n{body}\n\n#### Arch\n\n{body}\n")
        assert [(draft.heading_path, draft.section, draft.subsection) for draft in drafts] == [
            (("Guide",), "Guide", "intro"),
            (("Guide", "Install"), "Guide", "Install"),
            (("Guide", "Install", "Linux"), "Guide", "Linux"),
            (("Guide", "Install", "Linux", "Arch"), "Guide", "Linux"),
        ]
        assert {draft.chunk_type for draft in drafts} == {"section"}

    def test_the_file_name_stands_for_a_missing_h1(self):
        (draft,) = chunk(f"## Install\n\n{words('w', 20)}\n")
        assert (draft.section, draft.subsection) == ("file.md", "Install")

    def test_plain_text_has_no_headings(self):
        (draft,) = chunk("# one\n\ntwo\n", "text")
        assert (draft.chunk_type, draft.heading_path, draft.subsection) == ("text", (), None)
        assert draft.section == "file.md"

    def test_has_code_is_true_of_the_chunks_that_hold_some(self):
        drafts = chunk(f"# A\n\n{words('w', 30)}\n\n## B\n\n```\n{words('c', 30)}\n```\n")
        assert [draft.has_code for draft in drafts] == [False, True]

    def test_a_broken_document_says_why_it_was_read_as_text(self):
        result = chunk_document("{", path="a.ipynb", loader="notebook", sizes=SMALL, count_tokens=count_words)
        assert result.fallback is not None
        assert [draft.chunk_type for draft in result.drafts] == ["text"]

    @pytest.mark.parametrize("loader", LOADERS)
    def test_a_blank_file_has_no_chunks(self, loader):
        assert chunk(" \n\t\n\n", loader) == ()


class TestJoining:
    def test_a_heading_without_text_joins_its_first_child(self):
        drafts = chunk(f"# Guide\n\n## Install\n\n{words('w', 30)}\n\n## Run\n\n{words('w', 30)}\n")
        assert [draft.heading_path for draft in drafts] == [("Guide",), ("Guide", "Run")]

    def test_short_siblings_are_joined_under_their_parent(self):
        short = f"## B\n\n{words('b', 6)}\n\n## C\n\n{words('c', 6)}\n"
        drafts = chunk(f"# A\n\n{words('w', 30)}\n\n{short}\n# D\n\n{words('d', 30)}\n")
        assert [draft.heading_path for draft in drafts] == [("A",), ("A",), ("D",)]
        assert "## B" in drafts[1].text
        assert "## C" in drafts[1].text

    def test_a_short_section_does_not_join_across_its_parent(self):
        text = f"# A\n\n{words('w', 38)}\n\n## B\n\nx y\n\nz\n\n# C\n\n{words('d', 30)}\n"
        assert [draft.heading_path for draft in chunk(text)] == [("A",), ("A", "B"), ("C",)]

    def test_a_joined_chunk_stays_within_the_target(self):
        text = "\n".join(f"## S{number}\n\n{words('w', 9)}\n" for number in range(20))
        assert all(count_words([draft.text])[0] <= SMALL.target for draft in chunk(text))

    def test_a_one_line_leaf_joins_its_full_neighbour(self):
        drafts = chunk(f"# A\n\n{words('w', 38)}\n\n## B\n\none line\n\n# C\n\n{words('d', 30)}\n")
        assert [draft.heading_path for draft in drafts] == [("A",), ("C",)]
        assert drafts[0].text.endswith("## B\n\none line\n\n")

    def test_front_matter_belongs_to_the_first_chunk(self):
        drafts = chunk(f"---\ntitle: T\n---\n\n# A\n\n{words('w', 20)}\n")
        assert [(draft.heading_path, draft.start_byte) for draft in drafts] == [(("A",), 0)]


class TestSplitting:
    def test_a_long_section_is_numbered_and_points_to_its_first_part(self):
        paragraphs = "\n\n".join(words(f"p{number}x", 15) for number in range(8))
        drafts = chunk(f"# A\n\n{words('w', 20)}\n\n## B\n\n{paragraphs}\n\n## C\n\n{words('c', 20)}\n")
        assert [draft.part_number for draft in drafts] == [None, 1, 2, 3, 4, None]
        assert [draft.parent_index for draft in drafts] == [None, None, 1, 1, 1, None]
        assert {draft.heading_path for draft in drafts[1:5]} == {("A", "B")}

    def test_parts_end_where_paragraphs_do(self):
        text = "# A\n\n" + "\n\n".join(words(f"p{number}x", 12) for number in range(9)) + "\n"
        assert all(draft.text.rstrip().endswith("x11") for draft in chunk(text))

    def test_the_last_part_is_not_a_scrap(self):
        text = "# A\n\n" + "\n\n".join(words(f"p{number}x", 9) for number in range(5)) + "\n"
        sizes = [count_words([draft.text])[0] for draft in chunk(text, sizes=Sizes(40, 0, 80, 12))]
        assert min(sizes) >= 12

    def test_a_part_repeats_the_last_sentences_of_the_one_before(self):
        drafts = chunk(f"# A\n\n{sentences('s', 20)}\n")
        assert len(drafts) > 2
        for before, after in pairwise(drafts):
            repeated = before.text.encode()[(after.start_byte or 0) - (before.end_byte or 0) :].decode()
            assert after.text.startswith(repeated)
            assert repeated.split()[-1].endswith(".")
            assert 5 <= len(repeated.split()) <= SMALL.overlap

    def test_a_fence_is_whole_up_to_the_maximum(self):
        fence = f"```py\n{chr(10).join(words(f'l{number}x', 7) for number in range(10))}\n```\n"
        drafts = chunk(f"# A\n\n{words('w', 30)}\n\n{fence}\n{words('v', 30)}\n")
        (holding,) = [draft for draft in drafts if "```" in draft.text]
        assert fence in holding.text

    def test_a_fence_beyond_the_maximum_is_cut_at_lines(self):
        lines = [words(f"l{number}x", 7) for number in range(40)]
        drafts = chunk("# A\n\n```py\n" + "\n".join(lines) + "\n```\n")
        assert len(drafts) > 3
        assert all(draft.text.endswith("\n") for draft in drafts)
        assert all(count_words([draft.text])[0] <= SMALL.maximum for draft in drafts)
        assert all(sum(line in draft.text for draft in drafts) == 1 for line in lines)

    def test_code_is_never_repeated(self):
        fence = "```\n" + words("c", 35) + "\n```\n\n"
        drafts = chunk("# A\n\n" + fence * 3)
        assert [draft.text.count("```") for draft in drafts] == [2, 2, 2]

    def test_what_announces_code_goes_with_it(self):
        fence = f"```\n{words('c', 20)}\n```\n"
        drafts = chunk(f"# A\n\n{words('w', 28)}\n\nFor example:\n\n{fence}\n")
        assert "For example:\n\n```" in drafts[1].text

    def test_prose_without_sentences_is_cut_between_words(self):
        drafts = chunk(words("w", 500), "text")
        assert len(drafts) > 10
        assert all(draft.text.endswith(" ") for draft in drafts[:-1])

    def test_one_endless_word_is_cut_at_characters(self):
        drafts = chunk("x" * 5_000, "text", count=lambda texts: [len(text) for text in texts])
        assert max(len(draft.text) for draft in drafts) <= SMALL.target + SMALL.minimum
        assert without_overlap(drafts) == "x" * 5_000


@pytest.mark.parametrize(
    ("name", "loader"),
    [
        ("guide.md", "markdown"),
        ("tabs.mdx", "mdx"),
        ("api.rst", "rst"),
        ("page.html", "html"),
        ("analysis.ipynb", "notebook"),
        ("notes.txt", "text"),
        ("manual.adoc", "asciidoc"),
    ],
)
@pytest.mark.parametrize("sizes", [SMALL, Sizes()], ids=["small", "default"])
def test_real_documents_keep_every_limit(name, loader, sizes):
    text = (FIXTURES / name).read_text(encoding="utf-8")
    result = chunk_document(text, path=name, loader=loader, sizes=sizes, count_tokens=count_tokens)
    assert result.drafts
    assert result.fallback is None
    assert max(count_tokens([draft.text for draft in result.drafts])) <= sizes.maximum
    lines = [draft.start_line for draft in result.drafts]
    assert lines == sorted(lines)
    assert all(1 <= draft.start_line <= draft.end_line <= text.count("\n") + 1 for draft in result.drafts)


def test_default_sizes_keep_a_short_page_together():
    text = (FIXTURES / "notes.txt").read_text(encoding="utf-8")
    (draft,) = chunk(text, "text", Sizes(), count_tokens)
    assert draft.text == text


def test_sizes_that_cannot_be_kept_are_refused():
    with pytest.raises(ValueError, match="overlap < target"):
        Sizes(target=10, overlap=10)


PROSE = st.text(st.sampled_from("abc .!?\n\n\t\ré漢😀"), min_size=1, max_size=60)
LINES = st.sampled_from(
    ["# A\n", "## B\n", "### C\n", "text\n", "\n", "```\n", "- item\n", "| a | b |\n|---|---|\n", "Title\n===\n"]
)
DOCUMENTS = st.lists(
    st.one_of(PROSE, LINES, st.integers(1, 90).map(lambda count: words("w", count) + "\n")), max_size=25
)
TINY = st.builds(
    lambda target, overlap, above, below: Sizes(target, overlap % target, target + above, below % (target + 1)),
    st.integers(1, 40),
    st.integers(0, 40),
    st.integers(0, 40),
    st.integers(0, 40),
)


@given(DOCUMENTS.map("".join), st.sampled_from(["markdown", "text", "asciidoc"]), TINY)
@settings(max_examples=300, deadline=None)
def test_nothing_is_lost_and_every_chunk_is_the_span_it_names(text, loader, sizes):
    drafts = chunk(text, loader, sizes)
    data = text.encode()
    if not text.strip():
        assert drafts == ()
        return
    assert without_overlap(drafts) == text
    for draft in drafts:
        assert data[draft.start_byte : draft.end_byte].decode() == draft.text
        assert draft.start_line == 1 + data[: draft.start_byte].count(b"\n")
        assert draft.end_line == draft.start_line + draft.text[:-1].count("\n")
        assert draft.text.strip()


def test_a_term_that_moves_to_the_next_chunk_leaves_no_blank_chunk():
    drafts = chunk("a\t?\r\t?", loader="rst", sizes=Sizes(1, 0, 2, 1), count=count_words)

    assert [draft.text.split() for draft in drafts] == [["a"], ["?"], ["?"]]


@given(DOCUMENTS.map("".join), st.sampled_from(LOADERS), TINY)
@settings(max_examples=300, deadline=None)
def test_chunks_keep_the_maximum_and_the_order_whatever_the_file(text, loader, sizes):
    def build() -> FileDrafts:
        return chunk_document(text, path="file", loader=loader, sizes=sizes, count_tokens=count_words)

    drafts = build().drafts
    assert all(count_words([draft.text])[0] <= sizes.maximum for draft in drafts)
    lines = [draft.start_line for draft in drafts]
    assert lines == sorted(lines)
    for index, draft in enumerate(drafts):
        assert draft.text.strip()
        if draft.part_number and draft.part_number > 1:
            assert draft.parent_index is not None
            assert drafts[draft.parent_index].part_number == 1
            assert draft.part_number == index - draft.parent_index + 1
    assert build().drafts == drafts


@pytest.mark.parametrize("loader", ["markdown", "text"])
@pytest.mark.parametrize(
    "text",
    ["x" * 2**20, "word " * 200_000, "# a\n" * 30_000, "```\n" + "a\n" * 200_000, "a. " * 200_000, "a" + " " * 2**20],
    ids=["letters", "words", "headings", "code", "sentences", "spaces"],
)
def test_a_huge_file_is_cut_in_moments_and_loses_nothing(text, loader):
    import time

    start = time.perf_counter()
    drafts = chunk(text, loader, Sizes(), lambda texts: [len(text) // 4 for text in texts])
    assert time.perf_counter() - start < 10
    assert without_overlap(drafts) == text


@pytest.mark.parametrize("gap", ["\n" * 2000, " " * 9000])
def test_a_long_gap_makes_no_chunk_of_its_own(gap):
    text = f"{gap}# Title\n\nSome words.{gap}Other words.\n"

    drafts = chunk_document(text, path="a.md", loader="markdown", sizes=Sizes(), count_tokens=count_tokens).drafts

    assert "".join(draft.text for draft in drafts) == text
    assert all(draft.text.strip() for draft in drafts)
