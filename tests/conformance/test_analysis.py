# SPDX-License-Identifier: MIT
"""`mica decode`, `diff`, `replay` and `sweep` as a user calls them, on recorded captures and on our own."""

import csv
import json
import subprocess
import xml.etree.ElementTree

import numpy as np
import pytest

from conftest import BUILD, SHARED

MICA = BUILD / "tools" / "mica" / "mica"
CAPTURES = sorted(path.parent for path in (SHARED / "captures").glob("*/*/run.json"))
PAD0, PAD1 = (SHARED / "captures" / f"conv_u8_i8_k3_ic16_oc16_s1_p{p}" / "a311d" for p in (0, 1))

pytestmark = pytest.mark.skipif(not MICA.exists() or not CAPTURES, reason="mica or the captures are not here")


def run(*command, code=0):
    done = subprocess.run([MICA, *map(str, command)], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stdout[-500:] + done.stderr
    return done


def fields(items):
    for item in items:
        if "items" in item:
            yield from fields(item["items"])
        else:
            yield item


@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_everything_recorded_is_known(capture):
    told = json.loads(run("decode", capture, "--json").stdout)
    assert told["unknown"] == 0 and told["complete"]
    assert told["chip"] == capture.name
    found = [field for submit in told["submits"] for field in fields(submit["items"])]
    assert len(found) > 100 and not any(field.get("unknown") for field in found)
    assert "unknown" not in run("decode", capture).stdout.splitlines()[-1]


def test_decode_agrees_with_the_words():
    """The kernel's size and the addresses, read from the descriptor's words by hand."""
    submit = json.loads((PAD0 / "submit_0001/submit.json").read_text())
    memory = {int(bo["va"], 16): (PAD0 / "submit_0001" / bo["file"]).read_bytes() for bo in submit["bos"]}
    stream = np.fromfile(PAD0 / "submit_0001/stream.bin", np.uint32).tolist()
    words = np.frombuffer(memory[stream[stream.index(0x08010428) + 1]], np.uint32)
    told = json.loads(run("decode", PAD0 / "submit_0001", "--json").stdout)
    named = {field["name"]: field for field in fields(told["submits"][0]["items"])}
    assert named["KERNEL_X_SIZE"]["value"] == int(words[0]) >> 2 & 15 == 3
    assert named["KERNEL_ADDRESS"]["value"] == int(words[5]) & 0x3ffffff
    assert named["IN_IMAGE_ADDRESS"]["value"] == int(words[6])
    assert named["IN_IMAGE_ADDRESS"]["place"].startswith("buffer ")


def test_raw_files(tmp_path):
    printed = run("decode", PAD0 / "submit_0001/stream.bin", "--chip", "a311d").stdout
    assert "PS.NN_INST_ADDR" in printed
    rocket = SHARED / "captures/conv_u8_i8_k3_ic16_oc16_s1_p0/rk3588/submit_0000/bo_5.bin"
    assert "CNA.CONV_CON3" in run("decode", rocket, "--chip", "rk3588").stdout
    coefficients = PAD0 / "submit_0001/bo_8.bin"
    printed = run("decode", coefficients, "--chip", "a311d", "--coefficients", "3x3,in=16,out=16,zero=133").stdout
    assert "2304" in printed and "bits per weight" in printed
    assert "--chip" in run("decode", coefficients, code=2).stderr
    assert "no part" in run("decode", coefficients, "--chip", "a311d", "--coefficients", "fish", code=1).stderr
    (tmp_path / "odd.bin").write_bytes(b"\xff" * 9)
    assert "UNKNOWN" in run("decode", tmp_path / "odd.bin", "--chip", "a311d").stdout


def test_diff():
    assert "0 of 5 jobs differ" in run("diff", PAD0, PAD0).stdout
    printed = run("diff", PAD0, PAD1, code=1).stdout
    assert "NN.IN_IMAGE_X_OFFSET" in printed and "KERNEL_X_SIZE" not in printed
    told = json.loads(run("diff", PAD0, PAD1, "--json", code=1).stdout)
    assert told["different"] == 2
    assert {"field": "NN.OUT_IMAGE_X_SIZE", "jobs": 1} in told["fields"]
    assert run("diff", PAD0, "/nowhere", code=2).stderr
    assert "families" in run("diff", PAD0, PAD0.parent / "rk3588", code=2).stderr


def test_replay():
    told = json.loads(run("replay", PAD1, "--json").stdout)
    output, = told["comparisons"]
    assert output["what"] == "output" and output["different"] == 0 and output["bytes"] == 1024
    assert [job["unit"] for job in told["jobs"]] == ["TP", "NN", "TP"]
    add = SHARED / "captures/add_8_1_32_32_1_1_0_0_4/imx8mp"
    assert "66 of 2048 bytes differ from the CPU's, by 1 at most" in run("replay", add, "--compare", code=1).stdout
    assert "not supported yet" in run("replay", PAD1, "--device", "drm:/dev/dri/renderD128", code=2).stderr


@pytest.mark.parametrize("device", ["sim:a311d", "sim:imx8mp", "sim:rk3588"])
@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("operation", ["conv2d", "depthwise"])
def test_sweep(operation, dtype, device, tmp_path):
    table, plot = tmp_path / "table.csv", tmp_path / "plot.svg"
    told = json.loads(run("sweep", "--over", "kernel=1,3,5", "--over", "stride=1,2", "--over", f"operation={operation}",
                          "--over", f"type={dtype}", "--csv", table, "--plot", plot, "--json", "-o", tmp_path / "sweep",
                          "--", MICA, "compile", "{model}", "--device", device, "--capture", "{capture}").stdout)
    assert len(told["points"]) == 6 and told["failed"] == 0
    assert any("kernel" in field["follows"] for field in told["fields"])
    rows = list(csv.reader(table.open()))
    assert len(rows) == 7 and all(len(row) == len(rows[0]) for row in rows)
    assert xml.etree.ElementTree.parse(plot).getroot().tag.endswith("svg")


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("operation", ["conv2d", "depthwise"])
def test_swept_models_are_tflite_models(operation, dtype, tmp_path):
    """TFLite runs them, and their outputs use the range."""
    from ai_edge_litert.interpreter import Interpreter, OpResolverType

    run("sweep", "--over", "kernel=1,3", "--over", "padding=same,valid", "--over", f"operation={operation}", "--over",
        f"type={dtype}", "--over", "stride=2", "--over", "channels=8", "-o", tmp_path / "sweep", "--",
        MICA, "compile", "{model}", "--device", "sim:a311d", "--capture", "{capture}")
    for path, size in zip(sorted((tmp_path / "sweep").glob("*/model.tflite")), (4, 4, 4, 3)):
        interpreter = Interpreter(str(path), experimental_op_resolver_type=OpResolverType.BUILTIN_REF)
        interpreter.allocate_tensors()
        details = interpreter.get_input_details()[0]
        info = np.iinfo(details["dtype"])
        interpreter.set_tensor(details["index"], np.random.default_rng(1).integers(
            info.min, info.max, details["shape"], details["dtype"], endpoint=True))
        interpreter.invoke()
        output = interpreter.get_tensor(interpreter.get_output_details()[0]["index"])
        assert output.shape == (1, size, size, 8)
        assert np.unique(output).size > 20 and np.isin(output, (info.min, info.max)).mean() < 0.1


def test_sweep_says_what_is_wrong(tmp_path):
    assert "--over" in run("sweep", "--", "true", "{capture}", code=2).stderr
    assert "{capture}" in run("sweep", "--over", "kernel=1", "--", "true", code=2).stderr
    assert "fish" in run("sweep", "--over", "fish=1", "-o", tmp_path / "a", "--", "true", "{capture}", code=2).stderr
    assert "no point" in run("sweep", "--over", "kernel=1", "-o", tmp_path / "b", "--", "true", "{capture}", code=1).stderr
    assert "not empty" in run("sweep", "--over", "kernel=1", "-o", tmp_path / "b", "--", "true", "{capture}", code=1).stderr
