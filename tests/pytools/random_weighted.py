# SPDX-License-Identifier: MIT
"""The operations of random models that have weights; see random_operations.py."""

import math

import model_builder
import numpy as np

from random_draw import Unfit
from random_operations import kernel_size, operation, window, window_elements


def weight_values(d, shape):
    """None for the builder's, or weights that no training makes."""
    low, high = model_builder.RANGES[d.dtype] if d.dtype != "int16" else (-127, 127)
    kind = d.pick({"builder's": 14, "one": 1, "zero": 1, "ends": 2, "single": 1, "any": 1})
    if kind in ("ends", "any"):
        return d.rng.choice([low, high], shape) if kind == "ends" else d.rng.integers(low, high + 1, shape)
    if kind == "builder's":
        return None
    values = np.full(shape, d.between(low, high) if kind == "one" else 0)
    if kind == "single":
        values[tuple(d.between(0, size - 1) for size in shape)] = high
    return values


def weight_quant(d, channels, per_channel, builders):
    """None, for the builder's choice, with that probability; or (scale, zero point)."""
    if d.chance(builders):
        return None
    scale, zero = d.scale(0.005), d.zero_point("uint8") if d.dtype == "uint8" else 0
    if not per_channel:
        return scale, zero
    spread = d.decades(1, 1e3 if d.chance(0.4) else 10)
    scales = scale * np.array([d.decades(1 / spread, 1) for _ in range(channels)])
    return scales.astype(np.float32), 0


def weighted(d, build, shape, axis, biased=0.8):
    """Calls build() with what an operation with weights of that shape may have."""
    if d.dtype == "float32":
        return [build(activation=d.activation(), bias=d.chance(biased))]
    per_channel = d.dtype != "uint8" and d.chance(0.6)
    options = {"per_channel": per_channel} if axis or len(shape) == 4 else {}  # not of the builder's fully connected
    quant = weight_quant(d, shape[axis], per_channel, 0.6 if options or not per_channel else 0)
    out = build(activation=d.activation(), bias=d.chance(biased), weights=weight_values(d, shape), weight_quant=quant,
                **options)
    quant = d.m.graph.tensors[d.m.graph.operators[-1].inputs[1]].quantization
    quant.zeroPoint = np.resize(quant.zeroPoint, quant.scale.size)  # one a channel, where the scales are
    if d.chance(0.15):
        exotic_bias(d)
    d.requantized(out, alike=0.5)
    if d.dtype != "int16" and overflows(d, axis):
        raise Unfit
    return [out]


def bias_tensor(d):
    """The last operation's, or None."""
    tensor = d.m.graph.tensors[d.m.graph.operators[-1].inputs[-1]]
    return tensor if tensor.name.startswith("bias") else None


def overflows(d, axis):
    """TFLite shifts sums up where the factor to the output's scale is above 1: beyond 32 bits they are anything."""
    op, tensors = d.m.graph.operators[-1], d.m.graph.tensors
    weights, out = tensors[op.inputs[1]], tensors[op.outputs[0]]
    x = tensors[op.inputs[2 if out.name.startswith("transpose_conv") else 0]]
    values = np.frombuffer(bytes(d.m.buffers[weights.buffer].data), d.dtype).reshape(weights.shape).astype(float)
    values = np.moveaxis(np.abs(values - weights.quantization.zeroPoint[0]), axis, 0)
    bias = bias_tensor(d)
    added = np.abs(np.frombuffer(bytes(d.m.buffers[bias.buffer].data), np.int32).astype(float)) if bias else 0
    zero = x.quantization.zeroPoint[0]
    largest = max(abs(end - zero) for end in model_builder.RANGES[d.dtype])
    sums = values.reshape(len(values), -1).sum(axis=1) * largest + added
    factors = float(x.quantization.scale[0]) * weights.quantization.scale.astype(float) / out.quantization.scale[0]
    return bool((sums * 2.0 ** np.maximum(np.frexp(factors)[1], 0) >= 2**31).any())


