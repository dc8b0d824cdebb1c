# SPDX-License-Identifier: MIT
"""Operations on two tensors: every broadcast, constants of any shape, products, slopes and joined scales."""

import model_builder as mb
import numpy as np
import pytest
from conftest import assert_close

VIVANTE = ["sim:a311d", "sim:imx8mp", "sim:s905d3"]
LOW = {"uint8": 0, "int8": -128}
BYTES = ["uint8", "int8"]


@pytest.fixture(autouse=True)
def vivante_only(runner):
    if runner.device not in VIVANTE:
        pytest.skip("about another family of chips")


def check(runner, m, out, tolerance, seed=0):
    model = m.finish([out])
    inputs = runner.inputs(model, seed)
    for got, want in zip(runner.delegated(model, inputs), runner.reference(model, inputs)):
        assert_close(got, want, tolerance)


def check_all(runner, m, out, dtype):
    """Every pair of codes; outputs may be the same for all of them, where scales are far apart."""
    model, inputs = m.finish([out]), pairs(dtype)
    got, want = runner.delegated(model, inputs)[0], runner.reference(model, inputs)[0]
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 1


# ---- broadcasts -------------------------------------------------------------

SHAPES = [
    ((1, 8, 8, 32), (1, 1, 1, 32)),
    ((1, 8, 8, 32), (1, 1, 8, 1)),
    ((1, 8, 8, 32), (1, 8, 1, 1)),
    ((1, 7, 9, 5), (1, 7, 9, 1)),
    ((1, 8, 8, 32), (32,)),
    ((1, 8, 8, 32), ()),
    ((1, 8, 1, 32), (1, 1, 8, 1)),
    ((1, 1, 17, 3), (1, 11, 1, 3)),
    ((2, 3, 1, 5), (1, 3, 4, 1)),
    ((4, 3, 5), (3, 1)),
    ((6,), (5, 1)),
    ((1, 1, 1, 1), (1, 5, 3, 2)),
    ((1, 3, 5, 7), (1, 3, 5, 7)),
]
OPERATIONS = {"add": 1, "sub": 1, "mul": 1, "maximum": 0, "minimum": 0, "squared_difference": 1}


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("constant", [False, True], ids=["computed", "constant"])
@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("name", OPERATIONS)
def test_broadcast(runner, name, shapes, constant, dtype):
    if name == "squared_difference" and dtype == "uint8":
        pytest.skip("TFLite has it for int8 alone")
    low, alike = LOW[dtype], name in ("maximum", "minimum", "squared_difference")
    quants = [(0.05, low + 120), (0.05, low + 120) if alike else (0.04, low + 9)]
    for swapped in (False, True):
        m = mb.Model(dtype, seed=7)
        a = m.input(shapes[0], quants[0])
        b = m.random_constant(shapes[1], quants[1]) if constant else m.input(shapes[1], quants[1])
        check(runner, m, getattr(m, name)(*((b, a) if swapped else (a, b))), OPERATIONS[name], seed=3)


@pytest.mark.parametrize("name", ["add", "mul", "maximum"])
def test_tensor_and_itself(runner, name):
    m = mb.Model("int8", seed=1)
    x = m.input((1, 9, 7, 6), (0.03, -5))
    check(runner, m, getattr(m, name)(x, x), OPERATIONS[name])


# ---- every pair of codes ----------------------------------------------------


def pairs(dtype):
    codes = np.arange(256) + LOW[dtype]
    return [np.repeat(codes, 256).astype(dtype).reshape(1, 256, 256, 1),
            np.tile(codes, 256).astype(dtype).reshape(1, 256, 256, 1)]


def zero(rng, dtype):
    return int(rng.choice([0, 1, 127, 128, 254, 255, rng.integers(256)])) + LOW[dtype]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", BYTES)
def test_all_products(runner, dtype, seed):
    rng = np.random.default_rng(seed)
    a, b = (float(s) for s in rng.uniform(0.001, 0.1, 2))
    out = a * b * float(np.exp(rng.uniform(-0.5, 9)))
    m = mb.Model(dtype, seed=seed)
    x, y = (m.input((1, 256, 256, 1), (s, zero(rng, dtype))) for s in (a, b))
    activation = [None, "relu", "relu6", "relu_n1_to_1"][seed % 4]
    result = m.mul(x, y, output_quant=(out, zero(rng, dtype)), activation=activation)
    check_all(runner, m, result, dtype)


@pytest.mark.parametrize("seed", range(6))
def test_all_squares(runner, seed):
    rng = np.random.default_rng(seed)
    scale, point = float(rng.uniform(0.001, 0.1)), zero(rng, "int8")
    out = scale * scale * float(np.exp(rng.uniform(0, 7)))
    m = mb.Model("int8", seed=seed)
    x, y = (m.input((1, 256, 256, 1), (scale, point)) for _ in range(2))
    check_all(runner, m, m.squared_difference(x, y, output_quant=(out, zero(rng, "int8"))), "int8")


