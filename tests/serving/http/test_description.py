"""Tests of the OpenAPI description with requests generated from it.

Requests cover the parameters and body of each operation. Half of them are valid, half slightly invalid, and all are the
same in every run. The project is a copy. Nothing is fetched, because no jobs run and this client cannot use folders as
sources.
"""

import os
import shutil
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import positive_data_acceptance, response_schema_conformance
from schemathesis.config import ChecksConfig, ProjectConfig, ProjectsConfig, SchemathesisConfig
from schemathesis.config._checks import NegativeDataRejectionConfig
from schemathesis.python.asgi import HOST
from starlette.testclient import TestClient

from docindex_dagster.serving.http.problems import MEDIA_TYPE
from tests.serving.http.conftest import serving
from tests.serving.http.scripted import write_settings

# No schema says that a query, cursor or source is meaningless; this module checks the schemas themselves.
OTHERWISE = [positive_data_acceptance, response_schema_conformance]
EXAMPLES = int(os.environ.get("DOCINDEX_TEST_EXAMPLES", "8"))  # per operation and generation mode
OPERATIONS = [
    "GET /api/v1/context",
    "GET /api/v1/files/{place}",
    "GET /api/v1/graph/stats",
    "GET /api/v1/graph/{question}",
    "GET /api/v1/health",
    "GET /api/v1/jobs",
    "GET /api/v1/jobs/{id}",
    "GET /api/v1/jobs/{id}/events",
    "GET /api/v1/llm",
    "GET /api/v1/log",
    "GET /api/v1/matches",
    "GET /api/v1/memory/export",
    "GET /api/v1/memory/status",
    "GET /api/v1/search",
    "GET /api/v1/similar",
    "GET /api/v1/sources",
    "GET /api/v1/sources/{kind}/{name}",
    "GET /api/v1/sources/{kind}/{name}/stats",
    "GET /api/v1/status",
    "GET /api/v1/why",
    "GET /v1/models",
    "GET /v1/models/{id}",
    "POST /api/v1/ask",
    "POST /api/v1/context",
    "POST /api/v1/memory/erase",
    "POST /api/v1/memory/fold",
    "POST /api/v1/memory/forget",
    "POST /api/v1/memory/messages",
    "POST /api/v1/memory/recall",
    "POST /api/v1/questions",
    "POST /api/v1/search",
    "POST /api/v1/sources",
    "POST /api/v1/sources/{kind}/{name}/index",
    "POST /v1/chat/completions",
    "PUT /api/v1/sources/{kind}/{name}/default",
    "DELETE /api/v1/jobs/{id}",
    "DELETE /api/v1/sources/{kind}/{name}",
    "DELETE /api/v1/sources/{kind}/{name}/default",
]


@pytest.fixture(scope="module")
def client(tmp_path_factory, indexed) -> Any:
    root = shutil.copytree(indexed, tmp_path_factory.mktemp("described") / "project", symlinks=True)
    write_settings(Path(root), f'[serve]\nhosts = ["{HOST}"]\n[evaluation]\ncollect = true\n')
    with serving(Path(root), client=("192.168.1.7", 50_000), domain="memory/main", may_read=["project/acme"]) as made:
        yield made


@pytest.fixture(scope="module")
def description(client: TestClient) -> Any:
    return client.get("/openapi.json").json()


@pytest.fixture(scope="module")
def schema(client) -> Any:
    async def started(scope: Any, receive: Any, send: Any) -> None:
        """Wrap the running application, so that it is not restarted for each request."""
        if scope["type"] == "http":
            await client.app(scope, receive, send)
        elif (await receive())["type"] == "lifespan.startup":
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})

    refusals = NegativeDataRejectionConfig(expected_statuses=["4xx"])
    project = ProjectConfig(checks=ChecksConfig(negative_data_rejection=refusals))
    config = SchemathesisConfig(projects=ProjectsConfig(default=project))
    return schemathesis.openapi.from_asgi("/openapi.json", started, config=config)


def test_it_has_these_operations(schema):
    assert sorted(result.ok().label for result in schema.get_all_operations()) == sorted(OPERATIONS)


def test_its_schemas_are_of_openapi_3_1(description):
    assert description["openapi"].startswith("3.1.")
    for schema in description["components"]["schemas"].values():
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})


def test_each_operation_says_what_it_is_for_and_how_it_fails(description):
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            assert operation["description"], f"{method} {path}"
            failures = {status: answer for status, answer in operation["responses"].items() if status >= "400"}
            is_openais = path.startswith("/v1/")
            assert {"401", "403", "421", "400" if is_openais else "422", "503"} <= failures.keys()
            media_type = "application/json" if is_openais else MEDIA_TYPE
            assert all(list(answer["content"]) == [media_type] for answer in failures.values())


@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", OPERATIONS)
def test_each_answer_is_as_described(schema, description, client, label, mode):
    operation = next(found.ok() for found in schema.get_all_operations() if found.ok().label == label)

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=EXAMPLES,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=list(HealthCheck),
    )
    def check(case: schemathesis.Case[Any]) -> None:
        response = case.call_and_validate(excluded_checks=OTHERWISE)
        assert response.status_code < 500
        check_schema(description, operation.definition.raw, response)

    try:
        check()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE  # requests to this operation cannot be invalid


def check_schema(description: Any, operation: Any, response: Any) -> None:
    """Check a JSON response against its schema with the OpenAPI 3.1 keywords, one of which schemathesis lacks."""
    media_type = response.headers.get("Content-Type", [""])[0].partition(";")[0]
    if media_type.endswith("json"):
        content = operation["responses"][str(response.status_code)]["content"][media_type]
        whole = {**content["schema"], "components": description["components"]}
        jsonschema_rs.Draft202012Validator(whole).validate(response.json())
