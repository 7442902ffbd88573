"""The API's description in OpenAPI, and what routes alone do not say: problems, the token."""

import json
import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from docindex_dagster.serving.http.problems import Problem

_PREFIX = "#/components/schemas/"
_REFERENCES = _PREFIX + "{model}"
_FASTAPIS_OWN = "HTTPValidationError"
_UNUSED = (_FASTAPIS_OWN, "ValidationError")  # in whose place there are problems
_FOR_PROGRAMMERS = "\n\nRaises:"  # of a docstring; clients get problems
_ATTRIBUTES = "\n\nAttributes:\n"
_ATTRIBUTE = re.compile(r"^    (\w+): (.*(?:\n     +.*)*)", re.MULTILINE)
_TOKEN = {
    "type": "http",
    "scheme": "bearer",
    "description": "`DOCINDEX_SERVE__TOKEN`, or else the token in `serve.token` in `DOCINDEX_HOME`.",
}


class Application(FastAPI):
    """An application whose description is whole."""

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
        if self.openapi_schema is not None:
            return self.openapi_schema
        described = super().openapi()
        schemas = described["components"]["schemas"]
        for name in _UNUSED:
            schemas.pop(name, None)
        for operation in (one for path in described["paths"].values() for one in path.values()):
            operation["description"] = operation["description"].partition(_FOR_PROGRAMMERS)[0]
            if _FASTAPIS_OWN in json.dumps(operation["responses"].get("422")):
                del operation["responses"]["422"]  # such a request is answered in another form, by another status
        for schema in schemas.values():
            _describe_fields(schema)
        made = TypeAdapter(Problem).json_schema(ref_template=_REFERENCES)
        schemas |= {**made.pop("$defs", {}), Problem.__name__: made}
        described["components"]["securitySchemes"] = {"token": _TOKEN}
        described["security"] = [{}, {"token": []}]
        self.openapi_schema = _with_plain_names(described)
        return self.openapi_schema


def _describe_fields(schema: dict[str, Any]) -> None:
    """Say of each field what the docstring of its class says of the attribute."""
    about, heading, attributes = schema.get("description", "").partition(_ATTRIBUTES)
    if not heading:
        return
    schema["description"] = about
    for name, text in _ATTRIBUTE.findall(attributes):
        sentence = " ".join(text.split())
        schema["properties"][name].setdefault("description", sentence[:1].upper() + sentence[1:])


def _with_plain_names(described: Mapping[str, Any]) -> dict[str, Any]:
    """The description with names of bodies that clients in any language can call a type by."""
    names = {name: _plain(name) for name in described["components"]["schemas"]}
    text = re.sub(rf"(?<={_PREFIX})\w+", lambda found: names[found[0]], json.dumps(described))
    renamed: dict[str, Any] = json.loads(text)
    schemas = renamed["components"]["schemas"]
    renamed["components"]["schemas"] = {names[name]: {**schemas[name], "title": names[name]} for name in schemas}
    return renamed


def _plain(name: str) -> str:
    """`AnswerHit` for `Answer_Hit_`; where two classes have a name, with the module's, as `JobsState`."""
    words = re.split("_+", "_".join(name.split("__")[-2:]))
    return "".join(word[:1].upper() + word[1:] for word in words)
