# SPDX-License-Identifier: MIT
"""Random models of one and two operations, on every simulated chip: docs/testing.md.

A few hundred fixed ones, so that a change that breaks one of them shows at once; new ones are for
`python tests/pytools/random_models.py`, which is the same with a number of its own. That it would see a wrong value, a
crash and a hang is tested here, too.
"""

import sys

import pytest

import conftest
import operations_doc
import random_models
import random_run
import random_tally
from random_operations import OPERATIONS

MICA = conftest.BUILD.resolve() / "tools" / "mica" / "mica"
DEVICES = [device for device in conftest.DEVICES if device in random_run.DEVICES]
SEEDS = range(300)
STEP = 20
TALLY = random_tally.Tally()

pytestmark = [pytest.mark.skipif(not MICA.exists(), reason=f"{MICA} is not built"),
              pytest.mark.skipif(not DEVICES, reason="random models run on simulated devices")]


@pytest.mark.parametrize("first", SEEDS[::STEP])
def test_models_from(first, delegate_path):
    verdicts = []
    random_run.run(range(first, first + STEP), conftest.BUILD.resolve(), DEVICES, 2, verdicts.extend)
    assert {verdict["seed"] for verdict in verdicts} == set(range(first, first + STEP))
    TALLY.add(verdicts)
    wrong = [f"model {v['seed']} on {v['device']}: {fault}\n{random_models.random_model(v['seed']).description}"
             for v in verdicts for fault in v["faults"][:1]]
    assert not wrong, "\n".join(wrong)


def rows():
    return operations_doc.read(str(MICA)).items() if MICA.exists() else ()


def test_every_operation_of_the_tables_is_drawn():
    for chip, table in rows():
        for row in table:
            assert row["name"] in OPERATIONS, f"{chip} takes {row['name']}, and no random model has it"
            assert set(row["types"]) <= set(OPERATIONS[row["name"]][2]), (chip, row["name"], row["types"])


def test_every_operation_of_the_tables_was_delegated():
    if TALLY.models != set(SEEDS):
        pytest.skip("not all models ran")
    never = [f"{chip} {row['name']}" for chip, table in rows() if f"sim:{chip}" in DEVICES for row in table
             if not TALLY.operations[f"sim:{chip}", row["name"]]["taken"]]
    assert not never, f"refused in each model: {never}"


def test_a_model_follows_from_its_number():
    for seed in (3, 4):
        a, b = random_models.random_model(seed), random_models.random_model(seed)
        assert (a.data, a.hidden, a.description) == (b.data, b.hidden, b.description)
    assert random_models.random_model(3).data != random_models.random_model(4).data


# ---- would it see a fault? -------------------------------------------------------------


@pytest.fixture(scope="module")
def judge(delegate_path):
    from random_judge import Judge

    return Judge(conftest.BUILD.resolve(), DEVICES[:1], lambda place: None)


@pytest.mark.parametrize("taken,off,seen", [(True, 1, False), (True, 2, True), (False, 0, False), (False, 1, True)])
def test_values_beyond_the_bound_are_faults(judge, taken, off, seen):
    from random_reference import Reference

    seed = next(s for s in range(1000) if random_models.random_model(s, ["CONV_2D"]).operations == ["CONV_2D"])
    model = random_models.random_model(seed, ["CONV_2D"])
    reference, verdict = Reference(model), judge.verdict(model, DEVICES[0])
    verdict["operations"][0]["taken"] = taken
    output, = reference.outputs
    values = reference.outputs[output].copy()
    last = int(values.flat[-1])
    values.flat[-1] = last - off if last > 0 else last + off
    judge.compare(reference, verdict, {**reference.inputs[0], output: values})
    assert bool(verdict["faults"]) == seen, verdict["faults"]
    assert verdict["operations"][0]["differ"] == (1 if off else 0)


class Puppet(random_run.Worker):
    """A worker that does what a test wants."""

    def __init__(self, code):
        super().__init__("", [])
        prelude = "import os, sys, time\nprint('{\"at\": \"start\"}', flush=True)\nline = sys.stdin.readline()\n"
        self.arguments = [sys.executable, "-c", prelude + code]


def test_a_crash_is_a_fault_of_the_model_and_the_device():
    worker = Puppet("print('{\"at\": \"sim:toaster\"}', flush=True); print('last words', file=sys.stderr); os.abort()")
    for _ in range(2):  # the next model gets a new process
        verdict, = random_run.judge(worker, 7)
        assert (verdict["seed"], verdict["device"], verdict["state"]) == (7, "sim:toaster", "crashed")
        assert "SIGABRT" in verdict["faults"][0] or "last words" in verdict["faults"][0]
    worker.stop()


def test_a_hang_is_a_fault(monkeypatch):
    monkeypatch.setattr(random_run, "SECONDS", 1)
    worker = Puppet("time.sleep(600)")
    verdict, = random_run.judge(worker, 8)
    assert "hangs" in verdict["faults"][0]
    worker.stop()


def test_what_ends_tflite_itself_is_no_fault():
    """The second time the model comes with the hint not to give it to TFLite."""
    worker = Puppet("if '\"trusted\": true' in line:\n    print('{\"at\": \"reference\"}', flush=True); os.abort()\n"
                    "print('{\"verdicts\": []}', flush=True); time.sleep(600)")
    assert random_run.judge(worker, 9) == []
    worker.stop()


def test_the_command_counts_its_failures(monkeypatch, tmp_path, capsys):
    def run(seeds, build, devices, jobs, each):
        for seed in seeds:
            each([{"seed": seed, "device": "sim:a311d", "state": "checked", "hidden": False,
                   "faults": ["3 of 4 values are off"] if seed == 12 else [], "operations": []}])

    monkeypatch.setattr(random_run, "run", run)
    arguments = ["--seed", "11", "--keep", str(tmp_path / "kept"), "--jobs", "1"]
    assert random_run.main([*arguments, "--count", "1"]) == 0
    assert random_run.main([*arguments, "--count", "3"]) == 1
    assert "3 models from 11 on" in capsys.readouterr().out
    kept = {path.name: path for path in (tmp_path / "kept").iterdir()}
    assert set(kept) == {"12-sim-a311d.tflite", "12-sim-a311d.txt"}
    assert kept["12-sim-a311d.tflite"].read_bytes() == random_models.random_model(12).data
