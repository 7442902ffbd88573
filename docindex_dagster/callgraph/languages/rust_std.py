"""Results of methods of Rust standard library types."""

from collections.abc import Mapping, Sequence
from typing import Literal

from docindex_dagster.callgraph.resolver.values import Kind, Resolution, Value, external_object, found_by

_CELLS = frozenset(
    ["Mutex", "RwLock", "RefCell", "Cell", "OnceCell", "OnceLock", "LazyLock", "LazyCell", "Lazy", "Weak", "UnsafeCell"]
)
_MAYBE = frozenset({"Option", "Result", "LockResult", "Poll"})
_SAME_NAMES = """
    iter iter_mut into_iter values values_mut into_values drain filter skip take skip_while take_while rev chain cloned
    copied peekable step_by inspect by_ref as_slice as_mut_slice to_vec clone collect enumerate as_ref as_mut as_deref
    as_deref_mut to_owned unwrap expect lock read write borrow borrow_mut await into_iter_sorted sorted sorted_by
    sorted_by_key unique cycle fuse deref deref_mut par_iter into_par_iter iter_enumerated entry leak
    into_boxed_slice split_off and_modify
"""
_MAYBE_SAME_NAMES = """
    as_ref as_mut as_deref as_deref_mut clone cloned copied take replace filter ok ok_or ok_or_else or or_else inspect
    map_err iter iter_mut into_iter context with_context inspect_err xor await
"""
_HELD_NAMES = """
    unwrap expect unwrap_or unwrap_or_else unwrap_or_default insert get_or_insert get_or_insert_with unwrap_unchecked
    into_inner
"""
_CELL_NAMES = """
    lock read write borrow borrow_mut get_mut into_inner as_ref get_or_init take replace blocking_lock force load
    blocking_read blocking_write
"""
_MAYBE_ONE_NAMES = """
    get get_mut first last first_mut last_mut pop pop_front pop_back front back front_mut back_mut next next_back nth
    find max min max_by_key min_by_key max_by min_by reduce peek peek_mut pop_first pop_last insert get_index
    try_recv recv first_key_value last_key_value get_key_value
"""
_ONE_NAMES = "or_insert or_insert_with or_default or_insert_with_key swap_remove get_unchecked index"
_SAME, _MAYBE_SAME, _HELD = (frozenset(names.split()) for names in (_SAME_NAMES, _MAYBE_SAME_NAMES, _HELD_NAMES))
_CELL, _MAYBE_ONE, _ONE = (frozenset(names.split()) for names in (_CELL_NAMES, _MAYBE_ONE_NAMES, _ONE_NAMES))


_Result = Literal["held", "same", "maybe"]
# The results of methods, by kind of type; the first set that contains the method counts.
_RESULTS: Mapping[str, Sequence[tuple[frozenset[str], _Result]]] = {
    "object": (),
    "collection": ((_ONE | _HELD, "held"), (_SAME | _MAYBE_ONE, "same")),
    "Cell": ((_CELL, "held"), (frozenset({"clone"}), "same"), (frozenset({"upgrade", "get"}), "maybe")),
    "Option": ((_HELD, "held"), (_MAYBE_SAME, "same")),
    "tuple": ((frozenset({"clone"}), "same"),),
    "Vec": ((_SAME, "same"), (_ONE | {"remove"}, "held"), (_MAYBE_ONE, "maybe")),
    "": ((_SAME, "same"), (_ONE, "held"), (_MAYBE_ONE | {"remove"}, "maybe")),
}
_TYPE_KINDS = {**dict.fromkeys(_CELLS, "Cell"), **dict.fromkeys(_MAYBE, "Option"), **{name: name for name in _RESULTS}}


def rust_result(method: Value) -> Sequence[Value]:
    """Return the result of a method of a standard type: its elements, the type itself or an option."""
    written, _, name = method.name.rpartition(".")
    owner = written.rpartition(".")[2]
    type_kind = _TYPE_KINDS.get(owner, "")
    kind: Kind = "collection" if owner == "collection" else "external object"
    held = found_by(method.held if owner == "collection" else method.held[-1:], Resolution.ELEMENT)
    result = next((result for names, result in _RESULTS[type_kind] if name in names), None)
    if result == "held" or owner == "object":  # objects are defined in the program
        return held
    if result == "same":
        return [Value(kind, "", written, method.resolution, method.held)]
    if result == "maybe":
        return [external_object("Option", method.resolution, tuple(held[:1]))]
    is_keys = name in {"keys", "into_keys"} and len(method.held) > 1 and type_kind in {"", "Vec"}
    return [external_object("Iter", method.resolution, method.held[:1])] if is_keys else ()
