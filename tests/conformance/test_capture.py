# SPDX-License-Identifier: MIT
"""`mica capture -- COMMAND`: the exit code is the command's, and what it submits is written down."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MICA_BUILD", ROOT / "build")).resolve()
MICA = BUILD / "tools/mica/mica"
VNPU = BUILD / "src/vnpu/libmica_vnpu.so"
CLIENT = BUILD / "tests/unit/vnpu/vnpu_client"
CAPTURE = ROOT.parent / "shared/captures/conv_u8_i8_k3_ic16_oc16_s1_p1/a311d"

pytestmark = pytest.mark.skipif(
    not (MICA.exists() and (BUILD / "src/intercept/libmica_capture.so").exists()), reason="mica is not built")


def capture(folder, *command, **environment):
    return subprocess.run([MICA, "capture", "-o", folder, "--", *command], env={**os.environ, **environment},
                          capture_output=True, text=True, timeout=120)


def test_exit_code_and_output_are_the_commands(tmp_path):
    done = capture(tmp_path / "c", "sh", "-c", "echo printed; exit 7")
    assert (done.returncode, done.stdout) == (7, "printed\n")
    assert "nothing was captured" in done.stderr
    assert not (tmp_path / "c").exists()


def test_a_signal_ends_with_the_shells_code(tmp_path):
    assert capture(tmp_path / "c", "sh", "-c", "kill -9 $$").returncode == 128 + 9


def test_options_of_the_command_are_its_own(tmp_path):
    done = subprocess.run([MICA, "capture", "-o", tmp_path / "c", "echo", "-n", "--help"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "--help")


def test_an_older_capture_is_not_mixed_with_a_new_one(tmp_path):
    (tmp_path / "file").touch()
    done = capture(tmp_path, "true")
    assert done.returncode == 1 and "is not empty" in done.stderr


def test_what_cannot_be_run_is_said(tmp_path):
    done = capture(tmp_path / "c", "/nowhere/program")
    assert done.returncode == 1 and "/nowhere/program" in done.stderr
    assert subprocess.run([MICA, "capture"], capture_output=True).returncode == 2


@pytest.mark.skipif(not (VNPU.exists() and CLIENT.exists() and CAPTURE.exists()), reason="needs the virtual NPU")
def test_submissions_are_written_down(tmp_path):
    done = capture(tmp_path / "c", CLIENT, CAPTURE, "/dev/dri/renderD128", LD_PRELOAD=str(VNPU), MICA_VNPU_CHIP="a311d")
    assert done.returncode == 0, done.stderr
    submit = json.loads((tmp_path / "c/submit_0001/submit.json").read_text())
    assert submit["chip"] == "a311d" and submit["after"] == "waited"
    assert (tmp_path / "c/submit_0001/stream.bin").read_bytes() == (CAPTURE / "submit_0001/stream.bin").read_bytes()
    written = [bo for bo in submit["bos"] if "w" in bo["access"]]
    assert any((CAPTURE / "cpu_0.bin").read_bytes() in (tmp_path / "c/submit_0001" / bo["file_after"]).read_bytes()
               for bo in written)
