# SPDX-License-Identifier: MIT
"""Every example of docs/cli.md prints what the document says.

Only what a clock measured isn't compared; sizes and the timing model's figures are. A line "..." in the document
stands for any lines. With MICA_UPDATE_DOCS=1 what differs is written into the document instead.
"""

import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")).resolve()
TOOLS = BUILD / "tools/mica"
DOCUMENT = ROOT / "docs/cli.md"
UPDATE = os.environ.get("MICA_UPDATE_DOCS") == "1"

pytestmark = pytest.mark.skipif(not (TOOLS / "mica").exists(), reason=f"{TOOLS}/mica is not built")


def blocks():
    """[[(command, expected lines), ...] a code block] of the blocks that have commands."""
    text = DOCUMENT.read_text()
    for block in re.findall(r"^```\n(\$ .*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield [(lines[0], lines[1:]) for lines in
               (part.rstrip("\n").split("\n") for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part)]


def normal(command, line):
    """The line without measured times, and without the spaces that depend on their width."""
    line = re.sub(r"^(time: |compiled for .* in )[\d.]+ ms", r"\1# ms", line)
    line = re.sub(r"^(time: # ms, )[\d.]+( inferences a second)", r"\1#\2", line)
    line = re.sub(r'("min"|"median"): [\d.]+', r"\1: #", line)
    if command.startswith("mica profile") and re.match(r" *(\d+ +CPU|total) ", line):
        line = re.sub(r"\d+\.\d(?= +\d+ +\d+ +\d+$)", "#", line)  # us: the sum has the CPU's in it
    return " ".join(line.split())


def same(expected, printed):
    """Do the printed lines fit the expected ones?"""
    if "..." not in expected:
        return expected == printed
    at = expected.index("...")
    head, tail = expected[:at], expected[at + 1:]
    return len(printed) >= len(head) + len(tail) and printed[:at] == head and printed[len(printed) - len(tail):] == tail


def merged(command, expected, printed):
    """What is printed, as short as the document has it, with the document's measured times."""
    if "..." in expected:
        at = expected.index("...")
        printed = [*printed[:at], "...", *printed[len(printed) - (len(expected) - at - 1):]]
    if len(printed) != len(expected):
        return printed
    return [old if normal(command, old) == normal(command, new) else new for old, new in zip(expected, printed)]


def update(command, expected, printed):
    old = "\n".join([f"$ {command}", *expected, ""])
    text = DOCUMENT.read_text()
    assert text.count(old) == 1
    DOCUMENT.write_text(text.replace(old, "\n".join([f"$ {command}", *merged(command, expected, printed), ""])))


@pytest.mark.parametrize("block", list(blocks()), ids=lambda block: block[0][0][:40])
def test_example(block, tmp_path):
    (tmp_path / "share").symlink_to(ROOT / "share")
    env = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    env.pop("MICA_DEVICE", None)
    for command, expected in block:
        done = subprocess.run(command, shell=True, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        output = done.stdout.rstrip("\n").split("\n")
        wanted, printed = ([normal(command, line) for line in lines] for lines in (expected, output))
        if UPDATE and not same(wanted, printed):
            update(command, expected, output)
            continue
        assert same(wanted, printed), f"{command}\n--- document\n" + "\n".join(wanted) + "\n--- printed\n" + \
            "\n".join(printed)


def test_there_are_examples_of_every_command():
    commands = {command.split()[1] for block in blocks() for command, _ in block}
    assert commands == {"run", "info", "profile", "compare", "compile", "devices"}
