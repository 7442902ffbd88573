"""Names resolved when graphs are opened: names from other sources, and the links and mentions in documents."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc

from docindex_dagster.core.layout import is_branch
from docindex_dagster.graph.documents import is_plain
from docindex_dagster.graph.source_graph import ANCHORS, EXTERNAL, LABEL, LINK, MENTION, UNRESOLVED
from docindex_dagster.sources.classify import classify_name

_SUFFIXES = (".py", ".pyi", ".js", ".ts", ".tsx", ".jsx", ".mjs", ".go", ".rs", ".java", ".kt", ".rb", ".php", ".cs")
_ROOTS = frozenset({"src", "lib", "python", "packages", "pkg"})
_CROSS_SOURCE = 0.9  # confidence of an edge into another source, which is resolved by name alone
_DOCUMENT_SUFFIXES = (".md", ".mdx", ".rst", ".html", ".markdown", ".adoc", ".txt", ".ipynb")
_FIRST_PAGES = ("index", "README", "readme", "_index")
_NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")
_FILE = re.compile(r"[^:]*\.\w{1,8}")
_HEADING_MISSING = "link to the file, which has no such heading"
_ELSEWHERE, _PLAIN, _HEADING_MISSED = 0.9, 0.7, 0.8


def resolve_external_names(nodes: pa.Table, triples: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Point the edges to an external name at its definition, if exactly one other source symbol matches the name.

    Drop the nodes that no edge reaches any more.
    """
    wanted = nodes.filter(pc.is_in(nodes["type"], pa.array([EXTERNAL])))
    found = dict(_resolve_external(nodes, wanted))
    if not found:
        return nodes, triples
    old = pa.array([*found], pa.string())
    new = pa.array([*found.values()], pa.string())
    position = pc.index_in(triples["object"], old)
    is_linked = pc.is_valid(position)
    columns = {
        "object": pc.if_else(is_linked, new.take(position.combine_chunks()), triples["object"]),
        "confidence": pc.if_else(
            is_linked,
            pc.min_element_wise(triples["confidence"], pa.scalar(_CROSS_SOURCE, pa.float32())),
            triples["confidence"],
        ),
        "resolution": pc.if_else(is_linked, pa.scalar("name in another source"), triples["resolution"]),
    }
    for name, values in columns.items():
        triples = triples.set_column(triples.schema.get_field_index(name), name, values)
    return nodes.filter(pc.invert(pc.is_in(nodes["id"], old))), triples


def _resolve_external(nodes: pa.Table, wanted: pa.Table) -> Iterator[tuple[str, str]]:
    """Yield the ids of external nodes, each with the id of the symbol it resolves to."""
    if not wanted.num_rows:
        return
    by_name: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    last = {name.rpartition(".")[2] for name in wanted["name"].to_pylist()}
    is_symbol = pc.and_(pc.is_valid(nodes["path"]), pc.match_substring(nodes["node"], "::"))
    symbols = nodes.filter(pc.and_(is_symbol, pc.is_in(nodes["name"], pa.array(sorted(last), pa.string()))))
    for row in symbols.select(["id", "source", "node", "name"]).to_pylist():
        by_name[row["name"]].append((row["id"], row["source"], full_name(row["node"])))
    for row in wanted.select(["id", "source", "name"]).to_pylist():
        name = row["name"]
        matches = [
            identifier
            for identifier, source, full in by_name.get(name.rpartition(".")[2], ())
            if source != row["source"] and is_match(name, full)
        ]
        if len(matches) == 1:
            yield row["id"], matches[0]


def is_match(name: str, full: str) -> bool:
    """Return whether a dotted name, as written elsewhere, refers to the symbol with this full name."""
    first, _, rest = name.partition(".")
    if full == name or full.endswith(f".{name}"):
        return bool(rest)
    parts = full.split(".")
    # Packages re-export the definitions of their modules: click.echo is click.utils.echo.
    return bool(rest) and first in parts[:-1] and ".".join(parts).endswith(f".{rest}")


