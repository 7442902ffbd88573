"""Ruby: syntax and rules."""

import re

from docindex_dagster.callgraph.extract.expressions import Expressions, Node, Syntax, parts_of, text_of
from docindex_dagster.callgraph.ir import BLOCK, Expression, last_name
from docindex_dagster.callgraph.modules import Search
from docindex_dagster.callgraph.resolver.values import Value, Values, distinct
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit

_NAMED = {"send": True, "public_send": True, "__send__": True, "method": False, "public_method": False}


def _listed(call: Node, listed: Node | None) -> list[Node]:
    """Return the arguments of a call; without the method name for `send` and similar methods."""
    arguments = parts_of(listed)
    method = call.child_by_field_name("method") if arguments else None
    return arguments[1:] if method is not None and text_of(method) in _NAMED else arguments


_EXPRESSIONS = Expressions(
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
    named=_NAMED,
    listed=_listed,
    attributes=frozenset({"instance_variable", "class_variable"}),
    lambdas=frozenset({"block", "do_block"}),
    values=frozenset({"identifier", "call", "instance_variable", "array", "hash", "constant"}),
    spreads=frozenset({"splat_argument"}),
)

SYNTAX = Syntax(("ruby",), _EXPRESSIONS)

_BUILTINS = """
    ARGF ARGV ArgumentError Array BasicObject Benchmark BigDecimal Binding CSV Class Comparable Complex Concurrent Data
    Date DateTime Delegator Dir ENV ERB EncodingError Enumerable Enumerator Errno Etc Exception FalseClass Fiber File
    FileUtils Float FrozenError GC Hash IO IOError IPAddr Integer Interrupt JSON Kernel KeyError LoadError Logger
    Marshal MatchData Math Method Module Monitor Mutex NameError Net NilClass NoMethodError NotImplementedError Numeric
    Object ObjectSpace Open3 OpenSSL OpenStruct OptionParser Pathname PP Proc Process Psych Queue RUBY_VERSION Ractor
    Random Range RangeError Rational Regexp RegexpError RuntimeError STDERR STDIN STDOUT ScriptError SecureRandom Set
    Shellwords Signal SignalException SimpleDelegator Singleton SizedQueue Socket StandardError StopIteration String
    StringIO StringScanner Struct Symbol SyntaxError SystemExit Tempfile Thread Time Timeout TrueClass TypeError URI
    UnboundMethod YAML Zlib ZeroDivisionError __dir__ __method__ abort alias_method at_exit attr_accessor attr_reader
    attr_writer autoload binding block_given? caller catch define_method eval exit extend fail format freeze gets
    include instance_variable_get instance_variable_set is_a? lambda load loop module_function nil? object_id open p pp
    prepend print printf private private_class_method private_constant proc protected public putc puts raise rand
    readline refine require require_relative respond_to? select sleep spawn sprintf srand system tap test throw trap
    using warn
"""

_MODULES = Search(("{}.rb", "lib/{}.rb", "app/{}.rb"), ending=".rb", near=re.compile(r"\."))


def _is_called(q: Queries, unit: Unit, callee: Expression, target: Value) -> bool:
    """Return whether a call runs the target, instead of reading a variable or attribute that holds it."""
    rules, name = unit.rules, last_name(callee)
    if target.kind == "class":
        return name in rules.factories
    return target.kind != "function" or name in {"super", *rules.call_methods} or q.definition(target).name == name


def _block_arguments(q: Queries, owner: Value, name: str) -> Values:
    """Return the values that `Enumerable` methods of a collection class pass to blocks, derived from its `each`."""
    each = q.member(owner, "each") if name != "each" else ()
    return distinct(found for one in each for found in q.to_callback(one, BLOCK, 0))


RULES = Rules(
    "ruby",
    find=_MODULES.find,
    sharing="global",
    has_implicit_members=True,
    has_open_classes=True,
    factories=frozenset({"new"}),
    constructors=frozenset({"initialize"}),
    call_methods=frozenset({"call", "yield"}),
    runs=("call",),
    bind_methods=frozenset({"to_proc"}),
    class_attributes=frozenset({"class"}),
    has_open_dispatch=True,
    has_method_super=True,
    identity_methods=frozenset({"tap", "freeze", "dup", "clone", "itself"}),
    extension="ClassMethods",
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(block_arguments=_block_arguments, is_called=_is_called),
)
