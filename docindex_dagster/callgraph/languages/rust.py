"""Rust: syntax, rules, and resolution of crates and modules."""

import posixpath
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from docindex_dagster.callgraph.extract.expressions import Blocks, Expressions, Node, Reader, Syntax, text_of
from docindex_dagster.callgraph.extract.library import held, last
from docindex_dagster.callgraph.extract.variables import HELD, AccessStep, position, with_steps
from docindex_dagster.callgraph.ir import UNKNOWN, Attribute, Element, Expression, Name, path_of
from docindex_dagster.callgraph.languages.rust_std import rust_result
from docindex_dagster.callgraph.modules import Modules, upwards
from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values, functions, known
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit, first_of_result

_ROOTS = ("lib.rs", "main.rs")
_TARGETS = frozenset({"bin", "tests", "examples", "benches"})  # folders whose files are crates of their own
_VALUES = frozenset({"let_declaration", "let_condition", "match_expression", "for_expression"})
_HOLDERS = frozenset({Name("Some"), Name("Ok")})
# Methods of iterators and similar types that pass each element, or the contained value, to a closure.
_EACH_NAMES = """
    map filter for_each any all find position filter_map flat_map and_then inspect take_while skip_while find_map
    retain retain_mut is_some_and is_ok_and partition min_by_key max_by_key sort_by_key sort_unstable_by_key
    sort_by_cached_key sort_by sort_unstable_by min_by max_by map_or map_or_else try_for_each map_while rposition
    and_modify modify update then group_by dedup_by_key
"""
_EACH = frozenset(_EACH_NAMES.split())
_FOLDS = frozenset({"fold", "try_fold", "scan"})
PATH_WORDS = frozenset({"this", "super", "crate"})


def find(modules: Modules, importer: str, module: str) -> Iterator[str]:
    """Yield the files of `crate`, `super`, `self.name` (a submodule of a file) or the name of a crate."""
    paths = modules.paths
    if module == "crate":
        yield from _roots(paths, importer)
    elif module == "super":
        yield from _parents(paths, importer)
    elif module.startswith("self."):
        folder, file = posixpath.split(importer)
        has_sibling_modules = file == "mod.rs" or _is_root(paths, importer)
        stem = folder if has_sibling_modules else posixpath.join(folder, file.removesuffix(".rs"))
        stem = posixpath.join(stem, module.removeprefix("self.").replace(".", "/"))
        yield from _known(paths, importer, f"{stem}.rs", f"{stem}/mod.rs")
    elif module.endswith(".rs"):  # from a path attribute
        yield from _known(paths, importer, posixpath.normpath(posixpath.join(posixpath.dirname(importer), module)))
    else:
        crates = modules.derived(declared_crates)
        renamed = (crates.renamed.get(folder, {}).get(module) for folder in upwards(posixpath.dirname(importer)))
        package = next(filter(None, renamed), None)
        if library := crates.packages.get(package or "") or crates.libraries.get(module):
            yield library


