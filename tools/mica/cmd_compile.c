/* SPDX-License-Identifier: MIT */
#include "cli.h"
#include "clock.h"
#include "memory.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

static double size_kib(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 ? (double)status.st_size / 1024 : 0;
}

static int save(struct cli *cli)
{
    const char *path = cli->options.executable;
    int error = mica_executable_save(cli->executable, path);
    if (error)
        return cli_fail_library(cli, error);
    fprintf(cli->out, "saved %s: %.1f KiB", path, size_kib(path));
    if (cli->loaded) /* else the file read was an executable, which may even be the one written */
        fprintf(cli->out, " (the model: %.1f KiB)", size_kib(cli->options.operands.items[0]));
    fputc('\n', cli->out);
    return 0;
}

static int capture(struct cli *cli)
{
    const char *directory = cli->options.capture;
    int failed = cli_open_session(cli);
    if (failed)
        return failed;
    int error = mica_session_capture(cli->session, directory);
    if (error)
        return cli_fail_library(cli, error);
    fprintf(cli->out, "wrote the capture, of %s inputs, into %s\n",
            cli->options.inputs.count ? "the given" : "all-zero", directory);
    return 0;
}

int cli_compile(struct cli *cli)
{
    const struct cli_options *options = &cli->options;
    if (!options->executable && !options->capture)
        return cli_usage(cli, "where to? --output FILE saves the executable, --capture DIR writes the submissions");
    if (options->inputs.count && !options->capture)
        return cli_usage(cli, "--input is for --capture");
    double start = cli_clock_ms();
    int failed = cli_open_executable(cli);
    if (failed)
        return failed;
    fprintf(cli->out, "compiled for %s in %.1f ms: %zu of %zu operations in %zu NPU partition%s\n",
            mica_device_name(cli->device), cli_clock_ms() - start, mica_executable_npu_operation_count(cli->executable),
            mica_model_operation_count(cli->model), mica_executable_partition_count(cli->executable),
            mica_executable_partition_count(cli->executable) == 1 ? "" : "s");
    failed = cli_memory_print(cli);
    if (!failed && options->executable)
        failed = save(cli);
    if (!failed && options->capture)
        failed = capture(cli);
    return failed;
}
