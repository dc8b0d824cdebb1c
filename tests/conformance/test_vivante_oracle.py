# SPDX-License-Identifier: MIT
"""The simulator of Vivante against tests/pytools/vivante_model.py: the whole memory after every job, byte for byte.

The model is made from the specification alone. It is itself judged by the specification's vectors, whose outputs other
tools computed. What other tests hold to TFLite within 1 only, several jobs that each round, is exact here.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import model_builder
import numpy as np
import operation_probes
import pytest
from conftest import BUILD, DEVICES, FULL, ROCKCHIP, ROOT, SHARED
from test_operation_table import ONLY, ROWS, tried
from test_vivante_per_channel import spread
from vivante_judge import compile_capture, judge
from vivante_memory import Memory
from vivante_model import run_job, starts

MICA = BUILD.resolve() / "tools" / "mica" / "mica"
VNPU = BUILD.resolve() / "src" / "vnpu" / "libmica_vnpu.so"
CAPTURE = BUILD.resolve() / "src" / "intercept" / "libmica_capture.so"
RUN_DELEGATED = ROOT / "tests" / "pytools" / "run_delegated.py"
VECTORS = sorted((SHARED / "spec/vivante/vectors").glob("*.json"))
CHIPS = [d.removeprefix("sim:") for d in DEVICES if d.startswith("sim:") and d not in ROCKCHIP]
LARGEST = (2 << 20) if FULL else (4 << 10)  # bytes of a collected model of one operation
LARGEST_PROBE = (4 << 20) if FULL else (128 << 10)  # of a probe's model
BROKEN = {"add"}  # collected models that read a tensor which nothing computes

needs_mica = pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built")


# ---- the model against the specification's vectors ------------------------------------------


def vector_memory(vector):
    """Memory, and [(unit, descriptor's address)], of a vector; the vendor's have no addresses of their own."""
    memory, jobs = Memory(), []
    space = np.zeros(1 << 23, np.uint8)
    memory.add(0, space)

    def put(address, data):
        space[address:address + len(data)] = np.frombuffer(data, np.uint8)

    for number, job in enumerate(vector["jobs"]):
        own = "input_address" not in job
        for descriptor in job["descriptors"]:
            words = [int(word, 16) for word in descriptor["words"]]
            address = 0x1000 if own else int(descriptor["address"], 16)
            if own:
                words[5:8] = [words[5] & ~0x3FFFFFF | 0x100000 >> 6, 0x200000, 0x300000]
                words[18] &= ~0x3FFFFFF
                words[20] &= ~0x3FFFFFF
            put(address, np.array(words, "<u4").tobytes())
            jobs.append((job["unit"], address))
        for item in job["coefficients"]:
            put(0x100000 if own else int(item["address"], 16), bytes.fromhex(item["bytes"]))
    return space, memory, jobs


def vector_image(vector):
    """What the first job of a vendor's vector reads: planes, after space to depth where it strides."""
    image = np.frombuffer(bytes.fromhex(vector["input"]), np.uint8).reshape(vector["input_shape"][1:])
    if vector.get("params", {}).get("stride", 1) == 2:
        image = np.pad(image, [(0, 2), (0, 2), (0, 0)], constant_values=vector["input_quant"]["zero_point"])
        image = np.stack([image[a::2, b::2, c] for c in range(image.shape[2]) for a in range(2) for b in range(2)], 2)
    return image.transpose(2, 0, 1)


@pytest.mark.parametrize("path", VECTORS, ids=lambda path: path.stem)
def test_model_gives_what_the_vectors_say(path):
    vector = json.loads(path.read_text())
    space, memory, jobs = vector_memory(vector)
    expected = np.frombuffer(bytes.fromhex(vector["model_output"]), np.uint8)
    if "pad" in path.stem:
        expected = np.clip(expected.astype(int) - 6, 0, 255)  # by the recorded words every byte is 6 lower (README)
    if "command_words" in vector:
        words = [int(word, 16) for words in vector["command_words"] for word in words]
        assert [(unit, address) for unit, address, _ in starts(words)] == jobs
        first, last = (int(vector["jobs"][k][name], 16) for k, name in ((0, "input_address"), (-1, "output_address")))
        inputs = bytes.fromhex(vector["input"]) + bytes.fromhex(vector.get("input2", ""))
    else:
        first, last, inputs = 0x200000, 0x300000, vector_image(vector).tobytes()
        _, rows, columns, channels = vector["output_shape"]
        expected = expected.reshape(rows, columns, channels).transpose(2, 0, 1).ravel()
    space[first:first + len(inputs)] = np.frombuffer(inputs, np.uint8)
    for unit, address in jobs:
        run_job(memory, vector["chip"], unit, address)
    np.testing.assert_array_equal(space[last:last + expected.size], expected)


# ---- the simulator against the model ----------------------------------------------------------


def scratch():
    """A folder for thousands of small files, in memory if possible."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


def random_inputs(model, seed):
    from ai_edge_litert.interpreter import Interpreter

    details = Interpreter(model_content=model).get_input_details()
    return [model_builder.random_input(d, seed + i) for i, d in enumerate(details)]


def agreed(capture, *options):
    """The verdict about a capture, which is that nothing differs."""
    with scratch() as folder:
        verdict = judge(MICA, capture, pathlib.Path(folder) / "judged", *options)
    assert not verdict.differences, "\n".join(verdict.differences)
    return verdict


def check(chip, model, *options, seed=1):
    """All jobs that the model's bytes become."""
    with scratch() as name:
        folder = pathlib.Path(name)
        (folder / "model.tflite").write_bytes(model)
        compile_capture(MICA, folder / "model.tflite", f"sim:{chip}", folder / "capture", random_inputs(model, seed),
                        *options)
        return agreed(folder / "capture")


def collected():
    return sorted(path.relative_to(SHARED / "models") for kind in ("ops_uint8", "ops_int8")
                  for path in (SHARED / "models" / kind).glob("*.tflite")
                  if path.stat().st_size <= LARGEST and path.stem not in BROKEN)


@needs_mica
@pytest.mark.parametrize("path", collected(), ids=str)
@pytest.mark.parametrize("chip", CHIPS)
def test_collected_operation(chip, path):
    """Where the NPU takes nothing of it there is nothing to judge."""
    check(chip, (SHARED / "models" / path).read_bytes())


def quick(row, dtype, limits):
    """To the device types differ at its borders alone: one of them at the limits is enough for a short run."""
    return FULL or not limits or dtype == row["types"][0] or set(limits) & set(ONLY)


@needs_mica
@pytest.mark.parametrize("name", list(operation_probes.PROBES))
@pytest.mark.parametrize("chip", CHIPS)
def test_operation_of_the_table(chip, name):
    """Every row in its types and at its limits."""
    if name not in ROWS[chip]:
        pytest.skip("there is no row")
    probes = {operation_probes.build(name, dtype, **limits): (dtype, limits)
              for dtype, limits, wanted in tried(chip, name) if wanted and quick(ROWS[chip][name], dtype, limits)}
    for model, what in probes.items():
        if len(model) <= LARGEST_PROBE:
            jobs = check(chip, model).jobs
            assert jobs or ROWS[chip][name]["how"].startswith("addresses"), f"nothing was judged: {what}"


# Layers that become jobs with scales per channel: direct, with a second stage, with a dense one.
PER_CHANNEL = [
    ("conv2d", dict(ic=3, oc=5)),
    ("conv2d", dict(ic=24, oc=70, kernel=(1, 1))),
    ("conv2d", dict(ic=17, oc=40, kernel=(3, 3), activation="relu")),
    ("conv2d", dict(ic=6, oc=48, kernel=(5, 5), stride=(2, 2), activation="relu6")),
    ("depthwise", dict(ic=40)),
    ("depthwise", dict(ic=9, multiplier=3, stride=(2, 2), activation="relu6")),
    ("transpose_conv", dict(ic=12, oc=20, kernel=(3, 3))),
]
# Least and largest factor from sum to output, channels, output's zero point: several groups.
SPREADS = [(1e-4, 0.3, 48, 127), (0.25, 0.5, 48, 0), (0.01, 0.011, 3, -128), (0.001, 0.4, 4, -100), (1e-12, 0.9, 48, 5)]


def judge_both(chip, model):
    """With tensors in DDR, and with those on-chip that may."""
    for options in ([], ["--on-chip"]):
        assert check(chip, model, *options).jobs


@needs_mica
@pytest.mark.parametrize("kind,options", PER_CHANNEL)
@pytest.mark.parametrize("chip", CHIPS)
def test_scales_per_channel(chip, kind, options):
    judge_both(chip, getattr(model_builder, kind)((13, 11), dtype="int8", per_channel=True, seed=len(kind), **options))


@needs_mica
@pytest.mark.parametrize("depthwise", [False, True], ids=["conv", "depthwise"])
@pytest.mark.parametrize("low,high,channels,zero_point", SPREADS)
@pytest.mark.parametrize("chip", CHIPS)
def test_scales_far_apart(chip, low, high, channels, zero_point, depthwise):
    factors = np.geomspace(low, high, channels)
    np.random.default_rng(0).shuffle(factors)
    judge_both(chip, spread("int8", factors, zero_point, "relu" if zero_point < 0 else None, depthwise))


# Windows, steps and images about the sizes of the TP's tiles.
WINDOWS = [(2, 1), (2, 2), (3, 1), (3, 2), (5, 1)]
IMAGES = [(17, 63), (18, 64), (33, 127), (34, 66)]


@needs_mica
@pytest.mark.parametrize("window,step", WINDOWS)
@pytest.mark.parametrize("chip", CHIPS)
def test_max_pools(chip, window, step):
    for rows, columns in IMAGES:
        m = model_builder.Model("uint8", seed=1)
        out = m.pool(m.input((1, rows, columns, 5)), "max", (window, window), (step, step))
        assert check(chip, m.finish([out])).jobs


# ---- whole networks ------------------------------------------------------------------------------

NETWORKS = ["tiny_kws_dscnn_int8", "tiny_resnet8_cifar_int8", "tiny_vww_96_int8", "tflm_micro_speech_int8"]
SLOW = ["mobilenet_v1_0.25_128_quant", "tiny_ad01_int8", "deeplabv3_mnv2_dm05_pascal_quant",
        "seeded_mobilenet_v3_large_100_224_int8"]
# Through the runtime alone: Mica's own kernels lack its variables and control flow.
DELEGATED = ["microwakeword_okay_nabu_int8"]


@needs_mica
@pytest.mark.parametrize("on_chip", [False, True], ids=["ddr", "on-chip"])
@pytest.mark.parametrize("name", NETWORKS + (SLOW if FULL else []))
@pytest.mark.parametrize("chip", CHIPS)
def test_network(chip, name, on_chip, shared):
    if on_chip and name == "tiny_vww_96_int8" and not FULL:
        pytest.skip("takes long")
    model = (shared / "models" / f"{name}.tflite").read_bytes()
    assert "NN" in check(chip, model, *(["--on-chip"] if on_chip else []), seed=4).units()


@needs_mica
@pytest.mark.skipif(not VNPU.exists() or not CAPTURE.exists(), reason="needs the virtual NPU and the interceptor")
@pytest.mark.parametrize("name", DELEGATED)
@pytest.mark.parametrize("chip", CHIPS)
def test_delegated_network(chip, name, shared, delegate_path, tmp_path):
    """What the delegate submits through the kernel's interface."""
    done = subprocess.run(
        [MICA, "vnpu", "--chip", chip, "--", MICA, "capture", "-o", tmp_path / "capture", "--", sys.executable,
         RUN_DELEGATED, shared / "models" / f"{name}.tflite", pathlib.Path(delegate_path).resolve(),
         "drm:/dev/dri/renderD128"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "NN" in agreed(tmp_path / "capture").units()
