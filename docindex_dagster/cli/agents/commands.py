"""`docindex agents …`: telling coding agents of `docindex mcp`."""

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

app = typer.Typer(help="Tell coding agents of docindex mcp, and what to use it for.", no_args_is_help=True)


def _server_name(value: str) -> str:
    """A name that all agents take.

    Raises:
        BadParameter: it has other characters.
    """
    if not re.fullmatch(r"[A-Za-z0-9_-]+", value):
        raise typer.BadParameter("must be letters, digits, '-' and '_'")
    return value


Names = Annotated[
    list[str],
    typer.Argument(metavar="AGENT...", help="Such as claude; `agents list` has all.", autocompletion=completion.agents),
]
User = Annotated[
    bool,
    typer.Option("--user", help="In the user's file, for all projects; default: in the project's, if there is one."),
]
Name = Annotated[str, typer.Option("--name", help="What the server is called there.", callback=_server_name)]
Command = Annotated[
    str | None, typer.Option("--command", metavar="COMMAND", help="How agents call docindex; default: this program.")
]
NoRules = Annotated[bool, typer.Option("--no-rules", help="Without an instruction in the agent's file of rules.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing, and show what would change.")]
_NAME = "docindex"
_CANNOT_BE_READ = "cannot be read"


@app.command("add")
def agents_add(
    names: Names,
    user: User = False,
    remove: Annotated[bool, typer.Option("--remove", help="Take it out again, instead.")] = False,
    dry_run: DryRun = False,
    no_rules: NoRules = False,
    name: Name = _NAME,
    command: Command = None,
) -> None:
    """Write the entry that starts docindex mcp, and an instruction, into the files of agents.

    Other entries in these files stay; an entry of that name is replaced whole. An entry in a project serves that
    project. With --user, it serves the project of the folder where an agent starts it, or the one that --project names.
    """
    if remove:
        if no_rules or command is not None:
            raise typer.BadParameter("--remove takes out all that was added: it goes without --no-rules and --command")
        agents_remove(names, user=user, dry_run=dry_run, name=name)
        return
    from docindex_dagster.cli.agents import changes

    wanted = [(agent, _scope(agent, user=user)) for agent in _agents(names)]
    with _editing(dry_run=dry_run) as plan:
        for agent, scope in wanted:
            changes.add(plan, agent, scope, name, _server(agent, scope, plan, command), rules=not no_rules)
        is_changed = _applied(plan, dry_run=dry_run)
    for agent, scope in wanted:
        _warn_of_differences(agent, name, *changes.entries_of(plan, agent, scope, name))
    if dry_run or not is_changed:
        return
    for agent, scope in wanted:
        if scope == "project" and agent.note:
            console.err.print(f"{agent.name}: {agent.note}")
    programs = {_server(agent, scope, plan, command).command for agent, scope in wanted if scope == "project"}
    for program in programs:
        if os.sep in program:
            console.warning(
                f"the entries name {program}, which others who share these files do not have; "
                "with docindex on the PATH, --command docindex names it for all"
            )


def _warn_of_differences(agent: "Agent", name: str, before: Any, after: Any) -> None:
    """Report what an entry did that was replaced. Values may be secrets, so only their keys are shown."""
    from docindex_dagster.cli.agents.changes import bound_to, replaced_keys, started_by

    if before is None:
        return
    if (root := bound_to(before, agent)) and root != bound_to(after, agent):
        console.warning(f"the entry {name} of {agent.name} was for {root}; with another --name, both stay")
    if (old := started_by(before)) != (new := started_by(after)):
        console.warning(f"the entry {name} of {agent.name} started `{old}`, and starts `{new}` now")
    if keys := replaced_keys(before, after):
        console.warning(f"the entry {name} of {agent.name} had other contents, which were replaced: {', '.join(keys)}")


@app.command("remove")
def agents_remove(names: Names, user: User = False, dry_run: DryRun = False, name: Name = _NAME) -> None:
    """Take the entry and the instruction out of the files of agents again."""
    from docindex_dagster.cli.agents import changes
    from docindex_dagster.cli.agents.editing import has_rules

    with _editing(dry_run=dry_run) as plan:
        shared = {changes.remove(plan, agent, _scope(agent, user=user), name) for agent in _agents(names)}
        _applied(plan, dry_run=dry_run)
    for file in shared - {None}:
        if file is not None and has_rules(plan.read(file), name):
            console.err.print(f"the instruction stays in {_shown(file)}: other agents that have docindex read it")


