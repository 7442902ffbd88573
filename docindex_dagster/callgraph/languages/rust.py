"""Rust: what its grammar calls expressions and statements."""

from docindex_dagster.callgraph.extract.expressions import Expressions
from docindex_dagster.callgraph.extract.library import held, last
from docindex_dagster.callgraph.extract.syntax import Blocks, Syntax
from docindex_dagster.callgraph.languages import rust_modules
from docindex_dagster.callgraph.rules import Rules

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
    find=rust_modules.find,
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
