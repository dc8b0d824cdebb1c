# SPDX-License-Identifier: MIT
import model_builder
import pytest


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("sizes", [(64, 10), (100, 1), (1, 33), (1024, 256), (640, 128)])
def test_fully_connected(runner, sizes, dtype):
    runner.check(model_builder.fully_connected(*sizes, dtype=dtype, seed=1))


@pytest.mark.parametrize("activation", ["relu", "relu6"])
def test_activation(runner, activation):
    runner.check(model_builder.fully_connected(128, 96, activation=activation, seed=2))


def test_image_input(runner):
    m = model_builder.Model("int8", seed=3)
    runner.check(m.finish([m.fully_connected(m.input((1, 4, 4, 20)), 30)]))


def test_without_bias(runner):
    """The one operation with weights that TFLite's own kernels run without a bias."""
    runner.check(model_builder.fully_connected(128, 32, bias=False, seed=4))
