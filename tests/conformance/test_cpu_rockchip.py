# SPDX-License-Identifier: MIT
"""The CPU kernels in Rockchip's arithmetic: equal to a model of the specification's formulas in numpy, written for this
test alone, and never more than 1 from TensorFlow Lite's reference kernels.

MICA_BUILD names the build directory (default: build).
"""

import math
import pathlib
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/pytools"))
import model_builder as mb  # noqa: E402
from cpu_judge import TOOL, interpreter_of  # noqa: E402

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

ATOMS = {"rockchip": 16, "rockchip-rk356x": 8}
ACTIVATIONS = [None, "relu", "relu6", "relu_n1_to_1"]
WEIGHTED = [("uint8", False), ("int8", False), ("int8", True)]


# ---- the model -----------------------------------------------------------------


def shifted(product, shift):
    """product / 2^shift to the nearest integer, ties to even: Python's own rounding of fractions."""
    return np.array([round(Fraction(int(p), 1 << int(shift))) for p in np.ravel(product)], object).reshape(
        np.shape(product))


def scale_of(factor):
    """SCALE in [0x4000, 0x7fff] and SHIFT."""
    shift = 14 - math.floor(math.log2(factor))
    scale = round(Fraction(factor) * Fraction(2) ** shift)
    if scale == 0x8000:
        scale, shift = 0x4000, shift - 1
    return scale, shift


def convert(factors, reach):
    """SCALE, SHIFT, one C a channel and s; and the largest deviation, in steps of the output."""
    alive = factors * reach >= 0.5
    if np.all(factors == factors[0]):
        multipliers, s = np.ones(len(factors)), 0
        scale, shift = scale_of(factors[0])
        loss = 0
    else:
        unit = (factors[alive].max() if alive.any() else factors[0]) / 32767
        s = int(np.clip(math.floor(math.log2(1 / 32 / unit)), 0, 15))
        multipliers = np.where(alive, np.minimum(np.rint(factors / unit), 32767), 0)
        scale, shift = scale_of(unit * 2**s)
        loss = scale / 2**shift / 2
    real = scale / 2**shift * multipliers / 2**s
    off = np.minimum(factors * reach, 255) * np.abs(real / factors - 1) + loss
    return (scale, shift, multipliers, s), np.where(alive, off, 0).max()


def classes_of(factors, reach, most):
    """Every channel's (SCALE, SHIFT, C, s) where no one conversion serves all, and the number of classes; or None."""
    found, count, left = {}, 0, list(range(len(factors)))
    while left and count < most:
        alive = [factors[i] for i in left if factors[i] * reach[i] >= 0.5]
        unit = max([*alive, 2.0**-20]) / 32767
        s = int(np.clip(math.floor(math.log2(1 / 32 / unit)), 0, 15))
        scale, shift = scale_of(unit * 2**s)
        for i in left:
            if factors[i] * reach[i] < 0.5:
                found[i] = scale, shift, 0, s
                continue
            c = min(np.rint(factors[i] / unit), 32767)
            off = min(factors[i] * reach[i], 255) * abs(scale / 2**shift * c / 2**s / factors[i] - 1)
            if off + scale / 2**shift / 2 <= 0.5:
                found[i] = scale, shift, c, s
        count, left = count + 1, [i for i in left if i not in found]
    return None if left else ([found[i] for i in range(len(factors))], count)


def sorted_surfaces(factors, reach, atom):
    """Surfaces that are sorted into classes together, as few as the first one needs."""
    size = min(atom, len(factors))
    result, most = classes_of(factors[:size], reach[:size], 4)
    while size < len(factors) and convert(factors[size:size + atom], reach[size:size + atom])[1] > 1:
        more = classes_of(factors[:size + atom], reach[:size + atom], most)
        if more is None:
            break
        result, size = more[0], min(size + atom, len(factors))
    return result


def conversions(factors, reach, atom):
    """What every channel is converted with: (SCALE, SHIFT, C, s)."""
    result, first = [], 0
    while first < len(factors):
        f, r = factors[first:], reach[first:]
        size = len(f)
        if convert(f, r)[1] > 0.5:
            size, limit = 0, 1.0
            while size < len(f) and convert(f[:size + atom], r[:size + atom])[1] <= limit:
                size, limit = min(size + atom, len(f)), 0.5
        if size == 0:
            result += sorted_surfaces(f, r, atom)
            first = len(result)
            continue
        scale, shift, multipliers, s = convert(f[:size], r[:size])[0]
        result += [(scale, shift, c, s) for c in multipliers]
        first += size
    return result


