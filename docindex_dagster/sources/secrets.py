"""Detection of secrets: files to skip, recognized by name, and secrets in text, which are masked.

File names identify keys, tokens, passwords and shell histories, ignoring case. Templates (`.env.example`), public keys,
and code or documents with such names (`credentials.py`) are not skipped, but their text is scanned.

The rules of Kingfisher and of `secret_rules.yml` find secrets in text. The detector runs in linear time and opens no
connections.
"""

import re
import string
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from docindex_dagster.core.hashing import digest
from docindex_dagster.sources.classify import classify_name

if TYPE_CHECKING:
    from kingfisher_sdk import Finding, Scanner

_RULES = Path(__file__).with_name("secret_rules.yml")
# A comment after a secret with one of these markers keeps it from being masked.
_ALLOWED = re.compile(rb"[^\n]*(?:gitleaks:allow|kingfisher:ignore|pragma: allowlist secret)")
# Every secret that a rule finds contains one of these, a password in a URL, or a long word with a digit.
_MARKERS = (b"-----BEGIN", b"Private-Lines:", b"curl", b"hf_")
_PASSWORD = re.compile(rb"://[^\s/]*@")
_DIGIT = re.compile(rb"[0-9]")
_WORD = (string.ascii_letters + string.digits + "+/_.~!@#^&*-").encode()
_SHAPE = bytes(ord("x") if byte in _WORD else ord(" ") for byte in range(256))
_LONG = b"x" * 16
_VISIBLE = re.compile(rb"\S")
_load_lock = Lock()
_GLOBS = {
    "environments": ".env* *.env .flaskenv",
    "keys": "*.pem *.key *.jks *.jceks *.p8 *.p12 *.pfx *.keystore *.keytab *.kdb *.kdbx *.ppk *.ovpn "
    "id_rsa* id_dsa* id_ecdsa* id_ed25519*",
    "programs": ".npmrc .netrc _netrc .pypirc .pgpass pgpass.conf .my.cnf .mylogin.cnf .s3cfg .boto .dockercfg "
    ".databrickscfg .git-credentials .vault-token .terraformrc terraform.rc rclone.conf .msmtprc .fetchmailrc "
    ".htpasswd htpasswd settings-security.xml msal_token_cache.* accesstokens.json",
    "histories": ".*_history fish_history consolehost_history.txt .lesshst .viminfo",
    "infrastructure": "*.tfstate *.tfstate.* *.tfvars *.tfvars.json",
    "accounts": "client_secret*.json client-secret*.json service_account*.json service-account*.json "
    "*-service-account.json serviceaccountkey*.json *firebase-adminsdk*.json application_default_credentials.json",
}
# Matched against the end of the full path.
_PATH_GLOBS = {
    "programs": ".kube/config .docker/config.json .aws/credentials .m2/settings.xml .config/gh/hosts.yml .config/hub",
    "folders": ".config/gcloud/* .gnupg/* .ssh/*",
}
# A name that starts with one of these words is a secret if it has no extension or a data extension.
_DATA = (
    r"(?:\.(?:json|ya?ml|toml|ini|cfg|conf|properties|env|xml|csv|tsv|txt|enc|gpg|bak|old|db|local|dev|staging|live|"
    r"prod|production|test))"
)
_WORDS = {
    "credentials*": rf"credentials[^.]*{_DATA}*",
    "secrets.*": rf"secrets(?:[-_](?:dev|staging|live|prod|production))?{_DATA}+",
}


class Secret(NamedTuple):
    """The location of a secret in a text, and the rule that found it."""

    rule: str
    start_line: int  # 1-based, like `end_line`, which is inclusive
    end_line: int
    start_byte: int  # offset in the text encoded as UTF-8
    end_byte: int  # exclusive


