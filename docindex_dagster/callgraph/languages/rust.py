"""Rust: what its grammar calls expressions and statements, and the files that paths of crates and modules lead to."""

import posixpath
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from docindex_dagster.callgraph.extract.expressions import Blocks, Expressions, Syntax
from docindex_dagster.callgraph.extract.library import held, last
from docindex_dagster.callgraph.modules import Modules, upwards
from docindex_dagster.callgraph.rules import Rules

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

RULES = Rules(
    "rust",
    find=find,
    calls_classes=False,
    has_module_paths=True,
    has_impls=True,
    has_class_scope=False,
    has_filled_fields=True,
    has_macro_names=True,
    wrappers=frozenset(
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
        ]
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
    iterating=frozenset({"next"}),
    default="default",
    leading=frozenset({"Result"}),
    builtins=frozenset(_BUILTINS.split()),
)
