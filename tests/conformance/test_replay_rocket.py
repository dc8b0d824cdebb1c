# SPDX-License-Identifier: MIT
"""Everything recorded of mainline's user of the rocket driver runs on the simulator to the last bit.

Judges: a slow model of the registers; TFLite's recorded answers, to which the programs are right within 1 but for
four that are wrong as submitted; and, as most outputs saturate, the same programs with a smaller output scale against
the integer convolution that the model file asks for.
"""

import re
import subprocess

import numpy as np
import pytest

from conftest import BUILD, SHARED

from rocket_model import Capture, Operation, Task, execute, round_even

MICA = BUILD / "tools" / "mica" / "mica"
CAPTURES = sorted(p.parent.name for p in (SHARED / "captures").glob("*/rk3588"))
ADD = "add_8_1_32_32_1_1_0_0_4"
# Sign bits of int8 flipped, zero points not; its captured input is all zero.
WRONG = [name for name in CAPTURES if "_s8_" in name] + [ADD]
EMPTY = "conv_u8_i8_k1_ic1_oc1_s1_p1"
LOUD = "conv_s8_i8_k3_ic16_oc16_s1_p1"  # the largest sums
# Right shifts on top of the programmed: mainline's scales leave most outputs at an end of the range.
OPENED = [8, 12, 16]

pytestmark = pytest.mark.skipif(not MICA.exists() or not CAPTURES, reason="mica or the captures are not here")


@pytest.fixture
def capture(name, tmp_path):
    return Capture(SHARED / "captures" / name / "rk3588", tmp_path / "capture")


def replay(folder):
    """Bytes of output 0 that aren't what the folder expects, of how many, and by how much."""
    done = subprocess.run([MICA, "replay", folder], capture_output=True, text=True, timeout=120)
    assert done.returncode in (0, 1), done.stderr
    found = re.search(r": (\d+) of (\d+) bytes differ from the CPU's, by (\d+) at most", done.stdout)
    return tuple(map(int, found.groups()))


def equals(capture, values):
    """Does the simulator give exactly `values`, and does replay see one that is different?"""
    capture.expect(values)
    capture.save()
    assert replay(capture.folder) == (0, values.size, 0)
    other = values.copy()
    other.flat[-1] += 1 if other.flat[-1] < 127 else -1
    capture.expect(other)
    assert replay(capture.folder) == (1, values.size, 1)


def operations(name):
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(SHARED / "captures" / name / "model.tflite"))
    interpreter.allocate_tensors()
    stride, padding = map(int, re.search(r"_s(\d)_p(\d)$", name).groups()) if name != ADD else (1, 1)
    return [Operation(interpreter, details, stride, padding == 1) for details in interpreter._get_ops_details()
            if details["op_name"] in ("CONV_2D", "DEPTHWISE_CONV_2D")]


def recorded_input(capture, operation):
    shape, dtype = operation.input["shape"][1:], operation.input["dtype"]
    return np.fromfile(capture.folder / "in_0.bin", dtype).reshape(shape)


@pytest.mark.parametrize("name", CAPTURES)
def test_equals_the_registers(capture, name):
    for job in range(len(capture.jobs)):
        result = execute(capture, job)
    capture.load()
    equals(capture, result)


@pytest.mark.parametrize("name", CAPTURES)
def test_tflite_agrees(name):
    different, _, largest = replay(SHARED / "captures" / name / "rk3588")
    assert largest <= 1 if name not in WRONG else largest > 1
    assert different < 10 or name in WRONG


@pytest.mark.parametrize("extra", OPENED)
@pytest.mark.parametrize("name", [name for name in CAPTURES if name != ADD])
def test_opened_output_equals_the_model(capture, name, extra):
    operation, = operations(name)
    image = recorded_input(capture, operation)
    if name == EMPTY:
        fill_packed(capture, image)
    capture.open_output(0, extra)
    values = Task(capture, capture.registers(0)).convert(operation.sums(image))
    equals(capture, values)
    if extra == (16 if name == LOUD else 12):
        assert np.unique(values).size >= 8


def fill_packed(capture, image):
    """Puts a one-channel image where the program reads it: at the lines' pitch."""
    task = Task(capture, capture.registers(0))
    pitch = task.registers[0x107c] * task.packed
    for y, row in enumerate(image):
        capture.at(task.registers[0x1070] + y * pitch, row.size)[:] = row.ravel()


# ---- the addition: two convolutions of one input, the second adds the result of the first ----


@pytest.mark.parametrize("name", [ADD])
@pytest.mark.parametrize("extra", [0, 2, 4, 12])
def test_first_convolution_of_the_addition(capture, extra):
    """What the second one reads: the first job alone, its output compared."""
    operation = operations(ADD)[0]
    capture.jobs = capture.jobs[:1]
    if extra:
        capture.open_output(0, extra)
    values = Task(capture, capture.registers(0)).convert(operation.sums(recorded_input(capture, operation)))
    equals(capture, values)


@pytest.mark.parametrize("name", [ADD])
@pytest.mark.parametrize("extra", [0, 2, 4, 12])
def test_addition_equals_the_model(capture, extra):
    """The second convolution's sums and the converted operand, without a clamp between them."""
    second = operations(ADD)[1]
    execute(capture, 0)
    task = Task(capture, capture.registers(1))
    sums = second.sums(recorded_input(capture, second)) + task.operand()
    capture.load()
    if extra:
        capture.open_output(1, extra)
    values = Task(capture, capture.registers(1)).convert(sums)
    equals(capture, values)
    assert extra == 12 or np.unique(values).size >= 8


@pytest.mark.parametrize("name", [ADD])
def test_addition_is_wrong_for_its_lost_clamp_only(capture):
    """With the convolution's output clamped as TFLite does, all are within 1."""
    second = operations(ADD)[1]
    execute(capture, 0)
    task = Task(capture, capture.registers(1))
    unit = second.scale(second.input) * second.scale(second.weights) / second.scale(second.output)
    zero = second.zero_point(second.output)
    low, high = (int(np.rint((end - zero) / unit)) for end in (0, 255))
    sums = second.sums(recorded_input(capture, second))
    expected = np.fromfile(capture.folder / "cpu_0.bin", np.uint8).astype(int).reshape(sums.shape) - 128
    clamped = task.convert(np.clip(sums, low, high) + task.operand())
    assert np.abs(clamped - expected).max() <= 1
    assert np.abs(task.convert(sums + task.operand()) - expected).max() > 1


def test_rounding_is_to_the_even_number():
    assert [round_even(v, 1) for v in (-3, -1, 1, 3, 5)] == [-2, 0, 0, 2, 2]
    assert [round_even(v, 2) for v in (-7, -6, -5, 5, 6, 7)] == [-2, -2, -1, 1, 2, 2]
