# SPDX-License-Identifier: MIT
"""The operations of random models: each draws its parameters, given a Draw and a tensor to work on or None.

A function returns the operation's outputs; it raises Unfit where the tensor is none for it, or where what was drawn
would take too long. Here are those of one tensor; the others are in random_weighted.py, random_pairs.py and
random_moves.py.
"""

import math

import model_builder

from random_draw import Unfit

OPERATIONS = {}  # name: (function, weight, types)
BYTES = ("uint8", "int8")
# What TFLite has kernels for besides: no unit takes them, or few.
RARE = ("int16", "float32")


def operation(*names, weight=1.0, types=BYTES + RARE):
    def add(function):
        for name in names:
            OPERATIONS[name] = (function, weight, types)
        return function
    return add


def draw_operation(d, name, x):
    function, _, types = OPERATIONS[name]
    if (x.dtype if x else d.dtype) not in types or (x and x.dtype != d.dtype):
        raise Unfit
    outputs = function(d, name, x)
    options = d.m.graph.operators[-1].builtinOptions
    fuses = hasattr(options, "fusedActivationFunction") and name != "TRANSPOSE_CONV"  # the latter since version 4
    if fuses and d.oddly(0.03):
        options.fusedActivationFunction = model_builder.schema.ActivationFunctionType.TANH  # there, but unused
    for tensor in d.m.graph.tensors:
        d.worth(0, math.prod(tensor.shape) if not tensor.buffer else 0)
        if min(tensor.shape, default=1) < 1:  # axes of a scalar are such a tensor, too
            raise Unfit
    return outputs


# ---- windows ------------------------------------------------------------------


def kernel_size(d, largest):
    if d.oddly(0.25):
        return d.between(1, largest)
    return d.pick((1, 1, 2, 3, 3, 3, 4, 5, 7))


def window(d, largest=33):
    """(kernel, stride, dilation, padding), none of them square by need."""
    kernel = kernel_size(d, largest), kernel_size(d, largest)
    if d.chance(0.5):
        kernel = kernel[:1] * 2
    if d.oddly(0.4):
        stride = d.between(1, 5), d.between(1, 5)
    else:
        stride = d.pick({(1, 1): 6, (2, 2): 3, (1, 2): 0.5, (2, 1): 0.5})
    dilation = (1, 1)
    if stride == (1, 1) and d.chance(0.25) or d.oddly(0.2):
        most = 19 if d.oddly(0.2) else 4
        dilation = d.between(1, most), d.between(1, most)
    return kernel, stride, dilation, d.pick(("SAME", "VALID"))


def window_elements(d, x, kernel, stride, dilation, padding):
    size = d.m._window_shape(x.shape[1:3], kernel, stride, padding, dilation)
    if min(size) < 1:
        raise Unfit
    return x.shape[0] * math.prod(size)


# ---- of one tensor -----------------------------------------------------------


@operation("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", weight=1.2)
def relu(d, name, x):
    return [d.requantized(d.m.unary(d.any(x), name), alike=0.6)]


@operation("ELU", "ABS", "NEG", "EXP", weight=1.2, types=("int8", "int16", "float32"))
def unary(d, name, x):
    return [d.requantized(d.m.unary(d.any(x), name), alike=0.6)]


@operation("SQRT", "RSQRT", "LOG", weight=1.2, types=("int8", "int16", "float32"))
def of_positive(d, name, x):
    """Inputs below zero are an error in TFLite: mostly there are none."""
    x = d.any(x)
    if d.integer and x.dtype != "int16" and d.chance(0.95):
        if x not in d.m.inputs:
            raise Unfit
        d.set_quant(x, (x.scale, model_builder.RANGES[x.dtype][0]))
    return [d.requantized(d.m.unary(x, name), alike=0.4)]


@operation("LEAKY_RELU", weight=1.5)
def leaky_relu(d, name, x):
    alpha = d.pick([0.1, 0.01, 0.2, 0.3, d.decades(1e-3, 1), 0.0, 1.0, 1.7, -0.5] if d.odd else [0.1, 0.01, 0.2, 0.3])
    return [d.requantized(d.m.leaky_relu(d.any(x), alpha), alike=0.6)]


@operation("HARD_SWISH", weight=1.2)
def hard_swish(d, name, x):
    return [d.requantized(d.m.hard_swish(d.any(x)), alike=0.5)]


@operation("LOGISTIC", "TANH", weight=1.2)
def curve(d, name, x):
    return [getattr(d.m, name.lower())(d.any(x))]


@operation("SOFTMAX", weight=1.5)
def softmax(d, name, x):
    return [d.m.softmax(d.any(x, {1: 1, 2: 3, 3: 1, 4: 2}), d.pick([1.0, 1.0, 1.0, 0.5, 2.0, d.decades(1e-3, 100)]))]


@operation("QUANTIZE", weight=2)
def quantize(d, name, x):
    x = d.any(x)
    to = d.pick({"uint8": 4, "int8": 4, "int16": 1 if d.odd else 0.1})
    usual = x.scale if x.quantized else 0.02
    return [d.m.quantize(x, to, d.quant(to, usual * (1 / 256 if to == "int16" else 1)))]


@operation("DEQUANTIZE", weight=0.5, types=BYTES + ("int16",))
def dequantize(d, name, x):
    return [d.m.dequantize(d.any(x))]


@operation("CAST", weight=0.3)
def cast(d, name, x):
    x = d.any(x)
    return [d.m.cast(x, d.pick([t for t in ("float32", "int32", "int8", "uint8") if t != x.dtype]
                               if x.dtype != "float32" else ["int32", "bool"]))]


# ---- of many values one ------------------------------------------------------


@operation("AVERAGE_POOL_2D", "MAX_POOL_2D", weight=2.5)
def pool(d, name, x):
    x = d.image(x)
    size, stride, _, padding = window(d)
    if d.chance(0.7):
        size, stride = (max(size),) * 2, stride[:1] * 2
    if d.chance(0.3):
        stride = size
    if not d.odd and d.chance(0.4):
        padding = "VALID"
    if d.chance(0.15):
        size, padding = x.shape[1:3], "VALID"  # global
    places = window_elements(d, x, size, stride, (1, 1), padding)
    d.worth(places * math.prod(size) * x.shape[3])
    out = d.m.pool(x, name.split("_")[0].lower(), size, stride, padding, d.activation())
    return [d.requantized(out) if d.oddly(0.05) else out]


# TFLite's sums of int8 differ from version to version, and from the sum.
@operation("SUM", types=("uint8", "float32"))
@operation("REDUCE_MIN", weight=1.2)
@operation("MEAN", "REDUCE_MAX", weight=2)
def reduce(d, name, x):
    x = d.any(x, {2: 0.5, 3: 0.5, 4: 6} if x is None else None)
    rank = len(x.shape)
    axes = [1, 2] if rank == 4 and not d.oddly(0.6) else d.some(range(rank), 1)
    if d.chance(0.2):
        axes = [a - rank for a in axes]
    if d.oddly(0.05):
        axes = axes + axes[:1]
    out = d.m.reduce(x, axes, name, d.chance(0.5))
    return [out if name.startswith("REDUCE") and not d.oddly(0.02) else d.requantized(out, alike=0.4)]


@operation("ARG_MAX", weight=0.6, types=BYTES + ("float32",))
def arg_max(d, name, x):
    x = d.any(x)
    axis = d.between(-len(x.shape), len(x.shape) - 1)
    return [d.m.arg_max(x, axis, d.pick(("int32", "int64")))]
