"""Functions without a name: what the methods of the libraries give them, and what Kotlin's mean by `it` and `this`."""

import re
from typing import TYPE_CHECKING

from docindex_dagster.code.callees import call_around, what_is_given
from docindex_dagster.code.expressions import UNKNOWN, Given, Shapes, expression, text_of
from docindex_dagster.code.types import canonical_type

if TYPE_CHECKING:
    from tree_sitter import Node

_ITEMS_NAMES = """
    forEach filter map flatMap anyMatch allMatch noneMatch mapToInt mapToLong mapToDouble mapToObj peek removeIf
    ifPresent ifPresentOrElse takeWhile dropWhile forEachOrdered onEach filterNot mapNotNull associateBy
    associateWith associate groupBy sortedBy sortedByDescending any all none count sumOf sumBy maxBy minBy
    maxByOrNull minByOrNull maxOf minOf maxOfOrNull minOfOrNull first firstOrNull last lastOrNull single
    singleOrNull find partition joinToString distinctBy removeAll retainAll indexOfFirst flatMapTo mapTo findLast
    ForEach Where Select SelectMany OrderBy OrderByDescending ThenBy ThenByDescending Any All First FirstOrDefault
    Single SingleOrDefault Last LastOrDefault Count Sum Min Max Average GroupBy ToDictionary ToLookup TakeWhile
    SkipWhile MinBy MaxBy DistinctBy Find FindAll FindIndex FindLast Exists RemoveAll TrueForAll
"""
ITEMS_TO_FUNCTIONS = frozenset(_ITEMS_NAMES.split())

KOTLIN_GIVEN = Given(
    functions=frozenset({"lambda_literal"}),
    between=frozenset({"annotated_lambda", "call_suffix", "value_argument", "value_arguments"}),
    same=frozenset({"let", "also", "takeIf", "takeUnless"}),
    items=ITEMS_TO_FUNCTIONS,
)
_MAPPING = frozenset({"map", "mapNotNull", "compactMap", "Select", "flatMap", "SelectMany", "mapToObj"})
_FLATTENING = frozenset({"flatMap", "SelectMany"})
_AROUND_FUNCTIONS = KOTLIN_GIVEN.between | {"argument_list", "argument"}
_ABOUT_THE_OBJECT = frozenset({"apply", "run"})
_THE_SAME = frozenset({"also", "apply", "copy", "takeIf", "takeUnless", "onEach"})
_ABOUT_NOTHING = ITEMS_TO_FUNCTIONS | KOTLIN_GIVEN.same
_ARITHMETIC = frozenset("+-*/%")
_LIBRARY_NAMES = """
    repeat let also println print require check runBlocking launch async coroutineScope withContext withTimeout lazy
    synchronized use runCatching measureTimeMillis thread remember LaunchedEffect supervisorScope withTimeoutOrNull
"""
_LIBRARY = frozenset(_LIBRARY_NAMES.split())
_DEEPEST = 4  # functions in functions
_MOST_OBJECTS = 3


def kotlin_name(node: "Node", shapes: Shapes) -> str:
    """What `it` is, and where a name that is called may be a member of the objects of the functions around it."""
    if node.text == b"it":
        return _it(node, shapes)
    call = node.parent
    if call is None or call.type != "call_expression" or call.named_child(0) != node:
        return ""
    objects = _objects_around(node, shapes)
    name = text_of(node)
    return f"({'|'.join(objects)});{name}" if len(objects) > 1 else f"{objects[0]};{name}" if objects else ""


_COLLECTION = re.compile(r"(?:mutable|linked|hash|empty|array)?(List|Set|Map)(?:Of)?|(list|set|map|array)Of")