def test_squares_of_other_zero_points_that_saturate(runner):
    m = mb.Model("int8", seed=2)
    x, y = m.input((1, 256, 256, 1), (0.02, 100)), m.input((1, 256, 256, 1), (0.02, -90))
    check_all(runner, m, m.squared_difference(x, y, output_quant=(0.05, -128)), "int8")


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("name", ["add", "sub"])
def test_all_sums(runner, name, seed):
    """Scales far apart: where drivers' weights are too coarse, others of several copies are not."""
    rng = np.random.default_rng(seed)
    dtype = BYTES[seed % 2]
    a, b = (float(s) for s in np.exp(rng.uniform(-5, 0, 2)))
    out = max(a, b) * float(np.exp(rng.uniform(-4, 2)))
    m = mb.Model(dtype, seed=seed)
    x, y = (m.input((1, 256, 256, 1), (s, zero(rng, dtype))) for s in (a, b))
    result = getattr(m, name)(x, y, output_quant=(out, zero(rng, dtype)), activation=[None, "relu"][seed % 2])
    check_all(runner, m, result, dtype)


# ---- sizes and neighbours -----------------------------------------------------


@pytest.mark.parametrize("shape", [(1, 128, 130, 20), (1, 1, 1, 300001)])
@pytest.mark.parametrize("name", ["mul", "squared_difference"])
def test_pieces(runner, name, shape):
    m = mb.Model("int8", seed=3)
    x, y = (m.input(shape, (0.03, -5)) for _ in range(2))
    check(runner, m, getattr(m, name)(x, y), 1)


GATES = [((1, 28, 28, 72), (1, 1, 1, 72)), ((1, 14, 14, 40), (1, 14, 14, 1)), ((1, 17, 17, 9), (1, 1, 1, 9)),
         ((1, 96, 96, 40), (40,)), ((1, 5, 6, 8), (1, 1, 6, 8)), ((2, 6, 6, 8), (2, 1, 1, 8))]


@pytest.mark.parametrize("dtype", BYTES)
@pytest.mark.parametrize("shapes", GATES, ids=str)
def test_gates(runner, shapes, dtype):
    m = mb.Model(dtype, seed=4)
    x, gate = m.input(shapes[0]), m.input(shapes[1], (1 / 256, LOW[dtype]))
    check(runner, m, m.mul(x, gate), 1)


@pytest.mark.parametrize("dtype", BYTES)
def test_between_convolutions(runner, dtype):
    """Squeeze and excite: one partition, each layer near the reference from its own input."""
    m = mb.Model(dtype, seed=5)
    x = m.conv2d(m.input((1, 12, 12, 16)), 24, (3, 3), activation="relu")
    gate = m.logistic(m.conv2d(m.reduce(x, [1, 2], "MEAN", True), 24, (1, 1)))
    y = m.conv2d(m.mul(x, gate), 8, (1, 1))
    out = m.sub(m.add(y, m.random_constant((1, 12, 1, 8))), m.conv2d(x, 1, (1, 1)))
    model = m.finish([out, y])
    inputs = runner.inputs(model, 1)
    for got, want in zip(runner.delegated(model, inputs), runner.reference(model, inputs)):
        distance = np.abs(got.astype(int) - want.astype(int))
        assert distance.mean() < 2 and distance.max() < 12


# ---- slopes and scales --------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dtype", BYTES)
def test_prelu(runner, dtype, seed):
    rng = np.random.default_rng(seed)
    shape = (int(rng.integers(1, 3)), int(rng.integers(1, 20)), int(rng.integers(1, 20)), int(rng.integers(1, 40)))
    m = mb.Model(dtype, seed=seed)
    x = m.input(shape, (0.03, zero(rng, dtype)))
    quant = (float(rng.choice([0.001, 0.004, 0.01])), zero(rng, dtype))
    slopes = m.random_constant((1, 1, 1 if seed % 4 == 3 else shape[3]), quant)
    check(runner, m, m.prelu(x, slopes, output_quant=(float(rng.uniform(0.02, 0.06)), zero(rng, dtype))), 1)


@pytest.mark.parametrize("axis", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_joined_scales(runner, seed, axis):
    rng = np.random.default_rng(seed)
    m = mb.Model("uint8", seed=seed)
    out = (0.03, int(rng.integers(256)))
    parts = []
    for i in range(3):
        shape = [1, 5, 6, 7]
        shape[axis] = int(rng.integers(1, 9))
        quant = (float(0.03 * np.exp(rng.uniform(-3, 3))), int(rng.integers(256))) if i < 2 else out
        parts.append(m.random_constant(tuple(shape), quant) if i == seed % 4 else m.input(tuple(shape), quant))
    check(runner, m, m.concat(parts, axis, output_quant=out), 0)


@pytest.mark.parametrize("dtype", BYTES)
def test_joined_constants(runner, dtype):
    m = mb.Model(dtype, seed=6)
    x = m.input((1, 5, 6, 7))
    quant = (x.scale, x.zero_point)
    check(runner, m, m.concat([x, m.random_constant((1, 5, 6, 2), quant), x], -1, output_quant=quant), 0)
