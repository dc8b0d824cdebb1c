/* SPDX-License-Identifier: MIT */
/* mica vnpu: runs a program that finds an NPU's device node, behind which a simulator is. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "preload.h"

#define LIBRARY "libmica_vnpu.so"
#define DEFAULT_CHIP "a311d"

/* What the library takes: chips that a mainline kernel drives. */
static const char *const chips[] = {"a311d", "imx8mp", "s905d3", "rk3588"};

static bool is_chip(const char *name)
{
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (strcmp(chips[i], name) == 0)
            return true;
    return false;
}

int cli_vnpu(struct cli *cli)
{
    char library[PATH_MAX], variable[64];
    const char *chip = cli->options.chip ? cli->options.chip : DEFAULT_CHIP;
    if (cli->options.operands.count == 0)
        return cli_usage(cli, "COMMAND is missing");
    if (!is_chip(chip))
        return cli_usage(cli, "there is no virtual NPU '%s'; there are a311d, imx8mp, s905d3 and rk3588", chip);
    if (!cli_find_library("vnpu", LIBRARY, library))
        return cli_fail(cli, "%s is not found, neither beside the build nor installed", LIBRARY);
    if (cli->options.verbose)
        setenv("MICA_VNPU_VERBOSE", "1", 1);
    snprintf(variable, sizeof variable, "MICA_VNPU_CHIP=%s", chip);
    /* Last: it stands for the kernel, behind what else looks at the program's calls. */
    return cli_run_preloaded(cli, library, true, variable);
}
