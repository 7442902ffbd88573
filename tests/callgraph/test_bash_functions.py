"""Parameter counts of Bash functions, including `shift`."""

import pytest

from docindex_dagster.callgraph.ir import UNKNOWN, Argument, Assignment, CallSite, Definition, FileIR, Name, Union
from docindex_dagster.callgraph.languages.bash import REST, with_parameters

RUN = Definition("run", "run", "function", "run", "", None, is_local=False, line=1, byte=0)
LONG = "9" * 5000


def call(name: str, *given: str, line: int = 1) -> CallSite:
    words = (name, *given)
    return CallSite("call", "run", Name(name), tuple(Argument(Name(word)) for word in words), line, 0)


def test_parameters_have_the_numbers_that_they_are_given_by():
    statements = (call("$1", "$1"), call("shift", "2"), call("$1", "$rest"), call("shift"), call("$2"))

    found = with_parameters(FileIR(definitions=(RUN,), calls=statements))

    assert [one.callee for one in found.calls] == [Name(name) for name in ("$1", "shift", "$3", "shift", "$5")]
    assert [one.value for one in found.calls[0].arguments] == [Name("$1")]
    assert [one.value for one in found.calls[2].arguments] == [Name(f"${number}") for number in range(3, 9)]
    assert [one.name for one in found.parameters] == [f"${number}" for number in range(1, 9)]


def test_an_assignment_is_read_before_what_stands_behind_it():
    bind = Assignment("bind", "run", Name("$name"), Name("$1"), 2, 0)

    found = with_parameters(
        FileIR(
            definitions=(RUN,), calls=(call("shift"), call("shift", line=2)), assignments=(bind, bind._replace(line=3))
        )
    )

    assert [one.value for one in found.assignments] == [Name("$2"), Name("$3")]


@pytest.mark.parametrize("value", [Name(f"${LONG}"), Union((REST, Name(LONG))), UNKNOWN])
def test_numbers_that_are_too_long_are_none_of_parameters(value):
    bind = Assignment("bind", "run", Name("$name"), value, 2, 0)

    found = with_parameters(FileIR(definitions=(RUN,), calls=(call("shift", LONG),), assignments=(bind,)))

    assert Name("$1") not in [one.value for one in found.assignments]
