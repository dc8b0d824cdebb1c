# SPDX-License-Identifier: MIT
"""Small random models of one or two operations, and what a device makes of thousands of them.

    model = random_models.random_model(seed)            # model.data: the file's bytes; print(model.description)
    python tests/pytools/random_models.py --count 5000  # random_run.py: runs them all; --help

Every model follows from its seed alone. docs/testing.md says what is checked.
"""

import copy
import sys
from dataclasses import dataclass

import model_builder
import numpy as np
from ai_edge_litert import schema_py_generated as schema

import random_moves  # noqa: F401  (it and the next have operations)
import random_weighted  # noqa: F401
from random_draw import Draw, Unfit
from random_operations import BYTES, OPERATIONS, RARE, draw_operation
from random_pairs import BINARY

FORMS = {"single": 50, "chain": 27, "residual": 8, "halves": 6, "fork": 5, "apart": 4}
CODES = {value: name for name, value in vars(schema.BuiltinOperator).items() if isinstance(value, int)}
TYPES = {number: name for name, (number, _) in model_builder.TYPES.items()}


@dataclass
class RandomModel:
    """`data`: every tensor that is computed is an output; `hidden`: only the last ones are, or some of them."""

    seed: int
    data: bytes
    hidden: bytes
    source: model_builder.Model  # what it was made of, for parts of it
    operations: list  # names

    @property
    def description(self):
        return "\n".join(describe(self.source, *each) for each in zip(self.source.graph.operators, self.operations))

    def type_of(self, index):
        """The type of the values that an operation works on."""
        op, tensors = self.source.graph.operators[index], self.source.graph.tensors
        return next(TYPES[tensors[i].type] for i in op.inputs if not tensors[i].buffer)


# ---- forms -------------------------------------------------------------------


def pick_type(rng, name):
    types = OPERATIONS[name][2]
    if rng.random() < 0.05:
        rare = [t for t in RARE if t in types]
        if rare:
            return rare[int(rng.integers(len(rare)))]
    usual = [t for t in BYTES if t in types] or list(types)
    return usual[int(rng.integers(len(usual)))]


def pick_operation(d, among=None):
    return d.pick({name: OPERATIONS[name][1] for name in sorted(among or OPERATIONS)})


def second(d, x):
    """Another operation, on x."""
    for _ in range(30):
        name = pick_operation(d)
        if d.dtype in OPERATIONS[name][2]:
            return draw_operation(d, name, x)
    raise Unfit


def joined(d, a, b):
    """An operation on two tensors that are there."""
    if a.shape != b.shape or a.dtype != d.dtype or b.dtype != d.dtype:
        raise Unfit
    name = pick_operation(d, [n for n in (*BINARY, "CONCATENATION", "PACK") if d.dtype in OPERATIONS[n][2]])
    if name in ("MAXIMUM", "MINIMUM", "CONCATENATION", "PACK") and d.quant_of(a) != d.quant_of(b):
        raise Unfit
    return OPERATIONS[name][0](d, name, a, b)


def draw_form(d, form, name):
    """Draws the model's operations; the tensors that nothing else uses are its outputs."""
    first = draw_operation(d, name, None)
    out = first[d.between(0, len(first) - 1)]
    if form == "chain":
        second(d, out)
    elif form == "residual":
        x = d.m.inputs[0]
        joined(d, out, x if x.shape == out.shape else d.input(out.shape, d.quant_of(out)))
    elif form == "halves":
        if len(first) < 2:
            raise Unfit
        joined(d, *first[:2])
    elif form == "fork":
        second(d, d.m.inputs[0])
    elif form == "apart":
        second(d, None)


