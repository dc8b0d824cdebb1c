/* SPDX-License-Identifier: MIT */
/* mica capture: runs a program with the interceptor preloaded. */

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "preload.h"

#define DEFAULT_FOLDER "mica-capture"
#define LIBRARY "libmica_capture.so"

/* ---- where the capture goes -------------------------------------------------------- */

/* Files of an older capture among new ones would lie about what was submitted. */
static int check_folder(struct cli *cli, const char *folder)
{
    DIR *directory = opendir(folder);
    if (!directory && errno == ENOENT)
        return 0;
    if (!directory)
        return cli_fail(cli, "%s: %s", folder, strerror(errno));
    bool empty = true;
    for (const struct dirent *entry; (entry = readdir(directory));)
        empty = empty && (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0);
    closedir(directory);
    return empty ? 0 : cli_fail(cli, "%s is not empty: name another folder with --output", folder);
}

/* The program may change its folder. */
static bool absolute(const char *folder, char *path, size_t room)
{
    char here[PATH_MAX] = "";
    if (folder[0] != '/' && !getcwd(here, sizeof here))
        return false;
    return snprintf(path, room, "%s%s%s", here, folder[0] == '/' ? "" : "/", folder) < (int)room;
}

/* Without a node there is no folder: say so, as the program may well have run on the CPU. */
static void report(struct cli *cli, const char *folder)
{
    char path[PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/capture.json", folder);
    if (access(path, F_OK) != 0)
        cli_note(cli, "nothing was captured: the program opened no node of an NPU");
}

int cli_capture(struct cli *cli)
{
    char library[PATH_MAX], folder[PATH_MAX], variable[PATH_MAX + sizeof "MICA_CAPTURE="];
    const char *wanted = cli->options.executable ? cli->options.executable : DEFAULT_FOLDER;
    if (cli->options.operands.count == 0)
        return cli_usage(cli, "COMMAND is missing");
    if (!cli_find_library("intercept", LIBRARY, library))
        return cli_fail(cli, "%s is not found, neither beside the build nor installed", LIBRARY);
    if (!absolute(wanted, folder, sizeof folder))
        return cli_fail(cli, "%s: the path is too long", wanted);
    int failed = check_folder(cli, folder);
    if (failed)
        return failed;
    snprintf(variable, sizeof variable, "MICA_CAPTURE=%s", folder);
    int result = cli_run_preloaded(cli, library, false, variable);
    report(cli, folder);
    return result;
}
