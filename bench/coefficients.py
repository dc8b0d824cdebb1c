# SPDX-License-Identifier: MIT
"""How small the coefficients are: raw weights, their entropy, the format's floor, and what is stored."""

from common import MOBILEDET, MOBILENET_V1, table, title

# What the model's coefficients may take, and what another open compiler's take, in bytes.
LIMITS = {
    ("imx8mp", MOBILENET_V1): (3180000, 3631716),
    ("s905d3", MOBILENET_V1): (3240000, None),
    ("a311d", MOBILENET_V1): (4450000, 5676480),
    ("imx8mp", MOBILEDET): (3500000, 3769884),
    ("a311d", MOBILEDET): (4700000, 10072512),
}
HUFFMAN_CHIPS = {"s905d3", "imx8mp"}
FLOOR_LIMIT = 2.0  # per cent


def measure(tools, chip, name, path):
    default = tools.run_json("bench/coefficients", path, chip)
    size = tools.run_json("bench/coefficients", path, chip, "--size", "--no-floor")
    if not default:
        return None
    check_runtime(tools, chip, path, sum(layer["bytes"] for layer in default["layers"]))
    for layer in default["layers"]:
        layer["size_bytes"] = None
    if size:
        by_operation = {layer["operation"]: layer["bytes"] for layer in size["layers"]}
        for layer in default["layers"]:
            layer["size_bytes"] = by_operation.get(layer["operation"])
    return {"chip": chip, "model": name, "layers": default["layers"], "total": total(default["layers"])}


def check_runtime(tools, chip, path, stored):
    """The runtime counts the same bytes."""
    measured = tools.measure(path, f"sim:{chip}")
    if measured and measured["memory"]["coefficients"] != stored:
        raise SystemExit(f"{path.name} on {chip}: {stored} bytes here, {measured['memory']['coefficients']} by libmica")


def total(layers):
    keys = ["raw", "entropy", "bytes", "floor", "padded_floor", "jobs", "size_bytes"]
    return {key: None if any(layer[key] is None for layer in layers) else sum(layer[key] for layer in layers)
            for key in keys}


def above(row, floor="floor", what="bytes"):
    """Per cent above a floor."""
    return None if row[what] is None else 100 * (row[what] / row[floor] - 1)


def show_totals(rows):
    title("Coefficient bytes of whole models")
    print("floor: the fewest bits the format can say them in, headers and biases included; padded: with the blocks of")
    print("64 bytes that each core's stream takes; size: with optimize=size")
    cells = []
    for row in rows:
        sums = row["total"]
        other = LIMITS.get((row["chip"], row["model"]), (None, None))[1]
        cells.append([row["model"], row["chip"], *(f"{sums[key]:,.0f}" for key in ("raw", "entropy", "floor",
                      "padded_floor", "bytes")), f"{sums['size_bytes']:,}" if sums["size_bytes"] else "-",
                      f"{above(sums):+.2f} %", f"{above(sums, 'padded_floor'):+.2f} %", f"{other:,}" if other else "-"])
    table(["model", "chip", "raw", "entropy", "floor", "padded", "stored", "size", "over floor", "over padded",
           "another compiler"], cells)


def show_layers(rows, model):
    """The chips side by side: stored bytes and how far above the floor."""
    chips = [row["chip"] for row in rows]
    by_chip = {row["chip"]: {layer["operation"]: layer for layer in row["layers"]} for row in rows}
    title(f"{model}, layer by layer")
    operations = sorted({operation for layers in by_chip.values() for operation in layers})
    cells = []
    for operation in operations:
        some = next(layers[operation] for layers in by_chip.values() if operation in layers)
        line = [f"{operation} {some['type']} {some['shape']}", f"{some['raw']:,}", f"{some['entropy']:,.0f}"]
        for chip in chips:
            layer = by_chip[chip].get(operation)
            line += ([f"{layer['jobs']}", f"{layer['floor']:,}", f"{layer['bytes']:,}", f"{above(layer):+.1f}"]
                     if layer else ["-"] * 4)
        cells.append(line)
    header = ["layer", "raw", "entropy"]
    for chip in chips:
        header += [f"{chip} jobs", "floor", "stored", "%"]
    table(header, cells)


def check(rows, bars):
    for row in rows:
        for layer in row["layers"]:
            if layer["bytes"] < layer["floor"]:
                where = f"{row['model']} on {row['chip']}, operation {layer['operation']}"
                raise SystemExit(f"{where}: less is stored than the floor, so that is none")
        limit, _ = LIMITS.get((row["chip"], row["model"]), (None, None))
        if limit:
            what = f"coefficients of {row['model']} on {row['chip']}"
            bars.check(what, row["total"]["bytes"], limit, "bytes", 0)
            bars.check(f"{what}, optimize=size", row["total"]["size_bytes"], limit, "bytes", 0)
    for row in rows:
        if row["chip"] in HUFFMAN_CHIPS:
            what = f"over the format's floor, {row['model']} on {row['chip']}"
            bars.check(what, above(row["total"]), FLOOR_LIMIT, "%")


def run(tools, chips, models, bars, layers):
    rows = [measure(tools, chip, name, path) for name, path in models.items() for chip in chips]
    rows = [row for row in rows if row]
    show_totals(rows)
    for name in models:
        if layers or name == MOBILENET_V1:
            show_layers([row for row in rows if row["model"] == name], name)
    check(rows, bars)
    return rows