def kotlin_made(node: "Node", shapes: Shapes) -> str:
    """What a call with type arguments makes: an object of a generic class, or a collection; what gives its object."""
    called, suffix = node.named_children[0], node.named_children[-1]
    if called.type == "navigation_expression":
        method = text_of(called.named_children[-1]).lstrip("?.")
        owner = called.named_children[0]
        return expression(owner, shapes) if method in _THE_SAME else mapped(owner, method, suffix, shapes)
    types = next(iter(suffix.named_children), None)
    if called.type != "simple_identifier" or types is None or types.type != "type_arguments":
        return ""
    name = text_of(called)
    if collection := _COLLECTION.fullmatch(name):
        name = (collection[1] or collection[2]).capitalize()
    return f":{canonical_type(name + text_of(types))}" if name[:1].isupper() else ""


def _it(node: "Node", shapes: Shapes) -> str:
    """What `it` is: of functions that may take nothing, that of the next one around."""
    given: list[str] = []
    function = _function_around(node, named=False)
    while function is not None and len(given) < _MOST_OBJECTS:
        call = call_around(function, KOTLIN_GIVEN)
        called = call.named_child(0) if call is not None else None
        given.append("#Int" if text_of(called) == "repeat" else what_is_given(function, shapes))
        if "^*" not in given[-1][-3:]:
            break
        function = _function_around(function, named=False)
    known = [one for one in given if one != UNKNOWN]
    return f"({'|'.join(known)})" if len(known) > 1 else next(iter(known), "")


def kotlin_sum(node: "Node", shapes: Shapes) -> str:
    """The type of what is computed of two values."""
    parts = [expression(child, shapes) for child in node.named_children]
    return "#String" if "#String" in parts else next((part for part in parts if part != UNKNOWN), UNKNOWN)


def kotlin_this(node: "Node", shapes: Shapes) -> str:
    """What `this` or `this@Outer` is."""
    _, _, label = text_of(node).partition("@")
    if not label:
        objects = _objects_around(node, shapes)
        return objects[0] if objects else "this"
    around = _function_around(node)
    while around is not None:
        call = call_around(around, KOTLIN_GIVEN)
        if call is not None and expression(call, shapes).removesuffix("()").rpartition(".")[2] == label:
            return _object_of(around, "", shapes) or UNKNOWN
        around = _function_around(around)
    return f"{label}.this"


def java_mapped(node: "Node", shapes: Shapes) -> str:
    """What a call makes of all elements of a collection or stream."""
    method = text_of(node.child_by_field_name("name"))
    return mapped(node.child_by_field_name("object"), method, node.child_by_field_name("arguments"), shapes)


def csharp_mapped(node: "Node", shapes: Shapes) -> str:
    """What a call makes of all elements of a collection."""
    called = node.child_by_field_name("function")
    if called is None or called.type != "member_access_expression":
        return ""
    method = text_of(called.child_by_field_name("name"))
    return mapped(called.child_by_field_name("expression"), method, node.child_by_field_name("arguments"), shapes)


def mapped(owner: "Node | None", method: str, arguments: "Node | None", shapes: Shapes) -> str:
    """A collection of what a function gives for what an object holds; "" where nothing is known of it."""
    if method not in _MAPPING or owner is None or arguments is None:
        return ""
    function = arguments
    while function.named_child_count == 1 and function.type in _AROUND_FUNCTIONS:
        function = function.named_children[0]
    if function.type not in {"lambda_expression", "lambda_literal"}:
        called = expression(function, shapes)
        made = f"{called}()" if function.type in {"method_reference", "callable_reference"} else UNKNOWN
    else:
        made = body_of(function, f"{expression(owner, shapes)}[]", shapes)
    if made.startswith((UNKNOWN, "#")):
        return ""
    return f"{{{made}[]}}" if method in _FLATTENING else f"{{{made}}}"


def body_of(function: "Node", given: str, shapes: Shapes) -> str:
    """What a function without a name, that is one expression, gives for what it is given."""
    parts = function.named_children
    if not parts or given.startswith(UNKNOWN):
        return UNKNOWN
    made = expression(parts[-1], shapes)
    if len(parts) == 1:
        return made
    name = text_of(parts[0]).strip("() ")
    return re.sub(rf"(?<![\w.#:]){name}(?![\w(])", lambda _: given, made) if name.isidentifier() else UNKNOWN


