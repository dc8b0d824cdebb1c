/* SPDX-License-Identifier: MIT */
/* Command lines: which command takes which options, their values, and the help made from the same tables. */
#ifndef MICA_CLI_OPTIONS_H
#define MICA_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct cli;

/* A list of arguments; the array is owned, the strings are argv's. */
struct cli_list {
    const char **items;
    size_t count;
};

struct cli_options {
    const char *partition; /* NULL when not given */
    const char *per_channel;
    bool operations;
    const char *plot, *order;                                      /* NULL when not given */
    const char *chip;                                              /* NULL when not given; so are the next ones */
    const char *device, *labels, *executable, *capture, *optimize; /* NULL when not given */
    const char *shape, *coefficients, *csv;                        /* of the commands about captures */
    const char *task, *picture, *sound;                            /* of run */
    const char *layout, *normalize;                                /* of pictures */
    double every;                                                  /* seconds; 0 when not given */
    double threshold;
    bool has_threshold;
    struct cli_list over;
    bool weights, compare;
    struct cli_list inputs, outputs, operands;
    unsigned top, repeat, threads, verbose, cores, split, clock; /* the last three: 0 when not given */
    bool on_chip, fuse, json, help;
};

struct cli_command {
    const char *name;
    int (*run)(struct cli *cli);
    const char *summary;
    const char *operands; /* for the usage line */
    size_t operands_min, operands_max;
    const char *options;    /* the codes of the options it takes, see option_rows in options.c */
    const char *text;       /* what it does, and examples */
    const char *exit_codes; /* NULL: as most commands' */
};

extern const struct cli_command cli_commands[];
extern const size_t cli_command_count;

/* Parses what follows the command's name into cli->options; 0 or an exit code. */
int cli_options_parse(struct cli *cli, int argc, char **argv);
void cli_options_finish(struct cli_options *options);

/* The table of options that `command` takes. */
void cli_options_help(const struct cli_command *command, FILE *out);

#endif
