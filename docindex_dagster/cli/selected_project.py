"""The project of a command: which one is meant is decided once, and reported where the user did not choose it."""

from contextvars import ContextVar

from docindex_dagster.core.safe_text import in_line
from docindex_dagster.core.settings import Settings, untrusted
from docindex_dagster.core.settings import load_settings as load_settings_at
from docindex_dagster.render import console
from docindex_dagster.sources.projects import Choice, choose

_named: ContextVar[str | None] = ContextVar("docindex_project_named", default=None)
_chosen: ContextVar[Choice | None] = ContextVar("docindex_project_chosen", default=None)
_reported: ContextVar[str] = ContextVar("docindex_project_reported", default="")


def begin(named: str | None) -> None:
    """Begin a command, with the project that `--project` names."""
    _named.set(named)
    _chosen.set(None)
    _reported.set("")


def is_named() -> bool:
    """Whether the user named it on the command line."""
    return _named.get() is not None


def settings_of(choice: Choice) -> Settings:
    """The settings of a project, or of one that would begin there.

    Raises:
        SettingsError: as `core.settings.load_settings`.
    """
    return _reporting(load_settings_at(choice.root))


def chosen(*, by_folder: bool = True, by_url: bool = True) -> Choice:
    """The project's folder, or the one in which a project would begin.

    The arguments are those of `choose`, and the same for all of a command.

    Raises:
        SourceError: as `choose`.
    """
    choice = _chosen.get()
    if choice is None:
        choice = choose(project=_named.get(), by_folder=by_folder, by_url=by_url)
        _chosen.set(choice)
        if choice.because:
            console.err.print(in_line(choice.because))
    return choice


def load_project() -> Settings:
    """The settings of the project that there is, whose home holds what is published.

    Raises:
        SourceError: there is none, or several are meant.
        SettingsError: as `core.settings.load_settings`.
        ObjectStoreError: its index is published elsewhere, where nobody answers, and none is here.
    """
    return up_to_date(_reporting(chosen().settings()))


def up_to_date(settings: Settings) -> Settings:
    """The same settings, whose home holds what is published where machines share the stores.

    Raises:
        ObjectStoreError: nobody answers there, and nothing is here.
    """
    if settings.storage.url is not None:
        from docindex_dagster.objects.shared_stores import follow

        follow(settings, console.warning)
    return settings


def load_settings(*, by_url: bool = True) -> Settings:
    """The settings of the project, or those of one that begins here.

    Raises:
        SourceError: as `choose`.
        SettingsError: as `core.settings.load_settings`.
    """
    return settings_of(chosen(by_url=by_url))


def _reporting(settings: Settings) -> Settings:
    """Return the settings after reporting, once, what is ignored of them."""
    note = untrusted(settings)
    if note and note != _reported.get():
        _reported.set(note)
        console.warning(note)
    return settings