def finished(values, zero, dtype, low=None, high=None):
    bottom, top = mb.RANGES[dtype]
    values = values.astype(np.int64) + zero
    return np.clip(values, max(bottom, bottom if low is None else low), min(top, top if high is None else high))


def limits(activation, scale, zero):
    bounds = mb.BOUNDS[activation] or (None, None)
    return [None if b is None else zero + int(math.floor(abs(np.float32(b) / np.float32(scale)) + np.float32(0.5))
                                              * np.sign(b)) for b in bounds]


def accumulated(op, interpreter, x):
    """Sums of one weighted operation for [rows, channels], and the weights as [channels, taps], zero points taken away."""
    details = {d["index"]: d for d in interpreter.get_tensor_details()}
    name, inputs = op["op_name"], list(op["inputs"])
    data = 2 if name == "TRANSPOSE_CONV" else 0
    weights = interpreter.get_tensor(inputs[1]).astype(np.int64) - details[inputs[1]]["quantization_parameters"][
        "zero_points"][0]
    bias_at = 3 if data else 2
    bias = interpreter.get_tensor(inputs[bias_at]).astype(np.int64) if len(inputs) > bias_at else 0
    values = x.astype(np.int64) - details[inputs[data]]["quantization_parameters"]["zero_points"][0]
    out = details[op["outputs"][0]]["shape"]
    if name == "FULLY_CONNECTED":
        return values.reshape(-1, weights.shape[1]) @ weights.T + bias, weights, bias
    if name == "DEPTHWISE_CONV_2D":
        columns = weights.reshape(-1, weights.shape[-1]).T
        channels = weights.shape[3]
        multiplier = channels // values.shape[3]
        full = np.zeros((channels, *weights.shape[1:3], values.shape[3]), np.int64)
        for o in range(channels):
            full[o, :, :, o // multiplier] = weights[0, :, :, o]
        return full, columns, bias, values, out
    return weights, weights.reshape(weights.shape[0], -1), bias, values, out


def window_sums(weights, values, out, stride, dilation, before):
    n, height, width, channels = out
    sums = np.zeros(out, np.int64)
    for ky in range(weights.shape[1]):
        for kx in range(weights.shape[2]):
            for y in range(height):
                iy = y * stride[0] + ky * dilation[0] - before[0]
                xs = np.arange(width) * stride[1] + kx * dilation[1] - before[1]
                inside = (xs >= 0) & (xs < values.shape[2])
                if 0 <= iy < values.shape[1] and inside.any():
                    sums[:, y, inside] += values[:, iy, xs[inside]] @ weights[:, ky, kx].T
    return sums


def spread_sums(weights, values, out, stride, before):
    sums = np.zeros(out, np.int64)
    for iy in range(values.shape[1]):
        for ix in range(values.shape[2]):
            for ky in range(weights.shape[1]):
                for kx in range(weights.shape[2]):
                    y, x = iy * stride[0] + ky - before[0], ix * stride[1] + kx - before[1]
                    if 0 <= y < out[1] and 0 <= x < out[2]:
                        sums[:, y, x] += values[:, iy, ix] @ weights[:, ky, kx].T
    return sums


def padding_before(size, out, kernel, stride, dilation):
    return max((out - 1) * stride + (kernel - 1) * dilation + 1 - size, 0) // 2


def expected(interpreter, x, window, activation, atom):
    """Output of a model whose one operation has weights, from the specification's section 8."""
    op = interpreter._get_ops_details()[0]
    details = {d["index"]: d for d in interpreter.get_tensor_details()}
    quant = lambda i: details[i]["quantization_parameters"]  # noqa: E731
    parts = accumulated(op, interpreter, x)
    stride, dilation = window.get("stride", (1, 1)), window.get("dilation", (1, 1))
    if op["op_name"] == "FULLY_CONNECTED":
        sums, columns, bias = parts
    else:
        weights, columns, bias, values, out = parts
        same = window.get("padding", "SAME") == "SAME"
        if op["op_name"] == "TRANSPOSE_CONV":
            before = [padding_before(out[1 + i], values.shape[1 + i], weights.shape[1 + i], stride[i], 1) if same else 0
                      for i in range(2)]
            sums = spread_sums(weights, values, out, stride, before) + bias
        else:
            before = [padding_before(values.shape[1 + i], out[1 + i], weights.shape[1 + i], stride[i], dilation[i])
                      if same else 0 for i in range(2)]
            sums = window_sums(weights, values, out, stride, dilation, before) + bias
    data, result = op["inputs"][2 if op["op_name"] == "TRANSPOSE_CONV" else 0], op["outputs"][0]
    dtype = np.dtype(details[result]["dtype"]).name
    low, high = mb.RANGES[dtype]
    zero_in, zero = int(quant(data)["zero_points"][0]), int(quant(result)["zero_points"][0])
    channels = sums.shape[-1]
    out_scale = np.float64(quant(result)["scales"][0])
    factors = np.float64(quant(data)["scales"][0]) * quant(op["inputs"][1])["scales"].astype(np.float64) / out_scale
    factors = np.broadcast_to(factors, (channels,))
    reach = np.abs(columns).sum(1) * max(zero_in - low, high - zero_in) + np.abs(bias)
    flat = sums.reshape(-1, channels)
    results = np.empty(flat.shape, object)
    for o, (scale, shift, c, s) in enumerate(conversions(factors, reach, atom)):
        results[:, o] = shifted(shifted(flat[:, o] * int(c), s) * scale, shift)
    return finished(results, zero, dtype, *limits(activation, quant(result)["scales"][0], zero))


# ---- running -----------------------------------------------------------------------


def run(data, values, tmp_path, arithmetic):
    (tmp_path / "model.tflite").write_bytes(data)
    command = [TOOL, tmp_path / "model.tflite", "--arithmetic", arithmetic, "--output-dir", tmp_path]
    for i, value in enumerate(values):
        value.tofile(tmp_path / f"in{i}")
        command += ["--input", tmp_path / f"in{i}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return np.fromfile(tmp_path / "out_0.bin", values[0].dtype)


def reference(interpreter, values):
    for detail, value in zip(interpreter.get_input_details(), values, strict=True):
        interpreter.set_tensor(detail["index"], value)
    interpreter.invoke()
    return interpreter.get_tensor(interpreter.get_output_details()[0]["index"]).ravel()


def inputs_of(interpreter, seed=3):
    return [mb.random_input(d, seed + i) for i, d in enumerate(interpreter.get_input_details())]


def check_weighted(data, tmp_path, window, activation=None):
    interpreter = interpreter_of(data)
    values = inputs_of(interpreter)
    exact = reference(interpreter, values).astype(int)
    for arithmetic, atom in ATOMS.items():
        got = run(data, values, tmp_path, arithmetic).astype(int)
        want = expected(interpreter, values[0], window, activation, atom).ravel()
        bad = np.flatnonzero(got != want)
        assert bad.size == 0, f"{arithmetic}: {bad.size} of {got.size} differ, first {bad[0]}: {got[bad[0]]}, {want[bad[0]]}"
        assert np.abs(got - exact).max() <= 1, f"{arithmetic}: {np.abs(got - exact).max()} from TensorFlow Lite"


WINDOWS = [dict(kernel=(1, 1)), dict(kernel=(3, 3)), dict(kernel=(3, 3), stride=(2, 2)),
           dict(kernel=(5, 3), stride=(1, 2), padding="VALID"), dict(kernel=(3, 3), dilation=(2, 3)),
           dict(kernel=(1, 4), stride=(4, 4))]


@pytest.mark.parametrize("dtype, per_channel", WEIGHTED)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_conv(dtype, per_channel, window, tmp_path):
    m = mb.Model(dtype, 5)
    x = m.input((1, 9, 8, 5))
    check_weighted(m.finish([m.conv2d(x, 35, per_channel=per_channel, **window)]), tmp_path, window)


@pytest.mark.parametrize("dtype, per_channel", WEIGHTED)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("multiplier", [1, 2])
def test_depthwise(dtype, per_channel, window, multiplier, tmp_path):
    m = mb.Model(dtype, 6)
    x = m.input((1, 9, 8, 19))
    y = m.depthwise(x, multiplier, per_channel=per_channel, **window)
    check_weighted(m.finish([y]), tmp_path, window)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("inputs", [1, 40, 1000])
def test_fully_connected(dtype, inputs, tmp_path):
    m = mb.Model(dtype, 7)
    check_weighted(m.finish([m.fully_connected(m.input((3, inputs)), 33)]), tmp_path, {})


@pytest.mark.parametrize("dtype, per_channel", WEIGHTED)
@pytest.mark.parametrize("window", [dict(kernel=(2, 2), stride=(2, 2)), dict(kernel=(3, 3), stride=(2, 2)),
                                    dict(kernel=(4, 3), stride=(1, 4), padding="VALID")], ids=str)
def test_transpose_conv(dtype, per_channel, window, tmp_path):
    m = mb.Model(dtype, 8)
    x = m.input((1, 5, 6, 7))
    check_weighted(m.finish([m.transpose_conv(x, 21, per_channel=per_channel, **window)]), tmp_path, window)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_activations(dtype, activation, tmp_path):
    m = mb.Model(dtype, 9)
    x = m.input((1, 9, 8, 5))
    data = m.finish([m.conv2d(x, 20, (3, 3), activation=activation, per_channel=dtype == "int8")])
    check_weighted(data, tmp_path, dict(kernel=(3, 3)), activation)


@pytest.mark.parametrize("spread", [1, 30, 1000, 100000])
def test_channels_of_very_unlike_scales(spread, tmp_path):
    """They get conversions of their own, a group of neighbours each."""
    m = mb.Model("int8", 9)
    x = m.input((1, 6, 5, 5), (0.02, -3))
    scales = np.sort(np.exp(np.random.default_rng(1).uniform(0, math.log(spread + 1e-9), 70)))[::-1] * 0.01
    quant = (scales, np.zeros(70, int))
    weights = m.constant("codes", m.rng.integers(-127, 128, (70, 3, 3, 5)), "int8", quant)
    bias = m.constant("biases", m.rng.integers(-3000, 3000, 70), "int32")
    y = m.tensor("result", (1, 6, 5, 70), "int8", (0.5, 4))
    o = mb.schema.Conv2DOptionsT()
    o.strideH = o.strideW = o.dilationHFactor = o.dilationWFactor = 1
    m.operator("CONV_2D", [x, weights, bias], [y], o, version=3)
    data = m.finish([y])
    interpreter = interpreter_of(data)
    values = inputs_of(interpreter)
    reference(interpreter, values)
    for arithmetic, atom in ATOMS.items():
        want = expected(interpreter, values[0], dict(kernel=(3, 3)), None, atom).ravel()
        assert np.array_equal(run(data, values, tmp_path, arithmetic), want)


@pytest.mark.parametrize("channels, mixed", [(16, 16), (40, 40), (70, 30), (13, 13)])
@pytest.mark.parametrize("span", [9, 14, 20])
def test_neighbours_of_very_unlike_scales(channels, mixed, span, tmp_path):
    """They are sorted into classes with conversions of their own, and are as right as others."""
    m = mb.Model("int8", 9)
    x = m.input((1, 6, 5, 5), (0.02, -3))
    exponents = np.random.default_rng(span).uniform(-span, 0, channels)
    exponents[mixed:] = 0
    scales = (2.0**exponents * 0.02).astype(np.float32)
    quant = (scales, np.zeros(channels, int))
    weights = m.constant("codes", m.rng.integers(-127, 128, (channels, 3, 3, 5)), "int8", quant)
    bias = m.constant("biases", (m.rng.uniform(-15, 15, channels) / (scales * 0.02)).astype(int), "int32")
    y = m.tensor("result", (1, 6, 5, channels), "int8", (0.5, 4))
    o = mb.schema.Conv2DOptionsT()
    o.strideH = o.strideW = o.dilationHFactor = o.dilationWFactor = 1
    m.operator("CONV_2D", [x, weights, bias], [y], o, version=3)
    check_weighted(m.finish([y]), tmp_path, dict(kernel=(3, 3)))


def test_the_carry_of_a_factor_just_below_a_power_of_two(tmp_path):
    m = mb.Model("int8", 9)
    x = m.input((1, 6, 5, 5), (1.0, -3))
    y = m.conv2d(x, 5, (3, 3), weight_quant=(float(np.float32(1 - 2**-20)), 0), output_quant=(256.0, 4))
    check_weighted(m.finish([y]), tmp_path, dict(kernel=(3, 3)))


# ---- two tensors ----------------------------------------------------------------------


def expected_pair(kind, values, quants, out_quant, dtype, activation):
    """Section 9: sums keep 14 bits of the larger scale, products all."""
    (a, b), scales = [v.astype(np.int64) - q[1] for v, q in zip(values, quants)], [float(np.float32(q[0])) for q in quants]
    out_scale, zero = float(np.float32(out_quant[0])), out_quant[1]
    if kind == "mul":
        total, factor = a * b, scales[0] * scales[1] / out_scale
    else:
        larger = max(scales)
        sides = []
        for side, scale in zip((a, b), scales):
            k, s = (0x4000, 0) if scale == larger else scale_of(0x4000 * (scale / larger))
            sides.append(shifted(side * k, s))
        total = sides[0] + sides[1] if kind == "add" else sides[0] - sides[1]
        factor = larger / (0x4000 * out_scale)
    scale, shift = scale_of(factor)
    return finished(shifted(total * scale, shift), zero, dtype, *limits(activation, out_scale, zero))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("kind", ["add", "sub", "mul"])
@pytest.mark.parametrize("scales", [(1.0, 1.0, 2.0), (0.5, 0.001, 0.4), (0.03, 0.9, 1.1), (0.25, 0.125, 0.5),
                                    (0.013, 0.017, 0.004)], ids=str)
@pytest.mark.parametrize("activation", [None, "relu6"])
def test_two_tensors(dtype, kind, scales, activation, tmp_path):
    zero = 128 if dtype == "uint8" else 0
    quants = [(scales[0], zero + 5), (scales[1], zero - 11)]
    m = mb.Model(dtype, 4)
    a, b = (m.input((1, 32, 33), q) for q in quants)
    out_quant = (scales[2] * (scales[0] if kind == "mul" else 1), zero + 1)
    data = m.finish([getattr(m, kind)(a, b, activation=activation, output_quant=out_quant)])
    interpreter = interpreter_of(data)
    values = inputs_of(interpreter)
    exact = reference(interpreter, values).astype(int)
    got = run(data, values, tmp_path, "rockchip").astype(int)
    want = expected_pair(kind, values, quants, out_quant, dtype, activation).ravel()
    assert np.array_equal(got, want)
    assert np.abs(got - exact).max() <= 1


@pytest.mark.parametrize("kind", ["maximum", "minimum", "squared_difference"])
def test_the_rest_is_exact(kind, tmp_path):
    m = mb.Model("int8", 4)
    a, b = m.input((1, 32, 33), (0.1, 4)), m.input((1, 32, 33), (0.1, 4))
    data = m.finish([getattr(m, kind)(a, b)])
    interpreter = interpreter_of(data)
    values = inputs_of(interpreter)
    assert np.array_equal(run(data, values, tmp_path, "rockchip"), reference(interpreter, values))


# ---- means ------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_average_pools_and_means(dtype, tmp_path):
    """Sums times one factor; what lies outside of the image is not counted."""
    for kind in ("mean", "pool"):
        m = mb.Model(dtype, 4)
        x = m.input((1, 7, 9, 20), (0.031, 9))
        out_quant = (0.017, 30) if kind == "mean" else (0.031, 9)
        y = m.reduce(x, (1, 2), output_quant=out_quant) if kind == "mean" else m.pool(x, "average", (3, 3), (1, 1), "SAME")
        data = m.finish([y])
        interpreter = interpreter_of(data)
        values = inputs_of(interpreter)
        exact = reference(interpreter, values).astype(int)
        centred = values[0].astype(np.int64) - 9
        ratio = float(np.float32(0.031)) / float(np.float32(out_quant[0]))
        if kind == "mean":
            sums, counts = centred.sum((1, 2)), np.full((1, 20), 63)
        else:
            padded = np.pad(centred, ((0, 0), (1, 1), (1, 1), (0, 0)))
            ones = np.pad(np.ones_like(centred), ((0, 0), (1, 1), (1, 1), (0, 0)))
            sums, counts = (sum(a[:, i:i + 7, j:j + 9] for i in range(3) for j in range(3)) for a in (padded, ones))
        results = np.empty(sums.shape, object)
        for count in np.unique(counts):
            scale, shift = scale_of(1 / int(count) * ratio)
            results[counts == count] = shifted(sums[counts == count] * scale, shift)
        got = run(data, values, tmp_path, "rockchip").astype(int)
        assert np.array_equal(got, finished(results, out_quant[1], dtype).ravel())
        assert np.abs(got - exact).max() <= 1
