# SPDX-License-Identifier: MIT
"""docs/operations.md, made of what `mica devices --operations --json` prints.

    python tests/pytools/operations_doc.py build/tools/mica/mica > docs/operations.md
"""

import json
import subprocess
import sys

HEAD = """<!-- SPDX-License-Identifier: MIT -->
<!-- Made by tests/pytools/operations_doc.py. Don't edit: change the tables in src/npu/*/compile/operations.* instead. -->
# Which operations run on which chip

`mica devices --operations` prints these tables (`--device NAME` one chip's, `--json` for programs); the compilers' rooms
keep them beside what decides, `src/npu/*/compile/operations.*`. `tests/conformance/test_operation_table.py` proves that
they tell the truth: it makes a model for each row and type, at and beyond each limit that is a number, asks
`mica info` where it would run, and compares what the device computes with TFLite's reference kernels. What has no row
runs on the CPU; `mica info MODEL` says where each operation of a model runs, and if not on the NPU, why. Scales and
sizes of one operation may forbid what the table allows in general.

This page is made by

    python tests/pytools/operations_doc.py build/tools/mica/mica > docs/operations.md

## At a glance

How far values may be from TFLite's reference kernels: *exact*, or a number of quantized steps. In every case the
simulator gives the values of the hardware model, bit for bit.

"""


def read(mica):
    done = subprocess.run([mica, "devices", "--operations", "--json"], capture_output=True, text=True, check=True)
    return {device["name"].removeprefix("sim:"): device["operations"] for device in json.loads(done.stdout)["devices"]}


def exactness(row):
    return f"at most {row['off']} off" if row["off"] else "exact"


def table(headers, rows):
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [headers, ["---"] * len(headers), *rows]) + "\n"


def glance(chips):
    names = list(dict.fromkeys(row["name"] for rows in chips.values() for row in rows))
    by_name = {chip: {row["name"]: row for row in rows} for chip, rows in chips.items()}
    cells = [[name, *(exactness(rows[name]) if name in rows else "CPU" for rows in by_name.values())]
             for name in sorted(names)]
    counts = ["operations", *(str(len(rows)) for rows in chips.values())]
    return table(["", *chips], [*cells, counts])


def details(rows):
    cells = [[row["name"], " ".join(row["types"]), row["how"], exactness(row), row["limits_text"]] for row in rows]
    return table(["operation", "types", "how", "exactness", "limits"], cells)


def document(chips):
    groups = {}
    for chip, rows in chips.items():
        groups.setdefault(json.dumps(rows), []).append(chip)
    parts = [HEAD + glance(chips)]
    for key, names in groups.items():
        parts.append(f"\n## {' and '.join(names)}\n\n" + details(json.loads(key)))
    return "".join(parts)


if __name__ == "__main__":
    sys.stdout.write(document(read(sys.argv[1])))
