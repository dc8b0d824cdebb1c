# SPDX-License-Identifier: MIT
"""A Vivante device's memory, for the model of it, and what there is to say against a job."""

import numpy as np
from numpy.lib.stride_tricks import as_strided


class Bad(Exception):
    """What no device could execute: memory that is not mapped, writes that meet reads."""


class Unsupported(Exception):
    """What the specification doesn't tell the result of."""


def require(condition, what):
    if not condition:
        raise Unsupported(what)


class Memory:
    """Buffers by their addresses."""

    def __init__(self):
        self.buffers = []  # (address, bytes, may be read, may be written)

    def add(self, address, data, access="rw"):
        self.buffers.append((address, data, "r" in access, "w" in access))

    def find(self, address, size, write=False):
        """(the buffer's bytes, where in them), for `size` bytes that lie in one buffer."""
        for start, data, readable, writable in self.buffers:
            if start <= address and address + size <= start + data.size and (writable if write else readable):
                return data, address - start
        raise Bad(f"{'writes' if write else 'reads'} {size} bytes at {address:#x}, which no buffer has")

    def view(self, address, shape, strides, write=False):
        """Bytes as an array with strides of its own."""
        extent = sum((n - 1) * s for n, s in zip(shape, strides)) + 1
        data, at = self.find(address, extent, write)
        return as_strided(data[at:], shape, strides, writeable=write)

    def words(self, address, count):
        data, at = self.find(address, 4 * count)
        return [int(word) for word in data[at:at + 4 * count].view("<u4")]

    def tail(self, address):
        data, at = self.find(address, 64)
        return data[at:]

    def scatter(self, addresses, values):
        """In order: of two values for one address the later one stays."""
        low, high = int(addresses.min()), int(addresses.max())
        data, at = self.find(low, high - low + 1, write=True)
        data[addresses - low + at] = values

    def gather(self, addresses):
        low, high = int(addresses.min()), int(addresses.max())
        data, at = self.find(low, high - low + 1)
        return data[addresses - low + at]
