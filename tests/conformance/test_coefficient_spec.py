# SPDX-License-Identifier: MIT
"""docs/coefficients/decode.py, the executable form of docs/coefficient-streams.md, against recorded buffers and against
the C decoder and encoder.

MICA_BUILD names the build directory (default: build); without its huffman_tool the C side is left out.
"""

import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = ROOT.parent / "shared"
VECTORS = sorted((SHARED / "spec/vivante/vectors").glob("*.json"))
CAPTURES = sorted((SHARED / "captures").glob("*/imx8mp"))
BUILD = pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")).resolve()
TOOL = BUILD / "tests/unit/vivante-huffman/huffman_tool"
START_NN = 0x08010428  # LOAD_STATE of the NN descriptor's address

spec = importlib.util.spec_from_file_location("decode", ROOT / "docs/coefficients/decode.py")
decode = importlib.util.module_from_spec(spec)
sys.modules["decode"] = decode  # dataclasses look their module up
spec.loader.exec_module(decode)


def field(words, *parts):
    value, shift = 0, 0
    for word, low, width in parts:
        value |= (words[word] >> low & (1 << width) - 1) << shift
        shift += width
    return value


def job_of(chip, words):
    """What the descriptor says (src/npu/vivante/hw/nn_descriptor.def)."""
    columns, rows = field(words, (0, 2, 4)), field(words, (8, 12, 4))
    if field(words, (0, 0, 1)):  # one column: the width field holds the height
        columns, rows = 1, columns
    depthwise = bool(field(words, (22, 17, 1)))
    channels = 1 if depthwise else field(words, (0, 6, 14), (5, 26, 6))
    return decode.Job(chip, columns, rows, channels, field(words, (0, 20, 7)), words[22] & 255,
                      field(words, (4, 0, 14)) if chip == "imx8mp" else 0, depthwise)


# ---- what a model's weights become ----


def lowered(weights, job, depthwise):
    """[kernel][channel][row][column] of the job from OHWI (depthwise: 1HWC) uint8 weights."""
    if depthwise:
        own = weights[0].transpose(2, 0, 1)[:, None]  # [C][1][H][W]
        if job.channels == 1 and own.shape[0] > 1 or job.depthwise:
            return own
        full = np.full((own.shape[0], job.channels) + own.shape[2:], job.zero_point, np.uint8)
        for channel in range(own.shape[0]):
            full[channel, channel] = own[channel, 0]
        return full
    if weights.ndim == 2:  # fully connected, the input folded into an image
        return weights.reshape(-1, job.channels, job.height, job.width)
    plain = weights.transpose(0, 3, 1, 2)
    kernels, channels, rows, columns = plain.shape
    full = np.full((kernels, job.channels, job.height, job.width), job.zero_point, np.uint8)
    if job.channels == 4 * channels:  # space to depth
        for a in range(2):
            for b in range(2):
                part = plain[:, :, a::2, b::2]
                full[:, 2 * a + b :: 4, : part.shape[2], : part.shape[3]] = part
        return full
    top, left = (job.height - rows) // 2, (job.width - columns) // 2
    full[:, :, top : top + rows, left : left + columns] = plain
    return full


def check_kernels(kernels, job, weights, bias, input_zero):
    """Decoded kernels against the weights and biases they were made from."""
    zero_term = 128 if job.chip == "imx8mp" else 0
    offsets = sorted(kernel.offset for kernel in kernels) if job.chip != "imx8mp" else []
    plane = max(offsets[1] if len(offsets) > 1 else 1, 1)
    seen = set()
    for kernel in kernels:
        channel = kernel.channel if job.chip == "imx8mp" else kernel.offset // plane
        if channel >= len(weights):
            assert job.chip == "a311d"  # mainline fills up the cores
            continue
        seen.add(channel)
        expected = weights[channel]
        assert kernel.weights == expected.ravel().tolist(), f"channel {channel}"
        total = int((expected.astype(int) - job.zero_point).sum())
        assert kernel.bias == (int(bias[channel]) + (zero_term - input_zero) * total) % 2**32, f"channel {channel}"
        assert job.chip == "imx8mp" or kernel.offset == channel * plane
    assert seen == set(range(len(weights)))


