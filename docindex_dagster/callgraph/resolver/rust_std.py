"""What the methods of Rust's standard types give of what they hold."""

from collections.abc import Sequence

from docindex_dagster.callgraph.resolver.values import How, Value, external_object

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


def rust_result(method: Value) -> Sequence[Value]:  # noqa: PLR0911 one a sort of types
    """What a method of a standard type gives, where that is what it holds, or the same again."""
    written, _, name = method.name.rpartition(".")
    owner = written.rpartition(".")[2]
    held = [value.found(How.ELEMENT) for value in (method.held if owner == "collection" else method.held[-1:])]
    same = Value("collection" if owner == "collection" else "external object", "", written, method.how, method.held)
    maybe = external_object("Option", method.how, tuple(held[:1]))
    if owner == "object":  # of the program
        return held
    if owner == "collection":
        return held if name in _ONE or name in _HELD else [same] if name in _SAME or name in _MAYBE_ONE else ()
    if owner in _CELLS:
        return held if name in _CELL else [same] if name == "clone" else [maybe] if name in {"upgrade", "get"} else ()
    if owner in _MAYBE:
        return held if name in _HELD else [same] if name in _MAYBE_SAME else ()
    if owner == "tuple":
        return [same] if name == "clone" else ()
    if name in _SAME:
        return [same]
    if name in _ONE or (name == "remove" and owner == "Vec"):
        return held
    if name in _MAYBE_ONE or name == "remove":
        return [maybe]
    if name in {"keys", "into_keys"} and len(method.held) > 1:
        return [external_object("Iter", method.how, method.held[:1])]
    return ()
