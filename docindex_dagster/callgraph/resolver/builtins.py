"""Names that a language has without an import, and what the methods of its collections give."""

import builtins as _python
import re
from collections.abc import Iterable, Mapping

from docindex_dagster.callgraph.resolver.rust_std import rust_result
from docindex_dagster.callgraph.resolver.values import How, Kind, Value, external_object

_ECMASCRIPT = """
    Array ArrayBuffer BigInt Boolean Buffer DataView Date Error EvalError Float32Array Float64Array Function Infinity
    Int32Array Intl JSON Map Math NaN Number Object Promise Proxy RangeError ReferenceError Reflect RegExp Set String
    Symbol SyntaxError TypeError URL URLSearchParams Uint8Array WeakMap WeakSet alert atob btoa clearInterval
    clearTimeout console decodeURIComponent document encodeURIComponent exports fetch global globalThis isFinite isNaN
    localStorage module navigator parseFloat parseInt performance process queueMicrotask require setImmediate
    setInterval setTimeout structuredClone window string number boolean any unknown object symbol bigint Record
    ReadonlyArray Iterable Iterator Generator AsyncGenerator AsyncIterable Event EventTarget AbortController
"""

_RUBY = """
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

_GO = """
    any append bool byte cap chan clear close comparable complex complex128 complex64 copy delete error false float32
    float64 func imag int int16 int32 int64 int8 iota len make map max min new nil panic print println real recover
    rune string true uint uint16 uint32 uint64 uint8 uintptr Array tuple
"""

_RUST = """
    Array AsMut AsRef Box Clone Copy Debug Default Display DoubleEndedIterator Drop Eq Err Extend ExactSizeIterator Fn
    FnMut FnOnce From FromIterator Hash Into IntoIterator Iterator None Ok Option Ord PartialEq PartialOrd Result Send
    Sized Some String Sync ToOwned ToString TryFrom TryInto Unpin Vec bool char drop f32 f64 func i128 i16 i32 i64 i8
    isize str tuple u128 u16 u32 u64 u8 usize
"""

_C = """
    std int char bool double float long short unsigned signed void size_t ssize_t auto wchar_t int8_t int16_t int32_t
    int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t intptr_t ptrdiff_t FILE
"""

_LUA = """
    _ENV _G _VERSION arg assert bit bit32 collectgarbage coroutine debug describe dofile error getfenv getmetatable io
    ipairs it jit load loadfile loadstring love math module newproxy next ngx os package pairs pcall print rawequal
    rawget rawlen rawset redis require select setfenv setmetatable string table tonumber tostring type unpack utf8 vim
    warn xpcall
"""

_ZIG = """
    Array anyerror anyframe anyopaque anytype bool c_char c_int c_long c_short c_uint c_ulong comptime_float
    comptime_int f128 f16 f32 f64 f80 func i128 i16 i32 i64 i8 isize noreturn type u1 u128 u16 u32 u64 u8 usize void
"""
_ZIG_WHOLE = frozenset({"clone", "iterator", "keyIterator", "valueIterator", "toOwnedSlice", "items", "slice"})

_BUILTINS: Mapping[str, frozenset[str]] = {
    "python": frozenset(dir(_python)),
    "ecmascript": frozenset(_ECMASCRIPT.split()),
    "ruby": frozenset(_RUBY.split()),
    "go": frozenset(_GO.split()),
    "rust": frozenset(_RUST.split()),
    "c": frozenset(_C.split()),
    "lua": frozenset(_LUA.split()),
    "zig": frozenset(_ZIG.split()),
}

# Methods that give the same elements, and those that give one of them.
_SAME_NAMES = """
    values iter iter_mut into_iter filter sorted copy stream reversed slice concat toList collect toArray list entries
    asSequence asIterable clone to_vec as_slice rev skip drop sort sort_by sortBy sorted_by each items keys then
    iterator values_mut ToList ToArray Where OrderBy select reject peekable freeze dup to_a compact uniq shuffle lazy
    each_with_index each_with_object reverse_each flat toSorted toReversed rotate each_slice
    sortedBy sortedByDescending distinct distinctBy onEach filterNot filterNotNull takeWhile dropWhile shuffled limit
    OrderByDescending ThenBy Skip Take Reverse Distinct Concat AsEnumerable Values Union SkipWhile TakeWhile asReversed
    toMutableList toSet parallelStream cases
