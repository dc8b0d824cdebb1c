# SPDX-License-Identifier: MIT
"""The command `mica`: what it prints, what it refuses, and that its ways to run a model agree.

MICA_BUILD names the build directory (default: build). Needs nothing but the repository.
"""

import json
import os
import pathlib
import pty
import struct
import subprocess
import sys
import zlib

import numpy as np
import pytest
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/pytools"))
import model_builder as mb  # noqa: E402

MICA = (pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")) / "tools/mica/mica").resolve()
SHARE = ROOT / "share/mica"
MODEL = SHARE / "mobilenet_v1_1.0_224_quant.tflite"
LABELS = SHARE / "mobilenet_v1_1.0_224_quant.labels.txt"
PICTURE = SHARE / "chelsea.png"
COMMANDS = ["run", "info", "compare", "compile", "devices", "profile"]
INPUT_BYTES = 224 * 224 * 3
SIM = "sim:a311d"
ROCKCHIP = "sim:rk3588"
UNITS = {SIM: {"NN", "TP", "CPU"}, ROCKCHIP: {"CNV", "DW", "EW", "LUT", "CPU"}}
ENV = {k: v for k, v in os.environ.items() if k != "MICA_DEVICE"}

pytestmark = pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built")


def mica(*arguments, code=0, env=None, **options):
    done = subprocess.run([MICA, *map(str, arguments)], capture_output=True, env={**ENV, **(env or {})}, timeout=300,
                          **options)
    assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout!r}\n{done.stderr!r}"
    done.out, done.err = done.stdout.decode(), done.stderr.decode()
    return done


def mica_json(*arguments, **options):
    return json.loads(mica(*arguments, "--json", **options).out)


def pixels(size=(224, 224)):
    return np.asarray(Image.open(PICTURE).convert("RGB").resize(size))


@pytest.fixture(scope="module", params=[SIM, ROCKCHIP])
def sim(request):
    """One chip of each family."""
    return request.param


@pytest.fixture(scope="module")
def picture_bin(tmp_path_factory):
    path = tmp_path_factory.mktemp("cli") / "in0.bin"
    path.write_bytes(pixels().tobytes())
    return path


# ---- usage ----


def test_help_names_every_command_and_the_exit_codes():
    text = mica("--help").out
    assert all(f"  {command} " in text for command in COMMANDS)
    assert "Exit codes" in text and "MICA_DEVICE" in text
    assert mica("help").out == text and mica("-h").out == text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_each_command_has_an_example(command):
    text = mica(command, "--help").out
    assert text.startswith(f"Usage: mica {command}")
    assert "Example" in text and f"  mica {command}" in text
    assert mica("help", command).out == text


def test_version_is_the_librarys():
    header = (ROOT / "include/mica/mica.h").read_text()
    parts = [next(l.split()[2] for l in header.splitlines() if f"MICA_VERSION_{p}" in l)
             for p in ("MAJOR", "MINOR", "PATCH")]
    assert mica("--version").out == f"mica {'.'.join(parts)}\n"


@pytest.mark.parametrize("arguments, words", [
    ([], "command is missing"),
    (["rnu"], "did you mean 'run'"),
    (["nonsense"], "unknown command 'nonsense'"),
    (["run"], "MODEL is missing"),
    (["run", MODEL], "no input"),
    (["run", MODEL, PICTURE, "third"], "'third' is one argument too many"),
    (["run", MODEL, PICTURE, "--input", "x"], "not both"),
    (["run", MODEL, PICTURE, "--devcie", "cpu"], "did you mean '--device'"),
    (["run", MODEL, PICTURE, "--top", "0"], "--top must be a number"),
    (["run", MODEL, PICTURE, "--top=5x"], "'5x'"),
    (["run", MODEL, PICTURE, "--repeat", "-1"], "--repeat must be a number"),
    (["run", MODEL, PICTURE, "--threads", "99999999999999999999"], "--threads must be a number"),
    (["run", MODEL, PICTURE, "--top"], "'--top' needs a value"),
    (["run", MODEL, PICTURE, "--json=yes"], "takes no value"),
    (["run", MODEL, PICTURE, "--t", "1"], "could mean several"),
    (["run", MODEL, PICTURE, "-x"], "unknown option '-x'"),
    (["run", MODEL, PICTURE, "--device", "cpu", "--device", "cpu"], "given twice"),
    (["run", MODEL, "--json", "-qv"], "unknown option '-q'"),
    (["run", MODEL, "-vq"], "unknown option '-q'"),
    (["run", MODEL, "-o"], "'-o' needs a value"),
    (["--verson"], "did you mean '--version'"),
    (["info", MODEL, "--input", "x"], "unknown option '--input'"),
    (["compile", MODEL], "--output FILE"),
    (["compile", MODEL, "-o", "x", "--input", "y"], "--input is for --capture"),
    (["devices", "all"], "too many"),
])
def test_wrong_command_lines_exit_with_2_and_say_why(arguments, words, tmp_path):
    done = mica(*arguments, code=2, cwd=tmp_path)
    assert words in done.err and "--help" in done.err
    assert done.out == ""
    assert list(tmp_path.iterdir()) == []


