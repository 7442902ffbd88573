"""MDX features beyond `test_load.py`: all prose is kept, and all JSX is removed."""

import time

import pytest

from docindex_dagster.documents.load import load_document
from docindex_dagster.documents.model import Block


def blocks(text: str) -> list[Block]:
    document = load_document(text, "a.mdx", "mdx")
    assert document.fallback is None
    return [block for section in document.sections for block in section.blocks]


def written(text: str) -> str:
    return "".join(block.text for block in blocks(text)).strip()


class TestFences:
    SOURCE = """1. Step

    <Tabs>
      <Tab id="a">
        ```js title="a.js"
        import a from 'a';

        <A x={1} />
    ```
      </Tab>
    </Tabs>

2. Next
"""

    def test_a_fence_deep_in_components_is_one(self):
        item, fence, next_item = blocks(self.SOURCE)
        assert (item.text.strip(), next_item.text.strip()) == ("1. Step", "2. Next")
        assert fence.kind == "code"
        assert "import a from 'a';\n\n        <A x={1} />" in fence.text
        assert (fence.start_line, fence.end_line) == (5, 9)

    def test_its_lines_make_no_heading(self):
        document = load_document("<Tab>\n      ```yaml\n      ---\n      a: 1\n      ```\n</Tab>\n", "a.mdx", "mdx")
        assert [section.heading_path for section in document.sections] == [()]

    def test_headings_may_still_be_underlined(self):
        document = load_document("Title\n=====\n\nPart\ngoes on\n---\n\ntext\n", "a.mdx", "mdx")
        assert [section.heading_path for section in document.sections] == [("Title",), ("Title", "Part goes on")]


class TestComments:
    @pytest.mark.parametrize(
        "comment",
        [
            "<!-- gone -->",
            "{/* gone */}",
            "{ /* gone } gone */ }",
            "<!--\n# Gone\n\n```js\ngone()\n```\n-->",
            "{/*\n```\ngone\n```\n*/}",
        ],
    )
    def test_comments_go_with_all_they_hold(self, comment):
        assert written(f"Before.\n\n{comment}\n\nAfter.") == "Before.\n\nAfter."
        assert "gone" not in written(f"- item\n\n  {comment}\n\n  After.").lower()

    def test_one_that_is_never_closed_is_text(self):
        assert written("Before.\n\n<!-- on and on\n\n# Title") == "Before.\n\n<!-- on and on\n\n# Title"

    def test_code_that_shows_one_stays(self):
        source = "```html\n<!-- a -->\n```\n\n`<!-- b -->`"
        assert written(source) == source


class TestExpressions:
    @pytest.mark.parametrize(
        ("source", "expected"),
        [
            ("one{' '}\ntwo", "one\ntwo"),
            ("{'<b>'} and {\"it's\"}", "<b> and it's"),
            ("the {`{count}`} prop", "the `{count}` prop"),
            ("by {props.user.name}.", "by ."),
            ("## Install {#install-it}", "## Install {#install-it}"),
            ("a {set} stays, {a: 1} too", "a {set} stays, {a: 1} too"),
            ("at \\{id\\}", "at \\{id\\}"),
        ],
    )
    def test_what_is_spelled_out_stays_and_names_of_values_go(self, source, expected):
        assert written(source) == expected


class TestTags:
    def test_a_line_that_begins_with_a_tag_begins_with_its_text(self):
        assert written('- item\n\n<Note type="tip">Read <b>this</b> first.</Note>\n# Title') == (
            "- item\n\nRead this first.\n\n# Title"
        )

    def test_lines_are_those_of_the_file(self):
        source = "import A from 'a'\n\n<A\n  b={{\n    c: 1,\n  }}\n>\n\nText.\n\n</A>\n"
        (block,) = blocks(source)
        assert (block.text.strip(), block.start_line) == ("Text.", 9)


HOSTILE = {
    "open comments": "<!-- a\n" * 50_000,
    "open comments before a closed one": "<!-- a\n" * 20_000 + "```\n-->\n```\n",
    "open comments of code": "{/* a " * 50_000,
    "quotes": "{'a" * 100_000,
    "other quotes": '{"' + "{'" * 100_000,
    "names": "{a.a.a" * 100_000,
    "deep lines": "a\n" + "     b\n" * 20_000,
    "tags on a line": "<b>" * 100_000,
    "text and tags on a line": "a<b>" * 100_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_file_is_read_in_moments(text):
    start = time.perf_counter()
    load_document(text, "a.mdx", "mdx")
    assert time.perf_counter() - start < 10
