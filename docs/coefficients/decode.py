#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Decodes Vivante coefficient buffers: the executable form of ../coefficient-streams.md.

Small, slow and strict, on purpose: it shares no code with the compiler or the simulator, and both are tested against
it. Three formats: V7 (A311D), Huffman in V8 order (i.MX 8M Plus), Huffman in V7 order (S905D3).

    decode.py BUFFER --chip s905d3 --kernel 3x3 --channels 16 --kernels-per-core 8 --zero-point 128
"""

import argparse
import json
from dataclasses import dataclass


class Bad(Exception):
    """The buffer is none of this format."""


@dataclass
class Job:
    """What the descriptor says about the kernels."""

    chip: str  # a311d, s905d3, imx8mp
    width: int
    height: int
    channels: int  # that a kernel sees; 1 for the i.MX 8M Plus's own depthwise jobs
    kernels_per_core: int  # in each superblock but the last
    zero_point: int
    kernels: int = 0  # i.MX 8M Plus only: the job's output channels
    depthwise: bool = False  # i.MX 8M Plus only


@dataclass
class Kernel:
    weights: list  # [channel][row][column] flattened, uint8
    bias: int = 0  # 32 bits, unsigned
    offset: int | None = None  # bytes from the output address, where the stream says it
    channel: int | None = None  # where the order says it


CORES = {"a311d": 8, "s905d3": 2, "imx8mp": 6}


class Bits:
    """Least significant bit of the first byte first."""

    def __init__(self, data, count):
        if count > 8 * len(data):
            raise Bad("a stream is longer than the buffer")
        self.data, self.left, self.position = data, count, 0

    def read(self, count):
        if count > self.left:
            raise Bad("a stream ends in the middle of something")
        value = 0
        for i in range(count):
            at = self.position + i
            value |= (self.data[at // 8] >> at % 8 & 1) << i
        self.position += count
        self.left -= count
        return value


def u32(data, at):
    return int.from_bytes(data[at : at + 4], "little")


# ---- the order of weights ----


def v7_taps(width, height):
    """Row * width + column, pairs of rows in blocks of three columns, upper row first."""
    return [
        row * width + column
        for pair in range(0, height, 2)
        for block in range(0, width, 3)
        for row in range(pair, min(pair + 2, height))
        for column in range(block, min(block + 3, width))
    ]


def v7_steps(job):
    """The weights of a kernel, step by step: channel * taps + tap."""
    taps = job.width * job.height
    if taps == 1:
        return [list(range(z, min(z + 6, job.channels))) for z in range(0, job.channels, 6)]
    return [[z * taps + tap for tap in v7_taps(job.width, job.height)] for z in range(job.channels)]


def v8_steps(job):
    """Blocks of nine taps of the flattened kernel; None is a filler. A depthwise kernel is one block."""
    total = job.width * job.height * (1 if job.depthwise else job.channels)
    filled = list(range(total)) + [None] * (-total % 9)
    return [filled] if job.depthwise else [filled[i : i + 9] for i in range(0, len(filled), 9)]


def superblocks(kernels, per_core):
    return [range(start, min(start + per_core, kernels)) for start in range(0, kernels, per_core)]


def v7_places(kernels, job):
    """What comes after the kernel count in S905D3 streams, byte by byte: (kernel, what, index)."""
    steps = v7_steps(job)
    for block in superblocks(kernels, job.kernels_per_core):
        for number, step in enumerate(steps):
            for kernel in block:
                if number == 0:
                    yield from ((kernel, "bias", i) for i in range(4))
                yield from ((kernel, "weight", i) for i in step)
                if number == len(steps) - 1:
                    yield from ((kernel, "offset", i) for i in range(4))


def v8_places(kernels, job):
    """The same in i.MX 8M Plus streams."""
    for block in superblocks(kernels, job.kernels_per_core):
        for step in v8_steps(job):
            for kernel in block:
                yield from ((kernel, "weight", i) for i in step)


def v8_channels(counts, job):
    """Output channels of each core's kernels, in order."""
    cores = CORES["imx8mp"]
    if job.depthwise:  # groups of six channels, each dealt out backwards
        return [
            [6 * g + min(cores, job.kernels - 6 * g) - 1 - core for g in range(counts[core])] for core in range(cores)
        ]
    channels, next_channel = [[] for _ in range(cores)], 0
    for start in range(0, max(counts), job.kernels_per_core):
        for core in range(cores):
            for _ in range(start, min(start + job.kernels_per_core, counts[core])):
                channels[core].append(next_channel)
                next_channel += 1
    return channels


# ---- V7 ----


