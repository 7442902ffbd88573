"""The `docindex init` command."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from docindex_dagster.cli import INTERRUPTED, progress
from docindex_dagster.cli.common import Json, Yes
from docindex_dagster.cli.selected_project import chosen
from docindex_dagster.core.errors import AlreadyDeclaredError, NotARepositoryRootError, SourceError
from docindex_dagster.core.privileges import reads_outside
from docindex_dagster.core.safe_text import on_one_line
from docindex_dagster.core.settings import CONFIG_NAME
from docindex_dagster.core.trust import check_project
from docindex_dagster.render import console
from docindex_dagster.sources.paths import check_redirection, expand_user, normal

if TYPE_CHECKING:
    from docindex_dagster.core.settings import Settings
    from docindex_dagster.sources.folder_checks import SkippedEntries, SourcePreview
    from docindex_dagster.sources.model import Source

_MAX_LANGUAGES = 6  # languages per type of file
_TYPES = ("code", "test", "doc", "config")
_MINUTE = 60


def init(
    folder: Annotated[
        Path | None,
        typer.Argument(
            help="Root of the project. Default: the enclosing git work tree, or else the working directory."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show docindex.toml without writing it.")] = False,
    yes: Yes = False,
    json: Json = False,
) -> None:
    """Create a docindex.toml and preview what would be indexed.

    Show what would be left out and how long the first run may take. Nothing is
    indexed yet, and an existing docindex.toml is not changed.
    """
    from docindex_dagster.sources import initial_config

    root = _root(folder)
    _check(root, yes=yes, writes=not dry_run)
    text = initial_config.first_text(root)
    source, settings = initial_config.first_source(root, text)
    outlook = _preview(source, quiet=json)
    file = root / CONFIG_NAME
    if not dry_run:
        file = initial_config.write_first(root, text)
    if json:
        console.as_json(_as_json(file, source, outlook, is_written=not dry_run))
        return
    if dry_run:
        console.plain(text)
    console.out.print(f"{'would write' if dry_run else 'wrote'} {file}, which declares {on_one_line(source.key)}")
    _show(outlook, settings)


def _root(folder: Path | None) -> Path:
    """Return the root of the new project.

    Raises:
        SourceError: The folder does not exist.
        AlreadyDeclaredError: The folder has a project, or, if none is given, is inside one.
    """
    if folder is not None:
        check_redirection(expand_user(folder))
        root = normal(expand_user(folder))
        if not root.is_dir():
            raise SourceError(f"{root} is not a folder" if root.exists() else f"{root} not found")
        if os.path.lexists(root / CONFIG_NAME):
            raise AlreadyDeclaredError(_exists_message(root))
        return root
    choice = chosen(by_folder=False)
    if (choice.root / CONFIG_NAME).is_file():
        raise AlreadyDeclaredError(_exists_message(choice.root) + _separate_project_hint(choice.root))
    root = next((parent for parent in (choice.root, *choice.root.parents) if (parent / ".git").exists()), choice.root)
    if root != choice.root:
        console.err.print(on_one_line(f"using {root}, the root of the git work tree"))
    return root


def _exists_message(root: Path) -> str:
    return f"{root / CONFIG_NAME} already exists and was not changed; run `docindex index` to index its sources"


def _separate_project_hint(root: Path) -> str:
    here = Path.cwd()
    return "" if root == here else "; to create a separate project here, run `docindex init .`"


def _check(root: Path, *, yes: bool, writes: bool) -> None:
    """Refuse a folder that is too large or not writable, or ask about it.

    Raises:
        SourceError: As for `check_size`, or the folder is not writable.
        OwnershipError: The folder belongs to another user, or other users can write to it.
    """
    from docindex_dagster.cli.common import check_size
    from docindex_dagster.sources import projects

    check_project(root)
    check_size(root, yes=yes)
    if writes and not os.access(root, os.W_OK | os.X_OK, effective_ids=os.access in os.supports_effective_ids):
        raise SourceError(f"{root} is not writable: choose another folder, or preview the result with --dry-run")
    _, others = projects.by_folder(root, projects.known())
    for other in others:
        console.warning(f"project {other.root} already indexes {root}: files in both are stored twice")


def _preview(source: "Source", *, quiet: bool) -> "SourcePreview":
    """Preview what would be indexed.

    Raises:
        SourceError: As for `look_ahead`.
    """
    from docindex_dagster.sources.folder_checks import preview_source

    if reads_outside(source.path, "."):
        raise SourceError(
            f"cannot index {source.path}: its .git has links or borrows objects; `docindex index .` explains why"
        )
    try:
        with progress.report_progress(source.key, quiet=quiet):
            return preview_source(source)
    except KeyboardInterrupt:
        console.failure("interrupted; nothing was written")
        raise typer.Exit(INTERRUPTED) from None
    except NotARepositoryRootError as error:
        raise SourceError(
            f"git cannot read the .git of {source.path}: repair it, or index the files without it by running "
            "`docindex source add . --kind library` in that folder"
        ) from error


def _show(outlook: "SourcePreview", settings: "Settings") -> None:
    from docindex_dagster.sources import folder_checks

    if not outlook.files:
        console.warning(f"only {CONFIG_NAME} would be indexed: {folder_checks.INDEXABLE_FILES}")
    size = f"{outlook.megabytes:,.1f} MB"
    console.out.print(f"\nwould index {console.count(outlook.files, 'file')}, {size}, and {CONFIG_NAME} itself")
    rows = [
        (kind, sum(number for _, number in languages), _languages(languages))
        for kind in _TYPES
        if (languages := outlook.languages([kind]))
    ]
    if rows:
        console.table(("type", "files", "languages"), rows)
    if outlook.masked:
        console.out.print(f"secrets would be masked in {console.count(outlook.masked, 'file')}")
    if outlook.rules:
        console.out.print("\nwould skip")
        by_number = sorted(outlook.rules.items(), key=lambda item: -item[1].files - item[1].folders)
        console.table(("rule", "count", "examples"), [(rule, _how_many(out), _such_as(out)) for rule, out in by_number])
        console.out.print(
            "`docindex why FILE` shows which rule applies; exclude skips more, and an include glob or a line such as "
            "`!build/` in .docindexignore brings back what a rule for names skips"
        )
    console.out.print(f"\n{_estimate(outlook, settings)}")
    console.out.print(
        "next: `docindex index`, then `docindex search QUERY`; `docindex agents add` configures coding agents"
    )


def _languages(languages: list[tuple[str, int]]) -> str:
    more = len(languages) - _MAX_LANGUAGES
    named = ", ".join(f"{language} {number:,}" for language, number in languages[:_MAX_LANGUAGES])
    return named + (f", {more:,} more" if more > 0 else "")


def _how_many(out: "SkippedEntries") -> str:
    counts = ((out.files, "file"), (out.folders, "folder"))
    return " and ".join(console.count(number, noun) for number, noun in counts if number)


def _such_as(out: "SkippedEntries") -> str:
    return ", ".join(map(on_one_line, out.examples)) + (", …" if out.files + out.folders > len(out.examples) else "")


def _estimate(outlook: "SourcePreview", settings: "Settings") -> str:
    """Estimate how long the first run takes, and explain the estimate."""
    from docindex_dagster.sources.folder_checks import CHUNKS_PER_SECOND, STARTUP_S

    (low, high), (slow, fast) = outlook.seconds, CHUNKS_PER_SECOND
    if high < _MINUTE * 2:
        span = f"{low} to {high} seconds" if low < high else f"{low} seconds"
    else:
        span = f"{max(1, round(low / _MINUTE))} to {round(high / _MINUTE)} minutes"
    chunks = " to ".join(f"{number:,}" for number in dict.fromkeys(outlook.chunks))
    other = settings.embedding.provider
    model = "" if other == "static" else f"; the {other} model was not measured and is slower"
    return (
        f"the first `docindex index` may take {span}: {STARTUP_S} s to start, then {chunks} chunks at {slow} to {fast} "
        f"per second, as measured on six repositories with two cores (benchmarks/README.md){model}"
    )


def _as_json(file: Path, source: "Source", outlook: "SourcePreview", *, is_written: bool) -> dict[str, object]:
    low, high = outlook.seconds
    return {
        "file": str(file),
        "written": is_written,
        "source": source.key,
        "files": outlook.files,
        "bytes": outlook.text_bytes,
        "kinds": [
            {"type": kind, "language": language, "files": number}
            for (kind, language), number in outlook.kinds.most_common()
        ],
        "with_secrets": outlook.masked,
        "left_out": outlook.rules,
        "seconds": {"least": low, "most": high},
    }
