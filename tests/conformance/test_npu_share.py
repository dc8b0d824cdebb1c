# SPDX-License-Identifier: MIT
"""How much of the collection's networks the NPUs take, as `mica info --json` tells it.

MICA_BUILD names the build directory (default: build).
"""

import csv
import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MICA = (pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")) / "tools/mica/mica").resolve()
MODELS = ROOT.parent / "shared/models"
DEVICES = ["sim:a311d", "sim:imx8mp", "sim:s905d3", "sim:rk3588", "sim:rk3566"]
LEAST = 0.95

# Compute in float32 or hold no multiplications at all.
NOT_QUANTIZED = {"deeplabv3_257_float"}
# Quantized, but their multiplications aren't convolutions': fully connected layers, recurrent ones, none.
NOT_CONVOLUTIONAL = {"tiny_ad01_int8", "tflm_dtln_noise_suppression", "split_concat"}

pytestmark = [
    pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built"),
    pytest.mark.skipif(not MODELS.is_dir(), reason=f"{MODELS} is not there"),
]


def networks():
    return sorted(p.stem for p in MODELS.glob("*.tflite")) if MODELS.is_dir() else []


def info(name, device):
    done = subprocess.run([MICA, "info", MODELS / f"{name}.tflite", "--device", device, "--json"], capture_output=True,
                          text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", sorted(set(networks()) - NOT_QUANTIZED - NOT_CONVOLUTIONAL))
def test_convolutional_networks_are_on_the_npu(name, device):
    report = info(name, device)
    summary, operations = report["summary"], report["operations"]
    assert sum(o["macs"] for o in operations) == summary["macs"] > 0
    assert sum(o["macs"] for o in operations if o["runs_on"] == "NPU") == summary["npu_macs"]
    off = sorted((o for o in operations if o["runs_on"] != "NPU" and o["macs"]), key=lambda o: -o["macs"])
    share = summary["npu_macs"] / summary["macs"]
    assert share >= LEAST, f"{100 * share:.2f} %; " + "; ".join(f"{o['index']} {o['type']}: {o['reason']}" for o in off)


def test_the_exceptions_are_what_they_are_said_to_be():
    """By the collection's own list: what is left out above has no quantized convolution."""
    with open(MODELS / "models.csv", newline="") as file:
        rows = {row["file"].removesuffix(".tflite"): row for row in csv.DictReader(file)}
    assert set(rows) == set(networks())
    for name, row in rows.items():
        convolutional = "CONV_2D" in row["ops"]
        quantized = "uint8*uint8" in row["quantization"] or "int8*int8" in row["quantization"]
        assert (convolutional and quantized) == (name not in NOT_QUANTIZED | NOT_CONVOLUTIONAL), name


@pytest.mark.parametrize("device", DEVICES)
def test_a_float_network_is_all_the_cpus(device):
    report = info("deeplabv3_257_float", device)
    assert report["summary"]["npu_operations"] == report["summary"]["partitions"] == 0
    assert all(o["runs_on"] == "CPU" and o["reason"] for o in report["operations"])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name, kind", [("yamnet_wavin_quantized_mel_relu6", "RFFT2D"),
                                        ("tflm_dtln_noise_suppression", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
                                        ("microwakeword_okay_nabu_int8", "CALL_ONCE")])
def test_a_network_that_runs_nowhere_as_a_whole_is_listed_all_the_same(name, kind, device):
    report = info(name, device)
    nowhere = [o for o in report["operations"] if o["runs_on"] == "nowhere"]
    assert kind in {o["type"] for o in nowhere} and all(o["reason"] for o in nowhere)
    assert report["summary"]["nowhere_operations"] == len(nowhere)
    assert report["summary"]["npu_operations"] > 0 and report["summary"]["partitions"] is None
    assert kind in report["not_compiled"] and "memory" not in report
    text = subprocess.run([MICA, "info", MODELS / f"{name}.tflite", "--device", device], capture_output=True, text=True)
    lines = text.stdout.splitlines()
    assert text.returncode == 0 and lines[-1].startswith("not compiled: ") and kind in lines[-1]
    assert lines[-2].startswith(f"{len(nowhere)} operation") and "delegate" in lines[-2]
    assert sum(line.split()[:2] == [str(o["index"]), o["type"]] for o in report["operations"] for line in lines) \
        == len(report["operations"])
