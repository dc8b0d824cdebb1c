# SPDX-License-Identifier: MIT
"""The examples of docs/delegate.md work, and print what the document says."""

import os
import re
import subprocess
import sys

import model_builder
import numpy as np
import pytest
from PIL import Image

from conftest import BUILD, ROOT

TEXT = (ROOT / "docs" / "delegate.md").read_text()


@pytest.fixture
def place(tmp_path, delegate_path):
    """A folder where the document's names exist."""
    (tmp_path / "build").symlink_to(BUILD.resolve())
    m = model_builder.Model("uint8", seed=20)
    x = m.conv2d(m.input((1, 8, 8, 3)), 10, (8, 8), padding="VALID")
    (tmp_path / "model.tflite").write_bytes(m.finish([m.softmax(m.reshape(x, (1, 10)))]))
    Image.fromarray(np.arange(8 * 8 * 3, dtype=np.uint8).reshape(8, 8, 3)).save(tmp_path / "picture.bmp")
    return tmp_path


def run(place, command):
    env = {k: v for k, v in os.environ.items() if not k.startswith("MICA_")}
    env["PATH"] = f"{os.path.dirname(sys.executable)}:{env['PATH']}"
    result = subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_python(place):
    first, second = blocks("python")
    assert run(place, [sys.executable, "-c", first]).stdout.strip() == "(1, 10)"
    assert "the options are device" in run(place, [sys.executable, "-c", second]).stdout


def test_label_image(place):
    assert "applied the delegate" in run(place, ["bash", "-c", blocks("sh")[0]]).stdout


def test_info(place):
    shown = [line for line in TEXT.splitlines() if line.startswith("mica: info:")]
    printed = run(place, ["bash", "-c", blocks("sh")[1]]).stderr.splitlines()
    assert shown and not set(shown) - set(printed), printed


def test_profile(place):
    err = run(place, ["bash", "-c", blocks("sh")[2]]).stderr
    assert re.search(r"^mica: +1 NN ", err, re.MULTILINE)


def test_the_table_has_every_option_and_its_values():
    source = (ROOT / "src" / "delegate" / "options.c").read_text()
    known = re.findall(r'\{"(\w+)", "(MICA_\w+)", parse_\w+\}', source)
    assert known
    for key, variable in known:
        assert re.search(rf"^\| `{key}` \| `{variable}` \|", TEXT, re.MULTILINE), key
