# SPDX-License-Identifier: MIT
"""The delegate's manners in a host: options, partitions, other delegates, several interpreters, threads."""

import os
import subprocess
import sys
import threading

import model_builder
import numpy as np
import pytest

from conftest import ROOT, kernel_count

EXPORTS = {"tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate"}


def chain(dtype="uint8"):
    """Convolution, softmax (which no NPU of ours takes), convolution."""
    m = model_builder.Model(dtype, seed=11)
    x = m.conv2d(m.input((1, 8, 8, 16)), 16, (3, 3))
    return m.finish([m.conv2d(m.softmax(x), 24, (1, 1))])


def stages(delegate_path, code, **environment):
    """Runs Python code with the delegate in a process of its own; returns (stdout, stderr)."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MICA_")}
    prelude = f"import sys; sys.path.insert(0, {str(ROOT / 'tests/pytools')!r}); PATH = {delegate_path!r}\n" \
              "import model_builder\nfrom ai_edge_litert.interpreter import Interpreter, load_delegate\n"
    result = subprocess.run([sys.executable, "-c", prelude + code], env=env | environment, capture_output=True,
                            text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


# ---- the library --------------------------------------------------------------


def symbols(path, option):
    output = subprocess.run(["nm", "-D", option, path], capture_output=True, text=True, check=True).stdout
    return [line.split()[-1] for line in output.splitlines()]


def test_exports_are_the_plugin_interface(delegate_path):
    assert set(symbols(delegate_path, "--defined-only")) == EXPORTS


def test_nothing_of_the_host_or_of_cpp_is_imported(delegate_path):
    for name in symbols(delegate_path, "--undefined-only"):
        assert not name.lower().startswith(("tflite", "litert", "_zn", "_znst", "__cxa_throw")), name
    needed = subprocess.run(["readelf", "-d", delegate_path], capture_output=True, text=True, check=True).stdout
    assert "libstdc++" not in needed


# ---- options ------------------------------------------------------------------


@pytest.mark.parametrize("options,words", [
    ({"divice": "auto"}, "the options are device, profile, log_level, threads, on_chip, optimize"),
    ({"device": "sim:toaster"}, "sim:a311d"),
    ({"profile": "yes"}, "0 or 1"),
    ({"log_level": "loud"}, "error, warning, info or debug"),
    ({"threads": "-1"}, "number from 0"),
    ({"threads": "1000000"}, "number from 0"),
    ({"on_chip": "yes"}, "option on_chip must be 0 or 1"),
    ({"optimize": "everything"}, "option optimize must be speed or size"),
    ({"device": "sim:rk3588", "cores": "4"}, "has 3 cores"),
    ({"device": "sim:rk3588", "split": "4"}, "has 3 cores"),
    ({"device": "sim:rk3588", "clock": "1001"}, "from 200 to 1000"),
    ({"device": "sim:rk3566", "split": "2"}, "has 1 core"),
    ({"cores": "some"}, "option cores must be"),
])
def test_a_bad_option_is_an_error_that_says_what_would_do(runner, options, words):
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        runner.load(runner.path, options)


def test_a_bad_variable_is_an_error(delegate_path):
    code = "try: load_delegate(PATH)\nexcept ValueError as e: print(e)"
    out, _ = stages(delegate_path, code, MICA_PROFILE="maybe")
    assert "environment variable MICA_PROFILE must be 0 or 1" in out


RUN = """
d = load_delegate(PATH, OPTIONS)
i = Interpreter(model_content=model_builder.conv2d((8, 8), 4, 8), experimental_delegates=[d])
i.allocate_tensors()
for _ in range(3): i.invoke()
del i
del d
"""


def mica_lines(text):
    return [line for line in text.splitlines() if line.startswith("mica:")]


def test_nothing_is_printed_by_default(delegate_path):
    _, err = stages(delegate_path, RUN.replace("OPTIONS", "{}"))
    assert not mica_lines(err)


def test_info_says_what_is_taken(delegate_path):
    _, err = stages(delegate_path, RUN.replace("OPTIONS", "{'log_level': 'info'}"))
    assert any("CONV_2D" in line and "taken" in line for line in mica_lines(err))
    assert any("1 of 1 nodes run on sim:a311d" in line for line in mica_lines(err))


def test_info_says_what_is_left_and_why(delegate_path):
    code = RUN.replace("OPTIONS", "{}").replace("conv2d((8, 8), 4, 8)", "softmax((1, 8, 8, 4))")
    _, err = stages(delegate_path, code, MICA_LOG_LEVEL="info")
    assert any("SOFTMAX" in line and "left to the host, " in line for line in mica_lines(err))


def test_the_profile_has_every_job(delegate_path):
    _, err = stages(delegate_path, RUN.replace("OPTIONS", "{'profile': 1}"))
    rows = [line.split() for line in mica_lines(err)]
    nn = [row for row in rows if len(row) > 3 and row[2] == "NN"]
    assert nn and all(row[3] == "3" for row in nn)  # three runs
    assert sum(int(row[4]) for row in nn) == 8 * 8 * 4 * 8
    assert any("timing model" in line for line in mica_lines(err))


def test_device_cpu_leaves_everything(runner):
    model = chain()
    interpreter = runner.delegated_interpreter(model, [runner.load(runner.path, {"device": "cpu"})])
    assert kernel_count(interpreter) == 0


@pytest.mark.parametrize("threads", ["1", "3"])
def test_threads_do_not_change_results(runner, threads):
    model = model_builder.conv2d((20, 20), 32, 32, (3, 3), seed=12)
    inputs = runner.inputs(model)
    delegate = runner.load(runner.path, {"device": runner.device, "threads": threads})
    got = runner.run(runner.delegated_interpreter(model, [delegate]), inputs)
    np.testing.assert_array_equal(got[0], runner.delegated(model, inputs)[0])


def deep():
    m = model_builder.Model("uint8", seed=30)
    x = m.input((1, 28, 28, 32))
    for _ in range(4):
        x = m.conv2d(x, 32, (3, 3))
    return m.finish([x])


@pytest.mark.parametrize("device", ["sim:a311d", "sim:imx8mp", "sim:s905d3"])
@pytest.mark.parametrize("options", [{"on_chip": "1"}, {"optimize": "size"}, {"on_chip": "1", "optimize": "size"}])
def test_compile_options_do_not_change_results(runner, device, options):
    model = deep()
    inputs = runner.inputs(model)
    expected, got = (runner.run(runner.delegated_interpreter(model, [runner.load(runner.path, {"device": device, **o})]),
                                inputs) for o in ({}, options))
    np.testing.assert_array_equal(got[0], expected[0])


@pytest.mark.parametrize("device", ["sim:rk3588", "sim:rk3566"])
@pytest.mark.parametrize("options", [{"cores": "1"}, {"cores": "2"}, {"cores": "3"}, {"split": "2"}, {"split": "3"},
                                     {"cores": "3", "split": "2"}, {"clock": "1000"}, {"on_chip": "1"},
                                     {"optimize": "size"}], ids=str)
def test_options_of_rockchip_do_not_change_results(runner, device, options):
    if device == "sim:rk3566" and {"cores", "split"} & set(options):
        options = {key: "1" if key in ("cores", "split") else value for key, value in options.items()}
    model = deep()
    inputs = runner.inputs(model)
    expected, got = (runner.run(runner.delegated_interpreter(model, [runner.load(runner.path, {"device": device, **o})]),
                                inputs) for o in ({}, options))
    np.testing.assert_array_equal(got[0], expected[0])


@pytest.mark.parametrize("options", [{"cores": "1"}, {"cores": "3"}, {"cores": "3", "split": "3"}], ids=str)
def test_streams_on_several_cores(runner, options):
    """More interpreters than cores, of two models, each in a thread of its own with inputs of its own."""
    models = [deep(), model_builder.conv2d((40, 40), 24, 40, (3, 3), dtype="int8", per_channel=True, seed=31)]
    delegate = runner.load(runner.path, {"device": "sim:rk3588", **options})
    jobs = [(models[i % 2], runner.inputs(models[i % 2], 100 + i)) for i in range(7)]
    expected = [runner.run(runner.delegated_interpreter(model, [runner.load(runner.path, {"device": "sim:rk3588"})]),
                           inputs)[0] for model, inputs in jobs]
    different = []

    def work(i):
        model, inputs = jobs[i]
        interpreter = runner.delegated_interpreter(model, [delegate])
        for _ in range(5):
            if not np.array_equal(runner.run(interpreter, inputs)[0], expected[i]):
                different.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not different


def test_on_chip_memory_is_warned_about_by_default(delegate_path, tmp_path):
    path = tmp_path / "deep.tflite"
    path.write_bytes(deep())
    code = RUN.replace("model_content=model_builder.conv2d((8, 8), 4, 8)", f"model_path={str(path)!r}")
    _, err = stages(delegate_path, code.replace("OPTIONS", "{}"), MICA_ON_CHIP="1", MICA_DEVICE="sim:a311d")
    assert any("warning" in line and "not verified on hardware" in line for line in mica_lines(err))
    _, err = stages(delegate_path, code.replace("OPTIONS", "{}"))
    assert not mica_lines(err)


# ---- partitions ---------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_an_operation_in_between_makes_two_partitions(runner, dtype):
    model = chain(dtype)
    inputs = runner.inputs(model)
    got = runner.delegated(model, inputs, kernels=2)[0]
    # A lookup of rows only moves values, so the reference differs by the two convolutions' rounding only; the
    # second convolution spreads a difference of 1 over all channels.
    want = runner.reference(model, inputs)[0]
    assert np.abs(got.astype(int) - want.astype(int)).max() <= 3


def test_inner_tensors_can_be_outputs(runner):
    m = model_builder.Model("uint8", seed=13)
    a = m.conv2d(m.input((1, 6, 6, 8)), 8, (3, 3))
    b = m.conv2d(a, 8)
    runner.check(m.finish([m.add(a, b), a]), tolerance=None)


def test_a_diamond_with_a_host_operation_in_one_arm(runner):
    m = model_builder.Model("int8", seed=14)
    a = m.conv2d(m.input((1, 6, 6, 8)), 8, (3, 3))
    model = m.finish([m.add(m.conv2d(m.softmax(a), 8), m.conv2d(a, 8))])
    got = runner.delegated(model, runner.inputs(model), kernels=2)[0]
    assert np.unique(got).size > 10


def test_two_delegates_in_one_interpreter(runner):
    """The first takes all it can; the second finds the rest, which it can't run either."""
    model = chain()
    inputs = runner.inputs(model)
    second = runner.load(runner.path, {"device": runner.device})
    interpreter = runner.delegated_interpreter(model, [runner.delegate, second])
    got = runner.run(interpreter, inputs)
    assert kernel_count(interpreter) == 2
    np.testing.assert_array_equal(got[0], runner.delegated(model, inputs, kernels=2)[0])


