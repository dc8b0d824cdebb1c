# SPDX-License-Identifier: MIT
"""Every network of the collection on Rockchip: exactly the hardware model's outputs, and the right answer.

With MICA_FULL=1 each operation of every network alone, on the exact values that the reference kernels give it.
"""

import wave

import numpy as np
import pytest

from conftest import FULL, SHARED, assert_equal, kernel_count
from test_layers import one_layer, unpack
from test_models import picture

# Beyond those of test_models.py, with the number of partitions: the detectors' reshapes of anchors stay with the host.
NETWORKS = {
    "coco_ssd_mobilenet_v1_1.0_quant": 1,
    "seeded_efficientnet_lite0_224_int8": 1,
    "seeded_fastdepth_224_int8": 1,
    "seeded_inception_v1_224_int8": 1,
    "seeded_mobilenet_v3_large_100_224_int8": 1,
    "seeded_unet_128_int8": 1,
    "split_concat": 1,
    "ssdlite_mobiledet_coco_qat_postprocess": 1,
    "tflm_micro_speech_int8": 1,
    "tiny_kws_dscnn_int8": 1,
    "tiny_resnet8_cifar_int8": 1,
    "yolox": 1,
} | ({"mlperf_edsr_f32b5_full_qint8": 1} if FULL else {})  # 55 billion multiply-accumulates
PEOPLE_AND_ANIMALS = ["grace_hopper.bmp", "cat.bmp", "parrot.jpg"]
CLASSIFIERS = {
    "mobilenet_v1_0.25_128_quant": PEOPLE_AND_ANIMALS,
    "mobilenet_v2_1.0_224_quant": PEOPLE_AND_ANIMALS,
    "mlperf_mobilenet_edgetpu_224_1.0_uint8": PEOPLE_AND_ANIMALS,
    "tf2_mobilenet_v2_1.0_224_ptq": PEOPLE_AND_ANIMALS,
    "mobilenet_v2_1.0_224_inat_bird_quant": ["bird.bmp", "parrot.jpg"],
    "tiny_resnet8_cifar_int8": ["cat.bmp", "bird.bmp"],
    "tiny_vww_96_int8": ["grace_hopper.bmp", "cat.bmp"],
}
# Whose operations are tried alone in every run: per channel, and with all kinds of operations.
BY_OPERATION = ["tiny_resnet8_cifar_int8", "tiny_vww_96_int8", "movenet_single_pose_lightning_ptq"]
# TFLite can't run these alone, or not without what came before.
NOT_ALONE = {"CALL_ONCE", "VAR_HANDLE", "READ_VARIABLE", "ASSIGN_VARIABLE", "CUSTOM", "UNIDIRECTIONAL_SEQUENCE_LSTM"}
# Networks with such operations first, or whose files have no shapes of inner tensors.
SHAPELESS = {"mlperf_mobilenet_edgetpu_224_1.0_uint8", "microwakeword_okay_nabu_int8", "tflm_dtln_noise_suppression"}


def load(shared, name):
    return (shared / "models" / f"{name}.tflite").read_bytes()


@pytest.mark.parametrize("name", NETWORKS)
def test_network_equals_the_hardware_model(runner, shared, name):
    model = load(shared, name)
    inputs = runner.inputs(model, 1)
    got = runner.delegated(model, inputs, NETWORKS[name])
    for g, w in zip(got, runner.hardware_model(model, inputs, got)):
        assert_equal(g, w)


# ---- right answers -----------------------------------------------------------------


def as_input(details, pixels):
    """A picture's bytes in the model's type, as `mica run` makes them."""
    dtype = np.dtype(details["dtype"])
    if dtype == np.int8:
        return (pixels.astype(np.int16) - 128).astype(np.int8)
    return pixels if dtype == np.uint8 else ((pixels - 127.5) / 127.5 if dtype.kind == "f" else pixels).astype(dtype)


def answers(runner, shared, name, file):
    """The delegate's outputs and the reference's for a picture; what is not delegated runs on the reference kernels."""
    model = load(shared, name)
    details = runner.interpreter_class(model_content=model).get_input_details()[0]
    _, height, width, _ = details["shape"]
    inputs = [as_input(details, picture(shared / "models" / "data" / file, (width, height)))]
    interpreter = runner.delegated_interpreter(model, experimental_op_resolver_type=runner.resolvers.BUILTIN_REF)
    got = runner.run(interpreter, inputs)
    assert kernel_count(interpreter) >= 1
    return got, runner.reference(model, inputs)


