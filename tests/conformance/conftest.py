# SPDX-License-Identifier: MIT
"""The delegate in a real TFLite runtime.

MICA_BUILD names the build directory (default: build/ of the checkout). With
MICA_FULL=1 the grids of convolutions have a third seed, and those of CONV_2D
120 input channels with large images too; the model of Vivante judges large
models as well, which takes half an hour.
MICA_TEST_DEVICES names the devices to run on, with commas (default: every
simulated one).
"""

import fnmatch
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTS = pathlib.Path(__file__).parent / "lists"
BUILD = pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build"))
SHARED = ROOT.parent / "shared"
# A copy of what the collection has, so that tests with it run everywhere.
MOBILENET_V1 = ROOT / "share" / "mica" / "mobilenet_v1_1.0_224_quant.tflite"
FULL = os.environ.get("MICA_FULL") == "1"

# Devices, and the arithmetic of cpu_run that is theirs.
ARITHMETIC = {"sim:a311d": "vivante-v7", "sim:imx8mp": "vivante-v8", "sim:s905d3": "vivante-v7",
              "sim:rk3588": "rockchip", "sim:rk3566": "rockchip-rk356x"}
# Under `mica vnpu` the same through the kernel's interface: the node of that chip, and no other device.
VIRTUAL = os.environ.get("MICA_VNPU_CHIP")
if VIRTUAL:
    NODE = "accel:/dev/accel/accel0" if VIRTUAL.startswith("rk") else "drm:/dev/dri/renderD128"
    ARITHMETIC = {NODE: ARITHMETIC[f"sim:{VIRTUAL}"]}
ROCKCHIP = {device for device, arithmetic in ARITHMETIC.items() if arithmetic.startswith("rockchip")}
DEVICES = os.environ.get("MICA_TEST_DEVICES", ",".join(ARITHMETIC)).split(",")
# Files about what no device changes: run on the first one of each family.
ONE_DEVICE = {"test_delegate", "test_label_image"}


def devices_of(module):
    if module.startswith("test_rockchip"):
        return [d for d in DEVICES if d in ROCKCHIP]
    if module in ONE_DEVICE:
        return [d for d in (next((d for d in DEVICES if d not in ROCKCHIP), None),
                            next((d for d in DEVICES if d in ROCKCHIP), None)) if d]
    return DEVICES


sys.path.insert(0, str(ROOT / "tests" / "pytools"))

# ---- lists of exceptions ------------------------------------------------------


