"""Serving others: `docindex ui` for people, `docindex mcp` for agents."""

import os
import signal
import socket
import sys
import tempfile
from contextlib import closing, nullcontext
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Annotated, cast

import typer

from docindex_dagster.cli import completion
from docindex_dagster.cli.selected_project import load_project, load_settings
from docindex_dagster.core.access import writing
from docindex_dagster.core.errors import SettingsError, SourceError, is_debugging
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import hold_for_life
from docindex_dagster.core.privileges import ENVIRONMENT_FILE, trusted_file
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings, check_home
from docindex_dagster.render import console

Domain = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="KEY",
        help="Remember: write into this domain of memory, as memory/main. Without it, nothing can be written.",
        autocompletion=completion.domains,
    ),
]
MayRead = Annotated[
    list[str] | None,
    typer.Option(
        "--may-read",
        metavar="KEY",
        help="With --domain: a further domain that may be recalled; may be given several times.",
        autocompletion=completion.domains,
    ),
]
_RECORDING_S = 10.0  # of runs in the journal, before the UI starts; its sensor records the others
_DESCRIPTORS = Path("/proc/self/fd")
_VARIABLE = "DOCINDEX_SERVE__TOKEN"
_LOCK = "ui.lock"  # in the folder of the Dagster instance, which has one daemon


def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where the UI listens.")] = 3000,
    host: Annotated[str, typer.Option(help="Which address it listens on.")] = "127.0.0.1",
) -> None:
    """Start the Dagster UI, its sensors and its schedule on this project: once, since a second daemon stops the first.

    The terminal shows where it is, warnings and errors; with --debug all that Dagster says.
    """
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.definitions import build_definitions
    from docindex_dagster.defs.recorder import record

    settings = load_settings()
    with dagster_runs.instance(settings) as instance:  # its databases are there before several processes look for them
        record(instance, settings, partial(build_definitions, settings.root), _RECORDING_S)
    home = dagster_runs.dagster_home(settings)
    if (other := hold_for_life(home / _LOCK, f"http://{host}:{port} (process {os.getpid()})")) is not None:
        raise SourceError(f"docindex ui runs already on {home}: open {other}, or stop it first")
    _refuse_busy_port(host, port)
    os.environ.setdefault("DAGSTER_HOME", _pinned(settings, home))  # one that the user chose may be shared by machines
    os.environ["DOCINDEX_ROOT"] = str(settings.root)
    # Dagster imports modules from its working folder and reads the .env in it: that must not be one of the project's.
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ |= _environment_of(settings)
    # `dg dev`, which Dagster recommends in its stead, is not part of what docindex installs.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:Function `dev_command`:FutureWarning")
    # A shell's background job ignores Ctrl-C; Dagster's processes, which stop each other by it, would never end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    console.out.print(f"the Dagster UI starts at http://{host}:{port}: ten seconds or more; stop it with Ctrl-C")
    command = [sys.executable, "-m", "dagster", "dev", "--module-name", "docindex_dagster.definitions"]
    level = "debug" if is_debugging() else "warning"
    levels = ("--log-level", level, "--code-server-log-level", level)
    with writing(settings):
        os.chdir(tempfile.mkdtemp(prefix="docindex-ui-"))
        os.execv(command[0], [*command, "--port", str(port), "--host", host, *levels])  # noqa: S606 there is no shell in between


def _pinned(settings: Settings, home: Path) -> str:
    """Return a path that leads to a folder for as long as this process runs, wherever links lead its own path later.

    Dagster opens its databases by path, again and again; a pull may make `.docindex` a link.

    Raises:
        LinkError: It is one already.
    """
    if not _DESCRIPTORS.is_dir():  # not Linux
        return str(home)
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    os.set_inheritable(descriptor, True)  # noqa: FBT003 it has no names
    check_home(settings)
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _environment_of(settings: Settings) -> dict[str, str]:
    """The variables of the project's `.env`, if it has one and the user trusts it, but for those that are set."""
    from dotenv import dotenv_values

    data = trusted_file(settings.root, ENVIRONMENT_FILE)
    if data is None:
        if (settings.root / ENVIRONMENT_FILE).is_file():
            review = command("docindex", "trust", settings.root)
            console.warning(f"{ENVIRONMENT_FILE} is ignored: it is not trusted; review with {review}")
        return {}
    values = dotenv_values(stream=StringIO(data.decode(errors="replace")))
    return {name: value for name, value in values.items() if value is not None and name not in os.environ}


