# SPDX-License-Identifier: MIT
"""The CPU kernels in the NPU's arithmetic against golden vectors of the hardware specification.

Each vector becomes a model of one operation; cpu_run must give the output that the vendor's simulator gave, or, for the
vectors from the open driver's compiler, the output of the specification's formula. MICA_BUILD names the build
directory (default: build), MICA_SHARED the place of the specification (default: beside the repository).
"""

import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/pytools"))
import model_builder as mb  # noqa: E402
from cpu_judge import TOOL  # noqa: E402

SHARED = pathlib.Path(os.environ.get("MICA_SHARED", ROOT.parent / "shared")).resolve()
VECTORS = SHARED / "spec/vivante/vectors"
ARITHMETIC = {"a311d": "vivante-v7", "s905d3": "vivante-v7", "imx8mp": "vivante-v8"}

pytestmark = [
    pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built"),
    pytest.mark.skipif(not VECTORS.is_dir(), reason=f"{VECTORS} is not there"),
]


def vectors(chip):
    found = [json.loads(path.read_text()) for path in sorted(VECTORS.glob(f"{chip}-*.json"))]
    return [v for v in found if v["op"] != "pad"]


def quant(vector, name):
    return vector[name]["scale"], vector[name]["zero_point"]


def bytes_of(vector, name, dtype=np.uint8):
    return np.frombuffer(bytes.fromhex(vector[name]), dtype)


def weighted(m, vector, x):
    """A convolution, depthwise convolution or fully connected layer with the vector's weights and biases."""
    p, channels = vector["params"], vector["output_shape"][-1]
    kernel = p["kernel"][::-1] if isinstance(p["kernel"], list) else [p["kernel"]] * 2  # to rows, columns
    activation = "relu" if p["relu"] else None
    weights = bytes_of(vector, "weights", np.int8 if vector["signed"] else np.uint8)
    shared = dict(activation=activation, output_quant=quant(vector, "output_quant"),
                  weight_quant=quant(vector, "weight_quant"))
    if vector["op"] == "fc":
        y = m.fully_connected(x, channels, weights=weights.reshape(channels, -1), **shared)
    elif p["depthwise"]:
        y = m.depthwise(x, 1, kernel, (p["stride"],) * 2, p["padding"], weights=weights.reshape(1, *kernel, channels),
                        **shared)
    else:
        y = m.conv2d(x, channels, kernel, (p["stride"],) * 2, p["padding"],
                     weights=weights.reshape(channels, *kernel, -1), **shared)
    bias = m.graph.tensors[m.graph.operators[-1].inputs[2]]
    m.buffers[bias.buffer].data = bytes_of(vector, "bias_le32")
    return y


def model_of(vector):
    m = mb.Model("int8" if vector["signed"] else "uint8")
    x = m.input(vector["input_shape"], quant(vector, "input_quant"))
    if vector["op"] == "add":
        other = m.input(vector["input_shape"], quant(vector, "input2_quant"))
        return m.finish([m.add(x, other, output_quant=quant(vector, "output_quant"))])
    return m.finish([weighted(m, vector, x)])


@pytest.mark.parametrize("chip", ARITHMETIC)
def test_golden_vectors(chip, tmp_path):
    assert len(vectors(chip)) > 15
    for vector in vectors(chip):
        (tmp_path / "model.tflite").write_bytes(model_of(vector))
        # Signed vectors have their data as it lies in the NPU's memory: 128 added.
        flip = 0x80 if vector["signed"] else 0
        command = [TOOL, tmp_path / "model.tflite", "--arithmetic", ARITHMETIC[chip], "--output-dir", tmp_path]
        for name in ("input", "input2"):
            if name in vector:
                (bytes_of(vector, name) ^ flip).astype(np.uint8).tofile(tmp_path / name)
                command += ["--input", tmp_path / name]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, f"{vector['name']}: {done.stderr}"
        got = np.fromfile(tmp_path / "out_0.bin", np.uint8) ^ flip
        if vector["op"] == "add":  # its inputs are planar, its output was brought to channels last
            _, height, width, channels = vector["output_shape"]
            got = got.reshape(channels, height, width).transpose(1, 2, 0).ravel()
        bad = np.flatnonzero(got != bytes_of(vector, "model_output"))
        assert bad.size == 0, f"{vector['name']}: {bad.size} of {got.size} values differ, the first is number {bad[0]}"
