# SPDX-License-Identifier: MIT
"""Pictures and tasks for ONNX models, whose images have their channels first.

What a picture becomes is compared bit for bit with the same in Python, outputs with onnxruntime's, and what a task
makes of them with the same decoding of the same outputs. MICA_BUILD names the build directory (default: build).
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "pytools"))
onnx = pytest.importorskip("onnx")
ort = pytest.importorskip("onnxruntime")

import model_builder as mb  # noqa: E402
import onnx_models  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

MICA = (pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")) / "tools/mica/mica").resolve()
ENV = {k: v for k, v in os.environ.items() if k != "MICA_DEVICE"}
PICTURE = ROOT / "share/mica/chelsea.png"
DEVICES = ["cpu", "sim:a311d", "sim:rk3588"]
MEAN, DEVIATION = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])

pytestmark = pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built")


def mica(*arguments, code=0):
    done = subprocess.run([MICA, *map(str, arguments)], capture_output=True, text=True, env=ENV, timeout=300)
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def pixels_of(height, width, mode="RGB"):
    return np.asarray(Image.open(PICTURE).convert(mode).resize((width, height)))


def normalized(pixels, how):
    """Rows of pixels as a float tensor with the channels first."""
    values = pixels.astype(np.float64)
    if values.ndim == 2:
        values = values[..., None]
    values = {"none": lambda: values, "0..1": lambda: values / 255, "-1..1": lambda: (values - 127.5) / 127.5,
              "imagenet": lambda: (values - MEAN * 255) / (DEVIATION * 255)}[how]()
    return values.transpose(2, 0, 1)[None].astype(np.float32)


def run_reference(model, value):
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {session.get_inputs()[0].name: value})


class Case:
    """A model on the picture: what it gives on a device, and onnxruntime's own."""

    def __init__(self, model, folder, device, how="imagenet", arguments=()):
        self.path, self.picture = folder / "model.onnx", folder / "picture.png"
        self.path.write_bytes(model)
        shape = [d.dim_value for d in onnx.load_from_string(model).graph.input[0].type.tensor_type.shape.dim]
        self.pixels = pixels_of(*shape[2:])
        Image.fromarray(self.pixels).save(self.picture)
        value = normalized(self.pixels, how)
        self.reference = run_reference(model, value)
        files = [folder / f"out{i}.bin" for i in range(len(self.reference))]
        outputs = [word for file in files for word in ("-o", file)]
        self.report = json.loads(mica("run", self.path, self.picture, "--device", device, "--json", *outputs,
                                      *arguments).stdout)
        self.outputs = [np.fromfile(f, r.dtype).reshape(r.shape) for f, r in zip(files, self.reference)]
        value.tofile(folder / "in.bin")
        mica("run", self.path, "--input", folder / "in.bin", "--device", device, *outputs)
        for file, own in zip(files, self.outputs):
            assert file.read_bytes() == own.tobytes()  # the picture became what Python makes of it

    def assert_close(self, steps=4):
        """Of random networks without anything that hides a difference: a few steps of 255."""
        for own, wanted in zip(self.outputs, self.reference):
            step = (wanted.max() - wanted.min()) / 255
            assert np.abs(own - wanted).max() <= steps * step and wanted.max() > wanted.min()


def quantize(net, *outputs, form="qdq", activations="u8", weights="s8", per_channel=False):
    return onnx_models.quantize(net.model(*outputs), form, activations, weights, per_channel)


# ---- pictures -----------------------------------------------------------------


