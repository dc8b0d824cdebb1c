# SPDX-License-Identifier: MIT
"""How well Rockchip's timing model does against the vendor's tables, and what three cores gain, as its test finds it."""

import re

from common import table, title

TABLE = re.compile(r"^(\w+) (\w+) (\d+) layers, (\d+) computed exactly, total (\d+) of (\d+), off ([\d.]+) %, "
                   r"layer ([\d.]+) %, traffic ([\d.]+) %", re.MULTILINE)
STREAM = re.compile(r"^(\w+) (\w+) (\d+) MHz, three cores: at most ([\d.]+), in step ([\d.]+), "
                    r"with dispatch ([\d.]+)", re.MULTILINE)
# Issue bars: layers and networks within 5 % of the vendor's cycles, three cores 2.2 times one.
MOST_OFF = 5
STREAM_BAR = ("mobilenet_v1", 800, 2.2)


def show_tables(text, bars):
    keys = ["chip", "network", "layers", "exact", "ours", "vendor", "off", "layer_off", "traffic_off"]
    rows = [dict(zip(keys, [*match[:2], *map(int, match[2:6]), *map(float, match[6:])]))
            for match in TABLE.findall(text)]
    table(["chip", "network", "layers", "compute exact", "total", "vendor's", "off %", "worst layer", "worst traffic"],
          [[row["chip"], row["network"], str(row["layers"]), str(row["exact"]), f"{row['ours']:,}",
            f"{row['vendor']:,}", f"{row['off']:.4f}", row["layer_off"], row["traffic_off"]] for row in rows])
    for row in rows:
        what = f"timing model on {row['chip']}, {row['network']}"
        bars.check(f"{what}, total", row["off"], MOST_OFF, "%")
        bars.check(f"{what}, worst layer", row["layer_off"], MOST_OFF, "%")
    return rows


def show_streams(text, bars):
    keys = ["chip", "network", "mhz", "cap", "in_step", "with_dispatch"]
    rows = [dict(zip(keys, [*match[:2], int(match[2]), *map(float, match[3:])])) for match in STREAM.findall(text)]
    title("Three cores of RK3588 that share the memory, times the throughput of one")
    table(["network", "MHz", "at most", "in step", "with dispatch"],
          [[row["network"], str(row["mhz"]), row["cap"], row["in_step"], row["with_dispatch"]] for row in rows])
    for row in rows:
        if (row["network"], row["mhz"]) == STREAM_BAR[:2]:
            what = f"stream of {row['network']} on three cores at {row['mhz']} MHz, time an inference"
            bars.check(what, 1 / row["in_step"], 1 / STREAM_BAR[2], "x one core", 4)
    return rows


def run(tools, bars):
    text = tools.run("tests/unit/rockchip-hw/test_rockchip_timing")
    title("Rockchip's timing model against the vendor's tables, cycles at 1 GHz")
    if not text:
        print("the tables are not on this machine, left out")
        return {}
    return {"tables": show_tables(text, bars), "streams": show_streams(text, bars)}
