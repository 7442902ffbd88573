"""The examples of the page on frameworks run and print the output shown there."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGE = "docs/how-to/use-langchain-llamaindex-or-dspy.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)


def test_every_example_shows_what_it_prints():
    assert len(EXAMPLE.findall(TEXT)) == TEXT.count("```python") == 4


@pytest.mark.integrations
def test_examples_print_what_the_page_says(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    names: dict[str, Any] = {}
    for example in EXAMPLE.finditer(TEXT):
        exec(compile(example["code"], PAGE, "exec"), names)
        assert capsys.readouterr().out == example["printed"], example["code"]
