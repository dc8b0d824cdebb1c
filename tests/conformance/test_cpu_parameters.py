# SPDX-License-Identifier: MIT
"""The CPU kernels against TensorFlow Lite's reference kernels over the parameters of every operation.

Models are made here. MICA_BUILD names the build directory (default: build).
"""

import math
import pathlib
import sys

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/pytools"))
import model_builder as mb  # noqa: E402
from cpu_judge import TOOL, interpreter_of, judge  # noqa: E402

pytestmark = pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")

TYPES = ["uint8", "int8"]
ACTIVATIONS = [None, "relu", "relu_n1_to_1", "relu6"]


def finish(m, outputs):
    """Without quantization of float32 tensors, which the builder derives from their (absent) input's."""
    for tensor in m.graph.tensors:
        if tensor.type == schema.TensorType.FLOAT32:
            tensor.quantization = None
    return m.finish(outputs)


def check(data, tmp_path, seed=3, values=None, **options):
    if values is None:
        values = [mb.random_input(d, seed + i) for i, d in enumerate(interpreter_of(data).get_input_details())]
    assert judge(data, values, tmp_path, **options) > 0


# ---- weighted operations, 8 bits ---------------------------------------------

WINDOWS = [
    dict(kernel=(1, 1)),
    dict(kernel=(3, 3)),
    dict(kernel=(3, 3), stride=(2, 2)),
    dict(kernel=(5, 3), stride=(1, 2), padding="VALID"),
    dict(kernel=(2, 7), stride=(3, 1)),
    dict(kernel=(3, 3), dilation=(2, 3)),
    dict(kernel=(3, 5), dilation=(3, 1), padding="VALID"),
    dict(kernel=(1, 4), stride=(4, 4)),
]


@pytest.mark.parametrize("dtype, per_channel", [("uint8", False), ("int8", False), ("int8", True)])
@pytest.mark.parametrize("window", range(len(WINDOWS)))
def test_conv(dtype, per_channel, window, tmp_path):
    data = mb.conv2d((13, 11), 5, 9, dtype=dtype, per_channel=per_channel, seed=window, **WINDOWS[window])
    check(data, tmp_path)


@pytest.mark.parametrize("dtype, per_channel", [("uint8", False), ("int8", False), ("int8", True)])
@pytest.mark.parametrize("window", range(len(WINDOWS)))
@pytest.mark.parametrize("multiplier", [1, 3])
def test_depthwise(dtype, per_channel, window, multiplier, tmp_path):
    data = mb.depthwise((13, 11), 5, multiplier, dtype=dtype, per_channel=per_channel, seed=window, **WINDOWS[window])
    check(data, tmp_path)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("channels", [(1, 1), (3, 33), (300, 2), (17, 260)])
def test_conv_of_odd_channels(dtype, channels, tmp_path):
    check(mb.conv2d((7, 6), *channels, kernel=(2, 2), dtype=dtype, seed=4), tmp_path)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("scale", [0.9, 0.03, 0.0004])
def test_activations_of_any_output_scale(dtype, activation, scale, tmp_path):
    """Scales of the output from far too large to far too small, with values beyond either end."""
    m = mb.Model(dtype, 9)
    x = m.input((1, 6, 5, 8))
    quant = (scale, 100 if dtype == "uint8" else -30)
    outs = [m.conv2d(x, 6, (3, 3), activation=activation, output_quant=quant),
            m.depthwise(x, activation=activation, output_quant=quant),
            m.fully_connected(x, 7, activation=activation, output_quant=quant),
            m.add(x, x, activation=activation, output_quant=quant)]
    check(finish(m, outs), tmp_path)


@pytest.mark.parametrize("dtype", TYPES)
def test_no_bias_and_batches(dtype, tmp_path):
    m = mb.Model(dtype, 2)
    x = m.input((3, 5, 4, 6))
    outs = [m.conv2d(x, 4, (3, 3)), m.depthwise(x, bias=False), m.pool(x), m.resize(x, (7, 9))]
    check(finish(m, outs), tmp_path)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("batch", [1, 6])
@pytest.mark.parametrize("bias", [False, True])
def test_fully_connected(dtype, batch, bias, tmp_path):
    check(mb.fully_connected(77, 41, batch, dtype, bias=bias, seed=batch), tmp_path)


