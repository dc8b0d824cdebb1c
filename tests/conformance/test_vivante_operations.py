# SPDX-License-Identifier: MIT
"""Operations made of convolutions and moves: whole on the NPU, moves exact, sums within 1 of TFLite's reference."""

import model_builder as mb
import numpy as np
import pytest
from conftest import assert_close

VIVANTE = ["sim:a311d", "sim:imx8mp", "sim:s905d3"]


@pytest.fixture(autouse=True)
def vivante_only(runner):
    if runner.device not in VIVANTE:
        pytest.skip("about another family of chips")

QUANT = {"uint8": (0.05, 120), "int8": (0.05, -7)}


def build(dtype, shape, *operations, seed=0):
    m = mb.Model(dtype, seed=seed)
    x = m.input(shape, QUANT[dtype])
    for operation in operations:
        x = operation(m, x)
    return m.finish(list(x) if isinstance(x, (list, tuple)) else [x])


def check(runner, model, tolerance, seed=0):
    inputs = runner.inputs(model, seed)
    for got, want in zip(runner.delegated(model, inputs), runner.reference(model, inputs)):
        assert_close(got, want, tolerance)


def other(m, x, shape):
    return m.input(shape, m._quant_of(x))


SHAPE = (1, 9, 14, 21)
EXACT = {
    "transpose": lambda m, x: m.transpose(x, [0, 2, 3, 1]),
    "transpose whole": lambda m, x: m.transpose(x, [3, 1, 0, 2]),
    "split channels": lambda m, x: m.split(x, 3, -1),
    "split rows": lambda m, x: m.split(x, 3, 1),
    "split_v": lambda m, x: m.split_v(x, [5, 9], 2),
    "slice": lambda m, x: m.slice(x, [0, 2, 3, 5], [1, 4, 9, 11]),
    "strided slice": lambda m, x: m.strided_slice(x, [0, 1, 0, 2], [1, 9, 14, 21], [1, 2, 3, 4]),
    "concatenation of rows": lambda m, x: m.concat([x, other(m, x, (1, 2, 14, 21)), x], 1),
    "concatenation of columns": lambda m, x: m.concat([x, other(m, x, (1, 9, 1, 21))], 2),
    "pack": lambda m, x: m.pack([m.reshape(x, (9, 14, 21)), other(m, x, (9, 14, 21))], 1),
    "unpack": lambda m, x: m.unpack(x, 1),
    "depth to space": lambda m, x: m.depth_to_space(m.slice(x, [0, 0, 0, 0], [1, 9, 14, 18]), 3),
    "space to depth": lambda m, x: m.space_to_depth(m.slice(x, [0, 0, 0, 0], [1, 8, 14, 21]), 2),
    "nearest": lambda m, x: m.resize(x, (18, 42), "nearest"),
    "maximum": lambda m, x: m.maximum(x, other(m, x, SHAPE)),
    "minimum": lambda m, x: m.minimum(x, other(m, x, SHAPE)),
    "max pool 2": lambda m, x: m.pool(x, "max", (2, 2), (2, 2), "VALID"),
    "max pool 3": lambda m, x: m.pool(x, "max", (3, 3), (2, 2), "SAME"),
    "max pool 3 step 1": lambda m, x: m.pool(x, "max", (3, 3), (1, 1), "SAME"),
    "max pool 5": lambda m, x: m.pool(x, "max", (5, 5), (1, 1), "SAME"),
    "max pool 6": lambda m, x: m.pool(x, "max", (6, 6), (2, 2), "VALID"),
    "max pool 1x2": lambda m, x: m.pool(x, "max", (1, 2), (1, 2), "SAME"),
    "max pool 5x1": lambda m, x: m.pool(x, "max", (5, 1), (1, 1), "SAME"),
    "max pool 3x7 step 2x3": lambda m, x: m.pool(x, "max", (3, 7), (2, 3), "SAME"),
    "max pool 3 step 3": lambda m, x: m.pool(x, "max", (3, 3), (3, 3), "VALID"),
    "max pool of single pixels": lambda m, x: m.pool(x, "max", (1, 1), (2, 2), "SAME"),
    "max pool with a clamp inside": lambda m, x: m.pool(x, "max", (3, 3), (2, 2), "SAME", "relu_n1_to_1"),
    "max of all": lambda m, x: m.reduce(x, [1, 2], "REDUCE_MAX", True),
    "max of channels": lambda m, x: m.reduce(x, [3], "REDUCE_MAX"),
    "max of everything": lambda m, x: m.reduce(x, [1, 2, 3], "REDUCE_MAX"),
    "min of columns": lambda m, x: m.reduce(x, [2], "REDUCE_MIN"),
    "pad channels": lambda m, x: m.pad(x, [[0, 0], [0, 0], [0, 0], [3, 5]]),
    "pad all": lambda m, x: m.pad_v2(x, [[1, 0], [2, 1], [0, 3], [1, 1]], -3 if m.dtype == "int8" else 7),
    "nearest, larger by 4/3 and smaller": lambda m, x: m.resize(x, (12, 7), "nearest"),
    "nearest, corners": lambda m, x: m.resize(x, (17, 27), "nearest", align_corners=True),
    "nearest, half pixels": lambda m, x: m.resize(x, (15, 35), "nearest", half_pixel_centers=True),
    "bilinear of one pixel": lambda m, x: m.resize(m.slice(x, [0, 3, 4, 0], [1, 1, 1, 21]), (33, 33), "bilinear"),
    "pad with a value": lambda m, x: m.pad_v2(x, [[0, 0], [1, 2], [0, 3], [0, 0]], 5),
    "mirror pad": lambda m, x: m.mirror_pad(x, [[0, 0], [1, 2], [3, 0], [0, 4]], "REFLECT"),
    "mirror pad with the border": lambda m, x: m.mirror_pad(x, [[0, 0], [2, 1], [0, 3], [1, 0]], "SYMMETRIC"),
    "relu6": lambda m, x: m.unary(x, "RELU6"),
    "relu_n1_to_1": lambda m, x: m.unary(x, "RELU_N1_TO_1"),
    "relu_0_to_1": lambda m, x: m.unary(x, "RELU_0_TO_1"),
}
WITHIN_1 = {
    "sub": lambda m, x: m.sub(x, m.input(SHAPE), activation="relu"),
    "add with a clamp inside": lambda m, x: m.add(x, m.input(SHAPE), activation="relu6", output_quant=(0.06, 3)),
    "mean": lambda m, x: m.reduce(x, [1, 2], "MEAN"),
    "mean, dimensions kept": lambda m, x: m.reduce(x, [1, 2], "MEAN", True),
    "mean of channels": lambda m, x: m.reduce(x, [3], "MEAN"),
    "mean of rows": lambda m, x: m.reduce(x, [1], "MEAN", True),
    "mean of everything": lambda m, x: m.reduce(x, [1, 2, 3], "MEAN", True),
    "average pool": lambda m, x: m.pool(x, "average", (3, 3), (2, 2), "VALID"),
    "average pool with padding": lambda m, x: m.pool(x, "average", (3, 3), (1, 1), "SAME"),
    "average pool with padding, step 2": lambda m, x: m.pool(x, "average", (5, 2), (2, 2), "SAME", "relu"),
    "average pool with padding, step 3x1": lambda m, x: m.pool(x, "average", (4, 13), (3, 1), "SAME"),
    "global average pool": lambda m, x: m.pool(x, "average", (9, 14), (1, 1), "VALID"),
    "leaky relu": lambda m, x: m.leaky_relu(x, 0.17),
    "quantize": lambda m, x: m.quantize(x, m.dtype, (0.031, 5)),
    "bilinear": lambda m, x: m.resize(x, (36, 28), "bilinear"),
    "bilinear, half pixels": lambda m, x: m.resize(x, (18, 56), "bilinear", half_pixel_centers=True),
    "bilinear, corners": lambda m, x: m.resize(x, (17, 53), "bilinear", align_corners=True),
    "bilinear by 8, half pixels": lambda m, x: m.resize(x, (72, 112), "bilinear", half_pixel_centers=True),
    "bilinear, smaller": lambda m, x: m.resize(m.pad(x, [[0, 0], [1, 2], [1, 1], [0, 0]]), (6, 4), "bilinear",
                                               half_pixel_centers=True),
    "times a constant": lambda m, x: m.mul(x, m.random_constant((21,))),
    "plus a constant": lambda m, x: m.add(x, m.random_constant((1, 1, 1, 21)), activation="relu"),
    "plus one value": lambda m, x: m.add(m.random_constant(()), x),
    "minus a constant": lambda m, x: m.sub(x, m.random_constant((21,))),
    "a constant minus": lambda m, x: m.sub(m.random_constant((21,)), x),
    "dilated": lambda m, x: m.conv2d(x, 8, (3, 3), dilation=(2, 3)),
    "dilated far": lambda m, x: m.conv2d(x, 8, (3, 3), dilation=(7, 12)),
    "dilated depthwise": lambda m, x: m.depthwise(x, 1, (3, 3), dilation=(6, 6)),
    "step 3": lambda m, x: m.conv2d(x, 8, (3, 3), (3, 3)),
    "step 1x2": lambda m, x: m.depthwise(x, 1, (3, 5), (1, 2)),
    "patches": lambda m, x: m.conv2d(x, 8, (3, 7), (3, 7), "VALID"),
    "kernel 15": lambda m, x: m.conv2d(x, 5, (15, 15)),
    "kernel 23x1": lambda m, x: m.depthwise(x, 1, (23, 1)),
    "kernel 1x23, per channel": lambda m, x: m.depthwise(x, 1, (1, 23), per_channel=m.dtype == "int8"),
    "depth multiplier": lambda m, x: m.depthwise(x, 3, (3, 3)),
    "transposed": lambda m, x: m.transpose_conv(x, 10, (3, 3), (2, 2)),
    "transposed, larger step": lambda m, x: m.transpose_conv(x, 4, (2, 2), (3, 3)),
    "relu6 inside the range": lambda m, x: m.conv2d(x, 8, (3, 3), activation="relu6", output_quant=(0.05, 20)),
    "relu_n1_to_1 inside the range": lambda m, x: m.conv2d(x, 8, (1, 1), activation="relu_n1_to_1",
                                                           output_quant=(0.02, 11)),
}


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", EXACT)
def test_exact(runner, name, dtype):
    check(runner, build(dtype, SHAPE, EXACT[name]), 0)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", WITHIN_1)