def arithmetic(node: "Node", shapes: Shapes) -> str:
    """The type of what is computed of two values."""
    operator = text_of(node.child_by_field_name("operator"))
    if operator == "??":
        return ""
    if operator not in _ARITHMETIC:
        return "#boolean"
    parts = [expression(node.child_by_field_name(name), shapes) for name in ("left", "right")]
    return "#String" if "#String" in parts else next((part for part in parts if part != UNKNOWN), UNKNOWN)


def csharp_new(node: "Node", shapes: Shapes) -> str:
    """The type that `new(…)` has by what it is given to; a type that is only known there is `?`."""
    around = node.parent
    while around is not None and around.type in {"variable_declarator", "arrow_expression_clause", "return_statement"}:
        around = around.parent
    if around is not None and around.type == "assignment_expression":
        return expression(around.child_by_field_name("left"), shapes)
    while around is not None and around.type in {"block", "if_statement"}:
        around = around.parent
    if around is None:
        return UNKNOWN
    declared = around.child_by_field_name("type") or around.child_by_field_name("returns")
    return canonical_type(text_of(declared)).partition("<")[0] or UNKNOWN


def kotlin_object(node: "Node", _: Shapes) -> str:
    """Of an object that has no class with a name, the first type that it is made from."""
    types = [child for child in node.named_children if child.type == "delegation_specifier"]
    return f":{text_of(types[0]).partition('(')[0].partition('<')[0].strip()}" if types else UNKNOWN


def _objects_around(node: "Node", shapes: Shapes) -> list[str]:
    """The objects of the functions without a name around a place, the innermost first."""
    functions: list[Node] = []
    function = _function_around(node)
    while function is not None and len(functions) < _DEEPEST:
        functions.append(function)
        function = _function_around(function)
    found: list[str] = []
    for around in reversed(functions):
        if about := _object_of(around, found[0] if found else "", shapes):
            found.insert(0, about)
    return found[:_MOST_OBJECTS]


def _object_of(function: "Node", outer: str, shapes: Shapes) -> str:
    """The object that a function without a name is in; `outer` is that of the next one around it."""
    call = call_around(function, KOTLIN_GIVEN)
    called = call.named_child(0) if call is not None and call.type == "call_expression" else None
    if call is None or called is None:
        return ""
    if called.type == "simple_identifier":
        return _object_of_call(call, text_of(called), outer, shapes)
    owner, _, method = expression(called, shapes).rpartition(".")
    if not owner or method in _ABOUT_NOTHING:
        return ""
    return owner if method in _ABOUT_THE_OBJECT else f"{owner}.{method}^*0"


def _object_of_call(call: "Node", method: str, outer: str, shapes: Shapes) -> str:
    """The object that a function is in which is given to a method that is called without its object."""
    if method == "with":
        arguments = call.named_children[-1].named_child(0)
        return expression(arguments.named_child(0), shapes) if arguments is not None else ""
    if method in _ABOUT_THE_OBJECT:
        return outer or "this"
    if method in _LIBRARY:
        return ""
    return f"{outer};{method}^*0" if outer else f"{method}^*0"


def _function_around(node: "Node", *, named: bool = True) -> "Node | None":
    """The next function without a name around a node; without those that name what they are given."""
    around = node.parent
    while around is not None:
        if around.type in {"function_declaration", "class_body", "source_file"}:
            return None
        if around.type == "lambda_literal" and (named or around.named_child_count == 0 or _takes_it(around)):
            return around
        around = around.parent
    return None


def _takes_it(function: "Node") -> bool:
    return all(child.type != "lambda_parameters" for child in function.named_children)


KOTLIN_SPECIAL = {
    "additive_expression": kotlin_sum,
    "multiplicative_expression": kotlin_sum,
    "call_expression": kotlin_made,
    "this_expression": kotlin_this,
    "simple_identifier": kotlin_name,
    "object_literal": kotlin_object,
}