def test_fully_connected_with_a_weight_zero_point_and_kept_dimensions(tmp_path):
    m = mb.Model("int8", 3)
    x = m.input((2, 3, 4, 10))
    check(finish(m, [m.fully_connected(x, 5, keep_dims=True, weight_quant=(0.01, 7))]), tmp_path)


def test_fully_connected_per_channel(tmp_path):
    m = mb.Model("int8", 3)
    x = m.input((4, 40))
    scales = m.rng.uniform(0.002, 0.02, 12).astype(np.float32)
    weights = m.constant("weights", m.rng.integers(-127, 128, (12, 40)), "int8", (scales, np.zeros(12)), 0)
    bias = m.constant("bias", m.rng.integers(-9999, 9999, 12), "int32", (scales * np.float32(x.scale), np.zeros(12)))
    out = m.tensor("out", (4, 12), "int8", (0.05, 3))
    m.operator("FULLY_CONNECTED", [x, weights, bias], [out], schema.FullyConnectedOptionsT(), version=9)
    check(finish(m, [out]), tmp_path)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("operation", ["conv2d", "depthwise", "fully_connected"])
def test_exact_ties(dtype, operation, tmp_path):
    """Factors that are powers of two make halves common."""
    zero = 128 if dtype == "uint8" else 0
    for shift in (1, 4, 7):
        m = mb.Model(dtype, 5)
        x = m.input((1, 9, 8, 4), (1.0, zero + 1))
        out = getattr(m, operation)(x, *([6] if operation != "depthwise" else []), weight_quant=(0.5, zero),
                                    output_quant=(2.0**shift, zero))
        (tmp_path / str(shift)).mkdir()
        check(finish(m, [out]), tmp_path / str(shift))


# ---- addition ----------------------------------------------------------------

BROADCASTS = [((1, 5, 4, 6), (1, 5, 4, 6)), ((1, 5, 4, 6), (1, 1, 1, 6)), ((1, 5, 4, 6), (1, 5, 4, 1)),
              ((2, 1, 4, 6), (1, 5, 1, 6)), ((2, 5, 4, 6), (6,)), ((1, 1, 4, 1), (3, 5, 1, 6)), ((7,), (1,))]


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shapes", BROADCASTS, ids=str)
def test_add(dtype, shapes, tmp_path):
    check(mb.add(shapes[0], dtype, shapes[1], seed=6), tmp_path)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scales", [(1.0, 1.0, 2.0), (0.5, 0.001, 0.4), (0.0007, 3.0, 5.0), (0.25, 0.125, 0.5)], ids=str)
def test_add_of_unequal_scales(dtype, scales, tmp_path):
    zero = 128 if dtype == "uint8" else 0
    quants = ((scales[0], zero + 5), (scales[1], zero - 11))
    check(mb.add((1, 16, 16, 16), dtype, quants=quants, output_quant=(scales[2], zero + 1)), tmp_path)


# ---- pools -------------------------------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("kind", ["average", "max"])
@pytest.mark.parametrize("window, stride, padding", [((2, 2), (2, 2), "VALID"), ((3, 3), (2, 2), "SAME"),
                                                     ((3, 2), (1, 3), "SAME"), ((13, 11), (1, 1), "VALID"),
                                                     ((7, 9), (1, 1), "SAME")])
def test_pool(dtype, kind, window, stride, padding, tmp_path):
    m = mb.Model(dtype, 8)
    x = m.input((2, 13, 11, 7))
    check(finish(m, [m.pool(x, kind, window, stride, padding, a) for a in (None, "relu", "relu6")]), tmp_path)


# ---- softmax, logistic, conversions ------------------------------------------


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [0.0005, 0.02, 0.0883, 0.3, 1.0, 5.5, 40.0])
@pytest.mark.parametrize("beta", [1.0, 0.3, 10.0])
def test_softmax(dtype, scale, beta, tmp_path):
    m = mb.Model(dtype, 1)
    outs = [m.softmax(m.input(shape, (scale, 3)), beta) for shape in ((64, 10), (2, 3, 91), (3, 400), (5, 1))]
    check(finish(m, outs), tmp_path)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("scale", [0.001, 0.05, 0.3])
def test_logistic_of_every_value(dtype, scale, tmp_path):
    data = mb.logistic((1, 256), dtype=dtype, input_quant=(scale, 9))
    low = mb.RANGES[dtype][0]
    check(data, tmp_path, values=[np.arange(low, low + 256).astype(dtype)[None]])


