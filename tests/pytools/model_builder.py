# SPDX-License-Identifier: MIT
"""Quantized .tflite models made in memory, for tests.

One operation a call:

    data = model_builder.conv2d((14, 14), ic=32, oc=64, kernel=(3, 3), dtype="int8", per_channel=True, seed=7)

or several in a chain:

    m = model_builder.Model("uint8", seed=1)
    x = m.input((1, 14, 14, 32))
    y = m.conv2d(x, 32, kernel=(3, 3), activation="relu6")
    data = m.finish([m.add(x, y)])

Everything follows from the seed. Output scales are chosen from the statistics
of the accumulator under uniformly random inputs, so that outputs spread over
their type's range instead of saturating. Scales and zero points can be given
as (scale, zero_point) instead.
"""

import math
from dataclasses import dataclass

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from flatbuffers import flexbuffers

TYPES = {
    "float32": (schema.TensorType.FLOAT32, np.float32),
    "int32": (schema.TensorType.INT32, np.int32),
    "uint8": (schema.TensorType.UINT8, np.uint8),
    "int8": (schema.TensorType.INT8, np.int8),
    "int16": (schema.TensorType.INT16, np.int16),
    "int64": (schema.TensorType.INT64, np.int64),
}
RANGES = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-32768, 32767)}
ACTIVATIONS = {
    None: schema.ActivationFunctionType.NONE,
    "none": schema.ActivationFunctionType.NONE,
    "relu": schema.ActivationFunctionType.RELU,
    "relu_n1_to_1": schema.ActivationFunctionType.RELU_N1_TO_1,
    "relu6": schema.ActivationFunctionType.RELU6,
}
# What a fused activation lets through, as real values.
BOUNDS = {None: None, "none": None, "relu": (0.0, None), "relu_n1_to_1": (-1.0, 1.0), "relu6": (0.0, 6.0)}
PADDINGS = {"SAME": schema.Padding.SAME, "VALID": schema.Padding.VALID}
UNIFORM_SPREAD = 256 / math.sqrt(12)  # standard deviation of a uniformly random byte


class _AlignedBuilder(flatbuffers.Builder):
    """Byte vectors (tensor data) start at multiples of 16, as the schema asks."""

    def StartVector(self, elem_size, count, alignment):
        return super().StartVector(elem_size, count, 16 if elem_size == 1 else alignment)


@dataclass
class Tensor:
    """A tensor of a Model. `spread`: expected standard deviation of its values, in quantized steps."""

    index: int
    name: str
    shape: tuple
    dtype: str
    scale: float = 0.0
    zero_point: int = 0
    spread: float = UNIFORM_SPREAD


