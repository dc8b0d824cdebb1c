# SPDX-License-Identifier: MIT
"""Convolutions of the sizes that delegates of this kind are usually tested with."""

import itertools

import model_builder
import pytest

from conftest import FULL

SIZES, KERNELS, CHANNELS, STRIDES = (4, 112), (1, 3), (32, 128, 256), (1, 2)
PADDINGS, TYPES = ("SAME", "VALID"), ("uint8", "int8")
SEEDS = range(3 if FULL else 2)
# Input channels: the reference kernels take seconds for a large image with many of them.
INPUT_CHANNELS = {4: (1, 32, 120, 256), 112: (1, 32, 120)} if FULL else {4: (1, 32, 120, 256), 112: (1, 32)}

GRID = [
    (size, ic, kernel, oc, stride, padding, dtype, seed)
    for size, kernel, oc, stride, padding, dtype, seed in itertools.product(
        SIZES, KERNELS, CHANNELS, STRIDES, PADDINGS, TYPES, SEEDS)
    for ic in INPUT_CHANNELS[size]
]


@pytest.mark.parametrize("size,ic,kernel,oc,stride,padding,dtype,seed", GRID)
def test_conv2d(runner, size, ic, kernel, oc, stride, padding, dtype, seed):
    model = model_builder.conv2d(
        (size, size), ic, oc, (kernel, kernel), (stride, stride), padding, dtype, seed=seed)
    runner.check(model, seed)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("weights", ["uniform", "sparse"])
def test_weight_statistics(runner, weights, dtype):
    model = model_builder.conv2d((14, 14), 64, 64, (3, 3), dtype=dtype, weights=weights, seed=5)
    runner.check(model)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("activation", ["relu", "relu6"])
def test_activation(runner, activation, dtype):
    model = model_builder.conv2d((14, 14), 32, 48, (3, 3), dtype=dtype, activation=activation, seed=6)
    runner.check(model)


@pytest.mark.parametrize("shape", [(7, 13, 5, 9), (1, 1, 1000, 17), (9, 30, 3, 3), (33, 2, 24, 40)])
@pytest.mark.parametrize("dtype", TYPES)
def test_odd_shapes(runner, shape, dtype):
    height, width, ic, oc = shape
    model = model_builder.conv2d((height, width), ic, oc, (1, 1), dtype=dtype, seed=7)
    runner.check(model)


@pytest.mark.parametrize("kernel", [(1, 3), (3, 1), (5, 5), (2, 2), (7, 7)])
@pytest.mark.parametrize("stride", STRIDES)
def test_kernel_shapes(runner, kernel, stride):
    model = model_builder.conv2d((16, 20), 12, 20, kernel, (stride, stride), seed=8)
    runner.check(model)


# Windows that the cores do not have: (kernel, stride, dilation), rows first.
MADE = [((4, 4), (4, 4), (1, 1)), ((16, 16), (16, 16), (1, 1)), ((3, 3), (3, 3), (1, 1)), ((3, 2), (1, 2), (1, 1)),
        ((2, 3), (3, 1), (1, 1)), ((1, 1), (3, 3), (1, 1)), ((5, 5), (4, 3), (1, 1)), ((15, 15), (1, 1), (1, 1)),
        ((16, 5), (2, 2), (1, 1)), ((31, 31), (4, 2), (1, 1)), ((1, 23), (1, 1), (1, 1)), ((23, 1), (1, 1), (1, 1)),
        ((3, 3), (1, 1), (6, 6)), ((3, 3), (1, 1), (18, 12)), ((3, 5), (2, 2), (3, 5))]


@pytest.mark.parametrize("channels", [(3, 9), (40, 17)])
@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("window", MADE)
def test_windows_made_of_others(runner, window, dtype, padding, channels):
    kernel, stride, dilation = window
    size = tuple(max(33, (k - 1) * d + 1) for k, d in zip(kernel, dilation))
    model = model_builder.conv2d(size, *channels, kernel, stride, padding, dtype, dilation=dilation, seed=9)
    if runner.rockchip and not runner.on_npu(model)[0]:
        pytest.skip("beyond this chip's limits, which test_operation_table.py tries")
    runner.check(model)
