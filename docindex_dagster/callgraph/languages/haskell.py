"""Haskell: what its grammar calls the expressions that can be followed.

A function takes one argument after the other: `pick longer words` is `pick()()`, where `pick()` may be `pick` still.
"""

from collections.abc import Iterator
from dataclasses import replace

from docindex_dagster.callgraph.extract.expressions import Expressions, Node, Read, Syntax, text_of
from docindex_dagster.callgraph.ir import UNKNOWN, Assignment, Attribute, Call, Expression, FileIR, Name, Parameter
from docindex_dagster.callgraph.modules import Search
from docindex_dagster.callgraph.nesting import assign_parents
from docindex_dagster.callgraph.resolver.values import Resolution, Value, Values, external_object
from docindex_dagster.callgraph.rules import Hooks, Queries, Rules, Unit

_APPLYING = frozenset({"$", "$!"})
_GIVEN = external_object("?")  # in what a function holds: it is applied to an argument


def _name(node: Node, _: Read) -> Expression:
    name = text_of(node)
    return Name(name.rstrip(".") if node.type == "module" else name)


def _qualified(node: Node, read: Read) -> Expression:
    return Attribute(read(node.child_by_field_name("module")), text_of(node.child_by_field_name("id")))


def _infix(node: Node, read: Read) -> Expression:
    """What an operator gives: `f $ x` what `f` does, and one of the source what its function does."""
    operator, left = node.child_by_field_name("operator"), node.child_by_field_name("left_operand")
    sign = text_of(operator)
    if sign in _APPLYING:
        return Call(read(left))
    return Call(read(node.child_by_field_name("right_operand"))) if sign == "&" else Call(Call(read(operator)))


def _section(node: Node, read: Read) -> Expression:
    operator = node.child_by_field_name("operator") or node.named_children[0]
    return UNKNOWN if text_of(operator) in _APPLYING else Call(read(operator))


def _applied_to(function: Node, *_: object) -> Iterator[Node]:
    """What a function is given where it stands, or an operator: one argument after the other."""
    node = function
    while (outer := node.parent) is not None:
        if outer.type == "apply":
            called, given = outer.child_by_field_name("function"), outer.child_by_field_name("argument")
            if called is None or given is None or called.id != node.id:
                return
            yield given
        elif outer.type == "infix":
            yield from _operands(node, outer)
            return
        elif outer.type not in {"infix_id", "parens"}:
            return
        node = outer


def _operands(node: Node, infix: Node) -> Iterator[Node]:
    """What stands on both sides of an operator, or what it hands to the function on its other side."""
    left, operator, right = map(infix.child_by_field_name, ("left_operand", "operator", "right_operand"))
    if operator is not None and operator.id == node.id:
        yield from filter(None, (left, right))
    elif left is not None and right is not None and left.id == node.id and text_of(operator) in _APPLYING:
        yield right
    elif left is not None and right is not None and right.id == node.id and text_of(operator) == "&":
        yield left


_EXPRESSIONS = Expressions(
    names=frozenset({"variable", "operator", "module", "name", "constructor"}),
    calls={"apply": "function"},
    through={
        "parens": "",
        "infix_id": "",
        "prefix_id": "",
        "exp": "-1",
        "signature": "expression",
        "let_in": "expression",
    },
    either={"conditional": ("then", "else")},
    collections={"list": "", "tuple": ""},
    literals={"literal": "literal"},
    sequences=frozenset({"do"}),
    readers={
        **dict.fromkeys(("variable", "operator", "module", "name", "constructor"), _name),
        "qualified": _qualified,
        "infix": _infix,
        "left_section": _section,
        "right_section": _section,
    },
    listed=_applied_to,
)

SYNTAX = Syntax(("haskell",), _EXPRESSIONS)

_BUILTINS = """
    ! !! && $ $! & * ** *> + ++ - . / /= < <$ <$> <* <*> <= <> =<< == > >= >> >>= ^ ^^ || >=> <=< <|> <&> $> \\\\ :
    abs all and any appendFile asTypeOf atan break ceiling compare concat concatMap const cos curry cycle div divMod
    drop dropWhile either elem error even exp filter flip floor fmap foldMap foldl foldl1 foldr foldr1 fromEnum
    fromInteger fromIntegral fst gcd getChar getContents getLine head id init interact ioError iterate last lcm
    length lex lines log lookup map mapM mapM_ mappend max maxBound maximum maybe mconcat mempty min minBound
    minimum mod negate not notElem null odd or otherwise pi pred print product properFraction pure putChar putStr
    putStrLn quot quotRem read readFile readIO readLn readParen reads readsPrec realToFrac recip rem repeat
    replicate return reverse round scanl scanl1 scanr scanr1 seq sequence sequenceA sequence_ show showChar
    showParen showString showsPrec shows significand signum sin snd span splitAt sqrt subtract succ sum tail take
    takeWhile tan toEnum toInteger toRational traverse traverse_ truncate uncurry undefined unlines unwords unzip
    unzip3 userError until words writeFile zip zip3 zipWith zipWith3 Eq Ord Show Read Enum Bounded Num Integral
    Fractional Functor Applicative Monad Foldable Traversable Semigroup Monoid MonadFail String Int Integer Double
    Float Char Bool Maybe Either IO Ordering
"""

_MODULES = Search(is_dotted=True, climbs=False, anywhere=(".hs", ".lhs", ".hsc"))


def _with_equations(ir: FileIR) -> FileIR:
    """The same file with the parameters of first equations alone, and what those of the others stand for as assigned.

    Each function has one equation a line.
    """
    first: dict[str, list[Parameter]] = {}
    others: list[Assignment] = []
    at: dict[str, tuple[int, int]] = {}  # of each function the line of the last equation, and the next position in it
    for one in ir.parameters:
        line, position = at.get(one.scope, (one.line, 0))
        position = position if line == one.line else 0
        at[one.scope] = one.line, position + 1
        taken = first.setdefault(one.scope, [])
        if not taken or taken[0].line == one.line:
            taken.append(one if _is_variable(one.name) else one._replace(name=f"{one.name}#{position}"))
        elif position < len(taken) and _is_variable(one.name) and one.name != taken[position].name:
            value = Name(taken[position].name)
            others.append(Assignment("bind", one.scope, Name(one.name), value, one.line, one.byte))
    parameters = tuple(one for taken in first.values() for one in taken)
    return replace(assign_parents(ir), parameters=parameters, assignments=(*ir.assignments, *others))


def _is_variable(pattern: str) -> bool:
    return pattern != "_" and not pattern[:1].isupper() and pattern.replace("'", "").isidentifier()


def _free_methods(q: Queries, unit: Unit, name: str, resolution: Resolution) -> list[Value]:
    """The methods of a name, which need no class."""
    classes = unit.free_methods.get(name, ())
    return q.all_members([Value("class", unit.path, one.id, resolution) for one in classes], name)


def _applied(q: Queries, _: Unit, function: Value) -> Values | None:
    """What a function gives for one argument more: itself, as long as it takes others."""
    if function.kind != "function":
        return None
    held = (*function.held, _GIVEN)
    if held.count(_GIVEN) < len(q.parameters(function)):
        return (function.holding(held),)
    return q.returned(function.holding(tuple(one for one in held if one != _GIVEN)))


RULES = Rules(
    "haskell",
    find=_MODULES.find,
    has_class_scope=False,
    calls_classes=False,
    has_protocols=True,
    has_export_lists=True,
    is_curried=True,
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(prepared=_with_equations, top=_free_methods, result=_applied),
)
