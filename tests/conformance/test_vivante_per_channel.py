# SPDX-License-Identifier: MIT
"""Weights with a scale for each output channel, on cores with one multiplier a job: within 1 of TFLite's reference.

The compiler promises a distance below 2 before rounding (docs/vivante.md). Random layers try it, and layers made to be
bad for it: scales far apart, outputs that use the whole range, channels without weights.
"""

import model_builder as mb
import numpy as np
import pytest
from conftest import assert_close

VIVANTE = ["sim:a311d", "sim:imx8mp", "sim:s905d3"]


@pytest.fixture(autouse=True)
def vivante_only(runner):
    if runner.device not in VIVANTE:
        pytest.skip("about another family of chips")

SEEDS = range(4)


def check(runner, model, seed=0):
    inputs = runner.inputs(model, seed)
    for got, want in zip(runner.delegated(model, inputs), runner.reference(model, inputs)):
        assert_close(got, want, 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("activation", [None, "relu", "relu6", "relu_n1_to_1"])
@pytest.mark.parametrize("kernel,stride,channels", [(1, 1, 40), (3, 1, 17), (3, 2, 70), (5, 2, 9)])
def test_convolutions(runner, kernel, stride, channels, activation, seed):
    check(runner, mb.conv2d((13, 11), 24, channels, (kernel, kernel), (stride, stride), dtype="int8", per_channel=True,
                            activation=activation, seed=seed), seed)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("multiplier", [1, 2, 5])
@pytest.mark.parametrize("kernel,stride,channels", [(3, 1, 8), (3, 2, 70), (5, 1, 33)])
def test_depthwise_convolutions(runner, kernel, stride, channels, multiplier, seed):
    check(runner, mb.depthwise((13, 11), channels, multiplier, (kernel, kernel), (stride, stride), dtype="int8",
                               per_channel=True, seed=seed), seed)


@pytest.mark.parametrize("kernel,stride", [(2, 2), (3, 2), (4, 2), (3, 1), (2, 3)])
def test_transposed_convolutions(runner, kernel, stride):
    check(runner, mb.transpose_conv((7, 5), 12, 20, (kernel, kernel), (stride, stride), dtype="int8", per_channel=True,
                                    seed=kernel))


def spread(dtype, factors, zero_point, activation=None, depthwise=False):
    """A layer whose channels' factors from sum to output are these, some channels without weights."""
    rng = np.random.default_rng(len(factors))
    m = mb.Model(dtype, seed=1)
    x = m.input((1, 6, 6, len(factors) if depthwise else 16), (0.5, 3))
    shape = (1, 3, 3, len(factors)) if depthwise else (len(factors), 1, 1, 16)
    weights = rng.integers(-127, 128, shape).astype(np.int8)
    weights[..., 0] = 0 if depthwise else weights[..., 0]
    scales = (np.array(factors) * 2).astype(np.float32)  # input 0.5, output 1
    options = dict(activation=activation, output_quant=(1.0, zero_point), weights=weights,
                   weight_quant=(scales, 0), per_channel=True)
    y = m.depthwise(x, 1, (3, 3), **options) if depthwise else m.conv2d(x, len(factors), **options)
    filters = m.graph.tensors[m.graph.operators[-1].inputs[1]]
    filters.quantization.zeroPoint = np.zeros(len(factors), np.int64)
    return m.finish([y])


@pytest.mark.parametrize("depthwise", [False, True])
@pytest.mark.parametrize("zero_point,activation", [(-128, "relu"), (-128, None), (0, None), (127, None), (-100, "relu")])
@pytest.mark.parametrize("low,high", [(1e-4, 0.3), (0.25, 0.5), (0.01, 0.011), (1e-12, 0.9)])
def test_scales_far_apart_and_full_ranges(runner, low, high, zero_point, activation, depthwise):
    factors = np.geomspace(low, high, 48)
    np.random.default_rng(0).shuffle(factors)
    model = spread("int8", factors, zero_point, activation, depthwise)
    for seed in SEEDS:
        check(runner, model, seed)
