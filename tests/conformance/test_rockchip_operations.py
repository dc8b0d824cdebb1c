# SPDX-License-Identifier: MIT
"""Operations alone on Rockchip: each is a program of its own, or is refused with a fact and runs on the CPU.

What is taken is within 1 of TFLite's reference kernels, and equal to them where only values are moved, chosen or looked
up. What is refused gives, through libmica, what the reference kernels give.
"""

import json
import math
import subprocess

import model_builder as mb
import numpy as np
import pytest

from conftest import BUILD, FULL, kernel_count

MICA = BUILD / "tools" / "mica" / "mica"
TYPES = ["uint8", "int8"]
# Few channels, an odd number of them, surfaces of 8 and of 16 that are full, begun, and several.
SHAPES = [(1, 5, 7, 3), (1, 9, 4, 8), (1, 6, 6, 16), (1, 3, 5, 24), (1, 4, 4, 33), (1, 1, 1, 100), (1, 11, 20, 40)]
QUANTS = ((0.03, 7), (0.11, 30))


def distances(got, want):
    return [int(np.abs(g.astype(np.int64) - w.astype(np.int64)).max(initial=0)) for g, w in zip(got, want)]


def check(runner, model, tolerance, seed=1, inputs=None):
    """The operation runs on the NPU and is at most `tolerance` off."""
    inputs = runner.inputs(model, seed) if inputs is None else inputs
    interpreter = runner.delegated_interpreter(model)
    got = runner.run(interpreter, inputs)
    assert kernel_count(interpreter) == 1
    assert all(kernel["op_name"] == "DELEGATE" for kernel in interpreter._get_ops_details()[1:])
    want = runner.reference(model, inputs)
    assert max(distances(got, want)) <= tolerance
    assert all(g.shape == w.shape for g, w in zip(got, want))


