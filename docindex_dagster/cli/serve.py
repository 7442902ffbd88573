"""Commands that start servers: `docindex ui`, `docindex mcp` and `docindex serve`."""

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
from docindex_dagster.core.access import writable_home
from docindex_dagster.core.errors import SettingsError, SourceError, is_debugging
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.locks import hold_until_exit
from docindex_dagster.core.privileges import ENVIRONMENT_FILE, trusted_file
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings, check_home
from docindex_dagster.render import console

Domain = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="KEY",
        help="Let clients write to this memory domain, such as memory/main. Without it, memory is off.",
        autocompletion=completion.domains,
    ),
]
MayRead = Annotated[
    list[str] | None,
    typer.Option(
        "--may-read",
        metavar="KEY",
        help="Another domain that clients may recall from. Requires --domain. Repeatable.",
        autocompletion=completion.domains,
    ),
]
_RECORDING_S = 10.0  # for recording journal runs before the UI starts; its sensor records the rest
_DESCRIPTORS = Path("/proc/self/fd")
_VARIABLE = "DOCINDEX_SERVE__TOKEN"
_LOCK = "ui.lock"  # in the folder of the Dagster instance, which supports a single daemon


def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 3000,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
) -> None:
    """Start the Dagster UI with the project's sensors and schedule.

    A project can have only one, since a second daemon would stop the first. The
    terminal shows the address, warnings and errors; with --debug, all of
    Dagster's output.
    """
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.definitions import build_definitions
    from docindex_dagster.defs.recorder import record

    settings = load_settings()
    with dagster_runs.instance(settings) as instance:  # creates the databases before several processes open them
        record(instance, settings, partial(build_definitions, settings.root), _RECORDING_S)
    home = dagster_runs.dagster_home(settings)
    if (other := hold_until_exit(home / _LOCK, f"http://{host}:{port} (process {os.getpid()})")) is not None:
        raise SourceError(f"docindex ui is already running for {home}: open {other}, or stop it first")
    _refuse_busy_port(host, port)
    os.environ.setdefault("DAGSTER_HOME", _pinned(settings, home))  # one that the user chose may be shared by machines
    os.environ["DOCINDEX_ROOT"] = str(settings.root)
    # Dagster imports modules from its working folder and reads `.env` there, so that must not be the project's folder.
    os.environ["PYTHONSAFEPATH"] = "1"
    os.environ |= _environment_of(settings)
    # Dagster recommends `dg dev` instead, which docindex does not install.
    os.environ.setdefault("PYTHONWARNINGS", "ignore:Function `dev_command`:FutureWarning")
    # A shell's background job ignores Ctrl-C. Dagster's processes use SIGINT to stop each other and would never end.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    console.out.print(f"starting the Dagster UI at http://{host}:{port} (takes about 10 seconds); stop with Ctrl-C")
    command = [sys.executable, "-m", "dagster", "dev", "--module-name", "docindex_dagster.definitions"]
    level = "debug" if is_debugging() else "warning"
    levels = ("--log-level", level, "--code-server-log-level", level)
    with writable_home(settings):
        os.chdir(tempfile.mkdtemp(prefix="docindex-ui-"))
        os.execv(command[0], [*command, "--port", str(port), "--host", host, *levels])  # noqa: S606 no shell involved


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
    """Return the variables of the project's trusted `.env` that are not set already."""
    from dotenv import dotenv_values

    data = trusted_file(settings.root, ENVIRONMENT_FILE)
    if data is None:
        if (settings.root / ENVIRONMENT_FILE).is_file():
            review = command("docindex", "trust", settings.root)
            console.warning(f"ignoring {ENVIRONMENT_FILE}, which is not trusted; review it with {review}")
        return {}
    values = dotenv_values(stream=StringIO(data.decode(errors="replace")))
    return {name: value for name, value in values.items() if value is not None and name not in os.environ}