def test_a_delegate_that_takes_nothing_leaves_all_to_the_next(runner):
    model = chain()
    first = runner.load(runner.path, {"device": "cpu"})
    interpreter = runner.delegated_interpreter(model, [first, runner.delegate])
    assert kernel_count(interpreter) == 2


def test_xnnpack_takes_what_is_left(runner):
    m = model_builder.Model("uint8", seed=17)
    x = m.conv2d(m.input((1, 8, 8, 16)), 16, (3, 3))
    y = m.dequantize(x)
    model = m.finish([x, m.softmax(y)])
    inputs = runner.inputs(model)
    interpreter = runner.delegated_interpreter(model, experimental_op_resolver_type=runner.resolvers.AUTO)
    got = runner.run(interpreter, inputs)
    assert kernel_count(interpreter) == 2
    np.testing.assert_array_equal(got[0], runner.delegated(model, inputs, kernels=1)[0])


# ---- interpreters -------------------------------------------------------------


def test_a_resized_input_is_compiled_anew(runner):
    m = model_builder.Model("uint8", seed=15)
    model = m.finish([m.conv2d(m.input((1, 6, 6, 8)), 8, (3, 3))])
    interpreter = runner.delegated_interpreter(model)
    index = interpreter.get_input_details()[0]["index"]
    for size in (10, 7, 6):
        interpreter.resize_tensor_input(index, (1, size, size, 8))
        image = np.random.default_rng(size).integers(0, 256, (1, size, size, 8), np.uint8)
        got = runner.run(interpreter, [image])[0]
        fresh = runner.interpreter_class(
            model_content=model, experimental_op_resolver_type=runner.resolvers.BUILTIN_REF)
        fresh.resize_tensor_input(index, (1, size, size, 8))
        want = runner.run(fresh, [image])[0]
        assert got.shape == (1, size, size, 8)
        assert np.abs(got.astype(int) - want.astype(int)).max() <= 1