# ---- the C decoder ----


def run_tool(*arguments, data=b""):
    done = subprocess.run([TOOL, *map(str, arguments)], input=data, capture_output=True, timeout=60)
    return {name: value for name, value in (line.split(" ", 1) for line in done.stdout.decode().splitlines())}


def tool_arguments(job, kernels):
    return [job.chip, job.width, job.height, job.channels, job.kernels_per_core, job.zero_point,
            job.kernels or kernels, int(job.depthwise)]


def check_c_decoder(buffer, job, kernels):
    """The C decoder gives the same kernels, and the C encoder no larger streams for them."""
    if not TOOL.exists() or job.chip == "a311d":
        return
    found = run_tool("decode", *tool_arguments(job, len(kernels)), data=bytes(buffer))
    assert "error" not in found, found["error"]
    assert found["weights"] == b"".join(bytes(kernel.weights) for kernel in kernels).hex()
    assert found["bias"] == b"".join(kernel.bias.to_bytes(4, "little") for kernel in kernels).hex()
    offsets = [kernel.channel if job.chip == "imx8mp" else kernel.offset for kernel in kernels]
    assert found["offset"] == b"".join(offset.to_bytes(4, "little") for offset in offsets).hex()
    assert int(found["ours"]) <= int(found["recorded"])


# ---- tests ----


def nn_vectors():
    for path in VECTORS:
        vector = json.loads(path.read_text())
        for job in vector["jobs"]:
            if job["unit"] == "NN":
                yield pytest.param(vector, job, id=path.stem)


@pytest.mark.skipif(not VECTORS, reason="no vectors")
def test_there_are_as_many_vectors_as_the_specification_says():
    assert len(VECTORS) == 77


@pytest.mark.parametrize("vector,nn", list(nn_vectors()))
def test_vector_decodes_to_its_weights(vector, nn):
    words = [int(word, 16) for word in nn["descriptors"][0]["words"]]
    item = nn["coefficients"][0]
    buffer = bytes.fromhex(item["bytes"]).ljust(item["size"], b"\0")
    job = job_of(vector["chip"], words)
    kernels = decode.decode(buffer, job)
    check_c_decoder(buffer, job, kernels)
    if "weights" not in vector:
        return  # an addition: its weights are the driver's own
    flip = 0x80 if vector["signed"] else 0
    raw = np.frombuffer(bytes.fromhex(vector["weights"]), np.uint8) ^ flip
    bias = np.frombuffer(bytes.fromhex(vector["bias_le32"]), np.int32)
    size = vector["params"]["kernel"]
    columns, rows = size if isinstance(size, list) else (size, size)
    depthwise = bool(vector["params"]["depthwise"])
    if vector["weight_layout"] == "OI":
        shape = (len(bias), -1)
    elif depthwise:
        shape = (1, rows, columns, len(bias))
    else:
        shape = (len(bias), rows, columns, -1)
    weights = lowered(raw.reshape(shape), job, depthwise)
    check_kernels(kernels, job, weights, bias, vector["input_quant"]["zero_point"] + flip)


def captured_jobs(folder):
    """(descriptor words, coefficient buffer) of the NN jobs that a capture submits."""
    for path in sorted(folder.glob("submit_*/submit.json")):
        submit = json.loads(path.read_text())
        memory = [(int(bo["va"], 16), (path.parent / bo["file"]).read_bytes()) for bo in submit["bos"] if "file" in bo]
        stream = np.frombuffer((path.parent / submit["stream"]["file"]).read_bytes(), np.uint32).tolist()

        def read(address, size=None):
            for start, data in memory:
                if start <= address < start + len(data):
                    return data[address - start : None if size is None else address - start + size]
            raise AssertionError(f"no buffer at {address:#x}")

        for command, value in zip(stream, stream[1:]):
            if command == START_NN:
                words = np.frombuffer(read(value & ~63, 136), np.uint32).tolist()
                yield words, read((words[5] & 0x3FFFFFF) << 6)


