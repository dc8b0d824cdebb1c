# SPDX-License-Identifier: MIT
"""Judges the simulator of Vivante by vivante_model.py, byte for byte, job by job.

A capture is written again with a submission for each job and, as what the device left in each buffer (file_after), what
the model computes; `mica replay` then compares the simulator's memory with it, intermediate tensors included.
"""

import json
import subprocess
from dataclasses import dataclass, field

from vivante_model import Submission, run_job, starts, submissions

MOST_BYTES = 16 << 20  # of buffers written down a submission; where that is too little, several jobs share a piece


@dataclass
class Verdict:
    jobs: list = field(default_factory=list)  # (unit, number of the piece)
    compared: int = 0  # bytes
    differences: list = field(default_factory=list)  # sentences

    def units(self):
        return {unit for unit, _ in self.jobs}


class Writer:
    """Submissions of the new capture."""

    def __init__(self, folder):
        self.folder, self.contents, self.count, self.compared = folder, {}, 0, 0
        folder.mkdir()

    def keep(self, bo, pages, suffix):
        """The file that has these contents: the buffer's last one, or a new one."""
        contents = pages[:bo["size"]].tobytes()
        path, last = self.contents.get(bo["handle"], (None, None))
        if last != contents:
            path = f"../{self.directory.name}/bo_{bo['handle']}{suffix}.bin"
            (self.directory / path).write_bytes(contents)
            self.contents[bo["handle"]] = path, contents
        return path

    def begin(self, submission):
        """Buffers before the piece."""
        self.directory = self.folder / f"submit_{self.count:04d}"
        self.directory.mkdir()
        self.entries = [
            {**{key: bo[key] for key in ("access", "handle", "size", "va")}, "file": self.keep(bo, pages, "")}
            for bo, pages in submission.buffers]

    def end(self, submission, words):
        """The piece of the stream, and the buffers behind it."""
        (self.directory / "stream.bin").write_bytes(b"".join(word.to_bytes(4, "little") for word in words))
        for entry, (bo, pages) in zip(self.entries, submission.buffers):
            if "w" in bo["access"]:
                entry["file_after"] = self.keep(bo, pages, "_after")
                self.compared += 1
        about = {"driver": "etnaviv", "chip": submission.chip, "index": self.count, "after": "waited",
                 "bos": self.entries, "stream": {"file": "stream.bin", "words": len(words)}}
        (self.directory / "submit.json").write_text(json.dumps(about))
        self.count += 1


def write(writer, submission, jobs):
    """Runs a submission's jobs in the model and writes them down; `jobs` gets them."""
    mine, at = list(starts(submission.stream)), 0
    size = sum(pages.size for bo, pages in submission.buffers if "w" in bo["access"])
    together = max(1, -(-len(mine) * size // MOST_BYTES))
    for first in range(0, len(mine), together):
        piece = mine[first:first + together]
        writer.begin(submission)
        for unit, address, end in piece:
            run_job(submission.memory, submission.chip, unit, address)
            jobs.append((unit, writer.count))
        writer.end(submission, submission.stream[at:end])
        at = end


def replay(mica, folder, options):
    done = subprocess.run([mica, "replay", folder, "--json", *options], capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def judge(mica, capture, folder, *options):
    """The verdict about a capture; `folder` is made, `options` are replay's."""
    verdict, writer = Verdict(), Writer(folder)
    for path in submissions(capture):
        write(writer, Submission(path), verdict.jobs)
    if not verdict.jobs:
        return verdict
    buffers = [c for c in replay(mica, folder, options)["comparisons"] if c["what"] == "buffer"]
    assert len(buffers) == writer.compared, "the simulator was not compared with all that the model says"
    verdict.compared = sum(c["bytes"] for c in buffers)
    verdict.differences = [sentence(c, verdict.jobs) for c in buffers if c["different"]]
    return verdict


def sentence(difference, jobs):
    piece = [f"{unit} job {number}" for number, (unit, piece) in enumerate(jobs) if piece == difference["submit"]]
    return (f"{piece[0]}" + (f" to {piece[-1]}" if piece[1:] else "") + f": {difference['different']} bytes of buffer "
            f"{difference['handle']} differ, by {difference['largest']} at most")


def compile_capture(mica, model, device, folder, inputs, *options):
    """Captures what a run of the model (a path) on these inputs (arrays) submits."""
    command = [mica, "compile", model, "--device", device, "--capture", folder, *options]
    for i, value in enumerate(inputs):
        path = folder.with_name(f"{folder.name}-in{i}")
        value.tofile(path)
        command += ["--input", path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
