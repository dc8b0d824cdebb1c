# SPDX-License-Identifier: MIT
"""Slow models of what the Rockchip NPU computes, to judge the simulator by. They share nothing with it.

execute(): one convolution task from its register words and memory alone (specification, sections 4 to 9).
sums_of(): the integer convolution that an operation of a .tflite file asks for, before its output is scaled.
"""

import json
import shutil

import numpy as np

PAGE = 4096
SHIFT, OFFSET = 0x4088, 0x4080  # registers of the output conversion
DPU_TARGET = 0x1001


def signed(value, bits):
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def round_even(value, shift):
    """value / 2^shift, halves to the even number."""
    if shift == 0:
        return value
    return (value + (1 << (shift - 1)) - 1 + ((value >> shift) & 1)) >> shift


# ---- captures -------------------------------------------------------------------


class Capture:
    """A recorded submission in a folder of its own, to be changed and replayed."""

    def __init__(self, source, folder):
        shutil.copytree(source, folder, copy_function=shutil.copyfile)
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
        self.folder = folder
        self.submit = json.loads((folder / "submit_0000/submit.json").read_text())
        self.run = json.loads((folder / "run.json").read_text())
        self.output = next(t for t in self.run["tensors"] if t["kind"] == "output")
        self.jobs = self.submit["jobs"]
        self.load()

    def file(self, bo):
        return self.folder / "submit_0000" / bo["file"]

    def load(self):
        """Memory as it is before the submission, whole pages as the device has them."""
        self.memory = {}
        for bo in self.submit["bos"]:
            pages = np.zeros(-(-bo["size"] // PAGE) * PAGE, np.uint8)
            if "file" in bo:
                contents = np.fromfile(self.file(bo), np.uint8)
                pages[:contents.size] = contents
            self.memory[int(bo["va"], 16)] = pages

    def at(self, address, size):
        for start, pages in self.memory.items():
            if start <= address and address + size <= start + pages.size:
                return pages[address - start:address - start + size]
        raise IndexError(f"{size} bytes at {address:#x} are not mapped")

    def words(self, job):
        task, = self.jobs[job]["tasks"]
        return self.at(int(task["regcmd"], 16), 8 * task["regcmd_count"]).view(np.uint64)

    def registers(self, job):
        return {int(w) & 0xffff: int(w) >> 16 & 0xffffffff for w in self.words(job)}

    def set_register(self, job, offset, value):
        words = self.words(job)
        place, = np.flatnonzero(words & np.uint64(0xffff00000000ffff) == np.uint64(DPU_TARGET << 48 | offset))
        words[place] = np.uint64(DPU_TARGET << 48 | (value & 0xffffffff) << 16 | offset)

    def open_output(self, job, shift):
        """Lets the output conversion saturate later."""
        self.set_register(job, SHIFT, self.registers(job)[SHIFT] + shift)
        self.set_register(job, OFFSET, 0)

    def expect(self, values):
        """`values`: what output 0 must be, as the device has it, [row][column][channel]."""
        flip = 0x80 if self.output["type"] == "UINT8" else 0
        (values.astype(np.int8).view(np.uint8) ^ flip).tofile(self.folder / "cpu_0.bin")

    def save(self):
        for bo in self.submit["bos"]:
            if "file" in bo:
                self.memory[int(bo["va"], 16)][:bo["size"]].tofile(self.file(bo))
        self.submit["jobs"] = self.jobs
        (self.folder / "submit_0000/submit.json").write_text(json.dumps(self.submit))


# ---- a task from its registers --------------------------------------------------


class Task:
    def __init__(self, capture, registers):
        self.capture, self.registers = capture, registers
        self.depthwise = self.field(0x100c, 0, 4) == 3
        packed = self.field(0x100c, 12, 4)
        self.packed = packed - 7 if packed else 0  # channels of a packed pixel
        self.channels = self.field(0x1024, 0, 16)
        self.kernel = (self.field(0x1038, 16, 5), self.field(0x1038, 24, 5))
        self.stride = (self.field(0x1014, 3, 3), self.field(0x1014, 0, 3))
        self.out = (self.field(0x3014, 16, 16) + 1, self.field(0x3014, 0, 16) + 1)
        self.out_channels = self.field(0x403c, 16, 16) + 1
        self.stored = -(-self.out_channels // 16) * 16

    def field(self, offset, low, width):
        return self.registers.get(offset, 0) >> low & (1 << width) - 1

    def number(self, offset, bits):
        return signed(self.registers.get(offset, 0), bits)

    def bytes(self, address, size):
        return self.capture.at(address, size).view(np.int8).astype(np.int64)

    def cube(self, surfaces, height, width):
        """[row][column][channel] of the 16-channel surfaces that begin at these addresses."""
        return np.concatenate([self.bytes(s, height * width * 16).reshape(height, width, 16) for s in surfaces], 2)

    def features(self):
        width, height = self.field(0x1084, 16, 11), self.field(0x1084, 0, 11)
        base, group = self.registers[0x1070], 1 if self.field(0x100c, 29, 1) else 4
        if not self.packed:
            plane = 16 * (self.number(0x1080, 28) + group * width)
            return self.cube([base + i * plane for i in range(self.channels // 16)], height, width)
        # Unsigned bytes, which the converter of these programs makes signed.
        pitch = self.registers[0x107c] // group * self.packed
        lanes = np.zeros((height, width, self.channels), np.int64)
        for y in range(height):
            row = self.capture.at(base + y * pitch, width * self.packed).reshape(width, self.packed)
            lanes[y, :, :self.packed] = row.astype(np.int64) - 128
        return lanes

    def windows(self):
        """For each tap: [row][column][channel] of what it sees."""
        features, (top, left) = self.features(), (self.field(0x1068, 0, 4), self.field(0x1068, 4, 4))
        rows, columns = ((o - 1) * s + k for o, s, k in zip(self.out, self.stride, self.kernel))
        image = np.full((rows, columns, self.channels), self.number(0x1184, 8), np.int64)
        part = features[:rows - top, :columns - left]
        image[top:top + part.shape[0], left:left + part.shape[1]] = part
        for y in range(self.kernel[0]):
            for x in range(self.kernel[1]):
                yield image[y:, x:][:(self.out[0] - 1) * self.stride[0] + 1:self.stride[0],
                                    :(self.out[1] - 1) * self.stride[1] + 1:self.stride[1]]

    def depthwise_weights(self):
        """[tap][channel]; groups of 64 channels, of which the captures have one."""
        assert self.channels <= 64
        taps = self.kernel[0] * self.kernel[1]
        return self.bytes(self.registers[0x1110], taps * self.channels).reshape(taps, self.channels)

    def weights(self):
        """[tap][lane][kernel], from groups of 32 kernels and 32 lanes."""
        kernels, taps = self.field(0x1038, 0, 14), self.kernel[0] * self.kernel[1]
        weights, address = np.zeros((taps, self.channels, max(self.stored, kernels)), np.int64), self.registers[0x1110]
        for first in range(0, kernels, 32):
            count = min(32, kernels - first)
            for lane in range(0, self.channels, 32):
                lanes = min(32, self.channels - lane)
                group = self.bytes(address, taps * count * lanes).reshape(taps, count, lanes)
                weights[:, lane:lane + lanes, first:first + count] = group.transpose(0, 2, 1)
                address += taps * count * lanes
        return weights[..., :self.stored]

    def sums(self):
        """Products over the window, and the inputs' own sum."""
        windows = np.array(list(self.windows()))
        if self.depthwise:
            return np.einsum("tyxc,tc->yxc", windows, self.depthwise_weights()), windows.sum(0)
        return np.einsum("tyxc,tco->yxo", windows, self.weights()), windows.sum((0, 3))[..., None]

    def operand(self):
        """What is added before the output conversion; MRDMA has even surfaces, ERDMA odd ones, each its own notch."""
        (height, width), pairs = self.out, []
        for k in range(self.stored // 32):
            even = self.registers[0x5018] + k * (width * height * 16 + self.registers[0x504c])
            odd = self.registers[0x5038] + k * (width * height * 16 + self.registers[0x506c])
            pairs += [even, odd]
        value = (self.cube(pairs, height, width) + self.number(0x4074, 32)) * self.number(0x4078, 16)
        return round_even(value, self.field(0x4078, 16, 6))

    def accumulators(self):
        """What reaches the output conversion."""
        assert self.field(0x3030, 0, 5) == 0 and self.field(0x4040, 0, 32) == 0x20150  # no truncation, bias alone
        assert self.registers[0x4060] == 0x53  # BN is off
        products, totals = self.sums()
        zero = 0 if self.field(0x4050, 1, 1) else self.number(0x4054, 16)
        bias = self.capture.at(self.registers[0x5020], 4 * self.stored).view(np.int32).astype(np.int64)
        values = products + zero * totals + bias
        return values + self.operand() if self.registers[0x5044] == 0x7d00 else values

    def convert(self, values):
        scaled = round_even(values * self.number(0x4084, 16), self.field(SHIFT, 0, 12))
        return np.clip(scaled + self.number(OFFSET, 32), -128, 127)


def execute(capture, job):
    """Runs a job's task in the capture's memory; returns its output's real channels."""
    task = Task(capture, capture.registers(job))
    result = task.convert(task.accumulators())
    for i in range(task.stored // 16):
        surface = capture.at(task.registers[0x4020] + i * task.registers[0x4024], task.out[0] * task.out[1] * 16)
        surface[:] = result[..., 16 * i:16 * i + 16].astype(np.int8).view(np.uint8).ravel()
    return result[..., :task.out_channels]


# ---- an operation from its model ------------------------------------------------


class Operation:
    """A CONV_2D or DEPTHWISE_CONV_2D of a model; strides and padding are not in what the interpreter tells."""

    def __init__(self, interpreter, details, stride, same):
        self.depthwise = details["op_name"] == "DEPTHWISE_CONV_2D"
        self.stride, self.same = stride, same
        tensors = {d["index"]: d for d in interpreter.get_tensor_details()}
        self.input, self.weights, _ = (tensors[i] for i in details["inputs"])
        self.output = tensors[details["outputs"][0]]
        self.kernel, self.bias = (interpreter.get_tensor(i) for i in details["inputs"][1:])

    @staticmethod
    def zero_point(tensor):
        return int(tensor["quantization_parameters"]["zero_points"][0])

    def scale(self, tensor):
        return float(tensor["quantization_parameters"]["scales"][0])

    def padded(self, image):
        size = self.kernel.shape[1:3]
        pads = [(0, 0)] * 2
        if self.same:
            total = [max((-(-n // self.stride) - 1) * self.stride + k - n, 0) for n, k in zip(image.shape, size)]
            pads = [(t // 2, t - t // 2) for t in total]
        return np.pad(image, [*pads, (0, 0)])

    def sums(self, image):
        """[row][column][channel] of the sums with bias; `image` as integers, the zero point still in it.

        int8 is read as mainline's user of the device has it: with the sign bit taken for a value (of inputs and
        weights, not of zero points), which is the defect of its programs.
        """
        view = np.uint8 if self.kernel.dtype == np.int8 else self.kernel.dtype
        kernel = self.kernel.view(view).astype(np.int64) - self.zero_point(self.weights)
        image = self.padded(image.view(view).astype(np.int64) - self.zero_point(self.input))
        total, (height, width) = 0, kernel.shape[1:3]
        rows, columns = image.shape[0] - height + 1, image.shape[1] - width + 1
        for y in range(height):
            for x in range(width):
                window = image[y:y + rows:self.stride, x:x + columns:self.stride]
                total = total + (window * kernel[0, y, x] if self.depthwise else window @ kernel[:, y, x].T)
        return total + self.bias