def model_layers(folder):
    """uint8 weights, bias, input zero point and whether depthwise, of each operation of a model that has weights."""
    interpreter = pytest.importorskip("ai_edge_litert.interpreter").Interpreter(str(folder.parent / "model.tflite"))
    tensors = {tensor["index"]: tensor for tensor in interpreter.get_tensor_details()}
    for op in interpreter._get_ops_details():
        if op["op_name"] not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"):
            continue
        image, weights, bias = (tensors[index] for index in op["inputs"])
        data = interpreter.get_tensor(weights["index"])
        flip = 128 if image["dtype"] == np.int8 else 0
        yield (data.view(np.uint8) ^ (0x80 if data.dtype == np.int8 else 0), interpreter.get_tensor(bias["index"]),
               int(image["quantization_parameters"]["zero_points"][0]) + flip, op["op_name"] == "DEPTHWISE_CONV_2D")


@pytest.mark.parametrize("folder", CAPTURES, ids=lambda folder: folder.parent.name)
def test_capture_decodes_to_its_model(folder):
    jobs, layers = list(captured_jobs(folder)), list(model_layers(folder))
    additions = 1 if folder.parent.name.startswith("add_") else 0  # it comes last, with weights of the driver's own
    assert len(jobs) == len(layers) + additions and layers
    for number, (words, buffer) in enumerate(jobs):
        job = job_of("imx8mp", words)
        kernels = decode.decode(buffer, job)
        check_c_decoder(buffer, job, kernels)
        if number < len(layers):
            weights, bias, input_zero, depthwise = layers[number]
            check_kernels(kernels, job, lowered(weights, job, depthwise), bias, input_zero)


@pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built")
@pytest.mark.parametrize("seed", range(300))
def test_what_we_encode_follows_the_specification(seed):
    made = run_tool("random", seed)
    chip, *numbers = made["arguments"].split()
    width, height, channels, per_core, zero_point, count, depthwise = map(int, numbers)
    imx8mp = chip == "imx8mp"
    job = decode.Job(chip, width, height, 1 if depthwise else channels, per_core, zero_point, count if imx8mp else 0,
                     bool(depthwise))
    buffer = bytes.fromhex(made["buffer"])
    kernels = decode.decode(buffer, job)
    check_c_decoder(buffer, job, kernels)
    weights, bias = bytes.fromhex(made["weights"]), bytes.fromhex(made["bias"])
    taps = len(weights) // count
    places = [kernel.channel if imx8mp else kernel.offset // int(made["plane"]) for kernel in kernels]
    assert sorted(places) == list(range(count))
    for place, kernel in zip(places, kernels):
        assert bytes(kernel.weights) == weights[place * taps : (place + 1) * taps]
        assert kernel.bias.to_bytes(4, "little") == bias[4 * place : 4 * place + 4]


def test_the_worked_example():
    """Weights 1 to 9 of one 3x3 kernel, bias' 1135 (specification, section 10.2)."""
    header = bytes([0x10]) + bytes(19) + bytes.fromhex("23145076") + bytes(4) + (70).to_bytes(4, "little") + bytes(32)
    stream = bytes.fromhex("f3120080e74e722005").ljust(64, b"\0")
    buffer = header + stream + (1135).to_bytes(4, "little")
    kernels = decode.decode(buffer, decode.Job("imx8mp", 3, 3, 1, 1, 0, kernels=1))
    assert [(kernel.weights, kernel.bias) for kernel in kernels] == [(list(range(1, 10)), 1135)]


@pytest.mark.parametrize("at,value", [(0, 0x40), (0, 0x20), (0, 0x11), (1, 5), (20, 0x11), (26, 1), (28, 69), (28, 71)])
def test_what_is_no_stream_is_refused(at, value):
    header = bytes([0x10]) + bytes(19) + bytes.fromhex("23145076") + bytes(4) + (70).to_bytes(4, "little") + bytes(32)
    buffer = bytearray(header + bytes.fromhex("f3120080e74e722005").ljust(64, b"\0") + bytes(4))
    buffer[at] = value
    with pytest.raises(decode.Bad):
        decode.decode(bytes(buffer), decode.Job("imx8mp", 3, 3, 1, 1, 0, kernels=1))
