# SPDX-License-Identifier: MIT
"""What all parts of the bench share: where things are, the C tools beside them, tables, and bars."""

import json
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
MOBILENET_V1, MOBILENET_V2, MOBILEDET = "MobileNetV1", "MobileNetV2", "MobileDet"
MODELS = {
    MOBILENET_V1: ROOT / "share/mica/mobilenet_v1_1.0_224_quant.tflite",
    MOBILENET_V2: SHARED / "models/mobilenet_v2_1.0_224_quant.tflite",
    MOBILEDET: SHARED / "models/ssdlite_mobiledet_coco_qat_postprocess.tflite",
}
CHIPS = ["a311d", "s905d3", "imx8mp"]
ROCKCHIP_CHIPS = ["rk3588", "rk3566"]


def models_here():
    for name, path in MODELS.items():
        if not path.exists():
            print(f"{name}: not on this machine, left out")
    return {name: path for name, path in MODELS.items() if path.exists()}


class Tools:
    """The programs that the build made."""

    def __init__(self, build):
        self.build = build.resolve()

    def run(self, program, *arguments):
        """Standard output, or None, with the reason on standard error, when the program fails."""
        command = [str(self.build / program), *map(str, arguments)]
        if not pathlib.Path(command[0]).exists():
            print(f"{program}: was not built, left out", file=sys.stderr)
            return None
        result = subprocess.run(command, capture_output=True, text=True)
        if result.returncode:
            print(f"{program}: {result.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        return result.stdout

    def run_json(self, program, *arguments):
        text = self.run(program, *arguments)
        return None if text is None else json.loads(text)

    def chips(self, of=tuple(CHIPS)):
        """Which of these chips this build can simulate."""
        devices = self.run_json("tools/mica/mica", "devices", "--json")["devices"]
        available = {device["name"] for device in devices if device["available"]}
        return [chip for chip in of if f"sim:{chip}" in available]

    def measure(self, path, device, repeats=1, options=(), threads=1):
        return self.run_json("bench/measure", path, device, threads, repeats, *options)


class Bars:
    """What was promised, what was reached, and whether that is enough."""

    def __init__(self):
        self.rows = []

    def check(self, what, value, limit, unit, digits=2):
        """`value` None: not measured, which is not met."""
        met = value is not None and value <= limit
        self.rows.append({"bar": what, "value": value, "limit": limit, "unit": unit, "met": met, "digits": digits})

    def show(self):
        title("Bars")
        table(
            ["what", "measured", "at most", "unit", ""],
            [
                [row["bar"], number(row["value"], row["digits"]), number(row["limit"], row["digits"]), row["unit"],
                 "met" if row["met"] else "NOT MET" if row["value"] is not None else "NOT MEASURED"]
                for row in self.rows
            ],
        )
        print(f"{sum(row['met'] for row in self.rows)} of {len(self.rows)} met")


def title(text):
    print(f"\n{text}\n{'-' * len(text)}")


def number(value, digits=2):
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, str):
        return value
    return f"{value:,.{digits}f}" if digits else f"{round(value):,}"


def table(header, rows):
    """First column to the left, the others to the right."""
    rows = [header] + [[cell if isinstance(cell, str) else number(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for i, row in enumerate(rows):
        cells = [row[0].ljust(widths[0])] + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:])]
        print("  ".join(cells).rstrip())
        if i == 0:
            print("  ".join("-" * width for width in widths))
