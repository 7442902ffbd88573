"""The entry of docindex in the text of an agent's file: made, read, set and removed, whichever format the file has."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from docindex_dagster.agents.catalogue import Agent, Scope, Server
from docindex_dagster.agents.editing import TextError, parsed, with_entry, without_entry
from docindex_dagster.core.errors import AgentError
from docindex_dagster.core.installation import DISTRIBUTION, is_of_uvx

ROOT_VARIABLE = "DOCINDEX_ROOT"
_ADDRESSES = ("url", "httpUrl", "serverUrl")  # of servers that are not started, but reached
_STARTING = ("command", "args")
_PROGRAM = "docindex"
_ARGUMENTS = ("mcp", "--watch")


def servers_in(text: str | None, agent: Agent) -> Mapping[str, Any]:
    """The entries of servers that a file has, by name.

    Raises:
        TextError: the file is not what its format allows, or has no object where the servers should be.
    """
    return _servers_in(parsed(text, agent.format), agent)


def _servers_in(data: Mapping[str, Any], agent: Agent) -> Mapping[str, Any]:
    servers = data.get(agent.path, {})
    if not isinstance(servers, dict):
        raise TextError(f"{agent.path} is not what it should be: a group of servers")
    return servers


def with_server(text: str | None, agent: Agent, name: str, server: Server) -> str:
    """Return a text with the entry of a server. An entry that differs is replaced whole.

    Whoever wrote the old one may have set a command, variables or approvals in it that the user never saw.

    Raises:
        TextError: as `servers_in`, or the file cannot be edited.
    """
    new, before = agent.entry(server), parsed(text, agent.format)
    servers = _servers_in(before, agent)
    if servers.get(name) == new:
        return text or ""
    edited = with_entry(text, agent.format, agent.path, name, new)
    _check_edit(edited, agent, {**before, agent.path: {**servers, name: new}})
    return edited


def without_server(text: str, agent: Agent, name: str) -> str | None:
    """A text without the entry of a server; None where nothing else is left.

    Raises:
        TextError: as `with_server`.
    """
    before = parsed(text, agent.format)
    servers = _servers_in(before, agent)
    if name not in servers:
        return text
    _check_starts(servers[name])
    edited = without_entry(text, agent.format, agent.path, name)
    _check_edit(edited, agent, {**before, agent.path: {key: servers[key] for key in servers if key != name}})
    return edited


def _check_edit(edited: str | None, agent: Agent, wanted: Mapping[str, Any]) -> None:
    """Refuse an edit that gives anything but what is wanted. An empty group of servers is as good as none.

    Raises:
        TextError: it does.
    """
    try:
        is_wanted = {agent.path: {}, **parsed(edited, agent.format)} == wanted
    except TextError:
        is_wanted = False
    if not is_wanted:
        raise TextError("it has a form that cannot be edited")


def started_by(entry: Any) -> str:
    """The command line that an entry starts, or the address that it has; empty where it is no entry."""
    if not isinstance(entry, dict):
        return ""
    address = next((entry[key] for key in _ADDRESSES if key in entry), "?")
    parts = [part for key in _STARTING for part in _as_list(entry.get(key))]
    return " ".join(map(str, parts)) if "command" in entry else str(address)


def replaced_keys(before: Any, after: Any) -> list[str]:
    """List the keys of an old entry whose values a new one lacks, such as `env.PATH`, but for those of the command."""
    kept = dict(_leaves(after))
    return [key for key, value in _leaves(before) if key not in _STARTING and (key not in kept or kept[key] != value)]


def _leaves(data: Any, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of an entry that are not groups, each with its keys joined by dots."""
    for key, value in data.items() if isinstance(data, dict) else ():
        if isinstance(value, dict):
            yield from _leaves(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def bound_to(entry: Any, agent: Agent) -> str:
    """The project that an entry names; empty where it names none."""
    variables = entry.get(agent.environment_key) if isinstance(entry, dict) else None
    return str(variables.get(ROOT_VARIABLE, "")) if isinstance(variables, dict) else ""


def _as_list(value: Any) -> list[Any]:
    """The words of a command, which agents write as one or as several; what is neither is shown as it is."""
    return value if isinstance(value, list) else [] if value is None else [value]


def _check_starts(entry: Any) -> None:
    """Refuse an entry that a user wrote for something else.

    Raises:
        TextError: it starts no server.
    """
    if not isinstance(entry, dict) or any(key in entry for key in _ADDRESSES):
        raise TextError("its entry is one of a server that is reached by HTTP, or none at all")


def server_for(scope: Scope, root: str, command: tuple[str, ...] | None = None) -> Server:
    """The server that an entry describes.

    Args:
        scope: a file of a project is shared, so that it names no path of this machine unless it has to.
        root: the project that it serves, as the agent reads it; empty for that of the folder where it is started.
        command: how `docindex` is called; None to find out.

    Raises:
        AgentError: a path has bytes that are no UTF-8, which no agent could read.
    """
    program, *arguments = command or own_command(is_shared=scope == "project")
    for text in (program, *arguments, root):
        if not _is_utf8(text):
            raise AgentError(f"{text!r} is no UTF-8, so that no agent could read it")
    return Server(program, (*arguments, *_ARGUMENTS), {ROOT_VARIABLE: root} if root else {})


def own_command(*, is_shared: bool) -> tuple[str, ...]:
    """How to call this program: by its name where that is shared and on the PATH for good, else by its path.

    Where `uvx` runs it, by that: the path would be gone with uv's cache.
    """
    if is_of_uvx(Path(sys.prefix)):
        return ("uvx", "--from", DISTRIBUTION, _PROGRAM)
    own = Path(sys.executable).with_name(_PROGRAM)
    found = shutil.which(_PROGRAM)
    is_ours = found is not None and own.exists() and own.samefile(found)
    if found is not None and is_ours and not _is_for_now(Path(found)):
        return (_PROGRAM,) if is_shared else (os.path.abspath(found),)  # noqa: PTH100 a link stays one
    # Agents start it in a checkout: without -P, Python would import modules from there.
    return (str(own),) if own.exists() else (sys.executable, "-P", "-m", "docindex_dagster.cli")


def _is_for_now(program: Path) -> bool:
    """Whether it is on the PATH since an environment is active in this shell."""
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    return bool(active) and program.is_relative_to(str(active))


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
