# SPDX-License-Identifier: MIT
"""Runs random models in processes of their own, so that one that crashes or hangs is a line in the result.

See random_models.py for the command.
"""

import argparse
import json
import os
import pathlib
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time

import random_models
from random_tally import Tally

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEVICES = ("sim:a311d", "sim:imx8mp", "sim:s905d3", "sim:rk3588", "sim:rk3566")
SECONDS = 120  # without a word from a worker until it counts as hanging


# ---- a worker: this file as a program ----------------------------------------


def work(build, devices):
    """Reads numbers, a model each, and writes a line wherever it gets to."""
    words = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    from random_judge import Judge

    judge = Judge(pathlib.Path(build), devices, lambda place: print(json.dumps({"at": place}), file=words))
    print(json.dumps({"at": "start"}), file=words)
    for line in sys.stdin:
        job = json.loads(line)
        print(json.dumps({"verdicts": judge.judge(**job)}), file=words)


class Worker:
    def __init__(self, build, devices):
        self.arguments = [sys.executable, __file__, str(build), *devices]
        self.process = self.errors = None
        self.place, self.rest = "start", b""

    def start(self):
        self.errors = tempfile.TemporaryFile("w+b")
        self.process = subprocess.Popen(self.arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors)
        self.rest = b""
        if self.line() is None:
            raise RuntimeError(f"a process that judges models {self.why()}")

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.errors.close()
        self.process = None

    def line(self):
        """The next one; None where the worker ended or says nothing."""
        deadline = time.monotonic() + SECONDS
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], max(deadline - time.monotonic(), 0))
            data = os.read(self.process.stdout.fileno(), 1 << 16) if ready else b""
            if not data:
                return None
            self.rest += data
        line, _, self.rest = self.rest.partition(b"\n")
        return json.loads(line)

    def why(self):
        """How it ended, and its last words."""
        try:
            code = self.process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            return f"hangs: nothing happens for {SECONDS} seconds"
        self.errors.seek(max(self.errors.seek(0, os.SEEK_END) - 2000, 0))
        last = self.errors.read().decode(errors="replace").strip()
        how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        return f"ends the process with {how}: {last}"

    def judge(self, seed, trusted=True):
        """(verdicts, None), or (None, what happened to the worker)."""
        if not self.process:
            self.start()
        try:
            self.process.stdin.write(json.dumps({"seed": seed, "trusted": trusted}).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        self.place = "start"
        while True:
            line = self.line()
            if line is None:
                why = self.why()
                self.stop()
                return None, why
            if "verdicts" in line:
                return line["verdicts"], None
            self.place = line["at"]


def judge(worker, seed):
    """Verdicts on one model, whatever happens to the worker."""
    verdicts, why = worker.judge(seed)
    if verdicts is None and worker.place == "reference":  # TFLite's own doing
        verdicts, why = worker.judge(seed, trusted=False)
    if verdicts is None:
        verdicts = [{"seed": seed, "device": worker.place, "state": "crashed", "operations": [], "hidden": False,
                     "faults": [why]}]
    return verdicts


def run(seeds, build, devices=DEVICES, jobs=1, each=lambda verdicts: None):
    """Calls each() with every model's verdicts, in whatever order they come; one call at a time."""
    rest, lock, errors = iter(seeds), threading.Lock(), []

    def loop():
        worker = Worker(build, devices)
        try:
            while not errors:
                with lock:
                    seed = next(rest, None)
                if seed is None:
                    return
                verdicts = judge(worker, seed)
                with lock:
                    each(verdicts)
        except Exception as error:
            errors.append(error)
        finally:
            worker.stop()

    threads = [threading.Thread(target=loop) for _ in range(jobs)]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except KeyboardInterrupt as error:
        errors.append(error)
    if errors:
        raise errors[0]


# ---- the command -------------------------------------------------------------


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="random_models.py", formatter_class=argparse.RawDescriptionHelpFormatter,
        description="Makes random models of one or two operations, and holds what simulated NPUs make of them against\n"
                    "TFLite's reference kernels. docs/testing.md has the details.",
        epilog="Exit codes: 0 no failure, 1 failures, 2 wrong command line, or nothing can run.")
    parser.add_argument("--count", type=int, default=500, help="how many models (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="the first model's number; the others follow (default: 0)")
    parser.add_argument("--device", action="append", choices=DEVICES, metavar="NAME",
                        help=f"one of {', '.join(DEVICES)}; may be given again (default: all of them)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes (default: %(default)s)")
    parser.add_argument("--build", type=pathlib.Path, default=os.environ.get("MICA_BUILD", ROOT / "build"),
                        help="the build directory (default: $MICA_BUILD, else build/)")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR", default="random-failures",
                        help="where models that fail are written (default: %(default)s)")
    parser.add_argument("--reasons", action="store_true", help="print why operations were refused, and how often")
    parser.add_argument("--describe", action="store_true", help="print the models and run nothing")
    options = parser.parse_args(arguments)
    if options.count < 1 or options.jobs < 1 or options.seed < 0:
        parser.error("--count and --jobs start at 1, --seed at 0")
    for part in ("src/delegate/libmica_delegate.so", "tools/mica/mica"):
        if not options.describe and not (options.build / part).exists():
            parser.error(f"{options.build / part} is missing: build Mica, or name the build directory with --build")
    return options


