# SPDX-License-Identifier: MIT
"""Judges the CPU kernels by TensorFlow Lite's reference kernels (BUILTIN_REF): integers bit for bit, float32 within 1e-5.

MICA_BUILD names the build directory (default: build).
"""

import os
import pathlib
import subprocess

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

ROOT = pathlib.Path(__file__).resolve().parents[2]
TOOL = (pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")) / "tests/clients/cpu_run").resolve()

# What no test lets the tool skip, unless it says so.
KINDS = {
    "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "AVERAGE_POOL_2D", "MAX_POOL_2D", "RESHAPE", "SQUEEZE",
    "EXPAND_DIMS", "SOFTMAX", "LOGISTIC", "CONCATENATION", "PAD", "QUANTIZE", "DEQUANTIZE", "RESIZE_BILINEAR",
    "RESIZE_NEAREST_NEIGHBOR", "TFLite_Detection_PostProcess", "SUB", "MUL", "DIV", "FLOOR_DIV", "MAXIMUM", "MINIMUM",
    "SQUARED_DIFFERENCE", "TRANSPOSE_CONV", "MEAN", "SUM", "REDUCE_MAX", "SPLIT", "SPLIT_V", "SLICE", "STRIDED_SLICE",
    "TRANSPOSE", "REVERSE_V2", "MIRROR_PAD", "PADV2", "SPACE_TO_DEPTH", "DEPTH_TO_SPACE", "RELU", "RELU6",
    "RELU_N1_TO_1", "RELU_0_TO_1", "LEAKY_RELU", "TANH", "HARD_SWISH", "ELU", "ABS", "NEG", "EXP", "LOG", "SQRT",
    "RSQRT", "PRELU", "ARG_MAX", "BATCH_MATMUL", "PACK", "UNPACK", "GATHER", "GATHER_ND", "CAST",
}


def interpreter_of(model):
    source = {"model_path": str(model)} if isinstance(model, pathlib.Path) else {"model_content": model}
    interpreter = Interpreter(**source, num_threads=1, experimental_preserve_all_tensors=True,
                              experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
    interpreter.allocate_tensors()
    return interpreter


def run_tool(model, directory, inputs, *options):
    directory.mkdir()
    command = [TOOL, model, "--arithmetic", "tflite", "--output-dir", directory, "--all", *options]
    for path in inputs:
        command += ["--input", path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return {int(path.stem.split("_")[1]): path for path in directory.glob("tensor_*.bin")}, done.stdout.splitlines()


def detection_rows(interpreter, tensors):
    """What of each output of a detection post-processing is defined: the rows of detections that were found."""
    rows = {}
    for op in interpreter._get_ops_details():
        if op["op_name"] == "TFLite_Detection_PostProcess":
            boxes, classes, scores, count = op["outputs"]
            slots = tensors[scores].size
            found = int(tensors[count].ravel()[0])
            rows.update({boxes: found * 4, classes: found, scores: found})
            assert slots >= found
    return rows


def differences(interpreter, tensors, results):
    """Sentences about the tensors that are not as TFLite has them."""
    wrong, rows = [], detection_rows(interpreter, tensors)
    for index, path in sorted(results.items()):
        want = tensors[index].ravel()
        got = np.fromfile(path, want.dtype)
        want, got = want[:rows.get(index)], got[:rows.get(index)]
        if want.dtype == np.float32:
            bad = ~np.isclose(got, want, rtol=1e-5, atol=1e-5, equal_nan=True)
        else:
            bad = got != want
        if bad.any():
            first = np.flatnonzero(bad)[0]
            far = np.abs(got.astype(np.float64) - want.astype(np.float64)).max()
            wrong.append(f"tensor {index}: {bad.sum()} of {bad.size} values differ by up to {far}; the first is "
                         f"number {first}: {got[first]}, should be {want[first]}")
    return wrong


def judge(model, values, tmp_path, refused=()):
    """Compares everything that can run; returns how many tensors were compared alone."""
    interpreter = interpreter_of(model)
    if isinstance(model, bytes):
        (tmp_path / "model.tflite").write_bytes(model)
        model = tmp_path / "model.tflite"
    details = interpreter.get_input_details()
    inputs, exact = [], tmp_path / "exact"
    exact.mkdir()
    for i, (detail, value) in enumerate(zip(details, values, strict=True)):
        interpreter.set_tensor(detail["index"], value)
        inputs.append(tmp_path / f"in_{i}.bin")
        value.tofile(inputs[-1])
        value.tofile(exact / f"tensor_{detail['index']}.bin")
    interpreter.invoke()
    tensors = {}
    for op in interpreter._get_ops_details():
        for index in op["outputs"]:
            tensors[index] = interpreter.get_tensor(index)
            tensors[index].tofile(exact / f"tensor_{index}.bin")
    alone, lines = run_tool(model, tmp_path / "alone", inputs, "--feed-exact", exact, "--skip-unsupported")
    skipped = {line.split()[2].rstrip(":") for line in lines if line.startswith("skipped")}
    assert not (skipped & KINDS) - set(refused), lines
    wrong = differences(interpreter, tensors, alone)
    assert not wrong, f"alone: {wrong}"
    chained, _ = run_tool(model, tmp_path / "chained", inputs, "--skip-unsupported")
    wrong = differences(interpreter, tensors, chained)
    assert not wrong, f"chained: {wrong}"
    return len(alone)
