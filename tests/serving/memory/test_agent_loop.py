"""Test of an agent session: one process writes turns, another recalls them, and the code they mention is edited."""

import re
from pathlib import Path

import pytest

from docindex_dagster.core.settings import load_settings
from docindex_dagster.memory.fold import fold
from tests.serving.memory.agents import Call, agent, answer, index_all, write_project

GAUGES = ("pressure", "level", "flow", "torque")
BOUND = ("--domain", "project/plant")


def write_gauges(root: Path, **bodies: str) -> None:
    """Write a module with one function per gauge in `bodies`."""
    text = "\n\n".join(f"def read_{name}(line):\n    return {body}\n" for name, body in bodies.items())
    (root / "docs" / "gauges.py").write_text(text)


def read_gauge(call: Call, turn: int) -> str:
    """Write the agent's and the tool's messages of a turn, and return the fact to recall."""
    name, session = GAUGES[turn % len(GAUGES)], f"shift-{turn // 20}"
    fact = f"reading{turn} is {turn * 37 % 101} bar"
    answer(call, "ingest_message", text=f"What does gauge {turn} say?", session_id=session, role="user")
    text = f"read_{name}() of docs/gauges.py: {fact}\n" + "exit code 0\n" * (turn % 7)
    written = answer(call, "ingest_tool_result", text=text, session_id=session, tool_name="gauge")
    assert f"mentions library/docs gauges.py read_{name}" in written
    return fact


def recalled(call: Call, turn: int) -> str:
    """Return the tool message that best answers what a turn read."""
    return answer(call, "recall", query=f"what is reading{turn}", roles=["tool"], top_k=1)


def state_of(call: Call, name: str) -> str:
    """Return the state that recall reports for the function mentioned in a gauge's messages."""
    found = answer(call, "recall", query=f"read_{name} bar", roles=["tool"], top_k=1)
    return re.search(rf"mentions library/docs gauges\.py read_{name}: (.+)", found)[1]


@pytest.mark.parametrize("turns", [8, pytest.param(500, marks=pytest.mark.slow)])
def test_what_one_process_writes_another_recalls_and_says_what_became_of_the_code(tmp_path, turns):
    root = write_project(tmp_path)
    write_gauges(root, pressure="line.bar", level="line.metres", flow="line.litres", torque="line.newtons")
    index_all(root)

    with agent(root, *BOUND) as writer, agent(root, *BOUND) as reader:
        facts = []
        for turn in range(turns):
            facts.append(read_gauge(writer, turn))
            if turn == turns // 2:
                fold(load_settings(root), "project/plant")
            assert facts[-1] in recalled(reader, turn), f"turn {turn}"

        assert {name: state_of(reader, name) for name in GAUGES} == {
            "pressure": "fresh, library/docs gauges.py:1",
            "level": "fresh, library/docs gauges.py:5",
            "flow": "fresh, library/docs gauges.py:9",
            "torque": "fresh, library/docs gauges.py:13",
        }

        write_gauges(root, pressure="line.bar", level="line.metres * 1000")
        (root / "docs" / "more.py").write_text("def read_flow(line):\n    return line.litres\n")
        assert state_of(reader, "level") == "changed, library/docs gauges.py, edited since it was indexed"

        index_all(root)
        assert {name: state_of(reader, name) for name in GAUGES} == {
            "pressure": "fresh, library/docs gauges.py:1",
            "level": "changed, library/docs gauges.py:5",
            "flow": "moved, now library/docs more.py:1 read_flow",
            "torque": "gone",
        }
        for turn, fact in enumerate(facts):
            assert fact in recalled(reader, turn), f"turn {turn}"
        assert f"project/plant (read and write): {2 * turns:,} messages in" in answer(reader, "memory_status")
