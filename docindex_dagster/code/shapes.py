"""Which languages have facts, and what their grammars call the expressions that can be followed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from docindex_dagster.code.expression_rules import of_file
from docindex_dagster.code.expressions import Given, Read, Shapes, text_of
from docindex_dagster.code.lambdas import (
    ITEMS_TO_FUNCTIONS,
    KOTLIN_GIVEN,
    KOTLIN_SPECIAL,
    arithmetic,
    csharp_mapped,
    csharp_new,
    java_mapped,
)
from docindex_dagster.code.shadows import Blocks
from docindex_dagster.code.shapes_bash import BASH
from docindex_dagster.code.shapes_c import C
from docindex_dagster.code.shapes_lua import LUA, LUA_ANONYMOUS, LUA_FUNCTIONS, LUA_NAMING
from docindex_dagster.code.shapes_php import PHP
from docindex_dagster.code.shapes_zig import ZIG, ZIG_BLOCKS

if TYPE_CHECKING:
    from tree_sitter import Node


@dataclass(frozen=True, slots=True)
class FactLanguage:
    """How the facts of one language are read."""

    queries: tuple[str, ...]  # the files of `queries/facts/`, without `.scm`
    shapes: Shapes
    # The nodes of all functions, of those that have no name of their own, and of what gives these one.
    functions: frozenset[str] = frozenset()
    anonymous: frozenset[str] = frozenset()
    naming: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()  # of functions, which say names of parameters that nothing has
    blocks: Blocks | None = None  # where variables are seen; None where in all of the function
    has_selves: bool = False  # the object itself is a first parameter

    def of_file(self) -> "FactLanguage":
        """The same, to read another file with."""
        return replace(self, shapes=of_file(self.shapes))


_PYTHON = Shapes(
    names=frozenset({"identifier", "dotted_name"}),
    members={"attribute": ("object", "attribute")},
    calls={"call": "function"},
    items={"subscript": "value"},
    through={"await": "", "parenthesized_expression": "", "named_expression": "value", "type": "", "as_pattern": ""},
    either={"conditional_expression": (), "boolean_operator": ("left", "right")},
    collections={
        "list": "",
        "set": "",
        "tuple": "",
        "dictionary": "value",
        "list_comprehension": "body",
        "set_comprehension": "body",
        "generator_expression": "body",
    },
    literals={
        "string": "str",
        "concatenated_string": "str",
        "integer": "int",
        "float": "float",
        "true": "bool",
        "false": "bool",
        "none": "None",
    },
    copies=frozenset({"list", "tuple", "set", "sorted", "reversed", "enumerate", "iter", "next"}),
)


def _class_expression(node: "Node", _: Read) -> str:
    """A class that is an expression: its name, or the methods in the function around it."""
    name = node.child_by_field_name("name")
    return text_of(name) if name is not None else "class"


_ECMASCRIPT = Shapes(
    names=frozenset(
        {
            "identifier",
            "type_identifier",
            "property_identifier",
            "private_property_identifier",
            "shorthand_property_identifier",
        }
    ),
    members={"member_expression": ("object", "property"), "nested_type_identifier": ("module", "name")},
    calls={"call_expression": "function"},
    new={"new_expression": "constructor"},
    items={"subscript_expression": "object"},
    through={
        "await_expression": "",
        "non_null_expression": "",
        "parenthesized_expression": "",
        "generic_type": "name",
        "satisfies_expression": "",
        "spread_element": "",
        "function_expression": "name",
        "generator_function": "name",
    },
    readers={"class": _class_expression},
    either={"ternary_expression": ("consequence", "alternative"), "binary_expression": ("left", "right")},
    casts={"as_expression": "type"},
    collections={"array": "", "object": "value", "class_body": "value"},
    keys={"pair": "key", "subscript_expression": "index"},
    written=frozenset({"method_definition", "arrow_function", "function_expression", "generator_function"}),
    modules=frozenset({"require", "import"}),
    lambdas=frozenset({"arrow_function"}),
    values=frozenset({"identifier", "call_expression", "new_expression", "member_expression", "object", "array"}),
    spreads=frozenset({"spread_element"}),
    copies=frozenset({"Object.freeze", "Object.seal"}),
    elements=frozenset({"Object.values", "Array.from", "Promise.all"}),
    literals={
        "string": "String",
        "template_string": "String",
        "number": "Number",
        "true": "Boolean",
        "false": "Boolean",
        "regex": "RegExp",
        "null": "null",
    },
    words={"this": "this", "super": "super"},
)

_ECMASCRIPT_FUNCTIONS = frozenset(
    {"function_declaration", "method_definition", "generator_function_declaration", "method_signature", "function_type"}
)
_ECMASCRIPT_ANONYMOUS = frozenset({"arrow_function", "function_expression", "generator_function", "function_type"})
_ECMASCRIPT_NAMING = frozenset(
    {"variable_declarator", "public_field_definition", "field_definition", "assignment_expression", "pair"}
)


def _ecmascript(*queries: str) -> FactLanguage:
    return FactLanguage(
        queries,
        _ECMASCRIPT,
        _ECMASCRIPT_FUNCTIONS | _ECMASCRIPT_ANONYMOUS,
        _ECMASCRIPT_ANONYMOUS,
        _ECMASCRIPT_NAMING,
        frozenset({"function_type"}),
    )


def has_facts(language: str) -> bool:
    """Whether facts are read from files in a language."""
    return language in FACT_LANGUAGES


_RUBY = Shapes(
    names=frozenset({"identifier", "constant", "global_variable"}),
    members={"scope_resolution": ("scope", "name")},
    methods={"call": ("receiver", "method")},
    items={"element_reference": "object"},
    through={
        "assignment": "right",
        "operator_assignment": "right",
        "splat_argument": "",
        "block_argument": "",
        "superclass": "",
    },
    sequences=frozenset({"then", "else", "block_body", "body_statement", "parenthesized_statements"}),
    either={
        "conditional": ("consequence", "alternative"),
        "if": ("consequence", "alternative"),
        "unless": ("consequence", "alternative"),
        "binary": ("left", "right"),
    },
    collections={"array": "", "hash": "value", "right_assignment_list": ""},
    literals={
        "string": "String",
        "integer": "Integer",
        "float": "Float",
        "simple_symbol": "Symbol",
        "regex": "Regexp",
        "true": "TrueClass",
        "false": "FalseClass",
        "nil": "nil",
        "string_array": "Array",
        "symbol_array": "Array",
    },
    words={"self": "this", "super": "super", "yield": "yield"},
    bare=frozenset({"identifier"}),
    named={"send": "()", "public_send": "()", "__send__": "()", "method": "", "public_method": ""},
    attributes=frozenset({"instance_variable", "class_variable"}),
    lambdas=frozenset({"block", "do_block"}),
    values=frozenset({"identifier", "call", "instance_variable", "array", "hash", "constant"}),
    spreads=frozenset({"splat_argument"}),
)

_JAVA = FactLanguage(
    ("java",),
    Shapes(
        names=frozenset({"identifier", "type_identifier", "scoped_identifier", "scoped_type_identifier"}),
        members={"field_access": ("object", "field"), "method_reference": ("0", "-1")},
        methods={"method_invocation": ("object", "name")},
        new={"object_creation_expression": "type"},
        collecting=frozenset({"List.of", "Set.of", "Arrays.asList", "Stream.of", "Optional.of", "Optional.ofNullable"}),
        items={"array_access": "array"},
        through={"parenthesized_expression": "", "generic_type": "", "array_creation_expression": "value"},
        either={
            "ternary_expression": ("consequence", "alternative"),
            "assignment_expression": ("right",),
        },
        casts={"cast_expression": "type"},
        collections={"array_initializer": ""},
        literals={
            "string_literal": "String",
            "text_block": "String",
            "decimal_integer_literal": "int",
            "hex_integer_literal": "int",
            "decimal_floating_point_literal": "double",
            "character_literal": "char",
            "true": "boolean",
            "false": "boolean",
            "null_literal": "null",
            "class_literal": "Class",
        },
        words={"this": "this", "super": "super"},
        given=Given(frozenset({"lambda_expression"}), frozenset({"argument_list"}), items=ITEMS_TO_FUNCTIONS),
        special={"method_invocation": java_mapped, "binary_expression": arithmetic},
    ),
    frozenset({"method_declaration", "constructor_declaration", "lambda_expression"}),
    frozenset({"lambda_expression"}),
    frozenset({"variable_declarator"}),
)

_CSHARP = FactLanguage(
    ("csharp",),
    Shapes(
        names=frozenset({"identifier", "qualified_name", "predefined_type", "implicit_parameter"}),
        members={
            "member_access_expression": ("expression", "name"),
            "conditional_access_expression": ("condition", "-1"),
            "alias_qualified_name": ("name", "name"),
        },
        calls={"invocation_expression": "function"},
        new={"object_creation_expression": "type"},
        items={"element_access_expression": "expression"},
        through={
            "await_expression": "",
            "parenthesized_expression": "",
            "postfix_unary_expression": "",
            "generic_name": "",
            "argument": "-1",
            "arrow_expression_clause": "",
            "checked_expression": "",
            "with_expression": "",
            "array_creation_expression": "-1",
            "implicit_array_creation_expression": "-1",
        },
        either={
            "conditional_expression": ("consequence", "alternative"),
            "binary_expression": ("left", "right"),
            "assignment_expression": ("right",),
        },
        casts={"cast_expression": "type", "as_expression": "right"},
        collections={"initializer_expression": "", "collection_expression": ""},
        literals={
            "string_literal": "String",
            "verbatim_string_literal": "String",
            "raw_string_literal": "String",
            "interpolated_string_expression": "String",
            "integer_literal": "int",
            "real_literal": "double",
            "character_literal": "char",
            "boolean_literal": "bool",
            "null_literal": "null",
            "typeof_expression": "Type",
        },
        words={"this": "this", "base": "super"},
        given=Given(
            frozenset({"lambda_expression", "anonymous_method_expression"}),
            frozenset({"argument", "argument_list"}),
            items=ITEMS_TO_FUNCTIONS,
        ),
        special={
            "invocation_expression": csharp_mapped,
            "binary_expression": arithmetic,
            "implicit_object_creation_expression": csharp_new,
        },
        is_placed=True,
    ),
    frozenset({"method_declaration", "constructor_declaration", "local_function_statement", "lambda_expression"}),
    frozenset({"lambda_expression", "anonymous_method_expression"}),
    frozenset({"variable_declarator"}),
)

_KOTLIN = FactLanguage(
    ("kotlin",),
    Shapes(
        names=frozenset({"simple_identifier", "type_identifier", "identifier", "user_type"}),
        members={"navigation_expression": ("0", "-1"), "callable_reference": ("0", "-1")},
        calls={"call_expression": "0"},
        collecting=frozenset(
            {
                "listOf",
                "mutableListOf",
                "arrayListOf",
                "setOf",
                "mutableSetOf",
                "arrayOf",
                "sequenceOf",
                "listOfNotNull",
            }
        ),
        methods={"infix_expression": ("0", "1")},
        items={"indexing_expression": "0"},
        through={
            "parenthesized_expression": "",
            "postfix_expression": "",
            "value_argument": "-1",
            "control_structure_body": "-1",
            "statements": "-1",
        },
        either={"elvis_expression": ("0", "1"), "if_expression": ("consequence", "alternative")},
        casts={"as_expression": "1"},
        literals={
            "string_literal": "String",
            "line_string_literal": "String",
            "multi_line_string_literal": "String",
            "integer_literal": "Int",
            "long_literal": "Long",
            "real_literal": "Double",
            "boolean_literal": "Boolean",
            "character_literal": "Char",
            "comparison_expression": "Boolean",
            "equality_expression": "Boolean",
            "conjunction_expression": "Boolean",
            "disjunction_expression": "Boolean",
            "check_expression": "Boolean",
        },
        words={"super_expression": "super", "super": "super"},
        given=KOTLIN_GIVEN,
        special=KOTLIN_SPECIAL,
        is_placed=True,
    ),
    frozenset({"function_declaration", "anonymous_function", "secondary_constructor"}),
    frozenset({"anonymous_function"}),
    frozenset({"property_declaration"}),
)

_GO = Shapes(
    names=frozenset({"identifier", "type_identifier", "field_identifier", "package_identifier"}),
    members={"selector_expression": ("operand", "field"), "qualified_type": ("package", "name")},
    calls={"call_expression": "function", "type_conversion_expression": "type"},
    items={
        "index_expression": "operand",
        "variadic_argument": "",
        "generic_type": "type",
        "type_instantiation_expression": "",
    },
    indexed={"call_expression": "type_arguments"},
    received={"unary_expression": ("<-", "operand")},
    through={
        "unary_expression": "operand",
        "parenthesized_expression": "",
        "slice_expression": "operand",
        "literal_element": "",
        "expression_list": "",
    },
    casts={"type_assertion_expression": "type"},
    composites={"composite_literal": ("type", "body")},
    literals={
        "interpreted_string_literal": "string",
        "raw_string_literal": "string",
        "int_literal": "int",
        "float_literal": "float64",
        "rune_literal": "rune",
        "true": "bool",
        "false": "bool",
        "nil": "nil",
    },
    typed=frozenset({"make", "new"}),
    joined=frozenset({"append"}),
)

_RUST = Shapes(
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
    holding=frozenset({"Some", "Ok"}),
    copies=frozenset(
        f"{path}{name}"
        for path, names in {
            "": ("Box.new", "Box.pin", "Pin.new", "Cell.new", "RefCell.new", "Mutex.new", "RwLock.new", "Cow.Borrowed"),
            "std.cell.": ("Cell.new", "RefCell.new"),
            "std.sync.": ("Arc.new", "Arc.clone", "Mutex.new", "RwLock.new"),
            "std.rc.": ("Rc.new", "Rc.clone"),
            "std.boxed.": ("Box.new",),
        }.items()
        for name in (*names, "Rc.new", "Arc.new", "Rc.clone", "Arc.clone", "Rc.downgrade", "Arc.downgrade")
    ),
    words={"self": "this", "Self": "this", "super": "super", "crate": "crate"},
)

_CPP_ANONYMOUS = frozenset({"lambda_expression"})
_CPP_FUNCTIONS = frozenset({"function_definition"}) | _CPP_ANONYMOUS
_PHP_FUNCTIONS = frozenset({"function_definition", "method_declaration"})
_PHP_ANONYMOUS = frozenset({"anonymous_function", "arrow_function"})

FACT_LANGUAGES: Mapping[str, FactLanguage] = {
    "python": FactLanguage(("python",), _PYTHON, has_selves=True),
    "javascript": _ecmascript("ecmascript", "javascript"),
    "typescript": _ecmascript("ecmascript", "typescript"),
    "tsx": _ecmascript("ecmascript", "typescript"),
    "ruby": FactLanguage(("ruby",), _RUBY),
    "java": _JAVA,
    "csharp": _CSHARP,
    "kotlin": _KOTLIN,
    "rust": FactLanguage(
        ("rust",),
        _RUST,
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
        ),
    ),
    "go": FactLanguage(
        ("go",),
        _GO,
        frozenset({"function_declaration", "method_declaration", "func_literal"}),
        frozenset({"func_literal"}),
        frozenset({"short_var_declaration", "var_spec"}),
        blocks=Blocks(
            frozenset(
                {
                    "block",
                    "if_statement",
                    "for_statement",
                    "type_case",
                    "expression_case",
                    "communication_case",
                    "default_case",
                    "type_switch_statement",
                    "expression_switch_statement",
                    "func_literal",
                    "function_declaration",
                    "method_declaration",
                }
            ),
            frozenset({"short_var_declaration", "var_spec", "const_spec", "range_clause", "receive_statement"}),
            frozenset({"assignment_statement"}),
        ),
    ),
    "c": FactLanguage(("c",), C),
    "cpp": FactLanguage(("c", "cpp"), C, _CPP_FUNCTIONS, _CPP_ANONYMOUS, frozenset({"init_declarator"})),
    "php": FactLanguage(
        ("php",), PHP, _PHP_FUNCTIONS | _PHP_ANONYMOUS, _PHP_ANONYMOUS, frozenset({"assignment_expression"})
    ),
    "zig": FactLanguage(("zig",), ZIG, blocks=Blocks(ZIG_BLOCKS, frozenset({"Statement"}), frozenset({"AssignExpr"}))),
    "bash": FactLanguage(("bash",), BASH),
    "lua": FactLanguage(("lua",), LUA, LUA_FUNCTIONS, LUA_ANONYMOUS, LUA_NAMING),
}
