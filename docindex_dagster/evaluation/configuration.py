"""The parameters of a search: mode, model, reranker, weights and index.

A TOML file describes how a second configuration differs from the project's:

    mode = "bm25"                 # or vector, graph
    home = "../other/.docindex"   # an index of the same sources with another model or other chunks

    [search]
    candidates = 50

    [rerank]                      # as in docindex.toml
    provider = "mmr"

    [embedding]                   # the model of the index at `home`
    provider = "minilm"

    [weights]                     # as in docindex_dagster/search/weights.py
    definition = 0.0
"""

import os
import tomllib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from docindex_dagster.core.errors import SettingsError
from docindex_dagster.core.layout import Layout
from docindex_dagster.core.privileges import privileged_paths
from docindex_dagster.core.safe_text import command
from docindex_dagster.core.settings import Settings, is_inside, own_home
from docindex_dagster.core.trust import trust_in
from docindex_dagster.search.model import RETRIEVING, Mode
from docindex_dagster.search.weights import WEIGHTS, Weights
from docindex_dagster.sources.paths import is_in_checkout, read_regular

_SECTIONS = ("search", "rerank", "embedding")
_KEYS = ("mode", "home", *_SECTIONS, "weights")
_SECRET = "api_key"  # noqa: S105 the name of a key, not a secret
_RECIPIENT = {"provider", "url", "base_url"}  # settings that determine who receives the key
_MAX_WEIGHT = 1e6
_MAX_BYTES = 1 << 20

_Section = TypeVar("_Section", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Configuration:
    """How to search an index. `names_model` tells whether it names the model of the index."""

    settings: Settings
    mode: Mode = Mode.HYBRID
    weights: Weights = WEIGHTS
    names_model: bool = False


def read_configuration(base: Configuration, file: Path) -> Configuration:
    """Read a file that modifies a configuration, and return the result.

    Raises:
        SettingsError: The file cannot be read, has an unknown key or an invalid value, or requests something that
            requires trust, such as the URL of a reranker.
        OwnershipError: Its home belongs to another user, or other users can write to it.
    """
    try:
        data = read_regular(file, _MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise SettingsError(f"{file} is too large: the limit is {_MAX_BYTES:,} bytes")
        values = tomllib.loads(data.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file}: invalid TOML: {error}") from error
    _check_names(file, "", values, _KEYS)
    _check_trust(file, values)
    settings = base.settings
    changed = {name: _section(file, name, getattr(settings, name), values) for name in _SECTIONS if name in values}
    updates: dict[str, object] = {**changed, **_home(file, values, settings.root)}
    return Configuration(
        settings.model_copy(update=updates),
        _mode(file, values.get("mode", base.mode)),
        _weights(file, base.weights, _table(file, "weights", values)),
        "embedding" in changed,
    )


def _check_trust(file: Path, values: Mapping[str, Any]) -> None:
    privileged = [] if trust_in(file.absolute().parent).is_full else [*privileged_paths(Settings, values)]
    if privileged:
        raise SettingsError(
            f"{file}: {'.'.join(privileged[0])} requires trust, since it may send texts or load a model: read the "
            f"file, then run {command('docindex', '--trust', 'evaluate', '--compare', file)}"
        )


def _check_names(file: Path, section: str, values: Mapping[str, Any], known: Collection[str]) -> None:
    unknown = [name for name in values if name not in known]
    if unknown:
        within = f"{section}." if section else ""
        hint = "" if section else "; see docs/how-to/evaluate-search.md"
        raise SettingsError(f"{file}: unknown key {within}{unknown[0]}; expected one of {', '.join(known)}{hint}")


def _table(file: Path, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    found = values.get(name, {})
    if not isinstance(found, dict):
        raise SettingsError(f"{file}: {name} must be a table, such as [{name}]")
    return found


def _section(file: Path, name: str, before: _Section, values: Mapping[str, Any]) -> _Section:
    values = _table(file, name, values)
    if _SECRET in values:
        raise SettingsError(f"{file}: {name}.{_SECRET} is a secret; set DOCINDEX_{name.upper()}__API_KEY instead")
    known = {"candidates"} if name == "search" else type(before).model_fields.keys() - {_SECRET}
    _check_names(file, name, values, sorted(known))
    # A model belongs to its provider, and an API key must only be sent to the recipient that it was configured for.
    kept = (
        {}
        if name == "embedding" and "provider" in values
        else {key: getattr(before, key) for key in before.model_fields_set}
    )
    is_for_another = any(values[key] != getattr(before, key) for key in _RECIPIENT & values.keys())
    if is_for_another and any(kept[key] != type(before).model_fields[key].default for key in _RECIPIENT & kept.keys()):
        kept.pop(_SECRET, None)
    try:
        return type(before)(**{**kept, **_absolute(file, name, values)})
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, (name, *problem["loc"])))
        raise SettingsError(f"{file}: {where}: {problem['msg'].removeprefix('Value error, ')}") from error


def _absolute(file: Path, name: str, values: dict[str, Any]) -> dict[str, Any]:
    """Resolve the folder of a model relative to the file."""
    model = values.get("model")
    if name == "embedding" and isinstance(model, str) and model.startswith(("/", "./", "../", "~/")):
        return {**values, "model": os.path.normpath(file.absolute().parent / Path(model).expanduser())}
    return values


def _check_home(file: Path, value: object, home: Path, root: Path) -> None:
    """Refuse the home of another project if the author of a checkout, not the user, may have named it."""
    folder = file.absolute().parent
    if not is_inside(root, home) and is_in_checkout(file) and not trust_in(folder).is_full:
        raise SettingsError(
            f"{file}: home = {value!r} is outside the project and requires trust, since it names the index that "
            f"answers: read the file, then run {command('docindex', '--trust', 'evaluate', '--compare', file)}"
        )


def _home(file: Path, values: Mapping[str, Any], root: Path) -> dict[str, Path]:
    value = values.get("home")
    if value is None:
        return {}
    home = Path(os.path.normpath(file.absolute().parent / Path(str(value)).expanduser()))
    # The file is not trusted: a home outside the project must be this user's home of another project.
    project = root if is_inside(root, home) else home.parent
    home = own_home(project, home, trust_in(project))
    if not isinstance(value, str) or not Layout(home).current.exists():
        indexing = command("env", f"DOCINDEX_HOME={value}", "docindex", "index")
        raise SettingsError(f"{file}: home: your index was not found in {value}; create one with {indexing}")
    _check_home(file, value, home, root)
    return {"home": home}


def _mode(file: Path, value: object) -> Mode:
    if value not in list(RETRIEVING):
        raise SettingsError(f"{file}: invalid mode {value!r}: must be one of {', '.join(RETRIEVING)}")
    return Mode(str(value))


def _weights(file: Path, before: Weights, values: dict[str, Any]) -> Weights:
    known = [field.name for field in fields(Weights) if isinstance(getattr(before, field.name), float)]
    _check_names(file, "weights", values, known)
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MAX_WEIGHT:
            raise SettingsError(f"{file}: weights.{name} must be a non-negative number, not {value!r}")
    return replace(before, **{name: float(value) for name, value in values.items()})
