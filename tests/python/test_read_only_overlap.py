"""Where elements of a tensor share memory, NumPy, DLPack and buffers get it read-only: a write would change other elements too."""

import backplane as bp
import numpy as np
import pytest

OVERLAPPING = {
    "broadcast": lambda: bp.broadcast_to(bp.ones(3), (2, 3)),
    "expand": lambda: bp.ones((1, 3)).expand(4, 3),
    "of a number": lambda: bp.broadcast_to(bp.asarray(1.0), (5,)),
    "windows": lambda: bp.ones(6).unfold(0, 3, 1),
    "part of a broadcast": lambda: bp.broadcast_to(bp.ones(3), (2, 3))[0],
    "transposed": lambda: bp.broadcast_to(bp.ones(3), (2, 3)).T,
    "integers": lambda: bp.broadcast_to(bp.arange(3), (2, 3)),
}
ALONE = {
    "whole": lambda: bp.ones((2, 3)),
    "strided": lambda: bp.ones((4, 6))[::2, ::3],
    "windows apart": lambda: bp.ones(6).unfold(0, 3, 3),
    "one row": lambda: bp.broadcast_to(bp.ones(3), (1, 3)),
    "copied": lambda: bp.broadcast_to(bp.ones(3), (2, 3)).clone(),
}
EXPORTS = {
    "numpy": lambda x: x.numpy(),
    "asarray": np.asarray,
    "from_dlpack": np.from_dlpack,
    "memoryview": lambda x: np.asarray(memoryview(x)),
}


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("make", OVERLAPPING)
def test_overlapping_memory_is_read_only(make, export):
    array = EXPORTS[export](OVERLAPPING[make]())
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[...] = 0


@pytest.mark.parametrize("export", EXPORTS)
@pytest.mark.parametrize("make", ALONE)
def test_other_memory_is_written(make, export):
    x = ALONE[make]()
    EXPORTS[export](x)[...] = 7
    assert (x == 7).all()
