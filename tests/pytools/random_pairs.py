# SPDX-License-Identifier: MIT
"""The operations of random models that work on two tensors; see random_operations.py."""

import math

import numpy as np

from random_operations import operation


def operand(d, x, alike, same=6):
    """The other operand: a tensor or a constant, of the same shape, one that broadcasts, or a single value."""
    quant = d.quant_of(x) if alike else None
    form = d.pick({"same": same, "constant": 1 if d.odd else 0.5, "channels": 2, "one": 2,
                   "broadcast": 2 if d.odd else 0.4, "itself": 0.3})
    if form == "itself":
        return x
    if form in ("same", "broadcast"):
        return d.input(x.shape if form == "same" else broadcast_shape(d, x), quant)
    shape = {"constant": x.shape, "channels": channel_shape(d, x), "one": one_shape(d, x)}[form]
    if form == "constant" and d.chance(0.3):
        shape = broadcast_shape(d, x)
    return d.constant(shape, quant) if d.chance(0.8) else d.input(shape, quant)


def channel_shape(d, x):
    return (1,) * d.between(0, len(x.shape) - 1) + x.shape[-1:]


def one_shape(d, x):
    return (1,) * d.between(0, len(x.shape))


def broadcast_shape(d, x):
    """Sizes of 1 here and there, some of the first left out; where x has 1, sometimes more than x."""
    shape = [d.pick((2, 3, 7)) if n == 1 and d.chance(0.2) else 1 if d.chance(0.4) else n for n in x.shape]
    first = d.between(0, len(shape) - 1) if d.chance(0.3) else 0
    d.worth(0, math.prod(max(s, n) for s, n in zip(shape, x.shape)))
    return tuple(shape[first:])


def binary(d, name, a, b, **options):
    if d.chance(0.4):
        a, b = b, a
    d.worth(0, math.prod(np.broadcast_shapes(a.shape, b.shape)))
    return getattr(d.m, name.lower())(a, b, **options)


def reachable(d, out, a, b, power, bits):
    """TFLite ends the process where the factor to the output's scale is 1 or above."""
    least = (2 * max(a.scale, b.scale)) ** power / 2**bits * 1.01
    if out.quantized and out.scale < least:
        d.set_quant(out, (float(np.float32(least * d.decades(1, 100))), out.zero_point))
    return out


@operation("ADD", "SUB", weight=4)
def add(d, name, x, y=None):
    x = d.any(x)
    y = y or operand(d, x, d.chance(0.2))
    out = d.requantized(binary(d, name, x, y, activation=d.activation()), alike=0.4)
    return [reachable(d, out, x, y, 1, 20 if x.dtype != "int16" else 15)]


@operation("MUL", weight=3)
def mul(d, name, x, y=None):
    x = d.any(x)
    y = y or operand(d, x, d.chance(0.2), same=3)
    return [d.requantized(binary(d, name, x, y, activation=d.activation()), alike=0.4)]


@operation("DIV", weight=0.5, types=("uint8", "float32"))
def div(d, name, x, y=None):
    x = d.any(x)
    y = y or operand(d, x, d.chance(0.2))
    if d.integer and y.zero_point not in (0, 255):
        d.set_quant(y, (y.scale, 0))  # TFLite refuses a divisor of zero
    return [d.requantized(binary(d, name, x, y, activation=d.activation()), alike=0.4)]


@operation("SQUARED_DIFFERENCE", weight=1.5, types=("int8", "float32"))
def squared_difference(d, name, x, y=None):
    x = d.any(x)
    y = y or operand(d, x, d.chance(0.7))
    out = d.requantized(binary(d, name, x, y), alike=0.5)
    return [reachable(d, out, x, y, 2, 14)]


@operation("MAXIMUM", "MINIMUM", weight=2)
def maximum(d, name, x, y=None):
    x = d.any(x)
    y = y or operand(d, x, not d.oddly(0.2), same=12)
    return [binary(d, name, x, y)]


@operation("FLOOR_DIV", weight=0.3, types=("float32",))
def floor_div(d, name, x, y=None):
    x = d.any(x)
    return [d.m.floor_div(x, y or d.input(x.shape))]


@operation("PRELU", weight=1.5)
def prelu(d, name, x):
    x = d.any(x)
    shape = {"channels": channel_shape(d, x), "like a network's": (1,) * (len(x.shape) - 2) + x.shape[-1:],
             "one": one_shape(d, x), "all": x.shape[d.between(0, 1):]}
    slopes = d.constant(shape[d.pick({"like a network's": 6, "channels": 1, "one": 1, "all": 1})],
                        d.quant(usual=0.01))
    return [d.requantized(d.m.prelu(x, slopes), alike=0.6)]


BINARY = {"ADD": add, "SUB": add, "MUL": mul, "DIV": div, "SQUARED_DIFFERENCE": squared_difference,
          "MAXIMUM": maximum, "MINIMUM": maximum, "FLOOR_DIV": floor_div}
