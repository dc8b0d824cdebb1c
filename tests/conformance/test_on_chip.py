# SPDX-License-Identifier: MIT
"""Where tensors are changes no output: whole networks with and without --on-chip, and what that costs in the model."""

import collections
import json
import os
import pathlib
import subprocess

import numpy as np
import pytest

from conftest import BUILD, MOBILENET_V1, SHARED

MICA = BUILD / "tools" / "mica" / "mica"
MODELS = [MOBILENET_V1] + [SHARED / "models" / f"{name}.tflite" for name in
                           ("ssdlite_mobiledet_coco_qat_postprocess", "mobilenet_v2_1.0_224_quant")]
CHIPS = ["a311d", "s905d3", "imx8mp"]
ENV = {k: v for k, v in os.environ.items() if k != "MICA_DEVICE"}

pytestmark = pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built")


def mica(*arguments):
    done = subprocess.run([MICA, *map(str, arguments)], capture_output=True, env=ENV, timeout=300)
    assert done.returncode == 0, done.stderr.decode()
    return done


@pytest.mark.parametrize("chip", CHIPS)
@pytest.mark.parametrize("model", MODELS, ids=lambda path: pathlib.Path(path).stem)
def test_equal(model, chip, tmp_path):
    if not model.exists():
        pytest.skip(f"{model} is not here")
    info = json.loads(mica("info", model, "--json").stdout)
    size = info["inputs"][0]["bytes"]
    (tmp_path / "in").write_bytes(np.random.default_rng(5).integers(0, 256, size, np.uint8).tobytes())
    for name, options in (("off", []), ("on", ["--on-chip"])):
        done = mica("run", model, "--input", tmp_path / "in", "--output", tmp_path / name, "--device", f"sim:{chip}",
                    *options)
        assert (b"not verified on hardware" in done.stderr) == (name == "on")
    assert (tmp_path / "on").read_bytes() == (tmp_path / "off").read_bytes()


@pytest.mark.parametrize("chip", CHIPS)
def test_faster(chip):
    """NN jobs, and 10 us for each but the first of an operation."""
    times = []
    for options in ([], ["--on-chip"]):
        profile = json.loads(mica("profile", MOBILENET_V1, "--json", "--device", f"sim:{chip}", *options).stdout)
        jobs = [job for job in profile["jobs"] if job["unit"] == "NN"]
        extra = sum(count - 1 for count in collections.Counter(job["operation"] for job in jobs).values())
        times.append(sum(job["us"] for job in jobs) + 10 * extra)
    assert times[1] < times[0]
