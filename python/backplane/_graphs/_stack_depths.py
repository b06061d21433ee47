"""How many values lie on a frame's stack at each instruction: interpreters from 3.12 on do not tell a trace function."""

from __future__ import annotations

import dis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType

__all__ = ["stack_depths"]

_LEAVES = frozenset(("JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "RETURN_VALUE", "RETURN_CONST", "RAISE_VARARGS", "RERAISE"))


def stack_depths(code: CodeType) -> dict[int, int]:
    """The depth before each instruction that can be reached, by its offset in bytes.

    The compiler gives each instruction one depth, whichever way leads to it, so one walk over all ways finds it. Source: the
    interpreter's own computation of co_stacksize (Python/flowgraph.c).
    """
    instructions = list(dis.get_instructions(code))
    index = {instruction.offset: i for i, instruction in enumerate(instructions)}
    depths: dict[int, int] = {}
    starts = [(0, 0)]
    # A handler finds the exception on top, below it the offset that raised where the entry says so.
    starts += [(entry.target, entry.depth + bool(entry.lasti) + 1) for entry in dis._parse_exception_table(code)]
    while starts:
        offset, depth = starts.pop()
        for instruction in instructions[index[offset] :]:
            if instruction.offset in depths:
                break
            depths[instruction.offset] = depth
            opcode, argument = instruction.opcode, instruction.arg
            if opcode in dis.hasjrel or opcode in dis.hasjabs:
                starts.append((instruction.argval, depth + dis.stack_effect(opcode, argument, jump=True)))
            if instruction.opname in _LEAVES:
                break
            # What a generator is resumed with lies on its stack.
            depth += 1 if instruction.opname == "RETURN_GENERATOR" else dis.stack_effect(opcode, argument if opcode >= dis.HAVE_ARGUMENT else None, jump=False)
    return depths
