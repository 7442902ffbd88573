"""Haskell: syntax and rules.

Functions are curried: `pick longer words` is `pick()()`, where `pick()` may still be `pick`.
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
_APPLIED = external_object("?")  # in `held` of a function: one argument has been applied


def _name(node: Node, _: Read) -> Expression:
    name = text_of(node)
    return Name(name.rstrip(".") if node.type == "module" else name)


def _qualified(node: Node, read: Read) -> Expression:
    return Attribute(read(node.child_by_field_name("module")), text_of(node.child_by_field_name("id")))


def _infix(node: Node, read: Read) -> Expression:
    """Return the call that an operator makes: of `f` for `f $ x`, otherwise of the operator's function."""
    operator, left = node.child_by_field_name("operator"), node.child_by_field_name("left_operand")
    text = text_of(operator)
    if text in _APPLYING:
        return Call(read(left))
    return Call(read(node.child_by_field_name("right_operand"))) if text == "&" else Call(Call(read(operator)))


def _section(node: Node, read: Read) -> Expression:
    operator = node.child_by_field_name("operator") or node.named_children[0]
    return UNKNOWN if text_of(operator) in _APPLYING else Call(read(operator))


def _applied_arguments(function: Node, *_: object) -> Iterator[Node]:
    """Yield the arguments that a function or operator is applied to, in order."""
    node = function
    while (outer := node.parent) is not None:
        if outer.type == "apply":
            called, argument = outer.child_by_field_name("function"), outer.child_by_field_name("argument")
            if called is None or argument is None or called.id != node.id:
                return
            yield argument
        elif outer.type == "infix":
            yield from _operands(node, outer)
            return
        elif outer.type not in {"infix_id", "parens"}:
            return
        node = outer


def _operands(node: Node, infix: Node) -> Iterator[Node]:
    """Yield both operands of an operator, or the operand that it passes to the function on the other side."""
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
    listed=_applied_arguments,
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
    """Keep the parameters of the first equation of each function; bind those of other equations to them.

    An equation is identified by its line.
    """
    first: dict[str, list[Parameter]] = {}
    others: list[Assignment] = []
    at: dict[str, tuple[int, int]] = {}  # by function: the line of the last equation and the next position in it
    for one in ir.parameters:
        line, position = at.get(one.scope, (one.line, 0))
        position = position if line == one.line else 0
        at[one.scope] = one.line, position + 1
        listed = first.setdefault(one.scope, [])
        if not listed or listed[0].line == one.line:
            listed.append(one if _is_variable(one.name) else one._replace(name=f"{one.name}#{position}"))
        elif position < len(listed) and _is_variable(one.name) and one.name != listed[position].name:
            value = Name(listed[position].name)
            others.append(Assignment("bind", one.scope, Name(one.name), value, one.line, one.byte))
    parameters = tuple(one for listed in first.values() for one in listed)
    return replace(assign_parents(ir), parameters=parameters, assignments=(*ir.assignments, *others))


def _is_variable(pattern: str) -> bool:
    return pattern != "_" and not pattern[:1].isupper() and pattern.replace("'", "").isidentifier()


def _free_methods(q: Queries, unit: Unit, name: str, resolution: Resolution) -> list[Value]:
    """Return the class methods with a name, which are called without the class."""
    classes = unit.free_methods.get(name, ())
    return q.all_members([Value("class", unit.path, one.id, resolution) for one in classes], name)


def _apply(q: Queries, _: Unit, function: Value) -> Values | None:
    """Apply a function to one more argument: the function itself, as long as it has more parameters."""
    if function.kind != "function":
        return None
    held = (*function.held, _APPLIED)
    if held.count(_APPLIED) < len(q.parameters(function)):
        return (function.holding(held),)
    return q.returned(function.holding(tuple(one for one in held if one != _APPLIED)))


RULES = Rules(
    "haskell",
    find=_MODULES.find,
    has_class_scope=False,
    calls_classes=False,
    has_protocols=True,
    has_export_lists=True,
    is_curried=True,
    builtins=frozenset(_BUILTINS.split()),
    hooks=Hooks(prepare=_with_equations, top=_free_methods, result=_apply),
)
