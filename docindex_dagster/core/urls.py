"""Which URLs of repositories are taken, and texts without the secrets that a URL may hold.

git takes more for a URL than a place: `ext::COMMAND` runs a command, and what begins with a dash is an option. Only
what is allowed here gets as far as git. No message repeats a URL that was refused, since it may hold a password.
"""

import os
import re
from urllib.parse import SplitResult, unquote, unquote_to_bytes, urlsplit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
_SCP = re.compile(r"(?:(?P<user>[^\s@:/]+)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s@:/\[\]]+):(?P<path>.*)")
_SCP_SECRET = re.compile(r"[^/:]*@[^/]*:")  # the path of user:password@host:path
# Up to the last @ before the path; and a password that holds a slash, up to the first @.
_USER_INFO = re.compile(r"(?<=://)(?:[^\s/]*@|[^\s/:@]*:[^\s@]*@)")
_TOKEN = re.compile(r"(?<=[?&])(\w*(?:token|password))=[^&\s'\"]+", re.IGNORECASE)
_ALLOWED = "https://, http://, ssh://, file:/// or user@host:path"


def is_url(text: str) -> bool:
    """Whether a user means a URL, right or wrong, and not a path."""
    return "://" in text or _HELPER.match(text) is not None or ("@" in text and _SCP.fullmatch(text) is not None)


def check_url(url: str) -> str:
    """Return a URL that git can be given.

    Raises:
        ValueError: It is none of the allowed kinds, holds a secret, or would be read as an option or a command.
    """
    if not url.isprintable() or not url:
        raise ValueError("must be a URL without control characters")
    if url.startswith("-"):
        raise ValueError("begins with a dash, so git would take it for an option")
    scheme = _SCHEME.match(url)
    if scheme is None:
        _check_scp(url)
    elif scheme[1] == "file":
        _check_file(url)
    elif scheme[1] in {"http", "https", "ssh"}:
        _check_network(_split(url))
    else:
        raise ValueError(f"has the scheme {scheme[1]}; allowed are {_ALLOWED}")
    return url


def local_path(url: str) -> str | None:
    """Return the path of a local repository URL, as git reads it: with `?` and `#`; None for a remote one."""
    if url.startswith("file://"):
        return os.fsdecode(unquote_to_bytes(url.removeprefix("file://")))
    return url if url.startswith("/") else None


def repository_name(url: str) -> str:
    """The name of a repository: the last part of its URL without `.git`."""
    place = url.rpartition("://")[2].rstrip("/").removesuffix(".git").rstrip("/")
    return re.split(r"[/:]", place)[-1] or "repository"


def place_of(url: str) -> str:
    """What all URLs of a repository have in common: its host and path, however it is reached."""
    scp = None if "://" in url else _SCP.fullmatch(url)
    if scp is not None:
        host, path = scp["host"], scp["path"]
    else:
        try:
            parts = urlsplit(url)
            host, path = parts.hostname or "", parts.path
        except ValueError:
            return url
    return f"{host.lower()}/{path.strip('/').removesuffix('.git')}"


def scrub(text: str) -> str:
    """A text in which no URL shows a user name, a password or a token."""
    return _TOKEN.sub(r"\1=…", _USER_INFO.sub("", text))


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 it is parsed here
    except ValueError as error:
        raise ValueError("is no URL: its host or its port cannot be read") from error
    return parts


def _check_scp(url: str) -> None:
    parts = _SCP.fullmatch(url)
    if parts is None or _HELPER.match(url) or _SCP_SECRET.match(parts["path"]):
        raise ValueError(f"is no URL of a repository; allowed are {_ALLOWED}")
    _check_names(parts["user"], parts["host"], parts["path"])


def _check_file(url: str) -> None:
    if not url.startswith("file:///"):
        raise ValueError("needs three slashes: file:///absolute/path")
    if "\0" in (local_path(url) or ""):
        raise ValueError("holds a NUL character, which no path does")


def _check_network(parts: SplitResult) -> None:
    is_ssh = parts.scheme == "ssh"
    if parts.password is not None or (parts.username is not None and not is_ssh):
        means = "an ssh key" if is_ssh else "git's credential helper"
        raise ValueError(f"holds a user name or password, which would be stored and logged; use {means} instead")
    if parts.query or parts.fragment:
        raise ValueError("must end with the path of the repository: '?' and '#' have no place in it")
    _check_names(parts.username, parts.hostname, parts.path.lstrip("/"))


def _check_names(user: str | None, host: str | None, path: str) -> None:
    if not host:
        raise ValueError("names no host")
    if not host.isascii():
        raise ValueError("has a host that may look like another one: write it in ASCII, as xn--bcher-kva.example")
    if not path:
        raise ValueError("names no repository on its host")
    for what, value in (("user", user), ("host", host), ("path", path)):
        if unquote(value or "").startswith("-"):
            raise ValueError(f"has a {what} that begins with a dash, so it would be taken for an option")
