"""The docindex entry in an agent's files: where it is configured, and the edits that add and remove it."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from docindex_dagster.cli.agents.catalogue import Agent, Scope, Server, agents
from docindex_dagster.cli.agents.editing import (
    TextError,
    has_rules,
    instruction,
    is_utf8,
    parsed,
    with_entry,
    with_rules,
    without_rules,
)
from docindex_dagster.cli.agents.files import Edit, Plan
from docindex_dagster.core.errors import AgentError
from docindex_dagster.core.installation import DISTRIBUTION, is_uvx_environment

_UNCHANGED = "; the file was not changed"
ROOT_VARIABLE = "DOCINDEX_ROOT"
_ADDRESSES = ("url", "httpUrl", "serverUrl")  # keys of remote servers, which the agent does not start
_STARTING = ("command", "args")
_PROGRAM = "docindex"
_ARGUMENTS = ("mcp", "--watch")


def _servers_in(text: str | None, agent: Agent) -> Mapping[str, Any]:
    """Return the server entries in a file, by name.

    Raises:
        TextError: The file is invalid, or has no object where the servers should be.
    """
    servers = parsed(text, agent.format).get(agent.path, {})
    if not isinstance(servers, dict):
        raise TextError(f"expected {agent.path} to be an object of servers")
    return servers


def with_server(text: str | None, agent: Agent, name: str, server: Server) -> str:
    """Return a text with the entry of a server. A different entry of that name is replaced completely.

    The old one may set a command, variables or approvals that the user never saw.

    Raises:
        TextError: As for `_servers_in`, or the file cannot be edited.
    """
    new = agent.entry(server)
    if _servers_in(text, agent).get(name) == new:
        return text or ""
    return with_entry(text, agent.format, agent.path, name, new) or ""


def without_server(text: str, agent: Agent, name: str) -> str | None:
    """Return a text without the entry of a server; None if nothing else is left.

    Raises:
        TextError: As for `with_server`.
    """
    servers = _servers_in(text, agent)
    if name not in servers:
        return text
    _check_starts(servers[name])
    return with_entry(text, agent.format, agent.path, name, None)


def command_line_of(entry: Any) -> str:
    """Return an entry's command line, or its address if it has no command; empty if it is not a table."""
    if not isinstance(entry, dict):
        return ""
    address = next((entry[key] for key in _ADDRESSES if key in entry), "?")
    parts = [part for key in _STARTING for part in _as_list(entry.get(key))]
    return " ".join(map(str, parts)) if "command" in entry else str(address)


def replaced_keys(before: Any, after: Any) -> list[str]:
    """Return the keys, such as `env.PATH`, of values in an old entry that a new one lacks, except the command's."""
    kept = dict(_leaves(after))
    return [key for key, value in _leaves(before) if key not in _STARTING and (key not in kept or kept[key] != value)]


