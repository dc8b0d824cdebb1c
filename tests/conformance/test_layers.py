# SPDX-License-Identifier: MIT
"""Networks layer by layer: chained, against the hardware model; with exact inputs, against TFLite's reference."""

import copy

import numpy as np
import pytest

from conftest import ROOT, assert_close, assert_equal

SHIPPED = ROOT / "share" / "mica" / "mobilenet_v1_1.0_224_quant.tflite"
NETWORKS = [
    "mobilenet_v1_1.0_224_quant",
    "mobilenet_v2_1.0_224_quant",
    "ssdlite_mobiledet_coco_qat_postprocess",
]


def load(name, request):
    path = SHIPPED if name == SHIPPED.stem else request.getfixturevalue("shared") / "models" / f"{name}.tflite"
    return path.read_bytes()


def unpack(data):
    from ai_edge_litert import schema_py_generated as schema

    return schema.ModelT.InitFromPackedBuf(data, 0), schema.BuiltinOperator


def pack(model):
    import flatbuffers

    builder = flatbuffers.Builder(1 << 20)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def computing(model, builtin):
    """Operators that the NN unit computes."""
    kinds = {builtin.CONV_2D, builtin.DEPTHWISE_CONV_2D, builtin.ADD, builtin.FULLY_CONNECTED}
    codes = [max(c.builtinCode, c.deprecatedBuiltinCode) for c in model.operatorCodes]
    return [op for op in model.subgraphs[0].operators if codes[op.opcodeIndex] in kinds]


def with_outputs(data):
    """The model with every layer's result among its outputs."""
    model, builtin = unpack(data)
    model.subgraphs[0].outputs = [int(op.outputs[0]) for op in computing(model, builtin)]
    model.signatureDefs = None
    return pack(model)


def one_layer(model, operator):
    """A model of that operator alone, and its inputs: the tensors that are no constants."""
    whole, used = model.subgraphs[0], [int(t) for t in (*operator.inputs, *operator.outputs) if t >= 0]
    places = {tensor: i for i, tensor in enumerate(dict.fromkeys(used))}
    single, graph, own = copy.copy(model), copy.copy(whole), copy.copy(operator)
    graph.tensors, single.buffers = [], [model.buffers[0]]
    for tensor in places:
        place = copy.copy(whole.tensors[tensor])
        if model.buffers[place.buffer].data is not None:
            single.buffers.append(model.buffers[place.buffer])
            place.buffer = len(single.buffers) - 1
        else:
            place.buffer = 0
        graph.tensors.append(place)
    own.inputs, own.outputs = ([places.get(int(t), -1) for t in ts] for ts in (operator.inputs, operator.outputs))
    inputs = [t for t in places if graph.tensors[places[t]].buffer == 0 and t in operator.inputs]
    graph.operators, graph.inputs, graph.outputs = [own], [places[t] for t in inputs], own.outputs
    single.subgraphs, single.signatureDefs, single.metadata = [graph], None, None
    return pack(single), inputs


@pytest.mark.parametrize("name", NETWORKS)
def test_each_layer_equals_the_hardware_model(runner, request, name):
    model = with_outputs(load(name, request))
    inputs = runner.inputs(model, seed=7)
    interpreter = runner.delegated_interpreter(model)
    got = runner.run(interpreter, inputs)
    for g, w in zip(got, runner.hardware_model(model, inputs, got)):
        assert_equal(g, w)


@pytest.mark.parametrize("name", NETWORKS)
def test_each_layer_with_exact_inputs_is_within_1_of_the_reference(runner, request, name):
    data = load(name, request)
    model, builtin = unpack(data)
    reference = runner.interpreter_class(
        model_content=data, experimental_preserve_all_tensors=True,
        experimental_op_resolver_type=runner.resolvers.BUILTIN_REF)
    runner.run(reference, runner.inputs(data, seed=8))
    for operator in computing(model, builtin):
        layer, tensors = one_layer(model, operator)
        inputs = [reference.get_tensor(t) for t in tensors]
        got = runner.delegated(layer, inputs, kernels=1)[0]
        assert_close(got, reference.get_tensor(int(operator.outputs[0])), 1)
