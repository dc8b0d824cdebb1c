# SPDX-License-Identifier: MIT
"""What a job of Vivante's NN cores computes: part of vivante_model.py (specification, sections 3, 5 and 6)."""

import functools
import importlib.util
import pathlib
import sys

import numpy as np
from numpy.lib.stride_tricks import as_strided
from vivante_fields import NN_FIELDS, NN_V7_FIELDS, NN_V8_FIELDS, Fields, signed
from vivante_memory import Bad, require

_spec = importlib.util.spec_from_file_location(
    "decode", pathlib.Path(__file__).resolve().parents[2] / "docs/coefficients/decode.py")
decode = sys.modules.setdefault("decode", importlib.util.module_from_spec(_spec))  # dataclasses look their module up
if not hasattr(decode, "decode"):
    _spec.loader.exec_module(decode)


# ---- arithmetic (section 6) -------------------------------------------------------------

ROUNDINGS = {0: "half up", 1: "half to even", 2: "toward zero", 3: "floor"}


def divide(product, shift, how):
    """product / 2^shift as a whole number; `product`: int64."""
    if shift <= 0:  # all but 0 leave the range of bytes anyway
        return np.clip(product, -1 << 20, 1 << 20) << -shift
    if shift > 62:  # every product is below 2^57
        return np.where(product < 0, -1, 0) if how == "floor" else np.zeros_like(product)
    whole, rest, half = product >> shift, product & (1 << shift) - 1, 1 << (shift - 1)
    if how == "half to even":
        return whole + ((rest > half) | ((rest == half) & (whole & 1 == 1)))
    if how == "half up":
        return whole + (rest >= half)
    if how == "half away":
        return whole + ((rest > half) | ((rest == half) & (whole >= 0)))
    if how == "toward zero":
        return whole + ((rest != 0) & (whole < 0))
    return whole


# ---- NN jobs ------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def kernels_of(buffer, job, v7):
    """(weights [kernel][tap] less the zero point, biases, offsets, channels); job: the arguments of decode.Job."""
    job = decode.Job(*job)
    kernels = decode.decode_v7(buffer, job) if v7 else decode.decode(buffer, job)
    weights = np.array([kernel.weights for kernel in kernels], np.float64) - job.zero_point
    biases = np.array([kernel.bias for kernel in kernels], np.int64)
    return weights, biases, [kernel.offset for kernel in kernels], [kernel.channel for kernel in kernels]


