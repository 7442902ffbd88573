"""Secrets: files to skip, recognised by their names, and secrets in texts, which are masked.

Names tell which files hold keys, tokens, passwords or shell histories; case does not matter. Templates
(`.env.example`), public keys, and code and documents with such a name (`credentials.py`) are not skipped, but their
texts are scanned.

The rules of Kingfisher and of `secret_rules.yml` find secrets in texts. The detector takes time linear in the text and
opens no connection.
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
# In a comment behind it, this keeps a secret from being masked.
_ALLOWED = re.compile(rb"[^\n]*(?:gitleaks:allow|kingfisher:ignore|pragma: allowlist secret)")
# What each secret that a rule finds holds: one of these, a password in a URL, or a long word with a digit.
_BEGINNINGS = (b"-----BEGIN", b"Private-Lines:", b"curl", b"hf_")
_PASSWORD = re.compile(rb"://[^\s/]*@")
_DIGIT = re.compile(rb"[0-9]")
_WORD = (string.ascii_letters + string.digits + "+/_.~!@#^&*-").encode()
_SHAPE = bytes(ord("x") if byte in _WORD else ord(" ") for byte in range(256))
_LONG = b"x" * 16
_VISIBLE = re.compile(rb"\S")
_loading = Lock()
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
# By the end of the whole path.
_PLACES = {
    "programs": ".kube/config .docker/config.json .aws/credentials .m2/settings.xml .config/gh/hosts.yml .config/hub",
    "folders": ".config/gcloud/* .gnupg/* .ssh/*",
}
# What these words begin is a secret without an ending or with one of data.
_DATA = (
    r"(?:\.(?:json|ya?ml|toml|ini|cfg|conf|properties|env|xml|csv|tsv|txt|enc|gpg|bak|old|db|local|dev|staging|live|"
    r"prod|production|test))"
)
_WORDS = {
    "credentials*": rf"credentials[^.]*{_DATA}*",
    "secrets.*": rf"secrets(?:[-_](?:dev|staging|live|prod|production))?{_DATA}+",
}


class Secret(NamedTuple):
    """Where a text holds a secret, and which rule says so."""

    rule: str
    start_line: int  # from 1, as `end_line`, which is inclusive
    end_line: int
    start_byte: int  # in the text as UTF-8
    end_byte: int  # exclusive


@cache
def detector_version() -> str:
    """Changes when the same text may be found to hold other secrets."""
    return f"{version('kingfisher-secret-scanner')} {digest(_RULES.read_bytes())}"


def find_secrets(text: str) -> tuple[Secret, ...]:
    """Return the secrets in a text, in order; none lies in or overlaps another."""
    data = text.encode()
    if not _may_hold_one(data):
        return ()
    findings = [finding for finding in load_detector().scan(data) if finding.visible and finding.confidence != "low"]
    found = [secret for secret in map(_secret, findings) if not _ALLOWED.match(data, secret.end_byte)]
    return tuple(_apart(sorted(found, key=lambda secret: (secret.start_byte, -secret.end_byte, secret.rule))))


def mask(text: str, secrets: Sequence[Secret]) -> str:
    """Return the text with an asterisk for each byte of a secret that is no white space.

    So lines and offsets in UTF-8 stay as they are.
    """
    if not secrets:
        return text
    data = bytearray(text.encode())
    for secret in secrets:
        span = slice(secret.start_byte, secret.end_byte)
        data[span] = _VISIBLE.sub(b"*", data[span])
    return data.decode()


def is_mostly_secret(text: str, secrets: Sequence[Secret]) -> bool:
    """Whether more than half of what there is to read in a text is secret."""
    if not secrets:
        return False
    data = text.encode()
    hidden = sum(_visible_bytes(data[secret.start_byte : secret.end_byte]) for secret in secrets)
    return 2 * hidden > _visible_bytes(data)


def secrets_of(masked: Iterable[Mapping[str, Any]] | None) -> tuple[Secret, ...] | None:
    """The secrets that a row of `discovered_files` names in `masked`; None where they were not looked for."""
    return None if masked is None else tuple(Secret(**secret) for secret in masked)


def _visible_bytes(data: bytes) -> int:
    return len(data.translate(None, b" \t\r\n\v\f"))


def _may_hold_one(data: bytes) -> bool:
    """Whether it is worth loading the detector, which takes half a second: most small changes hold nothing like it."""
    return any(word in data for word in _BEGINNINGS) or bool(_PASSWORD.search(data)) or _has_long_word(data)


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


def _apart(secrets: Iterable[Secret]) -> Iterable[Secret]:
    """Join those that overlap, under the rule of the first."""
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


def _secret(finding: "Finding") -> Secret:
    place = finding.location
    rule = re.split(r"[./]", finding.rule_id)[-1]
    return Secret(rule, place["line"], place["end_line"], place["start_offset"], place["end_offset"])


def load_detector() -> "Scanner":
    """Load the detector, which takes half a second, and keep it."""
    with _loading:  # so that another thread that needs it meanwhile waits, instead of loading it as well
        return _loaded()


@cache
def _loaded() -> "Scanner":
    from kingfisher_sdk import DetectionPolicy, Rules, Scanner

    return Scanner(Rules([_RULES]), policy=DetectionPolicy(inline_ignores=False))


def _patterns(globs: Mapping[str, str]) -> dict[str, str]:
    """Regular expressions by their globs."""
    return {glob: re.escape(glob).replace(r"\*", ".*") for line in globs.values() for glob in line.split()}


def _any_of(patterns: Mapping[str, str]) -> tuple[re.Pattern[str], tuple[str, ...]]:
    """One expression with a group for each pattern, and what each group means."""
    expression = "|".join(f"({pattern})" for pattern in patterns.values())
    return re.compile(expression, re.DOTALL), tuple(f"secret: {label}" for label in patterns)


_NAME, _NAME_REASONS = _any_of(_patterns(_GLOBS) | _WORDS)
_PLACE, _PLACE_REASONS = _any_of({glob: f"(?:.*/)?{end}" for glob, end in _patterns(_PLACES).items()})
_TEMPLATE = re.compile(r".*\.(?:example|sample|template|dist|tmpl|tpl|j2|erb|pub)|(?:example|sample|template)\.env")


def secret_reason(folder: bytes, name: bytes) -> str | None:
    """Why the file `name` in `folder`, which is empty or ends in a slash, is skipped as a secret, if it is."""
    reason = _name_reason(name)
    if reason is None and b"/." in b"/" + folder:
        match = _PLACE.fullmatch((folder + name).lower().decode("latin-1"))
        reason = _PLACE_REASONS[(match.lastindex or 0) - 1] if match else None
    return reason


@lru_cache(maxsize=1 << 16)  # names come again, from folder to folder and from one look of a sensor to the next
def _name_reason(name: bytes) -> str | None:
    lower = name.lower().decode("latin-1")
    match = _NAME.fullmatch(lower)
    if match is None or _TEMPLATE.fullmatch(lower) or _is_text(lower):
        return None
    return _NAME_REASONS[(match.lastindex or 0) - 1]


def _is_text(name: str) -> bool:
    """Whether a file is code or a document, by its ending; `.txt` is anything."""
    kind = classify_name(name.encode("latin-1"))
    return kind is not None and kind.source_type != "config" and not name.endswith(".txt")
