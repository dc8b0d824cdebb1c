# SPDX-License-Identifier: MIT
"""`mica compare`: the figures that it prints, computed again from TFLite's own tensors and from the CPU kernels in the
NPU's arithmetic, which know nothing of compiler and simulator.

MICA_BUILD names the build directory (default: build).
"""

import json
import math
import os
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/pytools"))
import model_builder as mb  # noqa: E402
from cpu_judge import TOOL, interpreter_of  # noqa: E402

MICA = (pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")) / "tools/mica/mica").resolve()
MODELS = ROOT.parent / "shared/models"
MOBILENET = ROOT / "share/mica/mobilenet_v1_1.0_224_quant.tflite"
PICTURE = ROOT / "share/mica/chelsea.png"
ARITHMETIC = {"sim:a311d": "vivante-v7", "sim:imx8mp": "vivante-v8", "sim:rk3588": "rockchip",
              "sim:rk3566": "rockchip-rk356x"}

# What the CPU kernels compute as the NPU does; of all else the device's values are bounded here.
MODELLED = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD"}

pytestmark = [
    pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built"),
    pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built"),
]


def mica(*arguments, code=0):
    done = subprocess.run([str(MICA), *map(str, arguments)], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stderr
    return done


def compare(model, *arguments):
    return json.loads(mica("compare", model, "--order", "model", "--json", *arguments).stdout)


class Truth:
    """What TFLite computes, and what each operation alone gives in an NPU's arithmetic."""

    def __init__(self, model, value, tmp_path):
        self.model, self.tmp_path = model, tmp_path
        self.interpreter = interpreter_of(model)
        detail, = self.interpreter.get_input_details()
        self.input = tmp_path / "in.bin"
        value.tofile(self.input)
        self.interpreter.set_tensor(detail["index"], value)
        self.interpreter.invoke()
        self.ops = [op for op in self.interpreter._get_ops_details() if op["op_name"] != "DELEGATE"]
        self.tensors = {i: self.interpreter.get_tensor(i) for op in self.ops for i in op["outputs"]}
        self.details = {d["index"]: d for d in self.interpreter.get_tensor_details()}
        self.exact = tmp_path / "exact"
        self.exact.mkdir()
        value.tofile(self.exact / f"tensor_{detail['index']}.bin")
        for index, tensor in self.tensors.items():
            tensor.tofile(self.exact / f"tensor_{index}.bin")

    def alone(self, arithmetic):
        """The tensors of every operation, from the reference's inputs."""
        directory = self.tmp_path / arithmetic
        directory.mkdir()
        done = subprocess.run([TOOL, self.model, "--arithmetic", arithmetic, "--output-dir", directory, "--all",
                               "--feed-exact", self.exact, "--input", self.input, "--skip-unsupported"],
                              capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        return {i: np.fromfile(directory / f"tensor_{i}.bin", t.dtype).reshape(t.shape)
                for i, t in self.tensors.items()}

    def real(self, index, tensor):
        scales, zero_points = (self.details[index]["quantization_parameters"][k] for k in ("scales", "zero_points"))
        tensor = tensor.astype(np.float64)
        return scales[0].astype(np.float64) * (tensor - zero_points[0]) if len(scales) else tensor

    def is_per_channel(self, op):
        return any(len(self.details[i]["quantization_parameters"]["scales"]) > 1 for i in op["inputs"] if i >= 0)

    def difference(self, op, got):
        """The figures of an operation whose outputs are `got`."""
        outputs = list(op["outputs"])
        codes = np.concatenate([got[i].ravel().astype(np.float64) - self.tensors[i].ravel() for i in outputs])
        a = np.concatenate([self.real(i, got[i]).ravel() for i in outputs])
        b = np.concatenate([self.real(i, self.tensors[i]).ravel() for i in outputs])
        lengths = np.linalg.norm(a) * np.linalg.norm(b)
        return {"values": codes.size, "differing": int((codes != 0).sum()), "share": (codes != 0).mean(),
                "largest": np.abs(codes).max(), "mean": np.abs(codes).mean(),
                "cosine": a @ b / lengths if lengths else float((a == b).all()),
                "error": math.sqrt(((a - b) ** 2).sum() / (b ** 2).sum()) if (a != b).any() else 0}


def assert_figures(got, wanted, what):
    for key, value in wanted.items():
        if isinstance(value, int):
            assert got[key] == value, (what, key, got, wanted)
        else:
            assert got[key] == pytest.approx(value, rel=1e-6, abs=1e-9), (what, key, got, wanted)


def random_input(model, seed=1):
    detail, = interpreter_of(model).get_input_details()
    info = np.iinfo(detail["dtype"])
    return np.random.default_rng(seed).integers(info.min, info.max + 1, detail["shape"], detail["dtype"])


def check(model, device, tmp_path):
    truth = Truth(model, random_input(model), tmp_path)
    alone = truth.alone(ARITHMETIC[device])
    report = compare(model, "--device", device, "--input", truth.input)
    assert len(report["layers"]) == len(truth.ops)
    assert report["summary"]["inconsistent"] == 0
    on_npu = 0
    for layer, op in zip(report["layers"], truth.ops, strict=True):
        assert layer["type"] == op["op_name"]
        if layer["runs_on"] == "CPU":
            assert layer["reason"] and layer["alone"] is None
            continue
        on_npu += 1
        assert layer["alone"]["largest"] <= 1
        if layer["type"] in MODELLED and (device.startswith("sim:rk") or not truth.is_per_channel(op)):
            assert_figures(layer["alone"], truth.difference(op, alone), (layer["index"], layer["type"], "alone"))
    assert report["summary"]["npu_operations"] == on_npu > 0
    assert report["summary"]["exact_alone"] == sum(layer["runs_on"] == "NPU" and not layer["alone"]["differing"]
                                                   for layer in report["layers"])
    check_output(truth, report, device)


def check_output(truth, report, device):
    """The chain ends with what `mica run` gives."""
    out = truth.tmp_path / "out.bin"
    mica("run", truth.model, "--input", truth.input, "-o", out, "--device", device)
    detail, = truth.interpreter.get_output_details()
    index = detail["index"]
    op, = (op for op in truth.ops if index in op["outputs"])
    got = {index: np.fromfile(out, detail["dtype"]).reshape(truth.tensors[index].shape)}
    layer = report["layers"][truth.ops.index(op)]
    wanted = truth.difference(op, got)
    assert_figures(layer["chained"], wanted, "chained")
    assert_figures(layer["border"], wanted, "as it runs")


@pytest.mark.parametrize("device", ARITHMETIC)
def test_figures_of_a_chain(device, tmp_path):
    """Convolutions, a depthwise one and an addition, some used twice."""
    m = mb.Model("uint8", seed=3)
    x = m.input((1, 14, 14, 16))
    y = m.conv2d(x, 24, kernel=(3, 3), activation="relu6")
    z = m.depthwise(y, 1, (3, 3), (1, 1), "SAME", activation="relu6")
    model = tmp_path / "model.tflite"
    model.write_bytes(m.finish([m.add(y, m.conv2d(z, 24, kernel=(1, 1)))]))
    check(model, device, tmp_path)


@pytest.mark.parametrize("device", ["sim:a311d", "sim:rk3588"])
@pytest.mark.parametrize("name", ["mobilenet_v1_0.25_128_quant", "tiny_resnet8_cifar_int8"])
def test_figures_of_networks(name, device, tmp_path):
    model = MODELS / f"{name}.tflite"
    if not model.exists():
        pytest.skip(f"{model} is not there")
    check(model, device, tmp_path)


def test_the_cpu_is_the_reference():
    report = compare(MOBILENET, PICTURE, "--device", "cpu")
    assert report["input"] == "a picture"
    assert report["summary"]["npu_operations"] == 0
    for layer in report["layers"]:
        assert layer["runs_on"] == "CPU" and layer["reason"] == "the device has no NPU"
        assert layer["chained"]["differing"] == 0 and layer["chained"]["cosine"] == 1 and layer["consistent"]


def rows(text):
    return [int(line.split()[0]) for line in text.split("\n\n")[0].splitlines()[1:]]


def test_the_table_begins_with_the_worst_layers(tmp_path):
    report = compare(MOBILENET, PICTURE, "--device", "sim:a311d")
    error = {layer["index"]: layer["alone"]["error"] if layer["alone"] else 0 for layer in report["layers"]}
    text = mica("compare", MOBILENET, PICTURE, "--device", "sim:a311d").stdout
    order = rows(text)
    assert sorted(order) == list(error)
    assert [error[i] for i in order] == sorted(error.values(), reverse=True)
    assert rows(mica("compare", MOBILENET, PICTURE, "--device", "sim:a311d", "--order", "model").stdout) == list(error)
    for layer in report["layers"]:
        if layer["runs_on"] == "CPU":
            assert f"{layer['index']}  {layer['type']}" in text and layer["reason"] in text


def test_without_an_input_it_makes_one_up_the_same_each_time():
    one, two = (compare(MOBILENET, "--device", "sim:rk3588") for _ in range(2))
    assert one == two and "made up" in one["input"]
    assert any(layer["chained"]["differing"] for layer in one["layers"])


def test_a_saved_executable_compares_like_its_model(tmp_path):
    mica("compile", MOBILENET, "-o", tmp_path / "m.mica", "--device", "sim:a311d")
    saved = compare(tmp_path / "m.mica", PICTURE, "--device", "sim:a311d")
    assert saved["layers"] == compare(MOBILENET, PICTURE, "--device", "sim:a311d")["layers"]


def test_the_plot_has_a_bar_a_layer(tmp_path):
    plot = tmp_path / "layers.svg"
    report = json.loads(mica("compare", MOBILENET, PICTURE, "--device", "sim:a311d", "--json", "--plot", plot).stdout)
    root = xml.etree.ElementTree.parse(plot).getroot()
    titles = [t.text for t in root.iter("{http://www.w3.org/2000/svg}title")]
    wrong = {"alone": 0, "chained": 0}
    for layer in report["layers"]:
        for kind in wrong:
            wrong[kind] += bool(layer[kind] and layer[kind]["error"])
    assert {kind: sum(t.startswith(kind) for t in titles) for kind in wrong} == wrong
    labels = [t.text for t in root.iter("{http://www.w3.org/2000/svg}text")]
    for index, layer in enumerate(sorted(report["layers"], key=lambda layer: layer["index"])):
        assert any((label or "").startswith(f"{index} {layer['type']}") for label in labels)


@pytest.mark.parametrize("arguments, code, words", [
    (["--order", "best"], 2, "worst or model"),
    ([PICTURE, "--input", "x"], 2, "not both"),
    (["--input", "x", "--input", "y"], 1, "has 1 input, --input is given 2 times"),
    (["--input", "/nonexistent"], 1, "/nonexistent"),
    (["--plot", "/nonexistent/x.svg"], 1, "cannot write '/nonexistent/x.svg'"),
])
def test_what_it_refuses(arguments, code, words):
    done = mica("compare", MOBILENET, "--device", "sim:a311d", *arguments, code=code)
    assert words in done.stderr and not done.stdout


def test_models_that_run_nowhere_are_refused_by_operation():
    model = MODELS / "tflm_dtln_noise_suppression.tflite"
    if not model.exists():
        pytest.skip(f"{model} is not there")
    assert "UNIDIRECTIONAL_SEQUENCE_LSTM" in mica("compare", model, code=1).stderr
