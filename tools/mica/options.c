/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

struct option_row {
    const char *name;
    int code;             /* what commands list, and what getopt returns */
    char letter;          /* short option, 0 for none */
    const char *argument; /* NULL: takes none */
    const char *help;
};

static const struct option_row option_rows[] = {
    {"device", 'd', 0, "NAME",
     "device, one of 'mica devices' (default: $MICA_DEVICE, else an executable's chip, else auto)"},
    {"input", 'i', 0, "FILE", "raw bytes of an input tensor; once per input, in order"},
    {"output", 'O', 'o', "FILE", "write the raw bytes of an output tensor; once per output, in order"},
    {"output", 'o', 'o', "FILE", "save the executable"},
    {"output", 'D', 'o', "DIR", "folder of the capture, new or empty (default: mica-capture)"},
    {"capture", 'c', 0, "DIR", "write what would be submitted to the device; without --input all inputs are zero"},
    {"labels", 'l', 0, "FILE", "class names, one a line (default: NAME.labels.txt or labels.txt beside MODEL)"},
    {"task", 'K', 0, "TASK",
     "classify, detect, segment, pose, depth, super-resolution, keyword, audio-event, denoise or none (default: as the "
     "model "
     "looks)"},
    {"picture", 'Q', 0, "FILE", "write IMAGE with the task's results drawn into it, or the task's own picture, as PNG"},
    {"sound", 'U', 0, "FILE", "write the sound that a task makes, as WAV"},
    {"every", 'E', 0, "SECONDS", "listen again so much further on in SOUND, to its end: the best class each time"},
    {"layout", 'L', 0, "LAYOUT", "NHWC or NCHW: where the model's images have their channels (default: as they look)"},
    {"normalize", 'Y', 0, "HOW",
     "what samples of IMAGE become: none, 0..1, -1..1, imagenet, or MEANS/DEVIATIONS (default: as the input looks)"},
    {"threshold", 'T', 0, "SCORE", "score that a box or a point needs, 0 to 1 (default: boxes 0.4, points 0.3)"},
    {"top", 'n', 0, "N", "how many classes to print (default: 5)"},
    {"repeat", 'r', 0, "N", "run N times; reports the minimum and the median time"},
    {"optimize", 'z', 0, "FOR", "speed (default) or size: search longer for smaller coefficients"},
    {"fuse", 'u', 0, NULL, "additions in the convolution before them, where a sum changes by 1 at most (Rockchip)"},
    {"per-channel", 'X', 0, "HOW",
     "exact (default) or folded: scales in 8-bit weights, quicker, bounds in info (Vivante)"},
    {"on-chip", 'x', 0, NULL, "keep tensors in on-chip memory; unverified on hardware"},
    {"cores", 'k', 0, "K", "run the N of --repeat on K cores of the NPU at the same time; reports inferences a second"},
    {"split", 'p', 0, "N", "spread one inference over N cores; simulators only, no kernel allows it (default: 1)"},
    {"clock", 'm', 0, "MHZ", "clock that a simulator's timing model counts at, where the chip has a choice"},
    {"operations", 'A', 0, NULL, "the table of operations: which each chip takes, how, its limits, how exact"},
    {"partition", 'B', 0, "WHAT", "all (default): what the NPU takes runs there; cost: unless the CPU looks faster"},
    {"plot", 'G', 0, "FILE", "draw the layers' errors into an SVG picture"},
    {"order", 'S', 0, "ORDER", "worst (default) or model: the order of layers"},
    {"chip", 'C', 0, "NAME", "chip of the node: a311d (default), imx8mp, s905d3 or rk3588"},
    {"output", 'W', 'o', "DIR",
     "folder for models, captures and what COMMAND prints, new or empty (default: mica-sweep)"},
    {"over", 'V', 0, "NAME=V1,V2", "values that a parameter goes through; several --over make a grid"},
    {"csv", 'F', 0, "FILE", "write the table as comma-separated values"},
    {"plot", 'P', 0, "FILE", "draw how the fields follow into an SVG picture"},
    {"device", 'e', 0, "NAME", "sim:CHIP, the simulator (default: that of the capture's chip)"},
    {"chip", 'N', 0, "NAME", "chip whose tables are used (default: the capture's)"},
    {"coefficients", 'f', 0, "FORMAT", "v7: coefficient buffers are V7 streams, whatever the chip would make of them"},
    {"coefficients", 's', 0, "SHAPE", "PATH is a coefficient buffer of this shape, as 3x3,in=16,out=32,zero=128"},
    {"weights", 'w', 0, NULL, "each kernel's bias and weights too"},
    {"compare", 'q', 0, NULL, "print which differences there are, and how many of each"},
    {"threads", 't', 0, "N", "worker threads (default: one per processor)"},
    {"json", 'j', 0, NULL, "print JSON, and nothing else, on standard output"},
    {"verbose", 'v', 'v', NULL, "print the library's messages; twice: all of them"},
    {"help", 'h', 'h', NULL, "print this help"},
};
#define ROWS (sizeof(option_rows) / sizeof(option_rows[0]))

