# SPDX-License-Identifier: MIT
"""Small quantized ONNX networks with seeded weights, made by onnxruntime's quantizer."""

import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static

TYPES = {"u8": QuantType.QUInt8, "s8": QuantType.QInt8}


class Net:
    """A float network under construction; every method adds nodes and returns the name of their result."""

    def __init__(self, shape, seed):
        self.random = np.random.default_rng(seed)
        self.nodes, self.constants = [], []
        self.shape = shape
        self.channels = {"x": shape[1]}

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def node(self, kind, inputs, channels=None, **attributes):
        name = f"{kind.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=name + "_node", **attributes))
        self.channels[name] = channels if channels is not None else self.channels[inputs[0]]
        return name

    def conv(self, x, channels, kernel=3, stride=1, group=1, relu=None, pads=None, dilation=1):
        fan_in = self.channels[x] // group * kernel * kernel
        weights = self.random.normal(0, fan_in ** -0.5, (channels, self.channels[x] // group, kernel, kernel))
        bias = self.random.normal(0, 0.2, channels)
        pad = dilation * (kernel // 2)
        y = self.node("Conv", [x, self.constant(weights.astype(np.float32)), self.constant(bias.astype(np.float32))],
                      channels, kernel_shape=[kernel] * 2, strides=[stride] * 2, group=group,
                      pads=pads or [pad] * 4, dilations=[dilation] * 2)
        return self.activation(y, relu)

    def activation(self, y, kind):
        if kind == "relu":
            return self.node("Relu", [y])
        if kind == "relu6":
            return self.node("Clip", [y, self.constant(np.float32(0)), self.constant(np.float32(6))])
        return y

    def dense(self, x, outputs):
        weights = self.random.normal(0, self.channels[x] ** -0.5, (outputs, self.channels[x])).astype(np.float32)
        bias = self.random.normal(0, 0.2, outputs).astype(np.float32)
        return self.node("Gemm", [x, self.constant(weights), self.constant(bias)], outputs, transB=1)

    def model(self, *outputs):
        graph = helper.make_graph(
            self.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.shape)],
            [helper.make_tensor_value_info(y, TensorProto.FLOAT, None) for y in outputs], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        model.ir_version = 8
        return onnx.shape_inference.infer_shapes(model)


def mobilenet_like(seed=1):
    net = Net([1, 3, 32, 32], seed)
    y = net.conv("x", 16, stride=2, relu="relu6")
    for channels, stride in ((24, 1), (32, 2), (48, 1)):
        y = net.conv(y, net.channels[y], stride=stride, group=net.channels[y], relu="relu6")
        y = net.conv(y, channels, kernel=1, relu="relu6")
    y = net.node("GlobalAveragePool", [y])
    y = net.node("Flatten", [y])
    return net.model(net.dense(y, 10))


def resnet_like(seed=2):
    net = Net([1, 3, 24, 20], seed)
    y = net.conv("x", 16, kernel=5, stride=2, relu="relu", pads=[2, 2, 1, 1])
    y = net.node("MaxPool", [y], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for _ in range(2):
        z = net.conv(net.conv(y, 16, relu="relu"), 16)
        y = net.node("Relu", [net.node("Add", [z, y])])
    y = net.node("AveragePool", [y], kernel_shape=[2, 2], strides=[2, 2])
    y = net.node("Reshape", [y, net.constant(np.array([1, -1], np.int64))], 16 * 3 * 2)
    return net.model(net.node("Softmax", [net.dense(y, 12)], axis=-1))


def segmentation_like(seed=3):
    net = Net([1, 2, 16, 24], seed)
    fine = net.conv("x", 12, relu="relu")
    coarse = net.conv(fine, 16, stride=2, relu="relu")
    coarse = net.conv(coarse, 16, dilation=2, relu="relu")
    empty = net.constant(np.array([], np.float32))
    up = net.node("Resize", [coarse, empty, net.constant(np.array([1, 1, 2, 2], np.float32))], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor")
    both = net.node("Concat", [up, fine], 28, axis=1)
    y = net.conv(both, 6, kernel=1)
    y = net.node("Mul", [net.node("Sigmoid", [y]), y])
    return net.model(net.conv(y, 4, kernel=1))


NETWORKS = {"mobilenet": mobilenet_like, "resnet": resnet_like, "segmentation": segmentation_like}


class Samples(CalibrationDataReader):
    def __init__(self, model, count=8, seed=9):
        shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
        random = np.random.default_rng(seed)
        self.left = [{"x": random.normal(0, 1, shape).astype(np.float32)} for _ in range(count)]

    def get_next(self):
        return self.left.pop() if self.left else None


def quantize(model, form, activations, weights, per_channel=False):
    """The serialized quantized model of a float one. Form: "qdq" or "qop"; types: "u8" or "s8"."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "quantized.onnx"
        onnx.save(model, source)
        quantize_static(
            source, target, Samples(model), quant_format=QuantFormat.QDQ if form == "qdq" else QuantFormat.QOperator,
            activation_type=TYPES[activations], weight_type=TYPES[weights], per_channel=per_channel)
        return target.read_bytes()


def quantized(network, form, activations, weights, per_channel):
    """The same of one of NETWORKS."""
    return quantize(NETWORKS[network](), form, activations, weights, per_channel)
