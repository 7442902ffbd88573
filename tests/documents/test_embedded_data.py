"""Embedded `data:` URIs for images and fonts: their bytes are removed from the text, and line numbers stay the same."""

import base64
import json
import random

import pytest

from docindex_dagster.chunking.chunker import Sizes
from docindex_dagster.chunking.documents import chunk_document
from docindex_dagster.core.tokenizer import count_tokens

BYTES = random.Random(42).randbytes(60_000)
PAYLOAD = base64.b64encode(BYTES).decode()
WRAPPED = "\n".join(f"   {PAYLOAD[at : at + 76]}" for at in range(0, 7_600, 76))
ESCAPED = "".join(f"%{byte:02X}" for byte in BYTES[:5_000])
SIZES = Sizes(400, 0, 800, 0)


def notebook(*sources: str) -> str:
    cells = [{"cell_type": "markdown", "metadata": {}, "source": source.splitlines(True)} for source in sources]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1)


TEXTS = {
    "markdown": f"# Guide\n\n![Logo](data:image/png;base64,{PAYLOAD})\n\nThe last paragraph.\n",
    "markdown reference": f"# Guide\n\n![A][a]\n\n[a]: <data:image/png;base64,{PAYLOAD}>\n\nThe last paragraph.\n",
    "markdown html": f'# Guide\n\n<img src="data:font/woff2;charset=utf-8;base64,{PAYLOAD}">\n\nThe last paragraph.\n',
    "mdx": f'# Guide\n\n<Logo src="data:image/png;base64,{PAYLOAD}" />\n\nThe last paragraph.\n',
    "rst": f"Guide\n=====\n\n.. image:: data:image/png;base64,{PAYLOAD}\n\nThe last paragraph.\n",
    "asciidoc": f"= Guide\n\nimage::data:image/png;base64,{PAYLOAD}[]\n\nThe last paragraph.\n",
    "text": f"Guide\n\nicon: data:image/svg+xml,{ESCAPED}\n\nThe last paragraph.\n",
    "text wrapped": f"Guide\n\ndata:image/png;base64,\n{WRAPPED}\n   aGk=\n\nThe last paragraph.\n",
    "notebook": notebook(f"# Guide\n\n![Logo](data:image/png;base64,{PAYLOAD})", "The last paragraph."),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_bytes_of_a_data_uri_are_left_out_and_lines_stay(name):
    text = TEXTS[name]
    drafts = chunk_document(
        text, path="guide", loader=name.partition(" ")[0], sizes=SIZES, count_tokens=count_tokens
    ).drafts
    whole = "\n".join(draft.text for draft in drafts)

    assert len(whole) < 300
    assert PAYLOAD[100:140] not in whole
    assert ESCAPED[90:120] not in whole
    (last,) = [draft for draft in drafts if "The last paragraph." in draft.text]
    line = next(number for number, line in enumerate(text.split("\n"), 1) if "The last paragraph." in line)
    assert last.start_line <= line <= last.end_line
    assert all(draft.start_byte is None for draft in drafts)


@pytest.mark.parametrize(
    "text", ["A `data:image/gif;base64,R0lGODlhAQ==` pixel.\n", "metadata: kept, and data: too.\n"]
)
def test_short_examples_and_other_words_stay_as_they_are(text):
    (draft,) = chunk_document(text, path="a.md", loader="markdown", sizes=SIZES, count_tokens=count_tokens).drafts

    assert draft.text == text
    assert draft.start_byte == 0
