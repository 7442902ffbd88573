"""What one file defines and says, ready to be looked up."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import cached_property, partial
from types import MappingProxyType
from typing import Any, NamedTuple

from docindex_dagster.code.expressions import SEPARATOR
from docindex_dagster.code.facts import symbol_ids
from docindex_dagster.core.hashing import digest
from docindex_dagster.graph.policies import Policy, policy_of

CLASSES = frozenset({"class", "enum", "impl", "interface", "struct", "trait", "union"})
FUNCTIONS = frozenset({"function", "method", "macro"})
FILE = ""  # the scope around all others
DIRECTIVE = "namespace"  # what `using namespace` imports all of


@dataclass(frozen=True, slots=True)
class Definition:
    """A symbol of a file; `id` is its qualified name, with `~2` where one is defined again."""

    id: str
    name: str
    kind: str
    qualified: str
    parent: str  # the qualified name of the symbol around it; "" for none
    line: int
    returns: str  # declared type
    is_local: bool  # cannot be seen from other files


@dataclass(frozen=True, slots=True)
class Import:
    """A name of another file or package under a name here."""

    module: str
    name: str  # "" for the module itself
    line: int
    scope: str = ""  # the module or function in the file that imports, where the language has such

    def named(self, name: str) -> "Import":
        """One name of a module of which all is imported."""
        return Import(self.module, name, self.line, self.scope)


class Reference(NamedTuple):
    """A fact, with the chunk in which it stands."""

    kind: str
    scope: str
    name: str
    value: str
    line: int
    chunk: str

    @property
    def arguments(self) -> list[str]:
        """What is given to what is called."""
        return self.value.split(SEPARATOR) if self.value else []


@dataclass(frozen=True, eq=False)
class Unit:
    """One file."""

    path: str
    language: str
    policy: Policy
    is_test: bool
    first_chunk: str
    definitions: Mapping[str, Definition]
    children: Mapping[str, Mapping[str, Sequence[Definition]]]  # by the qualified name of the parent, then by name
    binds: Mapping[str, Mapping[str, Sequence[str]]]  # by scope, then by name
    attributes: Mapping[str, Mapping[str, Sequence[tuple[str, str]]]]  # of classes: by name, scopes and expressions
    parameters: Mapping[str, Sequence[tuple[str, str]]]  # by function: names and expressions
    returns: Mapping[str, Sequence[str]]
    bases: Mapping[str, Sequence[Reference]]
    receivers: Mapping[str, str]  # of functions that are members of another type: this type
    generics: Mapping[str, Sequence[tuple[str, str]]]  # type parameters by class or function: names and expressions
    fills: Sequence[Reference]
    assigned: Sequence[Reference]  # to attributes of what is not the object itself
    imports: Mapping[str, Sequence[Import]]
    stars: Sequence[Import]
    reexports: Mapping[str, Import]
    reexported: Sequence[str]  # modules of which all is
    exports: Mapping[str, Sequence[str]]
    namespace: str
    calls: Sequence[Reference]
    decorators: Sequence[Reference]
    imported: Sequence[Reference]
    declared: Sequence[Reference]  # names with a type
    properties: frozenset[str] = frozenset()  # methods that are read as attributes
    hidden: frozenset[str] = frozenset()  # functions that are not found by their names
    chunks: Mapping[str, str] = field(default_factory=dict)  # of definitions
    seen: str = ""  # a hash of all but what is called, which other files do not look at
    forwards: Mapping[str, Sequence[str]] = field(default_factory=dict)  # functions only declared, by scope

    @cached_property
    def directives(self) -> Sequence[str]:
        """The namespaces whose names a file of C++ uses."""
        return [star.module.replace("::", ".") for star in self.stars if star.name == DIRECTIVE]

    def decorated_by(self, identifier: str) -> Sequence[str]:
        """The expressions of the decorators of a definition, the outermost first."""
        return self._decorated.get(identifier, ())

    @cached_property
    def _decorated(self) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for reference in self.decorators:
            found[reference.name].append(reference.value)
        return dict(found)

    @cached_property
    def literals(self) -> Mapping[str, AbstractSet[str]]:
        """The last names of all that something is written in, by what is before them."""
        found: dict[str, set[str]] = defaultdict(set)
        for qualified in self.children:
            around, _, name = qualified.rpartition(".")
            found[around].add(name)
        return dict(found)

    @cached_property
    def packages(self) -> frozenset[str]:
        """The first names of modules that are imported by several."""
        return frozenset(module.partition(".")[0] for module in self.imports if "." in module)

    @cached_property
    def taken(self) -> Mapping[str, frozenset[str]]:
        """The bare names of the parameters of functions."""
        return {one: frozenset(name.lstrip("*&") for name, _ in names) for one, names in self.parameters.items()}

    def takes(self, function: str, name: str) -> bool:
        """Whether a function has a parameter of a name."""
        return name in self.taken.get(function, ())

    def around(self, scope: str) -> Iterator[Definition]:
        """The definitions around a place, the innermost first."""
        return _around(self.definitions, scope)

    def holder(self, scope: str) -> tuple[str, bool]:
        """The qualified name of the class, constructor or literal whose `this` a place has; whether it is a literal."""
        return _holder(self.definitions, scope)

    def class_around(self, scope: str) -> Definition | None:
        """The class whose member a place is in."""
        return next((around for around in self.around(scope) if around.kind in CLASSES), None)


def make_unit(path: str, rows: Sequence[Mapping[str, Any]]) -> Unit:
    """The unit of a file, from the rows of its chunks in their order."""
    symbols = [(symbol, row["chunk_id"]) for row in rows for symbol in row["symbols"] or ()]
    ids = symbol_ids([symbol["qualified_name"] for symbol, _ in symbols])
    kinds = {"type": "class"} if policy_of(rows[0]["language"] or "").has_named_types else {}
    definitions = {
        identifier: Definition(
            id=identifier,
            name=symbol["name"],
            kind=kinds.get(symbol["kind"], symbol["kind"]),
            qualified=symbol["qualified_name"],
            parent=symbol["parent"] or "",
            line=symbol["start_line"],
            returns=symbol["returns"] or "",
            is_local=bool(symbol["is_local"]),
        )
        for identifier, (symbol, _) in zip(ids, symbols, strict=True)
    }
    references = [each for row in rows for each in references_in(row)]
    return _unit(path, rows[0], definitions, references, dict(zip(ids, (chunk for _, chunk in symbols), strict=True)))


def references_in(row: Mapping[str, Any]) -> Iterator[Reference]:
    """The facts of a chunk."""
    facts = row["facts"].split("\n") if row["facts"] else ()
    for line, kind, scope, name, value in (fact.split("\t") for fact in facts):
        yield Reference(kind, scope, name, value, int(line), row["chunk_id"])


def _unit(
    path: str,
    first: Mapping[str, Any],
    definitions: dict[str, Definition],
    references: Sequence[Reference],
    chunks: dict[str, str],
) -> Unit:
    by_kind: dict[str, list[Reference]] = defaultdict(list)
    for fact in references:
        by_kind[fact.kind].append(fact)
    policy = policy_of(first["language"] or "")
    kinds = {"module"} if policy.has_module_paths else FUNCTIONS if policy.has_local_imports else frozenset()
    importing = partial(_import, definitions=definitions, kinds=kinds)
    assigned = by_kind["bind"] if policy.has_filled_fields else ()
    if policy.has_namespaces:
        by_kind["bind"] = [*map(_unpacked, by_kind["bind"])]
    attributed = _filled([*by_kind["bind"], *_contents(by_kind["call"])], definitions)
    if policy.sharing == "included":
        by_kind["bind"] = [*_lifted(by_kind["bind"], definitions), *_contents_outside(by_kind["call"])]
    else:
        by_kind["bind"] = attributed
    return Unit(
        path=path,
        language=first["language"] or "",
        policy=policy,
        is_test=first["source_type"] == "test",
        first_chunk=first["chunk_id"],
        definitions=definitions,
        children=_children(definitions.values(), policy),
        binds=_binds(by_kind["bind"]),
        attributes=_attributes(attributed, definitions, policy),
        parameters=_listed(by_kind["parameter"]),
        returns={scope: [value for _, value in values] for scope, values in _listed(by_kind["return"]).items()},
        bases=_bases(
            [*reversed(by_kind["mixin"]), *by_kind["base"], *by_kind["implements"], *by_kind["companion"]], definitions
        ),
        receivers={fact.scope: fact.value for fact in by_kind["receiver"]},
        generics=_listed(by_kind["generic"]),
        fills=by_kind["fill"],
        assigned=[fact for fact in assigned if "." in fact.name and not fact.name.startswith("this.") and fact.value],
        imports=_imports((fact for fact in by_kind["import"] if fact.name != "*"), importing),
        stars=[importing(fact) for fact in by_kind["import"] if fact.name == "*"],
        reexports={fact.name: _import(fact) for fact in by_kind["reexport"] if fact.name != "*"},
        reexported=[_import(fact).module for fact in by_kind["reexport"] if fact.name == "*"],
        exports=_values(by_kind["export"]),
        namespace=by_kind["namespace"][0].name if by_kind["namespace"] else "",
        calls=[*by_kind["call"], *by_kind["new"], *by_kind["macro"]],
        decorators=by_kind["decorator"],
        imported=[*by_kind["import"], *by_kind["reexport"]],
        declared=[fact for kind in ("bind", "parameter") for fact in by_kind[kind] if fact.value.startswith(":")],
        properties=frozenset(fact.scope for fact in by_kind["property"]),
        hidden=frozenset(fact.scope for fact in by_kind["hidden"]),
        chunks=chunks,
        seen=_seen(first["language"], definitions.values(), references),
        forwards={scope: [name for name, _ in names] for scope, names in _listed(by_kind["forward"]).items()},
    )


# What a file calls decides nothing of what its names mean, but for what it gives to functions.
_UNSEEN = frozenset({"call", "new", "macro", "decorator", "fill"})


def _seen(language: str | None, definitions: Iterable[Definition], references: Sequence[Reference]) -> str:
    shown = [(one.id, one.kind, one.parent, one.returns, one.is_local) for one in definitions]
    facts = [(fact.kind, fact.scope, fact.name, fact.value) for fact in references if fact.kind not in _UNSEEN]
    calls = [fact for fact in references if fact.kind == "call"]
    filled = [(fact.scope, fact.name, fact.value) for fact in (*_contents(calls), *_contents_outside(calls))]
    properties = [(fact.name, fact.value) for fact in references if fact.kind == "decorator"]
    return digest(repr((language, shown, facts, filled, properties)).encode())


def _children(definitions: Iterable[Definition], policy: Policy) -> dict[str, dict[str, list[Definition]]]:
    found: dict[str, dict[str, list[Definition]]] = defaultdict(lambda: defaultdict(list))
    for definition in definitions:
        named = found[definition.parent]
        named[definition.name] = [*([] if policy.redefines else named[definition.name]), definition]
    return found


def _binds(facts: Iterable[Reference]) -> dict[str, dict[str, list[str]]]:
    found: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        found[fact.scope][fact.name].append(fact.value)
    return found


# Methods by which something is put into a collection; it is what they are given last.
_FILLING_NAMES = """
    append add push put set insert unshift register subscribe extend appendleft push_back emplace_back Add enqueue offer
    addLast addFirst push_front emplace setdefault << on connect store prepend
