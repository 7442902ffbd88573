"""Secrets in files: key files are skipped, other secrets are masked. The tests generate all of them at run time."""

import base64
import json
import random
import string
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from docindex_dagster.sources.commits import read_commits
from docindex_dagster.sources.content import examine
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.explanation import why
from docindex_dagster.sources.secrets import Secret, find_secrets, mask
from docindex_dagster.sources.text import decode

RANDOM = random.Random(7)
ALL, HEX = string.ascii_letters + string.digits, "0123456789abcdef"
UPPER, DIGITS = string.ascii_uppercase + string.digits, string.digits


def some(count: int, letters: str = ALL) -> str:
    return "".join(RANDOM.choice(letters) for _ in range(count))


def base(count: int) -> str:
    return base64.b64encode(RANDOM.randbytes(count)).decode()


def pem(kind: str = "RSA PRIVATE KEY", count: int = 600) -> str:
    body = base(count)
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    return "\n".join([f"-----BEGIN {kind}-----", *lines, f"-----END {kind}-----", ""])


def jwt() -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": "1234567890", "iat": 1516239022})
    signed = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join([*signed, some(43)])


KEY, PASSWORD, GITHUB = pem(), some(18), "ghp" + "_" + some(36)
AWS = ("AKIA" + some(16, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"), base(30))
BASIC = base64.b64encode(f"jane:{PASSWORD}".encode()).decode()

# File name, template around the secret, secret.
MASKED = {
    "GitHub": ("a.py", 'token = "{}"', GITHUB),
    "GitHub, in prose": ("a.md", "Use `{}` for now.", GITHUB),
    "GitHub, fine-grained": ("ci.yml", "x: {}\n" + "# words\n" * 30, "github" + "_pat_" + some(22) + "_" + some(59)),
    "GitHub, OAuth": ("a.go", 't := "{}"', "gho" + "_" + some(36)),
    "GitLab": ("a.rb", 't = "{}"', "glpat" + "-" + some(20)),
    "AWS, secret": ("a.sh", "export AWS_SECRET_ACCESS_KEY={}", AWS[1]),
    "AWS, beside its id": ("a.py", f'client("s3", aws_access_key_id="{AWS[0]}", aws_secret_access_key="{{}}")', AWS[1]),
    "Slack, bot": ("a.js", 'const t = "{}";', "xoxb-" + "-".join([some(12, DIGITS), some(12, DIGITS), some(24)])),
    "Slack, webhook": (
        "a.ts",
        'post("{}")',
        "https://hooks.slack.com/" + "services/" + "/".join(["T" + some(8, UPPER), "B" + some(10, UPPER), some(24)]),
    ),
    "Stripe": ("a.rb", 'Stripe.api_key = "{}"', "sk" + "_live_" + some(24)),
    "Google API": ("a.js", 'const key = "{}";', "AIza" + some(35)),
    "Google OAuth": (
        "a.json",
        '{{"client_id": "acme", "redirect": "https://acme.io", "client_secret": "{}"}}',
        "GOCSPX-" + some(26) + "9x",
    ),
    "JSON web key": (
        "a.md",
        "```json\n" + '{{"kty": "EC", "crv": "P-256", "d": "{}"}}' + "\n" + "# words\n" * 30,
        some(43),
    ),
    "JSON web key, RSA": ("a.md", '{{\n  "kty": "RSA",\n  "qi" : "{}"\n}}\n' + "# words\n" * 90, some(171)),
    "JSON web key, symmetric": ("a.md", '{{"kty":"oct","k":"{}"}}\n' + "# words\n" * 30, some(43)),
    "OpenAI": ("a.sh", "OPENAI_API_KEY={}", "sk-" + "proj-" + some(74) + "T3Blbk" + "FJ" + some(74)),
    "Anthropic": ("a.sh", "ANTHROPIC_API_KEY={}", "sk-ant-" + "api03-" + some(93) + "AA"),
    "Hugging Face": ("a.py", 'login("{}")', "hf" + "_" + some(34, string.ascii_letters)),
    "npm": ("npmrc.txt", "//registry.example.org/:_authToken={}\n" + "# words\n" * 9, "npm" + "_" + some(36)),
    "PyPI": ("a.cfg", "[pypi]\npassword = {}\n" + "# words\n" * 30, "pypi-" + "AgEIcHlwaS5vcmc" + some(106)),
    "SendGrid": ("a.py", 'client("{}")', "SG." + some(22) + "." + some(43)),
    "Twilio": ("a.py", 'client("{}")', "SK" + some(32, HEX)),
    "Telegram": ("a.py", 'telegram_bot = "{}"', some(9, DIGITS) + ":AA" + some(33)),
    "JSON web token": ("a.sh", 'H="Authorization: Bearer {}"', jwt()),
    "Vault": ("a.sh", "vault login {}", "hvs" + "." + some(95)),
    "DigitalOcean": ("a.sh", "T={}", "dop" + "_v1_" + some(64, HEX)),
    "Databricks": ("a.py", 'connect("{}")', "dapi" + some(32, HEX)),
    "Shopify": ("a.py", 'x = "{}"', "shpat" + "_" + some(32, HEX)),
    "Azure storage": ("a.cs", 'var c = "AccountName=acme;AccountKey={};EndpointSuffix=core.windows.net";', base(64)),
    "Grafana": ("a.sh", "T={}", "glsa" + "_" + some(32) + "_" + some(8, HEX)),
    "Terraform Cloud": ("a.tf", 'token = "{}"\n' + "# words\n" * 30, some(14) + ".atlas" + "v1." + some(67)),
    "Docker Hub": ("a.sh", "docker login -p {}", "dckr" + "_pat_" + some(27)),
    "age": (
        "a.txt",
        "# the key of ops, and some words about it, so that it is no key file\n" * 3 + "{}",
        "AGE-SECRET-" + "KEY-1" + some(58, "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L"),
    ),
    "password of a database": ("a.yml", "url: postgres://app:{}@db.acme.io:5432/prod", PASSWORD),
    "password of a remote": ("a.md", "    git clone https://jane:{}@git.acme.io/x.git", PASSWORD),
    "password of curl": ("a.sh", "curl -u admin:{} https://x.acme.io", PASSWORD),
    "basic authentication": ("a.http", "GET /\nAuthorization: Basic {}\n\n" + "words\n" * 20, BASIC),
    "Docker's": ("auths.json", '{{"auths": {{"https://index.docker.io/v1/": {{"auth": "{}"}}}}}}', BASIC),
    "password": ("a.py", 'PASSWORD = "{}"', some(18) + "7aX9"),
    "password with punctuation": ("a.py", 'PASSWORD = "{}"', "aB3!dE6#gH9^kL2*nP5."),
    "api key": ("a.properties", "acme.api-key={}\n" + "# words\n" * 9, some(30) + "7aX9"),
    "Django": ("settings.py", "SECRET_KEY = '{}'", "django-insecure-" + some(46) + "7aX9"),
    "Rails": ("config.yml", "production:\n  secret_key_base: {}\n" + "# words\n" * 30, some(128, HEX)),
    "WordPress": ("wp.php", "<?php define('AUTH_KEY', '{}');", some(60) + "7aX9"),
    "client-key-data of a cluster": (
        "cluster.yaml",
        "kind: Config\n# words\nclient-key-data: {}\n" + "# words\n" * 300,
        base64.b64encode(KEY.encode()).decode(),
    ),
    "key in code": ("a.py", 'KEY = """{}"""', KEY.strip()),
    "key in a document": ("a.md", "# Setup\n\n```\n{}\n```\n", pem("PRIVATE KEY").strip()),
    "key in YAML": ("a.yaml", "# words\n" * 200 + "key: |\n  {}\n", KEY.strip().replace("\n", "\n  ")),
    "key in JSON": ("a.ipynb", '{{"cells": [], "key": "{}"}}', KEY.replace("\n", "\\n")),
    "key of OpenPGP": (
        "a.rst",
        "Key\n===\n\n::\n\n{}",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + base(300) + "\n-----END PGP PRIVATE KEY BLOCK-----",
    ),
}

SKIPPED = {
    "PEM": ("server.txt", KEY),
    "PEM under another name": ("deploy", "\n" + pem("EC PRIVATE KEY")),
    "OpenSSH": ("github", pem("OPENSSH PRIVATE KEY")),
    "a comment before a key": ("notes.txt", "Bag Attributes\n    friendlyName: acme\n" + KEY),
    "a certificate's key": ("bundle", pem("CERTIFICATE", 300) + KEY),
    "OpenPGP": (
        "private.asc",
        "-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n" + base(600) + "\n-----END PGP PRIVATE KEY BLOCK-----\n",
    ),
    "PuTTY": (
        "work",
        f"PuTTY-User-Key-File-3: ssh-rsa\nComment: x\nPrivate-Lines: 8\n{base(600)}\nPrivate-MAC: {some(40, HEX)}\n",
    ),
    "service account": (
        "acme-1234.json",
        json.dumps({"type": "service_account", "private_key": pem("PRIVATE KEY", 1200)}, indent="\n"),
    ),
    "a token alone": ("token", GITHUB + "\n"),
}

INNOCENT = {
    "environment's template": (
        ".env.example",
        "DATABASE_URL=postgres://user:password@localhost/app\nAPI_KEY=\nTOKEN=changeme\n",
    ),
    "document about secrets": (
        "secrets.md",
        "# Secrets\n\nSet `password: hunter2`, or `export GITHUB_TOKEN=ghp_...`. Never commit a key.\n",
    ),
    "documented id of AWS": (
        "a.md",
        "AWS_ACCESS_KEY_ID=AKIAIOSFODNN7EXAMPLE\nAWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY\n",
    ),
    "id of AWS alone": ("a.py", f'ID = "{AWS[0]}"'),
    "public key": ("id.pub", "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5" + base(33) + " jane@acme\n"),
    "public PEM": ("a.txt", pem("PUBLIC KEY", 300)),
    "certificate": ("a.txt", pem("CERTIFICATE", 600)),
    "header of a key": ("a.py", 'BEGIN = "-----BEGIN RSA PRIVATE KEY-----"\n'),
    "key cut short": ("a.md", "```\n-----BEGIN RSA PRIVATE KEY-----\n...\n-----END RSA PRIVATE KEY-----\n```\n"),
    "hashes of a lock": ("requirements.txt", f"flask==3.0 \\\n    --hash=sha256:{some(64, HEX)}\n"),
    "integrity": (
        "packages.json",
        json.dumps({"resolved": "https://r.io/a-1.0.tgz", "integrity": "sha512-" + base(64)}),
    ),
    "sums of Go": ("go.txt", f"github.com/gin-gonic/gin v1.9.1 h1:{base(32)}\n"),
    "UUID": ("a.py", 'ID = "123e4567-e89b-42d3-a456-426614174000"\n'),
    "commit": ("a.md", f"Since {some(40, HEX)}, all is well.\n"),
    "action at a commit": ("ci.yml", f"steps:\n  - uses: actions/checkout@{some(40, HEX)}\n"),
    "image": ("a.html", f'<p>x</p><img src="data:image/png;base64,{base(600)}">\n'),
    "password from the environment": (
        "a.py",
        'PASSWORD = os.environ["DATABASE_PASSWORD_2"]\nTOKEN = get_token_of_user_2(request)\n',
    ),
    "secret of GitHub Actions": ("ci.yml", "env:\n  TOKEN: ${{ secrets.DEPLOY_TOKEN_2 }}\n"),
    "placeholder": ("a.yml", "password: <your-password-here>\napi_key: YOUR_API_KEY_1234567890\n"),
    "template": ("a.yaml", 'password: "{{ .Values.database.password }}"\n'),
    "password in a URL that is none": ("a.md", "redis://user:PASSWORD@host:6379 or https://user:pass@example.com\n"),
    "parameters": ("a.go", "func login(username string, password string) (token string, err error) {\n"),
    "field": (
        "A.java",
        "private String password;\nprivate static final String TOKEN_HEADER_2 = HttpHeaders.AUTHORIZATION_2;\n",
    ),
    "test's password": ("test_a.py", 'user = User(password="secret123")\n'),
    "page of results": ("a.json", json.dumps({"NextToken": base(60), "ClientToken": base(24)})),
    "name of a secret": ("a.md", "arn:aws:secretsmanager:us-west-2:123456789012:secret:MyTestSecret-a1b2c3\n"),
    "translations": ("de.yml", "de:\n  password: Passwort\n  forgot_password: Kennwort vergessen?\n"),
    "table of numbers": ("a.csv", "\n".join(",".join(some(12, DIGITS) for _ in range(8)) for _ in range(40))),
    "curl without a password": ("a.sh", 'curl -fsSL "https://acme.io/v2/install.sh?id=20240501" | sh\n'),
    "long names": ("a.py", "def test_that_secret_tokens_of_2024_are_renewed_v2(access_token_2): ...\n"),
}


def content_of(name, text):
    return examine(name.encode(), text.encode())


@pytest.mark.parametrize("case", MASKED)
def test_a_secret_in_a_file_is_masked_and_nothing_else_is(case):
    name, around, secret = MASKED[case]
    text = around.format(secret) + "\n"
    content = content_of(name, text)
    assert content.reason is None
    masked = mask(text, content.masked)
    shown = [word for word in secret.split() if len(word) > 8]
    assert not any(word in masked for word in shown)
    assert len(masked.encode()) == len(text.encode())
    assert [len(line) for line in masked.splitlines()] == [len(line) for line in text.splitlines()]
    assert masked.startswith(text[: around.format("\0").index("\0")].rpartition("\n")[0])


@pytest.mark.parametrize("case", SKIPPED)
def test_a_file_that_is_a_secret_is_skipped_whatever_it_is_called(case):
    content = content_of(*SKIPPED[case])
    assert content.reason.startswith("secret: ")
    assert content.masked is None


@pytest.mark.parametrize("case", INNOCENT)
def test_what_only_looks_like_a_secret_stays_as_it_is(case):
    content = content_of(*INNOCENT[case])
    assert (content.reason, content.masked) == (None, ())


@pytest.mark.parametrize("comment", ["kingfisher:ignore", "gitleaks:allow", "pragma: allowlist secret"])
def test_a_comment_allows_the_secret_of_its_line(comment):
    text = f'token = "{GITHUB}"\n\n\ntoken = "{GITHUB}"  # {comment}\n'
    assert [secret.start_line for secret in find_secrets(text)] == [1]


def test_files_are_not_looked_at_where_a_project_wants_its_secrets_indexed(library):
    library.write("a.py", f'token = "{GITHUB}"\n')
    library.write("deploy", KEY)
    before = discover(library.source())
    assert before["masked"].to_pylist()[0][0]["rule"]
    after = discover(library.source(secrets="index"), before).select(["skipped_reason", "masked"]).to_pylist()
    assert after == [{"skipped_reason": None, "masked": None}] * 2
    assert discover(library.source(), before).equals(before)


def test_why_says_which_lines_are_masked_and_by_which_rule_but_not_the_secret(library):
    library.write("a.py", f'\ntoken = "{GITHUB}"\nKEY = """{KEY}"""\n')
    sentence = why(library.source(), Path("a.py")).sentence
    assert "secrets are masked in line 2 (" in sentence
    assert "lines 3 to 17 (private-key)" in sentence
    assert GITHUB not in sentence


def test_the_secrets_in_messages_of_commits_are_masked(repository):
    repository.write("a.py", "x = 1\n")
    repository.git("add", ".")
    repository.git("commit", "--quiet", "-m", f"Rotate {GITHUB}\n\nThe new one is {GITHUB[:-4]}AbC1")
    head = repository.git("rev-parse", "HEAD").strip()
    row = read_commits(repository.source(), head, None, 1).to_pylist()[0]
    assert GITHUB[:20] not in repr(row)
    assert row["subject"].startswith("Rotate ****")
    as_it_is = read_commits(repository.source(secrets="index"), head, None, 1).to_pylist()[0]
    assert as_it_is["subject"] == f"Rotate {GITHUB}"


SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=3)


@given(st.text(alphabet="ab é\n\u2028😀\t", max_size=40), SPANS)
def test_masking_keeps_lines_and_bytes(text, spans):
    starts = [len(text[:at].encode()) for at in range(len(text) + 1)]
    secrets = [Secret("x", 1, 1, *sorted((starts[a % len(starts)], starts[b % len(starts)]))) for a, b in spans]
    masked = mask(text, secrets)
    assert len(masked.encode()) == len(text.encode())
    assert [at for at, byte in enumerate(masked.encode()) if byte == 10] == [
        at for at, byte in enumerate(text.encode()) if byte == 10
    ]
    for secret in secrets:
        assert not masked.encode()[secret.start_byte : secret.end_byte].strip(b"* \t\n")


def test_the_detector_is_not_loaded_for_texts_that_cannot_hold_a_secret():
    program = (
        "import sys; from docindex_dagster.sources.secrets import find_secrets;"
        "assert find_secrets('def index(path):\\n    return load_settings(path)\\n') == ();"
        "sys.exit('kingfisher_sdk' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_offsets_are_of_the_text_as_utf8_whatever_the_encoding_of_the_file():
    text = f'# größer\ntoken = "{GITHUB}"\n'
    for encoding in ("utf-8", "latin-1", "utf-16"):
        content = examine(b"a.py", text.encode(encoding))
        assert GITHUB not in mask(decode(text.encode(encoding)).text, content.masked or ())
