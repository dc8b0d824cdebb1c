# SPDX-License-Identifier: MIT
"""Rockchip's modelled times beside the vendor compiler's tables, and what streams gain on three cores. Estimates."""

import csv

from common import MOBILENET_V1, MOBILENET_V2, SHARED, number, table, title

CLOCKS = (200, 1000)  # mainline's, and what the vendor's tables count at
TABLES = {MOBILENET_V1: "mobilenet_v1", MOBILENET_V2: "mobilenet_v2"}
STREAM_BAR = (MOBILENET_V1, "rk3588", "800", 2.2)
SHOWN = 0.01  # layers that differ by so much from the vendor's
# Why a layer's time is another than the vendor's.
FOLDED = "two columns of the input are one with twice the channels: six taps instead of nine"
MEAN = "surfaces stand side by side, so that a depthwise group takes more than one pixel at a time"
APART = "the addition is a task of its own, as the convolution has to clamp first"
ROWS = "rows at the border of two tasks are fetched twice"


def vendor_layers(chip, name):
    """[operation, cycles] of the layers that cost anything, or [] where the tables are not."""
    path = SHARED / "spec/rockchip/perf" / f"{chip}-{TABLES.get(name)}.csv"
    if not path.exists():
        return []
    with path.open() as file:
        return [(row["op"], int(row["total_cycles"])) for row in csv.DictReader(file) if int(row["total_cycles"])]


def our_layers(jobs):
    """[[type, cycles, tasks, apart]] of the operations, additions in the layer before them as the vendor has them."""
    layers, last = [], None
    for job in jobs:
        addition = job["type"] == "ADD" and layers
        if job["operation"] != last and not addition:
            layers.append([job["type"], 0, 0, False])
        last = job["operation"]
        layers[-1][1] += job["cycles"]
        layers[-1][2] += 1
        layers[-1][3] |= addition and job["unit"] == "EW"
    return layers


def lever(index, kind, tasks, apart):
    return FOLDED if index == 0 else MEAN if "POOL" in kind else APART if apart else ROWS if tasks > 1 else "-"


def measure(tools, chip, name, path):
    row = {"chip": chip, "model": name}
    for clock in CLOCKS:
        measured = tools.measure(path, f"sim:{chip}", 1, [f"clock={clock}"])
        jobs = [job for job in measured["jobs"] if job["unit"] != "CPU"]
        row[clock] = {"npu_ms": sum(job["us"] for job in jobs) / 1e3,
                      "dispatch_ms": sum(job["dispatch_us"] for job in jobs) / 1e3}
    row["tasks"], row["cycles"] = len(jobs), sum(job["cycles"] for job in jobs)
    row["megabytes"] = sum(job["read_bytes"] + job["write_bytes"] for job in jobs) / 1e6
    row["streams"] = measured["streams"]
    vendor, ours = vendor_layers(chip, name), our_layers(jobs)
    row["vendor"] = sum(cycles for _, cycles in vendor) or None
    both = list(zip(ours, vendor)) if len(ours) == len(vendor) else []
    row["layers"] = [{"index": i, "type": kind, "ours": cycles, "vendor": theirs, "lever": lever(i, kind, tasks, apart)}
                     for i, ((kind, cycles, tasks, apart), (_, theirs)) in enumerate(both)]
    return row


def show(rows):
    title("Rockchip's modelled times")
    print("Cycles at 1000 MHz, of one core, without dispatch, as the vendor compiler's tables have them. ms: at the")
    print("clock, and what kernel and interrupts take to start the tasks, which no clock changes.")
    table(["model", "chip", "tasks", "MB", "cycles", "vendor's", "%", "ms at 200 MHz", "at 1000 MHz", "dispatch"], [
        [row["model"], row["chip"], str(row["tasks"]), number(row["megabytes"], 1), f"{row['cycles']:,}",
         number(row["vendor"], 0), number(row["vendor"] and 100 * (row["cycles"] / row["vendor"] - 1), 1),
         row[200]["npu_ms"], row[1000]["npu_ms"], row[1000]["dispatch_ms"]] for row in rows])


def show_layers(rows):
    cells = [[f"{row['model']} {layer['index']} {layer['type']}", row["chip"], f"{layer['ours']:,}",
              f"{layer['vendor']:,}", f"{layer['ours'] - layer['vendor']:+,}", layer["lever"]]
             for row in rows for layer in row["layers"] if abs(layer["ours"] / layer["vendor"] - 1) > SHOWN]
    if cells:
        title("Layers that take more or less than the vendor's, by 1 % or more")
        table(["layer", "chip", "cycles", "vendor's", "difference", "why"], cells)


def show_streams(rows):
    title("Streams of independent inferences, the cores sharing the memory, dispatch included")
    table(["model", "chip", "MHz", "one core, ms each", "two cores", "three cores", "times one core"], [
        [row["model"], row["chip"], clock, *(us / 1e3 for us in times), times[0] / times[-1]]
        for row in rows for clock, times in row["streams"].items() if len(times) > 1])


def check(rows, bars):
    for row in rows:
        if row["vendor"]:
            what = f"modelled {row['model']} on {row['chip']}, cycles"
            bars.check(what, row["cycles"] / row["vendor"], 1, "x vendor's", 3)
        model, chip, clock, gain = STREAM_BAR
        if (row["model"], row["chip"]) == (model, chip):
            times = row["streams"][clock]
            what = f"stream of {model} on three cores of {chip} at {clock} MHz, time an inference"
            bars.check(what, times[2] / times[0], 1 / gain, "x one core", 4)


def run(tools, chips, models, bars):
    rows = [measure(tools, chip, name, path) for name, path in models.items() for chip in chips]
    if rows:
        show(rows)
        show_layers(rows)
        show_streams(rows)
    check(rows, bars)
    return rows
