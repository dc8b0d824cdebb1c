# SPDX-License-Identifier: MIT
"""What random_operations.py draws its parameters with: shapes, quantizations, constants.

A model is drawn in a mood, so that the odd gathers in some models and others are what networks look like:

- `odd`: parameters that few units have (batches, long strides, windows larger than any, ...);
- `scales`: "usual", "wide" (some orders of magnitude), "wild" (1e-6 to 1e3, whatever the others are).
"""

import math

import model_builder
import numpy as np

SIZES = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 13, 14, 16, 17, 19, 23)
CHANNELS = (1, 2, 3, 4, 5, 7, 8, 9, 13, 15, 16, 17, 23, 24, 31, 32, 33, 40, 47, 64)
LONG = (61, 65, 97, 127, 131, 200, 257, 509)
MAX_MACS = 1_000_000  # of one operation; simulators and reference kernels are slow
MAX_ELEMENTS = 30_000  # of one tensor
SMALLEST, LARGEST = 1e-6, 1e3  # scales


class Unfit(Exception):
    """What has been drawn does not go together: draw again."""


class Draw:
    def __init__(self, rng, dtype):
        self.rng = rng
        self.odd = self.chance(0.4)
        self.scales = self.pick({"usual": 0.6, "wide": 0.25, "wild": 0.15})
        weights = self.pick({"laplace": 0.5, "uniform": 0.3, "sparse": 0.2})
        self.m = model_builder.Model(dtype, int(rng.integers(1 << 31)), weights)

    @property
    def dtype(self):
        return self.m.dtype

    @property
    def integer(self):
        return self.dtype in model_builder.RANGES

    # ---- numbers -----------------------------------------------------------

    def chance(self, probability):
        return bool(self.rng.random() < probability)

    def oddly(self, probability):
        """True with that probability in odd models, never in others."""
        return self.odd and self.chance(probability)

    def pick(self, options):
        """One of a sequence; of a dictionary, by the weights that are its values."""
        if not isinstance(options, dict):
            return options[int(self.rng.integers(len(options)))]
        weights = np.array(list(options.values()), float)
        return list(options)[int(self.rng.choice(len(weights), p=weights / weights.sum()))]

    def between(self, low, high):
        if high < low:
            raise Unfit  # an axis of a scalar
        return int(self.rng.integers(low, high + 1))

    def decades(self, low, high):
        """A number between, evenly spread over orders of magnitude."""
        return float(10 ** self.rng.uniform(math.log10(low), math.log10(high)))

    def some(self, items, least=0):
        """A random part of them, in order."""
        items = list(items)
        count = self.between(min(least, len(items)), len(items))
        return [items[i] for i in sorted(self.rng.permutation(len(items))[:count])]

    # ---- shapes ------------------------------------------------------------

    def size(self):
        return self.pick(LONG) if self.oddly(0.1) else self.pick(SIZES)

    def channels(self):
        return self.pick(LONG) if self.oddly(0.1) else self.pick(CHANNELS)

    def batch(self):
        return self.pick((2, 3, 5)) if self.oddly(0.5) else 1

    def image_shape(self):
        return self.fitting(lambda: (self.batch(), self.size(), self.size(), self.channels()))

    def shape(self, ranks=None):
        rank = self.pick(ranks or {1: 1, 2: 2, 3: 2, 4: 5, 5: 1.5})
        if rank == 4:
            return self.image_shape()
        return self.fitting(lambda: (*((self.batch(),) if rank > 1 else ()),
                                     *(self.size() for _ in range(rank - 2)), self.channels()))

    @staticmethod
    def fitting(draw):
        while True:
            shape = draw()
            if math.prod(shape) <= MAX_ELEMENTS:
                return shape

    def worth(self, macs, elements=0):
        """Refuses what would take too long."""
        if macs > MAX_MACS or elements > MAX_ELEMENTS:
            raise Unfit

    # ---- quantization ------------------------------------------------------

    def zero_point(self, dtype):
        """Near the middle, anywhere, or at an end of the range."""
        if dtype == "int16":
            return 0
        low, high = model_builder.RANGES[dtype]
        where = self.pick({"middle": 5, "any": 3, "low": 1, "high": 1})
        return {"middle": (low + high + 1) // 2 + self.between(-20, 20), "any": self.between(low, high), "low": low,
                "high": high}[where]

    def scale(self, usual):
        if self.scales == "wild" and self.chance(0.6):
            return float(np.float32(self.decades(SMALLEST, LARGEST)))
        spread = 1.5 if self.scales == "usual" else 20
        return float(np.float32(usual * self.decades(1 / spread, spread)))

    def quant(self, dtype=None, usual=None):
        """(scale, zero point), or None for what has neither."""
        dtype = dtype or self.dtype
        if dtype not in model_builder.RANGES:
            return None
        return self.scale(usual or (1e-4 if dtype == "int16" else 0.02)), self.zero_point(dtype)

    def requantized(self, x, alike=0.0):
        """Gives an operation's output another quantization than the builder chose, but with probability `alike`."""
        if x.dtype in model_builder.RANGES and not self.chance(alike):
            self.set_quant(x, (min(max(self.scale(x.scale), 1e-9), 1e9), self.zero_point(x.dtype)))
        return x

    def set_quant(self, x, quant):
        q = self.m.graph.tensors[x.index].quantization
        x.spread = min(x.spread * x.scale / quant[0], 256.0 if x.dtype != "int16" else 65536.0)
        x.scale, x.zero_point = quant
        q.scale, q.zeroPoint = np.array([quant[0]], np.float32), np.array([quant[1]], np.int64)

    @staticmethod
    def quant_of(x):
        return (x.scale, x.zero_point) if x.quantized else None

    # ---- tensors -----------------------------------------------------------

    def input(self, shape, quant=None, dtype=None):
        return self.m.input(shape, quant or self.quant(dtype), dtype)

    def any(self, x, ranks=None):
        """The tensor that is there, if it has one of these ranks, or a new input."""
        if x is None:
            return self.input(self.shape(ranks))
        if ranks and len(x.shape) not in ranks:
            raise Unfit
        return x

    def image(self, x):
        return self.any(x, {4: 1})

    def constant(self, shape, quant=None, dtype=None):
        """Random values; sometimes all of one value, or only the two ends of the range."""
        dtype = dtype or self.dtype
        quant = quant or self.quant(dtype)
        if dtype not in model_builder.RANGES:
            real = self.m.random_constant(shape, None, dtype)
            real.scale = 1.0  # the builder divides by it
            return real
        low, high = model_builder.RANGES[dtype]
        values = {"random": lambda: self.rng.integers(low, high + 1, shape),
                  "one": lambda: np.full(shape, self.between(low, high)),
                  "ends": lambda: self.rng.choice([low, high], shape)}[self.pick({"random": 8, "one": 1, "ends": 1})]()
        return self.m.constant(self.m._name("constant"), values, dtype, quant)

    def activation(self):
        return self.pick({None: 4, "relu": 2, "relu6": 2, "relu_n1_to_1": 1})
