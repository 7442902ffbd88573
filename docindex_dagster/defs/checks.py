"""Checks on `source`: what sensors notice of the sources themselves. They can be run from the UI as well."""

from collections.abc import Mapping, Sequence

import dagster as dg

from docindex_dagster.core.errors import SourceError
from docindex_dagster.core.settings import Settings
from docindex_dagster.defs import metadata
from docindex_dagster.defs.resources import Project
from docindex_dagster.sources import registry
from docindex_dagster.sources.mirror import remote_heads

FOLDERS_ARE_THERE = "every_folder_is_there"
REMOTES_ANSWER = "every_remote_answers"
_ADVICE = "bring it back, mend docindex.toml, or say `docindex source remove`; what is indexed of it stays until then"
_TIMEOUT_S = 10


@dg.asset_check(
    asset="source",
    name=FOLDERS_ARE_THERE,
    description="Warns while the folder of a declared source is missing, or a source that is indexed is declared no "
    "more. Its index stays until it is removed. The sensor sources_changed reports it, too. See docs/operations.md, "
    "“The life of a partition”.",
)
def every_folder_is_there(context: dg.AssetCheckExecutionContext, project: Project) -> dg.AssetCheckResult:
    """Look for the folder of each source."""
    return metadata.warning(
        FOLDERS_ARE_THERE, missing(project.read_settings(), context.instance.get_dynamic_partitions("source")), _ADVICE
    )


@dg.asset_check(
    asset="source",
    name=REMOTES_ANSWER,
    description="Warns while a followed repository cannot be reached. Its index stays. The sensor git_head_changed "
    "reports it, too. See docs/operations.md, “Repositories that are followed”.",
)
def every_remote_answers(project: Project) -> dg.AssetCheckResult:
    """Ask each remote for its commit."""
    remotes = {key: source.remote for key, source in registry.sources(project.read_settings()).items() if source.remote}
    answers = remote_heads(remotes, _TIMEOUT_S).items()
    silent = {key: str(answer) for key, answer in answers if isinstance(answer, SourceError)}
    return metadata.warning(REMOTES_ANSWER, silent, _ADVICE)


def missing(settings: Settings, partitions: Sequence[str]) -> dict[str, str]:
    """Why sources are missing, by key: their folders are gone, or `docindex.toml` does not declare them any more."""
    declared = registry.sources(settings)
    undeclared = {key: "docindex.toml declares it no more" for key in partitions if key not in declared}
    gone = {
        key: f"there is no folder {source.path}"
        for key, source in declared.items()
        if source.remote is None and not source.path.is_dir()
    }
    return dict(sorted({**undeclared, **gone}.items()))


def evaluation(check: str, problems: Mapping[str, str]) -> dg.AssetCheckEvaluation:
    """The outcome of a check on `source` that a sensor found out, as an event of its own."""
    return metadata.evaluation(metadata.warning(check, problems, _ADVICE), dg.AssetKey("source"))
