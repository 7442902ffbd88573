"""Adding docindex to an agent and taking it out again, as changes of files; and where it is configured."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docindex_dagster.agents.catalogue import Agent, Scope, Server, agents
from docindex_dagster.agents.editing import TextError
from docindex_dagster.agents.entries import bound_to, servers_in, started_by, with_server, without_server
from docindex_dagster.agents.files import Edit, Plan
from docindex_dagster.agents.rules import has_rules, instruction, with_rules, without_rules
from docindex_dagster.core.errors import AgentError

_UNCHANGED = "; the file is unchanged"


@dataclass(frozen=True, slots=True)
class State:
    """Whether docindex is configured in one place of an agent."""

    agent: str
    scope: Scope
    file: Path
    command: str  # that its entry starts; empty where it has none
    problem: str  # why the file cannot be read; empty where it can
    rules_file: Path | None
    has_rules: bool
    rules_problem: str  # why the file with instructions cannot be read


def add(plan: Plan, agent: Agent, scope: Scope, name: str, server: Server, *, rules: bool) -> None:
    """Plan the entry of a server, and the instruction.

    Raises:
        AgentError: a file cannot be read, or not be edited; the message has the text to put there by hand.
    """
    file = agent.file(scope, plan.folder)
    by_hand = f"{_UNCHANGED}. By hand, this belongs there:\n{entry_text(agent, name, server)}"
    _edit(plan, file, lambda text: with_server(text, agent, name, server), by_hand)
    rules_file = agent.rules(scope, plan.folder)
    if rules and rules_file is not None:
        has_front_matter = rules_file.suffix == ".mdc"
        by_hand = f"{_UNCHANGED}. By hand, this belongs there:\n{instruction(name)}"
        _edit(plan, rules_file, lambda text: with_rules(text, name, has_front_matter=has_front_matter), by_hand)


def remove(plan: Plan, agent: Agent, scope: Scope, name: str) -> Path | None:
    """Plan to take the entry and the instruction out.

    Returns:
        The file whose instruction stays, since another agent that has docindex reads it, too.

    Raises:
        AgentError: a file cannot be read or edited.
    """
    file, rules_file = agent.file(scope, plan.folder), agent.rules(scope, plan.folder)
    by_hand = f"{_UNCHANGED}. By hand, remove {name} from {agent.path}"
    _edit(plan, file, lambda text: text and without_server(text, agent, name), by_hand)
    if rules_file is None or not has_rules(plan.read(rules_file), name):
        return None
    if _is_read_by_another(plan, rules_file, name):
        return rules_file
    _edit(plan, rules_file, lambda text: text and without_rules(text, name), _UNCHANGED)
    return None


def entry_of(plan: Plan, agent: Agent, scope: Scope, name: str) -> Any:
    """The entry of a server, whatever it is; None where there is none that can be read."""
    try:
        return servers_in(plan.read(agent.file(scope, plan.folder)), agent).get(name)
    except (AgentError, TextError):
        return None


def entries_of(plan: Plan, agent: Agent, scope: Scope, name: str) -> tuple[Any, Any]:
    """Return the entry of a server before and after a change that was planned or made; None where there is none."""
    change = plan.change(agent.file(scope, plan.folder))
    return servers_in(change.before, agent).get(name), servers_in(change.after, agent).get(name)


def entry_text(agent: Agent, name: str, server: Server) -> str:
    """The text of a file that has nothing but the entry."""
    return with_server(None, agent, name, server)


def states(folder: Path, name: str) -> Iterator[State]:
    """Where docindex is configured, agent by agent."""
    for agent in agents().values():
        for scope in agent.scopes():
            yield _state(Plan(folder), agent, scope, name)


def _state(plan: Plan, agent: Agent, scope: Scope, name: str) -> State:
    file, rules_file = agent.file(scope, plan.folder), agent.rules(scope, plan.folder)
    command = problem = rules_problem = ""
    has_block = False
    try:
        command = started_by(servers_in(plan.read(file), agent).get(name))
    except (AgentError, TextError) as error:
        problem = str(error)
    try:
        has_block = rules_file is not None and has_rules(plan.read(rules_file), name)
    except AgentError as error:
        rules_problem = str(error)
    return State(agent.name, scope, file, command, problem, rules_file, has_block, rules_problem)


def _edit(plan: Plan, file: Path, edit: Edit, advice: str) -> None:
    def checked(text: str | None) -> str | None:
        try:
            return edit(text)
        except TextError as error:
            raise AgentError(f"{file}: {error}{advice}") from error

    try:
        plan.read(file)
    except AgentError as error:
        raise AgentError(f"{error}{advice}") from error
    plan.edit(file, checked)


def _is_read_by_another(plan: Plan, rules_file: Path, name: str) -> bool:
    """Whether an agent reads a file of instructions that still has docindex, be it the same one in its other file."""
    return any(
        other.rules(scope, plan.folder) == rules_file and _serves(plan, other, scope, name)
        for other in agents().values()
        for scope in other.scopes()
    )


def _serves(plan: Plan, agent: Agent, scope: Scope, name: str) -> bool:
    """Whether an agent has an entry that answers for this project."""
    entry = entry_of(plan, agent, scope, name)
    return entry is not None and bound_to(entry, agent) in {"", str(plan.folder), agent.folder}
