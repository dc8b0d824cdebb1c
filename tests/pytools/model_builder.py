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
    "bool": (schema.TensorType.BOOL, np.bool_),
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
WIDE_SPREAD = 65536 / math.sqrt(12)  # and of two


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
    quantized: bool = False


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
            data = np.asarray(data, TYPES[dtype][1], order="C")
            assert data.shape == tuple(shape), (name, data.shape, shape)
            buffer = schema.BufferT()
            buffer.data = np.frombuffer(data.tobytes(), np.uint8)
            self.buffers.append(buffer)
            t.buffer = len(self.buffers) - 1
        self.graph.tensors.append(t)
        scale, zero = (float(np.ravel(quant[0])[0]), int(np.ravel(quant[1])[0])) if quant is not None else (0.0, 0)
        return Tensor(len(self.graph.tensors) - 1, name, tuple(shape), dtype, scale, zero, spread, quant is not None)

    def input(self, shape, quant=None, dtype=None, name=None):
        dtype = dtype or self.dtype
        wide = dtype == "int16"
        if quant is None and dtype in RANGES:
            quant = (self._about(0.0001 if wide else 0.02), self._middle_zero(dtype))
        spread = WIDE_SPREAD if wide else UNIFORM_SPREAD
        t = self.tensor(name or f"input{len(self.inputs)}", shape, dtype, quant, spread=spread)
        t.scale = t.scale or 1 / spread  # a real input's values are about 1
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

    def transpose_conv(self, x, oc, kernel=(2, 2), stride=(2, 2), padding="SAME", activation=None, bias=True,
                       per_channel=False, output_hw=None, output_quant=None, weight_quant=None, weights=None):
        """`output_hw` defaults to the size that a framework would choose."""
        n, h, w, ic = x.shape
        if output_hw is None:
            extra = [max(k - s, 0) if padding == "VALID" else 0 for k, s in zip(kernel, stride)]
            output_hw = (h * stride[0] + extra[0], w * stride[1] + extra[1])
        shape = (n, *output_hw, oc)
        kernel_tensor, scales, deviation = self._weights(
            (oc, *kernel, ic), 0, x, per_channel, activation, weight_quant, weights)
        deviation = deviation / math.sqrt(math.prod(stride))  # so many sums share the kernel's values
        bias_tensor = self._bias(x, scales, deviation) if bias else None
        out = self._accumulated("transpose_conv", shape, x, scales, deviation, activation, output_quant)
        o = schema.TransposeConvOptionsT()
        o.padding, (o.strideH, o.strideW) = PADDINGS[padding], stride
        o.fusedActivationFunction = ACTIVATIONS[activation]
        table = self.constant(self._name("shape"), shape, "int32")
        version = 4 if activation else 3
        return self.operator("TRANSPOSE_CONV", self._present(table, kernel_tensor, x, bias_tensor), [out], o,
                             version=version)

    def batch_matmul(self, a, b, adj_x=False, adj_y=False, output_quant=None):
        rows, depth = a.shape[-2:][::-1] if adj_x else a.shape[-2:]
        columns = b.shape[-2] if adj_y else b.shape[-1]
        deviation = math.sqrt(depth) * a.scale * a.spread * b.scale * b.spread
        quant, spread = self._output_quant(deviation, None, output_quant)
        shape = (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns)
        o = schema.BatchMatMulOptionsT()
        o.adjX, o.adjY = adj_x, adj_y
        return self.operator("BATCH_MATMUL", [a, b], [self._result("matmul", shape, quant, spread)], o, version=3)

    # ---- operations on two tensors, element by element --------------------

    def sub(self, a, b, activation=None, output_quant=None):
        o = schema.SubOptionsT()
        o.fusedActivationFunction, o.potScaleInt16 = ACTIVATIONS[activation], False
        deviation = math.hypot(a.scale * a.spread, b.scale * b.spread)
        return self._binary("SUB", a, b, deviation, activation, output_quant, o)

    def mul(self, a, b, activation=None, output_quant=None):
        o = schema.MulOptionsT()
        o.fusedActivationFunction = ACTIVATIONS[activation]
        return self._binary("MUL", a, b, a.scale * a.spread * b.scale * b.spread, activation, output_quant, o)

    def div(self, a, b, activation=None, output_quant=None):
        o = schema.DivOptionsT()
        o.fusedActivationFunction = ACTIVATIONS[activation]
        return self._binary("DIV", a, b, 4 * a.scale / b.scale, activation, output_quant, o, version=1)

    def squared_difference(self, a, b, output_quant=None):
        deviation = (a.scale * a.spread) ** 2 + (b.scale * b.spread) ** 2
        o = schema.SquaredDifferenceOptionsT()
        return self._binary("SQUARED_DIFFERENCE", a, b, deviation, None, output_quant, o)

    def floor_div(self, a, b):
        return self._same("FLOOR_DIV", a, b, None, version=1)

    def maximum(self, a, b):
        return self._same("MAXIMUM", a, b, schema.MaximumMinimumOptionsT())

    def minimum(self, a, b):
        return self._same("MINIMUM", a, b, schema.MaximumMinimumOptionsT())

    def prelu(self, x, slopes=None, output_quant=None):
        """`slopes`: a constant Tensor; one random slope a channel by default."""
        if slopes is None:
            slopes = self.random_constant((1,) * (len(x.shape) - 2) + x.shape[-1:], (self._about(0.01), None))
        return self.operator("PRELU", [x, slopes], [self._like(x, "prelu", x.shape, output_quant)])

    def random_constant(self, shape, quant=None, dtype=None):
        """Random values of a type; a zero point of None is drawn too."""
        dtype = dtype or self.dtype
        if dtype not in RANGES:
            return self.constant(self._name("constant"), self.rng.normal(0, 1, shape), dtype)
        if quant is None or quant[1] is None:
            quant = (quant[0] if quant else self._about(0.02), self._middle_zero(dtype))
        low, high = RANGES[dtype]
        return self.constant(self._name("constant"), self.rng.integers(low, high + 1, shape), dtype, quant)

    # ---- operations that make one value from one, or from many ------------

    def unary(self, x, code, output_quant=None):
        """RELU, RELU6, RELU_N1_TO_1, RELU_0_TO_1, ELU, ABS, NEG, EXP, SQRT, RSQRT, LOG: no parameters."""
        version = {"ABS": 2, "RSQRT": 2, "EXP": 2, "LOG": 2}.get(code, 1) if x.dtype in RANGES else 1
        if code in ("RELU", "RELU6") and x.dtype in RANGES:
            version = 2
        return self.operator(code, [x], [self._like(x, code.lower(), x.shape, output_quant)], version=version)

    def leaky_relu(self, x, alpha=0.1, output_quant=None):
        o = schema.LeakyReluOptionsT()
        o.alpha = alpha
        return self.operator("LEAKY_RELU", [x], [self._like(x, "leaky_relu", x.shape, output_quant)], o, version=2)

    def hard_swish(self, x, output_quant=None):
        return self.operator("HARD_SWISH", [x], [self._like(x, "hard_swish", x.shape, output_quant)])

    def reduce(self, x, axes, kind="MEAN", keep_dims=False, output_quant=None):
        """`kind`: MEAN, SUM, REDUCE_MAX or REDUCE_MIN."""
        gone = {a % len(x.shape) for a in axes}
        shape = [1 if i in gone else d for i, d in enumerate(x.shape) if keep_dims or i not in gone]
        if output_quant is None and kind == "SUM" and x.scale:
            count = math.prod(x.shape[i] for i in gone)
            output_quant = (x.scale * math.sqrt(count), x.zero_point)
        o = schema.ReducerOptionsT()
        o.keepDims = keep_dims
        table = self.constant(self._name("axes"), axes, "int32")
        return self.operator(kind, [x, table], [self._like(x, kind.lower(), shape, output_quant)], o, version=2)

    def arg_max(self, x, axis=-1, dtype="int32"):
        o = schema.ArgMaxOptionsT()
        o.outputType = TYPES[dtype][0]
        shape = [d for i, d in enumerate(x.shape) if i != axis % len(x.shape)]
        out = self.tensor(self._name("arg_max"), shape, dtype)
        return self.operator("ARG_MAX", [x, self.constant(self._name("axis"), axis, "int32")], [out], o, version=2)

    # ---- operations that move values ---------------------------------------

    def split(self, x, count, axis=-1):
        """Returns a list."""
        shape = list(x.shape)
        shape[axis] //= count
        outs = [self._like(x, "split", shape) for _ in range(count)]
        o = schema.SplitOptionsT()
        o.numSplits = count
        self.operator("SPLIT", [self.constant(self._name("axis"), axis, "int32"), x], outs, o, version=2)
        return outs

    def split_v(self, x, sizes, axis=-1):
        """Returns a list; one size may be -1."""
        rest = x.shape[axis] - sum(s for s in sizes if s >= 0)
        outs = []
        for size in sizes:
            shape = list(x.shape)
            shape[axis] = rest if size < 0 else size
            outs.append(self._like(x, "split_v", shape))
        o = schema.SplitVOptionsT()
        o.numSplits = len(sizes)
        tables = [self.constant(self._name("sizes"), sizes, "int32"), self.constant(self._name("axis"), axis, "int32")]
        self.operator("SPLIT_V", [x, *tables], outs, o, version=2)
        return outs

    def slice(self, x, begin, size):
        shape = [d - b if s < 0 else s for d, b, s in zip(x.shape, begin, size)]
        tables = [self.constant(self._name("begin"), begin, "int32"), self.constant(self._name("size"), size, "int32")]
        return self.operator("SLICE", [x, *tables], [self._like(x, "slice", shape)], schema.SliceOptionsT(), version=3)

    def strided_slice(self, x, begin, end, strides=None, begin_mask=0, end_mask=0, ellipsis_mask=0, new_axis_mask=0,
                      shrink_axis_mask=0):
        strides = [1] * len(begin) if strides is None else strides
        index = []
        for i, (b, e, s) in enumerate(zip(begin, end, strides)):
            if ellipsis_mask >> i & 1:
                index.append(Ellipsis)
            elif new_axis_mask >> i & 1:
                index.append(None)
            elif shrink_axis_mask >> i & 1:
                index.append(b)
            else:
                index.append(slice(None if begin_mask >> i & 1 else b, None if end_mask >> i & 1 else e, s))
        shape = np.broadcast_to(np.int8(0), x.shape)[tuple(index)].shape
        o = schema.StridedSliceOptionsT()
        o.beginMask, o.endMask, o.ellipsisMask = begin_mask, end_mask, ellipsis_mask
        o.newAxisMask, o.shrinkAxisMask = new_axis_mask, shrink_axis_mask
        tables = [self.constant(self._name(n), v, "int32") for n, v in
                  (("begin", begin), ("end", end), ("strides", strides))]
        version = 6 if ellipsis_mask or new_axis_mask else 2
        return self.operator("STRIDED_SLICE", [x, *tables], [self._like(x, "slice", shape)], o, version=version)

    def transpose(self, x, order):
        table = self.constant(self._name("order"), order, "int32")
        out = self._like(x, "transpose", [x.shape[i] for i in order])
        return self.operator("TRANSPOSE", [x, table], [out], schema.TransposeOptionsT(), version=2)

    def mirror_pad(self, x, paddings, mode="REFLECT"):
        table = self.constant(self._name("paddings"), paddings, "int32")
        out = self._like(x, "mirror_pad", [d + b + a for d, (b, a) in zip(x.shape, paddings)])
        o = schema.MirrorPadOptionsT()
        o.mode = getattr(schema.MirrorPadMode, mode)
        return self.operator("MIRROR_PAD", [x, table], [out], o, version=2)

    def pad_v2(self, x, paddings, value=0):
        """`value` as stored."""
        table = self.constant(self._name("paddings"), paddings, "int32")
        out = self._like(x, "pad", [d + b + a for d, (b, a) in zip(x.shape, paddings)])
        constant = self.constant(self._name("value"), [value], x.dtype, self._quant_of(x))
        return self.operator("PADV2", [x, table, constant], [out], schema.PadV2OptionsT(), version=2)

    def space_to_depth(self, x, block=2):
        n, h, w, c = x.shape
        o = schema.SpaceToDepthOptionsT()
        o.blockSize = block
        out = self._like(x, "deep", (n, h // block, w // block, c * block * block))
        return self.operator("SPACE_TO_DEPTH", [x], [out], o, version=2)

    def depth_to_space(self, x, block=2):
        n, h, w, c = x.shape
        o = schema.DepthToSpaceOptionsT()
        o.blockSize = block
        out = self._like(x, "wide", (n, h * block, w * block, c // (block * block)))
        return self.operator("DEPTH_TO_SPACE", [x], [out], o)

    def pack(self, tensors, axis=0):
        shape = list(tensors[0].shape)
        shape.insert(axis % (len(shape) + 1), len(tensors))
        o = schema.PackOptionsT()
        o.valuesCount, o.axis = len(tensors), axis
        return self.operator("PACK", list(tensors), [self._like(tensors[0], "pack", shape)], o, version=2)

    def unpack(self, x, axis=0):
        """Returns a list."""
        shape = [d for i, d in enumerate(x.shape) if i != axis % len(x.shape)]
        outs = [self._like(x, "unpack", shape) for _ in range(x.shape[axis])]
        o = schema.UnpackOptionsT()
        o.num, o.axis = len(outs), axis
        self.operator("UNPACK", [x], outs, o, version=2)
        return outs

    def gather(self, x, indices, axis=0):
        """`indices`: a Tensor, or numbers."""
        if not isinstance(indices, Tensor):
            indices = self.constant(self._name("indices"), indices, "int32")
        axis_ = axis % len(x.shape)
        out = self._like(x, "gather", (*x.shape[:axis_], *indices.shape, *x.shape[axis_ + 1:]))
        o = schema.GatherOptionsT()
        o.axis = axis
        return self.operator("GATHER", [x, indices], [out], o, version=3)

    def gather_nd(self, x, indices):
        if not isinstance(indices, Tensor):
            indices = self.constant(self._name("indices"), indices, "int32")
        out = self._like(x, "gather_nd", (*indices.shape[:-1], *x.shape[indices.shape[-1]:]))
        return self.operator("GATHER_ND", [x, indices], [out], schema.GatherNdOptionsT(), version=1)

    def reverse(self, x, axes):
        table = self.constant(self._name("axes"), axes, "int32")
        out = self._like(x, "reverse", x.shape)
        return self.operator("REVERSE_V2", [x, table], [out], schema.ReverseV2OptionsT(), version=3)

    def cast(self, x, dtype):
        o = schema.CastOptionsT()
        o.inDataType, o.outDataType = TYPES[x.dtype][0], TYPES[dtype][0]
        return self.operator("CAST", [x], [self.tensor(self._name("cast"), x.shape, dtype)], o)

    # ---- operations without weights ----------------------------------------

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

    def squeeze(self, x, axes):
        """Without `axes`, all of size 1 are dropped."""
        gone = {a % len(x.shape) for a in axes} or {i for i, d in enumerate(x.shape) if d == 1}
        o = schema.SqueezeOptionsT()
        o.squeezeDims = list(axes)
        out = self._like(x, "squeeze", [d for i, d in enumerate(x.shape) if i not in gone])
        return self.operator("SQUEEZE", [x], [out], o)

    def expand_dims(self, x, axis):
        shape = list(x.shape)
        shape.insert(axis % (len(shape) + 1), 1)
        table = self.constant(self._name("axis"), axis, "int32")
        out = self._like(x, "expand_dims", shape)
        return self.operator("EXPAND_DIMS", [x, table], [out], schema.ExpandDimsOptionsT())

    def softmax(self, x, beta=1.0):
        o = schema.SoftmaxOptionsT()
        o.beta = beta
        return self.operator("SOFTMAX", [x], [self._probability("softmax", x)], o, version=2)

    def logistic(self, x):
        return self.operator("LOGISTIC", [x], [self._probability("logistic", x)], version=2)

    def tanh(self, x):
        quant = (1 / 128, 128 if x.dtype == "uint8" else 0) if x.dtype in RANGES else None
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

    def _binary(self, code, a, b, deviation, activation, output_quant, options, version=2):
        quant, spread = self._output_quant(deviation, activation, output_quant)
        out = self._result(code.lower(), np.broadcast_shapes(a.shape, b.shape), quant, spread, a.dtype)
        return self.operator(code, [a, b], [out], options, version=version)

    def _same(self, code, a, b, options, version=2):
        """Two tensors that are quantized alike, as the result is."""
        out = self._like(a, code.lower(), np.broadcast_shapes(a.shape, b.shape))
        return self.operator(code, [a, b], [out], options, version=version)

    @staticmethod
    def _quant_of(x):
        return (x.scale, x.zero_point) if x.dtype in RANGES and x.quantized else None

    def _middle_zero(self, dtype):
        if dtype == "int16":
            return 0
        low, high = RANGES[dtype]
        return int((low + high + 1) // 2 + self.rng.integers(-20, 21))

    def _like(self, x, stem, shape, quant=None):
        out = self.tensor(self._name(stem), tuple(shape), x.dtype, quant or self._quant_of(x), spread=x.spread)
        out.scale = out.scale or x.scale
        return out

    def _result(self, stem, shape, quant, spread=UNIFORM_SPREAD, dtype=None):
        return self.tensor(self._name(stem), tuple(shape), dtype or self.dtype, quant, spread=spread)

    def _probability(self, stem, x):
        quant = (1 / 256, RANGES[x.dtype][0]) if x.dtype in RANGES else None
        return self._result(stem, x.shape, quant, dtype=x.dtype)

    @staticmethod
    def _window_shape(size, kernel, stride, padding, dilation):
        if padding == "SAME":
            return [-(-s // d) for s, d in zip(size, stride)]
        return [(s - (k - 1) * f - 1) // d + 1 for s, k, d, f in zip(size, kernel, stride, dilation)]

    def _weights(self, shape, axis, x, per_channel, activation, quant, values):
        """Weight tensor, its scale for every output channel, and the accumulator's deviation in each channel."""
        channels = shape[axis]
        if self.dtype == "float32":
            return self._real_weights(shape, axis, x, values)
        dtype = "int8" if self.dtype == "int16" else self.dtype
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
                assert dtype == "int8", "per-channel scales exist for int8 only"
                scales = (scales * self.rng.uniform(0.5, 1.5, channels)).astype(np.float32)
            quant = (scales, np.zeros(channels, np.int64)) if per_channel else (scales[0], zero)
        else:
            scales = np.broadcast_to(np.asarray(quant[0], np.float32), (channels,))
        t = self.tensor(self._name("weights"), shape, dtype, quant, values, axis)
        return t, scales, deviation

    def _real_weights(self, shape, axis, x, values):
        channels = shape[axis]
        if values is None:
            values = self._random_weights(shape) * 0.005
        others = tuple(i for i in range(len(shape)) if i != axis)
        deviation = np.sqrt((np.asarray(values, np.float64) ** 2).sum(axis=others)) * x.spread
        t = self.tensor(self._name("weights"), shape, "float32", None, values)
        return t, np.ones(channels, np.float32), deviation

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
        if self.dtype == "float32":
            return self.constant(self._name("bias"), values * x.scale, "float32")
        varied = np.unique(scales).size > 1
        quant = (np.float32(x.scale) * (scales if varied else scales[:1]), np.zeros(scales.size if varied else 1))
        return self.constant(self._name("bias"), np.rint(values).clip(-2**30, 2**30),
                             "int64" if self.dtype == "int16" else "int32", quant)

    def _accumulated(self, stem, shape, x, scales, deviation, activation, quant):
        real = float(np.mean(deviation * scales)) * x.scale
        quant, spread = self._output_quant(real, activation, quant)
        return self._result(stem, shape, quant, spread)

    def _output_quant(self, deviation, activation, quant):
        """Quantization that holds three standard deviations (of real values), and the spread it gives."""
        if self.dtype not in RANGES:
            return None, UNIFORM_SPREAD
        low, high = RANGES[self.dtype]
        bound = BOUNDS[activation]
        if quant is None and (bound is None or self.dtype == "int16"):
            quant = (float(np.float32(3 * deviation / high if low else 3 * deviation / 127)),
                     self._middle_zero(self.dtype))
        elif quant is None:
            top = bound[1] or 3 * deviation
            scale = float(np.float32((top - bound[0]) / (high - low)))
            quant = (scale, int(round(low - bound[0] / scale)))
        return quant, min(deviation / quant[0], WIDE_SPREAD if self.dtype == "int16" else UNIFORM_SPREAD)


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


def _pair(method):
    def build(shape, other_shape=None, dtype="uint8", seed=0, quants=(None, None), **options):
        m = Model(dtype, seed)
        a = m.input(shape, quants[0])
        alike = quants[1] or (m._quant_of(a) if method in ("maximum", "minimum") else None)
        b = m.input(other_shape or shape, alike)
        return m.finish([getattr(m, method)(a, b, **options)])

    build.__name__ = method
    build.__doc__ = f"A model of one {method}: the inputs' shapes, then what Model.{method}() takes."
    return build


def _several(method):
    def build(shape, *args, dtype="uint8", seed=0, input_quant=None, **options):
        m, x = _start(shape, dtype, seed, "laplace", input_quant)
        return m.finish(getattr(m, method)(x, *args, **options))

    build.__name__ = method
    build.__doc__ = f"A model of one {method}: the input's shape, then what Model.{method}() takes."
    return build


def transpose_conv(input_hw, ic, oc, kernel=(2, 2), stride=(2, 2), padding="SAME", dtype="uint8", per_channel=False,
                   activation=None, bias=True, seed=0, weights="laplace", input_quant=None, **options):
    m, x = _start((1, *input_hw, ic), dtype, seed, weights, input_quant)
    return m.finish([m.transpose_conv(x, oc, kernel, stride, padding, activation, bias, per_channel, **options)])


def pack(shape, count, axis=0, dtype="uint8", seed=0, quant=None):
    m = Model(dtype, seed)
    first = m.input(shape, quant)
    return m.finish([m.pack([first] + [m.input(shape, m._quant_of(first)) for _ in range(count - 1)], axis)])


sub = _pair("sub")
mul = _pair("mul")
div = _pair("div")
floor_div = _pair("floor_div")
squared_difference = _pair("squared_difference")
maximum = _pair("maximum")
minimum = _pair("minimum")
batch_matmul = _pair("batch_matmul")
split = _several("split")
split_v = _several("split_v")
unpack = _several("unpack")
prelu = _unary("prelu")
unary = _unary("unary")
leaky_relu = _unary("leaky_relu")
hard_swish = _unary("hard_swish")
reduce = _unary("reduce")
arg_max = _unary("arg_max")
strided_slice = _unary("strided_slice")
slice_ = _unary("slice")
transpose = _unary("transpose")
mirror_pad = _unary("mirror_pad")
pad_v2 = _unary("pad_v2")
space_to_depth = _unary("space_to_depth")
depth_to_space = _unary("depth_to_space")
gather = _unary("gather")
gather_nd = _unary("gather_nd")
reverse = _unary("reverse")
cast = _unary("cast")
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
