"""Command line, HTTP, tools and Python API cover every field of a request. Exceptions are listed here with a reason."""

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest
from typer.main import get_group

from docindex_dagster.api import Graph, Index, Where
from docindex_dagster.cli.app import app
from docindex_dagster.operations.context import ContextRequest
from docindex_dagster.operations.fields import Request
from docindex_dagster.operations.graph import GraphRequest
from docindex_dagster.operations.log import LogRequest
from docindex_dagster.operations.memory import ForgetRequest, IngestRequest, RecallRequest
from docindex_dagster.operations.search import MatchesRequest, SearchRequest
from docindex_dagster.operations.search import Where as Filters
from docindex_dagster.operations.show import ShowRequest
from docindex_dagster.operations.similar import SimilarRequest
from docindex_dagster.operations.why import WhyRequest
from docindex_dagster.serving.http.app import build_api
from docindex_dagster.serving.memory_tools import MemoryTools
from docindex_dagster.serving.tools import Tools

# For each request: command, endpoint, tool and function of the Python API, or None if there is none.
SURFACES: dict[type[Request], tuple[str | None, str | None, Callable[..., object], Callable[..., object] | None]] = {
    SearchRequest: ("search", "GET /search", Tools.search, Index.search),
    MatchesRequest: ("search", "GET /matches", Tools.search, Index.matches),
    ContextRequest: ("search", "GET /context", Tools.context, Index.context),
    SimilarRequest: ("similar", "GET /similar", Tools.find_similar, Index.similar),
    ShowRequest: ("show", None, Tools.show, None),
    GraphRequest: ("graph neighbors", "GET /graph/{question}", Tools.graph, Graph.neighbors),
    LogRequest: ("log", "GET /log", Tools.log, None),
    WhyRequest: ("why", "GET /why", Tools.why, None),
    IngestRequest: ("memory ingest", "POST /memory/messages", MemoryTools.ingest_message, None),
    RecallRequest: ("memory recall", "POST /memory/recall", MemoryTools.recall, None),
    ForgetRequest: ("memory forget", "POST /memory/forget", MemoryTools.forget, None),
}
# Parameters whose name differs from that of the field.
NAMES = {
    "source": "sources",
    "language": "languages",
    "lang_human": "human_languages",
    "type": "types",
    "kind": "kinds",
    "all": "all_sources",
    "edge": "edges",
    "context": "tokens",
    "source_types": "types",
    "symbol_kinds": "kinds",
    "budget": "tokens",
    "predicates": "edges",
    "session_id": "session",
    "tool_name": "tool",
    "include_code": "code",
    "everything": "domain",
    "role": "roles",
    "domain": "domains",
}
EXCEPTIONS = {
    ("python of MatchesRequest", "mode"): "the argument `regex` says it",
    ("python of MatchesRequest", "query"): "it is called text there",
    ("tool", "all_sources"): "an agent names the branches that it wants",
    ("tool", "rerank"): "the settings choose it",
    ("tool", "edges"): "few of the edges of one symbol are of no use to a model, and each argument costs tokens",
    ("tool of ContextRequest", "tokens"): "each tool has max_tokens",
    ("tool of ContextRequest", "mode"): "hybrid is best for questions, and each argument costs tokens",
    ("tool of ContextRequest", "granularity"): "as mode",
    ("python of ContextRequest", "granularity"): "a context of one passage a file is a search",
    ("tool of IngestRequest", "tool"): "the tool `ingest_tool_result` has it",
    ("tool of ForgetRequest", "message"): "it is message_id there, as in the other tools of memory",
    ("command of GraphRequest", "to"): "an argument of `graph path` alone",
    ("python of GraphRequest", "to"): "an argument of `Graph.path` alone",
    ("command of GraphRequest", "depth"): "an option of the other questions: neighbors are one edge away",
    ("python of GraphRequest", "depth"): "as the command",
}


def fields_of(names: set[str], model: type[Request]) -> set[str]:
    """Return the fields that the parameters set."""
    return {field for field in model.model_fields if field in names or any(NAMES.get(one) == field for one in names)}


def of_command(path: str) -> set[str]:
    command: Any = get_group(app)
    for name in path.split():
        command = command.get_command(None, name)
    found = {option.lstrip("-").replace("-", "_") for one in command.params for option in one.opts}
    return found | {one.name for one in command.params if one.name}


def of_endpoint(name: str) -> set[str]:
    method, _, path = name.partition(" ")
    schema = build_api().openapi()
    described = schema["paths"][f"/api/v1{path}"][method.lower()]
    found = {one["name"] for one in described.get("parameters", ())}
    if "requestBody" in described:
        body = described["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        found |= schema["components"]["schemas"][body]["properties"].keys()
    return found


def of_function(function: Callable[..., object]) -> set[str]:
    return {*inspect.signature(function).parameters}


def lacking(model: type[Request]) -> set[tuple[str, str]]:
    """Return pairs of a surface and a request field that it lacks."""
    command, endpoint, tool, function = SURFACES[model]
    surfaces = {"tool": of_function(tool)}
    surfaces |= {"command": of_command(command)} if command else {}
    surfaces |= {"endpoint": of_endpoint(endpoint)} if endpoint else {}
    surfaces |= {"python": of_function(function)} if function else {}
    return {
        (surface, field)
        for surface, names in surfaces.items()
        for field in model.model_fields.keys() - fields_of(names, model)
    }


@pytest.mark.parametrize("model", SURFACES, ids=lambda model: model.__name__)
def test_each_surface_offers_each_field_of_a_request(model):
    unexplained = {
        (surface, field)
        for surface, field in lacking(model)
        if not EXCEPTIONS.keys() & {(surface, field), (f"{surface} of {model.__name__}", field)}
    }
    assert unexplained == set()


def test_each_exception_is_one():
    found = {(model, *one) for model in SURFACES for one in lacking(model)}
    explained = {(surface, field) for _, surface, field in found}
    explained |= {(f"{surface} of {model.__name__}", field) for model, surface, field in found}
    assert EXCEPTIONS.keys() <= explained


def test_the_filters_of_the_python_api_are_those_of_the_request():
    assert {NAMES.get(name, name) for name in get_type_hints(Where)} == Filters.model_fields.keys()


@pytest.mark.parametrize("model", SURFACES, ids=lambda model: model.__name__)
def test_each_field_is_described(model):
    assert [name for name, field in model.model_fields.items() if not field.description] == []