@pytest.mark.parametrize("dtype", TYPES)
def test_quantize_float(dtype, tmp_path):
    m = mb.Model(dtype, 1)
    x = m.input((1, 4000), dtype="float32")
    value = np.random.default_rng(1).normal(0, 20, (1, 4000)).astype(np.float32)
    value[0, :2000] = np.arange(-1000, 1000) / 8  # halves of the second scale
    value[0, :2] = 1e6, -1e6
    check(finish(m, [m.quantize(x, dtype, (0.0371, 20)), m.quantize(x, dtype, (0.25, 100))]), tmp_path, values=[value])


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_requantize_and_dequantize(source, target, tmp_path):
    m = mb.Model(source, 1)
    x = m.input((1, 256), (0.0773, 17))
    low = mb.RANGES[source][0]
    quants = [None, (0.0773, 30), (0.021, 3), (0.9, 5), (7.7, 60), (0.0773 / 2, 0)]
    outs = [m.quantize(x, target, quant) for quant in quants]
    check(finish(m, outs + [m.dequantize(x)]), tmp_path, values=[np.arange(low, low + 256).astype(source)[None]])


# ---- concatenation, padding, reshaping, resizing ------------------------------


@pytest.mark.parametrize("dtype", TYPES + ["float32"])
@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1])
def test_concatenation(dtype, axis, tmp_path):
    m = mb.Model(dtype, 1)
    shapes = []
    for size in (1, 4, 2):
        shape = [2, 3, 5, 4]
        shape[axis] = size
        shapes.append(shape)
    check(finish(m, [m.concat([m.input(s, None if dtype == "float32" else (0.1, 4)) for s in shapes], axis)]), tmp_path)


def test_concatenation_of_different_scales(tmp_path):
    m = mb.Model("uint8", 1)
    quants = [(0.02, 12), (0.05, 120), (0.05, 100), (0.31, 255), (0.001, 0), (0.025, 1), (0.1, 120)]
    inputs = [m.input((1, 8, 8, 9), quant) for quant in quants]
    check(finish(m, [m.concat(inputs, 3, output_quant=(0.05, 120))]), tmp_path)


@pytest.mark.parametrize("dtype", TYPES + ["float32"])
def test_pad(dtype, tmp_path):
    m = mb.Model(dtype, 1)
    quant = None if dtype == "float32" else (0.1, 77)
    a, b = m.input((2, 3, 4, 5), quant), m.input((6, 7), quant)
    outs = [m.pad(a, [(0, 0), (1, 2), (3, 0), (0, 0)]), m.pad(a, [(1, 0), (0, 0), (0, 1), (2, 3)]),
            m.pad(b, [(0, 5), (2, 2)])]
    check(finish(m, outs), tmp_path)


@pytest.mark.parametrize("dtype", TYPES + ["float32"])
def test_reshape(dtype, tmp_path):
    m = mb.Model(dtype, 1)
    x = m.input((2, 3, 4, 5), None if dtype == "float32" else (0.1, 7))
    check(finish(m, [m.reshape(x, (6, 20)), m.reshape(x, (120,))]), tmp_path)


@pytest.mark.parametrize("dtype", TYPES + ["float32"])
@pytest.mark.parametrize("kind", ["bilinear", "nearest"])
@pytest.mark.parametrize("flags", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str)
def test_resize(dtype, kind, flags, tmp_path):
    m = mb.Model(dtype, 1)
    x = m.input((2, 7, 9, 3), None if dtype == "float32" else (0.1, 7))
    sizes = [(14, 18), (3, 4), (1, 1), (17, 5), (7, 9), (33, 65)]
    check(finish(m, [m.resize(x, size, kind, **flags) for size in sizes]), tmp_path)


# ---- float32 -----------------------------------------------------------------


