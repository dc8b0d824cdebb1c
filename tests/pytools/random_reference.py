# SPDX-License-Identifier: MIT
"""What TFLite makes of a random model and of each operation of it alone; and how far values are apart."""

import hashlib

import numpy as np
from ai_edge_litert.interpreter import Interpreter, OpResolverType

import random_models

# The reference kernels; some operations have optimized ones alone.
RESOLVERS = (OpResolverType.BUILTIN_REF, OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)


class Refused(Exception):
    """TFLite doesn't run this."""


def open_model(data, resolver, delegate=None):
    """An interpreter that is ready to run."""
    delegates = [delegate] if delegate else []
    try:
        interpreter = Interpreter(model_content=data, experimental_delegates=delegates, num_threads=1,
                                  experimental_op_resolver_type=resolver)
        interpreter.allocate_tensors()
    except (RuntimeError, ValueError) as error:
        raise Refused(str(error)) from None
    return interpreter


def run(interpreter, values):
    """{tensor: value} of the outputs, for {tensor: value} of the inputs."""
    for index, value in values.items():
        interpreter.set_tensor(index, value)
    try:
        interpreter.invoke()
    except (RuntimeError, ValueError) as error:
        raise Refused(str(error)) from None
    return {d["index"]: interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()}


# ---- inputs ------------------------------------------------------------------


def random_values(rng, shape, dtype):
    if dtype.kind == "f":
        return rng.uniform(-4, 4, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    limits = np.iinfo(dtype)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def end_value(dtype, top):
    if dtype.kind in "fb":
        return float(top) * 4
    return np.iinfo(dtype).max if top else np.iinfo(dtype).min


def input_sets(interpreter, seed):
    """Random values; every input all low, all high; and every other one low."""
    details = interpreter.get_input_details()
    rng = np.random.default_rng([seed, 1])
    sets = [{d["index"]: random_values(rng, d["shape"], np.dtype(d["dtype"])) for d in details}]
    patterns = [(False, False), (True, True)] + ([(True, False)] if len(details) > 1 else [])
    for pattern in patterns:
        sets.append({d["index"]: np.full(d["shape"], end_value(np.dtype(d["dtype"]), pattern[i % 2]), d["dtype"])
                     for i, d in enumerate(details)})
    return sets


# ---- differences -------------------------------------------------------------


def distances(got, want):
    """How far apart, for each value; floats are equal or infinitely far."""
    if got.shape != want.shape or got.dtype != want.dtype:
        return np.array([np.inf])
    if got.dtype.kind in "fb":
        return np.where((got == want) | ((got != got) & (want != want)), 0, np.inf)
    return np.abs(got.astype(np.int64) - want.astype(np.int64))


def first_wrong(got, want, far, bound):
    if far.shape != got.shape:
        return f"{got.dtype} {got.shape} where {want.dtype} {want.shape} is right"
    at = tuple(int(i) for i in np.argwhere(far > bound)[0])
    return (f"{np.count_nonzero(far > bound)} of {far.size} values are more than {bound} off, up to {far.max()}; "
            f"the first is {got[at]} at {at}, the reference has {want[at]}")


# ---- TFLite's answers --------------------------------------------------------


class Reference:
    """TFLite's own answers to a model, and to each operation of it alone."""

    def __init__(self, model):
        self.model, self.parts, self.known = model, {}, {}
        for self.resolver in RESOLVERS:
            try:
                interpreter = open_model(model.data, self.resolver)
                break
            except Refused as refusal:
                if self.resolver is RESOLVERS[-1]:
                    raise refusal
        self.inputs, self.outputs, refusals = [], None, []
        for values in input_sets(interpreter, model.seed):
            try:
                outputs = run(interpreter, values)
            except Refused as refusal:  # a square root of what is below zero
                refusals.append(refusal)
                continue
            self.inputs.append(values)
            self.outputs = self.outputs or outputs
        if not self.inputs:
            raise refusals[0]

    def alone(self, index, tensors, resolver=None):
        """{tensor: value} that operation `index` makes of those; by the reference kernel, if it has one."""
        interpreter, inputs = self.part(index, resolver)
        values = {i: tensors[i] for i in inputs}
        key = index, resolver, hashlib.sha1(b"".join(value.tobytes() for value in values.values())).digest()
        if key not in self.known:
            self.known[key] = run(interpreter, values)
        return self.known[key]

    def part(self, index, resolver):
        if (index, resolver) not in self.parts:
            data, inputs = random_models.part_of(self.model, index)
            try:
                interpreter = open_model(data, resolver or RESOLVERS[0])
            except Refused:
                if resolver:
                    raise
                interpreter = open_model(data, RESOLVERS[1])
            self.parts[index, resolver] = interpreter, inputs
        return self.parts[index, resolver]
