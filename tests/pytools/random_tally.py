# SPDX-License-Identifier: MIT
"""What many verdicts of random_judge.py come to."""

import collections
import re


class Tally:
    """What many verdicts come to."""

    def __init__(self):
        self.models = set()
        self.devices = collections.defaultdict(collections.Counter)
        self.operations = collections.defaultdict(collections.Counter)  # (device, operation)
        self.reasons = collections.defaultdict(collections.Counter)  # device
        self.failures = []

    def add(self, verdicts):
        for verdict in verdicts:
            self.models.add(verdict["seed"])
            count = self.devices[verdict["device"]]
            count[verdict["state"]] += 1
            count["hidden"] += verdict["hidden"]
            count["commanded"] += verdict.get("commanded", False)
            if verdict.get("refusal"):
                self.reasons["mica run"][kind_of(verdict["refusal"])] += 1
            if verdict["state"] == "refused":
                self.reasons["TFLite"][kind_of(verdict["why"])] += 1
            elif verdict["state"] == "checked":
                self.add_operations(verdict, count)
            if verdict["faults"]:
                count["failed"] += 1
                self.failures.append(verdict)

    def add_operations(self, verdict, count):
        taken = [operation["taken"] for operation in verdict["operations"]]
        count["delegated"] += any(taken)
        count["wholly"] += all(taken)
        for operation in verdict["operations"]:
            row = self.operations[verdict["device"], operation["name"]]
            row["drawn"] += 1
            row["taken"] += operation["taken"]
            for key in ("values", "differ", "unjudged") if operation["taken"] else ():
                row[key] += operation[key]
                count[key] += operation[key]
            if not operation["taken"] and verdict["device"] != "cpu":
                self.reasons[verdict["device"]][f"{operation['name']}: {kind_of(operation['reason'])}"] += 1

    def kinds(self):
        """The failures by what they say: (how often, on which devices, one model, the sentence), most often first."""
        groups = collections.defaultdict(list)
        for verdict in self.failures:
            groups[kind_of(verdict["faults"][0].splitlines()[0])].append(verdict)
        for kind, verdicts in sorted(groups.items(), key=lambda item: -len(item[1])):
            devices = dict.fromkeys(v["device"].removeprefix("sim:") for v in verdicts)
            yield len(verdicts), " ".join(devices), verdicts[0]["seed"], kind

    def coverage(self, devices):
        """A line an operation: which share of its models each device took."""
        names = sorted({name for _, name in self.operations})
        yield " " * 25 + "".join(f"{device.removeprefix('sim:'):>14}" for device in devices)
        for name in names:
            rows = [self.operations[device, name] for device in devices]
            yield f"{name:<25}" + "".join(f"{row['taken']}/{row['drawn']}".rjust(14) for row in rows)

    def seldom(self, devices):
        """Operations that a device takes, but from fewer than half of the models."""
        for (device, name), row in sorted(self.operations.items()):
            if device in devices and row["taken"] and 2 * row["taken"] < row["drawn"]:
                yield f"{device} {name} {row['taken']}/{row['drawn']}"

    def device_lines(self, devices):
        for device in devices:
            c = self.devices[device]
            yield (f"{device}: {c['checked']} checked, {c['delegated']} of them delegated ({c['wholly']} wholly), "
                   f"{c['refused']} refused by TFLite; {c['values']} values of delegated operations, {c['differ']} "
                   f"differ within the table's bounds; {c['commanded']} through mica run; {c['failed']} failed")
        c = self.devices["cpu"]
        yield f"cpu: {c['commanded']} through mica run; {c['failed']} failed"


def kind_of(reason):
    """A sentence without its numbers and names, to count it by."""
    return re.sub(r"-?\d+(\.\d+)?(e[-+]?\d+)?(x\d+)*", "#", re.sub(r'"[^"]*"|/\S*', "...", reason))
