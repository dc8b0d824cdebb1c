# SPDX-License-Identifier: MIT
"""`mica run --task`: what it decodes and draws, against TFLite's reference kernels and the same decoding in Python.

Pictures are made as large as the model's input first, so that both sides start from the same samples. MICA_BUILD names
the build directory (default: build). With MICA_FULL=1 all chips, and the slow models too.
"""

import json
import os
import pathlib
import subprocess
import sys
import wave

import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter, OpResolverType
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/pytools"))
import model_builder as mb  # noqa: E402
from cpu_judge import interpreter_of  # noqa: E402

MICA = (pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")) / "tools/mica/mica").resolve()
MODELS = ROOT.parent / "shared/models"
DATA = MODELS / "data"
MOBILENET = ROOT / "share/mica/mobilenet_v1_1.0_224_quant.tflite"
CHELSEA = ROOT / "share/mica/chelsea.png"
FULL = os.environ.get("MICA_FULL") == "1"
DEVICES = ["cpu", "sim:a311d", "sim:rk3588"] + (["sim:imx8mp", "sim:s905d3", "sim:rk3566"] if FULL else [])

pytestmark = pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built")
needs_models = pytest.mark.skipif(not DATA.is_dir(), reason=f"{DATA} is not there")
slow = pytest.mark.skipif(not FULL, reason="MICA_FULL is not 1")


def mica(*arguments, code=0):
    done = subprocess.run([str(MICA), "run", *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stderr
    return done


def task(*arguments):
    return json.loads(mica(*arguments, "--json").stdout)["task"]


class Reference:
    """A model in TFLite's reference kernels, on a picture of its own size."""

    def __init__(self, model, picture=None, tmp_path=None, value=None, interpreter=None):
        self.model = model
        interpreter = interpreter or interpreter_of(model)
        detail = interpreter.get_input_details()[0]
        if picture is not None:
            image = Image.open(picture).convert("RGB").resize((detail["shape"][2], detail["shape"][1]))
            self.picture = tmp_path / "picture.png"
            image.save(self.picture)
            self.pixels = np.asarray(image)
            value = self.convert(self.pixels, detail["dtype"])[None]
        interpreter.set_tensor(detail["index"], value)
        interpreter.invoke()
        self.outputs, self.codes = [], []
        for output in interpreter.get_output_details():
            codes = interpreter.get_tensor(output["index"])
            scale, zero_point = output["quantization"]
            self.codes.append(codes)
            self.outputs.append(scale * (codes.astype(np.float64) - zero_point) if scale else codes)

    @staticmethod
    def convert(pixels, dtype):
        if dtype == np.uint8:
            return pixels
        if dtype == np.int8:
            return (pixels.astype(np.int16) - 128).astype(np.int8)
        return ((pixels.astype(np.float32) - np.float32(127.5)) / np.float32(127.5)).astype(np.float32)


def psnr(a, b):
    noise = np.mean((a.astype(np.float64) - b.astype(np.float64)) ** 2)
    return np.inf if noise == 0 else 10 * np.log10(255 ** 2 / noise)


# ---- classes ----


def test_classes_are_tflites(tmp_path):
    reference = Reference(MOBILENET, CHELSEA, tmp_path)
    scores = reference.codes[0][0].astype(int)
    best = sorted(range(scores.size), key=lambda i: (-scores[i], i))[:5]
    for device in DEVICES:
        report = json.loads(mica(MOBILENET, reference.picture, "--device", device, "--json").stdout)
        assert report["task"] == {"name": "classify"}
        top = [row["class"] for row in report["outputs"][0]["top"]]
        assert top == best if device == "cpu" else set(top[:3]) == set(best[:3])


# ---- boxes ----


def overlap(a, b):
    size = [min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])]
    if min(size) <= 0:
        return 0
    common = size[0] * size[1]
    return common / ((a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common)


def ssd_boxes(outputs, threshold):
    boxes, classes, scores, count = (output.ravel() for output in outputs)
    rows = [(scores[i], int(classes[i]), boxes[4 * i:4 * i + 4][[1, 0, 3, 2]]) for i in range(int(count[0]))]
    return [row for row in rows if row[0] >= threshold]


def yolox_boxes(outputs, threshold):
    rows = []
    for grid in outputs:
        _, height, width, _ = grid.shape
        for y in range(height):
            for x in range(width):
                cell = grid[0, y, x].astype(np.float64)
                scores = cell[4] * cell[5:]
                if scores.max() < threshold:
                    continue
                cx, cy = (x + cell[0]) / width, (y + cell[1]) / height
                w, h = np.exp(cell[2]) / width, np.exp(cell[3]) / height
                rows.append((scores.max(), int(scores.argmax()),
                             np.array([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2])))
    rows.sort(key=lambda row: -row[0])
    kept = []
    for row in rows:
        if all(row[1] != other[1] or overlap(row[2], other[2]) <= 0.45 for other in kept):
            kept.append(row)
    return kept[:100]


def rows_of(report):
    return [(r["score"], r["class"], np.array([r["left"], r["top"], r["right"], r["bottom"]]))
            for r in report["detections"]]


def assert_same_boxes(got, wanted):
    assert len(got) == len(wanted)
    for (score, label, box), (wanted_score, wanted_label, wanted_box) in zip(got, wanted):
        assert score == pytest.approx(wanted_score, abs=1e-5) and label == wanted_label
        assert box == pytest.approx(wanted_box, abs=1e-5)


@needs_models
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["ssdlite_mobiledet_coco_qat_postprocess", "coco_ssd_mobilenet_v1_1.0_quant"])
def test_ssd_boxes(name, device, tmp_path):
    reference = Reference(MODELS / f"{name}.tflite", DATA / "cats_and_dogs.jpg", tmp_path)
    picture = tmp_path / "boxes.png"
    report = task(reference.model, reference.picture, "--device", device, "--threshold", 0.3, "--picture", picture,
                  "--labels", DATA / "coco_labels.txt")
    assert report["name"] == "detect"
    assert all(row["label"] in ("cat", "dog") for row in report["detections"][:4])
    wanted, got = ssd_boxes(reference.outputs, 0.3), rows_of(report)
    if device == "cpu":
        assert_same_boxes(got, wanted)
    for score, label, box in wanted:  # each clear one was found
        if score >= 0.5:
            near = max(got, key=lambda row: (row[1] == label) * overlap(row[2], box))
            assert near[1] == label and overlap(near[2], box) > 0.85 and abs(near[0] - score) < 0.1
    check_frame(np.asarray(Image.open(picture)), reference.pixels, got[0][2])


def check_frame(drawn, pixels, box):
    """The best box is drawn in one colour, on top; far from all boxes nothing has changed."""
    height, width, _ = pixels.shape
    assert drawn.shape == pixels.shape and (drawn != pixels).any()
    left, top, right, bottom = (box * [width, height, width, height]).round().astype(int)
    stroke = min(width, height) // 240 + 1
    side = drawn[max(top + stroke, 0) + 20:min(bottom, height) - 20, np.clip(left, 0, width - 1)]
    assert len(side) and (side == side[0]).all()
    assert (drawn == pixels).mean() > 0.5


@needs_models
@pytest.mark.parametrize("device", ["cpu", "sim:rk3588"])
def test_yolox_boxes(device, tmp_path):
    """This model's scores are 0.25 everywhere: which of its boxes stay hangs on single steps. So the decoding is
    compared on the device's own outputs, and these with TFLite's."""
    reference = Reference(MODELS / "yolox.tflite", DATA / "cats_and_dogs.jpg", tmp_path)
    raw = [tmp_path / f"{i}.bin" for i in range(3)]
    got = rows_of(task(reference.model, reference.picture, "--device", device, "--threshold", 0.2,
                       *(word for path in raw for word in ("-o", path))))
    codes = [np.fromfile(path, np.uint8).reshape(wanted.shape) for path, wanted in zip(raw, reference.codes)]
    for own, wanted in zip(codes, reference.codes):
        apart = np.abs(own.astype(int) - wanted)
        assert apart.max() == 0 if device == "cpu" else psnr(own, wanted) > 30
    assert len(got) == 100
    assert_same_boxes(got, yolox_boxes([own / 256 for own in codes], 0.2))


def test_yolox_decoding_finds_classes_and_suppresses_overlaps(tmp_path):
    """Grids made by hand go through a model that only reshapes them; boxes overlap on purpose."""
    m = mb.Model("uint8")
    shapes = [(1, 8, 8, 9), (1, 4, 4, 9)]
    outputs = [m.reshape(m.input((1, int(np.prod(s))), (1 / 64, 64), name=f"in{i}"), s) for i, s in enumerate(shapes)]
    model = tmp_path / "grids.tflite"
    model.write_bytes(m.finish(outputs))
    rng = np.random.default_rng(5)
    values = [rng.integers(64, 129, np.prod(shape)).astype(np.uint8) for shape in shapes]
    arguments = []
    for i, value in enumerate(values):
        value.reshape(-1, 9)[:, 2:4] |= 0x90  # several cells wide
        value.tofile(tmp_path / f"{i}.bin")
        arguments += ["--input", tmp_path / f"{i}.bin"]
    real = [(value.reshape(shape).astype(np.float64) - 64) / 64 for value, shape in zip(values, shapes)]
    wanted = yolox_boxes(real, 0.4)
    every = sum(((g[..., 4:5] * g[..., 5:]).max(-1) >= 0.4).sum() for g in real)
    got = rows_of(task(model, *arguments, "--task", "detect", "--threshold", 0.4, "--device", "cpu"))
    assert 3 < len(wanted) < every and len({label for _, label, _ in wanted}) > 1
    assert_same_boxes(got, wanted)


# ---- points ----


def movenet_points(outputs, shape):
    return outputs[0].reshape(17, 3)[:, [1, 0, 2]]


def posenet_points(outputs, shape):
    heat, offsets = outputs[0][0], outputs[1][0]
    height, width, _ = shape
    points = []
    for k in range(17):
        y, x = np.unravel_index(heat[..., k].argmax(), heat.shape[:2])
        points.append([(x * (width - 1) / (heat.shape[1] - 1) + offsets[y, x, 17 + k]) / width,
                       (y * (height - 1) / (heat.shape[0] - 1) + offsets[y, x, k]) / height,
                       1 / (1 + np.exp(-heat[y, x, k]))])
    return np.array(points)


@needs_models
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name, decode", [("movenet_single_pose_lightning_ptq", movenet_points),
                                          ("posenet_mobilenet_v1_075_353_481_quant", posenet_points)])
