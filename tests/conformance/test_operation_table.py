# SPDX-License-Identifier: MIT
"""The table of operations (`mica devices --operations`) tells the truth.

Each row's edges are tried: a model at a limit is placed on the NPU, one beyond it isn't; what has no row isn't either;
and what a row calls exact, or so far off, is. tests/pytools/operation_probes.py makes the models.
"""

import json
import os
import subprocess

import numpy as np
import pytest

import conftest
import operation_probes
import operations_doc

MICA = conftest.BUILD.resolve() / "tools" / "mica" / "mica"
DOCUMENT = conftest.ROOT / "docs" / "operations.md"
TYPES = ["uint8", "int8", "int16", "float32"]
# What the file format has for one type alone: weights per channel, concatenation of tensors with scales of their own.
ONLY = {"per channel": "int8", "other scales": "uint8"}

pytestmark = pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built")


def read_tables():
    return operations_doc.read(str(MICA)) if MICA.exists() else {}


TABLES = read_tables()
CHIPS = [device.removeprefix("sim:") for device in conftest.DEVICES if device.removeprefix("sim:") in TABLES]
ROWS = {chip: {row["name"]: row for row in TABLES[chip]} for chip in CHIPS}


def place(chip, data, folder, name):
    """(True or False, the reason) of whether the chip's NPU takes the model's one operation."""
    path = folder / "probe.tflite"
    path.write_bytes(data)
    done = subprocess.run([MICA, "info", path, "--device", f"sim:{chip}", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    operations = json.loads(done.stdout)["operations"]
    assert [o["type"] for o in operations] == [name]
    assert operations[0]["runs_on"] == "NPU" or operations[0]["reason"], "a refusal without a reason"
    return operations[0]["runs_on"] == "NPU", operations[0]["reason"]


def allowed(limit, value):
    return limit["least"] <= value and (limit["most"] is None or value <= limit["most"]) and (
        limit["kind"] != "powers of two" or value & (value - 1) == 0)


def edges(limit):
    """Values at the limit and beyond it. 0 is a value of flags and axes only."""
    least, most = limit["least"], limit["most"]
    values = {least, least - 1, least + 1}
    values |= {4} if most is None else {most, most + 1}
    if limit["kind"] == "powers of two":
        values |= {3}
    if limit["kind"] == "flag":
        values = {0, 1}
    counts = limit["kind"] != "flag" and not limit["name"].startswith("axis")
    return sorted(v for v in values if v >= (1 if counts else 0) and (counts or v <= 3))


def tried(chip, name):
    """[(type, {limit: value}, may be taken)]: the plain probe in every type, then the edges of each limit."""
    row = ROWS[chip].get(name)
    for dtype in TYPES:
        yield dtype, {}, bool(row) and dtype in row["types"]
    for dtype in row["types"] if row else []:
        for limit in row["limits"]:
            for value in edges(limit):
                if value and dtype != ONLY.get(limit["name"], dtype):
                    continue
                yield dtype, {limit["name"]: value}, allowed(limit, value)


@pytest.mark.parametrize("name", list(operation_probes.PROBES))
@pytest.mark.parametrize("chip", CHIPS)
def test_edges(chip, name, tmp_path):
    wrong = []
    for dtype, limits, wanted in tried(chip, name):
        taken, reason = place(chip, operation_probes.build(name, dtype, **limits), tmp_path, name)
        if taken != wanted:
            wrong.append(f"{dtype} {limits or ''}: {'taken' if taken else 'refused: ' + reason}")
    assert not wrong, f"the table of {chip} is wrong about {name}:\n" + "\n".join(wrong)


@pytest.mark.parametrize("chip", CHIPS)
def test_every_row_and_limit_has_a_probe(chip):
    for name, row in ROWS[chip].items():
        assert name in operation_probes.PROBES, name
        assert row["types"] and set(row["types"]) <= set(TYPES) and row["how"]
        for limit in row["limits"]:
            assert operation_probes.takes(name, limit["name"]), (name, limit["name"])


@pytest.mark.parametrize("name", list(operation_probes.PROBES))
def test_exactness(runner, name):
    chip = runner.device.removeprefix("sim:")
    row = ROWS.get(chip, {}).get(name)
    if not row:
        pytest.skip("there is no row")
    for dtype, limits, wanted in tried(chip, name):
        if not wanted:
            continue
        model = operation_probes.build(name, dtype, **limits)
        inputs = runner.inputs(model, 1)
        got, want = runner.delegated(model, inputs), reference(runner, model, inputs)
        for g, w in zip(got, want):
            distance = np.abs(g.astype(np.int64) - w.astype(np.int64)).max()
            assert distance <= row["off"], f"{dtype} {limits}: {distance} off, the table says {row['off']}"


def reference(runner, model, inputs):
    """TFLite's reference kernels; its others for what those lack."""
    try:
        return runner.reference(model, inputs)
    except ValueError:
        resolver = runner.resolvers.BUILTIN_WITHOUT_DEFAULT_DELEGATES
        return runner.run(runner.interpreter_class(model_content=model, experimental_op_resolver_type=resolver), inputs)


def test_the_document_is_what_the_tables_say():
    made = operations_doc.document(TABLES)
    if os.environ.get("MICA_UPDATE_DOCS") == "1":
        DOCUMENT.write_text(made)
    assert DOCUMENT.read_text() == made, "run tests/pytools/operations_doc.py"
