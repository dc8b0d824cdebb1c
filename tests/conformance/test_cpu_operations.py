# SPDX-License-Identifier: MIT
"""The CPU kernels against TensorFlow Lite's reference kernels on synthetic models: arithmetic of two tensors, one value
from one, reductions, transposed convolutions, products of matrices, and everything that only moves values.

MICA_BUILD names the build directory (default: build).
"""

import pathlib
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/pytools"))
import model_builder as mb  # noqa: E402
from cpu_judge import TOOL, judge  # noqa: E402

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

TYPES = ["uint8", "int8"]
ALL = TYPES + ["float32"]
ACTIVATIONS = [None, "relu", "relu6", "relu_n1_to_1"]


def values_of(m, seed=3):
    """Every code for quantized inputs, normal numbers for others."""
    rng = np.random.default_rng(seed)
    values = []
    for t in m.inputs:
        if t.dtype in mb.RANGES:
            low, high = mb.RANGES[t.dtype]
            values.append(rng.integers(low, high + 1, t.shape).astype(mb.TYPES[t.dtype][1]))
        elif t.dtype == "float32":
            values.append(rng.normal(0, 3, t.shape).astype(np.float32))
        else:
            values.append(rng.integers(-1000, 1000, t.shape).astype(mb.TYPES[t.dtype][1]))
    return values


def check(m, outs, tmp_path, values=None):
    assert judge(m.finish(outs), values_of(m) if values is None else values, tmp_path) == len(m.graph.operators)


def every_code(dtype):
    low = mb.RANGES[dtype][0]
    return [np.arange(low, low + 256).astype(dtype)[None]]


# ---- two tensors ---------------------------------------------------------------

SHAPES = [((2, 5, 4, 6), (2, 5, 4, 6)), ((1, 5, 4, 6), (1, 1, 1, 6)), ((1, 5, 4, 6), (1, 5, 4, 1)),
          ((2, 1, 4, 6), (1, 5, 1, 6)), ((2, 5, 4, 6), (6,)), ((1,), (3, 5, 6))]
BINARY = ["sub", "mul", "maximum", "minimum", "squared_difference"]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", BINARY)
def test_two_tensors_broadcast(name, dtype, tmp_path):
    if (name, dtype) == ("squared_difference", "uint8"):
        pytest.skip("TensorFlow Lite has no such kernel")
    m = mb.Model(dtype, 4)
    quants = (None, None) if dtype == "float32" else ((0.03, 7), (0.03, 7) if "imum" in name else (0.11, 30))
    outs = [getattr(m, name)(m.input(a, quants[0]), m.input(b, quants[1])) for a, b in SHAPES]
    check(m, outs, tmp_path)


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("name", ["sub", "mul"])
def test_two_tensors_with_activations(name, dtype, tmp_path):
    m = mb.Model(dtype, 4)
    a, b = m.input((2, 30, 7)), m.input((2, 30, 7))
    check(m, [getattr(m, name)(a, b, activation) for activation in ACTIVATIONS], tmp_path)


@pytest.mark.parametrize("name", ["sub", "mul", "squared_difference"])
@pytest.mark.parametrize("scales", [(1.0, 1.0, 2.0), (0.5, 0.001, 0.4), (0.0007, 3.0, 5.0), (0.25, 0.125, 0.5),
                                    (0.013, 0.017, 0.004)], ids=str)
def test_two_tensors_of_unequal_scales(name, scales, tmp_path):
    m = mb.Model("int8", 4)
    a, b = m.input((1, 64, 64), (scales[0], 5)), m.input((1, 64, 64), (scales[1], -11))
    check(m, [getattr(m, name)(a, b, output_quant=(scales[2], 1))], tmp_path)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "floor_div", "div", "maximum", "minimum"])
def test_int32(name, tmp_path):
    m = mb.Model("int32", 4)
    a, b = m.input((2, 30, 7)), m.input((30, 1))
    values = values_of(m)
    values[1][values[1] == 0] = 3
    check(m, [getattr(m, name)(a, b)], tmp_path, values)


@pytest.mark.parametrize("name", ["div", "floor_div"])
def test_quotients_of_floats(name, tmp_path):
    m = mb.Model("float32", 4)
    check(m, [getattr(m, name)(m.input((2, 30, 7)), m.input((30, 7)))], tmp_path)


@pytest.mark.parametrize("dtype", ALL)
def test_prelu(dtype, tmp_path):
    m = mb.Model(dtype, 4)
    x = m.input((2, 5, 4, 6))
    outs = [m.prelu(x)]
    if dtype != "float32":
        slopes = m.random_constant((5, 1, 6), (0.02, 9))
        outs += [m.prelu(x, slopes, (scale, 40)) for scale in (0.003, 0.02, 0.7)]
    check(m, outs, tmp_path)


