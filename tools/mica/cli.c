/* SPDX-License-Identifier: MIT */
/* Dispatch: the commands, their help, and what they all share. */
#include "cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const struct cli_command cli_commands[] = {
    {
        "run",
        cli_run,
        "run a model on a picture, a sound or raw tensors",
        "MODEL [IMAGE|SOUND]",
        1,
        2,
        "KQUELYTdiOlnrkpmzxuXBtjvh",
        "Runs MODEL, a .tflite or .onnx file or an executable saved by 'mica compile'. IMAGE is a PNG, JPEG or BMP\n"
        "picture of any size, resized to the model's input (bicubic); how its samples become the model's values is\n"
        "seen from the model, or said by --layout and --normalize. Any model runs on raw tensors, given by --input.\n"
        "SOUND is a WAV of 16000 samples a second, of which the features are made that the model wants.\n"
        "Prints what the model's outputs mean: classes, boxes, points of a body, areas; or their value range.\n"
        "\n"
        "Examples:\n"
        "  mica run mobilenet.tflite cat.png --top 3\n"
        "  mica run ssd.tflite street.jpg --labels coco.txt --picture boxes.png\n"
        "  mica run yolo.onnx street.jpg --normalize 0..1 --labels coco.txt --picture boxes.png\n"
        "  mica run model.tflite --input in0.bin --output out0.bin --device cpu\n"
        "  mica run mobilenet.tflite cat.png --device sim:rk3588 --repeat 30 --cores 3\n",
    },
    {
        "info",
        cli_info,
        "show a model's tensors, its operations and where they run",
        "MODEL",
        1,
        1,
        "dpzxuXBtjvh",
        "Lists the inputs, outputs and operations of MODEL (.tflite, .onnx or saved executable): where the device\n"
        "would run each operation, how the NPU computes it, or the reason why it doesn't. MMACs are millions of\n"
        "multiply-accumulates of one inference. jobs and us are of the operation by itself, by the timing model; off\n"
        "is how many steps of quantization its values may be from TFLite's reference kernels. Compiles the model for\n"
        "the last lines, how many partitions it has and what it takes on the NPU.\n"
        "\n"
        "Example:\n"
        "  mica info mobilenet.tflite --device sim:a311d\n",
    },
    {
        "compare",
        cli_compare,
        "compare a device with TFLite's reference, layer by layer",
        "MODEL [IMAGE|SOUND]",
        1,
        2,
        "diLYGSpzxuXBtjvh",
        "Runs MODEL (.tflite, .onnx or saved executable) on a device and on TFLite's reference arithmetic, on a "
        "picture,\n"
        "on a sound, on the tensors of --input, or else on made-up values, and lists how far each operation is off: "
        "alone,\n"
        "on exactly the reference's values, and chained, as it runs. Worst layers come first.\n"
        "\n"
        "Examples:\n"
        "  mica compare mobilenet.tflite cat.png --device sim:a311d\n"
        "  mica compare mobilenet.tflite --order model --plot layers.svg\n",
    },
    {
        "compile",
        cli_compile,
        "compile a model, save it or capture what it submits",
        "MODEL",
        1,
        1,
        "doipzxuXBcvth",
        "Compiles MODEL (.tflite, .onnx or saved executable) for a device. Needs --output, --capture or both.\n"
        "\n"
        "Examples:\n"
        "  mica compile mobilenet.tflite --device sim:a311d -o mobilenet.mica\n"
        "  mica compile mobilenet.tflite --capture captured\n",
    },
    {
        "devices",
        cli_devices,
        "list the devices this build knows",
        "",
        0,
        0,
        "Adjvh",
        "Lists every known device, and why it can't be used here when that is so; -v adds descriptions,\n"
        "and what of each is inferred rather than verified on hardware. With --operations: which operations each\n"
        "chip's NPU takes, or that of --device.\n"
        "\n"
        "Examples:\n"
        "  mica devices -v\n"
        "  mica devices --operations --device sim:rk3588\n",
    },
    {
        "profile",
        cli_profile,
        "show what each job of a run costs",
        "MODEL",
        1,
        1,
        "dipmzxuXBtjvh",
        "Runs MODEL (.tflite, .onnx or saved executable) once, on the tensors of --input or else on zeros, and lists\n"
        "every device job and CPU operation: time, cycles and memory traffic. A simulator's figures are\n"
        "estimates of a timing model, marked as such; CPU times are measured on this computer.\n"
        "\n"
        "Example:\n"
        "  mica profile mobilenet.tflite --device sim:a311d --json\n",
    },
    {
        "capture",
        cli_capture,
        "run a program and record what it submits to an NPU",
        "-- COMMAND...",
        0,
        SIZE_MAX,
        "+Dh",
        "Runs COMMAND with the interceptor preloaded, which writes down what the program and its children tell\n"
        "the drivers etnaviv, rocket, rknpu, galcore and aipu: every request, and every submission with its\n"
        "buffers before and after. The exit code is COMMAND's. MICA_CAPTURE_LIMIT is the most that a process\n"
        "writes, as in 500M (default: 4G). See docs/reverse-engineering.md.\n"
        "\n"
        "Examples:\n"
        "  mica capture -- python3 classify.py cat.png\n"
        "  mica capture -o captured -- ./benchmark --graph=model.tflite\n",
        "COMMAND's; 1 or 2 when it can't be run.",
    },
    {
        "vnpu",
        cli_vnpu,
        "run a program as if this computer had an NPU, simulated",
        "-- COMMAND...",
        0,
        SIZE_MAX,
        "+Cvh",
        "Runs COMMAND with a virtual device node: /dev/dri/renderD128 of the kernel's etnaviv driver, or\n"
        "/dev/accel/accel0 of rocket, exist for it and its children, and every job that they submit runs in the\n"
        "simulator of the chip. For drivers that know nothing of Mica, and to run them where no board is. With -v\n"
        "jobs that the kernel would kill are explained on standard error. The exit code is COMMAND's.\n"
        "\n"
        "Examples:\n"
        "  mica vnpu --chip rk3588 -- python3 classify.py cat.png\n"
        "  mica vnpu --chip a311d -- mica run mobilenet.tflite cat.png --device drm:/dev/dri/renderD128\n",
        "COMMAND's; 1 or 2 when it can't be run.",
    },
    {
        "decode",
        cli_decode,
        "print what a driver submitted, field by field",
        "PATH",
        1,
        1,
        "Nswjvh",
        "PATH is a capture folder, one submission of it (submit_NNNN), or a raw file with --chip: a command\n"
        "stream (etnaviv), register programs (rocket), or with --coefficients a coefficient buffer, whose shape\n"
        "is the kernel's size and what else is needed of in= (channels), out= (kernels), per-core= (kernels a\n"
        "core has of a superblock), zero= (point), plane= (bytes of an output plane) and depthwise.\n"
        "Prints states, job descriptors with their coefficient streams, and register programs by name, value and\n"
        "meaning; what nobody knows is marked UNKNOWN. Fields that are idle or 0 are left out without -v.\n"
        "\n"
        "Examples:\n"
        "  mica decode captured\n"
        "  mica decode captured/submit_0001 --json\n"
        "  mica decode stream.bin --chip a311d\n"
        "  mica decode bo_4.bin --chip imx8mp --coefficients 3x3,in=16,out=32,zero=128 --weights\n",
    },
    {
        "diff",
        cli_diff,
        "compare two captures, job by job",
        "A B",
        2,
        2,
        "Nwjvh",
        "Aligns the jobs of captures A and B in order and prints the fields in which they differ, then how often\n"
        "each field does. Addresses are compared as the buffer (numbered as jobs name them) and the offset in it.\n"
        "Change one parameter of a model, capture both, and see which fields follow.\n"
        "\n"
        "Examples:\n"
        "  mica diff stride1 stride2\n"
        "  mica diff ours theirs --json\n",
        "0 equal, 1 different, 2 wrong command line, or a capture that can't be read.",
    },
    {
        "replay",
        cli_replay,
        "execute a capture on its chip's simulator",
        "CAPTURE",
        1,
        1,
        "eNfqjvh",
        "Executes what any driver submitted and prints what each job costs by the timing model. Buffers are\n"
        "compared with what the device left in them, where that is recorded (file_after), and outputs with the\n"
        "CPU's result (cpu_N.bin).\n"
        "\n"
        "Examples:\n"
        "  mica replay captured --compare\n"
        "  mica replay s905d3 --coefficients v7\n"
        "  mica replay captured --device sim:rk3566 --json\n",
        "0 equal, or nothing to compare with, 1 different, 2 wrong command line, or the capture can't be executed.",
    },
    {
        "sweep",
        cli_sweep,
        "see how fields follow the parameters of a model",
        "-- COMMAND...",
        1,
        SIZE_MAX,
        "+VWFPNjvh",
        "Makes a model of one operation for each point of a grid, runs COMMAND on it, which is to capture what is\n"
        "submitted, and tabulates the fields that vary. COMMAND is started without a shell; in its words {model}\n"
        "stands for the model's file, {capture} for the folder to capture into, and {NAME} for a parameter.\n"
        "\n"
        "Parameters of the model, and what they are where --over doesn't name them: operation (conv2d, or\n"
        "depthwise) type (uint8, or int8) size 8, or height and width, kernel 3, stride 1, in 16, out 16 (channels\n"
        "names both), padding (same, or valid), seed 1. Any other NAME is only for COMMAND.\n"
        "\n"
        "Examples:\n"
        "  mica sweep --over kernel=1,3,5 -- mica compile {model} --device sim:a311d --capture {capture}\n"
        "  mica sweep --over size=8,16,32 --over stride=1,2 --plot plot.svg --csv table.csv -- \\\n"
        "      mica capture -o {capture} -- ./their_benchmark --graph={model}\n",
    },
};
const size_t cli_command_count = sizeof(cli_commands) / sizeof(cli_commands[0]);

