"""The project of a command, chosen once and reported if the user did not choose it."""

from contextvars import ContextVar

from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.core.settings import Settings, untrusted_message
from docindex_dagster.core.settings import load_settings as load_settings_at
from docindex_dagster.render import console
from docindex_dagster.sources.projects import Choice, choose

_named: ContextVar[str | None] = ContextVar("docindex_project_named", default=None)
_chosen: ContextVar[Choice | None] = ContextVar("docindex_project_chosen", default=None)
_reported: ContextVar[str] = ContextVar("docindex_project_reported", default="")


def begin(named: str | None) -> None:
    """Reset the state for a new command, with the project given by `--project`."""
    _named.set(named)
    _chosen.set(None)
    _reported.set("")


def is_named() -> bool:
    """Return whether the user named the project on the command line."""
    return _named.get() is not None


def settings_of(choice: Choice) -> Settings:
    """Load the settings of a chosen project, or of one that would be created there.

    Raises:
        SettingsError: As for `core.settings.load_settings`.
    """
    return _reporting(load_settings_at(choice.root))


def chosen(*, by_folder: bool = True, by_url: bool = True) -> Choice:
    """Return the project's folder, or the folder in which a project would be created.

    The arguments are those of `choose`. Only the first call of a command uses them.

    Raises:
        SourceError: As for `choose`.
    """
    choice = _chosen.get()
    if choice is None:
        choice = choose(project=_named.get(), by_folder=by_folder, by_url=by_url)
        _chosen.set(choice)
        if choice.because:
            console.err.print(on_one_line(choice.because))
    return choice


def load_project() -> Settings:
    """Load the settings of an existing project, and bring its home up to date with what is published.

    Raises:
        SourceError: There is no project, or the choice is ambiguous.
        SettingsError: As for `core.settings.load_settings`.
        ObjectStoreError: The index is in an object store that does not answer, and there is no local copy.
    """
    return up_to_date(_reporting(chosen().settings()))


def up_to_date(settings: Settings) -> Settings:
    """Bring the home up to date with what is published, if machines share the stores; return the settings.

    Raises:
        ObjectStoreError: The object store does not answer, and there is no local copy.
    """
    if settings.storage.url is not None:
        from docindex_dagster.objects.shared_stores import follow

        follow(settings, console.warning)
    return settings


def load_settings(*, by_url: bool = True) -> Settings:
    """Load the settings of the project, or of one that would be created here.

    Raises:
        SourceError: As for `choose`.
        SettingsError: As for `core.settings.load_settings`.
    """
    return settings_of(chosen(by_url=by_url))


def _reporting(settings: Settings) -> Settings:
    """Warn, once, about settings that are ignored because they are not trusted; return the settings."""
    note = untrusted_message(settings)
    if note and note != _reported.get():
        _reported.set(note)
        console.warning(note)
    return settings
