# SPDX-License-Identifier: MIT
"""A C program loads the delegate as TensorFlow's label_image does: no error callback, options as text."""

import subprocess

import numpy as np
import pytest
from PIL import Image

from conftest import BUILD, MOBILENET_V1


def label_image(*arguments):
    program = BUILD / "tests" / "clients" / "label_image"
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False)


@pytest.fixture
def picture(tmp_path):
    """The picture in the model's size, so that nothing is scaled twice."""
    image = Image.open(MOBILENET_V1.parent / "chelsea.png").convert("RGB").resize((224, 224))
    image.save(tmp_path / "picture.bmp")
    return tmp_path / "picture.bmp"


@pytest.fixture
def model():
    return MOBILENET_V1


def test_scores_are_those_of_python(runner, model, picture):
    labels = model.with_suffix(".labels.txt")
    result = label_image("-m", model, "-i", picture, "-l", labels, "-e", runner.path,
                         "-o", f"device: {runner.device}; threads: 2")
    assert result.returncode == 0, result.stderr
    applied, best = result.stdout.splitlines()[:2]
    nodes, kernels = runner.on_npu(model.read_bytes())
    assert nodes >= 29
    assert applied == f"applied the delegate: {nodes} of 31 nodes in {kernels} kernels"
    pixels = np.asarray(Image.open(picture), np.uint8)[None]
    scores = runner.delegated(model.read_bytes(), [pixels], kernels=kernels)[0][0]
    assert best == f"{scores.max()}: {scores.argmax()} Egyptian cat"


def test_without_the_delegate_it_is_the_reference(runner, model, picture):
    result = label_image("-m", model, "-i", picture)
    pixels = np.asarray(Image.open(picture), np.uint8)[None]
    scores = runner.reference(model.read_bytes(), [pixels])[0][0]
    assert result.stdout.splitlines()[0].strip() == f"{scores.max()}: {scores.argmax()}"


@pytest.mark.parametrize("options", ["device: sim:toaster", "divice: auto", "threads: many"])
def test_a_bad_option_ends_in_a_message_and_not_in_a_crash(delegate_path, model, picture, options):
    result = label_image("-m", model, "-i", picture, "-e", delegate_path, "-o", options)
    assert result.returncode == 1
    assert "the delegate could not be applied: Mica: " in result.stderr
