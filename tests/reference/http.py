"""Reference page of the HTTP API."""

from collections.abc import Iterator, Mapping
from typing import Any

from docindex_dagster.serving.http.app import build_api
from docindex_dagster.serving.http.openai_form import code_of
from docindex_dagster.serving.http.problems import ANYWHERE, KINDS
from tests.reference.markdown import row, table

_ABOUT = """\
# HTTP API

`docindex serve` publishes this description at `/openapi.json`. [Use the HTTP API](../how-to/use-the-http-api.md) shows
requests and answers.

Any request can fail with {}. The tables below list only the other problems.
"""
_ANYWHERE = frozenset({*ANYWHERE, *map(code_of, ANYWHERE)})

_Described = Mapping[str, Any]


def page() -> str:
    """Return the page."""
    description = build_api().openapi()
    anywhere = ", ".join(f"`{name}`" for name in ANYWHERE)
    problems = table(
        ("type", "status", "meaning", "what to do"),
        ((f"`{kind.name}`", str(kind.status), kind.title, kind.advice) for kind in KINDS.values()),
    )
    parts = [_ABOUT.format(anywhere), *_operations(description)]
    return "\n".join([*parts, "## Problems\n", problems, "## Bodies\n", *_schemas(description)])


def _operations(description: _Described) -> Iterator[str]:
    by_tag: dict[str, list[str]] = {}
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            text = "\n".join(_operation(method.upper(), path, operation))
            by_tag.setdefault(operation["tags"][0], []).append(text)
    for tag, texts in by_tag.items():
        yield f"## {tag[:1].upper()}{tag[1:]}\n"
        yield from texts


def _operation(method: str, path: str, operation: _Described) -> Iterator[str]:
    yield f"### `{method} {path}`\n"
    yield operation["description"] + "\n"
    if parameters := operation.get("parameters"):
        yield "| parameter | in | type | |\n|---|---|---|---|"
        for one in parameters:
            must = "; required" if one["required"] and one["in"] != "path" else ""
            yield row(f"`{one['name']}`", one["in"], _type(one["schema"]) + must, _about(one["schema"], one))
        yield ""
    if body := operation.get("requestBody"):
        (content,) = body["content"].values()
        yield f"The body is JSON: {_type(content['schema'])}.\n"
    yield "| status | answer |\n|---|---|"
    answers = (
        (status, _failure(answer) if status >= "400" else _answer(answer))
        for status, answer in operation["responses"].items()
    )
    yield from (row(status, text) for status, text in answers if text)
    yield ""


def _failure(answer: _Described) -> str:
    """Return the names of the errors, without those that any request can cause."""
    return "; ".join(text for text in answer["description"].split("; ") if text.split("`")[1] not in _ANYWHERE)


def _answer(answer: _Described) -> str:
    """Return the type of the response."""
    content = answer.get("content", {})
    texts = [_type(content[media_type]["schema"]) for media_type in content if media_type == "application/json"]
    texts += ["server-sent events" for media_type in content if media_type == "text/event-stream"]
    return " or ".join(texts) or str(answer["description"])


def _schemas(description: _Described) -> Iterator[str]:
    for name, schema in sorted(description["components"]["schemas"].items()):
        yield f"### {name}\n"
        if about := schema.get("description"):
            yield about + "\n"
        if "enum" in schema:
            yield _type(schema) + "\n"
            continue
        yield "| field | type | |\n|---|---|---|"
        for field, of in schema["properties"].items():
            yield row(f"`{field}`", _type(of), _about(of))
        yield ""


def _type(schema: _Described) -> str:
    """Return the type of a value in a few words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "prefixItems" in schema:
        return "[" + ", ".join(_type(one) for one in schema["prefixItems"]) + "]"
    if schema.get("type") == "array":
        return f"list of {_type(schema['items'])}"
    return str(schema.get("format") or schema.get("type") or "anything")


def _about(*described: _Described) -> str:
    """Return the description of a value, its bounds and its default."""
    sentences = [next((one["description"] for one in described if "description" in one), "")]
    schema = described[0]
    for one in (schema, *schema.get("anyOf", ())):
        least, most = (
            one.get(low, one.get(high)) for low, high in (("minimum", "minLength"), ("maximum", "maxLength"))
        )
        if most is not None:
            sentences.append(f"At most {most:,.12g}." if least is None else f"{least:,.12g} to {most:,.12g}.")
    if schema.get("default") not in (None, "", []):
        sentences.append(f"Default: `{schema['default']}`.")
    return " ".join(filter(None, sentences))
