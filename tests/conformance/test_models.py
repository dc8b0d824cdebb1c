# SPDX-License-Identifier: MIT
"""Whole networks, and the collected models of one operation."""

import numpy as np
import pytest

from conftest import MOBILENET_V1, SHARED, assert_close, assert_equal, kernel_count

# Networks whose operations on the NPU are all exact in the hardware model, which then gives their outputs exactly.
NETWORKS = [
    "mobilenet_v1_1.0_224_quant",
    "mobilenet_v1_0.25_128_quant",
    "mobilenet_v2_1.0_224_quant",
    "mobilenet_v2_1.0_224_inat_bird_quant",
    "mlperf_mobilenet_edgetpu_224_1.0_uint8",
    "posenet_mobilenet_v1_075_353_481_quant",
    "tiny_ad01_int8",
]

# Networks of which a part stays with the host.
MIXED = [
    "coco_ssd_mobilenet_v1_1.0_quant",
    "deeplabv3_257_float",
    "deeplabv3_mnv2_dm05_pascal_quant",
    "movenet_single_pose_lightning_ptq",
    "microwakeword_okay_nabu_int8",
    "split_concat",
    "ssdlite_mobiledet_coco_qat_postprocess",
    "tf2_mobilenet_v2_1.0_224_ptq",
    "tflm_dtln_noise_suppression",
    "tflm_micro_speech_int8",
    "tiny_kws_dscnn_int8",
    "tiny_resnet8_cifar_int8",
    "tiny_vww_96_int8",
    "yamnet_wavin_quantized_mel_relu6",
    "yolox",
]

# Models with an operation that Mica's CPU kernels lack; what the NPU takes of them only moves data.
MOVES = {"batchmatmul", "concat", "split"}
# Models of an operation for which the hardware model has TFLite's rounding, where Rockchip's differs.
ROUNDED = {"resize_bilinear_2x", "mobiledet-122"}
# On Vivante several jobs, each of which rounds, make these (docs/vivante.md): scales per channel, means, differences,
# products.
# test_vivante_oracle.py holds the simulator to them exactly, and to whole networks of such layers.
COMPOSED = ("conv", "dw", "fc", "mean", "mul", "resize_bilinear", "squared_difference", "sub", "transpose_conv")

# The reference kernels round otherwise than the NPU in each layer: the reference's class must win (README of the
# collection: index, label).
PICTURES = [("grace_hopper.bmp", 653), ("cat.bmp", 286), ("parrot.jpg", 89)]


def partitions(runner, model):
    """As many as libmica makes; where the average pool is left to the host there are two."""
    _, count = runner.on_npu(model)
    assert count == 1 or (count == 2 and not runner.rockchip)
    return count


def picture(path, size):
    from PIL import Image

    return np.asarray(Image.open(path).convert("RGB").resize(size), np.uint8)[None]


@pytest.mark.parametrize("name", NETWORKS)
def test_network_equals_the_hardware_model(runner, request, name):
    own = MOBILENET_V1.stem == name
    model = (MOBILENET_V1 if own else request.getfixturevalue("shared") / "models" / f"{name}.tflite").read_bytes()
    runner.check(model, seed=1, kernels=partitions(runner, model), tolerance=None)


def test_mobilenet_sees_a_cat(runner):
    """With what the repository has."""
    model, image = MOBILENET_V1.read_bytes(), picture(MOBILENET_V1.parent / "chelsea.png", (224, 224))
    got = runner.delegated(model, [image], kernels=partitions(runner, model))[0]
    assert got.argmax() == 286
    assert_equal(got, runner.hardware_model(model, [image], [got])[0])


@pytest.mark.parametrize("file,index", PICTURES)
def test_mobilenet_sees_what_is_there(runner, shared, file, index):
    model = MOBILENET_V1.read_bytes()
    image = picture(shared / "models" / "data" / file, (224, 224))
    got = runner.delegated(model, [image], kernels=partitions(runner, model))[0]
    assert got.argmax() == index
    assert_equal(got, runner.hardware_model(model, [image], [got])[0])


