# SPDX-License-Identifier: MIT
"""What a job of Vivante's TP cores does: part of vivante_model.py (specification, sections 4.1 and 4.4a)."""

from dataclasses import dataclass

import numpy as np
from vivante_fields import TP_FIELDS, Fields
from vivante_memory import Bad, require

# Of 4.4a: (processing, count, stride bit): (window, step).
REDUCTIONS = {(0, 0, 0): (1, 1), (3, 1, 0): (2, 2), (3, 2, 1): (3, 2), (1, 1, 0): (2, 1), (1, 2, 0): (3, 1)}


@dataclass
class Axis:
    """The tiles of a window in one direction: what they read and what they give, clipped to the window."""

    first: list  # coordinate of each tile's first element
    given: list  # elements that each gives
    window: int
    step: int

    @staticmethod
    def of(start, end, size, tile_step, reduction):
        window, step = reduction
        first = list(range(start, end + 1, tile_step))
        read = [min(size, end + 1 - at) for at in first]
        given = [max(0, (n - window) // step + 1) for n in read]
        return Axis(first, given, window, step)


class TensorJob:
    """A descriptor that has been read; run() reads and writes the memory."""

    UNKNOWN = ("tile_sequence", "tile_global", "square", "suppression", "table", "multiply", "load_table",
               "skip_at_border", "brick", "z_filter", "slices_before", "slices_behind", "preshift", "in_type",
               "out_type", "relu", "swap", "in_preshift", "reorder", "in_circ_size", "out_circ_size")

    def __init__(self, memory, chip, words):
        self.memory, self.f = memory, Fields(words, TP_FIELDS)
        f = self.f
        for name in self.UNKNOWN:
            require(not getattr(f, name), f"{name} on the TP")
        require(f.in_global and f.out_global and f.to_float and f.to_integer, "a TP job without a part of its path")
        require(not f.postshift and not f.post_multiplier, "a factor on the TP")
        across = (f.horizontal, f.horizontal_count, f.horizontal_stride)
        down = (f.vertical, f.vertical_count, f.vertical_stride)
        require(across in REDUCTIONS and down in REDUCTIONS, "such a reduction")
        self.pools = across != (0, 0, 0) or down != (0, 0, 0)
        require(f.border_mode == (1 if self.pools else 0), "such a border mode")
        if not (f.tile_x and f.tile_y and f.tile_x_step and f.tile_y_step):
            raise Bad("tiles of no size")
        self.across = Axis.of(f.x_start, f.x_end, f.tile_x, f.tile_x_step, REDUCTIONS[across])
        self.down = Axis.of(f.y_start, f.y_end, f.tile_y, f.tile_y_step, REDUCTIONS[down])
        require(all(self.across.given) and all(self.down.given), "a tile that gives nothing")

    def scan(self):
        """For every element in order: slice, tile down, tile across, row and column in the tile's result."""
        f, (ni, nj) = self.f, (len(self.down.first), len(self.across.first))
        shape = (f.in_z, ni, nj, max(self.down.given, default=0), max(self.across.given, default=0))
        z, i, j, r, c = (axis.ravel() for axis in np.indices(shape, np.int64, sparse=False))
        kept = (r < np.array(self.down.given, np.int64)[i]) & (c < np.array(self.across.given, np.int64)[j])
        return z[kept], i[kept], j[kept], r[kept], c[kept]

    def read(self, z, y, x):
        """Values, and which of them are inside the image."""
        f = self.f
        inside = (x >= 0) & (x < f.in_x) & (y >= 0) & (y < f.in_y)
        values = np.zeros(len(z), np.int64)
        addresses = f.in_address + z * f.in_slice + y * f.in_stride + x
        if inside.any():
            values[inside] = self.memory.gather(addresses[inside])
        self.seen.append(addresses[inside])
        return values, inside

    def values(self, z, i, j, r, c):
        f = self.f
        y = np.array(self.down.first, np.int64)[i] + r * self.down.step
        x = np.array(self.across.first, np.int64)[j] + c * self.across.step
        best, any_inside = np.full(len(z), -1, np.int64), np.zeros(len(z), bool)
        for dy in range(self.down.window):
            for dx in range(self.across.window):
                values, inside = self.read(z, y + dy, x + dx)
                best = np.where(inside, np.maximum(best, values), best)
                any_inside |= inside
        require(not self.pools or any_inside.all(), "the maximum of nothing")
        return np.where(any_inside, np.clip(best - f.in_zero + f.out_zero, 0, 255), f.out_zero)

    def offsets(self, z, i, j, r, c):
        """The odometer of 4.1."""
        f = self.f
        incs = [getattr(f, f"inc_{k}") for k in range(7)]
        counts = [getattr(f, f"count_{k}") for k in range(6)]
        if all(counts):
            self.check_resets(counts)
            return self.odometer(np.arange(len(z)), counts, incs)
        # Loop 1 ends with the tile's row, loop 2 with the tile.
        require(counts[0] == 1 and counts[1:3] == [0, 0] and f.reset_1 and f.reset_2 and not f.reset_3 and
                counts[3] and counts[4], "such loops without a count")
        tile = (z * len(self.down.first) + i) * len(self.across.first) + j
        outer = counts[3:] if counts[5] else [counts[3], counts[4], 1]
        return c * incs[1] + r * incs[2] + self.odometer(tile, outer, incs[3:])

    @staticmethod
    def odometer(number, counts, incs):
        offset = 0
        for count, inc in zip(counts, incs):
            offset = offset + number % count * inc
            number = number // count
        return offset + number * incs[-1]

    def check_resets(self, counts):
        """A loop that restarts where it would anyway: there every end of a row or tile ends whole loops."""
        f = self.f
        if f.reset_1:
            require(all(n % (counts[0] * counts[1]) == 0 for n in set(self.across.given)), "a restart within loop 1")
        sizes = {down * across for down in set(self.down.given) for across in set(self.across.given)}
        for reset, loops in ((f.reset_2, 3), (f.reset_3, 4)):
            inner = int(np.prod(counts[:loops], dtype=object))
            require(not reset or all(size % inner == 0 for size in sizes), f"a restart within loop {loops - 1}")

    def run(self):
        self.seen = []
        elements = self.scan()
        if not len(elements[0]):
            return
        values = self.values(*elements)
        written = self.f.out_address + self.offsets(*elements)
        self.check_apart(written)
        self.memory.scatter(written, values.astype(np.uint8))

    def check_apart(self, written):
        low, high = int(written.min()), int(written.max())
        mine = np.zeros(high - low + 1, bool)
        mine[written - low] = True
        for seen in self.seen:
            if mine[seen[(seen >= low) & (seen <= high)] - low].any():
                raise Bad("a TP job writes what it reads")
