# SPDX-License-Identifier: MIT
"""Random small graphs on Rockchip: views of parts, memory that is used again, several readers, several outputs.

Every operation in them is exact in the hardware model of the CPU kernels, so whole graphs are. They give the same with
one inference spread over the cores of the NPU.
"""

import model_builder as mb
import numpy as np
import pytest

from conftest import FULL, assert_equal

KERNELS, STRIDES, PADDINGS = [(1, 1), (3, 3), (2, 2), (5, 3)], [(1, 1), (1, 1), (2, 2)], ["SAME", "VALID"]
LARGEST_WINDOW = 31  # means of more are computed in steps, which the hardware model doesn't have
MOST_VALUES = 40000  # of a tensor, so that the reference kernels need no time


class Graph:
    """A model that grows by one random operation at a time."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.m = mb.Model(str(self.rng.choice(["uint8", "int8"])), seed)
        self.per_channel = self.m.dtype == "int8" and bool(self.rng.integers(2))
        shape = (1, *(int(n) for n in self.rng.integers(1, 24, 2)), int(self.rng.choice([1, 3, 8, 16, 20, 24, 40])))
        self.tensors, self.used = [self.m.input(shape)], set()

    def pick(self, values):
        return values[int(self.rng.integers(len(values)))]

    def operand(self):
        """Mostly a recent one."""
        last = len(self.tensors) - 1
        return self.tensors[max(0, last - int(self.rng.geometric(0.6)) + 1)]

    def conv(self, x):
        return self.m.conv2d(x, int(self.rng.integers(1, 50)), self.pick(KERNELS), self.pick(STRIDES), "SAME",
                             self.pick([None, "relu", "relu6"]), per_channel=self.per_channel)

    def depthwise(self, x):
        return self.m.depthwise(x, 1, self.pick(KERNELS), self.pick(STRIDES), "SAME", per_channel=self.per_channel)

    def transpose_conv(self, x):
        return self.m.transpose_conv(x, int(self.rng.integers(1, 30)), (2, 2), (2, 2), per_channel=self.per_channel)

    def arithmetic(self, x):
        others = [t for t in self.tensors if t.shape == x.shape]
        return getattr(self.m, self.pick(["add", "sub", "mul"]))(x, self.pick(others), self.pick([None, "relu"]))

    def constant(self, x):
        shape = self.pick([x.shape, (x.shape[-1],), (1,)])
        return getattr(self.m, self.pick(["add", "sub", "mul"]))(x, self.m.random_constant(shape))

    def choice(self, x):
        others = [t for t in self.tensors if t.shape == x.shape and self.m._quant_of(t) == self.m._quant_of(x)]
        return getattr(self.m, self.pick(["maximum", "minimum"]))(x, self.pick(others))

    def pool(self, x):
        window = tuple(min(int(n), d) for n, d in zip(self.rng.integers(1, 4, 2), x.shape[1:3]))
        return self.m.pool(x, self.pick(["average", "max"]), window, self.pick([(1, 1), (2, 2), window]),
                           self.pick(PADDINGS))

    def curve(self, x):
        return getattr(self.m, self.pick(["logistic", "tanh", "hard_swish", "leaky_relu"]))(x)

    def concat(self, x):
        alike = [t for t in self.tensors if self.m._quant_of(t) == self.m._quant_of(x)]
        axis = int(self.rng.integers(1, 4))
        fit = [t for t in alike if all(a == b for i, (a, b) in enumerate(zip(t.shape, x.shape)) if i != axis)]
        return self.m.concat([x, *(self.pick(fit) for _ in range(int(self.rng.integers(1, 3))))], axis)

    def split(self, x):
        axis = int(self.rng.integers(1, 4))
        counts = [n for n in (2, 3, 4) if x.shape[axis] % n == 0]
        if not counts:
            return self.conv(x)
        parts = self.m.split(x, self.pick(counts), axis)
        self.tensors += parts[:-1]
        return parts[-1]

    def slice(self, x):
        begin = [0, *(int(self.rng.integers(0, d)) for d in x.shape[1:])]
        return self.m.slice(x, begin, [int(self.rng.integers(1, d - b + 1)) for b, d in zip(begin, x.shape)])

    def pad(self, x):
        return self.m.pad(x, [(0, 0), *((int(a), int(b)) for a, b in self.rng.integers(0, 4, (2, 2))), (0, 0)])

    def resize(self, x):
        return self.m.resize(x, [d * 2 for d in x.shape[1:3]], "nearest")

    def mean(self, x):
        if max(x.shape[1:3]) > LARGEST_WINDOW:
            return self.pool(x)
        return self.m.reduce(x, (1, 2), keep_dims=True)

    def extreme(self, x):
        kind = self.pick(["REDUCE_MAX", "REDUCE_MIN"])
        return self.m.reduce(x, self.pick([(1, 2), (1,), (2,)]), kind, keep_dims=True)

    def sum(self, x):
        if max(x.shape[1:3]) > LARGEST_WINDOW or self.m.dtype == "int8":
            return self.extreme(x)
        return self.m.reduce(x, self.pick([(1, 2), (3,)]), "SUM", keep_dims=True)

    def mirror(self, x):
        most = [min(d - 1, 2) for d in x.shape]
        return self.m.mirror_pad(x, [(0, 0), *((int(self.rng.integers(0, n + 1)), int(self.rng.integers(0, n + 1)))
                                               for n in most[1:])])

    def reverse(self, x):
        return self.m.reverse(x, [int(self.rng.integers(1, 4))])

    def gather(self, x):
        axis = int(self.rng.integers(1, 4))
        indices = self.rng.integers(0, x.shape[axis], int(self.rng.integers(1, 9)))
        return self.m.gather(x, [int(i) for i in indices], axis)

    def transpose(self, x):
        order = [0, *(int(i) + 1 for i in self.rng.permutation(3))]
        fits = max(x.shape[1:]) <= 32 and x.shape[2] * x.shape[3] <= 500 and x.shape[1] * x.shape[3] <= 500
        return self.m.transpose(x, order) if fits else self.conv(x)

    def stack(self, x):
        axis = int(self.rng.integers(1, 4))
        return self.m.concat([self.m.reshape(t, x.shape) for t in self.m.unpack(self.m.pack([x, x], axis), axis)], axis)

    def reshape(self, x):
        """Sometimes the new shape is seen, sometimes not."""
        h, w, c = x.shape[1:]
        shapes = [(1, h * w, 1, c)] + [(1, h, w * n, c // n) for n in (2, 3, 5) if c % n == 0]
        shapes += [(1, h, w // n, c * n) for n in (2, 3) if w % n == 0 and c * n < 200]
        return self.m.reshape(x, self.pick(shapes))

    def prelu(self, x):
        return self.m.prelu(x, self.m.random_constant(self.pick([(x.shape[-1],), (1,), x.shape[1:]]), (0.01, 7)))

    def grow(self):
        common = ["conv", "conv", "depthwise", "transpose_conv", "arithmetic", "arithmetic", "constant", "choice", "pool",
                  "curve", "concat", "concat", "split", "slice", "pad", "resize", "mean"]
        layouts = ["extreme", "sum", "mirror", "reverse", "gather", "transpose", "stack", "reshape", "reshape", "prelu",
                   "prelu"]
        kind = self.pick(layouts if self.rng.integers(3) == 0 else common)
        x = self.operand()
        if kind in ("resize", "transpose_conv", "concat", "stack") and np.prod(x.shape) > MOST_VALUES // 4:
            kind = "pool"
        self.tensors.append(getattr(self, kind)(x))

    def finish(self):
        """What nobody reads is an output, and one tensor more."""
        read = {int(t) for op in self.m.graph.operators for t in op.inputs}
        outputs = [t for t in self.tensors[1:] if t.index not in read]
        extra = self.pick(self.tensors[1:])
        return self.m.finish(outputs + ([extra] if extra not in outputs else []))


def random_graph(seed):
    graph = Graph(seed)
    for _ in range(int(graph.rng.integers(2, 12))):
        graph.grow()
    return graph.finish()


@pytest.mark.parametrize("seed", range(3000 if FULL else 60))
def test_random_graph(runner, seed):
    model = random_graph(seed)
    inputs = runner.inputs(model, seed)
    got = runner.run(runner.delegated_interpreter(model), inputs)
    for g, w in zip(got, runner.hardware_model(model, inputs, got)):
        assert_equal(g, w)
    if seed % 3 == 0 and runner.device == "sim:rk3588":
        for split in ("2", "3"):
            delegate = runner.load(runner.path, {"device": runner.device, "split": split})
            for g, w in zip(runner.run(runner.delegated_interpreter(model, [delegate]), inputs), got):
                assert_equal(g, w)


def test_a_view_that_one_reader_could_not_take_in_its_own_shape(runner):
    """70 x 1 pixels are no kernel for the fully connected layer, but the 21 x 10 that they are in memory are."""
    m = mb.Model("int8", 1)
    x = m.input((21, 10))
    y = m.squeeze(m.reshape(x, (1, 1, 70, 3)), [0])
    model = m.finish([m.unary(x, "RELU", m._quant_of(x)), m.fully_connected(m.reshape(y, (1, 210)), 7)])
    inputs = runner.inputs(model, 1)
    got = runner.run(runner.delegated_interpreter(model), inputs)
    for g, w in zip(got, runner.hardware_model(model, inputs, got)):
        assert_equal(g, w)