# ---- devices ----


def test_devices_lists_the_simulator_and_reasons():
    rows = {row["name"]: row for row in mica_json("devices")["devices"]}
    assert rows[SIM]["available"] and rows[ROCKCHIP]["available"] and rows["cpu"]["available"]
    assert all(row["available"] or row["reason"] for row in rows.values())
    table = mica("devices").out
    assert all(name in table for name in rows)
    assert rows[SIM]["description"] in mica("devices", "-v").out


def test_the_environment_chooses_the_device_and_the_option_wins():
    assert mica_json("info", MODEL, env={"MICA_DEVICE": "cpu"})["device"] == "cpu"
    assert mica_json("info", MODEL, "--device", SIM, env={"MICA_DEVICE": "cpu"})["device"] == SIM


@pytest.mark.parametrize("name", ["sim:nothing", "gpu", "drm:/nowhere", "sim:", ":"])
def test_a_device_that_is_not_there_is_a_failure(name):
    done = mica("run", MODEL, PICTURE, "--device", name, code=1)
    assert "error" in done.err and done.out == ""


# ---- info ----


def test_info_tells_tensors_operations_and_where_they_run(sim):
    info = mica_json("info", MODEL, "--device", sim)
    assert [t["shape"] for t in info["inputs"]] == [[1, 224, 224, 3]]
    assert info["inputs"][0]["type"] == "uint8" and info["inputs"][0]["zero_point"] == 128
    assert info["inputs"][0]["scale"] == pytest.approx(1 / 128)
    assert info["outputs"][0]["shape"] == [1, 1001]
    operations = info["operations"]
    assert [o["index"] for o in operations] == list(range(31))
    assert sum(o["type"] == "CONV_2D" for o in operations) == 15
    assert sum(o["macs"] for o in operations) == info["summary"]["macs"] == 568741376
    assert {o["runs_on"] for o in operations} <= {"NPU", "CPU"}
    assert all(bool(o["reason"]) == (o["runs_on"] != "NPU") for o in operations)
    on_npu = [o for o in operations if o["runs_on"] == "NPU"]
    assert len(on_npu) == info["summary"]["npu_operations"] >= 28
    assert sum(o["macs"] for o in on_npu) == info["summary"]["npu_macs"]


def test_info_on_the_cpu_puts_nothing_on_the_npu():
    info = mica_json("info", MODEL, "--device", "cpu")
    assert info["summary"]["npu_operations"] == 0
    assert all(o["runs_on"] == "CPU" and o["reason"] for o in info["operations"])


def test_info_tells_how_the_npu_does_it(sim, executable):
    """And how far off that may be: never more than the table of operations says. An executable has its way already."""
    table = {o["name"]: o for o in mica_json("devices", "--operations", "--device", sim)["devices"][0]["operations"]}
    operations = mica_json("info", MODEL, "--device", sim)["operations"]
    for operation in operations:
        if operation["runs_on"] != "NPU":
            assert "way" not in operation
            continue
        way = operation["way"]
        assert set(way) == {"how", "jobs", "us", "off"} and way["how"] and 0 <= way["off"] <= table[operation["type"]]["off"]
        assert (way["jobs"] is None) == (way["us"] is None)
        if way["jobs"] is not None and operation["macs"]:
            assert way["jobs"] >= 1 and way["us"] > 0
    lines = mica("info", MODEL, "--device", sim).out.splitlines()
    head = next(line for line in lines if line.split()[:2] == ["#", "operation"])
    assert head.endswith("how, or why not on the NPU") and " off " in head
    assert (" jobs " in head) == any(o["way"]["jobs"] is not None for o in operations if "way" in o)
    assert operations[0]["way"]["how"].split(";")[0] in lines[lines.index(head) + 1]
    assert operations[-1]["reason"] in lines[lines.index(head) + len(operations)]
    assert not any("way" in o for o in mica_json("info", executable)["operations"])
    assert " off " not in mica("info", executable).out and " off " not in mica("info", MODEL, "--device", "cpu").out


