#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Parameter structures in a real TFLite runtime against the files they come from.

    test_abi.py PROBE SHARED_DIR [FOLDER]

PROBE is the delegate of abi_probe.c. Runs it over the model collection and, where the runtime is
LiteRT, over a model of every operation that model_builder.py makes; these are
left in FOLDER, if given, and taken from there by a runtime that can't make them.
Exits with 77 where there is no runtime.
"""

import os
import pathlib
import sys
import tempfile

try:
    from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate
except ImportError:
    try:
        from tflite_runtime.interpreter import Interpreter, OpResolverType, load_delegate
    except ImportError:
        sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "pytools"))


def built_models():
    """(name, bytes) of one model for every operation and type."""
    import model_builder as mb

    image = (1, 8, 6, 4)
    builders = {
        "transpose_conv": lambda d: mb.transpose_conv((4, 5), 3, 6, (3, 3), dtype=d),
        "transpose_conv_valid": lambda d: mb.transpose_conv((4, 5), 3, 6, (4, 2), (2, 1), "VALID", dtype=d),
        "transpose_conv_relu": lambda d: mb.transpose_conv((4, 5), 3, 6, (3, 3), activation="relu", dtype=d),
        "transpose_conv_odd": lambda d: mb.transpose_conv((4, 5), 3, 6, (3, 3), bias=False, output_hw=(7, 9), dtype=d),
        "sub": lambda d: mb.sub(image, (6, 4), activation="relu", dtype=d),
        "mul": lambda d: mb.mul(image, (1, 1, 1, 4), activation="relu6", dtype=d),
        "maximum": lambda d: mb.maximum(image, (4,), dtype=d),
        "minimum": lambda d: mb.minimum(image, dtype=d),
        "batch_matmul": lambda d: mb.batch_matmul((2, 3, 4), (2, 4, 5), dtype=d),
        "batch_matmul_x": lambda d: mb.batch_matmul((2, 4, 3), (2, 4, 5), adj_x=True, dtype=d),
        "batch_matmul_y": lambda d: mb.batch_matmul((2, 3, 4), (1, 5, 4), adj_y=True, dtype=d),
        "mean": lambda d: mb.reduce(image, [1, -2], "MEAN", True, dtype=d),
        "sum": lambda d: mb.reduce(image, [3], "SUM", dtype=d),
        "reduce_max": lambda d: mb.reduce(image, [-1, 0], "REDUCE_MAX", True, dtype=d),
        "reduce_min": lambda d: mb.reduce(image, [-1, 0], "REDUCE_MIN", True, dtype=d),
        "arg_max": lambda d: mb.arg_max(image, 2, "int64", dtype=d),
        "split": lambda d: mb.split(image, 3, 2, dtype=d),
        "split_v": lambda d: mb.split_v(image, [1, -1, 2], -2, dtype=d),
        "slice": lambda d: mb.slice_(image, [0, 1, 2, 0], [1, -1, 3, 2], dtype=d),
        "strided_slice": lambda d: mb.strided_slice(image, [0, 6, -5, 1], [1, 1, 6, 2], [1, -2, 2, 1], dtype=d),
        "strided_slice_masks": lambda d: mb.strided_slice(
            image, [0, 3, 4, 1], [1, 1, 1, 1], [1, 1, -1, 1], begin_mask=3, end_mask=7, shrink_axis_mask=8, dtype=d),
        "strided_slice_ellipsis": lambda d: mb.strided_slice(
            image, [0, 0, 0], [0, 0, 2], ellipsis_mask=1, new_axis_mask=2, dtype=d),
        "transpose": lambda d: mb.transpose(image, [0, 3, 1, 2], dtype=d),
        "mirror_pad": lambda d: mb.mirror_pad(image, [(0, 0), (1, 2), (3, 0), (0, 0)], dtype=d),
        "mirror_pad_symmetric": lambda d: mb.mirror_pad(image, [(0, 0), (8, 2), (3, 0), (0, 0)], "SYMMETRIC", dtype=d),
        "pad_v2": lambda d: mb.pad_v2(image, [(0, 0), (1, 2), (3, 0), (0, 0)], 7, dtype=d),
        "space_to_depth": lambda d: mb.space_to_depth(image, 2, dtype=d),
        "depth_to_space": lambda d: mb.depth_to_space(image, 2, dtype=d),
        "leaky_relu": lambda d: mb.leaky_relu(image, 0.3, dtype=d),
        "hard_swish": lambda d: mb.hard_swish(image, dtype=d),
        "prelu": lambda d: mb.prelu(image, dtype=d),
        "tanh": lambda d: mb.tanh(image, dtype=d),
        "pack": lambda d: mb.pack((2, 3), 4, -1, dtype=d),
        "unpack": lambda d: mb.unpack((2, 3), -1, dtype=d),
        "gather": lambda d: mb.gather(image, [[1, 0], [3, 3]], -1, dtype=d),
        "gather_nd": lambda d: mb.gather_nd(image, [[0, 1], [0, 7]], dtype=d),
        "reverse": lambda d: mb.reverse(image, [-2], dtype=d),
        "cast": lambda d: mb.cast(image, "float32", dtype=d),
    }
    for code in ("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1"):
        builders[code.lower()] = lambda d, code=code: mb.unary(image, code, dtype=d)
    for name, build in builders.items():
        for dtype in ("uint8", "int8", "float32"):
            if name.startswith("batch_matmul") and dtype == "uint8":
                continue  # TFLite has none
            yield f"{name}_{dtype}", build(dtype)
    for code in ("ELU", "ABS", "NEG", "EXP", "SQRT", "RSQRT", "LOG"):
        yield f"{code.lower()}_float32", mb.unary(image, code, dtype="float32")
    for code in ("ELU", "ABS", "EXP", "RSQRT", "LOG"):
        yield f"{code.lower()}_int8", mb.unary(image, code, dtype="int8")
    yield "squared_difference_int8", mb.squared_difference(image, dtype="int8")
    yield "squared_difference_float32", mb.squared_difference(image, dtype="float32")
    yield "div_float32", mb.div(image, activation="relu", dtype="float32")
    yield "floor_div_int32", mb.floor_div(image, dtype="int32")
    yield "conv_int16", mb.conv2d((8, 8), 4, 5, (3, 3), dtype="int16", per_channel=True)
    yield "depthwise_int16", mb.depthwise((8, 8), 4, dtype="int16", per_channel=True)
    yield "fully_connected_int16", mb.fully_connected(16, 4, dtype="int16")


def models(shared, folder):
    yield from sorted((shared / "models").glob("*.tflite"))
    yield from sorted((shared / "models" / "ops_int8").glob("*.tflite"))
    try:
        for name, data in built_models():
            path = folder / f"{name}.tflite"
            path.write_bytes(data)
    except ImportError:
        print("no models built: there is no model builder in this runtime")
    yield from sorted(folder.glob("*.tflite"))


# What a runtime refuses by itself, whatever the delegate: its resolver is older than the model's operations.
OLDER = ("op builtin_code out of range", "Didn't find op")


def check(probe, path):
    os.environ["MICA_ABI_PROBE_MODEL"] = str(path)
    try:
        Interpreter(str(path), experimental_delegates=[load_delegate(probe)],
                    experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    except (RuntimeError, ValueError) as error:
        if any(words in str(error) for words in OLDER):
            return "too new for this runtime"
        return f"FAILED: {str(error).strip()[:300]}"
    return None


def main():
    probe, shared = sys.argv[1], pathlib.Path(sys.argv[2])
    if not (shared / "models").is_dir():
        sys.exit(77)
    count, failed = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for path in models(shared, pathlib.Path(sys.argv[3] if len(sys.argv) > 3 else folder)):
            answer = check(probe, path)
            count += 1
            failed += bool(answer and answer.startswith("FAILED"))
            if answer:
                print(f"{path.name}: {answer}")
    print(f"{count} models, {failed} failed")
    sys.exit(failed > 0 or count < 70)


if __name__ == "__main__":
    main()
