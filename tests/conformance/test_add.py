# SPDX-License-Identifier: MIT
import model_builder
import pytest

SHAPES = [(1, 4, 4, 32), (1, 112, 112, 16), (1, 7, 5, 3), (1, 1, 1, 1000)]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("shape", SHAPES)
def test_add(runner, shape, dtype, seed):
    runner.check(model_builder.add(shape, dtype, seed=seed), seed)


@pytest.mark.parametrize("ratio", [1.0, 0.5, 3.7, 20.0])
def test_scales_that_differ(runner, ratio):
    model = model_builder.add((1, 8, 8, 16), quants=((0.02, 131), (0.02 * ratio, 120)), seed=4)
    runner.check(model)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_tensor_and_itself(runner, dtype):
    m = model_builder.Model(dtype, seed=5)
    x = m.input((1, 6, 6, 8))
    runner.check(m.finish([m.add(x, x)]))