class Crates(NamedTuple):
    """The crates declared in Cargo.toml files.

    Attributes:
        libraries: root files of libraries, by the name used in code.
        packages: root files of libraries, by package name.
        renamed: renamed packages by folder; the new name maps to the package.
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
    """Yield the renamed dependencies: the name used in code and the package."""
    targets = [one for one in _table(values, "target").values() if isinstance(one, dict)]
    for table in (values, _table(values, "workspace"), *targets):
        for kind in ("dependencies", "dev-dependencies", "build-dependencies"):
            for name, dependency in _table(table, kind).items():
                if isinstance(dependency, dict) and isinstance(package := dependency.get("package"), str):
                    yield name.replace("-", "_"), package


def _table(values: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = values.get(name)
    return found if isinstance(found, dict) else {}


def _known(paths: frozenset[str], path: str, *candidates: str) -> list[str]:
    """Return the candidates that exist, except `path` itself."""
    return [candidate for candidate in candidates if candidate in paths and candidate != path]


def _is_root(paths: frozenset[str], path: str) -> bool:
    folder, file = posixpath.split(path)
    is_target = posixpath.basename(folder) in _TARGETS and file != "mod.rs" and f"{folder}.rs" not in paths
    return file in _ROOTS or file == "build.rs" or is_target


def _parents(paths: frozenset[str], path: str) -> list[str]:
    """Return the file of the parent module, or else the crate roots that may contain the module."""
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


def _matched(name: Node, reader: Reader) -> Expression:
    """Return the part of the matched value that a name in a pattern binds."""
    steps: list[AccessStep] = []
    node = name
    while (outer := node.parent) is not None:
        if outer.type == "tuple_struct_pattern":
            variant = reader.expression(outer.child_by_field_name("type"))
            if variant not in _HOLDERS:
                return with_steps(_field_of(variant, str(position(node, outer.named_children) - 1)), steps)
            steps.append(HELD)
        elif outer.type == "tuple_pattern":
            steps.append(AccessStep(str(position(node, outer.named_children)), not node.next_named_sibling))
        elif outer.type == "field_pattern":
            return with_steps(_field(name, node, outer, reader), steps)
        elif outer.type == "closure_parameters":
            return with_steps(_closure_argument(outer, node, reader), steps)
        elif outer.type == "parameter":
            return UNKNOWN
        elif outer.type in _VALUES:
            value, steps = _tuple_part(outer.child_by_field_name("value"), steps, reader)
            return with_steps(Element(value) if outer.type == "for_expression" else value, steps)
        node = outer
    return UNKNOWN


def _tuple_part(value: Node | None, steps: list[AccessStep], reader: Reader) -> tuple[Expression, list[AccessStep]]:
    """Apply the outermost step to a tuple literal."""
    if value is not None and value.type == "tuple_expression" and steps and steps[-1] is not HELD:
        parts, at = value.named_children, int(steps[-1].name)
        return (reader.expression(parts[at]), steps[:-1]) if at < len(parts) else (UNKNOWN, [])
    return reader.expression(value), steps


def _field_of(variant: Expression, field: str) -> Expression:
    """Return a field of an enum variant, which is named with the variant."""
    match variant:
        case Name(text):
            return Name(f"{text}#{field}")
        case Attribute(of, name):
            return Attribute(of, f"{name}#{field}")
        case _:
            return UNKNOWN


def _field(name: Node, node: Node, pattern: Node, reader: Reader) -> Expression:
    """Return the field of a struct or enum variant that a pattern binds."""
    of = pattern.parent.child_by_field_name("type") if pattern.parent is not None else None
    field = pattern.child_by_field_name("name") or (node if node.id == name.id else None)
    if of is None or field is None:
        return UNKNOWN
    owner, name_of_field = reader.expression(of), text_of(field)
    is_variant = of.type == "scoped_type_identifier"
    return _field_of(owner, name_of_field) if is_variant else Attribute(owner, name_of_field)


def _closure_argument(parameters: Node, node: Node, reader: Reader) -> Expression:
    """Return the argument that a method of an iterator or similar type passes to a closure."""
    closure = parameters.parent
    call = closure.parent.parent if closure is not None and closure.parent is not None else None
    function = call.child_by_field_name("function") if call is not None else None
    if function is None or function.type != "field_expression":
        return UNKNOWN
    method = path_of(reader.expression(function.child_by_field_name("field")))
    is_last = node.next_named_sibling is None
    if method not in _EACH and not (method in _FOLDS and is_last):
        return UNKNOWN
    value = reader.expression(function.child_by_field_name("value"))
    return value if value is UNKNOWN else Element(value)


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
    matching=_matched,
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
    """Yield the nearest macro with a name: in the file, the crate or anywhere; nothing if imported from outside."""
    imported = (value for one in unit.imports.get(name, ()) for value in q.import_targets(unit, one))
    if any(value.kind == "external" for value in imported):
        return
    crate = f"{unit.path.partition('src/')[0]}src/"
    listed = q.program.named.get(unit.rules.family, name.rpartition(".")[2])
    found = [(path, one.id) for path, one in listed if one.kind == "macro"]
    if found:
        path, identifier = min(found, key=lambda item: (item[0] != unit.path, not item[0].startswith(crate)))
        yield Value("function", path, identifier, Resolution.FILE if path == unit.path else Resolution.PACKAGE)


def _self_reference(q: Queries, unit: Unit, scope: str, name: str) -> Sequence[Value] | None:
    """Resolve `self`, `super` and `crate`: an object inside a type, otherwise modules."""
    if name not in PATH_WORDS:
        return None
    owner = q.owner(unit, scope) if name == "this" else None
    return [owner.as_kind("object")] if owner else q.path_word(unit, scope, name)


def _member(q: Queries, value: Value, name: str) -> Values | None:
    """Resolve `super` and `crate` after a module."""
    is_word = value.kind == "class" and name in PATH_WORDS
    return q.path_word(q.unit(value.path), value.name, name) if is_word else None


def _fallback(q: Queries, value: Value, name: str, found: Sequence[Value]) -> Sequence[Value]:
    """Return a member reached through `Deref`, or the instance that a derived `default` creates."""
    if name != "deref" and (inner := _of_deref(q, value, name)):
        return inner
    return [value] if value.kind == "class" and name == "default" and not found else ()


def _of_deref(q: Queries, value: Value, name: str) -> list[Value]:
    held = (one for member in functions(q.member(value, "deref")) for one in q.returned(member))
    return q.all_members(held, name)


def _object_elements(q: Queries, value: Value) -> Sequence[Value] | None:
    """Return the elements of an iterator by the result of `next`."""
    found = known(q.member(value, "next"))
    items = (item for member in found for item in q.result(q.unit(value.path), member))
    return [one for item in items for one in q.elements(item)] if found else None


RULES = Rules(
    "rust",
    find=find,
    calls_classes=False,
    has_module_paths=True,
    has_impls=True,
    has_class_scope=False,
    infers_fields=True,
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
    identity_methods=frozenset(
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
        self_reference=_self_reference,
        macros=_macros,
        member=_member,
        fallback=_fallback,
        element_types=first_of_result,
        library_result=rust_result,
        object_elements=_object_elements,
    ),
)
