# SPDX-License-Identifier: MIT
"""The operations of random models that move values, or make images larger; see random_operations.py."""

import math

import numpy as np

from random_draw import Unfit
from random_operations import operation


def axis_of(d, rank):
    """Mostly the last one, counted from either end."""
    if not rank:
        raise Unfit
    axis = rank - 1 if d.chance(0.4) else d.between(0, rank - 1)
    return axis - rank if d.chance(0.4) else axis


def kept(d, outputs):
    """What moves values keeps their quantization; a model that says otherwise is odd."""
    return [d.requantized(out) for out in outputs] if d.oddly(0.06) else outputs


# ---- parts and their sum -----------------------------------------------------


@operation("CONCATENATION", weight=3)
def concatenation(d, name, x, *others):
    x = d.any(x)
    axis = axis_of(d, len(x.shape))
    parts = [x, *others] if others else [x, *more_parts(d, x, axis)]
    if not others and d.chance(0.5):
        parts = parts[::-1]
    d.worth(0, sum(math.prod(p.shape) for p in parts))
    out = d.m.concat(parts, axis, d.activation() if d.oddly(0.02) else None)
    if d.oddly(0.3) and d.dtype == "uint8":
        d.requantized(out)
    elif d.quant_of(out) != d.quant_of(x):
        d.set_quant(out, d.quant_of(x))
    if d.integer and max(p.scale for p in parts) / out.scale * 256 >= 2**31:
        raise Unfit  # TFLite converts such numbers to int32, which C++ leaves undefined
    return [out]


def more_parts(d, x, axis):
    """One to four tensors, constants among them."""
    for _ in range(d.pick({1: 4, 2: 2, 4: 1})):
        shape = list(x.shape)
        shape[axis] = d.channels() if axis in (-1, len(shape) - 1) else d.size()
        d.worth(0, math.prod(shape))
        rescaled = d.dtype == "uint8" and d.chance(0.2)
        make = d.constant if d.chance(0.06) else d.input
        yield x if d.oddly(0.1) else make(tuple(shape), None if rescaled else d.quant_of(x))


@operation("SPLIT", weight=2)
def split(d, name, x):
    count = d.pick({2: 5, 3: 2, 5: 1})
    if x is None:
        shape = list(d.shape())
        axis = axis_of(d, len(shape))
        shape[axis] *= count
        d.worth(0, math.prod(shape))
        x = d.input(tuple(shape))
    else:
        axis = axis_of(d, len(x.shape))
    if x.shape[axis] % count:
        raise Unfit
    return kept(d, d.m.split(x, count, axis))


@operation("SPLIT_V", weight=1.5)
def split_v(d, name, x):
    x = d.any(x)
    axis = axis_of(d, len(x.shape))
    size = x.shape[axis]
    cuts = sorted(d.some(range(1, size))[:d.between(1, 3)])
    sizes = np.diff([0, *cuts, size]).tolist()
    if d.chance(0.3):
        sizes[d.between(0, len(sizes) - 1)] = -1
    return kept(d, d.m.split_v(x, sizes, axis))


@operation("SLICE", weight=2)
def slice_(d, name, x):
    x = d.any(x)
    begin, size = [], []
    for n in x.shape:
        whole = d.chance(0.4)
        begin.append(0 if whole else d.between(0, n - 1))
        size.append(d.pick([n, -1]) if whole else d.between(1, n - begin[-1]))
    return kept(d, [d.m.slice(x, begin, size)])


@operation("STRIDED_SLICE", weight=2)
def strided_slice(d, name, x):
    x = d.any(x)
    begin, end, step = [], [], []
    masks = {"begin_mask": 0, "end_mask": 0, "shrink_axis_mask": 0}
    for i, n in enumerate(x.shape):
        first, last = sorted((d.between(0, n - 1), d.between(0, n - 1)))
        step.append(d.pick({1: 6, 2: 2, 3: 1, -1: 0.5 if d.odd else 0, -2: 0.2 if d.odd else 0}))
        if step[-1] < 0:
            first, last = last, first - 1 if first else -n - 1
        else:
            last += 1
        begin.append(first - n if d.chance(0.2) else first)
        end.append(last)
        for mask, bits in masks.items():
            masks[mask] = bits | d.chance(0.1 if mask == "shrink_axis_mask" else 0.3) << i
        if masks["shrink_axis_mask"] >> i & 1:
            step[-1], end[-1] = 1, first + 1
    out = d.m.strided_slice(x, begin, end, step, **masks)
    return kept(d, [out])


