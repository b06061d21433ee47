"""detect_anomaly: which op gave the first NaN, and on which line."""

from __future__ import annotations

from .. import _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["detect_anomaly"]

_QUIET = ("empty", "empty_like", "bitcast")  # whose results nobody has computed


class detect_anomaly:
    """`with bp.detect_anomaly(): ...`: the first op of this thread whose result has a NaN raises FloatingPointError.

    The error names the op and the line of the program, in forward and backward passes. Compiled functions run op by op in the block; the
    error then names the line on which the op was traced. Each result is read, so the block runs slower.
    check_inf: infinities count too. A block inside of another one has no effect of its own.
    """

    def __init__(self, check_nan: bool = True, *, check_inf: bool = False) -> None:
        self._check_nan, self._check_inf, self._core = check_nan, check_inf, None

    def __enter__(self) -> detect_anomaly:
        if self._check_nan or self._check_inf:
            try:
                self._core = _core.CoreProfile(False, self._look)
            except _core.ArgumentValueError:
                if not _active:
                    raise
        if self._core is not None:
            _active.append(self)
        return self

    def __exit__(self, *failure: object) -> None:
        if self._core is not None:
            _active.remove(self)
            self._core.end()
            self._core = None

    def _look(self, op: str, results: list[Any]) -> None:
        name = op.rpartition(":")[2]
        if name in _QUIET:
            return
        for x in results:
            if "floating" in x.dtype.kind and x.size and _core.has_values(x) and self._is_bad(x):
                found = "a NaN" if bool(_isnan(x).any()) else "an infinity"
                line = _core.program_line()
                raise FloatingPointError(f"{name}: found {found} in its result of shape {tuple(x.shape)}{f' ({line})' if line else ''}")

    def _is_bad(self, x):
        return self._check_nan and bool(_isnan(x).any()) or self._check_inf and bool(_isinf(x).any())


_active: list[detect_anomaly] = []
_isnan, _isinf = _core.Op("bp::isnan", "isnan"), _core.Op("bp::isinf", "isinf")