# ---- one value from one ----------------------------------------------------------

SIGNED_ONLY = ["ABS", "NEG", "EXP", "LOG"]
UNARY = ["RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"]


def output_quants(x):
    return [None, (x.scale, 3), (x.scale * 0.37, 50), (x.scale * 2.1, 90)]


@pytest.mark.parametrize("dtype, code", [(d, c) for c in UNARY for d in TYPES] + [("int8", c) for c in SIGNED_ONLY])
def test_unary_of_every_code(dtype, code, tmp_path):
    m = mb.Model(dtype, 1)
    outs = []
    for scale in (0.004, 0.05, 0.31) if code != "EXP" else (0.004, 0.02, 0.05):
        x = m.input((1, 256), (scale, 12))
        outs += [m.unary(x, code, quant) for quant in output_quants(x)]
    check(m, outs, tmp_path, every_code(dtype) * len(m.inputs))


@pytest.mark.parametrize("dtype", TYPES)
def test_tanh_hard_swish_and_leaky_relu_of_every_code(dtype, tmp_path):
    m = mb.Model(dtype, 1)
    outs = []
    for scale in (0.004, 0.031, 0.2):
        x = m.input((1, 256), (scale, 12))
        outs.append(m.unary(x, "TANH", (1 / 128, 128 if dtype == "uint8" else 0)))
        outs += [m.hard_swish(x, quant) for quant in output_quants(x)]
        outs += [m.leaky_relu(x, alpha, quant) for alpha in (0.1, 0.01, -0.3, 1.7) for quant in output_quants(x)]
    check(m, outs, tmp_path, every_code(dtype) * len(m.inputs))


@pytest.mark.parametrize("code", ["SQRT", "RSQRT"])
def test_roots_of_every_code(code, tmp_path):
    """TensorFlow Lite refuses negative values."""
    m = mb.Model("int8", 1)
    xs = [m.input((1, 256), (scale, zero)) for scale in (0.003, 0.03, 0.4) for zero in (-128, -20)]
    outs = [m.unary(x, code, (scale, zero)) for x in xs for scale, zero in ((0.01, -128), (0.05, -3), (0.4, 100))]
    values = [np.maximum(every_code("int8")[0], np.int8(x.zero_point)) for x in xs]
    check(m, outs, tmp_path, values)


@pytest.mark.parametrize("code", UNARY + ["ABS", "NEG", "EXP", "TANH"])
def test_unary_of_floats(code, tmp_path):
    m = mb.Model("float32", 1)
    check(m, [m.unary(m.input((3, 700)), code)], tmp_path)


def test_more_unary_of_floats(tmp_path):
    m = mb.Model("float32", 1)
    x = m.input((3, 700))
    positive = m.unary(m.unary(x, "ABS"), "EXP")
    check(m, [m.hard_swish(x), m.leaky_relu(x, 0.3)] + [m.unary(positive, c) for c in ("SQRT", "RSQRT", "LOG")], tmp_path)


# ---- one from many ------------------------------------------------------------------

AXES = [(1, 2), (2,), (-1,), (0, 3), (0, 1, 2, 3), (1, 3), (3, 1, 1)]


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("kind", ["MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN"])
@pytest.mark.parametrize("keep", [False, True])
def test_reduce(dtype, kind, keep, tmp_path):
    if (dtype, kind) == ("int8", "SUM"):
        pytest.skip("TensorFlow Lite's sums of int8 differ from version to version, and from the sum")
    m = mb.Model(dtype, 2)
    x = m.input((2, 7, 5, 19))
    outs = [m.reduce(x, axes, kind, keep) for axes in AXES]
    if dtype != "float32" and kind in ("MEAN", "SUM"):
        outs += [m.reduce(x, (1, 2), kind, keep, (scale, 40)) for scale in (0.003, 0.02, 0.7)]
    check(m, outs, tmp_path)


@pytest.mark.parametrize("dtype", ALL)
def test_arg_max(dtype, tmp_path):
    m = mb.Model(dtype, 2)
    x = m.input((3, 4, 50))
    check(m, [m.arg_max(x, axis, out) for axis in (0, 1, -1) for out in ("int32", "int64")], tmp_path)