static bool takes(const struct cli_command *command, const struct option_row *row)
{
    return strchr(command->options, row->code) != NULL;
}

static int append(struct cli *cli, struct cli_list *list, const char *item)
{
    const char **items = realloc(list->items, (list->count + 1) * sizeof(*items));
    if (!items)
        return cli_fail_nomem(cli);
    list->items = items;
    items[list->count++] = item;
    return 0;
}

static int parse_number(struct cli *cli, const char *name, const char *text, unsigned most, unsigned *number)
{
    char *end;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (*text < '0' || *text > '9' || *end || errno || value < 1 || value > most)
        return cli_usage(cli, "--%s must be a number from 1 to %u, not '%s'", name, most, text);
    *number = (unsigned)value;
    return 0;
}

static int parse_score(struct cli *cli, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0 && value <= 1))
        return cli_usage(cli, "--threshold must be a number from 0 to 1, not '%s'", text);
    cli->options.threshold = value;
    cli->options.has_threshold = true;
    return 0;
}

static int parse_seconds(struct cli *cli, const char *text)
{
    char *end;
    double value = strtod(text, &end);
    if (end == text || *end || !(value >= 0.01 && value <= 3600))
        return cli_usage(cli, "--every must be a number of seconds from 0.01 to 3600, not '%s'", text);
    cli->options.every = value;
    return 0;
}

static int set_text(struct cli *cli, const char *name, const char *text, const char **value)
{
    if (*value)
        return cli_usage(cli, "--%s is given twice", name);
    *value = text;
    return 0;
}

static int set_option(struct cli *cli, int code, const char *text)
{
    struct cli_options *options = &cli->options;
    switch (code) {
    case 'd':
    case 'e':
        return set_text(cli, "device", text, &options->device);
    case 'l':
        return set_text(cli, "labels", text, &options->labels);
    case 'o':
    case 'D':
    case 'W':
        return set_text(cli, "output", text, &options->executable);
    case 'c':
        return set_text(cli, "capture", text, &options->capture);
    case 'z':
        return set_text(cli, "optimize", text, &options->optimize);
    case 'C':
    case 'N':
        return set_text(cli, "chip", text, &options->chip);
    case 's':
        return set_text(cli, "coefficients", text, &options->shape);
    case 'f':
        return set_text(cli, "coefficients", text, &options->coefficients);
    case 'F':
        return set_text(cli, "csv", text, &options->csv);
    case 'V':
        return append(cli, &options->over, text);
    case 'B':
        return set_text(cli, "partition", text, &options->partition);
    case 'A':
        options->operations = true;
        return 0;
    case 'w':
        options->weights = true;
        return 0;
    case 'q':
        options->compare = true;
        return 0;
    case 'K':
        return set_text(cli, "task", text, &options->task);
    case 'Q':
        return set_text(cli, "picture", text, &options->picture);
    case 'U':
        return set_text(cli, "sound", text, &options->sound);
    case 'E':
        return parse_seconds(cli, text);
    case 'L':
        return set_text(cli, "layout", text, &options->layout);
    case 'Y':
        return set_text(cli, "normalize", text, &options->normalize);
    case 'T':
        return parse_score(cli, text);
    case 'G':
    case 'P':
        return set_text(cli, "plot", text, &options->plot);
    case 'S':
        return set_text(cli, "order", text, &options->order);
    case 'X':
        return set_text(cli, "per-channel", text, &options->per_channel);
    case 'u':
        options->fuse = true;
        return 0;
    case 'x':
        options->on_chip = true;
        return 0;
    case 'i':
        return append(cli, &options->inputs, text);
    case 'O':
        return append(cli, &options->outputs, text);
    case 'n':
        return parse_number(cli, "top", text, 1000, &options->top);
    case 'r':
        return parse_number(cli, "repeat", text, 1000000, &options->repeat);
    case 't':
        return parse_number(cli, "threads", text, 1024, &options->threads);
    case 'k':
        return parse_number(cli, "cores", text, 64, &options->cores);
    case 'p':
        return parse_number(cli, "split", text, 64, &options->split);
    case 'm':
        return parse_number(cli, "clock", text, 10000, &options->clock);
    case 'j':
        options->json = true;
        return 0;
    case 'v':
        options->verbose++;
        return 0;
    default:
        options->help = true;
        return 0;
    }
}

