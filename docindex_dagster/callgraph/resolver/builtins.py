"""Results of standard library methods of strings, numbers and collections."""

import re
from collections.abc import Iterable

from docindex_dagster.callgraph.resolver.values import Resolution, Value, external_object, found_by
from docindex_dagster.callgraph.rules import Rules

# Methods that return a collection with the same elements, and methods that return one element.
_SAME_NAMES = """
    values iter iter_mut into_iter filter sorted copy stream reversed slice concat toList collect toArray list entries
    asSequence asIterable clone to_vec as_slice rev skip drop sort sort_by sortBy sorted_by each items keys then
    iterator values_mut ToList ToArray Where OrderBy select reject peekable freeze dup to_a compact uniq shuffle lazy
    each_with_index each_with_object reverse_each flat toSorted toReversed rotate each_slice
    sortedBy sortedByDescending distinct distinctBy onEach filterNot filterNotNull takeWhile dropWhile shuffled limit
    OrderByDescending ThenBy Skip Take Reverse Distinct Concat AsEnumerable Values Union SkipWhile TakeWhile asReversed
    toMutableList toSet parallelStream cases enumerated prefix suffix dropFirst dropLast
"""
_ONE_NAMES = """
    get pop first last next find peek poll remove at front back top shift popleft unwrap expect unwrap_or
    unwrap_or_else orElse orElseThrow orElseGet getOrNull getValue getOrDefault get_mut borrow borrow_mut lock as_ref
    as_mut value First Last Single FirstOrDefault Pop Dequeue setdefault detect min max min_by max_by getOrElse
    computeIfAbsent getOrPut take removeFirst removeLast firstOrNull lastOrNull element elementAt getFirst getLast
    read write upgrade from tryFrom valueOf findFirst findAny reduce fetch dig sample __getitem__ pop_front pop_back
    popLast randomElement removeValue updateValue
"""
_TEXT_NAMES = """
    toString substring trim strip lowercase uppercase toLowerCase toUpperCase concat repeat replace joinToString
    trimStart trimEnd trimIndent removePrefix removeSuffix padStart padEnd substringBefore substringAfter
    ToString Substring Trim ToLower ToUpper PadLeft PadRight Replace TrimStart TrimEnd ToLowerInvariant
    ToUpperInvariant
"""
_NUMBER = re.compile(
    r"(?:to|To|parse|Parse|get|Get|as|As|next|Read)?([Ii]nt|[Ll]ong|[Dd]ouble|[Ff]loat|[Dd]ecimal|[Bb]oolean)(?:32|64|Value|Exact)*"
)
_REALS = frozenset(
    {"ceil", "floor", "sqrt", "cbrt", "pow", "rint", "exp", "log", "log10", "sin", "cos", "tan", "random"}
)
_TEXT = frozenset(_TEXT_NAMES.split())
_SAME, _ONE = frozenset(_SAME_NAMES.split()), frozenset(_ONE_NAMES.split())
# C++: an iterator is treated as its container.
_ITERATOR_NAMES = """
    begin end cbegin cend rbegin rend crbegin crend find lower_bound upper_bound insert emplace erase lock
"""
_STD_ONE_NAMES = "front back top at get value value_or operator[] release extract emplace_back"
_ITERATORS, _STD_ONE = frozenset(_ITERATOR_NAMES.split()), frozenset(_STD_ONE_NAMES.split())


