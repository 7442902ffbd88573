"""What a search can be set to: its mode, model, reranker and weights, and which index it looks into.

A file of TOML says how a second configuration differs from that of the project:

    mode = "bm25"                 # or vector, graph
    home = "../other/.docindex"   # an index of the same sources, by another model or cut otherwise

    [search]
    candidates = 50

    [rerank]                      # as in docindex.toml
    provider = "mmr"

    [embedding]                   # of the index at `home`
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

_SECTIONS = ("search", "rerank", "embedding")
_KEYS = ("mode", "home", *_SECTIONS, "weights")
_SECRET = "api_key"  # noqa: S105 the name of one
_RECIPIENT = {"provider", "url", "base_url"}  # which a key is for
_LARGEST_WEIGHT = 1e6
_MOST_CHARACTERS = 1 << 20

_Section = TypeVar("_Section", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Configuration:
    """How an index is searched; `names_model` says whether it names the model of the index."""

    settings: Settings
    mode: Mode = Mode.HYBRID
    weights: Weights = WEIGHTS
    names_model: bool = False


def read_configuration(base: Configuration, file: Path) -> Configuration:
    """The configuration that a file makes of another one.

    Raises:
        SettingsError: the file cannot be read, names what is no part of a search, a value is wrong, or it asks for what
            needs trust, such as the URL of a reranker.
        OwnershipError: its home belongs to another user, or other users may write it.
    """
    try:
        with file.open(encoding="utf-8") as opened:
            text = opened.read(_MOST_CHARACTERS + 1)
        if len(text) > _MOST_CHARACTERS:
            raise SettingsError(f"{file} is too large: docindex reads {_MOST_CHARACTERS:,} characters at most")
        values = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{file} cannot be read: {error}") from error
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
    asked = [] if trust_in(file.absolute().parent).is_full else [*privileged_paths(Settings, values)]
    if asked:
        raise SettingsError(
            f"{file}: {'.'.join(asked[0])} needs trust, since it may send texts or load a model: read the file, then "
            f"run {command('docindex', '--trust', 'evaluate', '--compare', file)}"
        )


def _check_names(file: Path, section: str, values: Mapping[str, Any], known: Collection[str]) -> None:
    unknown = [name for name in values if name not in known]
    if unknown:
        within = f"{section}." if section else ""
        hint = "" if section else ", and another index of the sources by `home`; see docs/evaluation.md"
        raise SettingsError(
            f"{file}: {within}{unknown[0]} is no part of how an index is searched; there are {', '.join(known)}{hint}"
        )


def _table(file: Path, name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    found = values.get(name, {})
    if not isinstance(found, dict):
        raise SettingsError(f"{file}: {name} must be a table, as [{name}]")
    return found


def _section(file: Path, name: str, before: _Section, values: Mapping[str, Any]) -> _Section:
    given = _table(file, name, values)
    if _SECRET in given:
        raise SettingsError(f"{file}: {name}.{_SECRET} is a secret; set DOCINDEX_{name.upper()}__API_KEY instead")
    known = {"candidates"} if name == "search" else type(before).model_fields.keys() - {_SECRET}
    _check_names(file, name, given, sorted(known))
    # Another provider's model is none of this one's, and the key is for whoever it was given for.
    kept = (
        {}
        if name == "embedding" and "provider" in given
        else {key: getattr(before, key) for key in before.model_fields_set}
    )
    is_for_another = any(given[key] != getattr(before, key) for key in _RECIPIENT & given.keys())
    if is_for_another and any(kept[key] != type(before).model_fields[key].default for key in _RECIPIENT & kept.keys()):
        kept.pop(_SECRET, None)
    try:
        return type(before)(**{**kept, **_absolute(file, name, given)})
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, (name, *problem["loc"])))
        raise SettingsError(f"{file}: {where}: {problem['msg'].removeprefix('Value error, ')}") from error


def _absolute(file: Path, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """The folder of a model, which begins at that of the file."""
    model = given.get("model")
    if name == "embedding" and isinstance(model, str) and model.startswith(("/", "./", "../", "~/")):
        return {**given, "model": os.path.normpath(file.absolute().parent / Path(model).expanduser())}
    return given


def _home(file: Path, values: Mapping[str, Any], root: Path) -> dict[str, Path]:
    given = values.get("home")
    if given is None:
        return {}
    home = Path(os.path.normpath(file.absolute().parent / Path(str(given)).expanduser()))
    # The file does not speak for the user: what lies elsewhere has to be this user's home of another project.
    project = root if is_inside(root, home) else home.parent
    home = own_home(project, home, trust_in(project))
    if not isinstance(given, str) or not Layout(home).current.exists():
        indexing = command("env", f"DOCINDEX_HOME={given}", "docindex", "index")
        raise SettingsError(f"{file}: home: nothing is indexed in {given} for you; {indexing} makes an index there")
    return {"home": home}


def _mode(file: Path, given: object) -> Mode:
    if given not in list(RETRIEVING):
        raise SettingsError(f"{file}: mode: there is no {given!r}; must be one of {', '.join(RETRIEVING)}")
    return Mode(str(given))


def _weights(file: Path, before: Weights, given: dict[str, Any]) -> Weights:
    known = [field.name for field in fields(Weights) if isinstance(getattr(before, field.name), float)]
    _check_names(file, "weights", given, known)
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _LARGEST_WEIGHT:
            raise SettingsError(f"{file}: weights.{name} must be a number that is not negative (given: {value!r})")
    return replace(before, **{name: float(value) for name, value in given.items()})
