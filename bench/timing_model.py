# SPDX-License-Identifier: MIT
"""How well the timing model does against the points it was fitted to, as its test measures it."""

import re

from common import table, title

# Median and 90th percentile per chip that the hardware specification's timing page reports for these points, in per
# cent: single layers, and all.
REPORTED = {
    ("a311d", "single layers"): (2.6, 16),
    ("a311d", "all"): (2.6, 21),
    ("s905d3", "single layers"): (2.9, 16),
    ("s905d3", "all"): (3.0, 19),
    ("imx8mp", "single layers"): (1.9, 20),
    ("imx8mp", "all"): (8.4, 18),
}
LINE = re.compile(r"^(\w+)\s+(\S.*\S)\s+(\d+) points, median\s+([\d.]+) %, p90\s+([\d.]+) %", re.MULTILINE)


def run(tools, bars):
    text = tools.run("tests/unit/vivante-sim/test_vivante_timing")
    rows = [{"chip": chip, "what": what, "points": int(points), "median": float(median), "p90": float(p90)}
            for chip, what, points, median, p90 in LINE.findall(text or "")]
    title("Timing model against the vendor compiler's estimates, per cent of a job's cycles")
    if not rows:
        print("the points are not on this machine, left out")
    table(["chip", "figures", "points", "median", "90 %"],
          [[row["chip"], row["what"], str(row["points"]), row["median"], row["p90"]] for row in rows])
    for row in rows:
        reported = REPORTED.get((row["chip"], row["what"].removeprefix("cycles, bytes given, ")))
        if reported and row["what"].startswith("cycles, bytes given"):
            what = f"timing model on {row['chip']}, {row['what'].removeprefix('cycles, bytes given, ')}"
            bars.check(f"{what}, median", round(row["median"], 1), reported[0], "%", 1)
            bars.check(f"{what}, 90th percentile", round(row["p90"]), reported[1], "%", 0)
    return rows
