"""What a shell completes behind an option: names that the project has, found without loading what a search needs."""

import re
from collections.abc import Iterable
from contextlib import suppress

from docindex_dagster.core.errors import DocindexError

# A checkout chooses the names of folders, and shells evaluate what is completed: zsh on Tab, others on Enter.
_PLAIN = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*", re.ASCII)


def sources(incomplete: str) -> list[str]:
    """The keys of declared sources, or their names, that begin so."""
    from docindex_dagster.cli.selected_project import load_project
    from docindex_dagster.sources import registry

    with suppress(DocindexError, OSError):  # a shell shows no errors
        keys = list(registry.sources(load_project()))
        names = [key.partition("/")[2] for key in keys]
        return _plain([*keys, *names], incomplete)
    return []


def languages(incomplete: str) -> list[str]:
    """The languages of files that are indexed."""
    from docindex_dagster.cli.selected_project import load_project
    from docindex_dagster.core.layout import Layout
    from docindex_dagster.stores.generation import read_generation

    with suppress(DocindexError, OSError):
        generation = read_generation(Layout(load_project().home))
        entries = generation.sources.values() if generation else ()
        return sorted({name for entry in entries for name in entry.languages if name.startswith(incomplete)})
    return []


def kinds(incomplete: str) -> list[str]:
    """The kinds of symbols that there are."""
    from docindex_dagster.code.symbols import SYMBOL_KINDS

    return [kind for kind in sorted(SYMBOL_KINDS) if kind.startswith(incomplete)]


def projects(incomplete: str) -> list[str]:
    """The names of the projects that are known."""
    from docindex_dagster.sources.projects import known

    with suppress(DocindexError, OSError):
        return sorted(_plain({project.name for project in known()}, incomplete))
    return []


def domains(incomplete: str) -> list[str]:
    """The keys of the domains of memory that there are."""
    from docindex_dagster.cli.selected_project import load_project
    from docindex_dagster.core.layout import Layout
    from docindex_dagster.memory import domains as known

    with suppress(DocindexError, OSError):
        return _plain(known.domains(Layout(load_project().home)), incomplete)
    return []


def _plain(names: Iterable[str], incomplete: str) -> list[str]:
    """Those of some names that begin so and mean nothing to any shell."""
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


def agents(incomplete: str) -> list[str]:
    """The names of the agents that can have docindex."""
    from docindex_dagster.cli.agents.catalogue import agents as known

    return [name for name in known() if name.startswith(incomplete)]


def topics(incomplete: str) -> list[str]:
    """The commands, and the pages that `docindex help` shows."""
    from typer.main import get_group

    from docindex_dagster.cli.app import app
    from docindex_dagster.core import installation

    commands = [*get_group(app).list_commands(None)]  # type: ignore[arg-type]  # it looks at no context
    return sorted({name for name in (*commands, *installation.pages()) if name.startswith(incomplete)})