def test_points_of_a_body(name, decode, device, tmp_path):
    reference = Reference(MODELS / f"{name}.tflite", DATA / "grace_hopper.bmp", tmp_path)
    picture = tmp_path / "points.png"
    report = task(reference.model, reference.picture, "--device", device, "--picture", picture)
    assert report["name"] == "pose"
    got = np.array([[p["x"], p["y"], p["score"]] for p in report["points"]])
    wanted = decode(reference.outputs, reference.pixels.shape)
    if device == "cpu":
        assert got == pytest.approx(wanted, abs=1e-5)
    sure = wanted[:, 2] > 0.5
    assert sure.sum() >= 2
    assert np.hypot(*(got - wanted)[sure, :2].T).max() < 0.04
    drawn = np.asarray(Image.open(picture))
    height, width, _ = drawn.shape
    for x, y, score in got:
        if 0 <= x < 1 and 0 <= y < 1 and score > 0.3:
            assert tuple(drawn[min(round(y * height), height - 1), min(round(x * width), width - 1)]) == (230, 60, 50)


# ---- areas ----


@needs_models
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["deeplabv3_mnv2_dm05_pascal_quant", "seeded_unet_128_int8", "deeplabv3_257_float"])
def test_areas_of_classes(name, device, tmp_path):
    if name.endswith("float") and device != "cpu":
        pytest.skip("a float model is the CPU's on every device")
    reference = Reference(MODELS / f"{name}.tflite", CHELSEA, tmp_path)
    picture, raw = tmp_path / "areas.png", tmp_path / "out.bin"
    report = task(reference.model, reference.picture, "--device", device, "--picture", picture, "-o", raw)
    codes = reference.codes[0]
    values = np.fromfile(raw, codes.dtype).reshape(codes.shape)
    own, wanted = (v[0] if v.ndim == 3 else v[0].argmax(-1) for v in (values, codes))
    agreement = (own == wanted).mean()
    least = {"deeplabv3_257_float": 0.9999, "deeplabv3_mnv2_dm05_pascal_quant": 0.98, "seeded_unet_128_int8": 0.95}
    assert agreement > (1 - 1e-9 if device == "cpu" and not name.endswith("float") else least[name])
    assert report["name"] == "segment"
    for row in report["classes"]:
        assert row["pixels"] == (own == row["class"]).sum() and row["share"] == pytest.approx(row["pixels"] / own.size)
    assert sum(row["pixels"] for row in report["classes"]) == own.size
    counts = [row["pixels"] for row in report["classes"]]
    assert counts == sorted(counts, reverse=True)
    drawn = np.asarray(Image.open(picture))
    for row in report["classes"]:
        assert (row["color"] is None) == (row["class"] == 0)
        if row["class"] == 0:
            continue
        where = own == row["class"]
        color = np.array([int(row["color"][i:i + 2], 16) for i in (1, 3, 5)])
        blend = (reference.pixels[where].astype(int) * (256 - 140) + color * 140 + 128) // 256
        assert (drawn[where] == blend).all()
    assert ((drawn == reference.pixels).all(-1) | (own != 0)).all()  # the background stays
    assert (drawn != reference.pixels).any(-1)[own != 0].mean() > 0.99


