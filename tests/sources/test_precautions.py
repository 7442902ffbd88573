"""Estimates of indexing time: each run in benchmarks/README.md falls between the two estimates."""

import re
from collections import Counter
from pathlib import Path

import pytest

from docindex_dagster.sources.folder_checks import SourcePreview

PAGE = (Path(__file__).parents[2] / "benchmarks" / "README.md").read_text(encoding="utf-8")
# Bytes of text at that page's revisions.
TEXT_BYTES = {
    "flask": 1_160_000,
    "gin": 850_000,
    "bat": 6_360_000,
    "prometheus": 16_100_000,
    "abseil-cpp": 11_170_000,
    "typeorm": 11_810_000,
}


@pytest.mark.parametrize("name", TEXT_BYTES)
def test_what_was_measured_lies_between_the_estimates(name):
    files, seconds = re.search(rf"^\| {name} \| \w+ \| (\d+) \| \d+ \| ([\d.]+) ", PAGE, re.MULTILINE).groups()
    outlook = SourcePreview(Counter({("code", "text"): int(files)}), TEXT_BYTES[name])
    least, most = outlook.seconds

    assert least - 1 <= float(seconds) <= most


def test_each_file_is_a_chunk_however_small_it_is():
    assert SourcePreview(Counter({("code", "python"): 60_000}), 60_000).chunks == (60_000, 60_000)