def test_info_counts_partitions(sim, tmp_path):
    """In the text as `compile` does, and for each operation which it is part of."""
    m = mb.Model("uint8", seed=1)
    y = m.conv2d(m.input((1, 8, 8, 16)), 16, kernel=(3, 3))
    model = tmp_path / "m.tflite"
    model.write_bytes(m.finish([m.conv2d(m.quantize(m.dequantize(y), "uint8"), 16, kernel=(3, 3))]))
    info = mica_json("info", model, "--device", sim)
    assert [o.get("partition") for o in info["operations"]] == [0, None, None, 1] and info["summary"]["partitions"] == 2
    assert [o["runs_on"] for o in info["operations"]] == ["NPU", "CPU", "CPU", "NPU"]
    assert "of 0.29 MMACs on the NPU in 2 partitions\n" in mica("info", model, "--device", sim).out
    assert "2 of 4 operations in 2 NPU partitions" in mica("compile", model, "--device", sim, "-o", tmp_path / "o").out
    cpu = mica_json("info", model, "--device", "cpu")
    assert cpu["summary"]["partitions"] == 0 and "partition" not in mica("info", model, "--device", "cpu").out


def test_info_as_text_ends_in_a_summary(sim):
    info = mica_json("info", MODEL, "--device", sim)["summary"]
    last, memory = mica("info", MODEL, "--device", sim).out.splitlines()[-2:]
    assert memory.startswith("NPU memory: coefficients ")
    assert last.startswith(f"{info['npu_operations']} of {info['operations']} operations, ")
    assert last.endswith("% of 568.74 MMACs on the NPU in 1 partition")


# ---- run ----


@pytest.fixture(scope="module")
def result(sim):
    return mica_json("run", MODEL, PICTURE, "--device", sim)


def test_the_picture_is_a_cat(result, sim):
    assert result["device"] == sim and result["runs"] == 1
    top = result["outputs"][0]["top"]
    assert len(top) == 5
    assert top[0]["label"] == "Egyptian cat" and top[0]["class"] == 286 and top[0]["score"] > 0.8
    assert top[0]["score"] == pytest.approx(top[0]["raw"] / 256)
    assert [t["raw"] for t in top] == sorted((t["raw"] for t in top), reverse=True)
    labels = LABELS.read_text().splitlines()
    assert all(t["label"] == labels[t["class"]] for t in top)
    assert result["ms"]["npu_estimate"] > 0


def test_text_output_says_the_same(result, sim):
    done = mica("run", MODEL, PICTURE, "--device", sim, "--top", 3)
    rows = [line.split(None, 2) for line in done.out.split("\n\n")[0].splitlines()[1:]]
    assert [(int(c), label) for _, c, label in rows] == \
        [(t["class"], t["label"]) for t in result["outputs"][0]["top"][:3]]
    assert f"device {sim}" in done.err
    assert "estimate" in done.out and "simulation" in done.out


def test_json_is_all_there_is_on_standard_output():
    done = mica("run", MODEL, PICTURE, "--device", "cpu", "--json", "-vv", "--repeat", 2)
    answer = json.loads(done.out)
    assert answer["runs"] == 2 and 0 < answer["ms"]["min"] <= answer["ms"]["median"]
    assert "npu_estimate" not in answer["ms"]


def test_a_picture_is_resized_as_pillow_does(picture_bin, tmp_path):
    for device in (SIM, ROCKCHIP, "cpu"):
        mica("run", MODEL, PICTURE, "--device", device, "-o", tmp_path / "a")
        mica("run", MODEL, "--input", picture_bin, "--device", device, "--output", tmp_path / "b")
        assert (tmp_path / "a").stat().st_size == 1001
        assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


