"""mpi4py's own tests with one kind of array: `mpiexec -n 2 python run.py FOLDER numpy|backplane MODULE...`.

FOLDER is the folder `test` of mpi4py's sources, which has the modules. Prints as the last line of rank 0, as JSON, how many
tests ran, failed and were skipped, over all ranks. Tensors cross as DLPack, over the same memory.
"""

import json
import sys
import unittest

folder, kind = sys.argv[1:3]
sys.path.insert(0, folder)
import arrayimpl  # noqa: E402 - of the folder
from mpi4py import MPI  # noqa: E402

import backplane as bp  # noqa: E402

# mpi4py names dtypes by NumPy's characters.
DTYPES = {"?": bp.bool, "b": bp.int8, "h": bp.int16, "i": bp.int32, "l": bp.int64, "B": bp.uint8, "H": bp.uint16, "I": bp.uint32, "L": bp.uint64,
          "f": bp.float32, "d": bp.float64, "F": bp.complex64, "D": bp.complex128}  # fmt: skip


class Flat:
    """The elements in row-major order: numbers to read, places to write."""

    def __init__(self, array):
        self.view = array.reshape((-1,))  # over the same memory

    def __getitem__(self, i):
        return self.view[i].tolist()

    def __setitem__(self, i, value):
        self.view[i] = value

    def __iter__(self):
        return iter(self.view.tolist())

    def __len__(self):
        return self.view.size


class ArrayBackplane(arrayimpl.BaseArray):
    backend = "backplane"
    TypeMap = {code: arrayimpl.ArrayNumPy.TypeMap[code] for code in DTYPES if code in arrayimpl.ArrayNumPy.TypeMap}

    def __init__(self, arg, typecode, shape=None):
        # As NumPy's arrays there: -1 becomes the largest number of an unsigned dtype.
        if isinstance(arg, (int, float, complex)):
            shape = () if shape is None else tuple(shape) if hasattr(shape, "__len__") else (shape,)
            self.array = bp.copy(bp.broadcast_to(bp.asarray(arg).astype(DTYPES[typecode]), shape))
        else:
            given = bp.asarray(list(arg)).astype(DTYPES[typecode])
            self.array = bp.copy(given if shape is None else given.reshape(shape))
        self.typecode = typecode

    def __getitem__(self, i):
        found = self.array[i]
        return found.item() if found.ndim == 0 else found

    @property
    def address(self):
        return self.array.numpy().__array_interface__["data"][0]

    @property
    def itemsize(self):
        return self.array.nbytes // max(self.array.size, 1)

    @property
    def flat(self):
        return Flat(self.array)

    @property
    def size(self):
        return self.array.size


class SameTypes(arrayimpl.ArrayNumPy):
    """NumPy's arrays of the dtypes that both have, so that the counts compare."""

    TypeMap = ArrayBackplane.TypeMap


arrayimpl.ArrayBackends[:] = [ArrayBackplane if kind == "backplane" else SameTypes]
counts = {"ran": 0, "passed subtests": 0, "failed": 0, "skipped": 0}


class Result(unittest.TextTestResult):
    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        counts["passed subtests"] += err is None

    def stopTestRun(self):
        super().stopTestRun()
        counts.update(ran=self.testsRun, failed=len(self.failures) + len(self.errors), skipped=len(self.skipped))


suite = unittest.defaultTestLoader.loadTestsFromNames(sys.argv[3:])
unittest.TextTestRunner(stream=sys.stderr, resultclass=Result).run(suite)
total = {name: MPI.COMM_WORLD.allreduce(n) for name, n in counts.items()}
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(total), flush=True)
