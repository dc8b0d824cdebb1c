/* SPDX-License-Identifier: MIT */
#include "stream.h"

#include "cli.h"
#include "clock.h"

#include <stdlib.h>

static int copy_inputs(struct cli *cli, mica_session *to)
{
    struct mica_tensor_info tensor;
    void *data;
    int error = 0;
    for (size_t i = 0; !error && i < mica_model_input_count(cli->model); i++) {
        error = mica_model_input(cli->model, i, &tensor);
        if (!error)
            error = mica_session_map_input(cli->session, i, &data);
        if (!error)
            error = mica_session_set_input(to, i, data, tensor.bytes);
    }
    return error;
}

/* One session a core; the first is the command's own. */
static int create(struct cli *cli, mica_session **sessions, unsigned count)
{
    int error = 0;
    sessions[0] = cli->session;
    for (unsigned i = 1; !error && i < count; i++) {
        error = mica_session_create(cli->executable, &sessions[i]);
        if (!error)
            error = copy_inputs(cli, sessions[i]);
    }
    return error;
}

/* Every session gets the next inference when it is done with its last. */
static int run(struct cli *cli, mica_session **sessions, unsigned count)
{
    int error = 0;
    unsigned started = 0;
    for (; !error && started < cli->options.repeat; started++) {
        mica_session *session = sessions[started % count];
        if (started >= count)
            error = mica_session_wait(session, -1);
        if (!error)
            error = mica_session_invoke_async(session);
        cli_progress_step(&cli->progress);
    }
    for (unsigned i = 0; i < count && i < started; i++) {
        int result = mica_session_wait(sessions[i], -1);
        error = error ? error : result;
    }
    return error;
}

int cli_stream_run(struct cli *cli, double *ms)
{
    unsigned count = cli->options.cores < cli->options.repeat ? cli->options.cores : cli->options.repeat;
    mica_session **sessions = calloc(count, sizeof(*sessions));
    if (!sessions)
        return cli_fail_nomem(cli);
    int error = create(cli, sessions, count);
    double start = cli_clock_ms();
    if (!error) {
        cli_progress_start(&cli->progress, cli->err, "running", cli->options.repeat);
        error = run(cli, sessions, count);
        cli_progress_stop(&cli->progress);
    }
    *ms = cli_clock_ms() - start;
    int failed = error ? cli_fail_library(cli, error) : 0;
    for (unsigned i = 1; i < count; i++)
        mica_session_destroy(sessions[i]);
    free(sessions);
    return failed;
}