ANY = "Object"  # the base class of all objects
_COLLECTION_NAMES = """
    List MutableList Collection MutableCollection Iterable MutableIterable Set MutableSet Sequence Array ArrayList
    IEnumerable IList ICollection IReadOnlyList IReadOnlyCollection HashSet LinkedList IQueryable collection
    Seq Vector IndexedSeq
"""
_MAP_NAMES = "Map MutableMap HashMap LinkedHashMap Dictionary IDictionary IReadOnlyDictionary"
_PLAIN_NAMES = """
    String CharSequence Int Integer Long Double Float Boolean Char Character Byte Short Any Object Unit string int long
    double float bool boolean char byte short object decimal uint ulong DateTime Guid Instant LocalDate Throwable
    Exception
"""
_COLLECTIONS, _MAPS = frozenset(_COLLECTION_NAMES.split()), frozenset(_MAP_NAMES.split())
_PLAIN = frozenset(_PLAIN_NAMES.split())
_TYPE_NAMES = {"string": "String", "str": "String", "int": "Int", "Integer": "Int", "long": "Long", "bool": "Boolean"}


def is_value(name: str) -> bool:
    """Return whether a declared type is a plain value or collection, which is not a function."""
    name = name.rpartition(".")[2]
    return name in _PLAIN or name in _COLLECTIONS or name in _MAPS


def is_same_type(name: str, wanted: str) -> bool:
    """Return whether a value of a library type may be passed where another type is declared."""
    return _TYPE_NAMES.get(wanted, wanted) in same_types(_TYPE_NAMES.get(name, name))


def same_types(name: str) -> tuple[str, ...]:
    """Return the library types that are interchangeable with a type."""
    groups = (group for group in (_COLLECTIONS, _MAPS) if name in group)
    return (name, *sorted(other for group in groups for other in group if other != name))


# Methods of collections and promises that pass their elements to a callback, as the first or a later argument.
_GIVING_NAMES = """
    forEach map filter find findIndex findLast findLastIndex some every flatMap sort toSorted then finally each
    each_with_index each_with_object select reject detect any? all? none? find_all collect flat_map sort_by min_by
    max_by group_by partition sum count each_value reverse_each find_index take_while drop_while filter_map each_entry
    uniq to_h index_by each_slice each_cons map! select! reject! sort_by! tap then yield_self delete_if keep_if
    forEachOrdered sortBy groupBy partitionBy
"""
_GIVING = frozenset(_GIVING_NAMES.split())
_GIVING_NEXT = frozenset({"reduce", "reduceRight", "inject", "sort", "toSorted", "each_pair", "each", "map"})


def gives_elements(method: str, position: int) -> bool:
    """Return whether a method passes its elements to a callback at a position."""
    name = method.rpartition(".")[2]
    return name in _GIVING if position == 0 else position == 1 and name in _GIVING_NEXT


def is_collection(name: str) -> bool:
    """Return whether a library type is a collection."""
    return name.rpartition(".")[2] in _COLLECTIONS


def is_callable(name: str) -> bool:
    """Return whether a type is Python's `Callable`."""
    return name.rpartition(".")[2] == "Callable"


def plain_result(method: Value) -> Value | None:
    """Return the string or number that a library method returns, regardless of its receiver; None for other methods."""
    owner, _, name = method.name.rpartition(".")
    if owner == "Math" and name in _REALS:
        return external_object("double", method.resolution)
    if name in _TEXT:
        return external_object("String", method.resolution)
    number = _NUMBER.fullmatch(name)
    return external_object(number[1].lower(), method.resolution) if number else None


def result_of(rules: Rules, method: Value) -> Iterable[Value]:
    """Return the result of a method of a collection or generic type: an element or all elements."""
    owner, _, name = method.name.rpartition(".")
    if owner == ANY:
        return method.held
    if (hook := rules.hooks.library_result) is not None and (own := hook(method)) is not None:
        return own
    is_std, is_collection = owner.startswith("std."), owner == "collection"
    if name in (_STD_ONE if is_std else _ONE) and not (name == "take" and owner in _COLLECTIONS):
        return found_by(method.held if is_collection else method.held[-1:], Resolution.ELEMENT)
    if name in (_ITERATORS if is_std else _SAME) or (name == "take" and not is_std):
        return [Value("collection" if is_collection else "external object", "", owner, method.resolution, method.held)]
    return [external_object(method.name, method.resolution)]