def full_name(node: str) -> str:
    """Return the full name of a symbol, with its folders and file: `src/click/utils.py::echo` is click.utils.echo."""
    path, _, qualified = node.partition("::")
    for ending in _SUFFIXES:
        path = path.removesuffix(ending)
    parts = [part for part in path.split("/") if part not in {"__init__", "index", "mod"}]
    while parts and parts[0] in _ROOTS:
        parts = parts[1:]
    return ".".join([*parts, qualified.partition("~")[0]])


class _Target(NamedTuple):
    id: str
    confidence: float
    resolution: str


class _Symbol(NamedTuple):
    id: str
    source: str
    full: str  # its name, prefixed with its folders and file
    is_top: bool  # whether it is at module level


def resolve_document_references(nodes: pa.Table, triples: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Resolve links to files and sections, and mentions to the only symbol or file with that name.

    Unresolved and ambiguous mentions are dropped, because most text in code font names no symbol. Unresolved links
    are kept.
    """
    found = {**_resolve_mentions(nodes), **_resolve_links(nodes)}
    position = pc.index_in(triples["object"], pa.array([*found], pa.string()))
    triples = triples.append_column("position", position)
    is_found = pc.is_valid(position)
    targets = pa.table(
        {
            "object": pa.array([target.id for target in found.values()], pa.string()),
            "confidence": pa.array([target.confidence for target in found.values()], pa.float32()),
            "resolution": pa.array([target.resolution for target in found.values()], pa.string()),
        }
    )
    for name in set(targets.column_names).intersection(triples.column_names):
        values = pc.if_else(is_found, targets[name].take(triples["position"].combine_chunks()), triples[name])
        triples = triples.set_column(triples.schema.get_field_index(name), name, values)
    is_harmless = pc.or_(is_found, pc.not_equal(triples["object_type"], MENTION))
    kept = triples.filter(pc.and_(is_harmless, pc.not_equal(triples["subject"], triples["object"])))
    replaced = [name for name, target in found.items() if target.id != name]
    is_replaced = pc.or_(
        pc.is_in(nodes["type"], pa.array([MENTION, *ANCHORS])), pc.is_in(nodes["id"], pa.array(replaced, pa.string()))
    )
    return nodes.filter(pc.invert(is_replaced)), kept.drop_columns(["position"])


def _resolve_links(nodes: pa.Table) -> dict[str, _Target]:
    """Return the targets of links by node id; an unresolved link targets itself."""
    links = _rows(nodes, LINK)
    if not links:
        return {}
    labels = _labels(nodes)
    files: dict[str, _Files] = defaultdict(_Files)
    for row in _rows(nodes, "file"):
        files[row["source"]].add(row["path"])
    found: dict[str, _Target] = {}
    pages: dict[str, tuple[str, str, str]] = {}
    for row in links:
        path, _, anchor = row["name"].partition("#")
        page = _resolve_page(path, files[row["source"]]) if path else None
        if page is not None:
            pages[row["id"]] = row["source"], page, anchor
        elif path:
            reason = "a pattern of names" if "*" in path else "no such file"
            found[row["id"]] = _unresolved(row["id"], reason)
        else:
            found[row["id"]] = _resolve_label(row["id"], labels.get((row["source"], _label(anchor)), ()))
    wanted = {(source, page) for source, page, anchor in pages.values() if anchor}
    anchors = _anchors(nodes, wanted)
    for link, (source, page, anchor) in pages.items():
        known = anchors.get((source, page), {})
        section = known.get(anchor.lower()) or known.get(_hyphenated(anchor.lower())) if anchor else None
        if section:
            found[link] = _Target(section, 1.0, "link")
        else:
            confidence, resolution = (_HEADING_MISSED, _HEADING_MISSING) if anchor else (1.0, "link")
            found[link] = _Target(f"{source}!{page}", confidence, resolution)
    return found


def _unresolved(link: str, reason: str) -> _Target:
    return _Target(link, 0.0, f"{UNRESOLVED}: {reason}")


def _resolve_label(link: str, places: Collection[str]) -> _Target:
    """Return the only location with a label."""
    if len(places) != 1:
        return _unresolved(link, "several places with this label" if places else "no such label")
    return _Target(next(iter(places)), 1.0, "link")


def _labels(nodes: pa.Table) -> dict[tuple[str, str], set[str]]:
    """Return the locations with a label, by source and label."""
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in nodes.filter(pc.equal(nodes["type"], LABEL)).select(["source", "name", "node"]).to_pylist():
        found[row["source"], _label(_anchor_name(row["node"]))].add(f"{row['source']}!{row['name']}")
    return found


def _label(name: str) -> str:
    """Normalize a label: case and whitespace do not matter."""
    return " ".join(name.lower().split())


def _anchor_name(node: str) -> str:
    """Return the name of a location, without the path of its file."""
    return node.partition("#")[2]


@dataclass(frozen=True, slots=True)
class _Files:
    """Paths of a source's files, indexed by file name, since few of thousands match the end of a link."""

    paths: set[str] = field(default_factory=set)
    _by_name: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def add(self, path: str) -> None:
        """Add a file."""
        self.paths.add(path)
        self._by_name[path.rpartition("/")[2]].append(path)

    def ending_with(self, ends: Collection[str]) -> list[str]:
        """Return the files whose paths end with one of these suffixes, each with a slash before the file name."""
        names = {end.rpartition("/")[2] for end in ends}
        found = (path for name in names for path in self._by_name.get(name, ()))
        return [path for path in found if any(path.endswith(end) for end in ends)]


def _resolve_page(target: str, files: _Files) -> str | None:
    """Return the file that a path links to, either as a file or as a page of a site."""
    if target.startswith("/"):  # relative to the root of a site, which may be in a subfolder
        top = target.strip("/")
        inside = _resolve_page(top, files) if top else None
        if inside is not None or not top:
            return inside
        ends = {f"/{top}{ending}" for ending in ("", *_page_suffixes())}
        found = files.ending_with(ends)
        return found[0] if len(found) == 1 else None
    stem = re.sub(r"\.html?$", "", target)
    return next(
        (
            name
            for base in (target, stem)
            for ending in ("", *_page_suffixes())
            if (name := base + ending) in files.paths
        ),
        None,
    )


@lru_cache
def _page_suffixes() -> tuple[str, ...]:
    return (*_DOCUMENT_SUFFIXES, *(f"/{page}{ending}" for page in _FIRST_PAGES for ending in _DOCUMENT_SUFFIXES))


def _anchors(nodes: pa.Table, wanted: set[tuple[str, str]]) -> dict[tuple[str, str], dict[str, str]]:
    """Return the sections of some files by anchor: explicit anchors, and those that GitHub derives from titles."""
    of_files = nodes.filter(pc.is_in(nodes["path"], pa.array([path for _, path in wanted], pa.string())))
    found: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    sections = of_files.filter(pc.equal(of_files["type"], "section"))
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for row in sections.select(["id", "source", "path", "name"]).to_pylist():
        file = row["source"], row["path"]
        anchor = anchor_of(row["name"])
        number = counts[file][anchor]
        counts[file][anchor] += 1
        found[file][f"{anchor}-{number}" if number else anchor] = row["id"]
        found[file].setdefault(_hyphenated(anchor), row["id"])
    named = of_files.filter(pc.is_in(of_files["type"], pa.array(ANCHORS)))
    for row in reversed(named.select(["source", "path", "name", "node"]).to_pylist()):
        anchor, place = unquote(_anchor_name(row["node"])).lower(), f"{row['source']}!{row['name']}"
        found[row["source"], row["path"]] |= {_hyphenated(anchor): place, anchor: place}
    return found


def _hyphenated(anchor: str) -> str:
    """Return an anchor as other site generators write it."""
    return re.sub(r"[\W_]+", "-", anchor).strip("-") or anchor


def anchor_of(title: str) -> str:
    """Return the anchor that GitHub gives a heading: lower case, no punctuation, hyphens for spaces."""
    return _NOT_IN_ANCHORS.sub("", title.strip().lower()).replace(" ", "-")


def _resolve_mentions(nodes: pa.Table) -> dict[str, _Target]:
    """Return the targets of names in code font, by node id."""
    mentions = [{**row, "last": _last_name(row["name"])} for row in _rows(nodes, MENTION)]
    if not mentions:
        return {}
    files = _files(nodes, mentions)
    symbols = _symbols(nodes, {row["last"] for row in mentions})
    found: dict[str, _Target] = {}
    for row in mentions:
        file = files.get((row["source"], row["name"]))
        if file:
            found[row["id"]] = _Target(file, 1.0, "path")
            continue
        target = _resolve_mention(row["name"], row["source"], symbols.get(row["last"], ()))
        if target:
            found[row["id"]] = target
    return found


def _last_name(name: str) -> str:
    return name.removesuffix("()").rpartition(".")[2]


def _files(nodes: pa.Table, mentions: Sequence[Mapping[str, Any]]) -> dict[tuple[str, str], str]:
    """Return the files that mentions refer to by path, or by the end of one, if only one file of the source matches."""
    wanted = {(row["source"], row["name"]) for row in mentions if _FILE.fullmatch(row["name"])}
    last = {name.rpartition("/")[2] for _, name in wanted}
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in _rows(nodes, "file") if wanted else ():
        if row["path"].rpartition("/")[2] not in last:
            continue
        parts = row["path"].split("/")
        for begin in range(len(parts)):
            key = row["source"], "/".join(parts[begin:])
            if key in wanted and (begin == 0 or not any(each.endswith(f"!{key[1]}") for each in found[key])):
                found[key] = {row["id"]} if begin == 0 else found[key] | {row["id"]}
    return {key: next(iter(ids)) for key, ids in found.items() if len(ids) == 1}


def _symbols(nodes: pa.Table, names: set[str]) -> dict[str, list[_Symbol]]:
    """Return the symbols with some names, except those in tests. A symbol with several definitions counts once."""
    is_symbol = pc.and_(pc.is_valid(nodes["path"]), pc.match_substring(nodes["node"], "::"))
    symbols = nodes.filter(pc.and_(is_symbol, pc.is_in(nodes["name"], pa.array(sorted(names), pa.string()))))
    found: dict[str, dict[str, _Symbol]] = defaultdict(dict)
    for row in symbols.select(["id", "source", "path", "node", "name"]).to_pylist():
        if not _is_test(row["path"]):
            qualified = row["node"].partition("::")[2]
            symbol = _Symbol(row["id"], row["source"], full_name(row["node"]), "." not in qualified)
            found[row["name"]].setdefault(row["id"].partition("~")[0], symbol)
    return {name: [*symbols.values()] for name, symbols in found.items()}


@lru_cache(maxsize=65_536)
def _is_test(path: str) -> bool:
    kind = classify_name(path.encode("utf-8", "surrogatepass"))
    return kind is not None and kind.source_type == "test"


def _resolve_mention(name: str, source: str, symbols: Sequence[_Symbol]) -> _Target | None:
    """Return the symbol that a name refers to, if only one matches; symbols of the same source take precedence.

    A lower-case word refers to symbols of the same source only and, without parentheses, only at module level.
    """
    own = [symbol for symbol in symbols if symbol.source == source]
    if "." in name:
        return _unique_target([each for each in own if is_match(name, each.full)], 1.0, "name") or (
            None
            if own
            else _unique_target(_symbols_elsewhere(symbols, source, name), _ELSEWHERE, "name in another source")
        )
    tops = [symbol for symbol in own if symbol.is_top]
    if name.endswith("()"):
        return _unique_target(tops or own, _ELSEWHERE, "name")
    if is_plain(name):
        return _unique_target(tops, _PLAIN, "name, a plain word")
    if own:
        return _unique_target(tops or own, 1.0 if tops else _ELSEWHERE, "name")
    return _unique_target(
        [each for each in _symbols_elsewhere(symbols, source) if each.is_top], _ELSEWHERE, "name in another source"
    )


def _symbols_elsewhere(symbols: Sequence[_Symbol], source: str, name: str = "") -> list[_Symbol]:
    """Return the symbols of other sources; branches count only if no repository matches."""
    found = [each for each in symbols if each.source != source and (not name or is_match(name, each.full))]
    return [each for each in found if not is_branch(each.source)] or found


def _unique_target(symbols: Sequence[_Symbol], confidence: float, resolution: str) -> _Target | None:
    return _Target(symbols[0].id, confidence, resolution) if len(symbols) == 1 else None


def _rows(nodes: pa.Table, kind: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        nodes.filter(pc.equal(nodes["type"], kind)).select(["id", "source", "path", "name"]).to_pylist()
    )
    return rows