def echo(low, high, shape=(1, 3, 12, 10), dtype=np.uint8, symmetric=False):
    """A model that only quantizes its input, with this range, and gives it back."""
    scale = max(-low, high) / 127 if symmetric else (high - low) / 255
    first = -128 if dtype == np.int8 else 0
    zero = 0 if symmetric else int(round(first - low / scale))
    constants = [numpy_helper.from_array(np.float32(scale), "scale"), numpy_helper.from_array(dtype(zero), "zero")]
    nodes = [helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
             helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["y"])]
    graph = helper.make_graph(nodes, "echo", [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
                              [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    return model.SerializeToString()


@pytest.mark.parametrize("low, high, how", [
    (-2.118, 2.64, "imagenet"), (-1.9, 2.2, "imagenet"), (-1, 1, "-1..1"), (-0.98, 0.99, "-1..1"), (0, 1, "0..1"),
    (0, 0.93, "0..1"), (0, 255, "none"), (0, 231, "none"),
])
@pytest.mark.parametrize("dtype", [np.uint8, np.int8])
def test_the_range_that_a_model_quantizes_tells_how_samples_become_values(low, high, how, dtype, tmp_path):
    (tmp_path / "m.onnx").write_bytes(echo(low, high, dtype=dtype))
    done = mica("run", tmp_path / "m.onnx", PICTURE, "--device", "cpu", "--json", "-o", tmp_path / "o", "--task", "none")
    report = json.loads(done.stdout)
    assert (report["layout"], report["normalization"]) == ("NCHW", how)
    assert f"--normalize {how}, as the model quantizes values from" in done.stderr
    got = np.fromfile(tmp_path / "o", np.float32).reshape(1, 3, 12, 10)
    wanted = np.clip(normalized(pixels_of(12, 10), how), low, high)
    assert np.abs(got - wanted).max() <= (high - low) / 255 * 0.51


@pytest.mark.parametrize("how", ["none", "0..1", "-1..1", "imagenet"])
def test_samples_become_what_the_user_says_and_back(how, tmp_path):
    """Through a model that changes nothing but the precision: the picture comes out again."""
    values = normalized(np.array([[[0] * 3, [255] * 3]]), how)
    (tmp_path / "m.onnx").write_bytes(echo(float(values.min()), float(values.max())))
    done = mica("run", tmp_path / "m.onnx", PICTURE, "--device", "cpu", "--normalize", how, "--task", "super-resolution",
                "--picture", tmp_path / "again.png")
    assert "--normalize" not in done.stderr and "a picture of 10 x 12" in done.stdout
    again = np.asarray(Image.open(tmp_path / "again.png")).astype(int)
    assert np.abs(again - pixels_of(12, 10)).max() <= 1


def test_means_and_deviations_of_ones_own(tmp_path):
    (tmp_path / "m.onnx").write_bytes(echo(-4, 4))
    run = lambda *more: (mica("run", tmp_path / "m.onnx", PICTURE, "--device", "cpu", "-o", tmp_path / "o",
                              "--task", "none", *more), (tmp_path / "o").read_bytes())[1]
    assert run("--normalize", "0.485,0.456,0.406/0.229,0.224,0.225") == run("--normalize", "imagenet")
    assert run("--normalize", "0.5/0.5") == run("--normalize=-1..1") != run("--normalize", "0.5/0.25")


@pytest.mark.parametrize("how", ["", "imagenett", "1", "0.5/", "/1", "0.5/0", "1,2/1", "1,2,3,4/1", "0/-1", "nan/1",
                                 "0/inf", "0/1x", "0 /1", "0,0,0/1,1,"])
def test_other_normalizations_are_a_wrong_command_line(how, tmp_path):
    (tmp_path / "m.onnx").write_bytes(echo(-1, 1))
    done = mica("run", tmp_path / "m.onnx", PICTURE, "--device", "cpu", "--normalize", how, code=2)
    assert "--normalize must be none, 0..1, -1..1, imagenet, or means and deviations" in done.stderr


def test_gray_pictures(tmp_path):
    (tmp_path / "m.onnx").write_bytes(echo(0, 1, (1, 1, 14, 9)))
    mica("run", tmp_path / "m.onnx", PICTURE, "--device", "cpu", "-o", tmp_path / "o", "--task", "none")
    got = np.fromfile(tmp_path / "o", np.float32).reshape(14, 9)
    gray = np.asarray(Image.open(PICTURE).convert("RGB").convert("L").resize((9, 14)))
    assert np.abs(got - gray / 255).max() <= 0.51 / 255


def test_a_layout_that_the_shape_leaves_open_is_the_formats_or_the_users(tmp_path):
    """3 x 4 x 3 is a picture both ways."""
    (tmp_path / "m.onnx").write_bytes(echo(0, 1, (1, 3, 4, 3)))
    pixels = {"NCHW": pixels_of(4, 3).transpose(2, 0, 1), "NHWC": pixels_of(3, 4)}
    for arguments, layout in ([], "NCHW"), (["--layout", "nchw"], "NCHW"), (["--layout", "NHWC"], "NHWC"):
        report = json.loads(mica("run", tmp_path / "m.onnx", PICTURE, "--device", "cpu", "-o", tmp_path / "o", "--task",
                                 "none", "--json", *arguments).stdout)
        assert report["layout"] == layout
        got = np.fromfile(tmp_path / "o", np.float32)
        assert np.abs(got * 255 - pixels[layout].ravel()).max() <= 0.51


def test_a_layout_that_does_not_fit_is_refused(tmp_path):
    (tmp_path / "m.onnx").write_bytes(echo(0, 1))
    run = lambda layout, code: mica("run", tmp_path / "m.onnx", PICTURE, "--device", "cpu", "--layout", layout,
                                    code=code).stderr
    assert "needs 1 x height x width x 1 or 3" in run("NHWC", 1) and "as --layout says" in run("NHWC", 1)
    assert "--layout must be NHWC" in run("CHW", 2)
    (tmp_path / "m.onnx").write_bytes(echo(0, 1, (1, 5, 6, 7)))
    assert "needs 1 x 1 or 3 x height x width" in mica("run", tmp_path / "m.onnx", PICTURE, code=1).stderr


def test_tflite_models_may_have_channels_first_too(tmp_path):
    m = mb.Model("uint8", seed=1)
    x = m.input((1, 3, 20, 18), (1 / 128, 128))
    (tmp_path / "m.tflite").write_bytes(m.finish([m.reshape(x, (1, 3 * 20 * 18))]))
    report = json.loads(mica("run", tmp_path / "m.tflite", PICTURE, "--device", "cpu", "-o", tmp_path / "o",
                             "--json").stdout)
    assert (report["layout"], report["normalization"]) == ("NCHW", "none")
    assert (tmp_path / "o").read_bytes() == pixels_of(20, 18).transpose(2, 0, 1).tobytes()


# ---- tasks --------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("form, activations, weights", [("qdq", "u8", "s8"), ("qop", "u8", "u8"), ("qdq", "s8", "s8")])
def test_classes(form, activations, weights, device, tmp_path):
    (tmp_path / "model.labels.txt").write_text("\n".join(f"thing {i}" for i in range(10)))
    case = Case(onnx_models.quantized("mobilenet", form, activations, weights, False), tmp_path, device)
    assert case.report["task"] == {"name": "classify"} and case.report["layout"] == "NCHW"
    top, wanted = case.report["outputs"][0]["top"], case.reference[0].ravel()
    assert [row["class"] for row in top] == sorted(range(10), key=lambda i: (-case.outputs[0].ravel()[i], i))[:5]
    assert all(row["label"] == f"thing {row['class']}" for row in top)
    assert wanted[top[0]["class"]] >= wanted.max() - (wanted.max() - wanted.min()) / 32  # but for a tie, the same
    case.assert_close(8)


@pytest.mark.parametrize("device", DEVICES)
def test_classes_without_flatten(device, tmp_path):
    """1 x classes x 1 x 1 is a list of classes too."""
    net = onnx_models.Net([1, 3, 24, 24], 4)
    y = net.node("GlobalAveragePool", [net.conv(net.conv("x", 16, stride=2, relu="relu"), 12, kernel=1)])
    case = Case(quantize(net, y), tmp_path, device)
    assert case.report["task"] == {"name": "classify"}
    assert case.report["outputs"][0]["top"][0]["class"] == case.outputs[0].ravel().argmax()


@pytest.mark.parametrize("device", DEVICES)
def test_areas(device, tmp_path):
    net = onnx_models.Net([1, 3, 24, 32], 5)
    y = net.conv(net.conv("x", 12, relu="relu"), 6, kernel=1)
    picture = tmp_path / "areas.png"
    case = Case(quantize(net, y), tmp_path, device, arguments=["--picture", picture])
    case.assert_close()
    areas = case.outputs[0][0].argmax(0)
    assert case.report["task"]["name"] == "segment"
    assert {row["class"]: row["pixels"] for row in case.report["task"]["classes"]} == \
        {c: n for c, n in enumerate(np.bincount(areas.ravel())) if n}
    drawn = np.asarray(Image.open(picture))
    assert ((drawn == case.pixels).all(-1) | (areas != 0)).all()
    assert (drawn != case.pixels).any(-1)[areas != 0].mean() > 0.99


@pytest.mark.parametrize("axes", [0, 1], ids=["kept", "flat"])
def test_areas_of_arg_max(axes, tmp_path):
    net = onnx_models.Net([1, 3, 24, 32], 5)
    y = net.conv(net.conv("x", 12, relu="relu"), 6, kernel=1)
    y = net.node("ArgMax", [y], axis=1, keepdims=1 - axes)
    model = net.model(y)
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.INT64
    case = Case(onnx_models.quantize(model, "qdq", "u8", "s8"), tmp_path, "cpu")
    assert case.report["task"]["name"] == "segment"
    assert {row["class"]: row["pixels"] for row in case.report["task"]["classes"]} == \
        {c: n for c, n in enumerate(np.bincount(case.outputs[0].ravel())) if n}
    assert np.mean(case.outputs[0] == case.reference[0]) > 0.97


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("flat", [False, True], ids=["1 x 1 x H x W", "1 x H x W"])
def test_depth(flat, device, tmp_path):
    net = onnx_models.Net([1, 3, 24, 32], 6)
    y = net.conv(net.conv("x", 12, relu="relu", stride=2), 1)
    if flat:
        y = net.node("Squeeze", [y, net.constant(np.array([1], np.int64))])
    picture = tmp_path / "depth.png"
    case = Case(quantize(net, y), tmp_path, device, arguments=["--picture", picture])
    case.assert_close()
    own, task = case.outputs[0], case.report["task"]
    assert task["name"] == "depth" and task["mean"] == pytest.approx(own.mean(), rel=1e-4, abs=1e-6)
    assert (task["least"], task["most"]) == (pytest.approx(own.min()), pytest.approx(own.max()))
    drawn = np.asarray(Image.open(picture))
    assert drawn.shape == case.pixels.shape and (drawn == drawn[..., :1]).all()
    assert (drawn.min(), drawn.max()) != (0, 0)


@pytest.mark.parametrize("device", DEVICES)
def test_more_pixels(device, tmp_path):
    net = onnx_models.Net([1, 3, 20, 24], 7)
    y = net.node("DepthToSpace", [net.conv("x", 12)], 3, blocksize=2, mode="DCR")
    picture = tmp_path / "large.png"
    case = Case(quantize(net, y), tmp_path, device, arguments=["--picture", picture])
    case.assert_close()
    assert case.report["task"] == {"name": "super-resolution", "width": 48, "height": 40}
    drawn, own = np.asarray(Image.open(picture)).astype(float), case.outputs[0][0].transpose(1, 2, 0).astype(float)
    wanted = np.clip((own * DEVIATION + MEAN) * 255, 0, 255)
    assert drawn.shape == wanted.shape and np.abs(drawn - wanted).max() <= 0.51


@pytest.mark.parametrize("device", ["cpu", "sim:rk3588"])
def test_more_pixels_of_gray(device, tmp_path):
    """As the sub-pixel network of the model zoo: brightness alone."""
    net = onnx_models.Net([1, 1, 20, 24], 8)
    y = net.node("DepthToSpace", [net.conv("x", 9, kernel=5)], 1, blocksize=3, mode="DCR")
    (tmp_path / "m.onnx").write_bytes(quantize(net, y))
    picture = tmp_path / "large.png"
    report = json.loads(mica("run", tmp_path / "m.onnx", PICTURE, "--normalize", "0..1", "--picture", picture, "--device",
                             device, "-o", tmp_path / "o", "--json").stdout)
    assert report["task"] == {"name": "super-resolution", "width": 72, "height": 60}
    own = np.fromfile(tmp_path / "o", np.float32).reshape(60, 72)
    drawn = np.asarray(Image.open(picture)).astype(float)
    assert (drawn == drawn[..., :1]).all() and np.abs(drawn[..., 0] - np.clip(own * 255.0, 0, 255)).max() <= 0.51


@pytest.mark.parametrize("device", DEVICES)
def test_points_of_a_body(device, tmp_path):
    net = onnx_models.Net([1, 3, 33, 49], 9)
    y = net.conv(net.conv("x", 16, stride=2, relu="relu"), 16, stride=2, relu="relu")
    case = Case(quantize(net, net.conv(y, 17, kernel=1), net.conv(y, 34, kernel=1)), tmp_path, device)
    case.assert_close(6)
    heat, offsets = (output[0].astype(float) for output in case.outputs)
    assert case.report["task"]["name"] == "pose"
    for k, point in enumerate(case.report["task"]["points"]):
        y, x = np.unravel_index(heat[k].argmax(), heat[k].shape)
        assert point["x"] == pytest.approx((x * 48 / (heat.shape[2] - 1) + offsets[17 + k, y, x]) / 49, abs=1e-5)
        assert point["y"] == pytest.approx((y * 32 / (heat.shape[1] - 1) + offsets[k, y, x]) / 33, abs=1e-5)
        assert point["score"] == pytest.approx(1 / (1 + np.exp(-heat[k, y, x])), abs=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_grids_of_boxes(device, tmp_path):
    net = onnx_models.Net([1, 3, 32, 48], 13)
    fine = net.conv(net.conv("x", 16, stride=2, relu="relu"), 16, stride=2, relu="relu")
    coarse = net.conv(fine, 16, stride=2, relu="relu")
    case = Case(quantize(net, net.conv(fine, 8, kernel=1), net.conv(coarse, 8, kernel=1)), tmp_path, device,
                arguments=["--threshold", 0.02])
    case.assert_close(6)
    wanted = []
    for grid in case.outputs:
        grid = grid[0].astype(float)
        for y in range(grid.shape[1]):
            for x in range(grid.shape[2]):
                cell = grid[:, y, x]
                score = cell[4] * cell[5:].max()
                if cell[4] >= 0.02 and score >= 0.02:
                    wanted.append(score)
    detections = case.report["task"]["detections"]
    assert case.report["task"]["name"] == "detect" and detections
    assert detections[0]["score"] == pytest.approx(max(wanted), abs=1e-5)
    assert {round(row["score"], 4) for row in detections} <= {round(score, 4) for score in wanted}


def yolo_net(kind, seed, classes=3):
    """Grids of strides 8, 16 and 32, flattened one after the other, as the exporters of the YOLO family do it."""
    net = onnx_models.Net([1, 3, 64, 96], seed)
    values = {"v8": 4 + classes, "yolox": 5 + classes, "v5": 5 + classes}[kind]
    y, lists = net.conv(net.conv("x", 8, stride=2, relu="relu"), 12, stride=2, relu="relu"), []
    for _ in range(3):
        y = net.conv(y, 16, stride=2, relu="relu")
        grid = net.conv(y, values * (3 if kind == "v5" else 1), kernel=1)
        lists.append(net.node("Reshape", [grid, net.constant(np.array([1, values, -1], np.int64))], values))
    y = net.node("Concat", lists, values, axis=2)
    if kind != "v8":
        y = net.node("Transpose", [y], values, perm=[0, 2, 1])
    return net, y


def yolo_boxes(output, kind, threshold, height=64, width=96):
    rows = output[0].T if kind == "v8" else output[0]
    if kind != "yolox" and (rows[:, :2] <= 2).all():
        height_of, width_of = 1, 1  # shares of the picture, not pixels
    else:
        height_of, width_of = height, width
    cells = [(s, x, y) for s in (8, 16, 32) for y in range(height // s) for x in range(width // s)]
    found = []
    for i, row in enumerate(rows.astype(np.float64)):
        scores = row[4:] if kind == "v8" else row[4] * row[5:]
        if (kind != "v8" and row[4] < threshold) or scores.max() < threshold:
            continue
        x, y, w, h = row[:4]
        if kind == "yolox":
            stride, column, line = cells[i]
            x, y, w, h = (x + column) * stride, (y + line) * stride, np.exp(w) * stride, np.exp(h) * stride
        found.append((scores.max(), int(scores.argmax()),
                      np.array([x - w / 2, y - h / 2, x + w / 2, y + h / 2]) / ([width_of, height_of] * 2)))
    found.sort(key=lambda row: -row[0])
    kept = []
    for row in found:
        if all(row[1] != other[1] or overlap(row[2], other[2]) <= 0.45 for other in kept):
            kept.append(row)
    return found, kept[:100]


def area(box):
    return max(box[2] - box[0], 0) * max(box[3] - box[1], 0)


def overlap(a, b):
    common = area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])
    whole = area(a) + area(b) - common
    return common / whole if whole > 0 else 0


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind, seed, threshold", [("v8", 21, 0.2), ("v5", 22, 0.2), ("yolox", 21, 0.03)])
def test_lists_of_boxes(kind, seed, threshold, device, tmp_path):
    net, y = yolo_net(kind, seed)
    picture = tmp_path / "boxes.png"
    case = Case(quantize(net, y), tmp_path, device, arguments=["--threshold", threshold, "--picture", picture])
    case.assert_close(6)
    found, wanted = yolo_boxes(case.outputs[0], kind, threshold)
    detections = case.report["task"]["detections"]
    assert case.report["task"]["name"] == "detect" and 5 < len(wanted) == len(detections)
    assert kind != "yolox" or len(wanted) < len(found)  # some overlapped
    for row, (score, label, box) in zip(detections, wanted):
        assert row["score"] == pytest.approx(score, abs=1e-5) and row["class"] == label
        assert [row["left"], row["top"], row["right"], row["bottom"]] == pytest.approx(box, rel=1e-4, abs=1e-4)
    assert (np.asarray(Image.open(picture)) != case.pixels).any()


# ---- compare, executables --------------------------------------------------------


@pytest.mark.parametrize("device", ["sim:a311d", "sim:rk3588"])
def test_compare_takes_a_picture(device, tmp_path):
    (tmp_path / "m.onnx").write_bytes(onnx_models.quantized("mobilenet", "qdq", "u8", "s8", False))
    report = json.loads(mica("compare", tmp_path / "m.onnx", PICTURE, "--device", device, "--json").stdout)
    assert report["input"] == "a picture" and report["summary"]["inconsistent"] == 0
    on_npu = [layer for layer in report["layers"] if layer["runs_on"] == "NPU"]
    assert len(on_npu) >= 10 and all(layer["alone"]["largest"] <= 1 for layer in on_npu)
    output, = report["outputs"]
    assert output["shape"] == [1, 10] and output["psnr"] > 25


def test_an_executable_of_an_onnx_model_takes_a_picture_on_its_own_chip(tmp_path):
    model = tmp_path / "m.onnx"
    model.write_bytes(onnx_models.quantized("mobilenet", "qdq", "u8", "s8", False))
    mica("compile", model, "--device", "sim:rk3566", "-o", tmp_path / "m.mica")
    get = lambda path, *more: json.loads(mica("run", path, PICTURE, "--json", *more).stdout)
    saved, direct = get(tmp_path / "m.mica"), get(model, "--device", "sim:rk3566")
    for key in ("device", "layout", "normalization", "outputs", "task"):
        assert saved[key] == direct[key]
