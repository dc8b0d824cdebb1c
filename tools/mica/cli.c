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
        "run a model on a picture or on raw tensors",
        "MODEL [IMAGE]",
        1,
        2,
        "diOlnrkpmzxtjvh",
        "Runs MODEL, a .tflite file or an executable saved by 'mica compile'. IMAGE is a PNG, JPEG or BMP\n"
        "picture of any size, resized to the model's input (bicubic) and its values adapted: uint8 as they\n"
        "are, int8 minus 128, float32 scaled to -1..1. Any model runs on raw tensors, given by --input.\n"
        "Prints the classes with the highest scores, or the value range of outputs that aren't classes.\n"
        "\n"
        "Examples:\n"
        "  mica run mobilenet.tflite cat.png --top 3\n"
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
        "dpzxtjvh",
        "Lists the inputs, outputs and operations of MODEL (.tflite or saved executable): where the device\n"
        "would run each operation, and the reason when that isn't the NPU. MMACs are millions of\n"
        "multiply-accumulates of one inference. Compiles the model for the last line, what it takes on the NPU.\n"
        "\n"
        "Example:\n"
        "  mica info mobilenet.tflite --device sim:a311d\n",
    },
    {
        "compare",
        cli_compare,
        "compare a device with TFLite's reference, layer by layer",
        "MODEL [IMAGE]",
        1,
        2,
        "diGSpzxtjvh",
        "Runs MODEL (.tflite or saved executable) on a device and on TFLite's reference arithmetic, on a picture,\n"
        "on the tensors of --input, or else on made-up values, and lists how far each operation is off: alone,\n"
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
        "doipzxcvth",
        "Compiles MODEL (.tflite or saved executable) for a device. Needs --output, --capture or both.\n"
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
        "jvh",
        "Lists every known device, and why it can't be used here when that is so; -v adds descriptions,\n"
        "and what of each is inferred rather than verified on hardware.\n"
        "\n"
        "Example:\n"
        "  mica devices -v\n",
    },
    {
        "profile",
        cli_profile,
        "show what each job of a run costs",
        "MODEL",
        1,
        1,
        "dipmzxtjvh",
        "Runs MODEL (.tflite or saved executable) once, on the tensors of --input or else on zeros, and lists\n"
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
    },
};
const size_t cli_command_count = sizeof(cli_commands) / sizeof(cli_commands[0]);

static void print_help(FILE *out)
{
    fputs("Usage: mica COMMAND [OPTIONS] [ARGUMENTS]\n"
          "\n"
          "Runs quantized TensorFlow Lite models on neural processing units (NPUs) and on bit-accurate\n"
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
    fputs("\nExit codes: 0 done, 1 failed (file, model or device), 2 wrong command line.\n", out);
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