class NeuralJob:
    """A descriptor that has been read; run() reads and writes the memory."""

    def __init__(self, memory, chip, words):
        self.memory, self.chip, self.v8 = memory, chip, chip == "imx8mp"
        self.f = f = Fields(words, NN_FIELDS, NN_V8_FIELDS if self.v8 else NN_V7_FIELDS)
        require(not (f.kernel_type or f.in_type or f.out_type), "other types than uint8")
        require(not (f.prelu or f.brick or f.border_mode or f.per_channel or f.direct_stream), "an unknown mode")
        require(bool(f.no_z_offset) == self.v8, "kernels without a place")
        require(self.v8 or not f.depthwise, "depthwise on V7")
        require(f.pooling in (0, 3) or f.pooling == 1 and not f.pooling_3x3, "such a pooling")
        require(f.border < 256, "a border of more than 8 bits")
        require(not (f.in_circ_size or f.out_circ_size), "a circular buffer")
        if not (f.in_x and f.in_y and f.out_x and f.out_y and f.kernel_x):
            raise Bad("an empty image")
        self.columns, self.rows = (1, f.kernel_x) if f.layer_type else (f.kernel_x, f.kernel_y)
        self.channels = f.out_z if f.depthwise else f.kernel_z
        self.scale()

    def scale(self):
        """Multiplier and shift (6.1)."""
        if self.v8:
            self.m, self.s = (1 << 23) + self.f.multiplier, 23 + signed(self.f.shift, 7)
        else:
            require(self.f.shift < 64, "a shift of 64 or more on V7")
            self.m, self.s = (1 << 15) + self.f.multiplier, self.f.shift

    def kernels(self):
        f, data = self.f, self.memory.tail(self.f.kernel_address << 6)
        sizes, v7 = data[:64].view("<u4"), not self.v8 and data[0] % 64 == 0
        cores = decode.CORES[self.chip]
        if v7:  # bytes a core
            end = 64 + int(sizes[:cores].sum())
        else:  # bits a core, then the biases of V8
            end = 64 + sum(-(-int(bits) // 512) * 64 for bits in sizes[7:7 + cores]) + (4 * f.out_z if self.v8 else 0)
        job = (self.chip, self.columns, self.rows, 1 if f.depthwise else f.kernel_z, f.kernels_per_core, f.weight_zero,
               f.out_z if self.v8 else 0, bool(f.depthwise))
        if end > data.size:
            raise Bad("a coefficient buffer ends early")
        return kernels_of(data[:end].tobytes(), job, v7)

    def image(self):
        """[channel][row][column] of the input with what the kernels meet around it."""
        f = self.f
        plane = f.in_x_stride * f.in_y_stride
        pixels = self.memory.view(f.in_address, (self.channels, f.in_y, f.in_x), (plane, f.in_x_stride, 1))
        height, width = f.out_y + self.rows - 1, f.out_x + self.columns - 1
        image = np.full((self.channels, height, width), f.border, np.float64)
        top, left = max(0, -f.y_offset), max(0, -f.x_offset)  # of the image in it
        seen = pixels[:, max(0, f.y_offset):, max(0, f.x_offset):][:, :max(0, height - top), :max(0, width - left)]
        image[:, top:top + seen.shape[1], left:left + seen.shape[2]] = seen
        return image - (128 if self.v8 else 0)

    def sums(self, weights):
        """[kernel][row][column] of the products; every number is whole and below 2^53, so they are exact."""
        f, image, step = self.f, self.image(), 2 if self.f.pooling == 3 else 1
        taps = weights.reshape(len(weights), -1, self.rows, self.columns)
        total = 0
        for row in range(self.rows):
            for column in range(self.columns):
                tap = taps[:, :, row, column]
                if not tap.any():
                    continue
                part = image[:, row:row + f.out_y:step, column:column + f.out_x:step]
                if f.depthwise:
                    total = total + tap.reshape(-1, 1, 1) * part
                else:
                    total = total + (tap @ part.reshape(len(part), -1)).reshape(-1, *part.shape[1:])
        size = tuple(-(-n // step) for n in (f.out_y, f.out_x))
        return np.broadcast_to(np.asarray(total, np.float64), (len(weights), *size))

    def results(self):
        """[kernel][row][column] of bytes, and what else is known of the kernels."""
        f = self.f
        weights, biases, offsets, channels = self.kernels()
        sums = self.sums(weights).astype(np.int64) + biases[:, None, None]
        sums = (sums + (1 << 31) & 0xFFFFFFFF) - (1 << 31)  # wraps
        how = "half away" if self.v8 and f.rounding == 0 else ROUNDINGS[f.rounding]
        values = np.clip(divide(sums * self.m, self.s, how) + f.out_zero, f.out_zero if f.relu else 0, 255)
        return self.pooled(values.astype(np.uint8)), offsets, channels

    def pooled(self, values):
        """The maxima of 2x2 pixels; the first of them have been taken already."""
        if self.f.pooling != 1:
            return values
        require(self.f.out_x % 2 == 0 and self.f.out_y % 2 == 0, "pooling of odd sizes")
        return values.reshape(len(values), self.f.out_y // 2, 2, self.f.out_x // 2, 2).max((2, 4))

    def places(self, offsets, channels):
        f = self.f
        if self.v8:
            return [f.out_address + channel * f.out_x_stride * f.out_y_stride for channel in channels]
        return [f.out_address + offset & 0xFFFFFFFF for offset in offsets]

    def extent(self):
        """First byte of the input and the one behind its last."""
        f = self.f
        rows = (self.channels - 1) * f.in_y_stride + f.in_y - 1
        return f.in_address, f.in_address + rows * f.in_x_stride + f.in_x

    def run(self):
        values, offsets, channels = self.results()
        _, rows, columns = values.shape
        if columns > self.f.out_x_stride and rows > 1:
            raise Bad("rows of the output overlap")
        low, high = self.extent()
        for plane, place in zip(values, self.places(offsets, channels)):
            view = self.memory.view(place, plane.shape, (self.f.out_x_stride, 1), write=True)
            if place < high and low < place + (rows - 1) * self.f.out_x_stride + columns:
                self.check_apart(place, rows, columns)
            view[:] = plane

    def check_apart(self, place, rows, columns):
        """No byte of this plane of the output is one of the input."""
        f = self.f
        low, high = self.extent()
        mine = np.zeros(high - low, bool)
        as_strided(mine, (self.channels, f.in_y, f.in_x), (f.in_x_stride * f.in_y_stride, f.in_x_stride, 1))[:] = True
        written = place + np.arange(rows)[:, None] * f.out_x_stride + np.arange(columns) - low
        written = written[(written >= 0) & (written < high - low)]
        if mine[written].any():
            raise Bad("an NN job writes what it reads")
