"""docs/integrations.md is true: its examples run in the frameworks themselves, and print what the page says."""

import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
SECTION = (ROOT / "docs" / "integrations.md").read_text(encoding="utf-8").partition("## Python frameworks\n")[2]
EXAMPLE = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)


def test_every_example_shows_what_it_prints():
    assert len(EXAMPLE.findall(SECTION)) == SECTION.count("```python") == 4


@pytest.mark.integrations
def test_examples_print_what_the_page_says(root, monkeypatch, capsys):
    monkeypatch.chdir(root)
    names: dict[str, Any] = {}
    for example in EXAMPLE.finditer(SECTION):
        exec(compile(example["code"], "docs/integrations.md", "exec"), names)
        assert capsys.readouterr().out == example["printed"], example["code"]
