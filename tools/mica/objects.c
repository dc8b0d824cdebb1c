/* SPDX-License-Identifier: MIT */
/* The library's objects, from the context to the session, as the options ask for them. */
#include "cli.h"
#include "file.h"
#include "input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char executable_magic[] = "MICAEXE";

/* Errors are reported where they end the command, so the sink leaves them out. */
static void print_message(void *user, enum mica_level level, const char *message)
{
    static const char *const names[] = {"error", "warning", "info", "debug"};
    if (level != MICA_LEVEL_ERROR)
        cli_note(user, "%s: %s", names[level <= MICA_LEVEL_DEBUG ? level : MICA_LEVEL_DEBUG], message);
}

int cli_open_context(struct cli *cli)
{
    int error = mica_context_create(&cli->context);
    if (error)
        return cli_fail_library(cli, error);
    enum mica_level level = MICA_LEVEL_WARNING;
    if (cli->options.verbose)
        level = cli->options.verbose > 1 ? MICA_LEVEL_DEBUG : MICA_LEVEL_INFO;
    mica_context_set_log(cli->context, level, print_message, cli);
    if (cli->options.threads)
        error = mica_context_set_threads(cli->context, cli->options.threads);
    return error ? cli_fail_library(cli, error) : 0;
}

/* Who names a chip means the real one. */
static void tell_simulated(struct cli *cli, const char *name)
{
    const char *opened = mica_device_name(cli->device);
    if (name && *name && strcmp(name, "auto") != 0 && strcmp(name, opened) != 0 && !strncmp(opened, "sim:", 4))
        cli_note(cli, "device %s: no hardware of this chip can be used here, so it is simulated: %s", name, opened);
}

static int configure_number(struct cli *cli, const char *key, unsigned number)
{
    char text[16];
    snprintf(text, sizeof(text), "%u", number);
    return number ? mica_device_configure(cli->device, key, text) : 0;
}

static int configure(struct cli *cli)
{
    const struct cli_options *options = &cli->options;
    int error = options->on_chip ? mica_device_configure(cli->device, "on-chip", "1") : 0;
    if (!error && options->fuse)
        error = mica_device_configure(cli->device, "fuse", "1");
    if (!error && options->optimize)
        error = mica_device_configure(cli->device, "optimize", options->optimize);
    if (!error && options->partition)
        error = mica_device_configure(cli->device, "partition", options->partition);
    if (!error)
        error = configure_number(cli, "split", options->split);
    if (!error)
        error = configure_number(cli, "cores", options->cores);
    return error ? error : configure_number(cli, "clock", options->clock);
}

int cli_open_device(struct cli *cli)
{
    int failed = cli_open_context(cli);
    if (failed)
        return failed;
    const char *name = cli->options.device;
    if (!name)
        name = getenv("MICA_DEVICE");
    int error = mica_device_open(cli->context, name, &cli->device);
    if (error)
        return cli_fail_library(cli, error);
    tell_simulated(cli, name);
    error = configure(cli);
    failed = error ? cli_fail_library(cli, error) : 0;
    return error == -EINVAL ? CLI_USAGE : failed;
}

static int load_executable(struct cli *cli, const char *path)
{
    int error = mica_executable_load(cli->device, path, &cli->executable);
    if (error)
        return cli_fail_library(cli, error);
    cli->model = mica_executable_model(cli->executable);
    if (cli->options.on_chip || cli->options.fuse || cli->options.optimize || cli->options.split ||
        cli->options.partition)
        cli_note(cli, "--fuse, --on-chip, --optimize, --partition and --split change nothing: %s is compiled already",
                 path);
    return 0;
}

static int load_model(struct cli *cli, const char *path)
{
    int error = mica_model_load(cli->context, path, &cli->loaded);
    if (error)
        return cli_fail_library(cli, error);
    cli->model = cli->loaded;
    return 0;
}

int cli_open_model(struct cli *cli)
{
    const char *path = cli->options.operands.items[0];
    char magic[sizeof(executable_magic) - 1];
    size_t size = 0;
    int failed = cli_file_start(cli, path, magic, sizeof(magic), &size);
    if (!failed)
        failed = cli_open_device(cli);
    if (failed)
        return failed;
    if (size == sizeof(magic) && memcmp(magic, executable_magic, size) == 0)
        return load_executable(cli, path);
    return load_model(cli, path);
}

int cli_open_executable(struct cli *cli)
{
    int failed = cli_open_model(cli);
    if (failed || cli->executable)
        return failed;
    cli_progress_start(&cli->progress, cli->err, "compiling", 0);
    int error = mica_executable_compile(cli->loaded, cli->device, &cli->executable);
    cli_progress_stop(&cli->progress);
    return error ? cli_fail_library(cli, error) : 0;
}

static int set_input_file(struct cli *cli, size_t index)
{
    struct mica_tensor_info tensor;
    void *data;
    int failed = cli_input_read(cli, index, &data);
    if (failed)
        return failed;
    int error = mica_model_input(cli->model, index, &tensor);
    if (!error)
        error = mica_session_set_input(cli->session, index, data, tensor.bytes);
    free(data);
    return error ? cli_fail_library(cli, error) : 0;
}

int cli_open_session(struct cli *cli)
{
    const struct cli_list *files = &cli->options.inputs;
    size_t count = mica_model_input_count(cli->model);
    if (files->count && files->count != count)
        return cli_fail(cli, "the model has %zu input%s, --input is given %zu time%s", count, count == 1 ? "" : "s",
                        files->count, files->count == 1 ? "" : "s");
    int error = mica_session_create(cli->executable, &cli->session);
    if (error)
        return cli_fail_library(cli, error);
    for (size_t i = 0; i < files->count; i++) {
        int failed = set_input_file(cli, i);
        if (failed)
            return failed;
    }
    return 0;
}

void cli_close(struct cli *cli)
{
    cli_progress_stop(&cli->progress);
    mica_session_destroy(cli->session);
    mica_executable_destroy(cli->executable);
    mica_model_destroy(cli->loaded);
    mica_device_close(cli->device);
    mica_context_destroy(cli->context);
    cli->session = NULL;
    cli->executable = NULL;
    cli->model = cli->loaded = NULL;
    cli->device = NULL;
    cli->context = NULL;
}
