"""Shared fixtures for the parts of a deployment."""

from collections.abc import Iterator

import pytest

from tests.scale.postgres import Postgres, postgres
from tests.scale.redis import redis
from tests.scale.s3 import ObjectStore, s3


@pytest.fixture(scope="session")
def object_store() -> Iterator[ObjectStore]:
    with s3() as store:
        yield store


@pytest.fixture(scope="session")
def database() -> Iterator[Postgres]:
    with postgres() as made:
        yield made


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    with redis() as url:
        yield url