@cache
def detector_version() -> str:
    """Return a version that changes when the same text may yield different secrets."""
    return f"{version('kingfisher-secret-scanner')} {digest(_RULES.read_bytes())}"


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Return the secrets in a text, in order and without overlaps."""
    data = text.encode()
    if not _may_hold_secret(data):
        return ()
    findings = [finding for finding in load_detector().scan(data) if finding.visible and finding.confidence != "low"]
    found = [secret for secret in map(_to_secret, findings) if not _ALLOWED.match(data, secret.end_byte)]
    return tuple(_merge_overlaps(sorted(found, key=lambda secret: (secret.start_byte, -secret.end_byte, secret.rule))))


def mask(text: str, secrets: Sequence[Secret]) -> str:
    """Return the text with each non-whitespace byte of the secrets replaced by an asterisk.

    Lines and UTF-8 offsets are preserved.
    """
    if not secrets:
        return text
    data = bytearray(text.encode())
    for secret in secrets:
        span = slice(secret.start_byte, secret.end_byte)
        data[span] = _VISIBLE.sub(b"*", data[span])
    return data.decode()


def is_mostly_secret(text: str, secrets: Sequence[Secret]) -> bool:
    """Return whether secrets make up more than half of the visible bytes of a text."""
    if not secrets:
        return False
    data = text.encode()
    hidden = sum(_visible_bytes(data[secret.start_byte : secret.end_byte]) for secret in secrets)
    return 2 * hidden > _visible_bytes(data)


def parse_masked(masked: Iterable[Mapping[str, Any]] | None) -> tuple[Secret, ...] | None:
    """Return the secrets in the `masked` column of a `discovered_files` row; None if the text was not scanned."""
    return None if masked is None else tuple(Secret(**secret) for secret in masked)


def _visible_bytes(data: bytes) -> int:
    return len(data.translate(None, b" \t\r\n\v\f"))


def _may_hold_secret(data: bytes) -> bool:
    """Return whether the detector, which takes half a second to load, is needed; most small changes do not need it."""
    return any(word in data for word in _MARKERS) or bool(_PASSWORD.search(data)) or _has_long_word(data)


def _has_long_word(data: bytes) -> bool:
    shape = data.translate(_SHAPE)
    start = shape.find(_LONG)
    while start >= 0:
        end = shape.find(b" ", start)
        end = len(data) if end < 0 else end
        if _DIGIT.search(data, start, end):
            return True
        start = shape.find(_LONG, end)
    return False


def _merge_overlaps(secrets: Iterable[Secret]) -> Iterable[Secret]:
    """Merge overlapping secrets, keeping the rule of the first."""
    last: Secret | None = None
    for secret in secrets:
        if last is not None and secret.start_byte < last.end_byte:
            last = last._replace(
                end_line=max(last.end_line, secret.end_line), end_byte=max(last.end_byte, secret.end_byte)
            )
            continue
        if last is not None:
            yield last
        last = secret
    if last is not None:
        yield last


def _to_secret(finding: "Finding") -> Secret:
    location = finding.location
    rule = re.split(r"[./]", finding.rule_id)[-1]
    return Secret(rule, location["line"], location["end_line"], location["start_offset"], location["end_offset"])


def load_detector() -> "Scanner":
    """Load the detector, which takes half a second, and cache it."""
    with _load_lock:  # concurrent callers wait instead of loading it twice
        return _load_cached()


@cache
def _load_cached() -> "Scanner":
    from kingfisher_sdk import DetectionPolicy, Rules, Scanner

    return Scanner(Rules([_RULES]), policy=DetectionPolicy(inline_ignores=False))


def _patterns(globs: Mapping[str, str]) -> dict[str, str]:
    """Return regular expressions keyed by glob."""
    return {glob: re.escape(glob).replace(r"\*", ".*") for line in globs.values() for glob in line.split()}


def _any_of(patterns: Mapping[str, str]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """Return one expression with a group for each pattern, and the skip reason of each group."""
    expression = "|".join(f"({pattern})" for pattern in patterns.values())
    return re.compile(expression, re.DOTALL), tuple(f"secret: {label}" for label in patterns)


_NAME, _NAME_REASONS = _any_of(_patterns(_GLOBS) | _WORDS)
_PATH, _PATH_REASONS = _any_of({glob: f"(?:.*/)?{end}" for glob, end in _patterns(_PATH_GLOBS).items()})
_TEMPLATE = re.compile(r".*\.(?:example|sample|template|dist|tmpl|tpl|j2|erb|pub)|(?:example|sample|template)\.env")


def secret_reason(folder: bytes, name: bytes) -> str | None:
    """Return why the file `name` in `folder` (empty, or with a trailing slash) is skipped as a secret, or None."""
    reason = _name_reason(name)
    if reason is None and b"/." in b"/" + folder:
        match = _PATH.fullmatch((folder + name).lower().decode("latin-1"))
        reason = _PATH_REASONS[(match.lastindex or 0) - 1] if match else None
    return reason


@lru_cache(maxsize=1 << 16)  # names repeat across folders and across sensor ticks
def _name_reason(name: bytes) -> str | None:
    lower = name.lower().decode("latin-1")
    match = _NAME.fullmatch(lower)
    if match is None or _TEMPLATE.fullmatch(lower) or _is_text(lower):
        return None
    return _NAME_REASONS[(match.lastindex or 0) - 1]


def _is_text(name: str) -> bool:
    """Return whether the extension marks a file as code or a document; `.txt` can be anything."""
    kind = classify_name(name.encode("latin-1"))
    return kind is not None and kind.source_type != "config" and not name.endswith(".txt")
