# SPDX-License-Identifier: MIT
"""The CPU kernels against TensorFlow Lite's reference kernels on the networks and operations of the model collection.

Every operation of every model is judged twice: alone, with the inputs that TensorFlow Lite computed, and in the chain
from the model's input on. MICA_BUILD names the build directory (default: build), MICA_SHARED the place of the
collection (default: beside the repository); without a collection all is skipped.
"""

import os
import pathlib
import sys

import numpy as np
import pytest
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/pytools"))
import model_builder as mb  # noqa: E402
from cpu_judge import TOOL, interpreter_of, judge  # noqa: E402

SHARED = pathlib.Path(os.environ.get("MICA_SHARED", ROOT.parent / "shared")).resolve()
MODELS = SHARED / "models"
PICTURES = MODELS / "data"

pytestmark = [
    pytest.mark.skipif(not TOOL.exists(), reason=f"{TOOL} is not built"),
    pytest.mark.skipif(not MODELS.is_dir(), reason=f"{MODELS} is not there"),
]


def random_values(model, seed):
    return [mb.random_input(detail, seed + i) for i, detail in enumerate(interpreter_of(model).get_input_details())]


def picture_values(model, name):
    detail = interpreter_of(model).get_input_details()[0]
    _, height, width, _ = detail["shape"]
    pixels = np.asarray(Image.open(PICTURES / name).convert("RGB").resize((width, height)))[None]
    return [pixels if detail["dtype"] == np.uint8 else (pixels.astype(np.int16) - 128).astype(np.int8)]


NETWORKS = [
    "mobilenet_v1_1.0_224_quant", "mobilenet_v1_0.25_128_quant", "mobilenet_v2_1.0_224_quant",
    "ssdlite_mobiledet_coco_qat_postprocess", "coco_ssd_mobilenet_v1_1.0_quant", "tiny_resnet8_cifar_int8",
    "tiny_vww_96_int8", "tiny_kws_dscnn_int8", "tiny_ad01_int8", "tf2_mobilenet_v2_1.0_224_ptq",
    # Others whose operations the kernels have in part; what depends on the rest is judged alone.
    "deeplabv3_257_float", "deeplabv3_mnv2_dm05_pascal_quant", "mlperf_mobilenet_edgetpu_224_1.0_uint8",
    "movenet_single_pose_lightning_ptq", "posenet_mobilenet_v1_075_353_481_quant", "seeded_efficientnet_lite0_224_int8",
    "seeded_fastdepth_224_int8", "seeded_inception_v1_224_int8", "seeded_mobilenet_v3_large_100_224_int8",
    "seeded_unet_128_int8", "tflm_micro_speech_int8", "yolox",
]
PICTURED = {
    "mobilenet_v1_1.0_224_quant": "grace_hopper.bmp", "mobilenet_v2_1.0_224_quant": "parrot.jpg",
    "ssdlite_mobiledet_coco_qat_postprocess": "cats_and_dogs.jpg",
    "coco_ssd_mobilenet_v1_1.0_quant": "grace_hopper.bmp", "tiny_vww_96_int8": "cat.bmp",
}
@pytest.mark.parametrize("name", NETWORKS)
def test_network_on_noise(name, tmp_path):
    model = MODELS / f"{name}.tflite"
    assert judge(model, random_values(model, 1), tmp_path) > 0


@pytest.mark.parametrize("name, picture", PICTURED.items())
def test_network_on_a_picture(name, picture, tmp_path):
    model = MODELS / f"{name}.tflite"
    assert judge(model, picture_values(model, picture), tmp_path) > 0


def single_operations():
    found = sorted(MODELS.glob("ops_uint8/*.tflite")) + sorted(MODELS.glob("ops_int8/*.tflite"))
    return found + sorted((SHARED / "captures").glob("*/model.tflite"))


# A tensor that the file leaves without data, which TensorFlow Lite refuses.
UNSUPPORTED = {"ops_uint8/add.tflite"}


@pytest.mark.parametrize("group", range(12))
def test_single_operations(group, tmp_path):
    """A dozen groups: a process for each model would cost more than the models."""
    models = single_operations()[group::12]
    assert models
    for i, model in enumerate(models):
        directory = tmp_path / str(i)
        directory.mkdir()
        try:
            if "/".join(model.parts[-2:]) not in UNSUPPORTED:
                judge(model, random_values(model, 7), directory)
        except AssertionError as error:
            raise AssertionError(f"{model}: {error}") from error