static int unknown_option(struct cli *cli, const char *argument)
{
    if (strncmp(argument, "--", 2) != 0)
        return cli_usage(cli, "unknown option '-%c'", optopt);
    const char *names[ROWS];
    size_t count = 0;
    for (size_t i = 0; i < ROWS; i++)
        if (takes(cli->command, &option_rows[i]))
            names[count++] = option_rows[i].name;
    const char *meant = cli_nearest(argument + 2, names, count, sizeof(names[0]));
    if (meant)
        return cli_usage(cli, "unknown option '%s'; did you mean '--%s'?", argument, meant);
    return cli_usage(cli, "unknown option '%s'", argument);
}

/* What getopt calls an unknown option covers two more mistakes in long ones. */
static int bad_option(struct cli *cli, const char *argument)
{
    const char *equals = strchr(argument, '=');
    size_t length = equals ? (size_t)(equals - argument) : strlen(argument), matches = 0;
    if (length > 2 && strncmp(argument, "--", 2) == 0)
        for (size_t i = 0; i < ROWS; i++)
            matches +=
                takes(cli->command, &option_rows[i]) && strncmp(option_rows[i].name, argument + 2, length - 2) == 0;
    if (matches > 1)
        return cli_usage(cli, "option '%s' could mean several; write it in full", argument);
    if (matches == 1 && equals)
        return cli_usage(cli, "option '%.*s' takes no value", (int)length, argument);
    return unknown_option(cli, argument);
}

static void make_long_options(const struct cli_command *command, struct option *longs)
{
    for (size_t i = 0; i < ROWS; i++) {
        const struct option_row *row = &option_rows[i];
        if (takes(command, row))
            *longs++ = (struct option){row->name, row->argument ? required_argument : no_argument, NULL, row->code};
    }
    *longs = (struct option){0};
}

/* Short options: v and h have their own code; o is whichever --output the command has. */
static int parse_options(struct cli *cli, int argc, char **argv)
{
    struct option longs[ROWS + 1];
    make_long_options(cli->command, longs);
    bool has_o = strpbrk(cli->command->options, "oODW") != NULL;
    /* '-': operands come in order, as code 1; '+': options end at the first operand; ':': a missing argument is told
     * apart */
    const char *shorts = strchr(cli->command->options, '+') ? "+:vho:" : has_o ? "-:vho:" : "-:vh";
    int code, failed = 0, at = 1; /* where the option being parsed stands */
    opterr = 0;
    optind = 0; /* glibc: start afresh */
    for (; !failed && (code = getopt_long(argc, argv, shorts, longs, NULL)) != -1; at = optind) {
        if (code == 'o' && strchr(cli->command->options, 'O'))
            code = 'O';
        if (code == '?')
            failed = bad_option(cli, argv[at]);
        else if (code == ':')
            failed = cli_usage(cli, "option '%s' needs a value", argv[at]);
        else if (code == 1)
            failed = append(cli, &cli->options.operands, optarg);
        else
            failed = set_option(cli, code, optarg);
    }
    while (!failed && optind < argc) /* after "--" */
        failed = append(cli, &cli->options.operands, argv[optind++]);
    return failed;
}

int cli_options_parse(struct cli *cli, int argc, char **argv)
{
    cli->options = (struct cli_options){.top = 5, .repeat = 1};
    int failed = parse_options(cli, argc, argv);
    if (failed || cli->options.help)
        return failed;
    const struct cli_list *operands = &cli->options.operands;
    if (operands->count < cli->command->operands_min)
        return cli_usage(cli, "%.*s is missing", (int)strcspn(cli->command->operands, " "), cli->command->operands);
    if (operands->count > cli->command->operands_max)
        return cli_usage(cli, "'%s' is one argument too many", operands->items[cli->command->operands_max]);
    return 0;
}

void cli_options_finish(struct cli_options *options)
{
    free(options->inputs.items);
    free(options->outputs.items);
    free(options->operands.items);
    free(options->over.items);
    *options = (struct cli_options){0};
}

void cli_options_help(const struct cli_command *command, FILE *out)
{
    fputs("\nOptions:\n", out);
    for (size_t i = 0; i < ROWS; i++) {
        const struct option_row *row = &option_rows[i];
        if (!takes(command, row))
            continue;
        char left[40];
        snprintf(left, sizeof(left), "--%s%s%s", row->name, row->argument ? " " : "",
                 row->argument ? row->argument : "");
        fprintf(out, "  %c%c%c %-20s %s\n", row->letter ? '-' : ' ', row->letter ? row->letter : ' ',
                row->letter ? ',' : ' ', left, row->help);
    }
}
