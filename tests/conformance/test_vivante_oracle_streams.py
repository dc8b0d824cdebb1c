# SPDX-License-Identifier: MIT
"""The simulator of Vivante against tests/pytools/vivante_model.py, on what our compiler doesn't write.

Another driver's submissions; their jobs again with other contents in the descriptors' fields; damaged coefficients.
"""

import pathlib
import re
import subprocess

import numpy as np
import pytest
from conftest import FULL, SHARED
from test_vivante_oracle import CHIPS, MICA, agreed, needs_mica, scratch
from vivante_fields import NN_FIELDS, NN_V7_FIELDS, NN_V8_FIELDS, TP_FIELDS, Fields, set_field
from vivante_judge import Writer, compile_capture, judge, replay
from vivante_memory import Bad, Unsupported
from vivante_model import Submission, run_job, starts, submissions
from vivante_nn import decode

CAPTURES = sorted(path.parent.name for path in (SHARED / "captures").glob("*/a311d"))
VARIANTS = 60 if FULL else 12  # of each job
DAMAGES = 60 if FULL else 10
# Its kernels' offsets are no offsets (specification, section 11): the device must fault, and where the model does.
FAULTS = {("fc_128_32_0_4", "a311d"), ("fc_128_32_0_4", "s905d3")}

pytestmark = needs_mica


