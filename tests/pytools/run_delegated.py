# SPDX-License-Identifier: MIT
"""run_delegated.py MODEL DELEGATE DEVICE: a few runs on random inputs, for what records or stands in for a device."""

import sys

import model_builder
from ai_edge_litert.interpreter import Interpreter, OpResolverType, load_delegate

model, delegate, device = sys.argv[1:]
interpreter = Interpreter(model, experimental_delegates=[load_delegate(delegate, options={"device": device})],
                          experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
interpreter.allocate_tensors()
for run in range(3):
    for i, details in enumerate(interpreter.get_input_details()):
        interpreter.set_tensor(details["index"], model_builder.random_input(details, 10 * run + i))
    interpreter.invoke()