def exotic_bias(d):
    tensor = bias_tensor(d)
    if not tensor or tensor.type != model_builder.schema.TensorType.INT32:
        return
    size = tensor.shape[0]
    values = d.pick([np.zeros(size), d.rng.integers(-2**24, 2**24, size), d.rng.choice([-2**29, 2**29], size)])
    d.m.buffers[tensor.buffer].data = np.frombuffer(values.astype(np.int32).tobytes(), np.uint8)


@operation("CONV_2D", weight=6)
def conv2d(d, name, x):
    x = d.image(x)
    kernel, stride, dilation, padding = window(d)
    oc = d.channels()
    places = window_elements(d, x, kernel, stride, dilation, padding)
    d.worth(places * math.prod(kernel) * x.shape[3] * oc, places * oc)
    return weighted(d, lambda **o: d.m.conv2d(x, oc, kernel, stride, padding, dilation=dilation, **o),
                    (oc, *kernel, x.shape[3]), 0, biased=0.99)  # TFLite needs one


@operation("DEPTHWISE_CONV_2D", weight=4)
def depthwise(d, name, x):
    x = d.image(x)
    kernel, stride, dilation, padding = window(d)
    if d.chance(0.8):
        stride = stride[:1] * 2  # TFLite has no other
    multiplier = d.pick({1: 6, 2: 2, 3: 1, 8: 1})
    oc = x.shape[3] * multiplier
    places = window_elements(d, x, kernel, stride, dilation, padding)
    d.worth(places * math.prod(kernel) * oc * 4, places * oc)
    return weighted(d, lambda **o: d.m.depthwise(x, multiplier, kernel, stride, padding, dilation=dilation, **o),
                    (1, *kernel, oc), 3)


@operation("TRANSPOSE_CONV", weight=3)
def transpose_conv(d, name, x):
    x = d.image(x)
    kernel = kernel_size(d, 18), kernel_size(d, 18)
    stride = (d.between(1, 5), d.between(1, 5)) if d.oddly(0.4) else d.pick([(1, 1), (2, 2), (2, 2), (2, 2), (4, 4)])
    padding, oc = d.pick(("SAME", "VALID")), d.channels()
    d.worth(math.prod(x.shape) * math.prod(kernel) * oc)
    size = None
    if padding == "SAME" and d.chance(0.3):  # any size that strides lead back from
        size = tuple(n * s - d.between(0, s - 1) for n, s in zip(x.shape[1:3], stride))
    return weighted(d, lambda **o: d.m.transpose_conv(x, oc, kernel, stride, padding, output_hw=size, **o),
                    (oc, *kernel, x.shape[3]), 0)


@operation("FULLY_CONNECTED", weight=3)
def fully_connected(d, name, x):
    x = d.any(x, {1: 1, 2: 6, 3: 1, 4: 1} if x is None else None)
    if len(x.shape) < 2:
        raise Unfit  # the builder's batch
    keep, oc = d.chance(0.3), d.channels()
    ic = x.shape[-1] if keep else math.prod(x.shape[1:])
    d.worth(math.prod(x.shape) * oc, ic * oc)
    return weighted(d, lambda **o: d.m.fully_connected(x, oc, keep_dims=keep, **o), (oc, ic), 0)


@operation("BATCH_MATMUL", types=("int8", "int16", "float32"))
def batch_matmul(d, name, x):
    x = d.any(x, {2: 1, 3: 2, 4: 1})
    adj_x, adj_y = d.chance(0.3), d.chance(0.3)
    depth = x.shape[-2] if adj_x else x.shape[-1]
    columns = d.channels()
    lead = [1 if d.chance(0.2) else size for size in x.shape[:-2]]
    shape = (*lead, columns, depth) if adj_y else (*lead, depth, columns)
    d.worth(math.prod(x.shape) * columns)
    other = d.constant(shape) if d.chance(0.4) else d.input(shape)
    return [d.requantized(d.m.batch_matmul(x, other, adj_x, adj_y), alike=0.5)]
