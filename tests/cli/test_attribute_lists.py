"""Searches neither match nor show Markdown attribute lists; the file keeps them."""

import json
from pathlib import Path

PAGE = "# Tanks\n\n[Buy a cistern](shop.md){ .md-button--primary } here.\n{: .zanzibar }\n\n```\ntank { .zebra }\n```\n"


def test_attribute_lists_are_no_text_but_in_exact_searches(run):
    Path("manual/tanks.md").write_text(PAGE)
    assert run("index", "manual").code == 0

    (hit,) = json.loads(run("search", "cistern here", "-k", "1", "--json").out)
    assert hit["snippet"]["text"].split("\n")[0] == "[Buy a cistern](shop.md) here."
    assert "{ .md-button--primary }" in hit["text"]
    assert hit["column"] == PAGE.split("\n")[2].index("cistern") + 1
    shown = hit["snippet"]["text"]
    assert [shown[start:end] for start, end in hit["snippet"]["highlights"]] == ["cistern", "here"]

    assert json.loads(run("search", "zanzibar", "-m", "bm25", "--json").out) == []
    assert json.loads(run("search", "zebra", "-m", "bm25", "--json").out)[0]["path"] == "tanks.md"
    assert run("search", "-m", "literal", "zanzibar").out == "manual/tanks.md:4:5:{: .zanzibar }\n"
