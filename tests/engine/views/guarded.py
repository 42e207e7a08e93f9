"""Calls every function of ``mj`` with arrays of exactly the described length.

Behind (or before) each array lies memory that must not be touched: the process dies with the first
access outside. Run with a seed; prints each function's name before its first call.
"""

from __future__ import annotations

import ctypes
import mmap
import sys

import numpy as np

from mjhost.engine.views import checks
from mjhost.engine.views.functions import mj
from mjhost.errors import InvalidArgumentError
from tests.engine.views import arguments as chosen

FORBIDDEN = 0  # PROT_NONE
ROUNDS = 60
ODD = (0.0, -1.0, 1e300, np.nan, np.inf, 0.5, 3.0, 1e-300)


class Guarded:
    """Memory for one array, between two pages that must not be touched."""

    def __init__(self, pages=4):
        self.page = mmap.PAGESIZE
        self.size = pages * self.page
        self.memory = mmap.mmap(-1, self.size + 2 * self.page)
        self.start = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        protect = ctypes.CDLL(None, use_errno=True).mprotect
        for address in (self.start, self.start + self.page + self.size):
            if protect(ctypes.c_void_p(address), ctypes.c_size_t(self.page), FORBIDDEN):
                raise OSError(ctypes.get_errno(), "mprotect")

    def array(self, dtype, count, *, at_end):
        offset = self.page + (self.size - count * dtype.itemsize if at_end else 0)
        return np.ndarray(count, dtype, self.memory, offset)


class Caller:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.guards = [Guarded() for _ in range(16)]
        self.owners, (self.model, self.data) = chosen.struct_arguments()

    def run(self, spec):
        taken = 0
        for _ in range(ROUNDS):
            try:
                getattr(mj, spec.name)(*self.arguments(spec))
                taken += 1
            except InvalidArgumentError:
                continue
        return taken

    def arguments(self, spec):
        found = [self.simple(spec, parameter) for parameter in spec.parameters]
        for index, parameter in enumerate(spec.parameters):
            if parameter.length is not None:
                size = self.size(spec, parameter, found)
                found[index] = self.array(index, parameter, size)
        return found

    def size(self, spec, parameter, found):
        if spec.name == "mj_getState":
            return mj.mj_stateSize(self.model, found[-1])
        if parameter.length.text == "0":  # of the matrices that say it in their contents
            return 4
        return max(0, checks.evaluator(parameter.length)(found))

    def simple(self, spec, parameter):
        if parameter.kind != "scalar" or (spec.name, parameter.name) in chosen.CHOSEN:
            return chosen.simple(spec, parameter, self.model, self.data)
        if parameter.ctype in {ctypes.c_double, ctypes.c_float}:
            return float(self.random.choice(ODD))
        return int(self.random.integers(0, 2 if parameter.ctype is ctypes.c_bool else 7))

    def array(self, index, parameter, size):
        if parameter.nullable and self.random.random() < 0.2:
            return None
        dtype, at_end = np.dtype(parameter.ctype), bool(self.random.random() < 0.7)
        array = self.guards[index].array(dtype, size, at_end=at_end)
        array[:] = self.contents(dtype, size)
        return array

    def contents(self, dtype, size):
        if dtype.kind != "f":
            return self.random.integers(0, 2, size)
        if self.random.random() < 0.5:
            return self.random.normal(size=size)
        with np.errstate(over="ignore"):  # of float32
            return self.random.choice(ODD, size).astype(dtype)


def main(seed):
    caller = Caller(seed)
    for name, spec in chosen.TABLE.items():
        print(name, flush=True)
        assert caller.run(spec), f"{name} was never called"


if __name__ == "__main__":
    main(int(sys.argv[1]))