"""
_FILLING = frozenset(_FILLING_NAMES.split())


def unnamed(argument: str) -> str:
    """What is given, without the name of the parameter."""
    name, equals, value = argument.partition("=")
    return value if equals and name.isidentifier() else argument


def _contents(calls: Iterable[Reference]) -> Iterator[Reference]:
    """What is put into collections, as if it were assigned to one of their elements."""
    for reference in calls:
        collection, _, method = reference.name.rpartition(".")
        if method in _FILLING and collection and reference.value:
            value = unnamed(reference.arguments[-1])
            if value[0] not in "?#&":
                yield Reference(
                    "bind", reference.scope, f"{collection.rstrip('[]')}[]", value, reference.line, reference.chunk
                )


def _filled(binds: Sequence[Reference], definitions: Mapping[str, Definition]) -> list[Reference]:
    """The facts, with an assignment to an element as one to the collection, where that is an attribute or variable."""
    known = {(fact.scope, fact.name) for fact in binds}
    found = []
    for fact in binds:
        if not fact.name.endswith("[]"):
            found.append(fact)
            continue
        name, value, scope = fact.name.rstrip("[]").rstrip("'"), f"{{{fact.value}}}", fact.scope
        if not name.startswith("this."):
            scopes = [*(around.id for around in _around(definitions, scope)), ""]
            scope = next((around for around in scopes if (around, name) in known), "?")
        if scope != "?":
            found.append(Reference("bind", scope, name, value, fact.line, fact.chunk))
    return found


def _lifted(facts: Iterable[Reference], definitions: Mapping[str, Definition]) -> Iterator[Reference]:
    """With the name that a `typedef` gives a struct beside that struct, where it stands at its end."""
    types = {(one.parent, one.name) for one in definitions.values() if one.kind == "type"}
    for fact in facts:
        around = definitions.get(fact.scope)
        is_name = around is not None and fact.value == f":{around.name}" and (around.parent, fact.name) in types
        if around is None or not is_name:
            yield fact
        elif fact.name != around.name:
            yield Reference(fact.kind, around.parent, fact.name, fact.value, fact.line, fact.chunk)


def _unpacked(fact: Reference) -> Reference:
    """An assignment to an element as one to the collection."""
    name, value = fact.name, fact.value
    while name.endswith("[]"):
        name, value = name.removesuffix("[]"), f"{{{value}}}"
    return fact if name == fact.name else Reference(fact.kind, fact.scope, name, value, fact.line, fact.chunk)


def _contents_outside(calls: Iterable[Reference]) -> Iterator[Reference]:
    """The same where attributes are not marked: as what is assigned to a name that is declared elsewhere."""
    for reference in calls:
        collection, _, method = reference.name.rpartition(".")
        if method not in _FILLING or not reference.value or (value := reference.arguments[-1])[0] in "#?":
            continue
        value = f"{{{value}}}"
        while collection.endswith("[]"):
            collection, value = collection.removesuffix("[]"), f"{{{value}}}"
        if collection and collection[0] not in "?(:":
            name = collection if "." in collection else f".{collection}"
            yield Reference("bind", reference.scope, name, value, reference.line, reference.chunk)


def _attributes(
    facts: Iterable[Reference], definitions: Mapping[str, Definition], policy: Policy
) -> dict[str, dict[str, list[tuple[str, str]]]]:
    """What is bound to attributes of the object in methods."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for fact in facts:
        owner, _, name = fact.name.partition(".")
        is_own = owner == "this" or owner in policy.selves
        if not is_own or not name.lstrip("#%$").isidentifier():
            continue
        if policy.has_prototypes:
            holder, _ = _holder(definitions, fact.scope)
        else:
            around = (one for one in _around(definitions, fact.scope) if one.kind in CLASSES or one.kind == "module")
            holder = next((one.qualified for one in around), "")
        if holder:
            found[holder][name].append((fact.scope, fact.value))
    return found