static void print_help(FILE *out)
{
    fputs("Usage: mica COMMAND [OPTIONS] [ARGUMENTS]\n"
          "\n"
          "Runs quantized TensorFlow Lite and ONNX models on neural processing units (NPUs) and on bit-accurate\n"
          "simulators of them.\n"
          "\n"
          "Commands:\n",
          out);
    for (size_t i = 0; i < cli_command_count; i++)
        fprintf(out, "  %-8s  %s\n", cli_commands[i].name, cli_commands[i].summary);
    fputs("\n"
          "'mica COMMAND --help' shows a command's options; 'mica --version' the version.\n"
          "\n"
          "Environment:\n"
          "  MICA_DEVICE  the device where --device isn't given\n"
          "\n"
          "Exit codes:\n"
          "  0  done\n"
          "  1  failed: a file, the model or the device\n"
          "  2  the command line is wrong\n"
          "\n"
          "Example:\n"
          "  mica run mobilenet.tflite cat.png\n",
          out);
}

static void print_command_help(const struct cli_command *command, FILE *out)
{
    if (strchr(command->options, '+'))
        fprintf(out, "Usage: mica %s [OPTIONS] %s\n\n%s", command->name, command->operands, command->text);
    else
        fprintf(out, "Usage: mica %s %s%s[OPTIONS]\n\n%s", command->name, command->operands,
                *command->operands ? " " : "", command->text);
    cli_options_help(command, out);
    fprintf(out, "\nExit codes: %s\n",
            command->exit_codes ? command->exit_codes
                                : "0 done, 1 failed (file, model or device), 2 wrong command line.");
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].name, name) == 0)
            return &cli_commands[i];
    return NULL;
}