# ---- maps ----


@needs_models
@pytest.mark.parametrize("device", DEVICES)
def test_depth(device, tmp_path):
    reference = Reference(MODELS / "seeded_fastdepth_224_int8.tflite", CHELSEA, tmp_path)
    picture, raw = tmp_path / "depth.png", tmp_path / "out.bin"
    report = task(reference.model, reference.picture, "--device", device, "--picture", picture, "-o", raw)
    codes = np.fromfile(raw, np.int8).reshape(224, 224)
    # Random weights: nothing in this network holds differences of one step back, 29 dB are left on sim:rk3588.
    assert psnr(codes, reference.codes[0][0, ..., 0]) >= (np.inf if device == "cpu" else 28)
    real = np.float32(0.04565437510609627) * (codes.astype(np.float64) + 128)
    assert report["name"] == "depth"
    for key, value in ("least", real.min()), ("most", real.max()), ("mean", real.mean()):
        assert report[key] == pytest.approx(value, rel=1e-5, abs=1e-6)
    wanted = np.floor((real - real.min()) * 255 / (real.max() - real.min()) + 0.5)
    drawn = np.asarray(Image.open(picture))
    assert drawn.shape == (224, 224, 3) and (drawn == drawn[..., :1]).all()
    assert np.abs(drawn[..., 0] - wanted).max() <= 1  # halves round either way


