"""Shell completion: names from the project, found without loading the search modules."""

import re
from collections.abc import Iterable
from contextlib import suppress

from docindex_dagster.core.errors import DocindexError

# A checkout controls the names of folders, and shells evaluate completions: zsh on Tab, others on Enter.
_PLAIN = re.compile(r"[\w@%+=:,./][\w@%+=:,./-]*", re.ASCII)


def sources(incomplete: str) -> list[str]:
    """Return the keys and names of declared sources that start with the text."""
    from docindex_dagster.cli.selected_project import load_project
    from docindex_dagster.sources import registry

    with suppress(DocindexError, OSError):  # completion must not print errors
        keys = list(registry.sources(load_project()))
        names = [key.partition("/")[2] for key in keys]
        return _plain([*keys, *names], incomplete)
    return []


def languages(incomplete: str) -> list[str]:
    """Return the languages of the indexed files."""
    from docindex_dagster.cli.selected_project import load_project
    from docindex_dagster.core.layout import Layout
    from docindex_dagster.stores.generation import read_generation

    with suppress(DocindexError, OSError):
        generation = read_generation(Layout(load_project().home))
        entries = generation.sources.values() if generation else ()
        return sorted({name for entry in entries for name in entry.languages if name.startswith(incomplete)})
    return []


def kinds(incomplete: str) -> list[str]:
    """Return the kinds of symbols."""
    from docindex_dagster.code.symbols import SYMBOL_KINDS

    return [kind for kind in sorted(SYMBOL_KINDS) if kind.startswith(incomplete)]


def projects(incomplete: str) -> list[str]:
    """Return the names of the known projects."""
    from docindex_dagster.sources.projects import known

    with suppress(DocindexError, OSError):
        return sorted(_plain({project.name for project in known()}, incomplete))
    return []


def domains(incomplete: str) -> list[str]:
    """Return the keys of the existing memory domains."""
    from docindex_dagster.cli.selected_project import load_project
    from docindex_dagster.core.layout import Layout
    from docindex_dagster.memory import domains as known

    with suppress(DocindexError, OSError):
        return _plain(known.domains(Layout(load_project().home)), incomplete)
    return []


def _plain(names: Iterable[str], incomplete: str) -> list[str]:
    """Return the names that start with the text and that no shell interprets."""
    return [name for name in names if name.startswith(incomplete) and _PLAIN.fullmatch(name)]


def agents(incomplete: str) -> list[str]:
    """Return the names of the supported agents."""
    from docindex_dagster.cli.agents.catalogue import agents as known

    return [name for name in known() if name.startswith(incomplete)]


def topics(incomplete: str) -> list[str]:
    """Return the commands and the pages that `docindex help` shows."""
    from typer.main import get_group

    from docindex_dagster.cli.app import app
    from docindex_dagster.core import installation

    commands = [*get_group(app).list_commands(None)]  # type: ignore[arg-type]  # it does not use the context
    return sorted({name for name in (*commands, *installation.pages()) if name.startswith(incomplete)})
