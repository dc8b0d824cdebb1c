/* SPDX-License-Identifier: MIT */
/* mica capture: runs a program with the interceptor preloaded. */
#include "cli.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEFAULT_FOLDER "mica-capture"
#define LIBRARY "libmica_capture.so"

extern char **environ;

/* ---- where the library is ----------------------------------------------------- */

static bool try_library(char *path, const char *folder, const char *below)
{
    char joined[2 * PATH_MAX];
    snprintf(joined, sizeof joined, "%s/%s/" LIBRARY, folder, below);
    return realpath(joined, path) != NULL;
}

/* In a build it stands in a room of its own; installed, below the library folder, wherever all of it was moved. */
static bool find_library(char *path)
{
    char self[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    return (slash &&
            (try_library(path, self, "../../src/intercept") || try_library(path, self, "../../../src/intercept") ||
             try_library(path, self, "../" MICA_LIBDIR "/mica"))) ||
           try_library(path, MICA_PREFIX "/" MICA_LIBDIR, "mica");
}

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

/* ---- the program ----------------------------------------------------------------------- */

/* Our library comes first: what others preload is then seen as the kernel's side. */
static char **make_environment(char *preload, char *capture)
{
    size_t count = 0, kept = 0;
    while (environ[count])
        count++;
    char **made = calloc(count + 3, sizeof *made);
    for (size_t i = 0; made && i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 && strncmp(environ[i], "MICA_CAPTURE=", 13) != 0)
            made[kept++] = environ[i];
    if (made) {
        made[kept++] = preload;
        made[kept] = capture;
    }
    return made;
}

/* A shell's way to say that a signal ended the program. */
static int exit_code(int status)
{
    return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* The terminal's signals reach the program too; it decides what becomes of them. */
static int wait_for(pid_t child)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, interrupt, quit;
    int status = 0;
    sigaction(SIGINT, &ignore, &interrupt);
    sigaction(SIGQUIT, &ignore, &quit);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    sigaction(SIGINT, &interrupt, NULL);
    sigaction(SIGQUIT, &quit, NULL);
    return exit_code(status);
}

static int run_program(struct cli *cli, char **arguments, char **environment)
{
    pid_t child;
    int error = posix_spawnp(&child, arguments[0], NULL, NULL, arguments, environment);
    if (error)
        return cli_fail(cli, "%s can't be started: %s", arguments[0], strerror(error));
    return wait_for(child);
}

static char **copy_arguments(const struct cli_list *operands)
{
    char **arguments = calloc(operands->count + 1, sizeof *arguments);
    for (size_t i = 0; arguments && i < operands->count; i++)
        arguments[i] = (char *)operands->items[i]; /* posix_spawn() takes no const and changes nothing */
    return arguments;
}

static int start(struct cli *cli, const char *library, const char *folder)
{
    const char *others = getenv("LD_PRELOAD");
    char preload[2 * PATH_MAX], capture[PATH_MAX + 32];
    snprintf(preload, sizeof preload, "LD_PRELOAD=%s%s%s", library, others && *others ? ":" : "", others ? others : "");
    snprintf(capture, sizeof capture, "MICA_CAPTURE=%s", folder);
    char **arguments = copy_arguments(&cli->options.operands), **environment = make_environment(preload, capture);
    int result = arguments && environment ? run_program(cli, arguments, environment) : cli_fail_nomem(cli);
    free(arguments);
    free(environment);
    return result;
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
    char library[PATH_MAX], folder[PATH_MAX];
    const char *wanted = cli->options.executable ? cli->options.executable : DEFAULT_FOLDER;
    if (cli->options.operands.count == 0)
        return cli_usage(cli, "COMMAND is missing");
    if (!find_library(library))
        return cli_fail(cli, "%s is not found, neither beside the build nor installed", LIBRARY);
    if (!absolute(wanted, folder, sizeof folder))
        return cli_fail(cli, "%s: the path is too long", wanted);
    int failed = check_folder(cli, folder);
    if (failed)
        return failed;
    int result = start(cli, library, folder);
    report(cli, folder);
    return result;
}