def test_within_1(runner, name, dtype):
    for seed in range(2):
        check(runner, build(dtype, SHAPE, WITHIN_1[name], seed=seed), 1, seed)


def test_abs(runner):
    check(runner, build("int8", SHAPE, lambda m, x: m.unary(x, "ABS")), 1)


@pytest.mark.parametrize("shape", [(1, 1, 1, 300), (1, 37, 1, 1), (1, 1, 70, 3), (1, 70, 70, 2)])
@pytest.mark.parametrize("name", ["nearest", "relu6", "maximum", "mean", "leaky relu"])
def test_odd_shapes(runner, name, shape):
    operations = {
        "nearest": lambda m, x: m.resize(x, (shape[1] * 3, shape[2] * 2), "nearest"),
        "maximum": lambda m, x: m.maximum(x, other(m, x, shape)),
    }
    operation = operations.get(name) or EXACT.get(name) or WITHIN_1[name]
    check(runner, build("int8", shape, operation), 1)


# 2^20 channels are one more than a job can count: it is refused, and not when all is compiled.
def test_a_mean_of_too_many_values(runner):
    model = build("uint8", (1, 1024, 1024, 1), lambda m, x: m.reduce(x, [1, 2, 3], "MEAN"))
    inputs = runner.inputs(model, 0)
    for got, want in zip(runner.delegated(model, inputs, kernels=0), runner.reference(model, inputs)):
        assert_close(got, want, 1)