def keep(folder, verdict):
    folder.mkdir(parents=True, exist_ok=True)
    model = random_models.random_model(verdict["seed"])
    stem = f"{verdict['seed']}-{verdict['device'].replace(':', '-').replace(' ', '-')}"
    (folder / f"{stem}.tflite").write_bytes(model.data)
    (folder / f"{stem}.txt").write_text("\n".join([*verdict["faults"], model.description, ""]))


class Progress:
    """A line now and then: rewritten on a terminal, else each 10 seconds."""

    def __init__(self, total, tally):
        self.total, self.tally, self.start, self.last = total, tally, time.monotonic(), time.monotonic()

    def __call__(self):
        now = time.monotonic()
        if now - self.last < (0.5 if sys.stderr.isatty() else 10):
            return
        self.last = now
        print(f"{len(self.tally.models)} of {self.total} models, {len(self.tally.failures)} failures, "
              f"{now - self.start:.0f} s", file=sys.stderr, end="\r" if sys.stderr.isatty() else "\n")


def main(arguments=None):
    options = parse(arguments)
    seeds = range(options.seed, options.seed + options.count)
    if options.describe:
        for seed in seeds:
            print(f"model {seed}\n{random_models.random_model(seed).description}")
        return 0
    devices = options.device or DEVICES
    tally = Tally()
    progress = Progress(len(seeds), tally)

    def each(verdicts):
        tally.add(verdicts)
        for verdict in verdicts:
            if verdict["faults"]:
                keep(options.keep, verdict)
                print(f"FAILED: model {verdict['seed']} on {verdict['device']}: {verdict['faults'][0]}", flush=True)
        progress()

    try:
        run(seeds, options.build.resolve(), devices, options.jobs, each)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 2
    report(tally, devices, options, time.monotonic() - progress.start)
    return 1 if tally.failures else 0


def report(tally, devices, options, seconds):
    print("\ndelegated of drawn:", *tally.coverage(devices), sep="\n")
    if options.reasons:
        for device, reasons in tally.reasons.items():
            print(f"\nrefused, {device}:", *(f"{n:6} {reason}" for reason, n in reasons.most_common()), sep="\n")
    if tally.failures:
        print("\nfailures by kind:")
        for number, where, seed, kind in tally.kinds():
            print(f"{number:6} {kind} ({where}; model {seed})")
    seldom = list(tally.seldom(devices))
    if seldom:
        print("\nfewer than half delegated:", ", ".join(seldom))
    print("", *tally.device_lines(devices), sep="\n")
    kept = f"; the models are in {options.keep}" if tally.failures else ""
    print(f"{len(tally.models)} models from {options.seed} on in {seconds:.0f} s: {len(tally.failures)} failures{kept}")


if __name__ == "__main__":
    work(sys.argv[1], sys.argv[2:])