def assert_same_picture(reference, device, tmp_path, least):
    picture = tmp_path / "large.png"
    report = task(reference.model, reference.picture, "--device", device, "--picture", picture)
    wanted = reference.codes[0][0].astype(np.int16) + (128 if reference.codes[0].dtype == np.int8 else 0)
    drawn = np.asarray(Image.open(picture))
    assert report == {"name": "super-resolution", "width": wanted.shape[1], "height": wanted.shape[0]}
    assert drawn.shape == wanted.shape and psnr(drawn, wanted) >= least


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_more_pixels(dtype, device, tmp_path):
    m = mb.Model(dtype, seed=2)
    x = m.input((1, 40, 60, 3), (1 / 128, 128 if dtype == "uint8" else 0))
    model = tmp_path / "larger.tflite"
    model.write_bytes(m.finish([m.depth_to_space(m.conv2d(x, 12, kernel=(3, 3)))]))
    assert_same_picture(Reference(model, CHELSEA, tmp_path), device, tmp_path, np.inf if device == "cpu" else 45)


@needs_models
@slow
@pytest.mark.parametrize("device", DEVICES)
def test_edsr(device, tmp_path):
    """The reference kernels lack this model's DEPTH_TO_SPACE; the optimized ones are off by one here and there."""
    model = MODELS / "mlperf_edsr_f32b5_full_qint8.tflite"
    interpreter = Interpreter(str(model), experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    assert_same_picture(Reference(model, CHELSEA, tmp_path, interpreter=interpreter), device, tmp_path, 45)


# ---- sounds ----


def samples_of(path, count=16000):
    with wave.open(str(path)) as sound:
        assert sound.getframerate() == 16000 and sound.getnchannels() == 1
        samples = np.frombuffer(sound.readframes(count), np.int16) / 32768
    return np.pad(samples, (0, count - samples.size))


def mel(hertz):
    return 1127 * np.log1p(hertz / 700)


def bands_of(bands, low, high):
    """The share of each bin in each band: triangles between equal steps of the mel scale."""
    edges, bins = np.linspace(mel(low), mel(high), bands + 2), mel(np.arange(257) * 16000 / 512)[:, None]
    step = edges[1] - edges[0]
    shares = np.maximum(0, np.minimum((bins - edges[:-2]) / step, (edges[2:] - bins) / step))
    shares[0] = 0
    return shares


def spectra(samples, middle):
    window = 0.5 - 0.5 * np.cos(2 * np.pi * (np.arange(480) + middle) / 480)
    return np.abs(np.fft.rfft([samples[k * 320:k * 320 + 480] * window for k in range(49)], 512))


def cepstra_of(samples):
    logs = np.log(spectra(samples / samples.max(), 0) @ bands_of(40, 20, 4000) + 1e-6)
    return 2 * logs @ np.cos(np.pi * np.arange(10)[:, None] * (np.arange(40) + 0.5) / 40).T / np.sqrt(80)


def band_features_of(samples):
    """The fixed-point front end of micro_speech in real numbers, rounded where it matters."""
    signals = np.floor(np.sqrt((spectra(samples * 32768, 0.5) ** 2) @ bands_of(40, 125, 7500)) * 64 / 512)
    speed, noise, frames = np.where(np.arange(40) % 2, 0.06, 0.025), np.zeros(40), []
    for signal in signals:
        noise = np.minimum(signal, speed * signal + (1 - speed) * noise)
        clean = np.floor(np.maximum(0.05 * signal, signal - noise))
        ratio = clean * np.minimum(2 ** 21 * (noise * 8 + 80) ** -0.95, 32767) / 64
        value = np.floor(np.where(ratio < 8192, ratio ** 2 / 2 ** 20, ratio / 64 - 64)) * 8
        frames.append(np.where(value > 1, np.floor(64 * np.log(np.maximum(value, 1)) + 0.5), 0))
    return np.array(frames)


def keyword_input(name, samples):
    if name == "tiny_kws_dscnn_int8":
        codes = np.round(cepstra_of(samples) / np.float32(0.5847029089927673)) + 83
        return np.clip(codes, -128, 127).astype(np.int8).reshape(1, 49, 10, 1)
    codes = (band_features_of(samples) * 256 + 333) // 666 - 128
    return np.clip(codes, -128, 127).astype(np.int8).reshape(1, 1960)


SOUNDS = [("tiny_kws_dscnn_int8", "yes", 9), ("tflm_micro_speech_int8", "yes", 2), ("tflm_micro_speech_int8", "no", 3),
          ("tiny_kws_dscnn_int8", "noise", 11)]


@needs_models
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name, sound, heard", SOUNDS)
def test_keywords(name, sound, heard, device, tmp_path):
    path = DATA / f"{sound}_1000ms.wav"
    reference = Reference(MODELS / f"{name}.tflite", value=keyword_input(name, samples_of(path)))
    report = json.loads(mica(reference.model, path, "--device", device, "-o", tmp_path / "out.bin", "--json").stdout)
    assert report["task"]["name"] == "keyword"
    assert report["outputs"][0]["top"][0]["class"] == heard == reference.codes[0].argmax()
    codes = np.fromfile(tmp_path / "out.bin", np.int8).astype(int)
    apart = np.abs(codes - reference.codes[0].ravel())
    # On the CPU a feature may still round the other way: sums come in another order.
    assert apart.max() <= (4 if device == "cpu" else 16)


def labels_of(tmp_path, count):
    path = tmp_path / "labels.txt"
    path.write_text("\n".join(f"sound {i}" for i in range(count)))
    return path


@needs_models
@pytest.mark.parametrize("device", DEVICES)
def test_a_long_sound_is_heard_piece_by_piece(device, tmp_path):
    """Each window is what the model makes of that piece of the file alone."""
    model, path = MODELS / "tiny_kws_dscnn_int8.tflite", DATA / "speech.wav"
    with wave.open(str(path)) as sound:
        frames, parameters = sound.readframes(1 << 20), sound.getparams()
    report = task(model, path, "--every", 0.75, "--device", device, "--labels", labels_of(tmp_path, 12))
    assert report["name"] == "keyword"
    assert [w["start"] for w in report["windows"]] == \
        [0.75 * i for i in range((parameters.nframes - 16000) // 12000 + 1)] and len(report["windows"]) > 3
    for window in report["windows"]:
        first = int(window["start"] * 16000)
        with wave.open(str(tmp_path / "piece.wav"), "wb") as piece:
            piece.setparams(parameters)
            piece.writeframes(frames[2 * first:2 * first + 32000])
        alone = json.loads(mica(model, tmp_path / "piece.wav", "--device", device, "--json").stdout)["outputs"][0]["top"][0]
        assert (window["class"], window["score"], window["seconds"]) == (alone["class"], alone["score"], 1)
        assert window["label"] == f"sound {window['class']}"
    text = mica(model, path, "--every", 0.75, "--device", device, "--labels", labels_of(tmp_path, 12)).stdout
    assert text.splitlines()[0].split() == ["from", "s", "to", "s", "score", "class", "label"]
    assert len(text.splitlines()) == len(report["windows"]) + 1
    sure = [w for w in report["windows"] if w["score"] >= 0.9]
    assert task(model, path, "--every", 0.75, "--device", device, "--threshold", 0.9, "--labels",
                labels_of(tmp_path, 12))["windows"] == sure


def event_model(tmp_path):
    """A waveform of half a second in, eight classes out: what YAMNet would be, without its Fourier transform."""
    m = mb.Model("int8", seed=6)
    x = m.input((1, 8000), dtype="float32")
    y = m.reshape(m.quantize(x, "int8", (1 / 128, 0)), (1, 50, 160, 1))
    y = m.conv2d(y, 8, kernel=(5, 16), stride=(5, 16), activation="relu")
    model = tmp_path / "events.tflite"
    model.write_bytes(m.finish([m.dequantize(m.fully_connected(m.reshape(y, (1, 800)), 8))]))
    return model


@needs_models
@pytest.mark.parametrize("device", DEVICES)
def test_audio_events(device, tmp_path):
    model, path = event_model(tmp_path), DATA / "yes_1000ms.wav"
    samples = samples_of(path, 16000).astype(np.float32)
    done = mica(model, path, "--device", device, "-o", tmp_path / "out.bin", "--json")
    assert "the model hears 0.50 s, the sound has 1.00" in done.stderr and "--every" in done.stderr
    reference = Reference(model, value=samples[None, :8000])
    assert json.loads(done.stdout)["task"]["name"] == "audio-event"
    scores, wanted = np.fromfile(tmp_path / "out.bin", np.float32), reference.codes[0].ravel()
    step = np.diff(np.unique(np.concatenate([scores, wanted]))).min()
    assert np.ptp(wanted) > 8 * step and np.abs(scores - wanted).max() <= 3 * np.ptp(wanted) / 255
    windows = task(model, path, "--every", 0.25, "--device", device)["windows"]
    assert [w["start"] for w in windows] == [0, 0.25, 0.5] and windows[0]["class"] == scores.argmax()
    for window in windows:
        first = int(window["start"] * 16000)
        codes = Reference(model, value=samples[None, first:first + 8000]).codes[0].ravel()
        assert codes[window["class"]] >= codes.max() - 3 * np.ptp(codes) / 255


def mask_model(tmp_path):
    m = mb.Model("int8", seed=4)
    x = m.input((1, 1, 257), (0.25, -128))
    model = tmp_path / "mask.tflite"
    model.write_bytes(m.finish([m.logistic(m.fully_connected(x, 257, keep_dims=True))]))
    return model


def masked(model, samples):
    interpreter = interpreter_of(model)
    inputs, outputs = interpreter.get_input_details()[0], interpreter.get_output_details()[0]
    blocks = (samples.size + 384 + 127) // 128
    noisy, clean = np.zeros(blocks * 128 + 384), np.zeros(blocks * 128 + 384)
    noisy[384:384 + samples.size] = samples
    for i in range(blocks):
        spectrum = np.fft.rfft(noisy[i * 128:i * 128 + 512])
        codes = np.clip(np.round(np.abs(spectrum) / 0.25) - 128, -128, 127).astype(np.int8)
        interpreter.set_tensor(inputs["index"], codes.reshape(inputs["shape"]))
        interpreter.invoke()
        scale, zero_point = outputs["quantization"]
        mask = scale * (interpreter.get_tensor(outputs["index"]).ravel().astype(float) - zero_point)
        clean[i * 128:i * 128 + 512] += np.fft.irfft(spectrum * mask) / 4
    return clean[384:384 + samples.size]


@needs_models
@pytest.mark.parametrize("device", ["cpu", "sim:rk3588"])
def test_noise_suppression(device, tmp_path):
    """With a mask network of our own: the collection's only one is recurrent."""
    model, sound, out = mask_model(tmp_path), DATA / "noise_1000ms.wav", tmp_path / "clean.wav"
    mica(model, sound, "--sound", out, "--device", device)
    samples = samples_of(sound)
    wanted, got = masked(model, samples), samples_of(out)
    noise = np.sum((wanted - got) ** 2)
    least = 60 if device == "cpu" else 30  # dB; 16 bits of quiet noise have no more
    assert 10 * np.log10(np.sum(wanted ** 2) / noise) > least
    assert np.sum((samples - got) ** 2) > 10 * noise


# ---- what doesn't fit ----


@pytest.mark.parametrize("arguments, code, words", [
    (["--task", "clasify"], 2, "did you mean 'classify'"),
    (["--task", "dance"], 2, "unknown task 'dance'; known are classify"),
    (["--task", "detect"], 1, "doesn't fit --task detect, which needs the four outputs of SSD's"),
    (["--task", "segment"], 1, "a class a pixel"),
    (["--task", "pose"], 1, "MoveNet"),
    (["--task", "depth"], 1, "1 x height x width x 1"),
    (["--task", "super-resolution"], 1, "1 x height x width x 3"),
    (["--task", "keyword"], 1, "1960 int8 band features"),
    (["--task", "denoise"], 1, "257 magnitudes"),
    (["--picture", "x.png"], 1, "nothing to draw"),
    (["--sound", "x.wav"], 1, "nothing to play"),
    (["--task", "audio-event"], 1, "float32 samples"),
    (["--every", "1"], 1, "nothing to listen to for --every"),
    (["--every", "0"], 2, "--every must be a number of seconds"),
    (["--every", "1s"], 2, "--every must be a number of seconds"),
    (["--threshold", "2"], 2, "--threshold must be a number from 0 to 1"),
    (["--threshold", "nan"], 2, "--threshold must be a number from 0 to 1"),
])
def test_what_does_not_fit_is_said(arguments, code, words, tmp_path):
    done = mica(MOBILENET, CHELSEA, "--device", "cpu", *arguments, code=code)
    assert words in done.stderr and not done.stdout


def write_wav(path, rate=16000, channels=1, frames=1600):
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(channels)
        sound.setsampwidth(2)
        sound.setframerate(rate)
        sound.writeframes(np.zeros(frames * channels, np.int16).tobytes())
    return path


def test_sounds_for_pictures_and_the_other_way(tmp_path):
    sound = write_wav(tmp_path / "silence.wav")
    assert "no task for sounds fits" in mica(MOBILENET, sound, "--device", "cpu", code=1).stderr
    assert "is for pictures" in mica(MOBILENET, sound, "--task", "classify", "--device", "cpu", code=1).stderr


@needs_models
@pytest.mark.parametrize("options, words", [
    ({"rate": 44100}, "has 44100 samples a second"), ({"channels": 17}, "17 channels"), ({"frames": 0}, "no sound"),
])
def test_sounds_that_are_not_for_models(options, words, tmp_path):
    sound = write_wav(tmp_path / "sound.wav", **options)
    assert words in mica(MODELS / "tiny_kws_dscnn_int8.tflite", sound, "--device", "cpu", code=1).stderr


@needs_models
@pytest.mark.parametrize("arguments", [["-o", "x"], ["--repeat", "2"]])
def test_every_goes_with_one_pass_only(arguments, tmp_path):
    done = mica(MODELS / "tiny_kws_dscnn_int8.tflite", DATA / "speech.wav", "--every", 1, *arguments, code=2)
    assert "goes with neither --output nor --repeat" in done.stderr


@needs_models
def test_two_channels_are_averaged_and_short_sounds_end_in_silence(tmp_path):
    mono, stereo = tmp_path / "mono.wav", tmp_path / "stereo.wav"
    samples = (samples_of(DATA / "yes_1000ms.wav", 8000) * 32768).astype(np.int16)
    for path, channels in (mono, 1), (stereo, 2):
        with wave.open(str(path), "wb") as sound:
            sound.setnchannels(channels)
            sound.setsampwidth(2)
            sound.setframerate(16000)
            sound.writeframes(np.repeat(samples, channels).tobytes())
    one, two = (json.loads(mica(MODELS / "tiny_kws_dscnn_int8.tflite", path, "--device", "cpu", "--json").stdout)
                for path in (mono, stereo))
    assert one["outputs"] == two["outputs"]


@needs_models
@pytest.mark.parametrize("name, sound, words", [
    ("tflm_dtln_noise_suppression", "speech", "UNIDIRECTIONAL_SEQUENCE_LSTM"),
    ("yamnet_wavin_quantized_mel_relu6", "speech", "RFFT2D"),
])
def test_models_that_need_more_are_refused_by_operation(name, sound, words, tmp_path):
    done = mica(MODELS / f"{name}.tflite", DATA / f"{sound}.wav", "--sound", tmp_path / "out.wav", code=1)
    assert words in done.stderr and not list(tmp_path.iterdir())


def test_none_prints_outputs_as_they_are():
    report = json.loads(mica(MOBILENET, CHELSEA, "--device", "cpu", "--task", "none", "--json").stdout)
    assert "task" not in report