def places(runner, model, tmp_path):
    """Where each operation of a model runs."""
    (tmp_path / "m.tflite").write_bytes(model)
    command = [MICA, "info", tmp_path / "m.tflite", "--device", runner.device, "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["operations"]


def check_whole(runner, model, tolerance, tmp_path, seed=1):
    """All operations run on the NPU, as one kernel."""
    assert [op for op in places(runner, model, tmp_path) if op["runs_on"] != "NPU"] == []
    inputs = runner.inputs(model, seed)
    assert max(distances(runner.delegated(model, inputs, 1), runner.reference(model, inputs))) <= tolerance


def check_run(runner, path, inputs, want, tmp_path):
    """`mica run` of the file gives these bytes."""
    command = [MICA, "run", path, "--device", runner.device]
    for i, value in enumerate(inputs):
        value.tofile(tmp_path / f"in{i}")
        command += ["--input", tmp_path / f"in{i}"]
    for i, _ in enumerate(want):
        command += ["--output", tmp_path / f"out{i}"]
    subprocess.run(command, capture_output=True, check=True)
    for i, w in enumerate(want):
        np.testing.assert_array_equal(np.fromfile(tmp_path / f"out{i}", w.dtype).reshape(w.shape), w)


def check_refused(runner, model, words, tmp_path, seed=1):
    """The reason has `words`, and the CPU gives what the reference kernels give."""
    inputs = runner.inputs(model, seed)
    operations = places(runner, model, tmp_path)
    assert [op["runs_on"] for op in operations] == ["CPU"]
    assert words in operations[0]["reason"]
    check_run(runner, tmp_path / "m.tflite", inputs, runner.reference(model, inputs), tmp_path)


def model_of(dtype, shape, build, quant=None, seed=2):
    m = mb.Model(dtype, seed)
    outputs = build(m, m.input(shape, quant))
    return m.finish(outputs if isinstance(outputs, list) else [outputs])


def every_code(dtype, shape=(1, 16, 16)):
    return np.arange(256).astype(np.uint8).view(dtype).reshape(*shape, 256 // math.prod(shape))


# ---- two tensors ----------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_arithmetic_of_two(runner, name, shape, dtype):
    for activation in (None, "relu", "relu6", "relu_n1_to_1"):
        m = mb.Model(dtype, 3)
        a, b = m.input(shape, QUANTS[0]), m.input(shape, QUANTS[1])
        check(runner, m.finish([getattr(m, name)(a, b, activation)]), 1)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_choice_of_two(runner, name, shape, dtype):
    m = mb.Model(dtype, 3)
    a = m.input(shape)
    check(runner, m.finish([getattr(m, name)(a, m.input(shape, m._quant_of(a)))]), 0)


BROADCAST = [((1, 5, 4, 24), (1, 1, 1, 24)), ((1, 5, 4, 24), (24,)), ((1, 5, 4, 24), (1, 5, 4, 1)),
             ((1, 5, 4, 24), (1,)),
             ((1, 5, 4, 24), (1, 1, 4, 24)), ((1, 5, 4, 24), (1, 5, 1, 24)), ((1, 5, 4, 24), (1, 1, 4, 1)),
             ((1, 4, 40), (1, 1, 40)), ((1, 1, 4, 24), (1, 5, 1, 24)), ((1, 1, 1, 16), (1, 12, 12, 16))]


@pytest.mark.parametrize("constant", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize("shapes", BROADCAST, ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul", "maximum", "minimum"])
def test_broadcasting(runner, name, shapes, constant):
    chooses = name in ("maximum", "minimum")
    for dtype in TYPES:
        for swap in (False, True):
            m = mb.Model(dtype, 4)
            a, quant = m.input(shapes[0], QUANTS[0]), QUANTS[0] if chooses else QUANTS[1]
            b = m.random_constant(shapes[1], quant) if constant else m.input(shapes[1], quant)
            check(runner, m.finish([getattr(m, name)(*((b, a) if swap else (a, b)))]), 0 if chooses else 1)


@pytest.mark.parametrize("scales", [(1.0, 1.0, 2.0), (0.5, 0.001, 0.4), (0.001, 0.5, 0.4), (0.0007, 3.0, 5.0),
                                    (0.25, 0.125, 0.5), (0.013, 0.017, 0.004), (0.02, 0.02, 0.0001), (0.01, 0.01, 9.0)],
                         ids=str)
@pytest.mark.parametrize("name", ["add", "sub", "mul"])
def test_unequal_scales(runner, name, scales):
    for dtype, shift in (("uint8", 128), ("int8", 0)):
        m = mb.Model(dtype, 5)
        a, b = m.input((1, 16, 16, 32), (scales[0], 5 + shift)), m.input((1, 16, 16, 32), (scales[1], shift - 11))
        model = m.finish([getattr(m, name)(a, b, output_quant=(scales[2], 1 + shift))])
        interpreter = runner.delegated_interpreter(model)
        inputs = runner.inputs(model)
        got = runner.run(interpreter, inputs)
        assert max(distances(got, runner.reference(model, inputs))) <= kernel_count(interpreter)


# ---- one value from one ----------------------------------------------------------


UNARY = ["RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"]
SIGNED_ONLY = ["ABS", "NEG", "EXP"]


@pytest.mark.parametrize("dtype, code", [(d, c) for c in UNARY for d in TYPES] + [("int8", c) for c in SIGNED_ONLY])
def test_unary_of_every_code(runner, dtype, code):
    zero = 12 + (128 if dtype == "uint8" else 0)
    for scale in (0.004, 0.05):
        for ratio in (1, 0.37, 2.1):
            model = model_of(dtype, (1, 16, 16, 1), lambda m, x: m.unary(x, code, (x.scale * ratio, zero - 9)),
                             (scale, zero))
            check(runner, model, 0, inputs=[every_code(dtype)])


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ["tanh", "logistic", "hard_swish", "leaky_relu"])
def test_curves_of_every_code(runner, name, dtype):
    zero = 12 + (128 if dtype == "uint8" else 0)
    for scale in (0.004, 0.031, 0.2):
        model = model_of(dtype, (1, 4, 4, 16), lambda m, x: getattr(m, name)(x), (scale, zero))
        check(runner, model, 0, inputs=[every_code(dtype, (1, 4, 4))])


@pytest.mark.parametrize("code", ["SQRT", "RSQRT"])
def test_roots_of_every_code(runner, code):
    model = model_of("int8", (1, 16, 16, 1), lambda m, x: m.unary(x, code, (0.05, -3)), (0.03, -20))
    check(runner, model, 0, inputs=[np.maximum(every_code("int8"), np.int8(-20))])


@pytest.mark.parametrize("shape", SHAPES + [(33,), (1, 257), (2, 3, 5), (2, 4, 5, 6), (1, 200, 3, 9)], ids=str)
def test_lookups_of_every_shape(runner, shape):
    for dtype in TYPES:
        check(runner, model_of(dtype, shape, lambda m, x: m.logistic(x)), 0)


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_quantize(runner, source, target):
    for ratio in (1, 0.4, 3.3):
        quant = (0.02, 20 + (128 if source == "uint8" else 0))
        to = (0.02 * ratio, -10 + (128 if target == "uint8" else 0))
        model = model_of(source, (1, 16, 16, 1), lambda m, x: m.quantize(x, target, to), quant)
        check(runner, model, 0, inputs=[every_code(source)])


# ---- pools and sums ----------------------------------------------------------------


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("window, stride", [((2, 2), (2, 2)), ((3, 3), (1, 1)), ((3, 3), (2, 2)), ((3, 2), (2, 1)),
                                            ((5, 5), (1, 1)), ((1, 4), (1, 4)), ((7, 7), (7, 7))], ids=str)
@pytest.mark.parametrize("kind", ["average", "max"])
def test_pool(runner, kind, window, stride, padding):
    for dtype in TYPES:
        for shape in ((1, 12, 15, 24), (1, 9, 9, 3), (1, 8, 30, 16)):
            for activation in (None, "relu6"):
                model = model_of(dtype, shape, lambda m, x: m.pool(x, kind, window, stride, padding, activation))
                check(runner, model, 1 if kind == "average" else 0)


@pytest.mark.parametrize("size", [(7, 7), (13, 4), (31, 31), (40, 33), (1, 100)], ids=str)
def test_pool_of_the_whole_image(runner, size):
    for dtype in TYPES:
        check(runner, model_of(dtype, (1, *size, 24), lambda m, x: m.pool(x, "average", size)), 1)


@pytest.mark.parametrize("axes", [(1, 2), (1,), (2,)], ids=str)
@pytest.mark.parametrize("keep", [False, True])
def test_mean(runner, axes, keep):
    for dtype in TYPES:
        for shape in ((1, 7, 7, 40), (1, 12, 5, 3), (1, 33, 40, 16)):
            check(runner, model_of(dtype, shape, lambda m, x: m.reduce(x, axes, keep_dims=keep)), 1)


@pytest.mark.parametrize("axes", [(1, 2), (1,), (2,)], ids=str)
@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("kind, most", [("REDUCE_MAX", 0), ("REDUCE_MIN", 0), ("SUM", 1)])
def test_reduce(runner, axes, keep, kind, most):
    for dtype in TYPES if kind != "SUM" else ["uint8"]:  # TFLite's sums of int8 are none
        for shape in ((1, 7, 7, 40), (1, 12, 5, 3), (1, 1, 9, 16), (1, 31, 20, 24)):
            check(runner, model_of(dtype, shape, lambda m, x: m.reduce(x, axes, kind, keep)), most)


@pytest.mark.parametrize("scales", [(0.05, 0.05, 0.6), (0.05, 0.05, 0.02), (0.05, 0.031, 0.5), (0.013, 0.05, 0.17),
                                    (0.05, 0.004, 1.2), (0.02, 0.0213, 0.0031)], ids=str)
@pytest.mark.parametrize("zero", [-128, -100, 3])
@pytest.mark.parametrize("shape", [(1, 6, 5, 16), (1, 1, 1, 24), (1, 6, 5, 1), (1, 1)], ids=str)
def test_squared_difference(runner, shape, zero, scales):
    m = mb.Model("int8", 3)
    a = m.input((1, 6, 5, 24) if shape[-1] != 16 else (1, 6, 5, 16), (scales[0], -5))
    b = m.input(shape, (scales[1], 11))
    check(runner, m.finish([m.squared_difference(a, b, (scales[2], zero))]), 1)


@pytest.mark.parametrize("slopes", [None, (5, 7, 24), (1,), (7, 1)], ids=str)
@pytest.mark.parametrize("quant", [None, (0.004, 17), (0.9, 3)], ids=str)
def test_prelu(runner, slopes, quant):
    for dtype in TYPES:
        m = mb.Model(dtype, 3)
        x = m.input((1, 5, 7, 24))
        alpha = m.random_constant(slopes, (0.01, 12)) if slopes else None
        check(runner, m.finish([m.prelu(x, alpha, quant)]), 1)


@pytest.mark.parametrize("axes", [(3,), (-1,), (1, 2, 3), (2, 3)], ids=str)
@pytest.mark.parametrize("keep", [False, True])
def test_mean_of_channels(runner, axes, keep):
    for dtype in TYPES:
        for shape in ((1, 7, 6, 40), (1, 12, 5, 3), (1, 1, 9, 200)):
            check(runner, model_of(dtype, shape, lambda m, x: m.reduce(x, axes, "MEAN", keep)), 1)
            if dtype == "uint8":
                check(runner, model_of(dtype, shape, lambda m, x: m.reduce(x, axes, "SUM", keep)), 1)


@pytest.mark.parametrize("columns", [1, 3])
def test_convolution_of_many_rows(runner, columns):
    """More short rows than the field for rows to fetch ahead can count."""
    for dtype in TYPES:
        check(runner, model_of(dtype, (1, 2047, columns, 16), lambda m, x: m.conv2d(x, 20, (3, 1))), 1)


# ---- moves ---------------------------------------------------------------------------


@pytest.mark.parametrize("channels", [(16, 16), (8, 24), (3, 5), (17, 15), (1, 1, 1), (40, 16, 7), (24, 8, 32, 8)],
                         ids=str)
def test_concatenation_of_channels(runner, channels):
    for dtype in TYPES:
        check(runner, mb.concat([(1, 5, 4, c) for c in channels], dtype=dtype), 0)


@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("channels", [3, 8, 16, 40])
def test_concatenation_of_rows_and_columns(runner, axis, channels):
    shapes = [[1, 4, 5, channels] for _ in range(3)]
    shapes[1][axis] = 2
    check(runner, mb.concat([tuple(s) for s in shapes], axis), 0)


def test_concatenation_of_what_is_quantized_differently(runner):
    """TFLite has that for uint8 only."""
    m = mb.Model("uint8", 3)
    inputs = [m.input((1, 6, 5, 16), quant) for quant in ((0.02, 120), (0.03, 99), (0.02, 121))]
    check(runner, m.finish([m.concat(inputs, output_quant=(0.03, 110))]), 1)


@pytest.mark.parametrize("shape, axis, count", [((1, 6, 4, 32), 3, 2), ((1, 6, 4, 48), 3, 6), ((1, 6, 4, 15), 3, 5),
                                                ((1, 6, 4, 40), 3, 4), ((1, 6, 4, 24), 1, 3), ((1, 6, 4, 9), 2, 2)],
                         ids=str)
def test_split(runner, shape, axis, count):
    for dtype in TYPES:
        check(runner, model_of(dtype, shape, lambda m, x: m.split(x, count, axis)), 0)


def test_split_into_unequal_parts(runner):
    check(runner, model_of("int8", (1, 6, 4, 40), lambda m, x: m.split_v(x, [16, 3, -1], 3)), 0)


@pytest.mark.parametrize("begin, size", [((0, 0, 0, 16), (1, 9, 8, 16)), ((0, 2, 3, 0), (1, 4, 5, 40)),
                                         ((0, 0, 0, 5), (1, 9, 8, 20)), ((0, 8, 7, 39), (1, 1, 1, 1)),
                                         ((0, 1, 0, 8), (1, -1, 8, -1))], ids=str)
def test_slice(runner, begin, size):
    for dtype in TYPES:
        check(runner, model_of(dtype, (1, 9, 8, 40), lambda m, x: m.slice(x, begin, size)), 0)


@pytest.mark.parametrize("strides", [(1, 1, 1, 1), (1, 2, 2, 1), (1, 3, 1, 1)], ids=str)
def test_strided_slice(runner, strides):
    begin, end = (0, 1, 2, 0), (1, 9, 8, 24)
    check(runner, model_of("uint8", end, lambda m, x: m.strided_slice(x, begin, end, strides)), 0)


@pytest.mark.parametrize("begin, end, strides", [((0, 8, 0, 0), (1, 2, 8, 24), (1, -1, 1, 1)),
                                                 ((0, 0, 7, 23), (1, 9, 1, 3), (1, 1, -2, -3)),
                                                 ((0, 0, 0, 0), (1, 9, 8, 24), (1, 8, 7, 5))], ids=str)
def test_strided_slice_backwards_or_far(runner, begin, end, strides):
    for dtype in TYPES:
        check(runner, model_of(dtype, (1, 9, 8, 24), lambda m, x: m.strided_slice(x, begin, end, strides)), 0)


@pytest.mark.parametrize("paddings", [((0, 0), (1, 2), (3, 0), (0, 0)), ((0, 0), (0, 1), (0, 1), (0, 0)),
                                      ((0, 0), (20, 0), (0, 17), (0, 0)), ((0, 0), (1, 1), (1, 1), (3, 5)),
                                      ((0, 0), (0, 0), (0, 0), (16, 8))], ids=str)
def test_pad(runner, paddings):
    for dtype in TYPES:
        for shape in ((1, 7, 6, 16), (1, 4, 9, 5)):
            check(runner, model_of(dtype, shape, lambda m, x: m.pad(x, paddings)), 0)


@pytest.mark.parametrize("options", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str)
@pytest.mark.parametrize("sizes", [((6, 5), (12, 10)), ((6, 5), (24, 20)), ((12, 10), (6, 5)), ((7, 7), (7, 14)),
                                   ((4, 4), (1, 1)), ((1, 1), (9, 9))], ids=str)
@pytest.mark.parametrize("kind", ["bilinear", "nearest"])
def test_resize(runner, kind, sizes, options):
    for dtype in TYPES:
        model = model_of(dtype, (1, *sizes[0], 24), lambda m, x: m.resize(x, sizes[1], kind, **options))
        inputs = runner.inputs(model)
        interpreter = runner.delegated_interpreter(model)
        got = runner.run(interpreter, inputs)
        tolerance = 1 if kind == "bilinear" and kernel_count(interpreter) else 0
        plain = runner.delegated_interpreter(model, experimental_op_resolver_type=runner.resolvers.BUILTIN_REF)
        got = runner.run(plain, inputs)
        assert max(distances(got, runner.reference(model, inputs))) <= tolerance


@pytest.mark.parametrize("sizes, kind, options", [
    ((5, 4), "bilinear", {"factor": 8}), ((5, 4), "bilinear", {"factor": 16}), ((3, 3), "bilinear", {"factor": 32}),
    ((5, 4), "bilinear", {"factor": 8, "half_pixel_centers": True}), ((4, 5), "nearest", {"factor": 16}),
    ((9, 5), "bilinear", {"factor": 16, "align_corners": True}), ((3, 4), "bilinear", {"factor": 64}),
    ((5, 3), "bilinear", {"factor": 8, "align_corners": True})], ids=str)
def test_resize_by_large_factors(runner, sizes, kind, options):
    """Two passes where weights don't fit 8 bits or the core has no such stride."""
    options = dict(options)
    factor, aligned = options.pop("factor"), int(options.get("align_corners", False))
    size = [(d - aligned) * factor + aligned for d in sizes]
    for dtype in TYPES:
        model = model_of(dtype, (1, *sizes, 11), lambda m, x: m.resize(x, size, kind, **options))
        check(runner, model, 1 if kind == "bilinear" else 0)


@pytest.mark.parametrize("block", [2, 3, 4])
def test_depth_and_space(runner, block):
    """Transposed convolutions have no stride of 3."""
    for dtype in TYPES:
        for channels in (1, 4, 8, 16):
            deep, wide = (1, 4, 5, channels * block**2), (1, 4 * block, 5 * block, channels)
            check(runner, model_of(dtype, wide, lambda m, x: m.space_to_depth(x, block)), 0)
            if block != 3:
                check(runner, model_of(dtype, deep, lambda m, x: m.depth_to_space(x, block)), 0)


@pytest.mark.parametrize("source, target", [((1, 1, 1, 40), (1, 40)), ((1, 40), (1, 1, 1, 40)), ((1, 6, 4, 16), (1, 24, 16)),
                                            ((1, 24, 16), (1, 4, 6, 16)), ((1, 4, 4, 16), (4, 4, 16))], ids=str)
def test_reshape_that_keeps_channels(runner, source, target):
    for dtype in TYPES:
        check(runner, model_of(dtype, source, lambda m, x: m.reshape(x, target)), 0)


# Splits, joins, both by way of a common divisor, in two steps, more rows than an image has.
RELAYOUTS = [((1, 5, 6, 24), (1, 180, 4)), ((1, 5, 6, 4), (1, 5, 1, 24)), ((1, 7, 6, 20), (1, 7, 8, 15)),
             ((1, 3, 4, 96), (1, 3, 4 * 32, 3)), ((1, 40, 60, 6), (1, 80, 60, 3)), ((1, 2, 2, 546), (1, 24, 91))]


@pytest.mark.parametrize("source, target", RELAYOUTS, ids=str)
def test_reshape_that_is_looked_at(runner, source, target, tmp_path):
    """Operations in front and behind need it in the NPU's own layout."""
    for dtype in TYPES:
        m = mb.Model(dtype, 2)
        x = m.pad(m.input(source), [(0, 0)] * 4)
        y = m.reshape(x, (1, *target[-3:]) if len(target) > 3 else (1, 1, *target[1:]))
        check_whole(runner, m.finish([m.pad(y, [(0, 0), (1, 0), (0, 1), (0, 0)])]), 0, tmp_path)


def test_reshape_of_what_the_host_writes(runner, tmp_path):
    for dtype in TYPES:
        m = mb.Model(dtype, 2)
        x = m.reshape(m.input((1, 1960)), (1, 49, 40, 1))
        check_whole(runner, m.finish([m.pad(x, [(0, 0), (1, 0), (0, 1), (0, 0)])]), 0, tmp_path)


def check_executable(runner, model, tmp_path):
    """What is saved and loaded gives the same."""
    inputs = runner.inputs(model, 4)
    (tmp_path / "m.tflite").write_bytes(model)
    subprocess.run([MICA, "compile", tmp_path / "m.tflite", "--device", runner.device, "-o", tmp_path / "m.mica"],
                   capture_output=True, check=True)
    check_run(runner, tmp_path / "m.mica", inputs, runner.delegated(model, inputs, 1), tmp_path)


@pytest.mark.parametrize("curve", [False, True])
@pytest.mark.parametrize("alike", [False, True])
def test_outputs_in_pieces(runner, alike, curve, tmp_path):
    """As detectors end: parts of images, one behind the other, whose layout nobody on the NPU looks at."""
    for dtype in TYPES:
        if not alike and dtype == "int8":
            continue  # TFLite has it for uint8 only
        m = mb.Model(dtype, 2)
        quants = [(0.03, 5), (0.03, 5) if alike else (0.05, 9), (0.03, 5)]
        parts = []
        for (h, w, c), quant in zip([(5, 6, 24), (3, 3, 40), (1, 1, 8)], quants):
            x = m.pad(m.input((1, h, w, c), quant), [(0, 0), (1, 0), (0, 0), (0, 0)])
            parts.append(m.reshape(x, (1, (h + 1) * w * c // 4, 1, 4)))
        joined = m.concat([m.concat(parts[:2], 1, output_quant=quants[0]), parts[2]], 1, output_quant=quants[0])
        joined = m.reshape(joined, (1, joined.shape[1], 4))
        model = m.finish([m.logistic(joined) if curve else joined, parts[1]])
        check_whole(runner, model, 0 if alike else 1, tmp_path)
        check_executable(runner, model, tmp_path)


@pytest.mark.parametrize("paddings", [((0, 0), (2, 1), (0, 0), (0, 0)), ((0, 0), (0, 0), (3, 1), (0, 0)),
                                      ((0, 0), (1, 2), (3, 3), (1, 0))], ids=str)
@pytest.mark.parametrize("mode", ["REFLECT", "SYMMETRIC"])
def test_mirror_pad(runner, paddings, mode):
    for dtype in TYPES:
        for shape in ((1, 7, 6, 16), (1, 4, 9, 5), (1, 20, 70, 3)):
            check(runner, model_of(dtype, shape, lambda m, x: m.mirror_pad(x, paddings, mode)), 0)


@pytest.mark.parametrize("axes", [(1,), (2,), (3,), (1, 2), (-1, -2)], ids=str)
def test_reverse(runner, axes):
    for dtype in TYPES:
        for shape in ((1, 7, 6, 16), (1, 4, 50, 5), (1, 30, 3, 20)):
            check(runner, model_of(dtype, shape, lambda m, x: m.reverse(x, axes)), 0)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("indices", [[2, 0, 1], [1, 2, 3, 4, 0, 1], [5, 5, 0, 1, 2, 3, 4, 1, 0, 3], 3,
                                     [[0, 3], [4, 1]]], ids=str)
def test_gather(runner, axis, indices):
    for dtype in TYPES:
        for shape in ((1, 7, 6, 16), (1, 6, 40, 9)):
            check(runner, model_of(dtype, shape, lambda m, x: m.gather(x, indices, axis)), 0)


def test_gather_of_a_single_row(runner):
    for dtype in TYPES:
        check(runner, model_of(dtype, (1, 50, 12), lambda m, x: m.gather(x, [7, 8, 9, 49, 0, 1, 30], 1)), 0)


@pytest.mark.parametrize("shape, indices", [((1, 6, 5, 8), [[0, 3], [0, 1]]), ((6, 5, 8), [[0, 3], [5, 1], [2, 2]]),
                                            ((7, 20), [[3], [1]]), ((1, 6, 5, 8), [[[0, 3, 1]], [[0, 2, 4]]])], ids=str)
def test_gather_nd(runner, shape, indices):
    for dtype in TYPES:
        check(runner, model_of(dtype, shape, lambda m, x: m.gather_nd(x, indices)), 0)


@pytest.mark.parametrize("shape, axis", [((7, 6, 16), 0), ((1, 7, 6, 16), 1), ((1, 7, 16), 2), ((9, 5), 1),
                                         ((1, 3, 4, 5), 4), ((1, 2, 6, 20), -2), ((9, 16), -1)], ids=str)
def test_pack(runner, shape, axis):
    for dtype in TYPES:
        m = mb.Model(dtype, 3)
        first = m.input(shape)
        tensors = [first] + [m.input(shape, (first.scale, first.zero_point)) for _ in range(2)]
        check(runner, m.finish([m.pack(tensors, axis)]), 0)


@pytest.mark.parametrize("shape, axis", [((3, 6, 5, 16), 0), ((1, 3, 5, 16), 1), ((1, 7, 3, 16), 2), ((1, 7, 6, 4), 3),
                                         ((4, 20), 0), ((20, 4), 1)], ids=str)
def test_unpack(runner, shape, axis):
    for dtype in TYPES:
        check(runner, model_of(dtype, shape, lambda m, x: m.unpack(x, axis)), 0)


@pytest.mark.parametrize("shape, order", [((1, 7, 6, 16), (0, 2, 1, 3)), ((1, 5, 7, 6), (0, 1, 3, 2)),
                                          ((1, 5, 7, 6), (0, 3, 1, 2)), ((1, 5, 7, 6), (0, 2, 3, 1)),
                                          ((1, 5, 7, 6), (0, 3, 2, 1)), ((1, 1, 7, 6), (1, 2, 0, 3)),
                                          ((1, 9, 1, 20), (0, 2, 3, 1)), ((12, 9), (1, 0)),
                                          ((2, 3, 4, 8, 4), (0, 1, 2, 4, 3)),
                                          ((1, 30, 17, 3), (2, 0, 1, 3)), ((1, 5, 4, 1), (0, 3, 2, 1)),
                                          ((1, 6, 1, 5), (0, 3, 1, 2)), ((1, 7, 1, 1), (0, 3, 2, 1))], ids=str)
def test_transpose(runner, shape, order):
    for dtype in TYPES:
        check(runner, model_of(dtype, shape, lambda m, x: m.transpose(x, order)), 0)




# ---- with weights ----------------------------------------------------------------------


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("kernel, stride", [((2, 2), (2, 2)), ((3, 3), (2, 2)), ((4, 4), (2, 2)), ((3, 3), (1, 1)),
                                            ((8, 8), (4, 4)), ((2, 3), (2, 1))], ids=str)
def test_transpose_conv(runner, kernel, stride, padding):
    for dtype, per_channel in (("uint8", False), ("int8", False), ("int8", True)):
        runner.check(mb.transpose_conv((6, 5), 20, 24, kernel, stride, padding, dtype, per_channel, seed=6))


@pytest.mark.parametrize("activation", [None, "relu", "relu6", "relu_n1_to_1"])
def test_per_channel(runner, activation):
    for channels in ((16, 16), (24, 40), (3, 33)):
        runner.check(mb.conv2d((9, 10), *channels, (3, 3), dtype="int8", per_channel=True, activation=activation, seed=7))
    runner.check(mb.depthwise((9, 10), 40, dtype="int8", per_channel=True, activation=activation, seed=7))


# A group of 8 channels for itself, between others: on RK356x its task fetches a surface that the tensor hasn't.
GROUPS = [1.0] * 8 + [1e-4] * 8


@pytest.mark.parametrize("size", [24, 48])
def test_groups_of_channels_with_conversions_of_their_own(runner, size):
    for channels in (16, 24, 40):
        scales = np.resize(np.float32(GROUPS) * 0.01, channels)
        quant = (scales, np.zeros(channels, np.int64))
        runner.check(mb.depthwise((size, size), channels, dtype="int8", weight_quant=quant, seed=11))


@pytest.mark.parametrize("dilation", [(2, 2), (3, 1), (5, 5)], ids=str)
def test_dilation(runner, dilation):
    runner.check(mb.conv2d((20, 21), 16, 24, (3, 3), dilation=dilation, dtype="int8", per_channel=True, seed=8))
    runner.check(mb.depthwise((20, 21), 40, kernel=(3, 3), dilation=dilation, seed=8))


@pytest.mark.parametrize("multiplier", [2, 3, 8])
def test_depth_multiplier(runner, multiplier):
    for channels in (1, 3, 16):
        runner.check(mb.depthwise((9, 10), channels, multiplier, dtype="int8", per_channel=True, seed=9))


@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("size", [(17, 23), (64, 96)], ids=str)
def test_first_layers(runner, channels, size):
    for dtype in TYPES:
        for kernel, stride in (((3, 3), (2, 2)), ((7, 7), (2, 2)), ((4, 4), (4, 4)), ((1, 1), (1, 1))):
            runner.check(mb.conv2d(size, channels, 20, kernel, stride, dtype=dtype, seed=10))


def random_convolution(seed):
    """Any geometry within the registers' ranges."""
    rng = np.random.default_rng(seed)
    kernel = tuple(int(k) for k in rng.choice([1, 1, 2, 3, 3, 5, 7, 11], 2))
    dtype = str(rng.choice(TYPES))
    options = {"dtype": dtype, "per_channel": dtype == "int8" and bool(rng.integers(2)), "seed": seed,
               "activation": rng.choice([None, "relu", "relu6"]), "padding": str(rng.choice(["SAME", "VALID"])),
               "stride": tuple(int(s) for s in rng.integers(1, 4, 2)), "kernel": kernel}
    size = tuple(int(k + s) for k, s in zip(kernel, rng.choice([0, 1, 5, 12, 40, 130], 2)))
    if rng.integers(3) == 0:
        return mb.depthwise(size, int(rng.integers(1, 200)), **options)
    return mb.conv2d(size, int(rng.integers(1, 90)), int(rng.integers(1, 130)), **options)


@pytest.mark.parametrize("seed", range(2000 if FULL else 40))
def test_random_convolution(runner, seed):
    runner.check(random_convolution(seed), seed)


# ---- refusals ----------------------------------------------------------------------------

REFUSED = {
    "softmax": ((1, 12, 5, 8), lambda m, x: m.softmax(x), "no divider"),
    "arg_max": ((1, 12, 5, 8), lambda m, x: m.arg_max(x), "an index or a list"),
    "transpose": ((1, 12, 40, 8), lambda m, x: m.transpose(x, (0, 2, 1, 3)), "more than 32 columns"),
    "dequantize": ((1, 12, 5, 8), lambda m, x: m.dequantize(x), "not 8-bit"),
    "gather": ((1, 500, 5, 8), lambda m, x: m.gather(x, list(range(0, 500, 7)), 1), "too many pieces"),
    "unpack": ((1, 2, 37, 2), lambda m, x: m.unpack(x, 3), "no common divisor"),
    "stride": ((1, 12, 5, 8), lambda m, x: m.conv2d(x, 8, (1, 1), (8, 8)), "3-bit fields"),
    "kernel": ((1, 12, 5, 8), lambda m, x: m.conv2d(x, 8, (33, 1), padding="SAME"), "5-bit fields"),
    "depth_to_space": ((1, 12, 5, 9), lambda m, x: m.depth_to_space(x, 3), "strides 1, 2, 4 and 8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(runner, name, tmp_path):
    shape, build, words = REFUSED[name]
    check_refused(runner, model_of("int8", shape, build), words, tmp_path)
