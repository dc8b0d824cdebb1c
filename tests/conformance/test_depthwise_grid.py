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
