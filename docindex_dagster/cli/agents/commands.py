"""The `docindex agents` commands: configure coding agents to use `docindex mcp`."""

import os
import re
import shlex
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from docindex_dagster.cli import completion
from docindex_dagster.cli.common import Json
from docindex_dagster.cli.selected_project import chosen, is_named
from docindex_dagster.render import console

if TYPE_CHECKING:
    from docindex_dagster.cli.agents.catalogue import Agent, Scope, Server
    from docindex_dagster.cli.agents.files import Change, Plan

app = typer.Typer(help="Configure coding agents to use docindex.", no_args_is_help=True)


def _server_name(value: str) -> str:
    """Return a server name that all agents accept.

    Raises:
        BadParameter: The name has other characters.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        raise typer.BadParameter("may only contain letters, digits, '-' and '_'")
    return value


Names = Annotated[
    list[str],
    typer.Argument(
        metavar="AGENT...",
        help="Agents such as claude; see docindex agents list.",
        autocompletion=completion.agents,
    ),
]
User = Annotated[
    bool,
    typer.Option("--user", help="Use the user's file, for all projects. Default: the project's file, if supported."),
]
Name = Annotated[str, typer.Option("--name", help="Name of the server entry.", callback=_server_name)]
Command = Annotated[
    str | None,
    typer.Option("--command", metavar="COMMAND", help="Command that runs docindex. Default: this program."),
]
NoRules = Annotated[bool, typer.Option("--no-rules", help="Do not add an instruction to the agent's rules file.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would change, without writing it.")]
_NAME = "docindex"
_UNREADABLE = "unreadable"


@app.command("add")
def agents_add(
    names: Names,
    user: User = False,
    remove: Annotated[bool, typer.Option("--remove", help="Remove it, like docindex agents remove.")] = False,
    dry_run: DryRun = False,
    no_rules: NoRules = False,
    name: Name = _NAME,
    command: Command = None,
) -> None:
    """Add docindex mcp, and an instruction to use it, to the files of agents.

    Other entries are kept; an entry of the same name is replaced. An entry in a
    project serves that project. With --user, it serves the project of the
    folder where the agent starts it, or the one given by --project.
    """
    if remove:
        if no_rules or command is not None:
            raise typer.BadParameter("--remove cannot be combined with --no-rules or --command")
        agents_remove(names, user=user, dry_run=dry_run, name=name)
        return
    from docindex_dagster.cli.agents import changes

    targets = [(agent, _scope(agent, user=user)) for agent in _agents(names)]
    with _editing(dry_run=dry_run) as plan:
        for agent, scope in targets:
            changes.add(plan, agent, scope, name, _server(agent, scope, plan, command), rules=not no_rules)
        is_changed = _apply_plan(plan, dry_run=dry_run)
    for agent, scope in targets:
        _warn_of_differences(agent, name, *changes.entries_of(plan, agent, scope, name))
    if dry_run or not is_changed:
        return
    for agent, scope in targets:
        if scope == "project" and agent.note:
            console.err.print(f"{agent.name}: {agent.note}")
    programs = {_server(agent, scope, plan, command).command for agent, scope in targets if scope == "project"}
    for program in programs:
        if os.sep in program:
            console.warning(
                f"the entries contain {program}, which does not exist for others who share these files; "
                "put docindex on the PATH and pass --command docindex"
            )


def _warn_of_differences(agent: "Agent", name: str, before: Any, after: Any) -> None:
    """Warn about what a replaced entry did. Only its keys are printed, since values may be secrets."""
    from docindex_dagster.cli.agents.changes import bound_project, command_line_of, replaced_keys

    if before is None:
        return
    if (root := bound_project(before, agent)) and root != bound_project(after, agent):
        console.warning(f"the entry {name} of {agent.name} served {root}; use another --name to keep both")
    if (old := command_line_of(before)) != (new := command_line_of(after)):
        console.warning(f"the entry {name} of {agent.name} started `{old}`, and now starts `{new}`")
    if keys := replaced_keys(before, after):
        console.warning(f"the entry {name} of {agent.name} had other keys, which were replaced: {', '.join(keys)}")


@app.command("remove")
def agents_remove(names: Names, user: User = False, dry_run: DryRun = False, name: Name = _NAME) -> None:
    """Remove docindex mcp and the instruction from the files of agents."""
    from docindex_dagster.cli.agents import changes
    from docindex_dagster.cli.agents.editing import has_rules

    with _editing(dry_run=dry_run) as plan:
        shared = {changes.remove(plan, agent, _scope(agent, user=user), name) for agent in _agents(names)}
        _apply_plan(plan, dry_run=dry_run)
    for file in shared - {None}:
        if file is not None and has_rules(plan.read(file), name):
            console.err.print(
                f"kept the instruction in {_display_path(file)}, since other agents that use docindex read it"
            )


@app.command("show")
def agents_show(names: Names, user: User = False, name: Name = _NAME, command: Command = None) -> None:
    """Print the entry and the instruction for adding them by hand."""
    from docindex_dagster.cli.agents.changes import entry_text
    from docindex_dagster.cli.agents.editing import instruction

    plan = _plan()
    for agent in _agents(names):
        scope = _scope(agent, user=user)
        console.err.print(f"{agent.title}, in {_display_path(agent.file(scope, plan.folder))}:")
        console.plain(entry_text(agent, name, _server(agent, scope, plan, command)).rstrip("\n"))
        rules = agent.rules(scope, plan.folder)
        if rules is not None:
            console.err.print(f"Then in {_display_path(rules)}:")
            console.plain(instruction(name))


@app.command("list")
def agents_list(name: Name = _NAME, json: Json = False) -> None:
    """List the supported agents and where docindex is configured."""
    from docindex_dagster.cli.agents.changes import states

    found = list(states(_plan().folder, name))
    if json:
        console.as_json(found)
        return
    rows = [
        (
            state.agent,
            state.scope,
            _UNREADABLE if state.problem else "yes" if state.command else "",
            _UNREADABLE if state.rules_problem else "yes" if state.has_rules else "",
            _display_path(state.file),
            "; ".join(filter(None, (state.command, state.problem, state.rules_problem))),
        )
        for state in found
    ]
    console.table(("agent", "scope", "entry", "instruction", "file", "command"), rows)


def _agents(names: Sequence[str]) -> list["Agent"]:
    """Return the named agents, each once.

    Raises:
        BadParameter: A name is unknown.
    """
    from docindex_dagster.cli.agents.catalogue import agents

    known = agents()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"unknown agent {unknown[0]!r}; expected one of {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def _scope(agent: "Agent", *, user: bool) -> "Scope":
    return "user" if user else agent.scopes()[0]


def _plan() -> "Plan":
    """Return a plan for the folder that the agent works in: the root of the enclosing project, or of the work tree."""
    from docindex_dagster.cli.agents.files import Plan

    here, root = Path.cwd(), chosen().root
    if here.is_relative_to(root):
        return Plan(root)
    return Plan(next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here))


@contextmanager
def _editing(*, dry_run: bool) -> Iterator["Plan"]:
    """Yield a plan. Unless it is a dry run, lock out other processes of this user that edit the files of agents."""
    from docindex_dagster.core.locks import exclusive
    from docindex_dagster.sources.projects import list_file

    with ExitStack() as stack:
        if not dry_run:
            with suppress(OSError):  # the home folder is read-only; applying the plan still detects conflicts
                lock = list_file().with_name("agents.lock")
                stack.enter_context(exclusive(lock, f"process {os.getpid()}", on_wait=lambda _: None))
        yield _plan()


def _server(agent: "Agent", scope: "Scope", plan: "Plan", command: str | None) -> "Server":
    """Return the server that an entry starts, bound to its project.

    A project's entry names the folder that its agent works in, and a path only if the project is elsewhere. A user's
    entry serves any folder, unless a project is named or the agent starts servers elsewhere.
    """
    from docindex_dagster.cli.agents.changes import server_for

    choice = chosen()
    if scope == "project" and plan.folder == choice.root:
        root = agent.folder
    elif scope == "project" and choice.because and not agent.starts_at_home:
        root = ""  # the project was found by what it indexes, which has another location for other users
    elif scope == "project" or is_named() or not agent.starts_in_project:
        root = str(choice.root)
    else:
        root = agent.folder if agent.starts_at_home else ""
    if scope == "project" or root == str(choice.root):
        choice.settings()  # checks that there is a project
    return server_for(scope, root, _words(command))


def _words(command: str | None) -> tuple[str, ...] | None:
    """Split a command line into words; None if there is none.

    Raises:
        BadParameter: It is empty, or a quote is not closed.
    """
    try:
        words = tuple(shlex.split(command)) if command is not None else None
    except ValueError as error:
        raise typer.BadParameter(f"--command {command!r}: {error}") from error
    if words == ():
        raise typer.BadParameter("--command is empty")
    return words


def _apply_plan(plan: "Plan", *, dry_run: bool) -> bool:
    """Apply a plan and print the changes, or only show them; return whether there are any."""
    changes = list(plan.changes())
    if not changes:
        console.out.print("nothing to do")
    elif dry_run:
        for change in changes:
            console.plain(change.diff().rstrip("\n"))
    else:
        plan.apply(_report)
    return bool(changes)


def _report(change: "Change") -> None:
    what = "removed" if change.after is None else "wrote" if change.before is None else "changed"
    console.out.print(f"{what} {_display_path(change.path)}")


def _display_path(path: Path) -> str:
    """Return a path relative to the working directory or the home folder if it is inside, otherwise unchanged."""
    for folder, prefix in ((Path.cwd(), ""), (Path.home(), f"~{os.sep}")):
        if path.is_relative_to(folder):
            return prefix + str(path.relative_to(folder))
    return str(path)
