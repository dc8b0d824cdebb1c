# SPDX-License-Identifier: MIT
"""The rooms include only what the architecture lets them see."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
SRC = ROOT / "src"

# Room -> the first path parts of what it may include with quotes, besides its own files.
MAY_SEE = {
    "util": [],
    "graph": ["mica/mica.h", "util/"],
    "frontend/tflite": ["mica/mica.h", "graph/", "util/"],
    "cpu": ["mica/mica.h", "graph/", "util/"],
    "npu/vivante/hw": ["util/", "npu/on_chip.h"],
    "npu/vivante/sim": ["mica/mica.h", "npu/npu.h", "npu/device_memory.h", "npu/program.h", "npu/vivante/hw/", "util/"],
    "npu/vivante/compile": ["mica/mica.h", "graph/", "npu/npu.h", "npu/program.h", "npu/vivante/hw/", "util/"],
    "winsys": ["npu/npu.h", "npu/device_memory.h", "npu/program.h", "util/"],
    "delegate": ["mica/mica.h", "graph/", "runtime/", "npu/npu.h", "npu/program.h", "winsys/winsys.h", "util/"],
}


def includes(path):
    return re.findall(r'^\s*#\s*include\s+"([^"]+)"', path.read_text(), re.MULTILINE)


def test_rooms_see_only_what_they_may():
    bad = []
    for room, allowed in MAY_SEE.items():
        files = [f for f in (SRC / room).glob("*") if f.suffix in (".c", ".h", ".cc")]
        assert files, f"room {room} is empty"
        for file in files:
            for name in includes(file):
                own = name.startswith(room + "/") or (file.parent / name).exists()
                generated = name.endswith("_generated.h")
                if not (own or generated or any(name.startswith(prefix) for prefix in allowed)):
                    bad.append(f"{file.relative_to(ROOT)} includes {name}")
    assert not bad, "\n".join(bad)


def test_every_source_file_names_its_licence():
    suffixes = {".c", ".h", ".cc", ".def", ".py", ".build", ".fbs"}
    folders = ["src", "include", "tools", "tests", "bench"]
    files = [f for folder in folders for f in (ROOT / folder).rglob("*") if f.suffix in suffixes]
    missing = [str(f.relative_to(ROOT)) for f in files if "SPDX-License-Identifier:" not in f.read_text()[:300]]
    assert not missing, missing