class Model:
    """A model under construction; every operation returns its output Tensor."""

    def __init__(self, dtype="uint8", seed=0, weights="laplace"):
        self.dtype, self.weights = dtype, weights
        self.rng = np.random.default_rng(seed)
        self.graph = schema.SubGraphT()
        self.graph.name = "main"
        self.graph.tensors, self.graph.operators = [], []
        self.inputs = []
        self.buffers = [schema.BufferT()]  # buffer 0 is the empty one
        self.codes = []
        self._code_index = {}

    # ---- pieces ----------------------------------------------------------

    def tensor(self, name, shape, dtype, quant=None, data=None, axis=0, spread=UNIFORM_SPREAD):
        """Adds any tensor. `quant`: (scale, zero_point), each a number or one value a slice along `axis`."""
        t = schema.TensorT()
        t.name, t.shape, t.type, t.hasRank = name, list(shape), TYPES[dtype][0], True
        t.buffer = 0
        if quant is not None:
            q = schema.QuantizationParametersT()
            q.scale = np.atleast_1d(np.asarray(quant[0], np.float32))
            q.zeroPoint = np.atleast_1d(np.asarray(quant[1], np.int64))
            q.quantizedDimension = axis if q.scale.size > 1 else 0
            t.quantization = q
        if data is not None:
            data = np.ascontiguousarray(data, TYPES[dtype][1])
            assert data.shape == tuple(shape), (name, data.shape, shape)
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            self.buffers.append(buffer)
            t.buffer = len(self.buffers) - 1
        self.graph.tensors.append(t)
        scale, zero = (float(np.ravel(quant[0])[0]), int(np.ravel(quant[1])[0])) if quant is not None else (0.0, 0)
        return Tensor(len(self.graph.tensors) - 1, name, tuple(shape), dtype, scale, zero, spread)

    def input(self, shape, quant=None, dtype=None, name=None):
        dtype = dtype or self.dtype
        if quant is None and dtype in RANGES:
            quant = (self._about(0.02), self._middle_zero(dtype))
        t = self.tensor(name or f"input{len(self.inputs)}", shape, dtype, quant)
        self.inputs.append(t)
        return t

    def constant(self, name, values, dtype, quant=None, axis=0):
        values = np.asarray(values, TYPES[dtype][1])
        return self.tensor(name, values.shape, dtype, quant, values, axis)

    def operator(self, code, inputs, outputs, options=None, custom=None, custom_options=None, version=1):
        """Adds any operation. `code`: name in schema.BuiltinOperator; `inputs`: Tensors, None for an absent one."""
        number = getattr(schema.BuiltinOperator, code)
        key = (number, custom, version)
        if key not in self._code_index:
            c = schema.OperatorCodeT()
            c.builtinCode, c.deprecatedBuiltinCode, c.version, c.customCode = number, min(number, 127), version, custom
            self._code_index[key] = len(self.codes)
            self.codes.append(c)
        op = schema.OperatorT()
        op.opcodeIndex = self._code_index[key]
        op.inputs = [-1 if t is None else t.index for t in inputs]
        op.outputs = [t.index for t in outputs]
        if options is not None:
            op.builtinOptions = options
            op.builtinOptionsType = getattr(schema.BuiltinOptions, type(options).__name__[:-1])
        if custom_options is not None:
            op.customOptions = np.frombuffer(bytes(custom_options), np.uint8)
        self.graph.operators.append(op)
        return outputs[0]

    def finish(self, outputs, inputs=None):
        """The file's bytes. `inputs` defaults to everything made by input()."""
        self.graph.inputs = [t.index for t in (self.inputs if inputs is None else inputs)]
        self.graph.outputs = [t.index for t in outputs]
        model = schema.ModelT()
        model.version, model.description = 3, "Mica test model"
        model.subgraphs, model.buffers, model.operatorCodes = [self.graph], self.buffers, self.codes
        builder = _AlignedBuilder(1 << 16)
        builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
        return bytes(builder.Output())

    # ---- operations with weights -----------------------------------------

    def conv2d(self, x, oc, kernel=(1, 1), stride=(1, 1), padding="SAME", activation=None, dilation=(1, 1), bias=True,
               per_channel=False, output_quant=None, weight_quant=None, weights=None):
        n, h, w, ic = x.shape
        kernel_tensor, scales, deviation = self._weights(
            (oc, *kernel, ic), 0, x, per_channel, activation, weight_quant, weights)
        bias_tensor = self._bias(x, scales, deviation) if bias else None
        shape = (n, *self._window_shape((h, w), kernel, stride, padding, dilation), oc)
        out = self._accumulated("conv", shape, x, scales, deviation, activation, output_quant)
        o = schema.Conv2DOptionsT()
        o.padding, (o.strideH, o.strideW) = PADDINGS[padding], stride
        o.dilationHFactor, o.dilationWFactor = dilation
        o.fusedActivationFunction = ACTIVATIONS[activation]
        return self.operator("CONV_2D", self._present(x, kernel_tensor, bias_tensor), [out], o, version=3)

    def depthwise(self, x, multiplier=1, kernel=(3, 3), stride=(1, 1), padding="SAME", activation=None,
                  dilation=(1, 1), bias=True, per_channel=False, output_quant=None, weight_quant=None, weights=None):
        n, h, w, ic = x.shape
        oc = ic * multiplier
        kernel_tensor, scales, deviation = self._weights(
            (1, *kernel, oc), 3, x, per_channel, activation, weight_quant, weights)
        bias_tensor = self._bias(x, scales, deviation) if bias else None
        shape = (n, *self._window_shape((h, w), kernel, stride, padding, dilation), oc)
        out = self._accumulated("depthwise", shape, x, scales, deviation, activation, output_quant)
        o = schema.DepthwiseConv2DOptionsT()
        o.padding, (o.strideH, o.strideW), o.depthMultiplier = PADDINGS[padding], stride, multiplier
        o.dilationHFactor, o.dilationWFactor = dilation
        o.fusedActivationFunction = ACTIVATIONS[activation]
        return self.operator("DEPTHWISE_CONV_2D", self._present(x, kernel_tensor, bias_tensor), [out], o, version=3)

    def fully_connected(self, x, oc, activation=None, bias=True, keep_dims=False, output_quant=None,
                        weight_quant=None, weights=None):
        ic = x.shape[-1] if keep_dims else math.prod(x.shape[1:])
        kernel_tensor, scales, deviation = self._weights((oc, ic), 0, x, False, activation, weight_quant, weights)
        bias_tensor = self._bias(x, scales, deviation) if bias else None
        shape = (*x.shape[:-1], oc) if keep_dims else (x.shape[0], oc)
        out = self._accumulated("fully_connected", shape, x, scales, deviation, activation, output_quant)
        o = schema.FullyConnectedOptionsT()
        o.fusedActivationFunction, o.keepNumDims = ACTIVATIONS[activation], keep_dims
        return self.operator("FULLY_CONNECTED", [x, kernel_tensor, bias_tensor], [out], o, version=4)

    # ---- operations without ----------------------------------------------

    def add(self, a, b, activation=None, output_quant=None):
        deviation = math.hypot(a.scale * a.spread, b.scale * b.spread)
        quant, spread = self._output_quant(deviation, activation, output_quant)
        out = self._result("add", np.broadcast_shapes(a.shape, b.shape), quant, spread)
        o = schema.AddOptionsT()
        o.fusedActivationFunction = ACTIVATIONS[activation]
        return self.operator("ADD", [a, b], [out], o, version=2)

    def concat(self, tensors, axis=-1, activation=None, output_quant=None):
        shape = list(tensors[0].shape)
        shape[axis] = sum(t.shape[axis] for t in tensors)
        out = self._like(tensors[0], "concat", shape, output_quant)
        o = schema.ConcatenationOptionsT()
        o.axis, o.fusedActivationFunction = axis, ACTIVATIONS[activation]
        return self.operator("CONCATENATION", list(tensors), [out], o, version=2)

    def pad(self, x, paddings):
        """`paddings`: (before, after) for every dimension."""
        table = self.constant(self._name("paddings"), paddings, "int32")
        out = self._like(x, "pad", [d + b + a for d, (b, a) in zip(x.shape, paddings)])
        return self.operator("PAD", [x, table], [out], schema.PadOptionsT(), version=2)

    def pool(self, x, kind="average", window=(2, 2), stride=None, padding="VALID", activation=None):
        stride = stride or window
        n, h, w, c = x.shape
        out = self._like(x, f"{kind}_pool", (n, *self._window_shape((h, w), window, stride, padding, (1, 1)), c))
        o = schema.Pool2DOptionsT()
        o.padding, (o.strideH, o.strideW), (o.filterHeight, o.filterWidth) = PADDINGS[padding], stride, window
        o.fusedActivationFunction = ACTIVATIONS[activation]
        code = {"average": "AVERAGE_POOL_2D", "max": "MAX_POOL_2D"}[kind]
        return self.operator(code, [x], [out], o, version=2)

    def reshape(self, x, shape):
        table = self.constant(self._name("shape"), shape, "int32")
        o = schema.ReshapeOptionsT()
        o.newShape = list(shape)
        return self.operator("RESHAPE", [x, table], [self._like(x, "reshape", shape)], o)

    def softmax(self, x, beta=1.0):
        o = schema.SoftmaxOptionsT()
        o.beta = beta
        return self.operator("SOFTMAX", [x], [self._probability("softmax", x)], o, version=2)

    def logistic(self, x):
        return self.operator("LOGISTIC", [x], [self._probability("logistic", x)], version=2)

    def tanh(self, x):
        quant = (1 / 128, 128 if x.dtype == "uint8" else 0)
        return self.operator("TANH", [x], [self._result("tanh", x.shape, quant, dtype=x.dtype)], version=2)

    def resize(self, x, size, kind="bilinear", align_corners=False, half_pixel_centers=False):
        table = self.constant(self._name("size"), size, "int32")
        out = self._like(x, f"resize_{kind}", (x.shape[0], *size, x.shape[3]))
        o = schema.ResizeBilinearOptionsT() if kind == "bilinear" else schema.ResizeNearestNeighborOptionsT()
        o.alignCorners, o.halfPixelCenters = align_corners, half_pixel_centers
        code = {"bilinear": "RESIZE_BILINEAR", "nearest": "RESIZE_NEAREST_NEIGHBOR"}[kind]
        return self.operator(code, [x, table], [out], o, version=3)

    def quantize(self, x, dtype, quant=None):
        """Float to integer, or between integer types; without `quant`, int8 <-> uint8 keeps the real values."""
        if quant is None:
            shift = RANGES[dtype][0] - RANGES[x.dtype][0] if x.dtype in RANGES else 0
            quant = (x.scale, x.zero_point + shift) if x.dtype in RANGES else (0.02, self._middle_zero(dtype))
        out = self._result("quantize", x.shape, quant, x.spread, dtype)
        return self.operator("QUANTIZE", [x], [out], schema.QuantizeOptionsT(), version=2)

    def dequantize(self, x):
        out = self.tensor(self._name("dequantize"), x.shape, "float32")
        return self.operator("DEQUANTIZE", [x], [out], schema.DequantizeOptionsT(), version=2)

    def custom(self, name, inputs, outputs, options=None):
        """An operation by name; `options`: a dictionary, written as a flexbuffer."""
        data = flexbuffers.Dumps(options) if options is not None else None
        return self.operator("CUSTOM", inputs, outputs, custom=name, custom_options=data)

    # ---- helpers ---------------------------------------------------------

    def _name(self, stem):
        return f"{stem}{len(self.graph.tensors)}"

    @staticmethod
    def _present(*tensors):
        """Convolutions without a bias have two inputs; TFLite refuses an absent third one."""
        return [t for t in tensors if t is not None]

    def _about(self, value):
        return float(np.float32(value * self.rng.uniform(0.7, 1.4)))

    def _middle_zero(self, dtype):
        low, high = RANGES[dtype]
        return int((low + high + 1) // 2 + self.rng.integers(-20, 21))

    def _like(self, x, stem, shape, quant=None):
        return self.tensor(self._name(stem), tuple(shape), x.dtype, quant or (x.scale, x.zero_point), spread=x.spread)

    def _result(self, stem, shape, quant, spread=UNIFORM_SPREAD, dtype=None):
        return self.tensor(self._name(stem), tuple(shape), dtype or self.dtype, quant, spread=spread)

    def _probability(self, stem, x):
        return self._result(stem, x.shape, (1 / 256, RANGES[x.dtype][0]), dtype=x.dtype)

    @staticmethod
    def _window_shape(size, kernel, stride, padding, dilation):
        if padding == "SAME":
            return [-(-s // d) for s, d in zip(size, stride)]
        return [(s - (k - 1) * f - 1) // d + 1 for s, k, d, f in zip(size, kernel, stride, dilation)]

    def _weights(self, shape, axis, x, per_channel, activation, quant, values):
        """Weight tensor, its scale for every output channel, and the accumulator's deviation in each channel."""
        channels = shape[axis]
        low, high = (1, 255) if self.dtype == "uint8" else (-127, 127)
        if quant is None:
            zero = int(self.rng.integers(100, 157)) if self.dtype == "uint8" else 0
        else:
            zero = quant[1]
        if values is None:
            values = np.clip(np.rint(self._random_weights(shape)) + np.max(zero), low, high)
        centred = np.asarray(values, np.int64) - zero
        others = tuple(i for i in range(len(shape)) if i != axis)
        deviation = np.sqrt(np.maximum((centred.astype(np.float64) ** 2).sum(axis=others), 1.0)) * x.spread
        if quant is None:
            scale = self._weight_scale(x, deviation, activation)
            scales = np.full(channels, scale, np.float32)
            if per_channel:
                assert self.dtype == "int8", "per-channel scales exist for int8 only"
                scales = (scales * self.rng.uniform(0.5, 1.5, channels)).astype(np.float32)
            quant = (scales, np.zeros(channels, np.int64)) if per_channel else (scales[0], zero)
        else:
            scales = np.broadcast_to(np.asarray(quant[0], np.float32), (channels,))
        t = self.tensor(self._name("weights"), shape, self.dtype, quant, values, axis)
        return t, scales, deviation

    def _random_weights(self, shape):
        if self.weights == "uniform":
            return self.rng.uniform(-120, 120, shape)
        if self.weights == "sparse":
            return self.rng.laplace(0, 25, shape) * (self.rng.random(shape) < 0.2)
        return self.rng.laplace(0, 25, shape)

    def _weight_scale(self, x, deviation, activation):
        """With a bounded activation the results should reach its bound, and not all of them."""
        bound = BOUNDS[activation]
        if bound and bound[1]:
            return bound[1] / 2 / (float(np.mean(deviation)) * x.scale)
        return self._about(0.005)

    def _bias(self, x, scales, deviation):
        values = self.rng.normal(0, 0.3, deviation.shape) * deviation
        varied = np.unique(scales).size > 1
        quant = (np.float32(x.scale) * (scales if varied else scales[:1]), np.zeros(scales.size if varied else 1))
        return self.constant(self._name("bias"), np.rint(values).clip(-2**30, 2**30), "int32", quant)

    def _accumulated(self, stem, shape, x, scales, deviation, activation, quant):
        real = float(np.mean(deviation * scales)) * x.scale
        quant, spread = self._output_quant(real, activation, quant)
        return self._result(stem, shape, quant, spread)

    def _output_quant(self, deviation, activation, quant):
        """Quantization that holds three standard deviations (of real values), and the spread it gives."""
        low, high = RANGES[self.dtype]
        bound = BOUNDS[activation]
        if quant is None and bound is None:
            quant = (float(np.float32(3 * deviation / 127)), self._middle_zero(self.dtype))
        elif quant is None:
            top = bound[1] or 3 * deviation
            scale = float(np.float32((top - bound[0]) / (high - low)))
            quant = (scale, int(round(low - bound[0] / scale)))
        return quant, min(deviation / quant[0], UNIFORM_SPREAD)


# ---- models of one operation -------------------------------------------------


def _start(shape, dtype, seed, weights, input_quant):
    m = Model(dtype, seed, weights)
    return m, m.input(shape, input_quant)


def conv2d(input_hw, ic, oc, kernel=(1, 1), stride=(1, 1), padding="SAME", dtype="uint8", per_channel=False,
           activation=None, dilation=(1, 1), bias=True, seed=0, weights="laplace", input_quant=None, **quants):
    m, x = _start((1, *input_hw, ic), dtype, seed, weights, input_quant)
    return m.finish([m.conv2d(x, oc, kernel, stride, padding, activation, dilation, bias, per_channel, **quants)])


def depthwise(input_hw, ic, multiplier=1, kernel=(3, 3), stride=(1, 1), padding="SAME", dtype="uint8",
              per_channel=False, activation=None, dilation=(1, 1), bias=True, seed=0, weights="laplace",
              input_quant=None, **quants):
    m, x = _start((1, *input_hw, ic), dtype, seed, weights, input_quant)
    y = m.depthwise(x, multiplier, kernel, stride, padding, activation, dilation, bias, per_channel, **quants)
    return m.finish([y])


def fully_connected(ic, oc, batch=1, dtype="uint8", activation=None, bias=True, seed=0, weights="laplace",
                    input_quant=None, **quants):
    m, x = _start((batch, ic), dtype, seed, weights, input_quant)
    return m.finish([m.fully_connected(x, oc, activation, bias, **quants)])


def add(shape, dtype="uint8", other_shape=None, activation=None, seed=0, quants=(None, None), output_quant=None):
    """`shape`: the whole shape, batch first; `quants`: (scale, zero_point) of the two inputs."""
    m = Model(dtype, seed)
    a, b = m.input(shape, quants[0]), m.input(other_shape or shape, quants[1])
    return m.finish([m.add(a, b, activation, output_quant)])


def concat(shapes, axis=-1, dtype="uint8", seed=0, quant=None):
    m = Model(dtype, seed)
    quant = quant or (m._about(0.02), m._middle_zero(dtype))
    return m.finish([m.concat([m.input(s, quant) for s in shapes], axis)])


def _unary(method):
    def build(shape, *args, dtype="uint8", seed=0, input_quant=None, **options):
        m, x = _start(shape, dtype, seed, "laplace", input_quant)
        return m.finish([getattr(m, method)(x, *args, **options)])

    build.__name__ = method
    build.__doc__ = f"A model of one {method}: the input's shape, then what Model.{method}() takes."
    return build


pad = _unary("pad")
pool = _unary("pool")
reshape = _unary("reshape")
softmax = _unary("softmax")
logistic = _unary("logistic")
tanh = _unary("tanh")
resize = _unary("resize")
quantize = _unary("quantize")
dequantize = _unary("dequantize")


def random_input(details, seed=0):
    """A uniformly random value for an entry of interpreter.get_input_details()."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(details["dtype"])
    if dtype.kind == "f":
        return rng.uniform(-2, 2, details["shape"]).astype(dtype)
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, details["shape"], dtype, endpoint=True)
