"""The API's description in OpenAPI, and what routes alone do not say: problems, the token."""

from typing import Any

from fastapi import FastAPI
from pydantic import TypeAdapter

from docindex_dagster.serving.http.problems import Problem

_REFERENCES = "#/components/schemas/{model}"
_UNUSED = ("HTTPValidationError", "ValidationError")  # FastAPI's own, in whose place there are problems
_FOR_PROGRAMMERS = "\n\nRaises:"  # of a docstring; clients get problems
_TOKEN = {"type": "http", "scheme": "bearer", "description": "`DOCINDEX_SERVE__TOKEN`, where the server has one."}


class Application(FastAPI):
    """An application whose description is whole."""

    def openapi(self) -> dict[str, Any]:
        """The description, made once."""
        if self.openapi_schema is not None:
            return self.openapi_schema
        described: dict[str, Any] = super().openapi()  # which keeps it
        schemas = described["components"]["schemas"]
        for name in _UNUSED:
            schemas.pop(name, None)
        for operation in (one for path in described["paths"].values() for one in path.values()):
            operation["description"] = operation["description"].partition(_FOR_PROGRAMMERS)[0]
        made = TypeAdapter(Problem).json_schema(ref_template=_REFERENCES)
        schemas |= {**made.pop("$defs", {}), Problem.__name__: made}
        described["components"]["securitySchemes"] = {"token": _TOKEN}
        described["security"] = [{}, {"token": []}]
        return described
