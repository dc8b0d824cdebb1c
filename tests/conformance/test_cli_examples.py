# SPDX-License-Identifier: MIT
"""Every example of docs/cli.md prints what the document says.

Times and file sizes aren't compared, nor any figure of `mica profile`, which are a timing model's. A line "..." in
the document stands for any lines.
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")).resolve()
TOOLS = BUILD / "tools/mica"

pytestmark = pytest.mark.skipif(not (TOOLS / "mica").exists(), reason=f"{TOOLS}/mica is not built")


def blocks():
    """[[(command, expected lines), ...] a code block] of the blocks that have commands."""
    text = (ROOT / "docs/cli.md").read_text()
    for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield [(lines[0], lines[1:]) for lines in
               (part.rstrip("\n").split("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part)]


def normal(command, line):
    line = re.sub(r"\d+\.\d+ (ms|KiB)", r"# \1", line)
    line = re.sub(r'("min"|"median"): [\d.]+', r"\1: #", line)
    if command.startswith("mica profile"):
        line = re.sub(r"\d[\d.]*", "#", line)
    return " ".join(line.split())


def same(expected, printed):
    """Do the printed lines fit the expected ones?"""
    if "..." not in expected:
        return expected == printed
    at = expected.index("...")
    head, tail = expected[:at], expected[at + 1:]
    return len(printed) >= len(head) + len(tail) and printed[:at] == head and printed[len(printed) - len(tail):] == tail


@pytest.mark.parametrize("block", list(blocks()), ids=lambda block: block[0][0][:40])
def test_example(block, tmp_path):
    (tmp_path / "share").symlink_to(ROOT / "share")
    env = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    env.pop("MICA_DEVICE", None)
    for command, expected in block:
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        wanted = [normal(command, line) for line in expected]
        printed = [normal(command, line) for line in done.stdout.rstrip("\n").split("\n")]
        assert same(wanted, printed), f"{command}\n--- document\n" + "\n".join(wanted) + "\n--- printed\n" + \
            "\n".join(printed)


def test_there_are_examples_of_every_command():
    commands = {command.split()[1] for block in blocks() for command, _ in block}
    assert commands == {"run", "info", "profile", "compile", "devices"}