def random_model(seed, among=None):
    """`among`: names of operations that the first one is picked from."""
    rng = np.random.default_rng([0x6D696361, seed])
    names = sorted(among or OPERATIONS)
    weights = np.array([OPERATIONS[name][1] for name in names])
    name = names[int(rng.choice(len(names), p=weights / weights.sum()))]
    form = list(FORMS)[int(rng.choice(len(FORMS), p=np.array(list(FORMS.values())) / sum(FORMS.values())))]
    if form == "halves":
        name = ("SPLIT", "SPLIT_V", "UNPACK")[int(rng.integers(3))] if among is None else name
    for _ in range(300):
        d = Draw(rng, pick_type(rng, name))
        try:
            draw_form(d, form, name)
        except Unfit:
            continue
        return finished(d, seed)
    return finished(single(rng, name), seed)


def single(rng, name):
    while True:
        d = Draw(rng, pick_type(rng, name))
        try:
            draw_form(d, "single", name)
            return d
        except Unfit:
            continue


def finished(d, seed):
    operators = d.m.graph.operators
    made = [index for op in operators for index in op.outputs]
    used = {index for op in operators for index in op.inputs}
    last = [index for index in made if index not in used]
    if len(last) > 1 and d.chance(0.2):
        last = d.some(last, 1)
    inputs = [t.index for t in d.m.inputs if t.index in used]
    return RandomModel(seed, file_of(d.m, operators, inputs, made), file_of(d.m, operators, inputs, last), d.m,
                       [CODES[d.m.codes[op.opcodeIndex].builtinCode] for op in operators])


# ---- files -------------------------------------------------------------------


def file_of(source, operators, inputs, outputs):
    used = sorted({op.opcodeIndex for op in operators})  # a code without a kernel is refused, used or not
    part = copy.copy(source.graph)
    part.operators, part.inputs, part.outputs = list(map(copy.copy, operators)), list(inputs), list(outputs)
    for op in part.operators:
        op.opcodeIndex = used.index(op.opcodeIndex)
    model = schema.ModelT()
    model.version, model.description = 3, "Mica test model"
    model.subgraphs, model.buffers, model.operatorCodes = [part], source.buffers, [source.codes[i] for i in used]
    builder = model_builder._AlignedBuilder(1 << 14)
    builder.Finish(model.Pack(builder), file_identifier=b"TFL3")
    return bytes(builder.Output())


def part_of(model, index):
    """(a model of that operation alone, the tensors that are its inputs), all others' results being inputs."""
    graph = model.source.graph
    op = graph.operators[index]
    inputs = [i for i in dict.fromkeys(op.inputs) if i >= 0 and not graph.tensors[i].buffer]
    return file_of(model.source, [op], inputs, op.outputs), inputs


# ---- descriptions ------------------------------------------------------------


def numbers(values):
    values = np.ravel(values)
    text = " ".join(f"{v:g}" for v in values[:4])
    return text + (f" ... ({values.size} from {values.min():g} to {values.max():g})" if values.size > 4 else "")


def describe_tensor(source, index):
    if index < 0:
        return "none"
    t = source.graph.tensors[index]
    text = f"{TYPES[t.type]} {'x'.join(map(str, t.shape)) or 'scalar'}"
    if t.quantization is not None and t.quantization.scale is not None:
        text += f" scale {numbers(t.quantization.scale)} zero {numbers(t.quantization.zeroPoint[:1])}"
    if t.buffer:
        values = np.frombuffer(bytes(source.buffers[t.buffer].data), model_builder.TYPES[TYPES[t.type]][1])
        text += f" = {numbers(values)}"
    return f"[{text}]"


def describe(source, op, name):
    options = vars(op.builtinOptions) if op.builtinOptions else {}
    options = {key: value for key, value in options.items() if not hasattr(value, "__len__")}
    places = [f"{index}: {describe_tensor(source, index)}" for index in op.inputs]
    return "\n".join([f"{name} {options}", *(f"    {p}" for p in places),
                      *(f"    -> {i}: {describe_tensor(source, i)}" for i in op.outputs)])


if __name__ == "__main__":
    import random_run

    sys.exit(random_run.main())
