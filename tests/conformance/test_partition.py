# SPDX-License-Identifier: MIT
"""partition=all, the default, and partition=cost: who runs what, that it can be read why, and that results agree."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

import conftest
import model_builder

MICA = conftest.BUILD.resolve() / "tools" / "mica" / "mica"
needs_mica = pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built")

SCRIPT = """
import sys
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
options = dict(o.split("=") for o in sys.argv[3:])
delegate = load_delegate(sys.argv[1], options={"log_level": "info", **options})
Interpreter(model_path=sys.argv[2], experimental_delegates=[delegate],
            experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES).allocate_tensors()
"""


def model():
    """A convolution that is worth it, what no NPU takes, and one that isn't worth its copies and its submission."""
    m = model_builder.Model("uint8", seed=5)
    x = m.input((1, 28, 28, 128))
    y = m.softmax(m.conv2d(x, 256, (3, 3)))
    return m.finish([m.conv2d(y, 8, (1, 1))])


def places(path, device, *options, **environment):
    done = subprocess.run([MICA, "info", path, "--device", device, "--json", *options], capture_output=True, text=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    operations = json.loads(done.stdout)["operations"]
    return [o["runs_on"] for o in operations], operations[2]["reason"]


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "model.tflite"
    file.write_bytes(model())
    return file


@needs_mica
@pytest.mark.parametrize("device", conftest.DEVICES)
def test_the_default_uses_the_npu_for_all_it_takes(device, path):
    assert places(path, device) == (["NPU", "CPU", "NPU"], "")
    assert places(path, device, "--partition", "all") == (["NPU", "CPU", "NPU"], "")


@needs_mica
@pytest.mark.parametrize("device", conftest.DEVICES)
def test_a_partition_that_does_not_pay_stays_on_the_cpu(device, path):
    where, reason = places(path, device, "--partition", "cost:9000")
    assert where == ["NPU", "CPU", "CPU"]
    assert "the cost model has this part of the graph at" in reason and "us on the CPU" in reason
    # Copies are the CPU's work too, so a slow one doesn't make the second convolution pay; a fast one does it all.
    assert places(path, device, "--partition", "cost:1")[0] == ["NPU", "CPU", "CPU"]
    assert places(path, device, "--partition", "cost:10000000")[0] == ["CPU", "CPU", "CPU"]


@needs_mica
def test_saved_executables_keep_the_choice(path, tmp_path):
    saved = tmp_path / "model.mica"
    device = conftest.DEVICES[0]
    subprocess.run([MICA, "compile", path, "--device", device, "--partition", "cost:9000", "-o", saved], check=True,
                   capture_output=True)
    where, reason = places(saved, device)
    assert where == ["NPU", "CPU", "CPU"] and "when the model was compiled" in reason


@needs_mica
def test_bad_choices_are_refused(path):
    done = subprocess.run([MICA, "info", path, "--device", conftest.DEVICES[0], "--partition", "fast"],
                          capture_output=True, text=True)
    assert done.returncode == 2 and "must be all, cost, or cost:N" in done.stderr


def delegate_log(delegate_path, path, *options, **environment):
    done = subprocess.run([sys.executable, "-c", SCRIPT, delegate_path, path, *options], capture_output=True, text=True,
                          env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stderr


@pytest.mark.parametrize("device", conftest.DEVICES)
def test_the_delegate_says_what_it_left_by_choice(delegate_path, device, path):
    log = delegate_log(delegate_path, path, f"device={device}")
    assert "2 of 3 nodes run on" in log and "cost model" not in log
    for log in (delegate_log(delegate_path, path, f"device={device}", "partition=cost:9000"),
                delegate_log(delegate_path, path, f"device={device}", MICA_PARTITION="cost:9000")):
        assert "1 of 3 nodes run on" in log
        assert "left to the host, the NPU could, but the cost model" in log


def test_results_agree(runner):
    data = model()
    delegate = runner.load(runner.path, options={"device": runner.device, "partition": "cost:9000"})
    inputs = runner.inputs(data)
    chosen = runner.delegated_interpreter(data, [delegate])
    got = runner.run(chosen, inputs)
    assert conftest.kernel_count(chosen) == 1
    for g, r in zip(got, runner.reference(data, inputs)):
        assert np.abs(g.astype(int) - r.astype(int)).max() <= 2  # one step of a convolution, through another