@pytest.mark.parametrize("name, file", [(name, file) for name, files in CLASSIFIERS.items() for file in files])
def test_class(runner, shared, name, file):
    got, want = answers(runner, shared, name, file)
    assert got[0].argmax() == want[0].argmax()


def test_speech_is_heard(runner, shared):
    model = load(shared, "yamnet_wavin_quantized_mel_relu6")
    with wave.open(str(shared / "models" / "data" / "speech.wav")) as file:
        samples = np.frombuffer(file.readframes(file.getnframes()), np.int16) / 32768
    shape = runner.interpreter_class(model_content=model).get_input_details()[0]["shape"]
    inputs = [np.resize(samples, shape).astype(np.float32)]
    assert runner.run(runner.delegated_interpreter(model), inputs)[0].argmax() == 0  # "Speech"


@pytest.mark.parametrize("name, file", [("mlperf_deeplabv3_mnv2_ade20k_int8", "grace_hopper.bmp"),
                                        ("deeplabv3_mnv2_dm05_pascal_quant", "bird_segmentation.bmp")])
def test_segments(runner, shared, name, file):
    got, want = answers(runner, shared, name, file)
    assert np.mean(got[0] == want[0]) > 0.95


def test_joints_of_posenet(runner, shared):
    """Those that the reference is sure of, on its map or one place beside it."""
    got, want = (maps[0][0] for maps in answers(runner, shared, "posenet_mobilenet_v1_075_353_481_quant",
                                                "grace_hopper.bmp"))
    sure = [k for k in range(want.shape[2]) if want[:, :, k].max() > 190]
    assert len(sure) == 4
    for k in sure:
        places = [np.array(np.unravel_index(m[:, :, k].argmax(), m.shape[:2])) for m in (got, want)]
        assert np.abs(places[0] - places[1]).max() <= 1


def test_joints_of_movenet(runner, shared):
    got, want = (joints[0][0, 0] for joints in answers(runner, shared, "movenet_single_pose_lightning_ptq",
                                                       "grace_hopper.bmp"))
    sure = want[:, 2] > 0.6
    assert sure.sum() == 3 and np.abs(got[sure, :2] - want[sure, :2]).max() < 0.03


def test_objects_of_yolox(runner, shared):
    for g, w in zip(*answers(runner, shared, "yolox", "cats_and_dogs.jpg")):
        assert g.argmax() == w.argmax() and np.abs(g.astype(int) - w).mean() < 0.5


# ---- operation by operation ----------------------------------------------------------


def networks_by_operation():
    if not FULL or not SHARED.is_dir():
        return BY_OPERATION
    return sorted({path.stem for path in (SHARED / "models").glob("*.tflite")} - SHAPELESS)


@pytest.mark.parametrize("name", networks_by_operation())
def test_each_operation_with_exact_inputs_is_within_1_of_the_reference(runner, shared, name):
    data = load(shared, name)
    model, builtin = unpack(data)
    names = {value: key for key, value in vars(builtin).items() if isinstance(value, int)}
    reference = runner.interpreter_class(model_content=data, experimental_preserve_all_tensors=True,
                                         experimental_op_resolver_type=runner.resolvers.BUILTIN_REF)
    runner.run(reference, runner.inputs(data, 8))
    for index, operator in enumerate(model.subgraphs[0].operators):
        code = model.operatorCodes[operator.opcodeIndex]
        kind = names[max(code.builtinCode, code.deprecatedBuiltinCode)]
        if kind in NOT_ALONE:
            continue
        layer, tensors = one_layer(model, operator)
        interpreter = runner.delegated_interpreter(layer)
        if not kernel_count(interpreter):
            continue
        got = runner.run(interpreter, [reference.get_tensor(t) for t in tensors])
        for g, t in zip(got, operator.outputs):
            distance = np.abs(g.astype(np.int64) - reference.get_tensor(int(t)).astype(np.int64)).max(initial=0)
            assert distance <= 1, f"operation {index}, {kind}: {distance} away from the reference"
