"""Markdown attribute lists are removed. Braces in prose, formulas and code are kept."""

import pytest

from docindex_dagster.chunking.embedding_text import blank_attribute_lists


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("{ .annotate }", ""),
        ("    {: .note #first }", ""),
        ("{:toc}", ""),
        ("{: data-search-exclude }", ""),
        ("## Recap { #recap }", "## Recap"),
        ("[Start](a.md){ .md-button .md-button--primary }", "[Start](a.md)"),
        ('![Logo](a.png){ width="300" align=left loading=lazy }', "![Logo](a.png)"),
        (":material-check:{ .lg .middle } **Done**", ":material-check: **Done**"),
        ("`range()`{ .python } counts", "`range()` counts"),
        ("A paragraph. {: .lead }", "A paragraph."),
    ],
)
def test_lists_are_left_out_and_lines_and_columns_stay(text, shown):
    found = blank_attribute_lists(text)
    assert " ".join(found.split()) == shown
    assert len(found) == len(text)


@pytest.mark.parametrize(
    "text",
    [
        "GET /users/{user_id}",
        "The set {a, b} and {x=1}",
        r"$\sum_{i=1}^{n} f(x)$",
        "Returns {}",
        "{{ page.title }} {% if x %} {# note #}",
        "Write `{ .annotate }` behind it",
        "Write ``[a](b){ .c }`` there",
        'The answer is {"item_id": 5}',
        "see (a) {b}",
        "```css\n.card { .inner }\n{ .annotate }\n```",
        "~~~~\n```\n{: .x }\n~~~~",
        '``` py title="a.py" { .sh .no-copy }\nx\n```',
    ],
)
def test_other_braces_stay(text):
    assert blank_attribute_lists(text) == text


def test_what_goes_on_from_a_code_block_stays_up_to_its_end():
    assert blank_attribute_lists("{ .a }\n```\n{ .b }", may_start_in_code=True) == "{ .a }\n```\n      "
    assert blank_attribute_lists("{ .a }\n", may_start_in_code=True) == "{ .a }\n"
