"""Export: each message in a line of JSON."""

from orjson import loads

from docindex_dagster.memory import export
from docindex_dagster.memory.message import Message
from tests.memory.logs import another, message, transcript, write


def test_export_gives_each_message_in_its_order(log):
    write(log, "a", "b", "a")
    write(another(log), "c")
    log.forget("message", message("b").id)
    messages = transcript(log).messages()

    exported = list(export.lines(messages))

    assert [line.count(b"\n") for line in exported] == [1, 1]
    assert [(line["message"]["text"], line["repeats"]) for line in map(loads, exported)] == [("a", 1), ("c", 0)]
    assert Message(**loads(exported[0])["message"] | {"anchors": ()}) == messages[0].message
