import os

import pytest

from docindex_dagster.sources.changes import fingerprint
from docindex_dagster.sources.discovery import discover
from docindex_dagster.sources.secrets import secret_reason


def reason_of(path):
    folder, name = os.path.split(path)
    return secret_reason(os.fsencode(folder + "/" if folder else ""), os.fsencode(name))


@pytest.mark.parametrize(
    ("path", "glob"),
    [
        (".env", ".env*"),
        (".env.production.local", ".env*"),
        (".envrc", ".env*"),
        ("deploy/prod.env", "*.env"),
        (".kube/config", ".kube/config"),
        ("home/jane/.kube/config", ".kube/config"),
        (".docker/config.json", ".docker/config.json"),
        (".aws/credentials", "credentials*"),
        (".config/gcloud/legacy/adc.json", ".config/gcloud/*"),
        (".config/gh/hosts.yml", ".config/gh/hosts.yml"),
        (".m2/settings.xml", ".m2/settings.xml"),
        (".gnupg/trustdb", ".gnupg/*"),
        (".ssh/work", ".ssh/*"),
        (".vault-token", ".vault-token"),
        (".bash_history", ".*_history"),
        (".zsh_history", ".*_history"),
        (".psql_history", ".*_history"),
        ("fish_history", "fish_history"),
        ("ConsoleHost_history.txt", "consolehost_history.txt"),
        (".my.cnf", ".my.cnf"),
        (".pgpass", ".pgpass"),
        (".s3cfg", ".s3cfg"),
        (".git-credentials", ".git-credentials"),
        (".terraformrc", ".terraformrc"),
        ("etc/htpasswd", "htpasswd"),
        ("rclone.conf", "rclone.conf"),
        ("terraform.tfstate", "*.tfstate"),
        ("terraform.tfstate.backup", "*.tfstate.*"),
        ("prod.tfvars", "*.tfvars"),
        ("prod.auto.tfvars.json", "*.tfvars.json"),
        ("client_secret_12-ab.apps.json", "client_secret*.json"),
        ("service-account.json", "service-account*.json"),
        ("acme-service-account.json", "*-service-account.json"),
        ("acme-firebase-adminsdk-x1.json", "*firebase-adminsdk*.json"),
        ("config/secrets.yaml", "secrets.*"),
        ("config/Secrets.yml", "secrets.*"),
        ("secrets.prod.json", "secrets.*"),
        ("secrets-prod.yaml", "secrets.*"),
        (".streamlit/secrets.toml", "secrets.*"),
        ("credentials.txt", "credentials*"),
        ("id_ed25519", "id_ed25519*"),
        ("id_ed25519_work", "id_ed25519*"),
        ("team.kdbx", "*.kdbx"),
        ("vpn.ovpn", "*.ovpn"),
        ("cert.p12", "*.p12"),
        ("cert.pfx", "*.pfx"),
        ("AuthKey_A1.p8", "*.p8"),
        ("http.keytab", "*.keytab"),
    ],
)
def test_a_file_that_is_named_as_secrets_are_is_one(path, glob):
    assert reason_of(path) == f"secret: {glob}"


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        ".env.local.sample",
        ".env.template",
        "example.env",
        "prod.tfvars.example",
        "credentials.json.example",
        "id_rsa.pub",
        "id_ed25519.pub",
        "secrets.py",
        "credentials.py",
        "docs/secrets.md",
        "id_rsa_test.go",
        "secrets/README.md",
        "secrets_manager.json",
        "templates/secret.yaml",
        "config/config.json",
        "kube/config",
        ".docker/php/Dockerfile",
        ".kube/deployment.yaml",
        ".aws/task-definition.json",
        "history.md",
        "environment.yml",
        "variables.tf",
        "keyboard.md",
        "service_accounts.go",
        ".github/workflows/credentials.sh",
    ],
)
def test_templates_public_keys_code_and_documents_are_no_secrets_by_their_names(path):
    assert reason_of(path) is None


def test_a_project_may_want_its_secrets_indexed(library):
    library.write("prod.env", "HOST=a\n")
    skipped, indexed = library.source(), library.source(secrets="index")
    before = discover(skipped)
    assert before["skipped_reason"].to_pylist() == ["secret: *.env"]
    assert discover(indexed, before)["skipped_reason"].to_pylist() == [None]
    assert fingerprint(indexed) != fingerprint(skipped)
