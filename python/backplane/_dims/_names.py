"""The names that a statement assigns: `i, j = dims(2)` names its dimensions i and j."""

import dis as _dis

__all__ = []

_found = {}  # (code, offset of the call) -> names, or None


def assigned_names(frame):
    """The names to which the caller's statement assigns the result of the call that runs, or None."""
    key = (frame.f_code, frame.f_lasti)
    if key not in _found:
        if len(_found) > 1000:
            _found.clear()
        _found[key] = _names_after(*key)
    return _found[key]


def _names_after(code, offset):
    instructions = [one for one in _dis.get_instructions(code) if one.offset > offset and one.opname not in ("CACHE", "EXTENDED_ARG", "COPY")]
    count = 1
    if instructions and instructions[0].opname in ("UNPACK_SEQUENCE", "UNPACK_EX"):
        first, *instructions = instructions
        if first.opname == "UNPACK_EX":
            return None
        count = first.arg
    names = []
    for one in instructions:
        if len(names) >= count or not one.opname.startswith("STORE_") or one.opname in ("STORE_SUBSCR", "STORE_SLICE"):
            break
        names += one.argval if isinstance(one.argval, tuple) else [one.argval]
    return names[:count] if len(names) >= count else None