@app.command("show")
def agents_show(names: Names, user: User = False, name: Name = _NAME, command: Command = None) -> None:
    """Print the entry and the instruction, to be put into the files of agents by hand."""
    from docindex_dagster.cli.agents.changes import entry_text
    from docindex_dagster.cli.agents.editing import instruction

    plan = _plan()
    for agent in _agents(names):
        scope = _scope(agent, user=user)
        console.err.print(f"{agent.title}, in {_shown(agent.file(scope, plan.folder))}:")
        console.plain(entry_text(agent, name, _server(agent, scope, plan, command)).rstrip("\n"))
        rules = agent.rules(scope, plan.folder)
        if rules is not None:
            console.err.print(f"and in {_shown(rules)}:")
            console.plain(instruction(name))


@app.command("list")
def agents_list(name: Name = _NAME, json: Json = False) -> None:
    """Show which agents there are, and which have docindex where."""
    from docindex_dagster.cli.agents.changes import states

    found = list(states(_plan().folder, name))
    if json:
        console.as_json(found)
        return
    rows = [
        (
            state.agent,
            state.scope,
            _CANNOT_BE_READ if state.problem else "yes" if state.command else "",
            _CANNOT_BE_READ if state.rules_problem else "yes" if state.has_rules else "",
            _shown(state.file),
            "; ".join(filter(None, (state.command, state.problem, state.rules_problem))),
        )
        for state in found
    ]
    console.table(("agent", "scope", "entry", "instruction", "file", "command"), rows)


def _agents(names: Sequence[str]) -> list["Agent"]:
    """The agents of some names, each once.

    Raises:
        BadParameter: there is none of a name.
    """
    from docindex_dagster.cli.agents.catalogue import agents

    known = agents()
    unknown = [name for name in names if name not in known]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of the agents: {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def _scope(agent: "Agent", *, user: bool) -> "Scope":
    return "user" if user else agent.scopes()[0]


def _plan() -> "Plan":
    """Changes in the folder that an agent works in: the project's around the working directory, or its work tree."""
    from docindex_dagster.cli.agents.files import Plan

    here, root = Path.cwd(), chosen().root
    if here.is_relative_to(root):
        return Plan(root)
    return Plan(next((folder for folder in (here, *here.parents) if (folder / ".git").exists()), here))


@contextmanager
def _editing(*, dry_run: bool) -> Iterator["Plan"]:
    """Yield a plan; unless it is only shown, other processes of this user that edit files of agents wait meanwhile."""
    from docindex_dagster.core.locks import exclusive
    from docindex_dagster.sources.projects import list_file

    with ExitStack() as stack:
        if not dry_run:
            with suppress(OSError):  # the home folder is read-only: the files are compared all the same
                lock = list_file().with_name("agents.lock")
                stack.enter_context(exclusive(lock, f"process {os.getpid()}", on_wait=lambda _: None))
        yield _plan()


def _server(agent: "Agent", scope: "Scope", plan: "Plan", command: str | None) -> "Server":
    """The server that an entry starts, bound to its project.

    An entry of a project names the folder that its agent works in, and a path only if the project is elsewhere. An
    entry of the user serves each folder, unless a project is named or the agent starts servers elsewhere.
    """
    from docindex_dagster.cli.agents.changes import server_for

    choice = chosen()
    if scope == "project" and plan.folder == choice.root:
        root = agent.folder
    elif scope == "project" and choice.because and not agent.starts_at_home:
        root = ""  # found by what it indexes, which others have elsewhere
    elif scope == "project" or is_named() or not agent.starts_in_project:
        root = str(choice.root)
    else:
        root = agent.folder if agent.starts_at_home else ""
    if scope == "project" or root == str(choice.root):
        choice.settings()  # there has to be a project
    return server_for(scope, root, _words(command))


def _words(command: str | None) -> tuple[str, ...] | None:
    """The words of a command line; None where none is given.

    Raises:
        BadParameter: it has none, or a quote is open.
    """
    try:
        words = tuple(shlex.split(command)) if command is not None else None
    except ValueError as error:
        raise typer.BadParameter(f"--command {command!r}: {error}") from error
    if words == ():
        raise typer.BadParameter("--command is empty")
    return words


def _applied(plan: "Plan", *, dry_run: bool) -> bool:
    """Write what is planned and say so, or only show it; return whether there is anything to change."""
    changes = list(plan.changes())
    if not changes:
        console.out.print("nothing to do: all is as it should be")
    elif dry_run:
        for change in changes:
            console.plain(change.diff().rstrip("\n"))
    else:
        plan.apply(_say_made)
    return bool(changes)


def _say_made(change: "Change") -> None:
    what = "removed" if change.after is None else "wrote" if change.before is None else "changed"
    console.out.print(f"{what} {_shown(change.path)}")


def _shown(path: Path) -> str:
    """A path from here where it is below, else from the home folder, else whole."""
    for folder, prefix in ((Path.cwd(), ""), (Path.home(), f"~{os.sep}")):
        if path.is_relative_to(folder):
            return prefix + str(path.relative_to(folder))
    return str(path)