def mcp(
    watch: Annotated[
        bool, typer.Option("--watch", help="Also index edits as they happen, as docindex watch does.")
    ] = False,
    domain: Domain = None,
    may_read: MayRead = None,
) -> None:
    """Answer agents over the Model Context Protocol, on standard input and output.

    An agent starts this command itself; the README says how to configure it. With --watch, what is saved is found about
    a second later, and no other process is needed. With --domain, it also has tools that remember, recall and forget.
    """
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.cli.memory import memory_of
    from docindex_dagster.cli.watch import in_background
    from docindex_dagster.search.live_index import LateLive, Live
    from docindex_dagster.serving.fold_scheduler import folding
    from docindex_dagster.serving.mcp_server import serve
    from docindex_dagster.serving.memory_tools import MemoryTools
    from docindex_dagster.serving.tools import CollectingTools, Tools

    try:
        settings = load_project()
    except SourceError as error:  # an agent shows what a tool answers, and not why a server ended
        console.warning(f"{error}; the tools say so until there is a project")
        serve(Tools(cast("Live", LateLive(lambda: Live(load_project()))), dagster_runs.outcomes))
        return
    live = Live(settings)
    memory = memory_of(live, domain, may_read)
    folds = folding(settings, [memory.bound]) if memory else nullcontext()
    with in_background(settings) if watch else nullcontext(), folds:
        remembering = MemoryTools(memory) if memory else None
        serve(Tools(live, dagster_runs.outcomes, Path.cwd()), remembering, CollectingTools.of(live))


def serve(
    host: Annotated[
        str, typer.Option(help="Which address it listens on; any but loopback needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Where it listens.")] = 8090,
    no_ui: Annotated[bool, typer.Option("--no-ui", help="Serve no page, the API and agents alone.")] = False,
    no_jobs: Annotated[bool, typer.Option("--no-jobs", help="Take no jobs: index nothing.")] = False,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token", help="Ask for no token: let every user of this machine read and index by the server."
        ),
    ] = False,
    domain: Domain = None,
    may_read: MayRead = None,
) -> None:
    """Serve the index by HTTP: a page to search and read in, an API, and agents at /mcp.

    It listens on loopback and asks for a token: DOCINDEX_SERVE__TOKEN, or else the one in serve.token in DOCINDEX_HOME,
    which it makes. Elsewhere DOCINDEX_SERVE__TOKEN has to be set. With --domain, agents and programs can also write
    into this domain of memory, recall and forget.
    """
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.cli.memory import memory_of
    from docindex_dagster.search.live_index import Live
    from docindex_dagster.serving.fold_scheduler import folding
    from docindex_dagster.serving.http.app import build_app, run
    from docindex_dagster.serving.http.security import LOGIN, Access, is_loopback
    from docindex_dagster.serving.http.served_project import Served
    from docindex_dagster.serving.http.sessions import stored_token
    from docindex_dagster.serving.telemetry.tracing import of_environment

    settings = load_project()
    secret = settings.serve.token
    if secret is not None and no_token:
        raise SettingsError(f"{_VARIABLE} is set: unset it, or leave out --no-token")
    if secret is None and not is_loopback(host):
        raise SettingsError(
            f"whoever reaches {host} could read all that is indexed: set {_VARIABLE} to a long random text, "
            f"or listen on 127.0.0.1"
        )
    _refuse_busy_port(host, port)
    os.environ.pop(_VARIABLE, None)  # neither runs nor git need it
    layout = Layout(settings.home)
    token = secret.get_secret_value() if secret else None
    if is_stored := token is None and not no_token:
        with writing(settings):
            token = stored_token(layout.serve_token, layout.serve_token_lock)
    access = Access.of(host, token, settings.serve, layout.ended_sessions)
    live = Live(settings)
    memory = memory_of(live, domain, may_read)
    served = Served(live, access, dagster_runs.outcomes, dagster_runs.jobs_of(settings, is_on=not no_jobs), memory)
    console.out.print(f"docindex serves {settings.root} at {_address(host, port)}; stop it with Ctrl-C")
    if is_stored:
        console.out.print(f"its token is in {layout.serve_token}")
        # Others could read a file to which the output goes.
        if console.out.is_terminal and not no_ui:
            link = f"{_address(host, port)}{LOGIN}?code={access.sessions.new_code()}"
            console.out.print(f"log in with this link, which works once: {link}", soft_wrap=True)
    traces = of_environment(console.err.print, has_texts=settings.serve.trace_texts)
    app = build_app(served, has_page=not no_ui, traces=traces)
    folds = folding(settings, [memory.bound], on_folded=app.state.metrics.folded) if memory else nullcontext()
    with closing(traces) if traces else nullcontext(), folds:
        run(app, host, port)


def _address(host: str, port: int) -> str:
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _refuse_busy_port(host: str, port: int) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SourceError(f"cannot listen on {host}:{port} ({error.strerror}); choose another --port") from error