def decode_v7_core(bits, job):
    zero_run_bits, count = bits.read(8), bits.read(16)
    if zero_run_bits > 8:
        raise Bad("zero runs are too long")
    kernels = [Kernel([job.zero_point] * (job.width * job.height * job.channels)) for _ in range(count)]
    waiting = []  # weights of the token that was read last
    steps = v7_steps(job)
    for block in superblocks(count, job.kernels_per_core):
        for number, step in enumerate(steps):
            for k in block:
                for place, index in enumerate(step):
                    if not waiting:
                        run = bits.read(zero_run_bits)
                        waiting = [job.zero_point] * run + [bits.read(8)]
                    kernels[k].weights[index] = waiting.pop(0)
                    if number == 0 and place == 0:  # behind the token that has the first weight
                        kernels[k].bias = bits.read(32)
                if number == len(steps) - 1:
                    kernels[k].offset = bits.read(32)
    if waiting:
        raise Bad("a run goes past the last kernel")
    return kernels


def decode_v7(buffer, job):
    cores = CORES[job.chip]
    start, kernels = -(-4 * cores // 64) * 64, []
    for core in range(cores):
        size = u32(buffer, 4 * core)
        if size % 64:
            raise Bad("a stream's size is no multiple of 64")
        if size:
            bits = Bits(buffer[start : start + size], 8 * size)
            kernels += decode_v7_core(bits, job)
            if bits.left >= 8 * 64:
                raise Bad("a stream is longer than its kernels")
        start += size
    return kernels


# ---- Huffman ----


@dataclass
class Header:
    precode: bool
    run_table: list  # run lengths, 1 to 256
    symbol_map: list  # class of each symbol
    average_bias: int
    core_bits: list


def read_header(buffer, job):
    if buffer[0] % 64 == 0:
        raise Bad("this is a V7 stream")
    if buffer[0] & 0xFE != 0x10:
        raise Bad("version is not 1, or bits are set that nobody knows")
    if any(buffer[25:28]):
        raise Bad("reserved bytes are set")
    if buffer[1] not in (0, 4, 6, 10, 18):
        raise Bad("no such run table")
    header = Header(
        precode=bool(buffer[0] & 1),
        run_table=[entry + 1 for entry in buffer[2 : 2 + buffer[1]]],
        symbol_map=[buffer[20 + i // 2] >> 4 * (i % 2) & 15 for i in range(8)],
        average_bias=buffer[24],
        core_bits=[u32(buffer, 28 + 4 * core) for core in range(CORES[job.chip])],
    )
    if header.precode and (job.chip == "imx8mp" or header.average_bias):
        raise Bad("differences are not possible here")
    classes = set(header.symbol_map)
    wanted = set(range(9)) if header.run_table else set(range(8))
    missing = wanted - classes
    if not classes <= wanted or missing and (len(missing) > 1 or not missing <= set(range(1, 7))):
        raise Bad("the symbol map is wrong")
    return header


def value_bits(header, class_):
    """Bits of the value v of a class."""
    if not header.run_table:
        return max(class_, 1)
    return {0: 1, 7: 8, 8: (len(header.run_table) - 2).bit_length() - 1}.get(class_, class_)


def meaning(header, class_, v):
    """A byte (before the average bias), or a run as (length,)."""
    if header.run_table and class_ == 0:
        return (header.run_table[v],)
    if header.run_table and class_ == 8:
        return (header.run_table[2 + v],)
    if header.run_table and class_ == 7:
        return v
    sign, low = v & 1, v >> 1
    magnitude = (1 << class_ - 1) + low if class_ else 0
    if not sign:
        return magnitude
    return 256 - magnitude if header.run_table else ~magnitude & 255


def symbol_of(three, two):
    """Symbol and the bits of v that the prefix holds, as (symbol, number of bits, value)."""
    if three in (0, 4):
        return 0, 1, three >> 2
    if three in (1, 5):
        return 1, 1, three >> 2
    if three != 2:
        return {7: 2, 3: 3, 6: 4}[three], 0, 0
    if two in (1, 3):
        return 5, 1, two >> 1
    return {2: 6, 0: 7}[two], 0, 0


def read_codes(bits, header):
    """All codes of a stream in order, the dummy at the end not included."""
    codes, pairs = [], []
    last, before = None, None  # the pair one step old (3-bit parts), the one two steps old (symbols)
    while bits.left:
        three = [bits.read(3), bits.read(3)]
        two = [bits.read(2) if part == 2 else None for part in last or []]
        for symbol, known, low in before or []:
            class_ = header.symbol_map[symbol]
            v = low | bits.read(value_bits(header, class_) - known) << known
            codes.append(meaning(header, class_, v))
        before = [symbol_of(*parts) for parts in zip(last, two)] if last else None
        last = three
        pairs.append(three)
    if len(pairs) < 2 or pairs[-1] != pairs[-2] or pairs[-1] not in ([0, 0], [4, 4]):
        raise Bad("the end is not marked")
    if pairs[-1] == [4, 4]:
        if not codes or codes.pop() != 0:
            raise Bad("the dummy is not zero")
    return codes


def expand(codes, header):
    """Bytes, and beside each whether it is part of a run."""
    data, in_run = [], []
    for code in codes:
        length = code[0] if isinstance(code, tuple) else 1
        byte = 0 if isinstance(code, tuple) else code
        data += [(byte + header.average_bias) % 256] * length
        in_run += [isinstance(code, tuple)] * length
    if header.precode:
        for i in range(1, len(data)):
            data[i] = (data[i] + data[i - 1]) % 256
    return data, in_run


def decode_huffman_core(data, in_run, job):
    """Kernels of one core from its bytes."""
    if len(data) < 2:
        raise Bad("no kernel count")
    count = data[0] | data[1] << 8
    centred = job.zero_point if job.chip == "imx8mp" else 0
    taps = job.width * job.height * (1 if job.depthwise else job.channels)
    kernels = [Kernel([None] * taps) for _ in range(count)]
    places = list(v8_places(count, job) if job.chip == "imx8mp" else v7_places(count, job))
    if len(places) + 2 != len(data):
        raise Bad(f"{len(data)} bytes where {count} kernels take {len(places) + 2}")
    if any(in_run[:2]):
        raise Bad("a run in the kernel count")
    for (k, what, index), byte, runs in zip(places, data[2:], in_run[2:]):
        if what == "weight" and index is None:
            if byte != 0:
                raise Bad("a filler is not zero")
        elif what == "weight":
            kernels[k].weights[index] = (byte + centred) % 256
        elif runs:
            raise Bad(f"a run in the {what}")
        elif what == "bias":
            kernels[k].bias |= byte << 8 * index
        else:
            kernels[k].offset = (kernels[k].offset or 0) | byte << 8 * index
    return kernels


def decode_huffman(buffer, job):
    header = read_header(buffer, job)
    start, cores = 64, []
    for bits in header.core_bits:
        size = -(-bits // 512) * 64
        if start + size > len(buffer):
            raise Bad("the streams are cut")
        stream = buffer[start : start + size]
        start += size
        data, in_run = expand(read_codes(Bits(stream, bits), header), header) if bits else ([0, 0], [False] * 2)
        cores.append(decode_huffman_core(data, in_run, job))
    if job.chip == "imx8mp":
        counts = [len(kernels) for kernels in cores]
        if sum(counts) != job.kernels or start + 4 * job.kernels > len(buffer):
            raise Bad("not as many kernels as channels, or no room for their biases")
        for kernels, channels in zip(cores, v8_channels(counts, job)):
            for kernel, channel in zip(kernels, channels):
                kernel.channel, kernel.bias = channel, u32(buffer, start + 4 * channel)
    return [kernel for kernels in cores for kernel in kernels]


def decode(buffer, job):
    """Kernels of a whole buffer; in channel order where the format names channels, else in stream order."""
    if len(buffer) < 64:
        raise Bad("no header")
    kernels = decode_v7(buffer, job) if job.chip == "a311d" else decode_huffman(buffer, job)
    return sorted(kernels, key=lambda kernel: kernel.channel or 0) if job.chip == "imx8mp" else kernels


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("buffer")
    parser.add_argument("--chip", choices=CORES, required=True)
    parser.add_argument("--kernel", default="1x1", help="columns x rows")
    parser.add_argument("--channels", type=int, default=1)
    parser.add_argument("--kernels-per-core", type=int, required=True)
    parser.add_argument("--zero-point", type=int, default=0)
    parser.add_argument("--kernels", type=int, default=0, help="output channels (imx8mp)")
    parser.add_argument("--depthwise", action="store_true", help="the chip's own (imx8mp)")
    options = parser.parse_args()
    width, height = map(int, options.kernel.split("x"))
    job = Job(options.chip, width, height, options.channels, options.kernels_per_core, options.zero_point,
              options.kernels, options.depthwise)
    with open(options.buffer, "rb") as file:
        buffer = file.read()
    try:
        if job.chip != "a311d":
            print(json.dumps(vars(read_header(buffer, job))))
        for kernel in decode(buffer, job):
            print(json.dumps(vars(kernel)))
    except Bad as error:
        raise SystemExit(f"{options.buffer}: {error}") from None


if __name__ == "__main__":
    main()