def float_weighted(m, code, x, shape, out_shape, options):
    weights = m.constant(f"weights{len(m.graph.tensors)}", m.rng.normal(0, 1, shape), "float32")
    bias = m.constant(f"bias{len(m.graph.tensors)}", m.rng.normal(0, 1, out_shape[-1]), "float32")
    out = m.tensor(f"out{len(m.graph.tensors)}", out_shape, "float32")
    return m.operator(code, [x, weights, bias], [out], options)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_float(activation, tmp_path):
    m = mb.Model("float32", 1)
    x, y = m.input((2, 9, 8, 7)), m.input((1, 8, 1))
    conv, depthwise, dense = schema.Conv2DOptionsT(), schema.DepthwiseConv2DOptionsT(), schema.FullyConnectedOptionsT()
    conv.strideH, conv.strideW, conv.dilationHFactor, conv.dilationWFactor = 2, 1, 1, 2
    depthwise.strideH, depthwise.strideW, depthwise.depthMultiplier = 1, 2, 2
    depthwise.dilationHFactor = depthwise.dilationWFactor = 1
    for options in (conv, depthwise, dense):
        options.fusedActivationFunction = mb.ACTIVATIONS[activation]
    outs = [float_weighted(m, "CONV_2D", x, (19, 3, 3, 7), (2, 5, 8, 19), conv),
            float_weighted(m, "DEPTHWISE_CONV_2D", x, (1, 3, 3, 14), (2, 9, 4, 14), depthwise),
            float_weighted(m, "FULLY_CONNECTED", m.reshape(x, (2, 504)), (33, 504), (2, 33), dense)]
    added = m.tensor("added", x.shape, "float32")
    options = schema.AddOptionsT()
    options.fusedActivationFunction = mb.ACTIVATIONS[activation]
    outs.append(m.operator("ADD", [x, y], [added], options))
    outs += [m.pool(x, kind, (3, 2), (2, 2), "SAME", activation) for kind in ("average", "max")]
    check(finish(m, outs), tmp_path)


def test_float_softmax_and_logistic(tmp_path):
    m = mb.Model("float32", 1)
    x = m.input((4, 500))
    soft, logistic = m.tensor("soft", x.shape, "float32"), m.tensor("logistic", x.shape, "float32")
    options = schema.SoftmaxOptionsT()
    options.beta = 0.7
    m.operator("SOFTMAX", [x], [soft], options)
    m.operator("LOGISTIC", [x], [logistic])
    value = np.random.default_rng(1).normal(0, 10, x.shape).astype(np.float32)
    check(finish(m, [soft, logistic]), tmp_path, values=[value])


# ---- detection post-processing -------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("regular", [False, True])
@pytest.mark.parametrize("background", [0, 1])
@pytest.mark.parametrize("classes_per_box, threshold", [(1, 0.3), (3, 0.0), (1, 0.9999)])
def test_detection(dtype, regular, background, classes_per_box, threshold, tmp_path):
    boxes, classes, most = 60, 5, 12
    m = mb.Model(dtype, 11)
    rng = np.random.default_rng(5)
    is_float = dtype == "float32"
    encodings = m.input((1, boxes, 4), None if is_float else (0.05, 130))
    scores = m.input((1, boxes, classes + background), None if is_float else (1 / 256, 0))
    centres = np.concatenate([rng.uniform(0.1, 0.9, (boxes, 2)), rng.uniform(0.05, 0.4, (boxes, 2))], axis=1)
    anchors = m.constant("anchors", centres if is_float else np.rint(centres * 255), dtype,
                         None if is_float else (1 / 255, 0))
    outs = [m.tensor(name, shape, "float32") for name, shape in (
        ("boxes", (1, most * classes_per_box, 4)), ("classes", (1, most * classes_per_box)),
        ("scores", (1, most * classes_per_box)), ("count", (1,)))]
    m.custom("TFLite_Detection_PostProcess", [encodings, scores, anchors], outs, {
        "max_detections": most, "max_classes_per_detection": classes_per_box, "detections_per_class": 7,
        "use_regular_nms": regular, "nms_score_threshold": threshold, "nms_iou_threshold": 0.4,
        "num_classes": classes, "y_scale": 10.0, "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0})
    value = rng.normal(0, 1, (1, boxes, 4))
    # Scores that differ from each other: TensorFlow Lite leaves the order of equal classes of a box to its sorting.
    score = rng.permutation(boxes * (classes + background)).reshape(1, boxes, -1) / (boxes * (classes + background))
    if not is_float:
        value = np.clip(value * 20 + 130, 0, 255)
        score = np.argsort(np.argsort(score, axis=2), axis=2) * 40 + np.floor(score * 40)
    check(finish(m, outs), tmp_path, values=[value.astype(dtype), score.astype(dtype)])
