# SPDX-License-Identifier: MIT
"""One-operation models at chosen edges, for the table of operations.

    data = build("CONV_2D", "int8", kernel=31, stride=2)

A probe takes the names of limits that it knows how to try, everything else stays at a value that every chip takes. The
operations are called as the model calls them.
"""

import inspect

import model_builder

# A limit's name in the table, and what the probes call it.
ARGUMENTS = {
    "kernel": "kernel",
    "stride": "stride",
    "dilation": "dilation",
    "channels in": "channels_in",
    "channels out": "channels_out",
    "columns": "columns",
    "batch": "batch",
    "multiplier": "multiplier",
    "per channel": "per_channel",
    "broadcast": "broadcast",
    "block": "block",
    "axis from the last": "axis",
    "other scales": "rescaled",
}
PROBES = {}


def probe(*names):
    def add(function):
        for name in names:
            PROBES[name] = (function, name)
        return function
    return add


def model_of(dtype):
    return model_builder.Model(dtype, seed=3)


def image(m, rows=12, columns=12, channels=16, batch=1):
    return m.input((batch, rows, columns, channels))


def other(x):
    """A quantization that is not the tensor's own."""
    return (x.scale * 1.25, x.zero_point) if x.quantized else None


def room(kernel, dilation=1, stride=1):
    """Rows of an image that such a window fits in, and makes a second step."""
    return max(12, (kernel - 1) * dilation + 1 + stride)


@probe("CONV_2D")
def conv(m, name, kernel=3, stride=1, dilation=1, channels_in=16, channels_out=16, columns=0, batch=1, per_channel=0):
    kernel = 1 if channels_in > 256 else kernel
    size = room(kernel, dilation, stride)
    rows, kernel_rows = (1, 1) if columns else (size, kernel)
    x = image(m, rows, columns or size, channels_in, batch)
    return m.conv2d(x, channels_out, (kernel_rows, kernel), (stride, stride), "SAME" if columns else "VALID", None,
                    (dilation, dilation), per_channel=bool(per_channel))


@probe("DEPTHWISE_CONV_2D")
def depthwise(m, name, kernel=3, stride=1, dilation=1, channels_in=16, columns=0, batch=1, multiplier=1,
              per_channel=0):
    size = room(kernel, dilation, stride)
    rows, kernel_rows = (1, 1) if columns else (size, kernel)
    x = image(m, rows, columns or size, channels_in, batch)
    return m.depthwise(x, multiplier, (kernel_rows, kernel), (stride, stride), "SAME" if columns else "VALID", None,
                       (dilation, dilation), per_channel=bool(per_channel))


@probe("TRANSPOSE_CONV")
def transpose_conv(m, name, kernel=3, stride=2, channels_in=16, channels_out=16, batch=1, per_channel=0):
    kernel = 1 if channels_in > 256 else kernel
    return m.transpose_conv(image(m, 6, 6, channels_in, batch), channels_out, (kernel, kernel), (stride, stride),
                            "VALID", per_channel=bool(per_channel))


@probe("FULLY_CONNECTED")
def fully_connected(m, name, channels_in=16, channels_out=16, batch=1):
    return m.fully_connected(m.input((batch, channels_in)), channels_out)


@probe("ADD", "SUB", "MUL", "DIV", "MAXIMUM", "MINIMUM", "SQUARED_DIFFERENCE", "FLOOR_DIV")
def binary(m, name, broadcast=0, batch=1):
    a = image(m, batch=batch)
    quant = (a.scale, a.zero_point) if a.quantized else None
    b = m.input((1, 1, 1, 16) if broadcast else a.shape, quant)
    return getattr(m, name.lower())(a, b)


@probe("AVERAGE_POOL_2D", "MAX_POOL_2D")
def pool(m, name, kernel=2, stride=1, batch=1, columns=0):
    kernel = 1 if columns else kernel
    size = room(kernel, 1, stride)
    x = image(m, size, columns or size, batch=batch)
    return m.pool(x, name.split("_")[0].lower(), (kernel, kernel), (stride, stride))


@probe("MEAN", "SUM", "REDUCE_MAX", "REDUCE_MIN")
def reduce(m, name, batch=1, axis=None):
    x = image(m, batch=batch)
    quant = (x.scale, x.zero_point) if x.quantized else None
    return m.reduce(x, (1, 2) if axis is None else (3 - axis,), name, output_quant=quant if name != "SUM" else None)


@probe("CONCATENATION")
def concatenation(m, name, axis=0, batch=1, rescaled=0):
    a = image(m, batch=batch)
    quant = (a.scale, a.zero_point) if a.quantized else None
    b = m.input(a.shape, other(a) if rescaled else quant)
    return m.concat([a, b], -1 - axis, output_quant=quant)


@probe("SPLIT", "SPLIT_V")
def split(m, name, axis=0, batch=1):
    x = image(m, 12, 12, 16, batch)
    return m.split(x, 2, -1 - axis)[0] if name == "SPLIT" else m.split_v(x, [4, -1], -1 - axis)[0]


