"""Tests that agents parse the files we write: `make test-agents` installs the agents that are npm packages.

Agents that start the server to report its state start the real one. VS Code, Cursor, Windsurf and Zed are not npm
packages; their files are checked against their published formats.
"""

import json
import os
import re
import subprocess
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from docindex_dagster.cli.agents.catalogue import agents
from docindex_dagster.cli.agents.changes import own_command

INSTALLED = Path(__file__).parents[2] / "build" / "agents"
PATIENCE_S = 180
TRIES = 5
ROOT = "DOCINDEX_ROOT"
ARGUMENTS = ["mcp", "--watch"]
COLOURS = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
# From crates/settings_content in Zed's source: a local server has a command and arguments.
ZED = {
    "type": "object",
    "required": ["command", "args"],
    "properties": {
        "source": {"enum": ["custom"]},
        "enabled": {"type": "boolean"},
        "command": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}},
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "timeout": {"type": "integer"},
    },
    "additionalProperties": False,
}
# From src/vs/workbench/contrib/mcp/common/mcpConfiguration.ts in VS Code's source.
VSCODE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "type": {"enum": ["stdio"]},
        "command": {"type": "string"},
        "cwd": {"type": "string"},
        "args": {"type": "array", "items": {"type": "string"}},
        "envFile": {"type": "string"},
        "env": {"type": "object", "additionalProperties": {"type": ["string", "number", "null"]}},
        "dev": {"type": "object"},
    },
}

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not (INSTALLED / "node_modules").is_dir(), reason="make test-agents installs the agents"),
]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a project in the home folder of a user who has no agents."""
    home, project = tmp_path / "home", tmp_path / "home" / "project"
    project.mkdir(parents=True)
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", ROOT):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GEMINI_CLI_TRUST_WORKSPACE", "true")
    monkeypatch.setenv("MCP_TIMEOUT", "120000")  # milliseconds that Claude Code waits for a server to start
    monkeypatch.setenv("DOCINDEX_CEILING_DIRECTORIES", str(home))
    monkeypatch.chdir(project)
    subprocess.run(["git", "init", "-q"], check=True)
    (project / "guide.md").write_text("# Pumps\n\nPrime the pump before its first use.\n")
    docindex("init")
    docindex("index")
    return project


def docindex(*arguments):
    from docindex_dagster.cli.app import app

    ended = CliRunner().invoke(app, arguments)
    assert ended.exit_code == 0, ended.output


def asked(agent, *arguments):
    """Return the output of an agent command."""
    program = INSTALLED / "node_modules" / ".bin" / agent
    ended = subprocess.run(
        [program, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL, check=False
    )
    printed = COLOURS.sub("", f"{ended.stdout}\n{ended.stderr}")
    print(f"$ {agent} {' '.join(arguments)}\n{printed}")
    return printed


def json_in(printed):
    """Return the first JSON value in the output."""
    start = min(at for at in (printed.find("{"), printed.find("[")) if at >= 0)
    return json.JSONDecoder().raw_decode(printed[start:])[0]


@pytest.fixture(scope="module")
def program():
    [command] = own_command(is_shared=True)
    return command


def test_claude_code_reads_the_entry_of_a_project_and_asks_first(place, program):
    docindex("agents", "add", "claude")
    printed = asked("claude", "mcp", "get", "docindex")

    assert "Scope: Project config" in printed
    assert "Type: stdio" in printed
    assert f"Command: {program}\n" in printed
    assert "Args: mcp --watch\n" in printed


def test_claude_code_connects_by_the_entry_of_the_user(place):
    docindex("agents", "add", "claude", "--user")
    printed = asked("claude", "mcp", "get", "docindex")

    assert "Scope: User config" in printed
    assert "Connected" in printed

    docindex("agents", "add", "claude", "--user", "--remove")
    assert "No MCP server" in asked("claude", "mcp", "get", "docindex")


@pytest.mark.parametrize("is_users", [True, False])
def test_codex_reads_it(place, is_users):
    docindex("agents", "add", "codex", *(["--user"] if is_users else []))
    if not is_users:
        config = Path.home() / ".codex" / "config.toml"
        config.parent.mkdir()
        config.write_text(f'[projects."{place}"]\ntrust_level = "trusted"\n')
    [server] = json_in(asked("codex", "mcp", "list", "--json"))

    assert (server["name"], server["enabled"]) == ("docindex", True)
    assert server["transport"]["type"] == "stdio"
    assert server["transport"]["args"] == ARGUMENTS


def test_gemini_cli_connects(place):
    docindex("agents", "add", "gemini")

    for _ in range(TRIES):  # the agent waits only five seconds, which may be too short on a busy machine
        printed = asked("gemini", "mcp", "list")
        [state] = re.findall(r"docindex: \S*docindex mcp --watch \(stdio\) - (\w+)", printed)
        if state == "Connected":
            return
    pytest.fail(f"it never connected: {state}")


def test_opencode_connects(place, program):
    docindex("agents", "add", "opencode")

    assert json_in(asked("opencode", "debug", "config"))["mcp"]["docindex"] == {
        "type": "local",
        "command": [program, *ARGUMENTS],
        "enabled": True,
        "environment": {ROOT: "."},
    }
    assert "docindex connected" in asked("opencode", "mcp", "list")


def test_copilot_reads_it(place):
    docindex("agents", "add", "copilot")
    server = json_in(asked("copilot", "mcp", "list", "--json"))["mcpServers"]["docindex"]

    assert (server["args"], server["tools"], server["enabled"]) == (ARGUMENTS, ["*"], True)


def test_cline_reads_it(place):
    docindex("agents", "add", "cline")
    [server] = json_in(asked("cline", "config", "mcp", "--json"))

    assert (server["name"], server["transportType"], server["disabled"]) == ("docindex", "stdio", False)


READ = """
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
const require = createRequire(process.argv[1] + "/");
const { parse } = require("jsonc-parser");
const { validateGeneratedConfig } = require("@gleanwork/mcp-config-schema");
const errors = [];
const found = parse(readFileSync(process.argv[2], "utf8"), errors, { allowTrailingComma: true });
const valid = process.argv[3] === "zed" ? null : validateGeneratedConfig(found, process.argv[3]).success;
console.log(JSON.stringify({ found, errors, valid }));
"""


@pytest.mark.parametrize("name", ["vscode", "cursor", "windsurf", "zed"])
def test_what_is_no_package_finds_what_is_published_of_its_format(place, name):
    agent = agents()[name]
    file = agent.file(agent.scopes()[0], place)
    file.parent.mkdir(parents=True, exist_ok=True)
    if agent.format == "jsonc":
        file.write_text('{\n  "other": {"a": 1}\n}\n')
    docindex("agents", "add", name)
    script = ["node", "--input-type=module", "-e", READ, "--", str(INSTALLED), str(file), name]
    ended = subprocess.run(script, capture_output=True, text=True, check=True, cwd=INSTALLED)
    read = json.loads(ended.stdout)
    server = read["found"][agent.path]["docindex"]
    print(f"{name}: {read}")

    assert read["errors"] == []
    assert read["valid"] in {True, None}
    assert server["args"] == ARGUMENTS
    if name in {"zed", "vscode"}:
        jsonschema.validate(server, ZED if name == "zed" else VSCODE)


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("claude", "claude-code"),
        ("codex", "codex"),
        ("cursor", "cursor"),
        ("gemini", "gemini"),
        ("opencode", "opencode"),
        ("vscode", "vscode"),
        ("windsurf", "windsurf"),
    ],
)
def test_files_and_keys_are_those_of_a_published_list(place, name, published):
    package = INSTALLED / "node_modules" / "@gleanwork" / "mcp-config-schema"
    listed = json.loads((package / "configs" / f"{published}.json").read_text())
    agent = agents()[name]

    assert str(agent.user_file) == listed["configPath"]["linux"].replace("$HOME", os.environ["HOME"])
    assert agent.path == listed["configStructure"]["serversPropertyName"]
