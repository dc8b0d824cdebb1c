# SPDX-License-Identifier: MIT
"""Depthwise convolutions of the sizes that delegates of this kind are usually tested with."""

import itertools

import model_builder
import pytest

from conftest import FULL

GRID = list(itertools.product(
    (4, 112), (3, 5), (32, 128, 256), (1, 2), ("SAME", "VALID"), ("uint8", "int8"), range(3 if FULL else 2)))


@pytest.mark.parametrize("size,kernel,channels,stride,padding,dtype,seed", GRID)
def test_depthwise(runner, size, kernel, channels, stride, padding, dtype, seed):
    model = model_builder.depthwise(
        (size, size), channels, 1, (kernel, kernel), (stride, stride), padding, dtype, seed=seed)
    runner.check(model, seed)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_relu6(runner, dtype):
    runner.check(model_builder.depthwise((28, 28), 24, dtype=dtype, activation="relu6", seed=3))


# (kernel, stride, dilation) that neither chip has, rows first.
MADE = [((3, 3), (3, 3), (1, 1)), ((3, 3), (1, 2), (1, 1)), ((5, 3), (4, 1), (1, 1)), ((17, 17), (1, 1), (1, 1)),
        ((23, 1), (1, 1), (1, 1)), ((1, 23), (1, 1), (1, 1)), ((3, 3), (1, 1), (9, 8)), ((2, 2), (2, 3), (3, 5))]


@pytest.mark.parametrize("channels", [3, 40])
@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("window", MADE)
def test_windows_made_of_others(runner, window, dtype, padding, channels):
    kernel, stride, dilation = window
    model = model_builder.depthwise((33, 30), channels, 1, kernel, stride, padding, dtype, dilation=dilation, seed=4)
    runner.check(model)
