/* SPDX-License-Identifier: MIT */
/* The library's objects, from the context to the session, as the options ask for them. */
#include "cli.h"
#include "file.h"
#include "input.h"
#include "layout.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* How the file of an executable begins (docs/executable-format.md). */
struct executable_start {
    char magic[8];
    uint32_t version, header_size;
    char chip[32];
    uint64_t file_size, model_offset;
};

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
    if (name && strcmp(name, opened) != 0 && !strncmp(opened, "sim:", 4))
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
    if (!error && options->per_channel)
        error = mica_device_configure(cli->device, "per-channel", options->per_channel);
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

/* NULL: nobody asked for one. */
static const char *wanted_device(const struct cli *cli)
{
    const char *name = cli->options.device ? cli->options.device : getenv("MICA_DEVICE");
    return name && *name && strcmp(name, "auto") != 0 ? name : NULL;
}

static int open_named(struct cli *cli, const char *name)
{
    int error = mica_device_open(cli->context, name, &cli->device);
    if (error)
        return cli_fail_library(cli, error);
    error = configure(cli);
    int failed = error ? cli_fail_library(cli, error) : 0;
    return error == -EINVAL ? CLI_USAGE : failed;
}

int cli_open_device(struct cli *cli)
{
    const char *name = wanted_device(cli);
    int failed = cli_open_context(cli);
    if (!failed)
        failed = open_named(cli, name);
    if (!failed)
        tell_simulated(cli, name);
    return failed;
}

/* ---- the chip of an executable ----------------------------------------- */

static bool is_executable(const struct executable_start *start, size_t size)
{
    return size >= sizeof(start->magic) && memcmp(start->magic, "MICAEXE", sizeof(start->magic)) == 0;
}

/* Has this build a device for it? Its hardware or, as it always has one, its simulator; or none is needed. */
static bool is_known_chip(const struct cli *cli, const char *chip)
{
    struct mica_device_info info;
    bool known = strcmp(chip, "cpu") == 0;
    for (size_t i = 0; !known && mica_device_list(cli->context, i, &info) == 0; i++)
        known = strncmp(info.name, "sim:", 4) == 0 && strcmp(info.name + 4, chip) == 0;
    return known;
}

/* A file that isn't whole gets any device: loading it says what is wrong. */
static int open_chip(struct cli *cli, const char *path, const struct executable_start *start, size_t size)
{
    char chip[sizeof(start->chip)];
    bool whole = size == sizeof(*start) && memchr(start->chip, 0, sizeof(start->chip));
    int failed = cli_open_context(cli);
    if (failed || !whole)
        return failed ? failed : open_named(cli, NULL);
    memcpy(chip, start->chip, sizeof(chip));
    if (!is_known_chip(cli, chip))
        return cli_fail(cli,
                        "'%s' was compiled for the chip '%s', for which there is no device here; 'mica devices' lists "
                        "those that are, compile the model for one of them",
                        path, chip);
    return open_named(cli, chip);
}

static int load_executable(struct cli *cli, const char *path)
{
    int error = mica_executable_load(cli->device, path, &cli->executable);
    if (error)
        return cli_fail_library(cli, error);
    cli->model = mica_executable_model(cli->executable);
    if (cli->options.on_chip || cli->options.fuse || cli->options.optimize || cli->options.split ||
        cli->options.partition || cli->options.per_channel)
        cli_note(cli,
                 "--fuse, --on-chip, --optimize, --partition, --per-channel and --split change nothing: %s is compiled "
                 "already",
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

/* libmica tells the same way: an ONNX file begins with the number of its version. */
static bool is_onnx(const unsigned char *start, size_t size)
{
    return size >= 8 && start[0] == 8 && start[1] >= 1 && start[1] < 64 && memcmp(start + 4, "TFL3", 4) != 0;
}

static int find_format(struct cli *cli, const char *path, uint64_t offset)
{
    unsigned char start[8];
    size_t size = 0;
    int failed = cli_file_part(cli, path, offset, start, sizeof(start), &size);
    cli->onnx = !failed && is_onnx(start, size);
    return failed;
}

int cli_open_model(struct cli *cli)
{
    const char *path = cli->options.operands.items[0];
    struct executable_start start;
    size_t size = 0;
    int failed = cli_file_part(cli, path, 0, &start, sizeof(start), &size);
    if (failed)
        return failed;
    bool executable = is_executable(&start, size);
    failed = executable && !wanted_device(cli) ? open_chip(cli, path, &start, size) : cli_open_device(cli);
    if (!failed)
        failed = executable ? load_executable(cli, path) : load_model(cli, path);
    if (!failed)
        failed = find_format(cli, path, executable ? start.model_offset : 0);
    return failed ? failed : cli_layout_choose(cli);
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