@pytest.mark.parametrize("name", MIXED)
def test_mixed_network_runs(runner, shared, name):
    """Twice the same, and an interpreter with the delegate gives outputs of the same shapes as one without."""
    model = (shared / "models" / f"{name}.tflite").read_bytes()
    inputs = runner.inputs(model, seed=2)
    first = runner.run(runner.delegated_interpreter(model), inputs)
    second = runner.run(runner.delegated_interpreter(model), inputs)
    plain = runner.run(runner.interpreter_class(model_content=model), inputs)
    for a, b, p in zip(first, second, plain):
        np.testing.assert_array_equal(a, b)
        assert a.shape == p.shape and a.dtype == p.dtype


def single_operations():
    if not SHARED.is_dir():
        return []
    return sorted(p.relative_to(SHARED / "models") for d in ("ops_uint8", "ops_int8")
                  for p in (SHARED / "models" / d).glob("*.tflite"))


@pytest.mark.parametrize("path", single_operations(), ids=str)
def test_single_operation(runner, shared, path):
    """What is delegated equals the hardware model and is within 1 of the reference; the rest is as without us."""
    model = (shared / "models" / path).read_bytes()
    inputs = runner.inputs(model, seed=3)
    interpreter = runner.delegated_interpreter(
        model, experimental_op_resolver_type=runner.resolvers.BUILTIN_REF)
    got = runner.run(interpreter, inputs)
    reference = runner.reference(model, inputs)
    if not kernel_count(interpreter):
        for g, r in zip(got, reference):
            np.testing.assert_array_equal(g, r)
        return
    rounded = path.stem in ROUNDED if runner.rockchip else (
        path.parent.name == "ops_int8" and path.stem.startswith(COMPOSED))
    exact = reference if path.stem in MOVES else got if rounded else runner.hardware_model(model, inputs, got)
    for g, w, r in zip(got, exact, reference):
        assert_equal(g, w)
        assert_close(g, r, 1)


def on_picture(runner, shared, name, file, delegated):
    model = (shared / "models" / f"{name}.tflite").read_bytes()
    options = {"experimental_op_resolver_type": runner.resolvers.BUILTIN_REF}
    interpreter = (runner.delegated_interpreter(model, **options) if delegated
                   else runner.interpreter_class(model_content=model, **options))
    _, height, width, _ = interpreter.get_input_details()[0]["shape"]
    return runner.run(interpreter, [picture(shared / "models" / "data" / file, (width, height))])


@pytest.mark.parametrize("name,file", [
    ("ssdlite_mobiledet_coco_qat_postprocess", "cats_and_dogs.jpg"),
    ("coco_ssd_mobilenet_v1_1.0_quant", "grace_hopper.bmp"),
])
def test_detections_are_those_of_the_reference(runner, shared, name, file):
    """Each that the reference is fairly sure of, in any order: many scores are one quantization step apart."""
    want, got = (on_picture(runner, shared, name, file, delegated) for delegated in (False, True))
    sure = want[2][0] >= 0.4
    assert sure.sum() >= 4
    for box, kind, score in zip(want[0][0][sure], want[1][0][sure], want[2][0][sure]):
        same = (got[1][0] == kind) & (np.abs(got[0][0] - box).max(axis=1) < 0.02) & (np.abs(got[2][0] - score) < 0.02)
        assert same.sum() == 1, (box, kind, score)


def test_segmentation_is_that_of_the_reference(runner, shared):
    want, got = (on_picture(runner, shared, "deeplabv3_mnv2_dm05_pascal_quant", "bird_segmentation.bmp", delegated)[0]
                 for delegated in (False, True))
    # A patch of one pixel in eighty, which the reference takes for a dog, is a bird in one arithmetic and not in another.
    large = [kind for kind in np.unique(want) if np.mean(want == kind) > 0.02]
    assert len(large) == 2 and set(large) == {kind for kind in np.unique(got) if np.mean(got == kind) > 0.02}
    assert np.mean(got == want) > 0.98