# More weights than one job may have, where all channels, or one for each core, are a job: fewer are then.
@pytest.mark.parametrize("shape", [(1, 401, 401, 3), (1, 512, 512, 5), (1, 251, 251, 8), (1, 401, 401, 9)])
def test_means_of_large_images(runner, shape):
    model = build("uint8", shape, lambda m, x: m.reduce(x, [1, 2], "MEAN"))
    inputs = [(x // np.arange(1, x.shape[-1] + 1)).astype(x.dtype) for x in runner.inputs(model, 0)]
    for got, want in zip(runner.delegated(model, inputs), runner.reference(model, inputs)):
        assert_close(got, want, 1)


BATCHED = {
    "convolution": lambda m, x: m.conv2d(x, 9, (3, 3), (2, 2), activation="relu6"),
    "1x1": lambda m, x: m.conv2d(x, 9),
    "depthwise": lambda m, x: m.depthwise(x, 1, (3, 3)),
    "transposed": lambda m, x: m.transpose_conv(x, 4, (3, 3), (2, 2)),
    "average": lambda m, x: m.pool(x, "average", (3, 3), (1, 1), "SAME"),
    "maximum": lambda m, x: m.pool(x, "max", (3, 2), (2, 1), "SAME"),
    "mean": lambda m, x: m.reduce(x, [1, 2], "MEAN"),
    "bilinear": lambda m, x: m.resize(x, (14, 10), "bilinear"),
    "fully connected": lambda m, x: m.fully_connected(x, 11, activation="relu"),
    "rows": lambda m, x: m.fully_connected(m.reshape(x, (x.shape[0] * 35, x.shape[3])), 11),
}


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", BATCHED)
def test_batch(runner, name, dtype):
    check(runner, build(dtype, (3, 7, 5, 6), BATCHED[name]), 1)


@pytest.mark.parametrize("name", ["convolution", "depthwise"])
def test_batch_per_channel(runner, name):
    per_channel = {
        "convolution": lambda m, x: m.conv2d(x, 9, (3, 3), (3, 2), per_channel=True),
        "depthwise": lambda m, x: m.depthwise(x, 1, (5, 3), per_channel=True),
    }
    check(runner, build("int8", (3, 7, 5, 6), per_channel[name]), 1)


def test_bytes_of_sums(runner):
    check(runner, build("uint8", SHAPE, lambda m, x: m.reduce(x, [3], "SUM", output_quant=(1.1, 20))), 1)


CHAIN = {
    "conv": lambda m, x, r: m.conv2d(x, int(r.integers(1, 30)), (3, 3), per_channel=bool(r.integers(2)),
                                     activation=["relu6", None][r.integers(2)]),
    "depthwise": lambda m, x, r: m.depthwise(x, int(r.integers(1, 3)), (3, 3), per_channel=bool(r.integers(2))),
    "pool": lambda m, x, r: m.pool(x, "max", (3, 3), (1, 1), "SAME"),
    "average": lambda m, x, r: m.pool(x, "average", (2, 2), (1, 1), "VALID"),
    "nearest": lambda m, x, r: m.resize(x, (x.shape[1] * 2, x.shape[2]), "nearest"),
    "any window": lambda m, x, r: m.conv2d(x, int(r.integers(1, 20)), tuple(map(int, r.integers(1, 16, 2))),
                                           tuple(map(int, r.integers(1, 4, 2))), per_channel=bool(r.integers(2))),
    "average with padding": lambda m, x, r: m.pool(x, "average", (3, 2), (1, 1), "SAME"),
    "maximum of a row": lambda m, x, r: m.pool(x, "max", (1, 3), (1, 2), "SAME", "relu"),
    "pad": lambda m, x, r: m.pad(x, [[0, 0], [1, 0], [0, 0], [0, 2]]),
    "bilinear": lambda m, x, r: m.resize(x, (x.shape[1] * 2, x.shape[2] * 4), "bilinear"),
    "split and join": lambda m, x, r: m.concat(list(m.split(m.concat([x, x], -1), 2, -1)), int(r.integers(1, 4))),
    "twist": lambda m, x, r: m.transpose(x, [0, 2, 1, 3]),
    "maximum": lambda m, x, r: m.maximum(x, m.unary(x, "RELU6")),
    "sum": lambda m, x, r: m.add(x, m.leaky_relu(x, 0.2)),
    "relu": lambda m, x, r: m.unary(x, "RELU6"),
    "reshape": lambda m, x, r: m.reshape(x, (1, x.shape[2], x.shape[1], x.shape[3])),
}


@pytest.mark.parametrize("seed", range(12))
def test_chains_compile_as_one_program(runner, seed):
    """What is taken alone is taken together: each layer of a random chain is near the reference from its own input."""
    rng = np.random.default_rng(seed)
    m = mb.Model("int8", seed=seed)
    x = m.input((1, 7, 6, 5), QUANT["int8"])
    for name in rng.choice(list(CHAIN), 5):
        x = CHAIN[name](m, x, rng)
    model = m.finish([x])
    inputs = runner.inputs(model, seed)
    got, want = runner.delegated(model, inputs)[0], runner.reference(model, inputs)[0]
    distance = np.abs(got.astype(int) - want.astype(int))
    assert np.mean(distance) < 6, "a layer is not what it should be"
