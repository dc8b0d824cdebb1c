# SPDX-License-Identifier: MIT
"""Measures what the README claims, each figure beside what a user would use instead, in one run.

Prepare and invocation times are compared with LiteRT on one thread (XNNPACK, and the reference kernels), coefficient
bytes with the raw weights and their order-0 entropy. Modelled times come from a timing model, not from silicon.
"""

import argparse
import json
import math
import pathlib
import re
import subprocess
import sys
import time

import numpy as np
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter, OpResolverType

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHIPPED = ROOT / "share/mica/mobilenet_v1_1.0_224_quant.tflite"
SHARED = ROOT.parent / "shared/models"
MODELS = [
    SHIPPED,
    SHARED / "mobilenet_v2_1.0_224_quant.tflite",
    SHARED / "ssdlite_mobiledet_coco_qat_postprocess.tflite",
]
WEIGHTED = {
    schema.BuiltinOperator.CONV_2D,
    schema.BuiltinOperator.DEPTHWISE_CONV_2D,
    schema.BuiltinOperator.FULLY_CONNECTED,
}


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


def weight_sizes(path):
    """Bytes of all convolution weights, and what an ideal order-0 coder would need, layer by layer."""
    model = schema.ModelT.InitFromPackedBuf(path.read_bytes(), 0)
    graph = model.subgraphs[0]
    raw, entropy = 0, 0.0
    for operator in graph.operators:
        code = model.operatorCodes[operator.opcodeIndex]
        if max(code.builtinCode, code.deprecatedBuiltinCode) not in WEIGHTED:
            continue
        data = np.asarray(model.buffers[graph.tensors[operator.inputs[1]].buffer].data, dtype=np.uint8)
        share = np.bincount(data, minlength=256) / data.size
        share = share[share > 0]
        raw += data.size
        entropy -= data.size * float(np.sum(share * np.log2(share))) / 8
    return {"raw_bytes": raw, "entropy_bytes": round(entropy)}


def measure(build, path, device, repeats):
    command = [str(build / "bench/measure"), str(path), device, "1", str(repeats)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def bench_model(build, path, device, repeats):
    xnnpack = litert_ms(path, OpResolverType.AUTO, 10 * repeats)
    reference = litert_ms(path, OpResolverType.BUILTIN_REF, 2)
    mica = measure(build, path, device, repeats)
    cpu = measure(build, path, "cpu", max(2, repeats // 4))
    overhead = delegate_overhead_ms(build, path, device, 10 * repeats)
    sizes = weight_sizes(path)
    return {
        "model": path.name,
        "device": device,
        "litert_xnnpack_ms": xnnpack,
        "litert_reference_ms": reference,
        "prepare_ms": mica["prepare_ms"]["min"],
        "prepare_to_xnnpack": mica["prepare_ms"]["min"] / xnnpack,
        "simulate_ms": mica["invoke_ms"]["min"],
        "simulate_to_reference": mica["invoke_ms"]["min"] / reference,
        "cpu_kernels_ms": cpu["invoke_ms"]["min"],
        "cpu_kernels_to_reference": cpu["invoke_ms"]["min"] / reference,
        "delegate_overhead_ms": overhead,
        "delegate_overhead_to_xnnpack": overhead / xnnpack,
        "modelled_ms": mica["modelled_ms"],
        "jobs": mica["jobs"],
        "read_bytes": mica["read_bytes"],
        "write_bytes": mica["write_bytes"],
        "coefficient_bytes": mica["coefficient_bytes"],
        "coefficient_to_raw": mica["coefficient_bytes"] / sizes["raw_bytes"],
        "coefficient_to_entropy": mica["coefficient_bytes"] / sizes["entropy_bytes"],
        **sizes,
    }


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


def delegate_overhead_ms(build, path, device, repeats):
    """What the delegate adds to one inference with the device's work taken out, by its own profile, in milliseconds."""
    library = str(build / "src/delegate/libmica_delegate.so")
    command = [sys.executable, "-c", DELEGATE_CHILD, library, str(path), device, str(repeats)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    found = re.search(r"(\d+) partitions, .* ([\d.]+) ms each, ([\d.]+) ms of it waiting", text)
    return int(found[1]) * (float(found[2]) - float(found[3]))


def show(row):
    print(f"\n{row['model']} on {row['device']}, one thread")
    print(f"  prepare             {row['prepare_ms']:9.1f} ms   {row['prepare_to_xnnpack']:6.2f} x LiteRT XNNPACK's inference")
    print(f"  simulated inference {row['simulate_ms']:9.1f} ms   {row['simulate_to_reference']:6.2f} x LiteRT reference kernels ({row['litert_reference_ms']:.1f} ms)")
    print(f"  CPU kernels         {row['cpu_kernels_ms']:9.1f} ms   {row['cpu_kernels_to_reference']:6.2f} x LiteRT reference kernels")
    print(f"  delegate's overhead {row['delegate_overhead_ms']:9.3f} ms   {row['delegate_overhead_to_xnnpack']:6.3f} x LiteRT XNNPACK's inference, device's work taken out")
    print(f"  LiteRT XNNPACK      {row['litert_xnnpack_ms']:9.1f} ms")
    print(f"  modelled on chip    {row['modelled_ms']:9.2f} ms   (estimate, {row['jobs']} jobs)")
    print(f"  coefficients        {row['coefficient_bytes']:9d} B    {row['coefficient_to_raw']:6.3f} x raw weights, {row['coefficient_to_entropy']:.3f} x order-0 entropy")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build", help="meson build directory")
    parser.add_argument("--device", default="sim:a311d")
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", type=pathlib.Path, help="also write the figures here")
    arguments = parser.parse_args()
    rows = []
    for path in MODELS:
        if not path.exists():
            print(f"\n{path.name}: not on this machine, left out")
            continue
        rows.append(bench_model(arguments.build.resolve(), path, arguments.device, arguments.repeats))
        show(rows[-1])
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