"""
_ONE_NAMES = """
    get pop first last next find peek poll remove at front back top shift popleft unwrap expect unwrap_or
    unwrap_or_else orElse orElseThrow orElseGet getOrNull getValue getOrDefault get_mut borrow borrow_mut lock as_ref
    as_mut value First Last Single FirstOrDefault Pop Dequeue setdefault detect min max min_by max_by getOrElse
    computeIfAbsent getOrPut take removeFirst removeLast firstOrNull lastOrNull element elementAt getFirst getLast
    read write upgrade from tryFrom valueOf findFirst findAny reduce fetch dig sample __getitem__ pop_front pop_back
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
# C++: an iterator is followed as its container.
_ITERATOR_NAMES = """
    begin end cbegin cend rbegin rend crbegin crend find lower_bound upper_bound insert emplace erase lock
"""
_STD_ONE_NAMES = "front back top at get value value_or operator[] release extract emplace_back"
_ITERATORS, _STD_ONE = frozenset(_ITERATOR_NAMES.split()), frozenset(_STD_ONE_NAMES.split())


ANY = "Object"  # what all objects inherit
_COLLECTION_NAMES = """
    List MutableList Collection MutableCollection Iterable MutableIterable Set MutableSet Sequence Array ArrayList
    IEnumerable IList ICollection IReadOnlyList IReadOnlyCollection HashSet LinkedList IQueryable collection
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
    """Whether a declared type is one of plain values or collections, which are no functions."""
    name = name.rpartition(".")[2]
    return name in _PLAIN or name in _COLLECTIONS or name in _MAPS


def is_same_type(name: str, wanted: str) -> bool:
    """Whether what has a type of the library may be given where another is wanted."""
    name, wanted = _TYPE_NAMES.get(name, name), _TYPE_NAMES.get(wanted, wanted)
    return name == wanted or any(name in group and wanted in group for group in (_COLLECTIONS, _MAPS))


def is_builtin(family: str, name: str) -> bool:
    """Whether a name needs no import."""
    return name in _BUILTINS.get(family, ())


# What methods of collections and promises give to functions: their elements, first or next to something else.
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
    """Whether a method gives its elements, at a position, to the function that it is given."""
    name = method.rpartition(".")[2]
    return name in _GIVING if position == 0 else position == 1 and name in _GIVING_NEXT


def is_collection(name: str) -> bool:
    """Whether a type of the library is a collection."""
    return name.rpartition(".")[2] in _COLLECTIONS


def is_callable(name: str) -> bool:
    """Whether a type of Python is that of anything that can be called."""
    return name.rpartition(".")[2] == "Callable"


def plain_result(method: Value) -> Value | None:
    """The string or number that a method of the library gives, whatever it is a method of."""
    owner, _, name = method.name.rpartition(".")
    if owner == "Math" and name in _REALS:
        return external_object("double", method.how)
    if name in _TEXT:
        return external_object("String", method.how)
    number = _NUMBER.fullmatch(name)
    return external_object(number[1].lower(), method.how) if number else None


def result_of(family: str, method: Value) -> Iterable[Value]:  # noqa: PLR0911 one a library
    """What a method of a collection or generic type gives, where that is one of its elements, or all."""
    owner, _, name = method.name.rpartition(".")
    if owner == ANY:
        return method.held
    if family == "rust":
        return rust_result(method)
    if owner.startswith("std.") and family == "zig":
        is_whole = name.startswith("init") or name in _ZIG_WHOLE
        return [external_object(owner, method.how, method.held)] if is_whole else method.held[-1:]
    if owner.startswith("std."):
        return _result_in_std(owner, name, method)
    if name in _ONE and not (name == "take" and owner in _COLLECTIONS):
        return (
            [value.found(How.ELEMENT) for value in method.held[-1:]]
            if owner != "collection"
            else [value.found(How.ELEMENT) for value in method.held]
        )
    if name in _SAME or name == "take":
        kind: Kind = "collection" if owner == "collection" else "external object"
        return [Value(kind, "", owner, method.how, method.held)]
    return [external_object(method.name, method.how)]


def _result_in_std(owner: str, name: str, method: Value) -> Iterable[Value]:
    if name in _STD_ONE:
        return [value.found(How.ELEMENT) for value in method.held[-1:]]
    if name in _ITERATORS:
        return [external_object(owner, method.how, method.held)]
    return [external_object(method.name, method.how)]