@pytest.mark.parametrize("name", ["p.bmp", "gray.png", "alpha.png", "palette.png", "tiny.png", "q.jpg"])
def test_pictures_of_many_kinds(name, tmp_path):
    path, image = tmp_path / name, Image.open(PICTURE)
    {"gray.png": lambda: image.convert("L"), "alpha.png": lambda: image.convert("RGBA"),
     "palette.png": lambda: image.convert("P"), "tiny.png": lambda: image.resize((1, 2))}.get(
         name, lambda: image)().save(path)
    raw = tmp_path / "raw.bin"
    raw.write_bytes(np.asarray(Image.open(path).convert("RGB").resize((224, 224))).tobytes())
    mica("run", MODEL, path, "--device", "cpu", "-o", tmp_path / "a")
    mica("run", MODEL, "--input", raw, "--device", "cpu", "-o", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_labels_can_be_chosen_and_need_not_fit(tmp_path):
    few = tmp_path / "few.txt"
    few.write_text("nothing\r\nfish")
    done = mica("run", MODEL, PICTURE, "--device", "cpu", "--labels", few, "--json")
    assert json.loads(done.out)["outputs"][0]["top"][0]["label"] is None
    assert "2 lines, the model 1001 classes" in done.err
    mica("run", MODEL, PICTURE, "--device", "cpu", "--labels", tmp_path / "missing", code=1)


def test_labels_beside_the_model_are_found_by_either_name(tmp_path):
    model = tmp_path / "m.tflite"
    model.symlink_to(MODEL)
    get = lambda: mica_json("run", model, PICTURE, "--device", "cpu")["outputs"][0]["top"][0]["label"]
    assert get() is None
    (tmp_path / "labels.txt").write_text("\n".join(f"general {i}" for i in range(1001)))
    assert get() == "general 286"
    (tmp_path / "m.labels.txt").write_text("\n".join(f"own {i}" for i in range(1001)) + "\n")
    assert get() == "own 286"


def test_threads_change_nothing(picture_bin, sim, tmp_path):
    answers = set()
    for threads in (1, 2, 7):
        mica("run", MODEL, "--input", picture_bin, "--device", sim, "--threads", threads, "-o", tmp_path / "o")
        answers.add((tmp_path / "o").read_bytes())
    assert len(answers) == 1


# ---- profile ----

FIGURES = ["macs", "cycles", "us", "read_bytes", "write_bytes", "coefficient_bytes", "estimate"]
BOUNDS = ["compute_cycles", "memory_cycles", "dispatch_us"]  # where the timing model tells what bounds a job


@pytest.fixture(scope="module")
def profile(sim):
    return mica_json("profile", MODEL, "--device", sim)


def test_profile_has_the_documented_keys(profile, sim):
    bounds = BOUNDS if sim == ROCKCHIP else []
    assert list(profile) == ["device", *(["clocks"] if bounds else []), "jobs", "total"] and profile["device"] == sim
    assert list(profile["total"]) == FIGURES + bounds + (["total_us"] if bounds else [])
    for index, job in enumerate(profile["jobs"]):
        assert list(job) == ["index", "unit", "operation"] + FIGURES + ([] if job["unit"] == "CPU" else bounds)
        assert job["index"] == index and 0 <= job["operation"] < 31
        assert job["unit"] in UNITS[sim]
        assert job["estimate"] == (job["unit"] != "CPU")


def test_profile_adds_up(profile):
    jobs, total = profile["jobs"], profile["total"]
    for figure in ("macs", "cycles", "read_bytes", "write_bytes", "coefficient_bytes"):
        assert sum(job[figure] for job in jobs) == total[figure]
    assert sum(job["us"] for job in jobs) == pytest.approx(total["us"])
    assert total["macs"] == 568741376 and total["estimate"] is True
    assert all(job["coefficient_bytes"] <= job["read_bytes"] for job in jobs)
    assert all(job["cycles"] > 0 for job in jobs if job["unit"] in ("NN", "CNV", "DW"))


def test_profile_tells_what_bounds_a_job():
    profile = mica_json("profile", MODEL, "--device", ROCKCHIP, "--clock", 1000)
    jobs, total = [job for job in profile["jobs"] if job["unit"] != "CPU"], profile["total"]
    assert all(job["cycles"] == max(job["compute_cycles"], job["memory_cycles"]) for job in jobs)
    assert all(job["us"] == pytest.approx(job["cycles"] / 1000, abs=0.001) for job in jobs)
    assert any(job["memory_cycles"] > job["compute_cycles"] for job in jobs)
    assert total["dispatch_us"] == pytest.approx(sum(job["dispatch_us"] for job in jobs))
    assert total["total_us"] == pytest.approx(total["us"] + total["dispatch_us"])
    slow, fast = profile["clocks"]
    assert (slow["mhz"], fast["mhz"]) == (200, 1000) and slow["us"] > fast["us"] > total["dispatch_us"]


def test_profile_of_the_cpu_is_measured():
    profile = mica_json("profile", MODEL, "--device", "cpu")
    assert profile["total"]["estimate"] is False and profile["total"]["cycles"] == 0
    assert {job["unit"] for job in profile["jobs"]} == {"CPU"} and len(profile["jobs"]) == 31
    assert profile["total"]["us"] > 0


def test_profile_as_text_says_that_it_estimates(picture_bin):
    text = mica("profile", MODEL, "--device", SIM, "--input", picture_bin).out
    assert "CONV_2D" in text and "total" in text
    assert "estimates of a timing model" in text
    assert "estimates" not in mica("profile", MODEL, "--device", "cpu").out
    text = mica("profile", MODEL, "--device", ROCKCHIP).out
    assert "starting the jobs" in text and "at 200 MHz" in text and "at 1000 MHz" in text


# ---- cores ----


def test_cores_and_split_change_no_result(picture_bin, tmp_path):
    answers = set()
    for options in (["--cores", 1], ["--cores", 2], ["--cores", 3], ["--split", 1], ["--split", 2], ["--split", 3]):
        more = ["--repeat", 5] if "--cores" in options else []
        mica("run", MODEL, "--input", picture_bin, "--device", ROCKCHIP, "-o", tmp_path / "o", *options, *more)
        answers.add((tmp_path / "o").read_bytes())
    assert len(answers) == 1


def test_a_stream_says_what_it_reaches():
    run = lambda cores, clock: mica_json("run", MODEL, PICTURE, "--device", ROCKCHIP, "--repeat", 6, "--cores", cores,
                                         "--clock", clock)["stream"]
    one, three = run(1, 800), run(3, 800)
    assert (one["cores"], three["cores"]) == (1, 3) and one["ms"] > 0 and one["per_second"] > 0
    assert three["npu_estimate_per_second"] > 2.2 * one["npu_estimate_per_second"]


def test_a_split_inference_says_so_and_is_faster():
    whole, parts = (mica_json("run", MODEL, PICTURE, "--device", ROCKCHIP, "--split", n) for n in (1, 3))
    assert "split" not in whole and parts["split"] == 3
    assert parts["ms"]["npu_estimate"] < 0.7 * whole["ms"]["npu_estimate"]
    assert "no kernel allows it" in mica("run", MODEL, PICTURE, "--device", ROCKCHIP, "--split", 3).out
    jobs = [job for job in mica_json("profile", MODEL, "--device", ROCKCHIP, "--split", 3)["jobs"] if job["unit"] != "CPU"]
    assert {job["core"] for job in jobs} == {0, 1, 2}
    assert [job["stage"] for job in jobs] == sorted(job["stage"] for job in jobs)


@pytest.mark.parametrize("device, options, words, code", [
    (ROCKCHIP, ["--repeat", 3, "--cores", 4], "has 3 cores", 2),
    (ROCKCHIP, ["--split", 4], "has 3 cores", 2),
    ("sim:rk3566", ["--split", 2], "has 1 core", 2),
    (ROCKCHIP, ["--clock", 5000], "from 200 to 1000", 2),
    (SIM, ["--clock", 400], "clock", 1),
])
def test_more_than_the_chip_has_is_refused(device, options, words, code):
    """A value that is out of range is a wrong command line; a device without such a choice is a failure."""
    done = mica("run", MODEL, PICTURE, "--device", device, *options, code=code)
    assert words in done.err and done.out == ""


def test_a_chips_name_is_its_simulator_where_there_is_no_hardware():
    done = mica("run", MODEL, PICTURE, "--device", "rk3588", "--json")
    assert json.loads(done.out)["device"] == ROCKCHIP and "simulated" in done.err


# ---- compile ----


@pytest.fixture(scope="module")
def executable(sim, tmp_path_factory):
    path = tmp_path_factory.mktemp("exe") / "model.mica"
    text = mica("compile", MODEL, "--device", sim, "-o", path).out
    assert path.read_bytes()[:7] == b"MICAEXE"
    assert f"compiled for {sim} in" in text and "KiB" in text
    return path


def test_an_executable_answers_as_its_model(executable, sim, tmp_path, profile):
    mica("run", MODEL, PICTURE, "--device", sim, "-o", tmp_path / "a")
    mica("run", executable, PICTURE, "--device", sim, "-o", tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert mica_json("info", executable, "--device", sim)["summary"] == \
        mica_json("info", MODEL, "--device", sim)["summary"]
    again = mica_json("profile", executable, "--device", sim)
    assert [j["cycles"] for j in again["jobs"]] == [j["cycles"] for j in profile["jobs"]]


def test_an_executable_saved_again_is_the_same(executable, sim, tmp_path):
    text = mica("compile", executable, "--device", sim, "-o", tmp_path / "again").out
    assert (tmp_path / "again").read_bytes() == executable.read_bytes()
    assert "saved" in text and "the model:" not in text  # its size isn't that of the file which was read


def test_compiling_twice_gives_the_same_file(executable, sim, tmp_path):
    mica("compile", MODEL, "--device", sim, "-o", tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == executable.read_bytes()


def test_an_executable_is_for_its_chip_only(executable, sim):
    for device in ("cpu", SIM, ROCKCHIP, "sim:rk3566"):
        if device != sim:
            done = mica("run", executable, PICTURE, "--device", device, code=1)
            assert "error" in done.err


def test_an_executable_runs_on_its_own_chip_unless_told_otherwise(executable, sim, tmp_path):
    """For every command that takes one; what the environment calls auto is no other wish."""
    for env in {}, {"MICA_DEVICE": "auto"}, {"MICA_DEVICE": ""}:
        done = mica("run", executable, PICTURE, "--json", env=env)
        report = json.loads(done.out)
        assert report["device"] == sim and report["outputs"][0]["top"][0]["class"] == 286
        assert "simulated" not in done.err  # nobody asked for the real one by its name
    for command in "info", "profile", "compare":
        assert mica_json(command, executable)["device"] == sim
    assert f"compiled for {sim}" in mica("compile", executable, "-o", tmp_path / "again").out
    assert (tmp_path / "again").read_bytes() == executable.read_bytes()
    assert mica("info", executable, "--device", "auto").out.startswith(f"device: {sim}\n")


def test_an_executable_for_the_cpu_needs_no_npu(tmp_path):
    mica("compile", MODEL, "--device", "cpu", "-o", tmp_path / "cpu.mica")
    assert mica_json("run", tmp_path / "cpu.mica", PICTURE)["device"] == "cpu"


def test_a_device_that_is_named_is_the_one_that_counts(executable, sim):
    other = "rk3566" if sim == SIM else "imx8mp"
    chip = sim.removeprefix("sim:")
    for arguments, env in ([], {"MICA_DEVICE": f"sim:{other}"}), (["--device", f"sim:{other}"], {"MICA_DEVICE": sim}):
        done = mica("run", executable, PICTURE, *arguments, env=env, code=1)
        assert f"was compiled for {chip} and the device is {other}" in done.err


@pytest.mark.parametrize("chip", ["zhouyi", "auto", "../../dev", "drm:/dev/null", "", "a" * 31])
def test_an_executable_for_a_chip_without_a_device_says_so(chip, executable, tmp_path):
    data = bytearray(executable.read_bytes())
    data[16:48] = chip.encode().ljust(32, b"\0")
    (tmp_path / "other.mica").write_bytes(data)
    done = mica("run", tmp_path / "other.mica", PICTURE, code=1)
    assert f"was compiled for the chip '{chip}', for which there is no device here" in done.err and done.out == ""


@pytest.mark.parametrize("size", [8, 20, 47, 63, 64, 127])
def test_an_executable_that_ends_in_its_header_is_damaged(size, executable, tmp_path):
    (tmp_path / "cut.mica").write_bytes(executable.read_bytes()[:size])
    assert "is damaged" in mica("info", tmp_path / "cut.mica", code=1).err


def test_a_chip_without_an_end_is_damage(executable, tmp_path):
    data = bytearray(executable.read_bytes())
    data[16:48] = b"a" * 32
    (tmp_path / "m.mica").write_bytes(data)
    assert "is damaged" in mica("info", tmp_path / "m.mica", code=1).err


def test_damaged_executables_are_refused(executable, sim, tmp_path):
    good, bad = executable.read_bytes(), tmp_path / "bad.mica"
    for damaged in (good[:7], good[:100], good[:-1], good[:5000] + b"\xff" + good[5001:], good + b"x"):
        bad.write_bytes(damaged)
        done = mica("run", bad, PICTURE, "--device", sim, code=1)
        assert "error" in done.err and done.out == ""


CAPTURED_BO = {"index", "access", "handle", "size", "nonzero_end", "va"}


def check_stream(directory, submit):
    """Vivante: words that the front end fetches."""
    assert submit["driver"] == "etnaviv" and submit["chip"] == "a311d"
    assert len((directory / submit["stream"]["file"]).read_bytes()) == 4 * submit["stream"]["words"]


def check_tasks(submit):
    """Rockchip: register programs in a captured buffer, their last word the start."""
    assert submit["driver"] == "rocket" and submit["chip"] == "rk3588"
    for job in submit["jobs"]:
        assert job["tasks"] and not set(job["in_bos"]) & set(job["out_bos"])
        for task in job["tasks"]:
            bo = submit["bos"][task["bo"] - 1]
            assert int(task["regcmd"], 16) == int(bo["va"], 16) + task["offset"]
            assert task["offset"] % 64 == 0 and task["offset"] + 8 * task["regcmd_count"] <= bo["size"]


def check_submission(directory, sim):
    submit = json.loads((directory / "submit.json").read_text())
    assert {"driver", "chip", "index", "bos"} <= set(submit)
    if sim == SIM:
        check_stream(directory, submit)
    else:
        check_tasks(submit)
    for bo in submit["bos"]:
        assert CAPTURED_BO <= set(bo)
        assert bo["access"] in ("r", "w", "rw") and int(bo["va"], 16) % 4096 == 0
        if bo["nonzero_end"] or "file" in bo:
            contents = (directory / bo["file"]).read_bytes()
            assert bo["nonzero_end"] <= len(contents) <= bo["size"]
    return submit


def test_a_capture_has_the_documented_layout(picture_bin, sim, tmp_path):
    directory = tmp_path / "captured"
    mica("compile", MODEL, "--device", sim, "--capture", directory, "--input", picture_bin)
    run = json.loads((directory / "run.json").read_text())
    kinds = {tensor["kind"]: tensor for tensor in run["tensors"]}
    assert kinds["input"]["shape"] == [1, 224, 224, 3] and kinds["input"]["type"] == "UINT8"
    assert kinds["input"]["bytes"] == INPUT_BYTES and kinds["input"]["zero_point"] == 128
    assert kinds["output"]["bytes"] == 1001
    assert (directory / "in_0.bin").read_bytes() == picture_bin.read_bytes()
    submissions = sorted(directory.glob("submit_*"))
    assert [s.name for s in submissions] == [f"submit_{i:04}" for i in range(len(submissions))] != []
    assert [check_submission(s, sim)["index"] for s in submissions] == list(range(len(submissions)))


def test_a_capture_without_inputs_has_zeros(tmp_path):
    text = mica("compile", MODEL, "--device", SIM, "--capture", tmp_path / "c").out
    assert "all-zero inputs" in text
    assert (tmp_path / "c/in_0.bin").read_bytes() == bytes(INPUT_BYTES)


# ---- bad files ----


def png_that_claims(width, height):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes(999))) + chunk(b"IEND", b"")


def bmp_that_claims(width, height):
    return b"BM" + struct.pack("<IHHIIiiHHIIiiII", 54, 0, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)


@pytest.mark.parametrize("name, data, words", [
    ("empty", b"", "no PNG, JPEG or BMP"),
    ("text", b"hello\n", "no PNG, JPEG or BMP"),
    ("svg", b"<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'/>", "no PNG, JPEG or BMP"),
    ("cut.png", PICTURE.read_bytes()[:40000], "cannot read picture"),
    ("header.png", PICTURE.read_bytes()[:20], "cannot read picture"),
    ("bomb.png", png_that_claims(40000, 40000), "more than the limit"),
    ("wide.png", png_that_claims(1000000, 2), "more than the limit"),
    ("none.png", png_that_claims(0, 5), "cannot read picture"),
    ("bomb.bmp", bmp_that_claims(60000, 60000), "more than the limit"),
    ("cut.bmp", bmp_that_claims(9, 9), "cannot read picture"),
    ("cut.jpg", b"\xff\xd8\xff\xe0\0\x10JFIF\0", "cannot read picture"),
])
def test_bad_pictures_are_refused(name, data, words, tmp_path):
    path = tmp_path / name
    path.write_bytes(data)
    done = mica("run", MODEL, path, "--device", "cpu", code=1)
    assert words in done.err and done.out == ""


@pytest.mark.parametrize("data", [b"", b"x", b"TFL3", bytes(4096), b"\xff" * 4096, MODEL.read_bytes()[:300000]],
                         ids=["empty", "one byte", "magic", "zeros", "ones", "cut"])
@pytest.mark.parametrize("command", ["run", "info", "compile", "profile"])
def test_bad_models_are_refused(command, data, tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    more = {"run": [PICTURE], "compile": ["-o", tmp_path / "o"]}.get(command, [])
    done = mica(command, path, *more, "--device", SIM, code=1)
    assert "error" in done.err and done.out == ""
    assert not (tmp_path / "o").exists()


@pytest.mark.parametrize("path", ["missing.tflite", "."])
def test_models_that_cannot_be_read_are_named(path, tmp_path):
    done = mica("info", path, code=1, cwd=tmp_path)
    assert f"'{path}'" in done.err


def test_inputs_of_the_wrong_size_or_number_are_refused(picture_bin, tmp_path):
    for size, said in ((0, "0 bytes"), (INPUT_BYTES - 1, f"{INPUT_BYTES - 1} bytes"),
                       (INPUT_BYTES + 1, f"more than {INPUT_BYTES} bytes")):
        path = tmp_path / "in.bin"
        path.write_bytes(bytes(size))
        done = mica("run", MODEL, "--input", path, "--device", "cpu", code=1)
        assert said in done.err and f"needs {INPUT_BYTES}" in done.err
    done = mica("run", MODEL, "--input", picture_bin, "--input", picture_bin, "--device", "cpu", code=1)
    assert "1 input," in done.err and "2 times" in done.err
    done = mica("run", MODEL, "--input", tmp_path / "missing", "--device", "cpu", code=1)
    assert "cannot open" in done.err
    done = mica("run", MODEL, PICTURE, "-o", tmp_path / "a", "-o", tmp_path / "b", "--device", "cpu", code=1)
    assert "1 output" in done.err
    mica("run", MODEL, PICTURE, "-o", tmp_path / "no/such/folder", "--device", "cpu", code=1)
    mica("compile", MODEL, "-o", tmp_path / "no/such/folder", "--device", SIM, code=1)
    mica("compile", MODEL, "--capture", tmp_path / "in.bin", "--device", SIM, code=1)


# ---- output ----


def test_output_that_cannot_be_written_is_a_failure():
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "wb") as full:
        done = subprocess.run([MICA, "info", MODEL, "--device", "cpu"], stdout=full, stderr=subprocess.PIPE, env=ENV)
    assert done.returncode == 1 and b"cannot write the output" in done.stderr


def test_a_reader_that_goes_away_makes_no_noise():
    done = subprocess.run(["bash", "-c", '"$0" info "$1" --device cpu --json | head -1', MICA, MODEL],
                          capture_output=True, env=ENV)
    assert done.stdout == b"{\n" and done.stderr == b""


def test_progress_shows_on_a_terminal_only(picture_bin):
    once = mica_json("run", MODEL, "--input", picture_bin, "--device", "cpu", "--repeat", 5)["ms"]["min"]
    runs = max(int(2000 / once) + 1, 2)  # two seconds or more
    command = [MICA, "run", MODEL, "--input", picture_bin, "--device", "cpu", "--repeat", str(runs), "--json"]
    master, slave = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, env=ENV)
    os.close(slave)
    shown = b""
    try:
        while chunk := os.read(master, 4096):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    answer = json.loads(process.communicate()[0])
    os.close(master)
    assert process.returncode == 0 and answer["runs"] == runs
    assert b"running... 1 s" in shown and f" of {runs}".encode() in shown
    assert b"running" not in subprocess.run(command, capture_output=True, env=ENV).stderr