def test_interpreters_in_threads_share_a_delegate(runner):
    models = [model_builder.conv2d((12, 12), 16, 16 + 8 * i, (3, 3), seed=i) for i in range(4)]
    inputs = [runner.inputs(m, i) for i, m in enumerate(models)]
    want = [runner.delegated(m, x)[0] for m, x in zip(models, inputs)]
    results = [[] for _ in models]

    def work(i):
        for _ in range(4):
            interpreter = runner.delegated_interpreter(models[i])
            for _ in range(4):
                results[i].append(runner.run(interpreter, inputs[i])[0])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(models))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    for i, got in enumerate(results):
        assert len(got) == 16
        for g in got:
            np.testing.assert_array_equal(g, want[i])


def test_destroying_the_delegate_first_does_no_harm(delegate_path):
    code = RUN.replace("OPTIONS", "{}").replace("del i\ndel d", "i._delegates = None\ndel d\ni.invoke()\nprint('fine')")
    out, _ = stages(delegate_path, code)
    assert "fine" in out


# ---- an older runtime ---------------------------------------------------------

OLD = ROOT / ".venv-tflite" / "bin" / "python"


@pytest.mark.skipif(not OLD.exists(), reason="tflite-runtime is not installed in .venv-tflite")
def test_tflite_runtime_gives_the_same(runner, tmp_path):
    model = model_builder.conv2d((12, 12), 16, 24, (3, 3), seed=16)
    inputs = runner.inputs(model)
    (tmp_path / "model.tflite").write_bytes(model)
    np.save(tmp_path / "in.npy", inputs[0])
    code = f"""
import numpy as np
from tflite_runtime.interpreter import Interpreter, load_delegate
i = Interpreter({str(tmp_path / 'model.tflite')!r}, experimental_delegates=[load_delegate({runner.path!r}, {{"device": {runner.device!r}}})])
i.allocate_tensors()
assert [o["op_name"] for o in i._get_ops_details()].count("DELEGATE") == 1
i.set_tensor(i.get_input_details()[0]["index"], np.load({str(tmp_path / 'in.npy')!r}))
i.invoke()
np.save({str(tmp_path / 'out.npy')!r}, i.get_tensor(i.get_output_details()[0]["index"]))
try:
    load_delegate({runner.path!r}, {{"bogus": 1}})
except ValueError as e:
    print(e)
"""
    result = subprocess.run([OLD, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert "unknown option" in result.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), runner.delegated(model, inputs)[0])
