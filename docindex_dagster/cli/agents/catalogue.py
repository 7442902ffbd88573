"""The supported agents: where they look for servers and instructions, and how they write a server entry.

The data follows each agent's documentation. `make test-agents` verifies it for agents that are available as packages.
"""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

Format = Literal["json", "jsonc", "toml"]
Scope = Literal["project", "user"]


@dataclass(frozen=True, slots=True)
class Server:
    """The command that starts `docindex mcp`."""

    command: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]


def _plain(server: Server) -> dict[str, Any]:
    return {"command": server.command, "args": [*server.arguments], **_variables("env", server)}


def _variables(key: str, server: Server) -> dict[str, Any]:
    return {key: dict(server.environment)} if server.environment else {}


def _stdio(server: Server) -> dict[str, Any]:
    return {"type": "stdio", **_plain(server)}


def _custom(server: Server) -> dict[str, Any]:
    return {"source": "custom", **_plain(server)}


def _local(server: Server) -> dict[str, Any]:
    return {"type": "local", **_plain(server), "tools": ["*"]}


def _opencode(server: Server) -> dict[str, Any]:
    command = [server.command, *server.arguments]
    return {"type": "local", "command": command, "enabled": True, **_variables("environment", server)}


@dataclass(frozen=True, slots=True)
class Agent:
    """A coding agent.

    Attributes:
        name: the name used on the command line.
        title: the product name.
        project_file: the server file in a project, relative to the project; empty if the agent has none.
        user_file: the user's server file, as an absolute path.
        path: the key that holds the servers.
        format: the format of both files.
        entry: builds the entry of a server.
        environment_key: the key of an entry that holds environment variables.
        project_rules: the instruction file in a project.
        user_rules: the user's instruction file; None if the agent has none.
        starts_in_project: whether the agent starts the user's servers in the folder that it works in.
        starts_at_home: whether the agent starts them in the home folder, so that their entries need `folder`.
        folder: the folder that the agent works in, as entries name it: a variable, or else the working directory.
        reads_jsonc: whether both files may have the extension `.jsonc`.
        note: what the user still has to do after adding an entry to a project.
    """

    name: str
    title: str
    project_file: str
    user_file: Path
    path: str
    format: Format
    entry: Callable[[Server], dict[str, Any]]
    project_rules: str
    user_rules: Path | None
    environment_key: str = "env"
    starts_in_project: bool = True
    starts_at_home: bool = False
    folder: str = "."
    reads_jsonc: bool = False
    note: str = ""

    def scopes(self) -> tuple[Scope, ...]:
        """Return the scopes in which the agent looks for servers, the preferred one first."""
        return ("project", "user") if self.project_file else ("user",)

    def file(self, scope: Scope, folder: Path) -> Path:
        """Return the server file, or its `.jsonc` variant if only that exists."""
        file = folder / self.project_file if scope == "project" else self.user_file
        other = file.with_suffix(".jsonc")
        return other if self.reads_jsonc and not file.exists() and other.exists() else file

    def rules(self, scope: Scope, folder: Path) -> Path | None:
        """Return the instruction file."""
        return folder / self.project_rules if scope == "project" or not self.starts_in_project else self.user_rules


def agents() -> Mapping[str, Agent]:
    """Return all agents by name. Environment variables determine the paths of the user's files."""
    home, code = Path.home(), _code_folder()
    claude = _from_variable("CLAUDE_CONFIG_DIR", home)
    codex = _from_variable("CODEX_HOME", home / ".codex")
    copilot = _from_variable("COPILOT_HOME", home / ".copilot")
    config = _from_variable("XDG_CONFIG_HOME", home / ".config")
    zed = home / ".config" / "zed" if sys.platform == "darwin" else config / "zed"
    found = (
        Agent(
            "claude",
            "Claude Code",
            ".mcp.json",
            claude / ".claude.json",
            "mcpServers",
            "json",
            _stdio,
            "CLAUDE.md",
            _from_variable("CLAUDE_CONFIG_DIR", home / ".claude") / "CLAUDE.md",
            note="Claude Code asks whether to use the server when you start it here",
        ),
        Agent(
            "codex",
            "Codex",
            ".codex/config.toml",
            codex / "config.toml",
            "mcp_servers",
            "toml",
            _plain,
            "AGENTS.md",
            codex / "AGENTS.md",
            note="Codex reads it once you trust this folder",
        ),
        Agent(
            "cursor",
            "Cursor",
            ".cursor/mcp.json",
            home / ".cursor" / "mcp.json",
            "mcpServers",
            "jsonc",
            _stdio,
            ".cursor/rules/docindex.mdc",
            None,
            starts_at_home=True,
            folder="${workspaceFolder}",
            note="turn on the server in Cursor's settings, under MCP",
        ),
        Agent(
            "vscode",
            "VS Code",
            ".vscode/mcp.json",
            code / "mcp.json",
            "servers",
            "jsonc",
            _stdio,
            ".github/copilot-instructions.md",
            None,
            folder="${workspaceFolder}",
            note="VS Code asks whether to trust the server when it starts it",
        ),
        Agent(
            "gemini",
            "Gemini CLI",
            ".gemini/settings.json",
            home / ".gemini" / "settings.json",
            "mcpServers",
            "jsonc",
            _plain,
            "GEMINI.md",
            home / ".gemini" / "GEMINI.md",
            note="Gemini CLI reads it in folders that you trust",
        ),
        Agent(
            "opencode",
            "opencode",
            "opencode.json",
            config / "opencode" / "opencode.json",
            "mcp",
            "jsonc",
            _opencode,
            "AGENTS.md",
            config / "opencode" / "AGENTS.md",
            environment_key="environment",
            reads_jsonc=True,
        ),
        Agent(
            "zed",
            "Zed",
            ".zed/settings.json",
            zed / "settings.json",
            "context_servers",
            "jsonc",
            _custom,
            "AGENTS.md",
            zed / "AGENTS.md",
            note="Zed starts it once you trust the worktree",
        ),
        Agent(
            "copilot",
            "GitHub Copilot CLI",
            "",
            copilot / "mcp-config.json",
            "mcpServers",
            "json",
            _local,
            ".github/copilot-instructions.md",
            copilot / "copilot-instructions.md",
        ),
        Agent(
            "windsurf",
            "Windsurf",
            "",
            home / ".codeium" / "windsurf" / "mcp_config.json",
            "mcpServers",
            "json",
            _plain,
            "AGENTS.md",
            None,
            starts_in_project=False,
        ),
        Agent(
            "cline",
            "Cline",
            "",
            _cline_file(home),
            "mcpServers",
            "json",
            _stdio,
            "AGENTS.md",
            None,
            starts_in_project=False,
        ),
    )
    return MappingProxyType({agent.name: agent for agent in found})


def _from_variable(name: str, default: Path) -> Path:
    value = os.environ.get(name, "")
    return Path(value) if value.startswith("/") else default


def _cline_file(home: Path) -> Path:
    return _from_variable("CLINE_MCP_SETTINGS_PATH", home / ".cline" / "data" / "settings" / "cline_mcp_settings.json")


def _code_folder() -> Path:
    """Return VS Code's folder for the user's settings."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Code" / "User"
    return _from_variable("XDG_CONFIG_HOME", Path.home() / ".config") / "Code" / "User"
