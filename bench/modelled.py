# SPDX-License-Identifier: MIT
"""Time of NN jobs by the timing model: no TP jobs, no CPU, no cost of submitting. Estimates, never silicon."""

from common import MOBILEDET, MOBILENET_V1, MOBILENET_V2, SHARED, number, table, title

EXTRA_JOB_US = 10  # charged for each job of a depthwise operation after its first

# All ms: with every tensor in DDR, with tensors on chip.
LIMITS = {
    ("a311d", MOBILENET_V1): (3.2, 2.4),
    ("a311d", MOBILEDET): (7.5, 5.3),
    ("s905d3", MOBILENET_V1): (5.8, 5.0),
    ("imx8mp", MOBILENET_V1): (2.8, 2.7),
}

# What mainline's user space takes: these operations' jobs are compared. Others, such as pooling, have a column.
COMPARED = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "ADD", "CONCATENATION", "PAD", "RESHAPE"}

# The vendor compiler's own estimate at 8 bytes a cycle, with its shader and TP jobs and 256-byte bursts on i.MX 8M
# Plus: the hardware specification's timing page, section 6, in ms.
VENDOR = {
    ("a311d", MOBILENET_V1): 3.90,
    ("a311d", MOBILENET_V2): 4.50,
    ("a311d", MOBILEDET): 13.0,
    ("s905d3", MOBILENET_V1): 8.53,
    ("s905d3", MOBILENET_V2): 7.26,
    ("s905d3", MOBILEDET): 14.5,
    ("imx8mp", MOBILENET_V1): 3.63,
    ("imx8mp", MOBILENET_V2): 3.37,
    ("imx8mp", MOBILEDET): 9.07,
}

# Whole inferences on silicon with the open driver as published, ms; "image" is its image cache.
PUBLISHED_OPEN = [
    ("a311d", MOBILENET_V1, "kernel cache", 9.991),
    ("a311d", MOBILENET_V1, "kernel and image cache", 6.6),
    ("a311d", MOBILENET_V2, "kernel and image cache", 6.9),
    ("a311d", MOBILEDET, "kernel cache", 27),
    ("a311d", MOBILEDET, "kernel and image cache", 24.8),
    ("imx8mp", MOBILENET_V1, "no caches", 7.9),
    ("imx8mp", MOBILENET_V2, "no caches", 8.0),
    ("imx8mp", MOBILEDET, "no caches", 24.4),
]
# The same with proprietary drivers, least and most published.
PUBLISHED_VENDOR = {
    ("a311d", MOBILENET_V1): (4.3, 5.6),
    ("a311d", MOBILENET_V2): (5.2, 5.2),
    ("a311d", MOBILEDET): (19.5, 19.5),
    ("s905d3", MOBILENET_V1): (12.81, 13.41),
    ("imx8mp", MOBILENET_V1): (2.3, 2.3),
    ("imx8mp", MOBILENET_V2): (5.1, 5.1),
}


def sums(measured):
    """NN milliseconds with and without the charge for extra depthwise jobs, and what else the jobs say."""
    every = [job for job in measured["jobs"] if job["unit"] == "NN"]
    nn = [job for job in every if job["type"] in COMPARED]
    tp = [job for job in measured["jobs"] if job["unit"] == "TP"]
    depthwise = [job["operation"] for job in nn if job["type"] == "DEPTHWISE_CONV_2D"]
    extra = len(depthwise) - len(set(depthwise))
    plain = sum(job["us"] for job in nn) / 1e3
    return {
        "nn_ms": plain,
        "charged_ms": plain + extra * EXTRA_JOB_US / 1e3,
        "other_ms": sum(job["us"] for job in every) / 1e3 - plain,
        "nn_jobs": len(nn),
        "extra_depthwise_jobs": extra,
        "tp_ms": sum(job["us"] for job in tp) / 1e3,
        "read_bytes": sum(job["read_bytes"] for job in nn),
        "write_bytes": sum(job["write_bytes"] for job in nn),
    }


PLACES = {"ddr": [], "size": ["optimize=size"], "on_chip": ["on-chip=1"]}


def mainline_ms(tools, chip, path, *options):
    """Mainline's tiles and caches, priced by our model in this run."""
    priced = tools.run_json("bench/mainline", path, chip, *options)
    return priced and priced["nn_ms"]


def measure(tools, chip, name, path):
    row = {"chip": chip, "model": name}
    for place, options in PLACES.items():
        measured = tools.measure(path, f"sim:{chip}", 1, options)
        row[place] = sums(measured) if measured else None
    row["mainline_ms"] = mainline_ms(tools, chip, path)
    row["mainline_kernel_cache_ms"] = mainline_ms(tools, chip, path, "--no-image-cache")
    return row


