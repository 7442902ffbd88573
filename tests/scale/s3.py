"""An S3 server: moto in a separate process. It honours `If-Match` and `If-None-Match` on puts.

Large objects are stored in files, small ones in the process's memory. A request takes about 4 ms.
"""

import http.client
import os
import resource
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.scale.processes import free_port, program, running, without_ours

BUCKET = "docindex"
_IN_MEMORY_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class ObjectStore:
    """The address and credentials of an object store."""

    port: int
    bucket: str = BUCKET

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment variables of S3 clients."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "docindex",
            "AWS_SECRET_ACCESS_KEY": "not a secret of anybody",
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
        }

    def url(self, prefix: str = "") -> str:
        """Return the value for `storage.url`."""
        return f"s3://{self.bucket}" + (f"/{prefix}" if prefix else "")


@contextmanager
def s3() -> Iterator[ObjectStore]:
    """Run a server with one empty bucket; objects above 256 KiB are stored in temporary files."""
    with tempfile.TemporaryDirectory(prefix="docindex-s3-") as own:
        store = ObjectStore(free_port())
        environment = without_ours(os.environ) | {
            "MOTO_S3_DEFAULT_KEY_BUFFER_SIZE": str(_IN_MEMORY_BYTES),
            "TMPDIR": own,
        }
        _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)  # each large object keeps a file open
        server = [str(program("moto_server")), "-H", "127.0.0.1", "-p", str(store.port)]
        with running(["prlimit", f"--nofile={most_files}", *server], Path(own, "log"), store.port, environment):
            _make_bucket(store)
            yield store


def _make_bucket(store: ObjectStore) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", store.port, timeout=30)
    connection.request("PUT", f"/{store.bucket}", headers={"Content-Length": "0"})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    connection.close()