# ---- products of matrices ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", ALL)
@pytest.mark.parametrize("stride", [(1, 1), (2, 2), (2, 3), (4, 1)], ids=str)
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
def test_transpose_conv(dtype, stride, padding, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((2, 5, 7, 9))
    kernels = [(1, 1), (2, 2), (3, 3), (4, 3), (5, 2)]
    outs = []
    if dtype == "float32":
        outs = [float_transpose_conv(m, x, 11, k, stride, padding) for k in kernels]
    else:
        outs = [m.transpose_conv(x, 11, k, stride, padding, bias=i % 2 == 0) for i, k in enumerate(kernels)]
        if dtype == "int8":
            outs += [m.transpose_conv(x, 34, k, stride, padding, per_channel=True) for k in kernels]
    check(m, outs, tmp_path)


def float_transpose_conv(m, x, oc, kernel, stride, padding):
    n, h, w, ic = x.shape
    extra = [max(k - s, 0) if padding == "VALID" else 0 for k, s in zip(kernel, stride)]
    shape = (n, h * stride[0] + extra[0], w * stride[1] + extra[1], oc)
    o = mb.schema.TransposeConvOptionsT()
    o.padding, (o.strideH, o.strideW) = mb.PADDINGS[padding], stride
    count = len(m.graph.tensors)
    inputs = [m.constant(f"shape{count}", shape, "int32"),
              m.constant(f"weights{count}", m.rng.normal(0, 1, (oc, *kernel, ic)), "float32"), x,
              m.constant(f"bias{count}", m.rng.normal(0, 1, oc), "float32")]
    return m.operator("TRANSPOSE_CONV", inputs, [m.tensor(f"out{count}", shape, "float32")], o, version=3)


@pytest.mark.parametrize("dtype", TYPES)
def test_transpose_conv_with_activations(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((1, 6, 6, 8))
    check(m, [m.transpose_conv(x, 9, (3, 3), (2, 2), activation=a) for a in ACTIVATIONS], tmp_path)


def test_transpose_conv_of_odd_outputs(tmp_path):
    m = mb.Model("int8", 5)
    x = m.input((1, 6, 6, 8))
    check(m, [m.transpose_conv(x, 9, (3, 3), (2, 2), output_hw=hw) for hw in ((11, 11), (12, 11))], tmp_path)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
def test_batch_matmul(dtype, adj_x, adj_y, tmp_path):
    m = mb.Model(dtype, 5)
    outs = []
    for left, right in (((2,), (2,)), ((), ()), ((3, 2), (2,)), ((1, 2), (3, 1)), ((2,), ())):
        a = m.input((*left, *((17, 5) if adj_x else (5, 17))))
        b = m.input((*right, *((70, 17) if adj_y else (17, 70))))
        outs.append(m.batch_matmul(a, b, adj_x, adj_y))
    check(m, outs, tmp_path)


# ---- values that move --------------------------------------------------------------------

MOVED = ["uint8", "int8", "float32", "int32"]


@pytest.mark.parametrize("dtype", MOVED)
def test_slices(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((3, 7, 6, 5))
    outs = [m.slice(x, (1, 2, 0, 1), (2, 3, -1, 2)), m.slice(x, (0, 0, 0, 0), (3, 7, 6, 5)),
            m.strided_slice(x, (0, 1, 0, 0), (3, 7, 6, 5), (1, 2, 3, 1)),
            m.strided_slice(x, (0, 6, 5, 4), (3, 0, 0, 0), (1, -2, -1, -1)),
            m.strided_slice(x, (1, 0, 2, 0), (2, 7, 3, 5), shrink_axis_mask=5),
            m.strided_slice(x, (0, 0, 1, 0), (3, 7, 3, 5), begin_mask=3, end_mask=11)]
    check(m, outs, tmp_path)


@pytest.mark.parametrize("dtype", MOVED)
def test_transpose(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x, y = m.input((3, 7, 6, 5)), m.input((40, 33))
    orders = [(0, 1, 2, 3), (3, 2, 1, 0), (0, 3, 1, 2), (0, 2, 3, 1), (2, 0, 3, 1), (0, 2, 1, 3)]
    check(m, [m.transpose(x, order) for order in orders] + [m.transpose(y, (1, 0))], tmp_path)


@pytest.mark.parametrize("dtype", MOVED)
def test_reverse(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((3, 7, 6, 5))
    check(m, [m.reverse(x, axes) for axes in ((0,), (3,), (1, 2))], tmp_path)


@pytest.mark.parametrize("dtype", MOVED)
def test_splits(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((4, 6, 8))
    outs = m.split(x, 2, 0) + m.split(x, 3, 1) + m.split(x, 4, -1) + m.split_v(x, (1, 5, -1)) + m.split_v(x, (4, 2), 1)
    assert judge(m.finish(outs), values_of(m), tmp_path) == len(outs)


@pytest.mark.parametrize("dtype", MOVED)
def test_pack_and_unpack(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    quant = (0.1, 3) if dtype in TYPES else None
    xs = [m.input((3, 4, 5), quant) for _ in range(3)]
    outs = [m.pack(xs, axis) for axis in (0, 1, 2, -1)] + [y for axis in (0, 1, -1) for y in m.unpack(xs[0], axis)]
    assert judge(m.finish(outs), values_of(m), tmp_path) == len(outs)


@pytest.mark.parametrize("dtype", ALL)
def test_space_to_depth(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((2, 6, 12, 5))
    check(m, [m.space_to_depth(x, block) for block in (1, 2, 3, 6)], tmp_path)


@pytest.mark.parametrize("dtype", ALL)
def test_mirror_pad(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x, y = m.input((3, 4, 5, 6)), m.input((2, 7))
    outs = [m.mirror_pad(x, [(0, 0), (1, 3), (2, 0), (0, 5)]), m.mirror_pad(x, [(2, 1), (0, 0), (4, 4), (0, 0)]),
            m.mirror_pad(y, [(2, 1), (7, 6)], "SYMMETRIC")]
    check(m, outs, tmp_path)


@pytest.mark.parametrize("dtype", MOVED)
def test_pad_with_a_value(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((2, 3, 4, 5))
    outs = [m.pad_v2(x, [(0, 0), (1, 2), (3, 0), (0, 0)], 9), m.pad_v2(x, [(1, 0), (0, 0), (0, 1), (2, 3)], 77)]
    check(m, outs, tmp_path)


@pytest.mark.parametrize("dtype", MOVED)
def test_gather(dtype, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((5, 4, 6))
    outs = [m.gather(x, [4, 0, 0], 0), m.gather(x, [[1, 2], [3, 3]], 1), m.gather(x, [5], -1),
            m.gather_nd(x, [[4, 3], [0, 0]]), m.gather_nd(x, [[[1], [2]]]), m.gather_nd(x, [[4, 3, 5]])]
    check(m, outs, tmp_path)


# ---- int16 -----------------------------------------------------------------------------------


def int16_layer(m, code, x, shape, out_shape, options, axis, version):
    channels, count = out_shape[-1], len(m.graph.tensors)
    scales = 0.002 * m.rng.uniform(0.5, 2, channels)
    if code == "FULLY_CONNECTED":
        scales = scales[:1]
    weights = m.constant(f"weights{count}", m.rng.integers(-127, 128, shape), "int8", (scales, scales * 0), axis)
    bias = m.constant(f"bias{count}", m.rng.integers(-10**6, 10**6, channels), "int64", (scales * x.scale, scales * 0))
    out = m.tensor(f"out{count}", out_shape, "int16", (0.0007, 0))
    return m.operator(code, [x, weights, bias], [out], options, version=version)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_int16(activation, tmp_path):
    m = mb.Model("int16", 1)
    x = m.input((2, 9, 8, 7), (0.0003, 0))
    conv, depthwise = mb.schema.Conv2DOptionsT(), mb.schema.DepthwiseConv2DOptionsT()
    dense = mb.schema.FullyConnectedOptionsT()
    conv.strideH, conv.strideW, conv.dilationHFactor, conv.dilationWFactor = 2, 1, 1, 2
    depthwise.strideH, depthwise.strideW, depthwise.depthMultiplier = 1, 2, 2
    depthwise.dilationHFactor = depthwise.dilationWFactor = 1
    for options in (conv, depthwise, dense):
        options.fusedActivationFunction = mb.ACTIVATIONS[activation]
    y = m.input((6, 504), (0.0003, 0))
    outs = [int16_layer(m, "CONV_2D", x, (19, 3, 3, 7), (2, 5, 8, 19), conv, 0, 4),
            int16_layer(m, "DEPTHWISE_CONV_2D", x, (1, 3, 3, 14), (2, 9, 4, 14), depthwise, 3, 5),
            int16_layer(m, "FULLY_CONNECTED", y, (33, 504), (6, 33), dense, 0, 7)]
    check(m, outs, tmp_path)


def cast(m, x, dtype):
    out = m.tensor(f"cast{len(m.graph.tensors)}", x.shape, dtype)
    o = mb.schema.CastOptionsT()
    o.inDataType, o.outDataType = mb.TYPES[x.dtype][0], mb.TYPES[dtype][0]
    return m.operator("CAST", [x], [out], o)


@pytest.mark.parametrize("source", ["float32", "int32", "uint8", "int8"])
def test_cast(source, tmp_path):
    m = mb.Model(source, 1)
    x = m.input((4, 90), None)
    values = [np.random.default_rng(1).uniform(0, 100, (4, 90)).astype(mb.TYPES[source][1])]
    check(m, [cast(m, x, target) for target in ("float32", "int32", "uint8", "int8", "int64", "int16")], tmp_path, values)
