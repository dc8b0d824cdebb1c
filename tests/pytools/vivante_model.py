# SPDX-License-Identifier: MIT
"""A slow model of what a Vivante submission computes, to judge the simulator by. It shares nothing with it.

run_job(): a job from its descriptor, the coefficient buffer and the memory alone (specification, sections 2 to 6;
coefficient buffers by docs/coefficients/decode.py). What the specification leaves open is not guessed at: Unsupported.
"""

import json

import numpy as np
from vivante_memory import Bad, Memory, require
from vivante_nn import NeuralJob
from vivante_tp import TensorJob

PAGE = 4096
START_NN, START_TP = 0x10A0, 0x10B8  # states that start a job

# ---- the command stream (section 2) -------------------------------------------------


def commands(words):
    """(state, value, index of the word behind the command) of every state that is loaded."""
    at = 0
    while at < len(words):
        opcode, count = words[at] >> 27, words[at] >> 16 & 0x3FF
        if opcode == 1:
            require(count and not words[at] >> 26 & 1, "a conversion, or 1024 states at once")
            end = at + (count + 2) // 2 * 2
            if at + count >= len(words):
                raise Bad("the stream ends in the middle of a command")
            for i in range(count):
                yield ((words[at] & 0xFFFF) + i) << 2, words[at + 1 + i], end
        elif opcode in (0, 3, 9):  # filler, NOP, STALL
            require(opcode or words[at:at + 2] == [0, 0], f"a command {words[at]:#x}")
            end = at + 2
        else:
            raise Bad(f"command {opcode} is the kernel's")
        at = end


def starts(words):
    """(unit, the descriptor's address, index of the word behind) of every job."""
    for state, value, end in commands(words):
        if state in (START_NN, START_TP):
            yield "NN" if state == START_NN else "TP", value & ~63, end


# ---- submissions -----------------------------------------------------------------------------


def run_job(memory, chip, unit, address):
    """One job in the memory, from its descriptor."""
    job = (NeuralJob(memory, chip, memory.words(address, 32)) if unit == "NN"
           else TensorJob(memory, chip, memory.words(address, 31)))
    job.run()


class Submission:
    """A submit_NNNN of a capture of etnaviv."""

    def __init__(self, folder):
        self.folder, self.about = folder, json.loads((folder / "submit.json").read_text())
        self.chip = self.about["chip"]
        name = self.about["stream"]["file"]
        self.stream = [int(word) for word in np.fromfile(folder / name, "<u4")]
        self.memory, self.buffers = Memory(), []  # buffers: (entry of submit.json, bytes)
        for bo in self.about["bos"]:
            pages = np.zeros(-(-bo["size"] // PAGE) * PAGE, np.uint8)
            if "file" in bo:
                contents = np.fromfile(folder / bo["file"], np.uint8)
                pages[:contents.size] = contents
            self.memory.add(int(bo["va"], 16), pages, bo["access"])
            self.buffers.append((bo, pages))

    def contents(self):
        """A copy of every buffer."""
        return [pages.copy() for _, pages in self.buffers]

    def restore(self, contents):
        for (_, pages), old in zip(self.buffers, contents):
            pages[:] = old


def submissions(capture):
    return [folder for folder in sorted(capture.glob("submit_*")) if folder.is_dir()]
