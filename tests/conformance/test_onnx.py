# SPDX-License-Identifier: MIT
"""Quantized ONNX models against onnxruntime: whole networks on every device, single operations on the CPU.

onnxruntime rounds half to even, in float; the kernels and chips have fixed-point factors. So one operation may be one
code off. How far a network is off in the end depends on what its operations make of that; its answer is the same.
MICA_BUILD names the build directory (default: build).
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "pytools"))
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

import onnx_models  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MICA = (pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")) / "tools/mica/mica").resolve()
ENV = {k: v for k, v in os.environ.items() if k != "MICA_DEVICE"}
DEVICES = ["cpu", "sim:a311d", "sim:imx8mp", "sim:rk3588", "sim:rk3566"]
DTYPES = {"u8": np.uint8, "s8": np.int8}
PROTO = {np.dtype(np.uint8): TensorProto.UINT8, np.dtype(np.int8): TensorProto.INT8,
         np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int64): TensorProto.INT64}

pytestmark = pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built")


def mica(*arguments, code=0):
    done = subprocess.run([MICA, *map(str, arguments)], capture_output=True, env=ENV, timeout=300)
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout.decode()}\n{done.stderr.decode()}"
    return done.stdout.decode() if code == 0 else done.stderr.decode()


def run_mica(folder, model, inputs, like, device):
    (folder / "model.onnx").write_bytes(model)
    command = ["run", folder / "model.onnx", "--device", device]
    for i, value in enumerate(inputs):
        value.tofile(folder / f"in{i}.bin")
        command += ["--input", folder / f"in{i}.bin"]
    for i in range(len(like)):
        command += ["--output", folder / f"out{i}.bin"]
    mica(*command)
    return [np.fromfile(folder / f"out{i}.bin", v.dtype).reshape(v.shape) for i, v in enumerate(like)]


def run_reference(model, inputs):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {d.name: v for d, v in zip(session.get_inputs(), inputs)})


def operations(model, folder, device="cpu"):
    (folder / "model.onnx").write_bytes(model)
    return json.loads(mica("info", folder / "model.onnx", "--device", device, "--json"))["operations"]


# ---- whole networks -----------------------------------------------------------

NETWORKS = [(n, f, a, w, p) for n in onnx_models.NETWORKS for f in ("qdq", "qop")
            for a, w, p in (("u8", "u8", False), ("u8", "s8", False), ("u8", "s8", True), ("s8", "s8", False),
                            ("s8", "s8", True))]
models = {}


def network(*key):
    if key not in models:
        models[key] = onnx_models.quantized(*key)
    return models[key]


def input_of(model, seed):
    shape = [d.dim_value for d in onnx.load_from_string(model).graph.input[0].type.tensor_type.shape.dim]
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


IDS = dict(ids=lambda k: "-".join(k[:4]) + ("-channel" if k[4] else "-tensor"))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("key", NETWORKS, **IDS)
def test_network(key, device, tmp_path):
    """The same answer: five best classes in the same order, or the same class for 95 % of all pixels."""
    model = network(*key)
    for seed in range(50, 52):
        x = input_of(model, seed)
        expected = run_reference(model, [x])
        result, = run_mica(tmp_path, model, [x], expected, device)
        if key[0] == "segmentation":
            assert np.mean(result.argmax(1) == expected[0].argmax(1)) >= 0.95
            continue
        scores, wanted = result.ravel(), expected[0].ravel()
        best = np.argsort(-wanted, kind="stable")
        # Where the reference itself has a tie, either order will do.
        for i in range(5):
            assert np.all(scores[best[i]] >= scores[best[i + 1:]][wanted[best[i + 1:]] < wanted[best[i]]])


def quantized_values(proto):
    """Names that nodes with a scale for them give to codes; what only moves codes belongs to what is behind it."""
    return [n.output[0] for n in proto.graph.node
            if n.op_type == "QuantizeLinear" or n.op_type.startswith(("QLinear", "QGemm"))]


def parts_of(proto):
    """Every operation as a model of its own, from codes to codes: the model, the names of its inputs and output."""
    codes = quantized_values(proto)
    makers = {o: n for n in proto.graph.node for o in n.output}
    for name in codes:
        nodes, inputs, left = [], [], [name]
        while left:
            value = left.pop()
            if value in codes and value != name:
                inputs += [value] if value not in inputs else []
            elif value in makers and makers[value] not in nodes:
                nodes.append(makers[value])
                left += [i for i in makers[value].input if i]
        if inputs:
            order = [n for n in proto.graph.node if n in nodes]
            yield order, inputs, name


@pytest.mark.parametrize("device", ["cpu", "sim:a311d", "sim:imx8mp", "sim:rk3588"])
@pytest.mark.parametrize("key", NETWORKS, **IDS)
def test_every_operation_of_a_network(key, device, tmp_path):
    """On onnxruntime's own inputs, each is one code off at most."""
    proto = onnx.load_from_string(network(*key))
    x, names = input_of(network(*key), 60), quantized_values(proto)
    whole = onnx.ModelProto.FromString(proto.SerializeToString())
    whole.graph.output.extend(onnx.ValueInfoProto(name=n) for n in names)
    values = dict(zip(names, run_reference(whole.SerializeToString(), [x])[len(proto.graph.output):]))
    wrong, count = [], 0
    for nodes, inputs, output in parts_of(proto):
        part = onnx.ModelProto.FromString(proto.SerializeToString())
        del part.graph.node[:], part.graph.input[:], part.graph.output[:], part.graph.value_info[:]
        part.graph.node.extend(onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes)
        part.graph.input.extend(
            helper.make_tensor_value_info(n, PROTO[values[n].dtype], values[n].shape) for n in inputs)
        part.graph.output.append(helper.make_tensor_value_info(output, PROTO[values[output].dtype], None))
        result, = run_mica(tmp_path, part.SerializeToString(), [values[n] for n in inputs], [values[output]], device)
        off = np.abs(result.astype(int) - values[output].astype(int)).max()
        wrong += [f"{output}: {off}"] if off > 1 else []
        count += 1
    assert not wrong
    assert count >= 8


