# SPDX-License-Identifier: MIT
"""Captures of `mica compile --capture`, executed again from their files alone, give what the hardware model gives."""

import json
import subprocess

import numpy as np
import pytest

from conftest import ARITHMETIC, BUILD, MOBILENET_V1, SHARED

MICA = BUILD / "tools" / "mica" / "mica"
CLIENTS = BUILD / "tests" / "clients"
MODELS = sorted(p.parent.name for p in (SHARED / "captures").glob("*/model.tflite"))

pytestmark = pytest.mark.skipif(not MICA.exists(), reason="mica is not built: it needs jansson and gdk-pixbuf")


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)


def capture(model, device, folder):
    """Captures a run on random inputs; returns the inputs' files and what run.json says."""
    done = run(MICA, "compile", model, "--device", device, "--capture", folder / "zeros")
    assert done.returncode == 0, done.stderr
    inputs = []
    for tensor in json.loads((folder / "zeros" / "run.json").read_text())["tensors"]:
        if tensor["kind"] == "input":
            inputs += ["--input", folder / f"in_{tensor['index']}.bin"]
            np.random.default_rng(tensor["index"]).integers(0, 256, tensor["bytes"], np.uint8).tofile(inputs[-1])
    done = run(MICA, "compile", model, "--device", device, "--capture", folder / "capture", *inputs)
    assert done.returncode == 0, done.stderr
    return inputs, json.loads((folder / "capture" / "run.json").read_text())


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("device", ARITHMETIC)
def test_replay_equals_the_hardware_model(device, name, tmp_path):
    model = SHARED / "captures" / name / "model.tflite"
    inputs, described = capture(model, device, tmp_path)
    assert list(described)[:3] == ["model", "delegate", "seed"]
    assert described["model"] == "model.tflite" and described["delegate"].startswith("Mica ")
    assert all({"bo", "va", "offset", "flip_sign"} <= set(tensor) for tensor in described["tensors"])
    # Its own cpu_0.bin is TFLite's answer, which rounds twice: the NPU's arithmetic in its place.
    done = run(CLIENTS / "cpu_run", model, "--arithmetic", ARITHMETIC[device], "--output-dir", tmp_path, *inputs)
    assert done.returncode == 0, done.stderr
    expected = (tmp_path / "out_0.bin").read_bytes()
    (tmp_path / "capture" / "cpu_0.bin").write_bytes(expected)
    done = run(MICA, "replay", tmp_path / "capture")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f": 0 of {len(expected)} bytes differ" in done.stdout
    # That it compares: one wrong byte is seen.
    (tmp_path / "capture" / "cpu_0.bin").write_bytes(expected[:-1] + bytes([expected[-1] ^ 1]))
    assert run(MICA, "replay", tmp_path / "capture").returncode == 1


def test_what_the_cpu_makes_is_not_compared(tmp_path):
    done = run(MICA, "compile", MOBILENET_V1, "--device", "sim:a311d", "--capture", tmp_path / "capture")
    assert done.returncode == 0, done.stderr
    done = run(MICA, "replay", tmp_path / "capture")
    assert done.returncode == 0, done.stderr
    assert "not comparable" in done.stdout


def test_help():
    done = run(MICA, "replay", "--help")
    assert done.returncode == 0 and done.stdout.startswith("Usage: mica replay") and not done.stderr