@operation("PACK", weight=1.2)
def pack(d, name, x, *others):
    x = d.any(x, {1: 1, 2: 2, 3: 3, 4: 1})
    others = others or [d.input(x.shape, d.quant_of(x)) for _ in range(d.between(0, 3))]
    d.worth(0, math.prod(x.shape) * (len(others) + 1))
    axis = d.between(0, len(x.shape))
    return kept(d, [d.m.pack([x, *others], axis - len(x.shape) - 1 if d.chance(0.3) else axis)])


@operation("UNPACK", weight=1.2)
def unpack(d, name, x):
    x = d.any(x)
    axis = d.between(-len(x.shape), len(x.shape) - 1)
    if x.shape[axis] > 20:
        raise Unfit
    return d.m.unpack(x, axis)


@operation("GATHER", weight=1.2)
def gather(d, name, x):
    x = d.any(x)
    axis = axis_of(d, len(x.shape))
    indices = d.rng.integers(0, x.shape[axis], d.pick([(1,), (3,), (7,), (2, 3)]))
    if d.oddly(0.1):
        indices = indices.ravel()[0]
    d.worth(0, math.prod(x.shape) * indices.size // x.shape[axis])
    return kept(d, [d.m.gather(x, d.m.constant(d.m._name("indices"), indices, "int32"), axis)])


@operation("GATHER_ND", weight=1)
def gather_nd(d, name, x):
    x = d.any(x)
    depth = d.between(1, len(x.shape))
    rows = d.pick([(1,), (3,), (2, 5)])
    indices = np.stack([d.rng.integers(0, n, rows) for n in x.shape[:depth]], -1)
    d.worth(0, math.prod(x.shape[depth:]) * math.prod(rows))
    return kept(d, [d.m.gather_nd(x, indices)])


@operation("TILE", weight=0.3)
def tile(d, name, x):
    """Nothing of ours knows it: it is refused by its name, and left to the host."""
    x = d.any(x)
    times = [d.pick((1, 1, 2, 3)) for _ in x.shape]
    d.worth(0, math.prod(x.shape) * math.prod(times))
    out = d.m._like(x, "tile", [n * t for n, t in zip(x.shape, times)])
    d.m.operator("TILE", [x, d.m.constant(d.m._name("multiples"), times, "int32")], [out], version=2)
    return [out]


# ---- borders -----------------------------------------------------------------


def padded(d, x):
    return d.any(x, {1: 0.3, 2: 0.5, 3: 0.5, 4: 6, 5: 0.3} if x is None else None)


def paddings_of(d, x, most):
    axes = d.some(range(len(x.shape)), 1) if d.oddly(0.5) or len(x.shape) != 4 else d.pick([[1, 2], [1], [2]])
    paddings = [(0, 0)] * len(x.shape)
    for axis in axes:
        limit = min(most(x.shape[axis]), 40 if d.oddly(0.1) else 4)
        paddings[axis] = d.between(0, max(limit, 0)), d.between(0, max(limit, 0))
    d.worth(0, math.prod(n + b + a for n, (b, a) in zip(x.shape, paddings)))
    return paddings


@operation("PAD", weight=2)
def pad(d, name, x):
    x = padded(d, x)
    return kept(d, [d.m.pad(x, paddings_of(d, x, lambda n: 100))])


@operation("PADV2", weight=1.5)
def pad_v2(d, name, x):
    x = padded(d, x)
    value = d.pick([x.zero_point, d.between(0, 127)]) if d.integer else 0.5
    return kept(d, [d.m.pad_v2(x, paddings_of(d, x, lambda n: 100), value)])


@operation("MIRROR_PAD", weight=1.5)
def mirror_pad(d, name, x):
    x = padded(d, x)
    mode = d.pick(("REFLECT", "SYMMETRIC"))
    return kept(d, [d.m.mirror_pad(x, paddings_of(d, x, lambda n: n - (mode == "REFLECT")), mode)])


# ---- orders and shapes -------------------------------------------------------


@operation("TRANSPOSE", weight=2)
def transpose(d, name, x):
    x = d.any(x)
    return kept(d, [d.m.transpose(x, [int(i) for i in d.rng.permutation(len(x.shape))])])


@operation("REVERSE_V2", weight=1.2)
def reverse(d, name, x):
    x = d.any(x)
    axes = d.some(range(len(x.shape)), 1) if d.oddly(0.3) else [d.between(0, len(x.shape) - 1)]
    return kept(d, [d.m.reverse(x, axes)])


def factors(n):
    return [f for f in range(1, n + 1) if n % f == 0]


@operation("RESHAPE", weight=2.5)
def reshape(d, name, x):
    x = d.any(x)
    rest, shape = math.prod(x.shape), []
    last = [x.shape[-1]] if d.chance(0.6) else []
    rest //= math.prod(last)
    for _ in range(d.between(0, 3 if last else 4)):
        shape.append(d.pick(factors(rest)))
        rest //= shape[-1]
    if rest > 1 or not shape + last:
        shape.append(rest)
    return kept(d, [d.m.reshape(x, (*shape, *last))])


@operation("SQUEEZE", weight=1.2)
def squeeze(d, name, x):
    if x is None:
        x = d.input(with_ones(d, d.shape()))
    ones = [i for i, n in enumerate(x.shape) if n == 1]
    if not ones or len(ones) == len(x.shape):
        raise Unfit
    axes = d.some(ones) if d.chance(0.8) else []
    return kept(d, [d.m.squeeze(x, [a - len(x.shape) if d.chance(0.2) else a for a in axes])])


def with_ones(d, shape):
    shape = [1 if d.chance(0.3) else n for n in shape]
    if len(shape) < 5:
        shape.insert(d.between(0, len(shape)), 1)
    return tuple(shape)


@operation("EXPAND_DIMS", weight=1.2)
def expand_dims(d, name, x):
    x = d.any(x, {1: 1, 2: 2, 3: 4, 4: 1})
    return kept(d, [d.m.expand_dims(x, d.between(-len(x.shape) - 1, len(x.shape)))])


# ---- images ------------------------------------------------------------------


def blocks(d):
    return d.between(1, 8) if d.oddly(0.5) else d.pick({2: 5, 4: 2, 3: 1 if d.odd else 0.3})


@operation("SPACE_TO_DEPTH", weight=1.5)
def space_to_depth(d, name, x):
    block = blocks(d)
    if x is None:
        n, h, w, c = d.image_shape()
        d.worth(0, n * h * w * c * block * block)
        x = d.input((n, h * block, w * block, c))
    if len(x.shape) != 4 or x.shape[1] % block or x.shape[2] % block:
        raise Unfit
    return kept(d, [d.m.space_to_depth(x, block)])


@operation("DEPTH_TO_SPACE", weight=1.5)
def depth_to_space(d, name, x):
    block = blocks(d)
    if x is None:
        n, h, w, c = d.image_shape()
        d.worth(0, n * h * w * c * block * block)
        x = d.input((n, h, w, c * block * block))
    if len(x.shape) != 4 or x.shape[3] % block ** 2:
        raise Unfit
    return kept(d, [d.m.depth_to_space(x, block)])


def reads_beyond(size, wanted):
    """TFLite's steps of 1/1024 go past the last row, where it reads what is behind the image."""
    step = ((size << 10) + wanted // 2) // wanted
    return step * (wanted - 1) >> 10 >= size


@operation("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR", weight=2.5)
def resize(d, name, x):
    x = d.image(x)
    if d.oddly(0.35) or d.chance(0.08):
        size = d.size(), d.size()
    else:
        size = tuple(n * d.pick((2, 2, 2, 4)) for n in x.shape[1:3])
    d.worth(0, math.prod(size) * x.shape[0] * x.shape[3])
    align, half = d.pick({(False, False): 6, (False, True): 2, (True, False): 1})
    if name == "RESIZE_BILINEAR" and d.dtype == "int8" and any(map(reads_beyond, x.shape[1:3], size)):
        raise Unfit
    return kept(d, [d.m.resize(x, size, name.split("_")[1].lower(), align, half)])