def _around(definitions: Mapping[str, Definition], scope: str) -> Iterator[Definition]:
    while scope:
        definition = definitions.get(scope)
        if definition is not None:
            yield definition
            scope = definition.parent
        else:  # a literal or prototype
            scope = scope.rpartition(".")[0]


_PROTOTYPE = ".prototype"


def _holder(definitions: Mapping[str, Definition], scope: str) -> tuple[str, bool]:
    outermost = ""
    for around in _around(definitions, scope):
        if around.kind in CLASSES:
            return around.qualified, False
        if around.kind not in FUNCTIONS:
            continue
        outermost = around.qualified
        if around.parent and around.parent not in definitions and not around.parent.endswith(".this"):
            return around.parent.removesuffix(_PROTOTYPE), not around.parent.endswith(_PROTOTYPE)
        outer = definitions.get(around.parent)
        if around.kind == "method" and outer is not None and outer.kind in FUNCTIONS:
            return around.parent, True
    return outermost, False


def _listed(facts: Iterable[Reference]) -> dict[str, list[tuple[str, str]]]:
    found: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for fact in facts:
        found[fact.scope].append((fact.name, fact.value))
    return found


def _values(facts: Iterable[Reference]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for fact in facts:
        found[fact.name].append(fact.value)
    return found


def _bases(facts: Iterable[Reference], definitions: Mapping[str, Definition]) -> dict[str, list[Reference]]:
    """By the id of the class: the one around it, or the one that it names."""
    found: dict[str, list[Reference]] = defaultdict(list)
    for fact in facts:
        inner = f"{fact.scope}.{fact.name}"
        found[inner if inner in definitions else fact.name or fact.scope].append(fact)
    return found


def _import(
    fact: Reference, definitions: Mapping[str, Definition] = MappingProxyType({}), kinds: AbstractSet[str] = frozenset()
) -> Import:
    """An import; of the definitions around it, those of some kinds have imports of their own."""
    module, _, name = fact.value.partition(SEPARATOR)
    around = _around(definitions, fact.scope) if kinds else ()
    importing = next((one for one in around if one.kind in kinds), None)
    if importing is None:
        return Import(module, name, fact.line)
    # What is written in a function knows it by its name alone.
    return Import(module, name, fact.line, importing.qualified if importing.kind in FUNCTIONS else importing.id)


def _imports(facts: Iterable[Reference], importing: Callable[[Reference], Import]) -> dict[str, list[Import]]:
    found: dict[str, list[Import]] = defaultdict(list)
    for fact in facts:
        imported = importing(fact)
        found[fact.name or imported.module].append(imported)
    return found