def show(rows):
    title("Modelled time of NN jobs, ms")
    print(f"8 bytes a cycle, 64-byte bursts. +10: with {EXTRA_JOB_US} us for each depthwise job after an operation's")
    print("first, which the bar is for. Mainline: its tiles and caches, priced by the same model here. Vendor: the")
    print("vendor compiler's own estimate. MB: device memory traffic. size: with optimize=size. Tensors on chip are")
    print("unverified on hardware. Others: NN jobs of operations that mainline leaves to the CPU, tensors in DDR.")
    cells = []
    for row in rows:
        limits = LIMITS.get((row["chip"], row["model"]), (None, None))
        line = [row["model"], row["chip"]]
        for place, limit in zip(("ddr", "on_chip"), limits):
            part = row[place]
            line += [number(part["nn_jobs"], 0), number(part["nn_ms"]), number(part["charged_ms"]), number(limit, 1),
                     number((part["read_bytes"] + part["write_bytes"]) / 1e6, 1)] if part else ["-"] * 5
        size = row["size"]
        line += [number(size and size["charged_ms"])]
        line += [number(row["ddr"] and row["ddr"]["other_ms"])]
        cells.append(line + [number(row["mainline_ms"]), number(VENDOR.get((row["chip"], row["model"])))])
    header = ["jobs", "DDR", "+10", "bar", "MB", "jobs", "on chip", "+10", "bar", "MB"]
    table(["model", "chip", *header, "DDR, size +10", "others", "mainline", "vendor"], cells)


def difference(model, published):
    if model is None:
        return ["-", number(published, 1), "-", "-"]
    return [number(model), number(published, 1), number(model - published), number(100 * (model / published - 1), 0)]


def show_published(rows):
    by_key = {(row["chip"], row["model"]): row for row in rows}
    title("The same model against published inferences on silicon, ms")
    print("Published: whole inferences, with CPU work, submitting and TP jobs, which the model leaves out. Open:")
    print("mainline's jobs priced here. Vendor: its compiler's estimate, against the published figure nearest to it.")
    cells, errors = [], []
    for chip, name, caches, published in PUBLISHED_OPEN:
        row = by_key.get((chip, name))
        if row:
            model = row["mainline_kernel_cache_ms" if caches == "kernel cache" else "mainline_ms"]
            cells.append([name, chip, f"open, {caches}", *difference(model, published)])
            errors.append({"chip": chip, "model": name, "driver": f"open, {caches}", "modelled_ms": model,
                           "published_ms": published})
    for (chip, name), (low, high) in PUBLISHED_VENDOR.items():
        if (chip, name) in by_key:
            model = VENDOR[chip, name]
            nearest = min(max(model, low), high)
            cells.append([name, chip, "vendor", *difference(model, nearest)])
            errors.append({"chip": chip, "model": name, "driver": "vendor", "modelled_ms": model,
                           "published_ms": nearest})
    table(["model", "chip", "driver", "modelled", "published", "difference", "%"], cells)
    return errors


def check(rows, bars):
    for row in rows:
        limits = LIMITS.get((row["chip"], row["model"]))
        if limits:
            for place, limit in zip(("ddr", "on_chip"), limits):
                where = "tensors in DDR" if place == "ddr" else "tensors on chip"
                value = row[place] and row[place]["charged_ms"]
                bars.check(f"modelled {row['model']} on {row['chip']}, {where}", value, limit, "ms", 3)


def run(tools, chips, models, bars):
    rows = [measure(tools, chip, name, path) for name, path in models.items() for chip in chips]
    show(rows)
    published = show_published(rows)
    check(rows, bars)
    return {"models": rows, "published": published}


# ---- captures: one operation each -----------------------------------------------------------------------------------


def price_capture(tools, folder):
    priced = tools.run_json("tests/clients/price", folder)
    return [job for job in priced["jobs"] if job["unit"] == "NN"] if priced and not priced["error"] else None


def run_captures(tools, chips):
    """What another driver submitted for single operations, and what we make of the same models, in one model."""
    rows = []
    for folder in sorted((SHARED / "captures").glob("*")) if (SHARED / "captures").is_dir() else []:
        for chip in chips:
            if not (folder / chip).is_dir() or chip == "s905d3":  # those streams are V7's, which this chip can't read
                continue
            theirs = price_capture(tools, folder / chip)
            ours = tools.measure(folder / "model.tflite", f"sim:{chip}", 1)
            nn = [job for job in ours["jobs"] if job["unit"] == "NN"] if ours else None
            rows.append({
                "capture": folder.name, "chip": chip,
                "theirs_us": theirs and sum(job["us"] for job in theirs),
                "ours_us": nn and sum(job["us"] for job in nn),
                "theirs_coefficients": theirs and sum(job["coefficient_bytes"] for job in theirs),
                "ours_coefficients": nn and sum(job["coefficient_bytes"] for job in nn),
            })
    if rows:
        title("Captures: another driver's NN jobs and ours, single operations in the same model")
        print("Coefficients: bytes read, once a tile where they are not cached. -: a stream the simulator refuses.")
        table(["capture", "chip", "theirs us", "ours us", "their coefficients read", "ours"],
              [[r["capture"], r["chip"], r["theirs_us"], r["ours_us"], number(r["theirs_coefficients"], 0),
                number(r["ours_coefficients"], 0)] for r in rows])
    return rows
