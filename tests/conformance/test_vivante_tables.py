# SPDX-License-Identifier: MIT
"""Functions of one value on Vivante: whole on the NPU and equal to TFLite's reference, whatever the scales and shapes."""

import model_builder as mb
import numpy as np
import pytest
from conftest import assert_equal, kernel_count

VIVANTE = ["sim:a311d", "sim:imx8mp", "sim:s905d3"]
SIGNED_ONLY = ["ELU", "ABS", "NEG", "EXP", "SQRT", "RSQRT", "LOG"]
NAMES = ["LOGISTIC", "TANH", "HARD_SWISH", "LEAKY_RELU", "RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"] + SIGNED_ONLY
LEAST = {"uint8": 0, "int8": -128}


@pytest.fixture(autouse=True)
def vivante_only(runner):
    if runner.device not in VIVANTE:
        pytest.skip("about another family of chips")


def quantization(rng, name, dtype):
    """Negative values have no roots and logarithms: TFLite's kernels refuse them."""
    zero_point = LEAST[dtype] if name in ("SQRT", "RSQRT", "LOG") else LEAST[dtype] + int(rng.integers(256))
    return float(10 ** rng.uniform(-2.5, 0)), zero_point


def build(name, dtype, shape, rng):
    m = mb.Model(dtype, seed=1)
    scale, zero_point = quantization(rng, name, dtype)
    x = m.input(shape, (scale, zero_point))
    out = (scale * float(2 ** rng.uniform(-2, 2)), LEAST[dtype] + int(rng.integers(256)))
    if name in ("LOGISTIC", "TANH"):
        y = getattr(m, name.lower())(x)
    elif name == "LEAKY_RELU":
        y = m.leaky_relu(x, float(rng.uniform(-0.5, 1.2)), out)
    elif name == "HARD_SWISH":
        y = m.hard_swish(x, out)
    else:
        y = m.unary(x, name, (scale, zero_point) if name in ("NEG", "ABS") else out)
    return m.finish([y])


def every_value(dtype, shape, rng):
    count = int(np.prod(shape))
    values = np.resize(np.arange(256) + LEAST[dtype], count)
    return rng.permutation(values).astype(dtype).reshape(shape)


def reference(runner, name, model, inputs):
    if name != "ELU":
        return runner.reference(model, inputs)
    # The reference kernels have none.
    interpreter = runner.interpreter_class(
        model_content=model, experimental_op_resolver_type=runner.resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    return runner.run(interpreter, inputs)


def check(runner, name, model, inputs):
    assert_equal(runner.delegated(model, inputs)[0], reference(runner, name, model, inputs)[0])


SHAPES = [(1, 16, 16, 1), (1, 1), (7,), (1, 5, 7, 3), (1, 33, 31, 9), (3, 40, 8)]


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", NAMES)
def test_equal_to_the_reference(runner, name, dtype):
    if dtype == "uint8" and name in SIGNED_ONLY:
        pytest.skip("TFLite has it for int8 alone")
    rng = np.random.default_rng(NAMES.index(name))
    for shape in SHAPES:
        check(runner, name, build(name, dtype, shape, rng), [every_value(dtype, shape, rng)])


@pytest.mark.parametrize("name", ["HARD_SWISH", "LOGISTIC", "RELU6"])
def test_large_tensors(runner, name):
    rng = np.random.default_rng(5)
    for shape in [(1, 112, 112, 16), (1, 700, 900, 1)]:
        check(runner, name, build(name, "int8", shape, rng), [every_value("int8", shape, rng)])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("name", ["maximum", "minimum"])
@pytest.mark.parametrize("bound", [0, 1, 77, 254, 255])
def test_one_constant_bound(runner, name, dtype, bound):
    rng = np.random.default_rng(bound)
    shape = (1, 16, 17, 3)
    for first in (False, True):
        m = mb.Model(dtype, seed=1)
        quant = (0.05, LEAST[dtype] + 99)
        x = m.input(shape, quant)
        constant = m.constant("bound", np.array(LEAST[dtype] + bound), dtype, quant)
        y = getattr(m, name)(constant, x) if first else getattr(m, name)(x, constant)
        check(runner, name, m.finish([y]), [every_value(dtype, shape, rng)])


@pytest.mark.parametrize("options", [{}, {"on_chip": "1"}])
def test_between_convolutions(runner, options):
    """Tensors of any layout, on chip or not: as without the option, whose parts the other tests compare."""
    m = mb.Model("int8", seed=2)
    x = m.conv2d(m.input((1, 20, 24, 3)), 24, (3, 3))
    x = m.hard_swish(x)
    x = m.depthwise(x, 1, (3, 3))
    x = m.add(m.logistic(x), m.leaky_relu(x, 0.2))
    x = m.tanh(m.conv2d(x, 9, (1, 1)))
    model = m.finish([x])
    inputs = runner.inputs(model)
    delegate = runner.load(runner.path, options={"device": runner.device, **options})
    interpreter = runner.delegated_interpreter(model, [delegate])
    got = runner.run(interpreter, inputs)
    assert kernel_count(interpreter) == 1
    assert_equal(got[0], runner.hardware_model(model, inputs, got)[0])