def foreign(name, chip):
    return SHARED / "captures" / name / chip, ["--coefficients", "v7"] if chip == "s905d3" else []


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("chip", CHIPS)
def test_capture_of_another_driver(chip, name):
    capture, options = foreign(name, chip)
    if (name, chip) not in FAULTS:
        assert agreed(capture, *options).jobs
        return
    with pytest.raises(Bad) as fault:
        agreed(capture, *options)
    address, = re.findall("0x[0-9a-f]+", str(fault.value))
    done = subprocess.run([MICA, "replay", capture, *options], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and f"may not write {address}" in done.stderr


def other_neural_job(rng, words, v8):
    """Another rounding, scale, zero point, border, clamp, pooling and geometry; half of the scales make many ties."""
    table = {**NN_FIELDS, **(NN_V8_FIELDS if v8 else NN_V7_FIELDS)}
    job = Fields(words, table)
    bits = 23 if v8 else 15
    fields = {
        "rounding": rng.integers(4), "relu": rng.integers(2),
        "out_zero": rng.integers(256), "border": rng.integers(256),
        "multiplier": rng.integers(1 << bits) if rng.integers(2) else 0,
        "shift": job.shift + int(rng.integers(4, 14)),  # with the recorded scale most outputs saturate
        "x_offset": rng.integers(-3, 3), "y_offset": rng.integers(-3, 3),
        "in_x": rng.integers(1, job.in_x + 1), "in_y": rng.integers(1, job.in_y + 1),
    }
    if job.pooling == 0 and job.out_x > 1 and job.out_y > 1:
        fields.update(pooling=rng.choice([0, 1, 3]), out_x=2 * rng.integers(1, job.out_x // 2 + 1),
                      out_y=2 * rng.integers(1, job.out_y // 2 + 1))
        fields["pooling_3x3"] = fields["pooling"] == 0
    if not v8:
        fields["weight_zero"] = job.weight_zero + int(rng.integers(-2, 3))
    for name, value in fields.items():
        set_field(words, table[name], int(value))


def other_tensor_job(rng, words):
    """Another window, image and zero points."""
    job = Fields(words, TP_FIELDS)
    fields = {
        "in_x": rng.integers(1, job.in_x + 1), "in_y": rng.integers(1, job.in_y + 1),
        "in_zero": rng.integers(256), "out_zero": rng.integers(256),
    }
    x, y = (int(n) for n in rng.integers(-2, 3, 2))
    fields.update(x_start=job.x_start + x, x_end=job.x_end + x, y_start=job.y_start + y, y_end=job.y_end + y)
    for name, value in fields.items():
        set_field(words, TP_FIELDS[name], int(value))


def other_biases(rng, memory, words, chip):
    """Biases at the ends of the range, so that sums wrap, and a scale that shows it."""
    data, at = memory.find((words[5] & 0x3FFFFFF) << 6, 64)
    v8 = chip == "imx8mp"
    if v8:  # the table behind the streams
        bits = data[at + 28:at + 52].view("<u4")
        first, count = at + 64 + 64 * sum(-(-int(n) // 512) for n in bits), words[4] & 0x3FFF
    elif data[at + 64] == 0:  # no zero runs: behind the first core's first weight
        first, count = at + 68, 1
    else:
        return
    ends = rng.choice([-1 << 31, (1 << 31) - 1, 0], count) + rng.integers(-70000, 70000, count)
    data[first:first + 4 * count] = (ends & 0xFFFFFFFF).astype("<u4").view(np.uint8)
    set_field(words, NN_FIELDS["shift"], 25 if v8 else 39)  # 2^31 becomes some 100


def randomise(rng, memory, unit, address, chip):
    """Changes a job's descriptor, its input and some of its biases."""
    data, at = memory.find(address, 124)
    words = memory.words(address, 31)
    if unit == "NN":
        other_neural_job(rng, words, chip == "imx8mp")
    else:
        other_tensor_job(rng, words)
    if unit == "NN" and rng.integers(4) == 0:
        other_biases(rng, memory, words, chip)
    data[at:at + 124] = np.array(words, "<u4").view(np.uint8)
    image, place = memory.find(words[6] if unit == "NN" else words[10], 1)
    image[place:place + 4096] = rng.integers(0, 256, image[place:place + 4096].size)


@pytest.mark.parametrize("chip", CHIPS)
def test_damaged_coefficients(chip, shared):
    """A bit of the streams flipped: both refuse them, or make the same of them."""
    rng = np.random.default_rng(1)
    with scratch() as name:
        folder = pathlib.Path(name)
        compile_capture(MICA, shared / "models/tflm_micro_speech_int8.tflite", f"sim:{chip}", folder / "capture", [])
        path = submissions(folder / "capture")[-1]
        submission = Submission(path)
        _, descriptor, _ = next(job for job in starts(submission.stream) if job[0] == "NN")
        streams = Fields(submission.memory.words(descriptor, 32), NN_FIELDS).kernel_address << 6
        bo, pages = next((bo, pages) for bo, pages in submission.buffers
                         if int(bo["va"], 16) <= streams < int(bo["va"], 16) + bo["size"])
        used = int(pages.nonzero()[0][-1]) + 1
        refused = 0
        for number in range(DAMAGES):
            damaged = pages.copy()
            damaged[rng.integers(used)] ^= 1 << rng.integers(8)
            damaged.tofile(path / bo["file"])
            try:
                verdict = judge(MICA, folder / "capture", folder / str(number))
            except (Bad, Unsupported, decode.Bad):
                done = subprocess.run([MICA, "replay", folder / "capture"], capture_output=True, timeout=60)
                assert done.returncode == 2
                refused += 1
            else:
                assert not verdict.differences, "\n".join(verdict.differences)
        assert refused < DAMAGES


@pytest.mark.parametrize("name", CAPTURES)
@pytest.mark.parametrize("chip", CHIPS)
def test_changed_jobs(chip, name):
    """Each job of another driver's submission many times, with other contents in the descriptor's fields."""
    capture, options = foreign(name, chip)
    rng = np.random.default_rng(VARIANTS + len(name))
    submission = Submission(submissions(capture)[-1])
    before = submission.contents()
    with scratch() as folder:
        writer = Writer(pathlib.Path(folder) / "judged")
        for unit, address, end in starts(submission.stream):
            for _ in range(VARIANTS):
                submission.restore(before)
                randomise(rng, submission.memory, unit, address, chip)
                write_if_possible(writer, submission, unit, address, end)
        assert writer.count >= VARIANTS
        comparisons = replay(MICA, writer.folder, options)["comparisons"]
    assert sum(c["what"] == "buffer" for c in comparisons) == writer.compared
    assert not [c for c in comparisons if c["different"]]


def write_if_possible(writer, submission, unit, address, end):
    """The job as a piece of its own, unless nobody knows what it does."""
    changed = submission.contents()
    try:
        run_job(submission.memory, submission.chip, unit, address)
    except (Bad, Unsupported):
        return
    after = submission.contents()
    submission.restore(changed)
    writer.begin(submission)
    submission.restore(after)
    writer.end(submission, submission.stream[end - 2:end])