@pytest.mark.parametrize("device", DEVICES[1:])
@pytest.mark.parametrize("name", onnx_models.NETWORKS)
def test_convolutions_are_on_the_npu(name, device, tmp_path):
    ops = operations(network(name, "qdq", "s8", "s8", False), tmp_path, device)
    macs = sum(o["macs"] for o in ops)
    assert sum(o["macs"] for o in ops if o["runs_on"] == "NPU") >= 0.95 * macs > 0


@pytest.mark.parametrize("key", NETWORKS[::7], ids=lambda k: "-".join(k[:4]))
def test_executables_hold_the_model(key, tmp_path):
    """An executable contains the .onnx file; it gives the same bytes, and refuses to be damaged."""
    model = network(*key)
    shape = [d.dim_value for d in onnx.load_from_string(model).graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(3).normal(0, 1, shape).astype(np.float32)
    direct, = run_mica(tmp_path, model, [x], run_reference(model, [x]), "sim:rk3588")
    mica("compile", tmp_path / "model.onnx", "--device", "sim:rk3588", "-o", tmp_path / "model.mica")
    assert model in (tmp_path / "model.mica").read_bytes()
    mica("run", tmp_path / "model.mica", "--device", "sim:rk3588", "--input", tmp_path / "in0.bin", "--output",
         tmp_path / "again.bin")
    assert (tmp_path / "again.bin").read_bytes() == direct.tobytes()
    mica("profile", tmp_path / "model.mica", "--device", "sim:rk3588")


def test_damaged_files_are_refused(tmp_path):
    model = network("mobilenet", "qdq", "u8", "s8", False)
    (tmp_path / "model.onnx").write_bytes(model[:len(model) // 2])
    assert "damaged" in mica("info", tmp_path / "model.onnx", code=1)
    (tmp_path / "model.onnx").write_bytes(b"\x08\x08\x12\x00")
    mica("info", tmp_path / "model.onnx", code=1)


# ---- single operations --------------------------------------------------------


class Operation:
    """One operation on quantized tensors, as QDQ or as the QLinear operator of the same name."""

    def __init__(self, dtype):
        self.dtype = np.dtype(dtype)
        self.nodes, self.constants, self.inputs, self.values = [], [], [], []

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def quant(self, scale, zero_point, dtype=None):
        zero_point = np.asarray(zero_point, dtype or self.dtype)
        return [self.constant(np.asarray(scale, np.float32)), self.constant(zero_point)]

    def input(self, shape, scale, zero_point, seed=0):
        limits = np.iinfo(self.dtype)
        name = f"in{len(self.inputs)}"
        self.inputs.append(helper.make_tensor_value_info(name, PROTO[self.dtype], shape))
        random = np.random.default_rng(seed + len(self.inputs))
        self.values.append(random.integers(limits.min, limits.max + 1, shape).astype(self.dtype))
        return [name, *self.quant(scale, self.zero(zero_point))]

    def zero(self, zero_point):
        """A zero point of int8 as the type has it."""
        return zero_point + (128 if self.dtype == np.uint8 else 0)

    def node(self, kind, inputs, outputs=1, domain="", **attributes):
        names = [f"n{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def real(self, quantized):
        return self.node("DequantizeLinear", quantized)

    def output(self, y, scale, zero_point):
        return self.node("QuantizeLinear", [y, *self.quant(scale, self.zero(zero_point))])

    def model(self, *outputs, dtype=None, opset=17):
        graph = helper.make_graph(self.nodes, "operation", self.inputs, [
            helper.make_tensor_value_info(y, PROTO[np.dtype(dtype or self.dtype)], None) for y in outputs],
            self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset),
                                                        helper.make_opsetid("com.microsoft", 1)])
        model.ir_version = 8
        return model.SerializeToString()


def check(op, model, folder, most=1, share=0.1, device="cpu", supported=True):
    expected = run_reference(model, op.values)
    results = run_mica(folder, model, op.values, expected, device)
    for result, wanted in zip(results, expected):
        off = np.abs(result.astype(np.float64) - wanted.astype(np.float64))
        assert off.max() <= most, f"{off.max()} off"
        assert most == 0 or np.mean(off > 0) <= share, f"{np.mean(off > 0)} of all differ"


@pytest.fixture(params=["u8", "s8"])
def dtype(request):
    return DTYPES[request.param]


CONVOLUTIONS = {
    "plain": dict(),
    "stride": dict(strides=[2, 1], pads=[1, 0, 0, 2]),
    "dilation": dict(dilations=[2, 2], pads=[2, 2, 2, 2]),
    "same_upper": dict(auto_pad="SAME_UPPER", strides=[2, 2]),
    "same_lower": dict(auto_pad="SAME_LOWER", strides=[2, 2]),
    "wide_padding": dict(pads=[4, 3, 4, 3]),
    "depthwise": dict(group=4, pads=[1, 1, 1, 1]),
    "multiplied": dict(group=4, multiplier=2),
    "one_by_one": dict(kernel=1),
}


@pytest.mark.parametrize("form", ["qdq", "qop"])
@pytest.mark.parametrize("per_channel", [False, True], ids=["tensor", "channel"])
@pytest.mark.parametrize("case", CONVOLUTIONS)
def test_conv(case, per_channel, form, dtype, tmp_path):
    attributes = dict(CONVOLUTIONS[case])
    kernel, multiplier = attributes.pop("kernel", 3), attributes.pop("multiplier", 1)
    group = attributes.get("group", 1)
    channels = 4 * multiplier if group > 1 else 6
    op, random = Operation(dtype), np.random.default_rng(4)
    x = op.input([1, 4, 9, 10], 0.02, -5)
    weights = random.integers(-127, 128, (channels, 4 // group, kernel, kernel)).astype(np.int8)
    scale = (random.uniform(0.002, 0.01, channels) if per_channel else np.array(0.005)).astype(np.float32)
    zero = np.zeros(scale.shape, np.int8)
    bias = random.integers(-3000, 3000, channels).astype(np.int32)
    w = [op.constant(weights), op.constant(scale), op.constant(zero)]
    if form == "qop":
        y = op.node("QLinearConv", [*x, *w, *op.quant(0.05, op.zero(3)), op.constant(bias)],
                    kernel_shape=[kernel] * 2, **attributes)
    else:
        bias_scale = op.constant((np.float32(0.02) * scale).astype(np.float32))
        b = op.node("DequantizeLinear", [op.constant(bias), bias_scale], **({"axis": 0} if per_channel else {}))
        y = op.node("Conv", [op.real(x), op.node("DequantizeLinear", w, **({"axis": 0} if per_channel else {})), b],
                    kernel_shape=[kernel] * 2, **attributes)
        y = op.output(y, 0.05, 3)
    check(op, op.model(y), tmp_path, share=0.02)


def test_conv_of_asymmetric_weights(tmp_path):
    op = Operation(np.uint8)
    weights = np.random.default_rng(1).integers(0, 256, (5, 3, 3, 3)).astype(np.uint8)
    y = op.node("QLinearConv", [*op.input([1, 3, 8, 8], 0.02, 7), op.constant(weights), *op.quant(0.01, 100),
                                *op.quant(0.06, 131)], kernel_shape=[3, 3])
    check(op, op.model(y), tmp_path, share=0.02)


def test_conv_of_real_weights_and_bias(dtype, tmp_path):
    """Weights that a QuantizeLinear makes codes of, and a bias that is float."""
    op, random = Operation(dtype), np.random.default_rng(8)
    weights = random.normal(0, 0.3, (5, 3, 3, 3)).astype(np.float32)
    quant = [op.constant(np.full(5, 0.008, np.float32)), op.constant(np.zeros(5, np.int8))]
    w = op.node("QuantizeLinear", [op.constant(weights), *quant], axis=0)
    w = op.node("DequantizeLinear", [w, *quant], axis=0)
    b = op.constant(random.normal(0, 1, 5).astype(np.float32))
    y = op.node("Conv", [op.real(op.input([1, 3, 8, 8], 0.02, 7)), w, b], kernel_shape=[3, 3])
    y = op.output(op.node("Clip", [y, op.constant(np.float32(0)), op.constant(np.float32(6))]), 0.05, -100)
    check(op, op.model(y), tmp_path, share=0.02)


@pytest.mark.parametrize("limits", [(0, 6), (-1, 1), (-0.7, 2.5), (0, 100)])
def test_limits(limits, dtype, tmp_path):
    op = Operation(dtype)
    weights = np.random.default_rng(1).integers(-127, 128, (5, 3, 1, 1)).astype(np.int8)
    w = op.node("DequantizeLinear", [op.constant(weights), *op.quant(0.01, 0, np.int8)])
    y = op.node("Conv", [op.real(op.input([1, 3, 8, 8], 0.02, 7)), w], kernel_shape=[1, 1])
    y = op.node("Clip", [y, *(op.constant(np.float32(v)) for v in limits)])
    check(op, op.model(op.output(y, 0.05, 3)), tmp_path, share=0.02)


def test_clip_alone(dtype, tmp_path):
    op = Operation(dtype)
    x = op.real(op.input([1, 3, 8, 8], 0.02, 7))
    y = op.node("Clip", [x, op.constant(np.float32(-1)), op.constant(np.float32(0.5))])
    check(op, op.model(op.output(y, 0.01, 3)), tmp_path)


def test_conv_transpose(dtype, tmp_path):
    op, random = Operation(dtype), np.random.default_rng(2)
    w = op.node("DequantizeLinear", [op.constant(random.integers(-127, 128, (4, 5, 3, 3)).astype(np.int8)),
                                     op.constant(random.uniform(0.002, 0.01, 5).astype(np.float32)),
                                     op.constant(np.zeros(5, np.int8))], axis=1)
    y = op.node("ConvTranspose", [op.real(op.input([1, 4, 5, 6], 0.02, -3)), w], kernel_shape=[3, 3], strides=[2, 2],
                pads=[1, 1, 1, 1], output_padding=[1, 0])
    check(op, op.model(op.output(y, 0.05, 3)), tmp_path, share=0.02)


@pytest.mark.parametrize("form", ["QGemm", "Gemm", "QLinearMatMul", "MatMul"])
def test_matrices(form, dtype, tmp_path):
    op, random = Operation(dtype), np.random.default_rng(2)
    x = op.input([3, 20], 0.02, -3)
    turned = form in ("QGemm", "Gemm")
    codes = random.integers(-127, 128, (7, 20) if turned else (20, 7)).astype(np.int8)
    w = [op.constant(codes), *op.quant(0.01, 0, np.int8)]
    bias = op.constant(random.integers(-2000, 2000, 7).astype(np.int32))
    y_quant = op.quant(0.05, op.zero(3))
    if form == "QGemm":
        y = op.node("QGemm", [*x, *w, bias, *y_quant], domain="com.microsoft", transB=1)
    elif form == "QLinearMatMul":
        y = op.node("QLinearMatMul", [*x, *w, *y_quant])
    else:
        inputs = [op.real(x), op.real(w)]
        if turned:
            inputs.append(op.node("DequantizeLinear", [bias, op.constant(np.float32(0.02) * np.float32(0.01))]))
        y = op.node(form, inputs, **({"transB": 1} if turned else {}))
        y = op.node("QuantizeLinear", [y, *y_quant])
    check(op, op.model(y), tmp_path, share=0.05)


def test_matmul_of_two_inputs(dtype, tmp_path):
    op = Operation(dtype)
    y = op.node("MatMul", [op.real(op.input([2, 3, 8], 0.0213, -3)), op.real(op.input([2, 8, 5], 0.0117, 4))])
    check(op, op.model(op.output(y, 0.0519, 3)), tmp_path, share=0.05)


@pytest.mark.parametrize("shapes", [([1, 4, 5, 6], [1, 4, 5, 6]), ([1, 4, 5, 6], [1, 4, 1, 1]), ([2, 6], [6]),
                                    ([1, 4, 5, 6], [4, 1, 1])], ids=str)
@pytest.mark.parametrize("kind", ["Add", "Mul", "Sub", "Max", "Min", "Div", "QLinearAdd", "QLinearMul"])
def test_binary(kind, shapes, dtype, tmp_path):
    op = Operation(dtype)
    a, b = op.input(shapes[0], 0.0213, -3), op.input(shapes[1], 0.0317, 9 if kind != "Div" else -128)
    if kind == "Div":
        op.values[1] = np.maximum(op.values[1], np.iinfo(dtype).min + 20).astype(dtype)
    if kind.startswith("QLinear"):
        y = op.node(kind, [*a, *b, *op.quant(0.0619, op.zero(3))], domain="com.microsoft")
    else:
        y = op.output(op.node(kind, [op.real(a), op.real(b)]), 0.0619, 3)
    check(op, op.model(y), tmp_path, share=0.25 if kind in ("Max", "Min") else 0.1) # those rescale first


@pytest.mark.parametrize("scales", [(0.02, 1 / 256, -128), (0.05, 1 / 128, 0), (0.02, 0.03, 5), (0.02, 0.002, 0)],
                         ids=str)
@pytest.mark.parametrize("kind", ["Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSwish", "Elu", "Abs", "Exp",
                                  "QLinearLeakyRelu", "QLinearSigmoid"])
def test_unary(kind, scales, dtype, tmp_path):
    op = Operation(dtype)
    x = op.input([1, 4, 5, 6], scales[0], -3)
    attributes = {"alpha": 0.2} if "Leaky" in kind else {}
    if kind.startswith("QLinear"):
        if scales[1] < 1 / 300:
            pytest.skip("what the operation's own quantization can't say twice")
        y = op.node(kind, [*x, *op.quant(scales[1], op.zero(scales[2]))], domain="com.microsoft", **attributes)
    else:
        y = op.output(op.node(kind, [op.real(x)], **attributes), *scales[1:])
    check(op, op.model(y), tmp_path, share=0.25)


@pytest.mark.parametrize("case", [([2, 10], -1), ([1, 4, 5, 6], 1), ([1, 4, 5, 6], 3)], ids=str)
@pytest.mark.parametrize("scale", [1 / 256, 0.01, 0.002])
def test_softmax(case, scale, dtype, tmp_path):
    op = Operation(dtype)
    y = op.node("Softmax", [op.real(op.input(case[0], 0.05, -3))], axis=case[1])
    check(op, op.model(op.output(y, scale, -128)), tmp_path, share=0.25)


POOLS = {
    "max": ("MaxPool", dict(kernel_shape=[3, 2], strides=[2, 2], pads=[1, 0, 1, 1])),
    "max_up": ("MaxPool", dict(kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)),
    "average": ("AveragePool", dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1])),
    "average_up": ("AveragePool", dict(kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1)),
    "average_all": ("AveragePool", dict(kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1)),
    "global": ("GlobalAveragePool", {}),
    "global_max": ("GlobalMaxPool", {}),
}


@pytest.mark.parametrize("same", [True, False], ids=["same", "rescaled"])
@pytest.mark.parametrize("case", POOLS)
def test_pool(case, same, dtype, tmp_path):
    op, (kind, attributes) = Operation(dtype), POOLS[case]
    y = op.node(kind, [op.real(op.input([1, 4, 8, 7], 0.02, -3))], **attributes)
    check(op, op.model(op.output(y, *((0.02, -3) if same else (0.025, 4)))), tmp_path, share=0.3)


@pytest.mark.parametrize("kind", ["QLinearGlobalAveragePool", "QLinearAveragePool"])
def test_qlinear_pool(kind, dtype, tmp_path):
    op = Operation(dtype)
    attributes = {} if "Global" in kind else dict(kernel_shape=[2, 2], strides=[2, 2])
    y = op.node(kind, [*op.input([1, 4, 8, 6], 0.02, -3), *op.quant(0.025, op.zero(4))], domain="com.microsoft",
                **attributes)
    check(op, op.model(y), tmp_path, share=0.3)


@pytest.mark.parametrize("axis", [0, 1, 3])
@pytest.mark.parametrize("form", ["Concat", "QLinearConcat", "alike"])
def test_concat(form, axis, dtype, tmp_path):
    op = Operation(dtype)
    shapes = [[2, 4, 5, 6], [2, 4, 5, 6]]
    shapes[1][axis] += 1
    parts = [op.input(shapes[0], 0.02, -3), op.input(shapes[1], *((0.02, -3) if form == "alike" else (0.03, 9)))]
    if form == "QLinearConcat":
        y = op.node(form, [*op.quant(0.03, op.zero(3)), *parts[0], *parts[1]], domain="com.microsoft", axis=axis)
    elif form == "Concat":
        y = op.output(op.node("Concat", [op.real(p) for p in parts], axis=axis), 0.03, 3)
    else:
        y = op.node("Concat", [p[0] for p in parts], axis=axis)
    check(op, op.model(y), tmp_path, most=0 if form == "alike" else 1)


MOVES = {
    "reshape": lambda op, x: op.node("Reshape", [x, op.constant(np.array([0, -1, 10], np.int64))]),
    "flatten": lambda op, x: op.node("Flatten", [x], axis=2),
    "squeeze": lambda op, x: op.node("Squeeze", [x, op.constant(np.array([0], np.int64))]),
    "unsqueeze": lambda op, x: op.node("Unsqueeze", [x, op.constant(np.array([1, -1], np.int64))]),
    "transpose": lambda op, x: op.node("Transpose", [x], perm=[0, 2, 3, 1]),
    "transpose_back": lambda op, x: op.node("Transpose", [x], perm=[0, 3, 1, 2]),
    "transpose_all": lambda op, x: op.node("Transpose", [x]),
    "slice": lambda op, x: op.node("Slice", [x, *(op.constant(np.array(v, np.int64)) for v in
                                                  ([1, -1], [3, -100], [1, 3], [1, -2]))]),
    "split": lambda op, x: op.node("Split", [x, op.constant(np.array([1, 3], np.int64))], outputs=2, axis=1),
    "gather": lambda op, x: op.node("Gather", [x, op.constant(np.array([2, 0, 3], np.int64))], axis=1),
    "pad": lambda op, x: op.node("Pad", [x, op.constant(np.array([0, 0, 1, 2, 0, 1, 0, 3], np.int64))]),
    "reflect": lambda op, x: op.node("Pad", [x, op.constant(np.array([0, 0, 1, 2, 0, 0, 0, 3], np.int64))],
                                     mode="reflect"),
    "depth_to_space": lambda op, x: op.node("DepthToSpace", [x], blocksize=2),
    "space_to_depth": lambda op, x: op.node("SpaceToDepth", [op.node("Slice", [x, *(op.constant(np.array(v, np.int64))
                                                             for v in ([0], [4], [2]))])], blocksize=2),
    "double": lambda op, x: op.node("Resize", [x, "", op.constant(np.array([1, 1, 2, 2], np.float32))],
                                    coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
    "double_centered": lambda op, x: op.node("Resize", [x, "", op.constant(np.array([1, 1, 2, 3], np.float32))]),
    "identity": lambda op, x: op.node("Identity", [x]),
}


@pytest.mark.parametrize("inside", [False, True], ids=["alone", "behind_an_image"])
@pytest.mark.parametrize("form", ["codes", "qdq", "chain"])
@pytest.mark.parametrize("case", MOVES)
def test_move(case, form, inside, dtype, tmp_path):
    """Exactly, on codes, between DequantizeLinear and QuantizeLinear, and where one of those is further away."""
    op = Operation(dtype)
    x = op.input([1, 4, 5, 6], 0.02, -3)
    if inside:  # channels are last there
        y = op.node("MaxPool", [x[0]], kernel_shape=[1, 1])
        x[0] = y
    y = MOVES[case](op, x[0] if form == "codes" else op.real(x))
    outputs = y if isinstance(y, list) else [y]
    if form == "codes":  # their meaning is known behind the operation only
        outputs = [op.real([y, *x[1:]]) for y in outputs]
    if form == "chain":
        outputs = [op.node("Reshape", [y, op.constant(np.array([-1], np.int64))]) for y in outputs]
    if form != "codes":
        outputs = [op.output(y, 0.02, -3) for y in outputs]
    check(op, op.model(*outputs, dtype=np.float32 if form == "codes" else dtype), tmp_path, most=0)


def test_pad_of_codes(dtype, tmp_path):
    op = Operation(dtype)
    x = op.input([1, 4, 5, 6], 0.02, -3)
    y = op.node("Pad", [x[0], op.constant(np.array([0, 0, 1, 2, 0, 1, 0, 3], np.int64)),
                        op.constant(np.array(17, dtype))])
    y = op.node("DequantizeLinear", [y, *x[1:]])
    check(op, op.model(y, dtype=np.float32), tmp_path, most=1e-6)


@pytest.mark.parametrize("mode", ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"])
def test_resize_linear(mode, dtype, tmp_path):
    op = Operation(dtype)
    y = op.node("Resize", [op.real(op.input([1, 4, 5, 6], 0.02, -3)), "", "",
                           op.constant(np.array([1, 4, 10, 15], np.int64))], mode="linear",
                coordinate_transformation_mode=mode)
    check(op, op.model(op.output(y, 0.02, -3)), tmp_path, share=0.6)


@pytest.mark.parametrize("keep", [0, 1])
@pytest.mark.parametrize("kind", ["ReduceMean", "ReduceMax", "ReduceMin"])
def test_reduce(kind, keep, dtype, tmp_path):
    op = Operation(dtype)
    x = op.node("MaxPool", [op.real(op.input([1, 4, 5, 6], 0.02, -3))], kernel_shape=[1, 1])
    y = op.node(kind, [x], axes=[2, 3], keepdims=keep)
    check(op, op.model(op.output(y, 0.015, 2)), tmp_path, share=0.3)


@pytest.mark.parametrize("keep", [0, 1])
def test_arg_max(keep, dtype, tmp_path):
    op = Operation(dtype)
    x = op.node("MaxPool", [op.real(op.input([1, 4, 5, 6], 0.02, -3))], kernel_shape=[1, 1])
    check(op, op.model(op.node("ArgMax", [x], axis=1, keepdims=keep), dtype=np.int64), tmp_path, most=0)


@pytest.mark.parametrize("key", NETWORKS[1::8], ids=lambda k: "-".join(k[:4]))
def test_constants_as_nodes(key, tmp_path):
    """Right before the node that uses them, as some exporters write them: the same operations, the same results."""
    model = network(*key)
    proto = onnx.load_from_string(model)
    constants, nodes = {c.name: c for c in proto.graph.initializer}, []
    for node in proto.graph.node:
        for name in node.input:
            if name in constants:
                nodes.append(helper.make_node("Constant", [], [name], value=constants.pop(name)))
        nodes.append(node)
    nodes = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes]
    del proto.graph.initializer[:], proto.graph.node[:]
    proto.graph.node.extend(nodes)
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    x = np.random.default_rng(6).normal(0, 1, shape).astype(np.float32)
    expected = run_mica(tmp_path, model, [x], run_reference(model, [x]), "cpu")[0]
    before = [o["type"] for o in operations(model, tmp_path)]
    result = run_mica(tmp_path, proto.SerializeToString(), [x], [expected], "cpu")[0]
    assert np.array_equal(result, expected)
    assert [o["type"] for o in operations(proto.SerializeToString(), tmp_path)] == before


def test_real_operations_stay_real(tmp_path):
    """Without quantization it runs in float32 on the CPU."""
    model = onnx_models.NETWORKS["segmentation"]().SerializeToString()
    x = np.random.default_rng(1).normal(0, 1, [1, 2, 16, 24]).astype(np.float32)
    expected = run_reference(model, [x])
    result, = run_mica(tmp_path, model, [x], expected, "cpu")
    assert np.abs(result - expected[0]).max() < 1e-4


# ---- what is refused ------------------------------------------------------------


def refusal(op, model, folder):
    (folder / "model.onnx").write_bytes(model)
    op.values[0].tofile(folder / "in.bin")
    return mica("run", folder / "model.onnx", "--device", "cpu", "--input", folder / "in.bin", code=1)


def test_grouped_convolution_is_refused(tmp_path):
    op = Operation(np.int8)
    weights = np.ones((6, 2, 1, 1), np.int8)
    y = op.node("QLinearConv", [*op.input([1, 4, 8, 8], 0.02, 7), op.constant(weights), *op.quant(0.01, 0),
                                *op.quant(0.06, 0)], kernel_shape=[1, 1], group=2)
    assert "grouped convolution (2 groups)" in refusal(op, op.model(y), tmp_path)


def test_unknown_operations_are_named(tmp_path):
    op = Operation(np.int8)
    y = op.node("Det", [op.real(op.input([1, 4, 8, 8], 0.02, 7))])
    assert "Det" in refusal(op, op.model(y, dtype=np.float32), tmp_path)


def test_of_a_chain_the_first_that_cannot_run_is_named(tmp_path):
    net = onnx_models.Net([1, 4, 8, 8], 5)
    y = net.node("Det", ["x"])
    for _ in range(6):
        y = net.node("Softmax", [y])
    (tmp_path / "model.onnx").write_bytes(net.model(y).SerializeToString())
    rows = json.loads(mica("info", tmp_path / "model.onnx", "--json"))["operations"]
    assert "Det" in rows[0]["reason"] and "Det, which it comes from" in rows[-1]["reason"]
