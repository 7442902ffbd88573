"""Rust: what its grammar calls expressions and statements, and the files that paths of crates and modules lead to."""

import posixpath
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from docindex_dagster.callgraph.extract.expressions import Blocks, Expressions, Syntax
from docindex_dagster.callgraph.extract.library import held, last
from docindex_dagster.callgraph.modules import Modules, upwards
from docindex_dagster.callgraph.resolver.values import (
    Kind,
    Resolution,
    Value,
    Values,
    external_object,
    found_by,
    functions,
    known,
)
from docindex_dagster.callgraph.rules import Arguments, Hooks, Queries, Rules, Unit

_ROOTS = ("lib.rs", "main.rs")
_TARGETS = frozenset({"bin", "tests", "examples", "benches"})  # folders in which each file is a crate


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """The files of `crate`, `super`, `self.name` (a module below a file) or the name of a crate."""
    paths = modules.paths
    if module == "crate":
        yield from _roots(paths, importer)
    elif module == "super":
        yield from _parents(paths, importer)
    elif module.startswith("self."):
        folder, file = posixpath.split(importer)
        has_modules_beside = file == "mod.rs" or _is_root(paths, importer)
        stem = folder if has_modules_beside else posixpath.join(folder, file.removesuffix(".rs"))
        stem = posixpath.join(stem, module.removeprefix("self.").replace(".", "/"))
        yield from _known(paths, importer, f"{stem}.rs", f"{stem}/mod.rs")
    elif module.endswith(".rs"):  # as an attribute has it
        yield from _known(paths, importer, posixpath.normpath(posixpath.join(posixpath.dirname(importer), module)))
    else:
        crates = modules.derived(declared_crates)
        renamed = (crates.renamed.get(folder, {}).get(module) for folder in upwards(posixpath.dirname(importer)))
        package = next(filter(None, renamed), None)
        if library := crates.packages.get(package or "") or crates.libraries.get(module):
            yield library


class Crates(NamedTuple):
    """What the Cargo.toml files declare.

    Attributes:
        libraries: the first files of libraries, by the names that code has for them.
        packages: the same, by the names of packages.
        renamed: by folder, the packages that its code has under other names.
    """

    libraries: Mapping[str, str]
    packages: Mapping[str, str]
    renamed: Mapping[str, Mapping[str, str]]


def declared_crates(modules: Modules) -> Crates:
    """Read the Cargo.toml files."""
    libraries: dict[str, str] = {}
    packages: dict[str, str] = {}
    renamed: dict[str, Mapping[str, str]] = {}
    for path in modules.called("Cargo.toml"):
        values, folder = modules.configuration(path, tomllib.loads), posixpath.dirname(path)
        package, library = _table(values, "package"), _table(values, "lib")
        file = posixpath.join(folder, str(library.get("path", "src/lib.rs")))
        name = package.get("name")
        called = library.get("name") or name
        if file in modules.paths and isinstance(called, str):
            libraries[called.replace("-", "_")] = file
        if file in modules.paths and isinstance(name, str):
            packages[name] = file
        renamed[folder] = dict(_renamed(values))
    return Crates(libraries, packages, renamed)


