"""Which agents there are, in which files they look for servers and instructions, and how an entry is written there.

As their own documentation has it; `make test-agents` lets those that are packages read what we write.
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
    """How `docindex mcp` is started."""

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
        name: by which users call it here.
        title: its own name.
        project_file: where it looks for servers in a project, relative to that; empty: it looks in none.
        user_file: where it looks for servers of the user, from the root.
        path: the keys that lead to the servers.
        format: of both files.
        entry: what describes a server there.
        environment_key: which of its keys holds variables.
        project_rules: the file with instructions in a project.
        user_rules: that of the user; None: there is none.
        starts_in_project: whether it starts servers of the user in the folder that it works in.
        starts_at_home: whether it starts them in the home folder, so that their entries need `folder`.
        folder: the folder that it works in, as entries name it: a variable if it has one, else the working directory.
        reads_jsonc: whether both files may also be called `.jsonc`.
        note: what the user has to do yet, where the entry stands in a project.
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
        """Where it looks for servers, the usual place first."""
        return ("project", "user") if self.project_file else ("user",)

    def file(self, scope: Scope, folder: Path) -> Path:
        """The file with its servers; where there is one whose name says that it has comments, that."""
        file = folder / self.project_file if scope == "project" else self.user_file
        other = file.with_suffix(".jsonc")
        return other if self.reads_jsonc and not file.exists() and other.exists() else file

    def rules(self, scope: Scope, folder: Path) -> Path | None:
        """The file with its instructions."""
        return folder / self.project_rules if scope == "project" or not self.starts_in_project else self.user_rules


def agents() -> Mapping[str, Agent]:
    """All of them by name. Where the user's files are follows from variables."""
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
            note="Claude Code asks when it starts here whether to use the server",
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
            note="switch the server on in Cursor's settings, under MCP",
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
    """Where VS Code has what is the user's."""
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "Code" / "User"
    return _from_variable("XDG_CONFIG_HOME", Path.home() / ".config") / "Code" / "User"
