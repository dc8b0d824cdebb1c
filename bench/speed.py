# SPDX-License-Identifier: MIT
"""Wall times on this machine: preparing, simulating, the delegate's overhead; each as a multiple of LiteRT's."""

import math
import re
import subprocess
import sys
import time

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

from common import MOBILEDET, MOBILENET_V1, number, table, title

# Prepare time of another open compiler on a machine where XNNPACK runs MobileNetV1 in 8 to 10 ms, in milliseconds.
# The promise is a third of it; 10 ms makes it the strictest multiple.
OTHER_PREPARE_MS = {
    ("a311d", MOBILENET_V1): 217,
    ("a311d", MOBILEDET): 923,
    ("imx8mp", MOBILENET_V1): 119,
    ("imx8mp", MOBILEDET): 128,
}
XNNPACK_THERE_MS = 10
# Rockchip's bars: prepare in milliseconds, and simulating no slower than LiteRT's reference kernels.
MOST_PREPARE_MS = {("rk3588", MOBILENET_V1): 100, ("rk3566", MOBILENET_V1): 100}
EFFORTS = {"default": [], "size": ["optimize=size"]}


def random_inputs(interpreter):
    generator = np.random.default_rng(1)
    for detail in interpreter.get_input_details():
        info = np.iinfo(detail["dtype"])
        value = generator.integers(info.min, info.max + 1, detail["shape"], dtype=detail["dtype"])
        interpreter.set_tensor(detail["index"], value)


def invoke_ms(interpreter, repeats):
    """Least wall time of an invocation, in milliseconds."""
    random_inputs(interpreter)
    interpreter.invoke()
    best = math.inf
    for _ in range(repeats):
        start = time.perf_counter()
        interpreter.invoke()
        best = min(best, time.perf_counter() - start)
    return best * 1e3


def litert_ms(path, resolver, repeats):
    interpreter = Interpreter(str(path), num_threads=1, experimental_op_resolver_type=resolver)
    interpreter.allocate_tensors()
    return invoke_ms(interpreter, repeats)


DELEGATE_CHILD = """
import sys, numpy as np
from ai_edge_litert.interpreter import Interpreter, load_delegate
library, path, device, repeats = sys.argv[1:]
delegate = load_delegate(library, {"device": device, "threads": "1", "profile": "1"})
interpreter = Interpreter(path, num_threads=1, experimental_delegates=[delegate])
interpreter.allocate_tensors()
for detail in interpreter.get_input_details():
    interpreter.set_tensor(detail["index"], np.zeros(detail["shape"], detail["dtype"]))
for _ in range(int(repeats)):
    interpreter.invoke()
"""


def delegate_overhead_ms(tools, path, device, repeats):
    """What the delegate adds to one inference with the device's work taken out, by its own profile, in milliseconds."""
    library = str(tools.build / "src/delegate/libmica_delegate.so")
    command = [sys.executable, "-c", DELEGATE_CHILD, library, str(path), device, str(repeats)]
    text = subprocess.run(command, capture_output=True, text=True).stderr
    found = re.search(r"(\d+) partitions, .* ([\d.]+) ms each, ([\d.]+) ms of it waiting", text)
    return int(found[1]) * (float(found[2]) - float(found[3])) if found else None


def measure_host(tools, models, repeats):
    """What does not depend on a chip."""
    host = {}
    for name, path in models.items():
        cpu = tools.measure(path, "cpu", max(2, repeats // 4))
        host[name] = {
            "xnnpack_ms": litert_ms(path, OpResolverType.AUTO, 10 * repeats),
            "reference_ms": litert_ms(path, OpResolverType.BUILTIN_REF, 2),
            "cpu_kernels_ms": cpu["invoke_ms"]["min"] if cpu else None,
        }
    return host


def measure_chip(tools, chip, name, path, unit, repeats):
    """`unit`: LiteRT XNNPACK's MobileNetV1, of which prepare times are multiples."""
    row = {"chip": chip, "model": name}
    for effort, options in EFFORTS.items():
        measured = tools.measure(path, f"sim:{chip}", repeats, options)
        row[f"prepare_{effort}_ms"] = measured["prepare_ms"]["min"] if measured else None
        row[f"prepare_{effort}_multiple"] = measured["prepare_ms"]["min"] / unit if measured else None
        if effort == "default":
            row["simulate_ms"] = measured["invoke_ms"]["min"] if measured else None
    measured = tools.measure(path, f"sim:{chip}", repeats, threads=0)
    row["prepare_threads_ms"] = measured["prepare_ms"]["min"] if measured else None
    row["delegate_overhead_ms"] = delegate_overhead_ms(tools, path, f"sim:{chip}", 10 * repeats)
    return row


def ratio(value, base):
    return None if value is None else value / base


def show(host, rows, unit):
    title("Times on this machine, one thread")
    table(
        ["model", "LiteRT XNNPACK ms", "LiteRT reference ms", "Mica CPU kernels ms", "x reference"],
        [[name, h["xnnpack_ms"], h["reference_ms"], h["cpu_kernels_ms"], ratio(h["cpu_kernels_ms"], h["reference_ms"])]
         for name, h in host.items()],
    )
    print(f"\nprepare: as a multiple of LiteRT XNNPACK's MobileNetV1, {unit:.2f} ms in this run; size: optimize=size;")
    print("simulate: an inference, beside LiteRT's reference kernels; delegate: its overhead, device taken out")
    header = ["prepare ms", "multiple", "all threads ms", "size ms", "multiple", "simulate ms", "x reference",
              "delegate ms"]
    keys = ["prepare_default_ms", "prepare_default_multiple", "prepare_threads_ms", "prepare_size_ms",
            "prepare_size_multiple", "simulate_ms"]
    table(["model", "chip", *header], [
        [r["model"], r["chip"], *(r[key] for key in keys), ratio(r["simulate_ms"], host[r["model"]]["reference_ms"]),
         number(r["delegate_overhead_ms"], 3)] for r in rows])


def check(host, rows, bars):
    for row in rows:
        most = MOST_PREPARE_MS.get((row["chip"], row["model"]))
        if most:
            bars.check(f"prepare {row['model']} on {row['chip']}", row["prepare_default_ms"], most, "ms")
            bars.check(f"simulate {row['model']} on {row['chip']}",
                       ratio(row["simulate_ms"], host[row["model"]]["reference_ms"]), 1, "x LiteRT reference")
        other = OTHER_PREPARE_MS.get((row["chip"], row["model"]))
        if other:
            limit = other / 3 / XNNPACK_THERE_MS
            what = f"prepare {row['model']} on {row['chip']}"
            bars.check(what, row["prepare_default_multiple"], limit, "x XNNPACK MobileNetV1")
            bars.check(f"{what}, optimize=size", row["prepare_size_multiple"], 2 * limit, "x XNNPACK MobileNetV1")


def run(tools, chips, models, repeats, bars):
    host = measure_host(tools, models, repeats)
    unit = host[MOBILENET_V1]["xnnpack_ms"]
    rows = [measure_chip(tools, chip, name, path, unit, repeats) for name, path in models.items() for chip in chips]
    show(host, rows, unit)
    check(host, rows, bars)
    return {"host": host, "chips": rows}
