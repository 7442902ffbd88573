"""Validation of repository URLs, and removal of secrets from texts with URLs.

For git, a URL can be more than a location: `ext::COMMAND` runs a command, and a leading dash makes it an option. Only
URLs that pass these checks reach git. Error messages never repeat a rejected URL, since it may contain a password.
"""

import os
import re
from urllib.parse import SplitResult, unquote, unquote_to_bytes, urlsplit

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
_SCP = re.compile(r"(?:(?P<user>[^\s@:/]+)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s@:/\[\]]+):(?P<path>.*)")
_SCP_SECRET = re.compile(r"[^/:]*@[^/]*:")  # the path of user:password@host:path
# Up to the last @ before the path, or, if the password contains a slash, up to the first @.
_USER_INFO = re.compile(r"(?<=://)(?:[^\s/]*@|[^\s/:@]*:[^\s@]*@)")
_TOKEN = re.compile(r"(?<=[?&])(\w*(?:token|password))=[^&\s'\"]+", re.IGNORECASE)
_ALLOWED = "https://, http://, ssh://, file:/// or user@host:path"


def is_url(text: str) -> bool:
    """Return whether a text is meant as a URL, even an invalid one, rather than as a path."""
    return "://" in text or _HELPER.match(text) is not None or ("@" in text and _SCP.fullmatch(text) is not None)


def check_url(url: str) -> str:
    """Return a URL unchanged if it is safe to pass to git.

    Raises:
        ValueError: The URL is of an unsupported kind, contains a secret, or git would read it as an option or command.
    """
    if not url.isprintable() or not url:
        raise ValueError("must be a URL without control characters")
    if url.startswith("-"):
        raise ValueError("starts with a dash, so git would treat it as an option")
    scheme = _SCHEME.match(url)
    if scheme is None:
        _check_scp(url)
    elif scheme[1] == "file":
        _check_file(url)
    elif scheme[1] in {"http", "https", "ssh"}:
        _check_network(_split(url))
    else:
        raise ValueError(f"has the unsupported scheme {scheme[1]}; use {_ALLOWED}")
    return url


def local_path(url: str) -> str | None:
    """Return the path of a local repository URL as git reads it, including `?` and `#`; None for a remote URL."""
    if url.startswith("file://"):
        return os.fsdecode(unquote_to_bytes(url.removeprefix("file://")))
    return url if url.startswith("/") else None


def repository_name(url: str) -> str:
    """Return the name of a repository: the last segment of its URL without `.git`."""
    location = url.rpartition("://")[2].rstrip("/").removesuffix(".git").rstrip("/")
    return re.split(r"[/:]", location)[-1] or "repository"


def repository_location(url: str) -> str:
    """Return the host and path of a repository URL, which are the same for all protocols."""
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
    """Remove user names, passwords and tokens from the URLs in a text."""
    return _TOKEN.sub(r"\1=…", _USER_INFO.sub("", text))


def _split(url: str) -> SplitResult:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 parses the port
    except ValueError as error:
        raise ValueError("is invalid: the host or port is malformed") from error
    return parts


def _check_scp(url: str) -> None:
    parts = _SCP.fullmatch(url)
    if parts is None or _HELPER.match(url) or _SCP_SECRET.match(parts["path"]):
        raise ValueError(f"is not a repository URL; use {_ALLOWED}")
    _check_names(parts["user"], parts["host"], parts["path"])


def _check_file(url: str) -> None:
    if not url.startswith("file:///"):
        raise ValueError("needs three slashes: file:///absolute/path")
    if "\0" in (local_path(url) or ""):
        raise ValueError("contains a NUL character")


def _check_network(parts: SplitResult) -> None:
    is_ssh = parts.scheme == "ssh"
    if parts.password is not None or (parts.username is not None and not is_ssh):
        alternative = "an SSH key" if is_ssh else "git's credential helper"
        raise ValueError(
            f"contains a user name or password, which would be stored and logged; use {alternative} instead"
        )
    if parts.query or parts.fragment:
        raise ValueError("must end with the path of the repository, without '?' or '#'")
    _check_names(parts.username, parts.hostname, parts.path.lstrip("/"))


def _check_names(user: str | None, host: str | None, path: str) -> None:
    if not host:
        raise ValueError("has no host")
    if not host.isascii():
        raise ValueError("has a host with non-ASCII characters; write it in Punycode, as in xn--bcher-kva.example")
    if not path:
        raise ValueError("has no repository path")
    for component, value in (("user", user), ("host", host), ("path", path)):
        if unquote(value or "").startswith("-"):
            raise ValueError(f"has a {component} that starts with a dash, so it would be treated as an option")
