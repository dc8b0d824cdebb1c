# SPDX-License-Identifier: MIT
"""Every network of the collection through the command, on every simulated chip, against TFLite's reference kernels.

`mica compare` says how far each operation is off by itself, on the reference's values: at most one step, and what leaves
a partition must not depend on what else comes out. `mica run` must give the reference's answer. What it makes of boxes,
points, areas and sounds is test_tasks.py's. MICA_BUILD names the build directory (default: build). A chip of each family;
with MICA_FULL=1 all of them, more pictures, and the slow models too.
"""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MICA = (pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")) / "tools/mica/mica").resolve()
MODELS = ROOT.parent / "shared/models"
DATA = MODELS / "data"
FULL = os.environ.get("MICA_FULL") == "1"
DEVICES = ["sim:a311d", "sim:rk3588"] + (["sim:imx8mp", "sim:s905d3", "sim:rk3566"] if FULL else [])
PICTURES = ["grace_hopper.bmp", "cat.bmp"] + (["parrot.jpg", "bird.bmp"] if FULL else [])

# What needs an operation that only a host has: `mica run` names it.
REFUSED = {"microwakeword_okay_nabu_int8": "CALL_ONCE", "tflm_dtln_noise_suppression": "UNIDIRECTIONAL_SEQUENCE_LSTM",
           "yamnet_wavin_quantized_mel_relu6": "RFFT2D"}
NO_PICTURES = {"split_concat", "tiny_ad01_int8"}
SOUNDS = {"tiny_kws_dscnn_int8", "tflm_micro_speech_int8"}
SLOW = {"mlperf_edsr_f32b5_full_qint8", "mlperf_deeplabv3_mnv2_ade20k_int8"}

# Not the seeded ones but for one: with random weights, every class's score is the same but for a step.
CLASSIFIERS = [
    "mobilenet_v1_1.0_224_quant", "mobilenet_v1_0.25_128_quant", "mobilenet_v2_1.0_224_quant",
    "mobilenet_v2_1.0_224_inat_bird_quant", "mlperf_mobilenet_edgetpu_224_1.0_uint8", "tf2_mobilenet_v2_1.0_224_ptq",
    "tiny_resnet8_cifar_int8", "tiny_vww_96_int8", "seeded_efficientnet_lite0_224_int8",
]

pytestmark = [
    pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built"),
    pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not there"),
]


def mica(*arguments, code=0):
    done = subprocess.run([MICA, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stderr
    return done


def source(name):
    if name in NO_PICTURES:
        return []
    return [DATA / ("yes_1000ms.wav" if name in SOUNDS else "grace_hopper.bmp")]


def networks():
    return sorted(p.stem for p in MODELS.glob("*.tflite")) if MODELS.is_dir() else []


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [n for n in networks() if n not in REFUSED and (FULL or n not in SLOW)])
def test_no_layer_differs_by_more_than_a_step(name, device):
    report = json.loads(mica("compare", MODELS / f"{name}.tflite", *source(name), "--device", device, "--json").stdout)
    assert report["summary"]["inconsistent"] == 0
    for layer in report["layers"]:
        if layer["runs_on"] == "NPU":
            assert layer["alone"]["largest"] <= 1, layer
    if report["summary"]["npu_operations"] == 0:
        assert all(layer["chained"]["differing"] == 0 for layer in report["layers"])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classes_are_the_references(name, device):
    """The best class, and of the five best all that the reference has clearly ahead of the sixth."""
    for picture in PICTURES:
        top = lambda where: json.loads(mica("run", MODELS / f"{name}.tflite", DATA / picture, "--device", where, "--json",
                                            "--top", 6).stdout)["outputs"][0]["top"]
        wanted, got = top("cpu"), {row["class"]: row["raw"] for row in top(device)}
        sixth = wanted[5]["raw"] if len(wanted) > 5 else -1000
        best = [row["class"] for row in wanted if row["raw"] == wanted[0]["raw"]]
        assert max(got, key=got.get) in best or got[best[0]] == max(got.values()), (picture, wanted, got)
        for row in wanted[:5]:
            assert row["class"] in got or row["raw"] - sixth <= 8, (picture, wanted, got)


@pytest.mark.parametrize("device", ["cpu", *DEVICES])
@pytest.mark.parametrize("name", REFUSED)
def test_what_only_a_host_can_run_is_refused_by_operation(name, device, tmp_path):
    done = mica("run", MODELS / f"{name}.tflite", DATA / "speech.wav", "--device", device, code=1)
    assert REFUSED[name] in done.stderr and not done.stdout
