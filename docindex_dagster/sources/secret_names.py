"""Names of files that hold secrets: keys, tokens, passwords, histories of shells.

Names are compared without regard to case. Templates (`.env.example`), public keys, and code and documents that are
merely called so (`credentials.py`) are no secrets; what they say is looked at all the same.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from docindex_dagster.sources.classify import classify_name

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