def read_list(name):
    entries = []
    for number, line in enumerate((LISTS / f"{name}.txt").read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.partition("#")
        if not reason.strip():
            raise pytest.UsageError(f"lists/{name}.txt:{number} has no reason behind a #")
        entries.append((pattern.strip(), reason.strip()))
    return entries


def matches(item, pattern):
    # fnmatch takes [..] for a set of characters; here it is part of a test's name.
    name = f"{item.path.name}::{item.nodeid.split('::', 1)[1]}"
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def pytest_collection_modifyitems(items):
    marks = {
        "fails": lambda reason: pytest.mark.xfail(strict=True, reason=reason),
        "flakes": lambda reason: pytest.mark.xfail(strict=False, reason=reason),
        "skips": lambda reason: pytest.mark.skip(reason=reason),
    }
    for name, mark in marks.items():
        for pattern, reason in read_list(name):
            for item in items:
                if matches(item, pattern):
                    item.add_marker(mark(reason))


# ---- devices ------------------------------------------------------------------


def pytest_generate_tests(metafunc):
    if "runner" in metafunc.fixturenames:
        metafunc.parametrize("runner", devices_of(metafunc.module.__name__), indirect=True, scope="session")


# ---- what the tests share -----------------------------------------------------


@pytest.fixture(scope="session")
def delegate_path():
    path = BUILD / "src" / "delegate" / "libmica_delegate.so"
    if not path.exists():
        pytest.fail(f"{path} is missing: build Mica, or set MICA_BUILD to the build directory")
    return str(path)


@pytest.fixture(scope="session")
def shared():
    """The folder of collected models; tests that need it are skipped where it is not."""
    if not SHARED.is_dir():
        pytest.skip("the model collection is not here")
    return SHARED


class Runner:
    """Runs a model on the delegate and on what it is compared with."""

    def __init__(self, delegate_path, work, device):
        from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate

        self.interpreter_class, self.resolvers, self.load = Interpreter, OpResolverType, load_delegate
        self.path, self.work, self.device = delegate_path, work, device
        self.delegate = load_delegate(delegate_path, options={"device": device})
        self.rockchip = device in ROCKCHIP

    def inputs(self, model, seed=0):
        import model_builder

        interpreter = self.interpreter_class(model_content=model)
        return [model_builder.random_input(d, seed + i) for i, d in enumerate(interpreter.get_input_details())]

    @staticmethod
    def run(interpreter, inputs):
        interpreter.allocate_tensors()
        for details, value in zip(interpreter.get_input_details(), inputs):
            interpreter.set_tensor(details["index"], value)
        interpreter.invoke()
        return [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]

    def delegated_interpreter(self, model, delegates=None, **options):
        # Without XNNPACK, so that every DELEGATE node is one of ours.
        options.setdefault("experimental_op_resolver_type", self.resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
        return self.interpreter_class(
            model_content=model, experimental_delegates=delegates or [self.delegate], **options)

    def delegated(self, model, inputs, kernels=1):
        """Outputs through the delegate, which must have replaced nodes by `kernels` kernels."""
        interpreter = self.delegated_interpreter(model)
        outputs = self.run(interpreter, inputs)
        assert kernel_count(interpreter) == kernels
        return outputs

    def reference(self, model, inputs):
        """Outputs of TFLite's reference kernels."""
        interpreter = self.interpreter_class(
            model_content=model, experimental_op_resolver_type=self.resolvers.BUILTIN_REF)
        return self.run(interpreter, inputs)

    def on_npu(self, model):
        """What libmica makes of the model: (operations that the NPU takes, partitions)."""
        (self.work / "planned.tflite").write_bytes(model)
        command = [BUILD / "tools" / "mica" / "mica", "compile", self.work / "planned.tflite", "--device", self.device,
                   "-o", self.work / "planned.mica"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return tuple(map(int, re.search(r"(\d+) of \d+ operations in (\d+) NPU partition", result.stdout).groups()))

    def hardware_model(self, model, inputs, like):
        """Outputs of the CPU kernels in the NPU's arithmetic, with types and shapes as in `like`."""
        for old in self.work.glob("*"):
            old.unlink()
        (self.work / "model.tflite").write_bytes(model)
        command = [BUILD / "tests" / "clients" / "cpu_run", self.work / "model.tflite",
                   "--arithmetic", ARITHMETIC[self.device], "--output-dir", self.work]
        for i, value in enumerate(inputs):
            value.tofile(self.work / f"in_{i}.bin")
            command += ["--input", self.work / f"in_{i}.bin"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, result.stderr
        return [np.fromfile(self.work / f"out_{i}.bin", a.dtype).reshape(a.shape) for i, a in enumerate(like)]

    def check(self, model, seed=0, kernels=1, tolerance=1):
        """The delegate equals the hardware model, and is within `tolerance` of the reference kernels (None: any)."""
        inputs = self.inputs(model, seed)
        got = self.delegated(model, inputs, kernels)
        for g, w in zip(got, self.hardware_model(model, inputs, got)):
            assert_equal(g, w)
        if tolerance is not None:
            for g, r in zip(got, self.reference(model, inputs)):
                assert_close(g, r, tolerance)
        return got


def kernel_count(interpreter):
    return sum(op["op_name"] == "DELEGATE" for op in interpreter._get_ops_details())


def assert_equal(got, want):
    different = np.flatnonzero(got != want)
    if different.size:
        at = np.unravel_index(different[0], got.shape)
        pytest.fail(f"{different.size} of {got.size} values differ from the hardware model, the first at "
                    f"{tuple(int(i) for i in at)}: {got[at]}, not {want[at]}")


def assert_close(got, want, tolerance):
    distance = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert distance.max() <= tolerance, f"{distance.max()} away from the reference kernels"
    assert want.size == 1 or np.unique(want).size > 1, "a constant output proves nothing"


@pytest.fixture(scope="session")
def runner(request, delegate_path, tmp_path_factory):
    return Runner(delegate_path, tmp_path_factory.mktemp("cpu_run"), request.param)