def _leaves(data: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of an entry that are not objects, with their keys joined by dots."""
    for key, value in data.items() if isinstance(data, dict) else ():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def bound_project(entry: Any, agent: Agent) -> str:
    """Return the project that an entry names; empty if it names none."""
    variables = entry.get(agent.environment_key) if isinstance(entry, dict) else None
    return str(variables.get(ROOT_VARIABLE, "")) if isinstance(variables, dict) else ""


def _as_list(value: Any) -> list[Any]:
    """Return a command as a list, since agents write a string or a list. Other values are kept as they are."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _check_starts(entry: Any) -> None:
    """Reject an entry that does not start a server, since it is not ours.

    Raises:
        TextError: The entry starts no server.
    """
    if not isinstance(entry, dict) or any(key in entry for key in _ADDRESSES):
        raise TextError("its entry does not start a server: it has a URL, or is not an object")


def server_for(scope: Scope, root: str, command: tuple[str, ...] | None = None) -> Server:
    """Return the server that an entry describes.

    Args:
        scope: a project's file is shared, so paths of this machine are avoided in it if possible.
        root: the project to serve, as the agent reads it; empty for the project of the folder where it is started.
        command: the command that runs `docindex`; None to detect it.

    Raises:
        AgentError: A path is not valid UTF-8, so no agent could read it.
    """
    program, *arguments = command or own_command(is_shared=scope == "project")
    for text in (program, *arguments, root):
        if not is_utf8(text):
            raise AgentError(f"{text!r} is not valid UTF-8, so agents cannot read it")
    return Server(program, (*arguments, *_ARGUMENTS), {ROOT_VARIABLE: root} if root else {})


def own_command(*, is_shared: bool) -> tuple[str, ...]:
    """Return the command that runs this program: its name if shared and permanently on the PATH, otherwise its path.

    If `uvx` runs this program, return a `uvx` command, since a path would be deleted with uv's cache.
    """
    if is_uvx_environment(Path(sys.prefix)):
        return ("uvx", "--from", DISTRIBUTION, _PROGRAM)
    own = Path(sys.executable).with_name(_PROGRAM)
    found = shutil.which(_PROGRAM)
    is_ours = found is not None and own.exists() and own.samefile(found)
    if found is not None and is_ours and not _is_for_now(Path(found)):
        return (_PROGRAM,) if is_shared else (str(Path(found).absolute()),)
    # Agents start it in a checkout. Without -P, Python would import modules from there.
    return (str(own),) if own.exists() else (sys.executable, "-P", "-m", "docindex_dagster.cli")


def _is_for_now(program: Path) -> bool:
    """Return whether a program is on the PATH only because an environment is active in this shell."""
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    return bool(active) and program.is_relative_to(str(active))


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """The configuration of docindex in one scope of an agent."""

    agent: str
    scope: Scope
    file: Path
    command: str  # started by the entry; empty if there is no entry
    problem: str  # why the file cannot be read; empty if it can
    rules_file: Path | None
    has_rules: bool
    rules_problem: str  # why the instruction file cannot be read


def add(plan: Plan, agent: Agent, scope: Scope, name: str, server: Server, *, rules: bool) -> None:
    """Plan the entry of a server, and the instruction.

    Raises:
        TextError: The entry cannot be written.
        AgentError: A file cannot be read or edited. The message contains the text to add by hand.
    """
    file = agent.file(scope, plan.folder)
    by_hand = f"{_UNCHANGED}. Add this by hand:\n{entry_text(agent, name, server)}"
    _edit(plan, file, lambda text: with_server(text, agent, name, server), by_hand)
    rules_file = agent.rules(scope, plan.folder)
    if rules and rules_file is not None:
        has_front_matter = rules_file.suffix == ".mdc"
        by_hand = f"{_UNCHANGED}. Add this by hand:\n{instruction(name)}"
        _edit(plan, rules_file, lambda text: with_rules(text, name, has_front_matter=has_front_matter), by_hand)


def remove(plan: Plan, agent: Agent, scope: Scope, name: str) -> Path | None:
    """Plan the removal of the entry and the instruction.

    Returns:
        The file that keeps the instruction, because another agent that uses docindex reads it too.

    Raises:
        AgentError: A file cannot be read or edited.
    """
    file, rules_file = agent.file(scope, plan.folder), agent.rules(scope, plan.folder)
    by_hand = f"{_UNCHANGED}. Remove {name} from {agent.path} by hand"
    _edit(plan, file, lambda text: text and without_server(text, agent, name), by_hand)
    if rules_file is None or not has_rules(plan.read(rules_file), name):
        return None
    if _is_read_by_another(plan, rules_file, name):
        return rules_file
    _edit(plan, rules_file, lambda text: text and without_rules(text, name), _UNCHANGED)
    return None


def entry_of(plan: Plan, agent: Agent, scope: Scope, name: str) -> Any:
    """Return the entry of a server, whatever its type; None if there is none or it cannot be read."""
    try:
        return _servers_in(plan.read(agent.file(scope, plan.folder)), agent).get(name)
    except (AgentError, TextError):
        return None


def entries_of(plan: Plan, agent: Agent, scope: Scope, name: str) -> tuple[Any, Any]:
    """Return the entry of a server before and after a planned or applied change; None for a missing entry.

    Raises:
        AgentError: The file cannot be read.
        TextError: The file is invalid.
    """
    change = plan.change(agent.file(scope, plan.folder))
    return _servers_in(change.before, agent).get(name), _servers_in(change.after, agent).get(name)


def entry_text(agent: Agent, name: str, server: Server) -> str:
    """Return the text of a file that contains only the entry.

    Raises:
        TextError: The entry cannot be written.
    """
    return with_server(None, agent, name, server)


def states(folder: Path, name: str) -> Iterator[AgentConfig]:
    """Yield the configuration of docindex for each agent and scope."""
    for agent in agents().values():
        for scope in agent.scopes():
            yield _state(Plan(folder), agent, scope, name)


def _state(plan: Plan, agent: Agent, scope: Scope, name: str) -> AgentConfig:
    file, rules_file = agent.file(scope, plan.folder), agent.rules(scope, plan.folder)
    command = problem = rules_problem = ""
    has_block = False
    try:
        command = command_line_of(_servers_in(plan.read(file), agent).get(name))
    except (AgentError, TextError) as error:
        problem = str(error)
    try:
        has_block = rules_file is not None and has_rules(plan.read(rules_file), name)
    except AgentError as error:
        rules_problem = str(error)
    return AgentConfig(agent.name, scope, file, command, problem, rules_file, has_block, rules_problem)


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
    """Return whether an agent with a docindex entry, possibly in its other scope, reads an instruction file."""
    return any(
        other.rules(scope, plan.folder) == rules_file and _serves(plan, other, scope, name)
        for other in agents().values()
        for scope in other.scopes()
    )


def _serves(plan: Plan, agent: Agent, scope: Scope, name: str) -> bool:
    """Return whether an agent has an entry that serves this project."""
    entry = entry_of(plan, agent, scope, name)
    return entry is not None and bound_project(entry, agent) in {"", str(plan.folder), agent.folder}
