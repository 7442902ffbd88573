"""The entry of docindex in the text of an agent's file: read, set and removed, whichever format the file has."""

from collections.abc import Mapping, Sequence
from typing import Any

from docindex_dagster.agents import json_edit, toml_edit
from docindex_dagster.agents.catalogue import Agent, Server
from docindex_dagster.agents.json_text import TextError, is_blank, parse

ROOT_VARIABLE = "DOCINDEX_ROOT"
_ADDRESSES = ("url", "httpUrl", "serverUrl")  # of servers that are not started, but reached
_OURS = frozenset({"type", "source", "command", "args"})  # what an entry has to have, whatever a user wrote there


def servers_in(text: str | None, agent: Agent) -> Mapping[str, Any]:
    """The entries of servers that a file has, by name.

    Raises:
        TextError: the file is not what its format allows, or has no object where the servers should be.
    """
    servers = _data(text, agent).get(agent.path, {})
    if not isinstance(servers, dict):
        raise TextError(f"{agent.path} is not what it should be: a group of servers")
    return servers


def with_server(text: str | None, agent: Agent, name: str, server: Server) -> str:
    """A text with the entry of a server. Whatever else a user has written into that entry stays.

    Raises:
        TextError: as `servers_in`, the file cannot be edited, or the entry is one of a server that is reached by HTTP.
    """
    old = servers_in(text, agent).get(name)
    new = _merged(old, agent.entry(server), agent.environment_key)
    if old == new:
        return text or ""
    path = (agent.path, name)
    if agent.format == "toml":
        return toml_edit.set_table(text, path, new)
    return _checked(_edited(text, path, old, new, has_comments=agent.format == "jsonc"), agent, name, new)


def without_server(text: str, agent: Agent, name: str) -> str | None:
    """A text without the entry of a server; None where the file was made for it.

    Raises:
        TextError: as `servers_in`, or the file cannot be edited.
    """
    if name not in servers_in(text, agent):
        return text
    path = (agent.path, name)
    if agent.format == "toml":
        return toml_edit.remove_table(text, path)
    return json_edit.remove_member(text, path, has_comments=agent.format == "jsonc")


def _data(text: str | None, agent: Agent) -> Mapping[str, Any]:
    if text is None or is_blank(text):
        return {}
    if agent.format == "toml":
        return toml_edit.parsed(text)
    data = parse(text, has_comments=agent.format == "jsonc").data
    if not isinstance(data, dict):
        raise TextError("line 1: it is no object")
    return data


def _merged(old: Any, wanted: Mapping[str, Any], environment_key: str) -> dict[str, Any]:
    """An entry that starts the server, with what else the old one had."""
    if old is None:
        return dict(wanted)
    if not isinstance(old, dict) or any(key in old for key in _ADDRESSES):
        raise TextError("its entry is one of a server that is reached by HTTP, or none at all")
    ours = {key: value for key, value in wanted.items() if key in _OURS or key not in old}
    merged = {**old, **ours}
    variables = old.get(environment_key, {})
    others = {key: value for key, value in variables.items() if key != ROOT_VARIABLE} if variables else {}
    merged[environment_key] = {**others, **wanted.get(environment_key, {})}
    if not merged[environment_key] and environment_key not in wanted:
        del merged[environment_key]
    return merged


def _edited(text: str | None, path: Sequence[str], old: Any, new: Mapping[str, Any], *, has_comments: bool) -> str:
    """The text with the values of `new` in the place of those of `old`: what they have in common is not touched."""
    if not isinstance(old, dict) or text is None:
        return json_edit.set_member(text, path, new, has_comments=has_comments)
    for key in old.keys() - new.keys():
        text = json_edit.remove_member(text, [*path, key], has_comments=has_comments) or ""
    for key, value in new.items():
        if key not in old or old[key] != value:
            if isinstance(value, dict) and isinstance(old.get(key), dict):
                text = _edited(text, [*path, key], old[key], value, has_comments=has_comments)
            else:
                text = json_edit.set_member(text, [*path, key], value, has_comments=has_comments)
    return text


def _checked(text: str, agent: Agent, name: str, wanted: Mapping[str, Any]) -> str:
    """The text, if it can be read again and has the entry."""
    if servers_in(text, agent).get(name) != wanted:
        raise TextError("it has a form that cannot be edited")
    return text