def _renamed(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names under which code has packages, and theirs."""
    targets = [one for one in _table(values, "target").values() if isinstance(one, dict)]
    for table in (values, _table(values, "workspace"), *targets):
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, about in _table(table, kind).items():
                if isinstance(about, dict) and isinstance(package := about.get("package"), str):
                    yield name.replace("-", "_"), package


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _known(paths: frozenset[str], path: str, *candidates: str) -> list[str]:
    """Those of some files that are known, but for one itself."""
    return [candidate for candidate in candidates if candidate in paths and candidate != path]


def _is_root(paths: frozenset[str], path: str) -> bool:
    folder, file = posixpath.split(path)
    is_target = posixpath.basename(folder) in _TARGETS and file != "mod.rs" and f"{folder}.rs" not in paths
    return file in _ROOTS or file == "build.rs" or is_target


def _parents(paths: frozenset[str], path: str) -> list[str]:
    """The file of the module around that of a file; the first files of a crate that may have it."""
    if _is_root(paths, path):
        return []
    folder, file = posixpath.split(path)
    folder = posixpath.dirname(folder) if file == "mod.rs" else folder
    if found := _known(paths, path, f"{folder}/mod.rs".lstrip("/"), f"{folder}.rs"):
        return found[:1]
    roots = [posixpath.join(folder, root) for root in _ROOTS]
    if posixpath.basename(folder) in _TARGETS:
        roots += sorted(other for other in paths if posixpath.dirname(other) == folder and _is_root(paths, other))
    return _known(paths, path, *roots)


def _roots(paths: frozenset[str], path: str) -> list[str]:
    current = [path]
    for _ in path.split("/"):
        above = _parents(paths, current[0])
        if not above:
            return current
        current = above
    return current


_EXPRESSIONS = Expressions(
    names=frozenset(
        {"identifier", "type_identifier", "field_identifier", "shorthand_field_identifier", "primitive_type"}
    ),
    members={
        "field_expression": ("value", "field"),
        "scoped_identifier": ("path", "name"),
        "scoped_type_identifier": ("path", "name"),
    },
    calls={"call_expression": "function"},
    items={"index_expression": "", "try_expression": ""},
    through={
        "reference_expression": "value",
        "unary_expression": "",
        "await_expression": "",
        "parenthesized_expression": "",
        "generic_function": "function",
        "generic_type": "type",
        "generic_type_with_turbofish": "type",
        "bracketed_type": "",
        "qualified_type": "type",
        "shorthand_field_initializer": "",
        "expression_statement": "",
        "else_clause": "",
        "unsafe_block": "",
        "closure_body": "",
    },
    either={"if_expression": ("consequence", "alternative")},
    casts={"type_cast_expression": "type", "struct_expression": "name"},
    collections={"array_expression": "", "tuple_expression": ""},
    literals={
        "string_literal": "str",
        "raw_string_literal": "str",
        "integer_literal": "int",
        "float_literal": "float",
        "boolean_literal": "bool",
        "char_literal": "char",
    },
    listing={"macro_invocation": "vec"},
    branches={"match_expression": ("body", "value")},
    blocks=frozenset({"block"}),
    library={
        "Some": held,
        "Ok": held,
        **{
            f"{path}{name}": last
            for path, names in {
                "": ("Box.new", "Box.pin", "Pin.new", "Cell.new", "RefCell.new", "Mutex.new", "RwLock.new"),
                "std.cell.": ("Cell.new", "RefCell.new"),
                "std.sync.": ("Arc.new", "Arc.clone", "Mutex.new", "RwLock.new"),
                "std.rc.": ("Rc.new", "Rc.clone"),
                "std.boxed.": ("Box.new",),
            }.items()
            for name in (*names, "Rc.new", "Arc.new", "Rc.clone", "Arc.clone", "Rc.downgrade", "Arc.downgrade")
        },
        "Cow.Borrowed": last,
    },
    words={"self": "this", "Self": "this", "super": "super", "crate": "crate"},
)

SYNTAX = Syntax(
    ("rust",),
    _EXPRESSIONS,
    frozenset({"function_item", "function_signature_item", "closure_expression"}),
    frozenset({"closure_expression"}),
    frozenset({"let_declaration"}),
    blocks=Blocks(
        frozenset(
            {
                "block",
                "match_arm",
                "closure_expression",
                "if_expression",
                "for_expression",
                "while_expression",
                "function_item",
                "function_signature_item",
            }
        ),
        frozenset({"let_declaration", "let_condition"}),
        frozenset({"assignment_expression"}),
        after={"for_expression": "value"},
    ),
)

_BUILTINS = """
    Array AsMut AsRef Box Clone Copy Debug Default Display DoubleEndedIterator Drop Eq Err Extend ExactSizeIterator Fn
    FnMut FnOnce From FromIterator Hash Into IntoIterator Iterator None Ok Option Ord PartialEq PartialOrd Result Send
    Sized Some String Sync ToOwned ToString TryFrom TryInto Unpin Vec bool char drop f32 f64 func i128 i16 i32 i64 i8
    isize str tuple u128 u16 u32 u64 u8 usize
"""


def _macros(q: Queries, unit: Unit, name: str) -> Iterator[Value]:
    """The macros of a name: of this file, else of the crate, else all; none where it is imported from elsewhere."""
    imported = (value for one in unit.imports.get(name, ()) for value in q.import_targets(unit, one))
    if any(value.kind == "external" for value in imported):
        return
    crate = f"{unit.path.partition('src/')[0]}src/"
    listed = q.program.named.get(unit.rules.family, name.rpartition(".")[2])
    found = [(path, one.id) for path, one in listed if one.kind == "macro"]
    if found:
        path, identifier = min(found, key=lambda item: (item[0] != unit.path, not item[0].startswith(crate)))
        yield Value("function", path, identifier, Resolution.FILE if path == unit.path else Resolution.PACKAGE)


def _itself(q: Queries, unit: Unit, scope: str, name: str) -> Sequence[Value] | None:
    """What `self`, `super` and `crate` are: an object in its type, else modules."""
    if name not in _PATH_WORDS:
        return None
    owner = q.owner(unit, scope) if name == "this" else None
    return [owner.as_kind("object")] if owner else q.path_word(unit, scope, name)


def _member(q: Queries, value: Value, name: str) -> Values | None:
    """What `super` and `crate` are behind a module."""
    is_word = value.kind == "class" and name in _PATH_WORDS
    return q.path_word(q.unit(value.path), value.name, name) if is_word else None


def _missing(q: Queries, value: Value, name: str, found: Sequence[Value]) -> Sequence[Value]:
    """A member of what an object stands for by its own rule; an object by its derived `default`."""
    if name != "deref" and (inner := _of_deref(q, value, name)):
        return inner
    return [value] if value.kind == "class" and name == "default" and not found else ()


def _of_deref(q: Queries, value: Value, name: str) -> list[Value]:
    held = (one for member in functions(q.member(value, "deref")) for one in q.returned(member))
    return q.all_members(held, name)


def _elements_of_object(q: Queries, value: Value) -> Sequence[Value] | None:
    """What an iterator holds by what it gives next."""
    found = known(q.member(value, "next"))
    items = (item for member in found for item in q.result(q.unit(value.path), member))
    return [one for item in items for one in q.elements(item)] if found else None


_PATH_WORDS = frozenset({"this", "super", "crate"})


def _held(name: str, arguments: Arguments) -> Arguments:
    """The arguments of a type that say what it holds: of a result the first."""
    return arguments[:1] if name.rpartition(".")[2] == "Result" else arguments


_CELLS = frozenset(
    ["Mutex", "RwLock", "RefCell", "Cell", "OnceCell", "OnceLock", "LazyLock", "LazyCell", "Lazy", "Weak", "UnsafeCell"]
)
_MAYBE = frozenset({"Option", "Result", "LockResult", "Poll"})
_SAME_NAMES = """
    iter iter_mut into_iter values values_mut into_values drain filter skip take skip_while take_while rev chain cloned
    copied peekable step_by inspect by_ref as_slice as_mut_slice to_vec clone collect enumerate as_ref as_mut as_deref
    as_deref_mut to_owned unwrap expect lock read write borrow borrow_mut await into_iter_sorted sorted sorted_by
    sorted_by_key unique cycle fuse deref deref_mut par_iter into_par_iter iter_enumerated entry leak
    into_boxed_slice split_off and_modify
"""
_MAYBE_SAME_NAMES = """
    as_ref as_mut as_deref as_deref_mut clone cloned copied take replace filter ok ok_or ok_or_else or or_else inspect
    map_err iter iter_mut into_iter context with_context inspect_err xor await
"""
_HELD_NAMES = """
    unwrap expect unwrap_or unwrap_or_else unwrap_or_default insert get_or_insert get_or_insert_with unwrap_unchecked
    into_inner
"""
_CELL_NAMES = """
    lock read write borrow borrow_mut get_mut into_inner as_ref get_or_init take replace blocking_lock force load
    blocking_read blocking_write
"""
_MAYBE_ONE_NAMES = """
    get get_mut first last first_mut last_mut pop pop_front pop_back front back front_mut back_mut next next_back nth
    find max min max_by_key min_by_key max_by min_by reduce peek peek_mut pop_first pop_last insert get_index
    try_recv recv first_key_value last_key_value get_key_value
"""
_ONE_NAMES = "or_insert or_insert_with or_default or_insert_with_key swap_remove get_unchecked index"
_SAME, _MAYBE_SAME, _HELD = (frozenset(names.split()) for names in (_SAME_NAMES, _MAYBE_SAME_NAMES, _HELD_NAMES))
_CELL, _MAYBE_ONE, _ONE = (frozenset(names.split()) for names in (_CELL_NAMES, _MAYBE_ONE_NAMES, _ONE_NAMES))


_Gives = Literal["held", "same", "maybe"]
# What the methods of each sort of types give, by the first that has their name.
_GIVES: Mapping[str, Sequence[tuple[frozenset[str], _Gives]]] = {
    "object": (),
    "collection": ((_ONE | _HELD, "held"), (_SAME | _MAYBE_ONE, "same")),
    "Cell": ((_CELL, "held"), (frozenset({"clone"}), "same"), (frozenset({"upgrade", "get"}), "maybe")),
    "Option": ((_HELD, "held"), (_MAYBE_SAME, "same")),
    "tuple": ((frozenset({"clone"}), "same"),),
    "Vec": ((_SAME, "same"), (_ONE | {"remove"}, "held"), (_MAYBE_ONE, "maybe")),
    "": ((_SAME, "same"), (_ONE, "held"), (_MAYBE_ONE | {"remove"}, "maybe")),
}
_SORTS = {**dict.fromkeys(_CELLS, "Cell"), **dict.fromkeys(_MAYBE, "Option"), **{name: name for name in _GIVES}}


def rust_result(method: Value) -> Sequence[Value]:
    """What a method of a standard type gives, where that is what it holds, or the same again."""
    written, _, name = method.name.rpartition(".")
    owner = written.rpartition(".")[2]
    sort = _SORTS.get(owner, "")
    kind: Kind = "collection" if owner == "collection" else "external object"
    held = found_by(method.held if owner == "collection" else method.held[-1:], Resolution.ELEMENT)
    gives = next((gives for names, gives in _GIVES[sort] if name in names), None)
    if gives == "held" or owner == "object":  # the latter is of the program
        return held
    if gives == "same":
        return [Value(kind, "", written, method.resolution, method.held)]
    if gives == "maybe":
        return [external_object("Option", method.resolution, tuple(held[:1]))]
    is_keys = name in {"keys", "into_keys"} and len(method.held) > 1 and sort in {"", "Vec"}
    return [external_object("Iter", method.resolution, method.held[:1])] if is_keys else ()


RULES = Rules(
    "rust",
    find=find,
    calls_classes=False,
    has_module_paths=True,
    has_impls=True,
    has_class_scope=False,
    has_filled_fields=True,
    wrappers=dict.fromkeys(
        [
            "Box",
            "Rc",
            "Arc",
            "Pin",
            "Cow",
            "Ref",
            "RefMut",
            "MutexGuard",
            "RwLockReadGuard",
            "RwLockWriteGuard",
            "Reverse",
        ],
        "object",
    ),
    same=frozenset(
        [
            "clone",
            "borrow",
            "borrow_mut",
            "lock",
            "read",
            "write",
            "unwrap",
            "expect",
            "as_ref",
            "as_mut",
            "as_deref",
            "as_deref_mut",
            "to_owned",
            "by_ref",
            "into_inner",
            "get_mut",
            "deref",
            "deref_mut",
        ]
    ),
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(
        itself=_itself,
        macros=_macros,
        member=_member,
        missing=_missing,
        held=_held,
        library_result=rust_result,
        elements_of_object=_elements_of_object,
    ),
)
