# SPDX-License-Identifier: MIT
"""Judges what devices make of one random model; see docs/testing.md for what is held against what.

Each operation is judged alone: by TFLite's reference kernels, fed with what the device itself had before the
operation. An operation on the NPU may be as far off as its row in the chip's table says, anything else not at all.
"""

import json
import os
import re
import subprocess
import tempfile

import numpy as np
from ai_edge_litert.interpreter import load_delegate

import operations_doc
import random_models
from random_reference import RESOLVERS, Reference, Refused, distances, first_wrong, open_model, run

NODE = re.compile(r'mica: info: node (\d+), (\S+) making ".*": (taken|left to the host, ?(.*))$')
SECONDS = 60  # that a command may take


class Log:
    """What libraries write to standard error, which has to be a file."""

    @staticmethod
    def clear():
        os.ftruncate(2, 0)
        os.lseek(2, 0, os.SEEK_SET)

    @staticmethod
    def lines():
        with open("/dev/fd/2", "rb") as file:
            return file.read().decode(errors="replace").splitlines()


# ---- judging -----------------------------------------------------------------


class Judge:
    def __init__(self, build, devices, say):
        """`say` is told where the judge is, so that somebody knows when it doesn't come back."""
        self.mica, self.say, self.log = build / "tools" / "mica" / "mica", say, Log()
        path = str(build / "src" / "delegate" / "libmica_delegate.so")
        self.delegates = {device: load_delegate(path, {"device": device, "threads": "1", "log_level": "info"})
                          for device in devices}
        self.rows = {f"sim:{chip}": {row["name"]: row for row in rows}
                     for chip, rows in operations_doc.read(str(self.mica)).items()}

    def judge(self, seed, trusted=True):
        """Verdicts, one a device, as dictionaries. Untrusted models would take TFLite, and so us, with them."""
        model = random_models.random_model(seed)
        if not trusted:
            return [self.refused(model, device, "TFLite ends the process") for device in (*self.delegates, "cpu")]
        self.say("reference")
        try:
            reference = Reference(model)
        except Refused as refusal:
            verdicts = [self.refused(model, device, str(refusal)) for device in (*self.delegates, "cpu")]
            for verdict in verdicts[:-1]:
                self.say(verdict["device"])
                self.survives(model, verdict)
            return verdicts
        verdicts = []
        for number, device in enumerate(self.delegates):
            verdict = self.verdict(model, device)
            verdicts.append(verdict)
            self.say(device)
            outputs = self.delegated(model, reference, verdict)
            if outputs and (seed + number) % len(self.delegates) == 0:
                self.say(f"mica on {device}")
                self.placed(model, verdict)
                self.commanded(model, reference, verdict, outputs)
        self.say("cpu")
        verdicts.append(self.verdict(model, "cpu"))
        self.commanded(model, reference, verdicts[-1], None)
        return verdicts

    @staticmethod
    def verdict(model, device):
        return {"seed": model.seed, "device": device, "state": "checked", "faults": [], "hidden": False,
                "operations": [{"name": name, "taken": False, "reason": "", "values": 0, "differ": 0, "worst": 0,
                                "unjudged": 0} for name in model.operations]}

    def refused(self, model, device, why):
        verdict = self.verdict(model, device)
        verdict["state"], verdict["why"] = "refused", why.strip().splitlines()[-1] if why.strip() else ""
        self.says_or_runs(model, verdict)
        return verdict

    def survives(self, model, verdict):
        """TFLite doesn't take it: so it will say with a delegate too, or not; but it will live."""
        for resolver in RESOLVERS:
            try:
                open_model(model.data, resolver, self.delegates[verdict["device"]])
            except Refused:
                pass

    def says_or_runs(self, model, verdict):
        done = self.command("info", model, verdict["device"], [])
        if done.returncode not in (0, 1) or (done.returncode and not done.stderr.strip()):
            verdict["faults"].append(f"mica info ends with {done.returncode}: {done.stderr[-500:]}")

    # ---- the delegate ------------------------------------------------------

    def delegated(self, model, reference, verdict):
        """Fills in the verdict; returns the outputs of the first set of inputs."""
        try:
            interpreter, taken = self.prepared(model.data, reference, verdict["device"])
        except Refused as refusal:
            verdict["faults"].append(f"the model does not run with the delegate: {refusal}")
            return None
        self.note_taken(model, verdict, taken)
        first = None
        for values in reference.inputs:
            try:
                outputs = run(interpreter, values)
            except Refused as refusal:
                verdict["faults"].append(f"the delegate fails where TFLite alone does not: {refusal}")
                return None
            self.compare(reference, verdict, {**values, **outputs})
            first = first or outputs
        del interpreter
        if len(model.operations) > 1 or model.hidden != model.data:
            self.compare_hidden(model, reference, verdict, taken, first)
        return first

    def prepared(self, data, reference, device):
        """(an interpreter, {node: None, or why it is left to the host})."""
        self.log.clear()
        interpreter = open_model(data, reference.resolver, self.delegates[device])
        found = [match.groups() for line in self.log.lines() if (match := NODE.match(line))]
        return interpreter, {int(node): None if what == "taken" else (reason or "") for node, _, what, reason in found}

    def note_taken(self, model, verdict, taken):
        for i, operation in enumerate(verdict["operations"]):
            reason = taken.get(i, "")
            operation["taken"], operation["reason"] = reason is None, reason or ""
            if reason is not None and (len(reason) < 8 or " " not in reason):
                verdict["faults"].append(f"{operation['name']} is refused without a reason: '{reason}'")
            if reason is None and model.type_of(i) not in self.row(verdict, operation)["types"]:
                verdict["faults"].append(f"{operation['name']} of {model.type_of(i)} is taken, but not in the table")

    def row(self, verdict, operation):
        """What the table says of an operation on a device."""
        return self.rows[verdict["device"]].get(operation["name"], {"off": 0, "types": []})

    def compare(self, reference, verdict, tensors):
        """Each operation alone, `tensors` being what the delegate and the host had."""
        for i, operation in enumerate(verdict["operations"]):
            bound = self.row(verdict, operation)["off"] if operation["taken"] else 0
            try:
                wanted = reference.alone(i, tensors, None if operation["taken"] else reference.resolver)
            except Refused:
                operation["unjudged"] += 1
                continue
            for index, want in wanted.items():
                far = distances(tensors[index], want)
                operation["values"] += far.size
                operation["differ"] += int(np.count_nonzero(far))
                operation["worst"] = max(operation["worst"], float(far.max()))
                if far.max() > bound:
                    where = "NPU" if operation["taken"] else "host"
                    verdict["faults"].append(f"{operation['name']} on the {where}, tensor {index}: "
                                             + first_wrong(tensors[index], want, far, bound))

    def compare_hidden(self, model, reference, verdict, taken, outputs):
        """The same values come out where what is in between stays inside."""
        try:
            interpreter, hidden = self.prepared(model.hidden, reference, verdict["device"])
            if {node: reason is None for node, reason in hidden.items()} != {
                    node: reason is None for node, reason in taken.items()}:
                return  # who computes has changed with what is asked for
            got = run(interpreter, reference.inputs[0])
        except Refused as refusal:
            verdict["faults"].append(f"with fewer outputs the model does not run: {refusal}")
            return
        verdict["hidden"] = True
        for index, value in got.items():
            far = distances(value, outputs[index])
            if far.max() > 0:
                verdict["faults"].append(f"with fewer outputs, tensor {index}: "
                                         + first_wrong(value, outputs[index], far, 0))

    # ---- the command -------------------------------------------------------

    def command(self, verb, model, device, arguments):
        with tempfile.NamedTemporaryFile(suffix=".tflite") as file:
            file.write(model.data)
            file.flush()
            try:
                return subprocess.run([str(self.mica), verb, file.name, "--device", device, *arguments],
                                      capture_output=True, text=True, timeout=SECONDS, errors="replace")
            except subprocess.TimeoutExpired:
                return subprocess.CompletedProcess([], -1, "", f"still running after {SECONDS} seconds")

    def placed(self, model, verdict):
        """`mica info` says the same of each operation as the delegate."""
        done = self.command("info", model, verdict["device"], ["--json"])
        if done.returncode:
            self.note_refusal(verdict, "mica info", done)
            return
        lines = json.loads(done.stdout)["operations"]
        for i, (line, operation) in enumerate(zip(lines, verdict["operations"], strict=True)):
            if (line["runs_on"] == "NPU") != operation["taken"]:
                verdict["faults"].append(f"mica info has operation {i} on the {line['runs_on']} "
                                         f"({line['reason']}), the delegate does not ({operation['reason']})")

    def commanded(self, model, reference, verdict, delegated):
        """`mica run`: each operation of ours on the CPU is TFLite's; with the NPU, bytes are the delegate's."""
        with tempfile.TemporaryDirectory() as folder:
            arguments = ["--task", "none", "--threads", "1"]
            for index, value in reference.inputs[0].items():
                value.tofile(f"{folder}/in{index}")
                arguments += ["--input", f"{folder}/in{index}"]
            for index in reference.outputs:
                arguments += ["--output", f"{folder}/out{index}"]
            done = self.command("run", model, verdict["device"], arguments)
            if done.returncode:
                self.note_refusal(verdict, "mica run", done)
                return
            verdict["commanded"] = True
            got = {index: np.fromfile(f"{folder}/out{index}", want.dtype) for index, want in reference.outputs.items()}
        for index, want in reference.outputs.items():
            if got[index].size != want.size:
                verdict["faults"].append(f"mica run gives {got[index].size} values for {want.shape} of tensor {index}")
                return
            got[index] = got[index].reshape(want.shape)
        self.compare_commanded(reference, verdict, {**reference.inputs[0], **got})
        if delegated and reference.resolver is RESOLVERS[0]:  # else the host's kernels are TFLite's optimized ones
            for index, want in delegated.items():
                self.note_wrong(verdict, "mica run and the delegate", index, got[index], want)

    def compare_commanded(self, reference, verdict, tensors):
        for i, operation in enumerate(verdict["operations"]):
            if operation["taken"]:
                continue
            try:
                wanted = reference.alone(i, tensors)
            except Refused:
                continue
            for index, want in wanted.items():
                self.note_wrong(verdict, f"{operation['name']} by mica run", index, tensors[index], want)

    @staticmethod
    def note_wrong(verdict, what, index, got, want):
        """Integers are equal, floats nearly: their sums may be taken in another order."""
        far = distances(got, want)
        if want.dtype.kind == "f":
            far = np.where(np.isclose(got, want, rtol=1e-5, atol=1e-5, equal_nan=True), 0, far)
        if far.max() > 0:
            verdict["faults"].append(f"{what}, tensor {index}: " + first_wrong(got, want, far, 0))

    @staticmethod
    def note_refusal(verdict, command, done):
        """What the NPU takes wholly, and what says nothing, is a fault."""
        message = done.stderr.strip()
        if done.returncode != 1 or not message or all(o["taken"] for o in verdict["operations"]):
            verdict["faults"].append(f"{command} ends with {done.returncode}: {message[-500:]}")
        else:
            verdict["refusal"] = message.splitlines()[0]
