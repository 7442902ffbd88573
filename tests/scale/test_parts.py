"""Tests that the deployment's test services behave like real ones: they fail, end sessions and refuse stale puts."""

import os
import socket
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import pytest

from tests.scale.faults import Faults, Figures, Kind, proxy
from tests.scale.postgres import Postgres
from tests.scale.processes import answers, wait_for
from tests.scale.s3 import ObjectStore

pytestmark = pytest.mark.scale

obstore = pytest.importorskip("obstore", reason="make test-scale installs it")


def client(store: ObjectStore, retries: int = 0) -> Any:
    from obstore.store import S3Store

    return S3Store(
        store.bucket,
        endpoint=store.endpoint,
        access_key_id="docindex",
        secret_access_key="of nobody",
        region="us-east-1",
        client_options={"allow_http": True},
        retry_config={"max_retries": retries},
    )


def test_postgres_is_started_again_with_what_it_held(database: Postgres):
    database.ask("CREATE TABLE words AS SELECT 'marmot' AS word")

    database.restart()

    assert database.ask("SELECT word FROM words") == ["marmot"]
    assert database.terminate_backends() == 0


def test_redis_answers(broker):
    port = int(broker.rpartition(":")[2].partition("/")[0])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(b"PING\r\n")
        assert connection.recv(16) == b"+PONG\r\n"


def test_a_stale_put_is_refused(object_store):
    bucket = client(object_store)
    first = obstore.put(bucket, "stale", b"1", mode="create")
    with pytest.raises(obstore.exceptions.AlreadyExistsError):
        obstore.put(bucket, "stale", b"2", mode="create")
    obstore.put(bucket, "stale", b"2", mode={"e_tag": first["e_tag"]})
    with pytest.raises(obstore.exceptions.PreconditionError):
        obstore.put(bucket, "stale", b"3", mode={"e_tag": first["e_tag"]})

    assert bytes(obstore.get(bucket, "stale").bytes()) == b"2"


def test_no_increment_is_lost_behind_the_proxy_whatever_goes_wrong(object_store):
    faults = Faults(error=0.05, slow_down=0.05, conflict=0.05, delay=0.05, delay_s=0.05)
    with proxy(object_store, 7, faults) as between:
        bucket = client(between.store)
        obstore.put(client(object_store), "counter", b"0")

        def increment(_: int) -> None:
            while True:
                with suppress(obstore.exceptions.BaseError):
                    held = obstore.get(bucket, "counter")
                    value, tag = int(bytes(held.bytes())), held.meta["e_tag"]
                    obstore.put(bucket, "counter", str(value + 1).encode(), mode={"e_tag": tag})
                    return

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(increment, range(100)))

        assert bytes(obstore.get(client(object_store), "counter").bytes()) == b"100"
        assert set(between.happened) == {"error", "slow_down", "conflict", "delay"}


def test_a_lost_answer_leaves_what_was_put(object_store):
    with proxy(object_store, 1, Faults(lost_answer=1)) as between:
        with pytest.raises(obstore.exceptions.BaseError, match="500 Internal"):
            obstore.put(client(between.store), "lost", b"here", mode="create")
        with pytest.raises(obstore.exceptions.BaseError):
            obstore.put(client(between.store, retries=3), "lost", b"again", mode="create")

    assert bytes(obstore.get(client(object_store), "lost").bytes()) == b"here"


def test_an_answer_that_is_cut_is_an_error(object_store):
    obstore.put(client(object_store), "large", os.urandom(1 << 20))
    with proxy(object_store, 1, Faults(cut=1)) as between:
        with pytest.raises(obstore.exceptions.BaseError):
            obstore.get(client(between.store), "large").bytes()
        done = Counter[bool]()
        for number in range(20):
            with pytest.raises(obstore.exceptions.BaseError):
                obstore.put(client(between.store), f"cut/{number}", b"x", use_multipart=False)
        for number in range(20):
            with suppress(FileNotFoundError):
                obstore.head(client(object_store), f"cut/{number}")
                done[True] += 1
        assert 0 < done[True] < 20


def test_a_request_that_is_held_at_a_gate_passes_late_and_others_before_it(object_store):
    with proxy(object_store, 1, prefix="team") as between, ThreadPoolExecutor(1) as pool:
        bucket = client(between.store)
        tag = obstore.put(bucket, "team/gate/a", b"1", mode="create")["e_tag"]
        gate = between.hold_next("PUT", "gate")
        late = pool.submit(obstore.put, bucket, "team/gate/a", b"2", mode={"e_tag": tag})
        wait_for(lambda: gate.is_holding, "the request to come")

        obstore.put(bucket, "team/gate/a", b"3", mode={"e_tag": tag})
        gate.open()

        with pytest.raises(obstore.exceptions.PreconditionError):
            late.result()
        assert gate.answer == "412"
        assert bytes(obstore.get(bucket, "team/gate/a").bytes()) == b"3"


def test_requests_are_counted_by_method_and_folder(object_store):
    with proxy(object_store, 1, prefix="team") as between:
        bucket = client(between.store)
        before = between.traffic()
        obstore.put(bucket, "team/tables/a", bytes(1000), use_multipart=False)
        obstore.put(bucket, "team/CURRENT", bytes(10), use_multipart=False)
        obstore.get(bucket, "team/tables/a").bytes()
        assert [item["path"] for page in obstore.list(bucket, "team/tables") for item in page] == ["team/tables/a"]
        traffic = between.traffic().since(before)

    assert traffic.kinds[Kind("PUT", "tables")] == Figures(1, sent=1000, received=0)
    assert traffic.kinds[Kind("PUT", "CURRENT")] == Figures(1, sent=10, received=0)
    assert traffic.kinds[Kind("GET", "tables")] == Figures(1, sent=0, received=1000)
    assert traffic.kinds[Kind("LIST", "tables")].requests == 1
    assert traffic.total.requests == 4
    assert not answers(between.store.port)
