/* SPDX-License-Identifier: MIT */
#include "preload.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* ---- where a library is --------------------------------------------------------- */

static bool try_library(char *path, const char *folder, const char *below, const char *name)
{
    char joined[3 * PATH_MAX];
    snprintf(joined, sizeof joined, "%s/%s/%s", folder, below, name);
    return realpath(joined, path) != NULL;
}

/* In a build it stands in a room of its own; installed, below the library folder, wherever all of it was moved. */
bool cli_find_library(const char *room, const char *name, char *path)
{
    char self[PATH_MAX], below[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", self, sizeof self - 1);
    self[size > 0 ? size : 0] = 0;
    char *slash = strrchr(self, '/');
    if (slash)
        *slash = 0;
    for (const char *up = "../../../src/"; slash && *up; up += strlen("../")) {
        snprintf(below, sizeof below, "%s%s", up, room);
        if (try_library(path, self, below, name))
            return true;
        if (strncmp(up, "../", 3) != 0)
            break;
    }
    return (slash && try_library(path, self, "../" MICA_LIBDIR "/mica", name)) ||
           try_library(path, MICA_PREFIX "/" MICA_LIBDIR, "mica", name);
}

/* ---- the program ------------------------------------------------------------------ */

static char **make_environment(char *preload, char *variable)
{
    size_t count = 0, kept = 0, name = strcspn(variable, "=") + 1;
    while (environ[count])
        count++;
    char **made = calloc(count + 3, sizeof *made);
    for (size_t i = 0; made && i < count; i++)
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0 && strncmp(environ[i], variable, name) != 0)
            made[kept++] = environ[i];
    if (made) {
        made[kept++] = preload;
        made[kept] = variable;
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

int cli_run_preloaded(struct cli *cli, const char *library, bool last, char *variable)
{
    const char *others = getenv("LD_PRELOAD");
    char *preload = NULL;
    if (!others)
        others = "";
    const char *first = last ? others : library, *second = last ? library : others;
    if (asprintf(&preload, "LD_PRELOAD=%s%s%s", first, *others ? ":" : "", second) < 0)
        return cli_fail_nomem(cli);
    char **arguments = copy_arguments(&cli->options.operands), **environment = make_environment(preload, variable);
    int result = arguments && environment ? run_program(cli, arguments, environment) : cli_fail_nomem(cli);
    free(arguments);
    free(environment);
    free(preload);
    return result;
}