static int unknown_command(struct cli *cli, const char *name)
{
    static const char *const options[] = {"--help", "--version"};
    bool option = *name == '-';
    const char *kind = option ? "option" : "command";
    const char *meant = option ? cli_nearest(name, options, 2, sizeof(options[0]))
                               : cli_nearest(name, cli_commands, cli_command_count, sizeof(cli_commands[0]));
    if (meant)
        return cli_usage(cli, "unknown %s '%s'; did you mean '%s'?", kind, name, meant);
    return cli_usage(cli, "unknown %s '%s'", kind, name);
}

static int run_command(struct cli *cli, int argc, char **argv)
{
    int result = cli_options_parse(cli, argc, argv);
    if (!result && cli->options.help)
        print_command_help(cli->command, cli->out);
    else if (!result)
        result = cli->command->run(cli);
    cli_close(cli);
    cli_options_finish(&cli->options);
    return result;
}

static int dispatch(struct cli *cli, int argc, char **argv)
{
    if (argc < 2)
        return cli_usage(cli, "a command is missing");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || (strcmp(name, "help") == 0 && argc == 2)) {
        print_help(cli->out);
        return CLI_OK;
    }
    if (strcmp(name, "--version") == 0) {
        fprintf(cli->out, "mica %s\n", mica_version());
        return CLI_OK;
    }
    bool help = strcmp(name, "help") == 0;
    cli->command = find_command(argv[help ? 2 : 1]);
    if (!cli->command)
        return unknown_command(cli, argv[help ? 2 : 1]);
    if (help) {
        print_command_help(cli->command, cli->out);
        return CLI_OK;
    }
    return run_command(cli, argc - 1, argv + 1);
}

/* Output that could not be written is a failure too; a reader that closed its pipe needs no words about it. */
static int flush_output(struct cli *cli, int result)
{
    errno = 0;
    bool failed = ferror(cli->out) != 0;
    if (fflush(cli->out) == 0 && !failed)
        return result;
    if (errno != EPIPE)
        cli_fail(cli, "cannot write the output: %s", errno ? strerror(errno) : "write error");
    return result ? result : CLI_FAILED;
}

int mica_cli_main(int argc, char **argv, FILE *out, FILE *err)
{
    struct cli cli = {.out = out, .err = err};
    return flush_output(&cli, dispatch(&cli, argc, argv));
}
