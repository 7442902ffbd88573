"""Export: each message in a line of JSON."""

from orjson import loads

from docindex_dagster.memory import export
from docindex_dagster.memory.message import Message
from tests.memory.logs import another, message, transcript, write


def test_export_gives_each_message_in_its_order(log):
    write(log, "a", "b", "a")
    write(another(log), "c")
    log.forget("message", message("b").id)

    exported = list(export.lines(export.messages(log)))

    assert [line.count(b"\n") for line in exported] == [1, 1]
    assert [(line["message"]["text"], line["repeats"]) for line in map(loads, exported)] == [("a", 1), ("c", 0)]
    first = transcript(log).messages()[0].message
    assert Message(**loads(exported[0])["message"] | {"anchors": ()}) == first


def test_export_goes_on_when_the_log_is_rewritten_meanwhile(log):
    write(log, *"abcdef")
    exporting = export.messages(log)
    first = [next(exporting).message.text for _ in range(2)]
    log.forget("message", message("d").id)
    log.rewrite(lambda _: True)

    assert first + [each.message.text for each in exporting] == ["a", "b", "c", "e", "f"]


def test_what_is_folded_is_not_exported_even_where_its_segment_stays(log):
    write(log, "folded", "forgotten")
    another(log).forget("message", message("forgotten").id)
    folded = log.cut()
    write(log, "new")
    assert len(log.remove(folded)) == 1  # that of the tombstone

    assert [each.message.text for each in export.messages(log, folded)] == ["new"]