def mcp(
    watch: Annotated[
        bool, typer.Option("--watch", help="Also index edits as you save them, like docindex watch.")
    ] = False,
    domain: Domain = None,
    may_read: MayRead = None,
) -> None:
    """Serve the index to coding agents over MCP (stdio).

    The agent starts this command itself; docindex agents add configures it.
    With --watch, saved edits are searchable about a second later, without
    another process. With --domain, agents can also remember, recall and forget.
    """
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.cli.memory import memory_of
    from docindex_dagster.cli.watch import in_background
    from docindex_dagster.search.live_index import LazyLive, Live
    from docindex_dagster.serving.fold_scheduler import fold_in_background
    from docindex_dagster.serving.mcp_server import serve
    from docindex_dagster.serving.memory_tools import MemoryTools
    from docindex_dagster.serving.tools import CollectingTools, Tools

    try:
        settings = load_project()
    except SourceError as error:  # agents show the answers of tools, but not why a server exited
        console.warning(f"{error}; until there is a project, every tool answers with this error")
        serve(Tools(cast("Live", LazyLive(lambda: Live(load_project()))), dagster_runs.outcomes))
        return
    live = Live(settings)
    memory = memory_of(live, domain, may_read)
    folds = fold_in_background(settings, [memory.bound]) if memory else nullcontext()
    with in_background(settings) if watch else nullcontext(), folds:
        memory_tools = MemoryTools(memory) if memory else None
        serve(Tools(live, dagster_runs.outcomes, Path.cwd()), memory_tools, CollectingTools.of(live))


def serve(
    host: Annotated[
        str, typer.Option(help="Address to listen on. Any address except loopback requires a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port to listen on.")] = 8090,
    no_ui: Annotated[bool, typer.Option("--no-ui", help="Serve only the API and MCP, without web pages.")] = False,
    no_jobs: Annotated[bool, typer.Option("--no-jobs", help="Do not accept indexing jobs.")] = False,
    no_token: Annotated[
        bool,
        typer.Option(
            "--no-token",
            help="Require no token: every user of this machine can then read and index through the server.",
        ),
    ] = False,
    domain: Domain = None,
    may_read: MayRead = None,
) -> None:
    """Serve the index over HTTP: web pages, a REST API, and MCP at /mcp.

    The server listens on loopback and requires a token: DOCINDEX_SERVE__TOKEN,
    or one that it generates and keeps in serve.token in DOCINDEX_HOME. On other
    addresses, DOCINDEX_SERVE__TOKEN must be set. With --domain, clients can
    also write to this memory domain, recall and forget.
    """
    from docindex_dagster.cli import dagster_runs
    from docindex_dagster.cli.memory import memory_of
    from docindex_dagster.search.live_index import Live
    from docindex_dagster.serving.fold_scheduler import fold_in_background
    from docindex_dagster.serving.http.app import build_app, run
    from docindex_dagster.serving.http.security import LOGIN, Access, is_loopback
    from docindex_dagster.serving.http.served_project import ServedProject
    from docindex_dagster.serving.http.sessions import stored_token
    from docindex_dagster.serving.telemetry.tracing import tracing_from_environment

    settings = load_project()
    secret = settings.serve.token
    if secret is not None and no_token:
        raise SettingsError(f"{_VARIABLE} is set: unset it, or omit --no-token")
    if secret is None and not is_loopback(host):
        raise SettingsError(
            f"anyone who can reach {host} could read everything that is indexed: set {_VARIABLE} to a long random "
            f"string, or listen on 127.0.0.1"
        )
    _refuse_busy_port(host, port)
    os.environ.pop(_VARIABLE, None)  # runs and git do not need it
    layout = Layout(settings.home)
    token = secret.get_secret_value() if secret else None
    if is_stored := token is None and not no_token:
        with writable_home(settings):
            token = stored_token(layout.serve_token, layout.serve_token_lock)
    access = Access.of(host, token, settings.serve, layout.ended_sessions)
    live = Live(settings)
    memory = memory_of(live, domain, may_read)
    served = ServedProject(
        live, access, dagster_runs.outcomes, dagster_runs.job_queue(settings, is_on=not no_jobs), memory
    )
    console.out.print(f"serving {settings.root} at {_address(host, port)}; stop with Ctrl-C")
    if is_stored:
        console.out.print(f"the token is in {layout.serve_token}")
        # Only on a terminal: others may be able to read a file that receives the output.
        if console.out.is_terminal and not no_ui:
            link = f"{_address(host, port)}{LOGIN}?code={access.sessions.new_code()}"
            console.out.print(f"open this link to log in (it works once): {link}", soft_wrap=True)
    traces = tracing_from_environment(console.err.print, has_texts=settings.serve.trace_texts)
    app = build_app(served, has_page=not no_ui, traces=traces)
    folds = (
        fold_in_background(settings, [memory.bound], on_folded=app.state.metrics.folded) if memory else nullcontext()
    )
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
            raise SourceError(
                f"cannot listen on {host}:{port}: {error.strerror}; choose another port with --port"
            ) from error
