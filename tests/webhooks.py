"""Webhook on the loopback device that returns scripted statuses and records the requests."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pydantic import SecretStr

from tests import loopback

SECRET = "T0CK3N-s3cr3t"


@dataclass(slots=True)
class Webhook:
    """The requests received and the statuses still to return: then 200, or no response if the webhook is silent."""

    address: str = ""
    statuses: list[int] = field(default_factory=list)
    is_silent: bool = False
    posted: list[dict[str, Any]] = field(default_factory=list)
    types: list[str] = field(default_factory=list)  # content type of each request
    followed: list[str] = field(default_factory=list)  # requested paths other than the webhook's

    @property
    def url(self) -> SecretStr:
        return SecretStr(f"{self.address}/services/{SECRET}?key={SECRET}")

    def texts(self) -> list[str]:
        return [message["text"] for message in self.posted]


@contextmanager
def listening(statuses: Sequence[int] = ()) -> Iterator[Webhook]:
    hook = Webhook(statuses=list(statuses))

    class Handler(loopback.Handler):
        def do_POST(self) -> None:
            if not self.path.startswith("/services/"):
                hook.followed.append(self.path)
            hook.posted.append(self.body())
            hook.types.append(self.headers["Content-Type"])
            if hook.is_silent:
                self.is_over.wait()
                return
            status = hook.statuses.pop(0) if hook.statuses else 200
            self.answer(status, headers={"Location": f"{hook.address}/elsewhere"})

        def do_GET(self) -> None:
            hook.followed.append(self.path)
            self.send_error(404)

    with loopback.serving(Handler, reads_all=True) as hook.address:
        yield hook