@probe("SLICE", "STRIDED_SLICE")
def slice_(m, name, axis=0, stride=1, batch=1):
    x = image(m, batch=batch)
    begin, size = [0] * 4, list(x.shape)
    begin[3 - axis], size[3 - axis] = 1, 4
    if name == "SLICE":
        return m.slice(x, begin, size)
    end = [b + s for b, s in zip(begin, size)]
    strides = [1] * 4
    strides[3 - axis] = stride
    return m.strided_slice(x, begin, end, strides)


@probe("PAD", "PADV2", "MIRROR_PAD")
def pad(m, name, axis=1, batch=1):
    paddings = [(0, 0)] * 4
    paddings[3 - axis] = (1, 1)
    x = image(m, batch=batch)
    if name == "PADV2":
        return m.pad_v2(x, paddings, x.zero_point + 3)
    return m.pad(x, paddings) if name == "PAD" else m.mirror_pad(x, paddings)


@probe("RESIZE_NEAREST_NEIGHBOR", "RESIZE_BILINEAR")
def resize(m, name, batch=1):
    return m.resize(image(m, 6, 6, batch=batch), (12, 12), name.split("_")[1].lower())


@probe("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def depth_space(m, name, block=2, batch=1):
    size = max(1, block)
    if name == "SPACE_TO_DEPTH":
        return m.space_to_depth(image(m, 2 * size, 2 * size, 4, batch), block)
    return m.depth_to_space(image(m, 2, 2, size * size, batch), block)


@probe("RESHAPE", "SQUEEZE", "EXPAND_DIMS")
def reshape(m, name):
    if name == "RESHAPE":
        return m.reshape(image(m), (1, 144, 16))
    if name == "SQUEEZE":
        x = image(m, 1, 12)
        o = model_builder.schema.SqueezeOptionsT()
        o.squeezeDims = [1]
        return m.operator("SQUEEZE", [x], [m._like(x, "squeeze", (1, 12, 16))], o)
    x = m.input((1, 12, 16))
    axis = m.constant("axis", 1, "int32")
    out = m._like(x, "expanded", (1, 1, 12, 16))
    return m.operator("EXPAND_DIMS", [x, axis], [out], model_builder.schema.ExpandDimsOptionsT())


@probe("TRANSPOSE")
def transpose(m, name, batch=1):
    return m.transpose(image(m, batch=batch), (0, 2, 1, 3))


@probe("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1", "ELU", "ABS", "NEG", "EXP", "SQRT", "RSQRT", "LOG")
def unary(m, name, batch=1):
    if name in ("SQRT", "RSQRT", "LOG") and m.dtype in model_builder.RANGES:
        low, _ = model_builder.RANGES[m.dtype]
        x = m.input((batch, 12, 12, 16), (0.02, low if m.dtype != "int16" else 0))
        return m.unary(x, name, (0.02, x.zero_point))
    return m.unary(image(m, batch=batch), name)


@probe("LEAKY_RELU", "HARD_SWISH", "LOGISTIC", "TANH", "SOFTMAX", "PRELU", "ARG_MAX")
def plain(m, name, batch=1):
    return getattr(m, name.lower())(image(m, batch=batch))


@probe("QUANTIZE")
def quantize(m, name, batch=1):
    x = image(m, batch=batch)
    return m.quantize(x, m.dtype if m.dtype in model_builder.RANGES else "int8", other(x))


@probe("DEQUANTIZE")
def dequantize(m, name):
    return m.dequantize(image(m))


@probe("BATCH_MATMUL")
def batch_matmul(m, name):
    return m.batch_matmul(m.input((1, 8, 16)), m.input((1, 16, 8)))


@probe("PACK")
def pack(m, name):
    a = m.input((12, 12, 16))
    return m.pack([a, m.input(a.shape, (a.scale, a.zero_point) if a.quantized else None)])


@probe("UNPACK")
def unpack(m, name):
    return m.unpack(image(m))[0]


@probe("GATHER")
def gather(m, name):
    return m.gather(image(m), [2, 1], 1)


@probe("GATHER_ND")
def gather_nd(m, name):
    return m.gather_nd(image(m), [[0, 1], [0, 2]])


@probe("REVERSE_V2")
def reverse(m, name):
    return m.reverse(image(m), [1])


@probe("CAST")
def cast(m, name):
    return m.cast(image(m), "float32" if m.dtype != "float32" else "int32")


def takes(name, limit):
    """Can the operation's probe try this limit?"""
    return name in PROBES and ARGUMENTS.get(limit) in inspect.signature(PROBES[name][0]).parameters


def build(name, dtype, **limits):
    """The model's bytes; `limits` by their names in the table."""
    m = model_of(dtype)
    function, _ = PROBES[name]
    out = function(m, name, **{ARGUMENTS[limit]: value for limit, value in limits.items()})
    return m.finish([out])
