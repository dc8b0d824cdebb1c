/* SPDX-License-Identifier: MIT */
/* Sessions of the public API. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "runtime/objects.h"

static void init_waiting(mica_session *session)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC); /* setting the date must not end a wait */
    pthread_cond_init(&session->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&session->lock, NULL);
}

int mica_session_create(mica_executable *executable, mica_session **result)
{
    MICA_CHECK_ARG(NULL, executable);
    MICA_CHECK_ARG(&executable->context->log, result);
    mica_session *session = calloc(1, sizeof *session);
    if (!session)
        return mica_fail_nomem(&executable->context->log);
    session->context = executable->context;
    session->executable = executable;
    int error = mica_run_create(executable, &executable->context->log, &session->run);
    if (error) {
        free(session);
        return error;
    }
    init_waiting(session);
    *result = session;
    return 0;
}

void mica_session_destroy(mica_session *session)
{
    if (!session)
        return;
    pthread_mutex_lock(&session->lock);
    session->quit = true;
    pthread_cond_broadcast(&session->changed);
    while (session->state == MICA_SESSION_RUNNING)
        pthread_cond_wait(&session->changed, &session->lock);
    pthread_mutex_unlock(&session->lock);
    if (session->has_thread)
        pthread_join(session->thread, NULL);
    pthread_cond_destroy(&session->changed);
    pthread_mutex_destroy(&session->lock);
    mica_run_finish(&session->run);
    free(session);
}

static enum mica_session_state current_state(mica_session *session)
{
    pthread_mutex_lock(&session->lock);
    enum mica_session_state state = session->state;
    pthread_mutex_unlock(&session->lock);
    return state;
}

static int fail_busy(mica_session *session)
{
    return mica_fail(&session->context->log, -EBUSY, "the session runs: mica_session_wait() first");
}

/* Results are there after a run that ended well, and only then. */
static int check_results(mica_session *session)
{
    pthread_mutex_lock(&session->lock);
    enum mica_session_state state = session->state;
    int result = session->result;
    pthread_mutex_unlock(&session->lock);
    if (state == MICA_SESSION_RUNNING)
        return fail_busy(session);
    if (state == MICA_SESSION_FRESH || result)
        return mica_fail(&session->context->log, -EINVAL, "there are no results: %s",
                         result ? "the last run failed" : "the session was not invoked yet");
    return 0;
}

static const struct mica_graph *graph_of(const mica_session *session)
{
    return session->executable->model->graph;
}

static int check_size(mica_session *session, const struct mica_tensor *tensor, size_t size)
{
    if (size == tensor->bytes)
        return 0;
    return mica_fail(&session->context->log, -EINVAL, "tensor \"%.80s\" has %zu bytes, not %zu", tensor->name,
                     tensor->bytes, size);
}

int mica_session_set_input(mica_session *session, size_t index, const void *data, size_t size)
{
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), data);
    MICA_CHECK_ARG(MICA_LOG_OF(session), index < graph_of(session)->input_count);
    if (current_state(session) == MICA_SESSION_RUNNING)
        return fail_busy(session);
    int32_t tensor = graph_of(session)->inputs[index];
    int error = check_size(session, &graph_of(session)->tensors[tensor], size);
    if (!error)
        memcpy(session->run.memory.data[tensor], data, size);
    return error;
}

int mica_session_get_output(mica_session *session, size_t index, void *data, size_t size)
{
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), data);
    MICA_CHECK_ARG(MICA_LOG_OF(session), index < graph_of(session)->output_count);
    int error = check_results(session);
    int32_t tensor = graph_of(session)->outputs[index];
    if (!error)
        error = check_size(session, &graph_of(session)->tensors[tensor], size);
    if (!error)
        memcpy(data, session->run.memory.data[tensor], size);
    return error;
}

/* Announces a run; -EBUSY when there is one already. */
static int begin(mica_session *session, bool background)
{
    pthread_mutex_lock(&session->lock);
    bool busy = session->state == MICA_SESSION_RUNNING;
    if (!busy) {
        session->state = MICA_SESSION_RUNNING;
        session->background = session->wanted = background;
        pthread_cond_broadcast(&session->changed);
    }
    pthread_mutex_unlock(&session->lock);
    return busy ? fail_busy(session) : 0;
}

static void end(mica_session *session, int result)
{
    pthread_mutex_lock(&session->lock);
    session->result = result;
    session->state = MICA_SESSION_DONE;
    pthread_cond_broadcast(&session->changed);
    pthread_mutex_unlock(&session->lock);
}

/* The run gets a copy of the user's sink: the context's may change while it runs. */
static void take_log(mica_session *session)
{
    session->sink = session->context->sink;
    session->log = (struct mica_log){
        .sink = session->sink.call ? mica_user_sink_call : NULL,
        .user = &session->sink,
        .level = session->context->log.level,
    };
}

static int run_steps(mica_session *session, struct mica_log *log)
{
    int error = 0;
    mica_run_start(&session->run);
    for (uint32_t i = 0; !error && i < session->executable->plan.step_count; i++)
        error = mica_run_step(&session->run, i, NULL, NULL, log);
    return error;
}

int mica_session_invoke(mica_session *session)
{
    MICA_CHECK_ARG(NULL, session);
    int error = begin(session, false);
    if (error)
        return error;
    take_log(session);
    error = run_steps(session, &session->log);
    if (error)
        mica_context_set_error(session->context, session->log.last_error);
    end(session, error);
    return error;
}

static void *run_in_background(void *argument)
{
    mica_session *session = argument;
    pthread_mutex_lock(&session->lock);
    for (;;) {
        while (!session->wanted && !session->quit)
            pthread_cond_wait(&session->changed, &session->lock);
        if (!session->wanted)
            break;
        session->wanted = false;
        pthread_mutex_unlock(&session->lock);
        end(session, run_steps(session, &session->log));
        pthread_mutex_lock(&session->lock);
    }
    pthread_mutex_unlock(&session->lock);
    return NULL;
}

static int start_thread(mica_session *session)
{
    if (session->has_thread)
        return 0;
    int error = pthread_create(&session->thread, NULL, run_in_background, session);
    if (error)
        return mica_fail(&session->context->log, -error, "a thread can't be started: %s", strerror(error));
    session->has_thread = true;
    return 0;
}

int mica_session_invoke_async(mica_session *session)
{
    MICA_CHECK_ARG(NULL, session);
    int error = start_thread(session);
    if (error)
        return error;
    if (current_state(session) == MICA_SESSION_RUNNING)
        return fail_busy(session);
    take_log(session);
    return begin(session, true);
}

static struct timespec deadline_after(int timeout_ms)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    time.tv_sec += timeout_ms / 1000;
    time.tv_nsec += timeout_ms % 1000 * 1000000L;
    if (time.tv_nsec >= 1000000000L) {
        time.tv_sec++;
        time.tv_nsec -= 1000000000L;
    }
    return time;
}

/* May run in any thread, so messages go by mica_context_keep_error(). */
int mica_session_wait(mica_session *session, int timeout_ms)
{
    MICA_CHECK_ARG(NULL, session);
    struct timespec deadline = deadline_after(timeout_ms < 0 ? 0 : timeout_ms);
    int timed_out = 0;
    pthread_mutex_lock(&session->lock);
    while (session->state == MICA_SESSION_RUNNING && !timed_out)
        timed_out = timeout_ms < 0 ? pthread_cond_wait(&session->changed, &session->lock)
                                   : pthread_cond_timedwait(&session->changed, &session->lock, &deadline);
    bool fresh = session->state == MICA_SESSION_FRESH, runs = session->state == MICA_SESSION_RUNNING;
    int result = fresh ? -EINVAL : runs ? -ETIMEDOUT : session->result;
    if (fresh)
        mica_context_keep_error(session->context, "there is nothing to wait for: the session was not invoked yet");
    else if (runs)
        mica_context_keep_error(session->context, "the session still runs");
    else if (result && session->background)
        mica_context_keep_error(session->context, session->log.last_error);
    pthread_mutex_unlock(&session->lock);
    return result;
}

size_t mica_session_job_count(const mica_session *constant)
{
    mica_session *session = (mica_session *)constant;
    if (!session)
        return 0;
    pthread_mutex_lock(&session->lock);
    bool done = session->state == MICA_SESSION_DONE && !session->result;
    size_t count = done ? session->run.job_count : 0;
    pthread_mutex_unlock(&session->lock);
    return count;
}

int mica_session_job(const mica_session *constant, size_t index, struct mica_job_info *info)
{
    mica_session *session = (mica_session *)constant;
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), info);
    MICA_CHECK_ARG(MICA_LOG_OF(session), index < mica_session_job_count(session));
    *info = session->run.jobs[index];
    return 0;
}

int mica_session_stream_us(const mica_session *constant, double mhz, uint32_t inferences, uint32_t cores, double *us)
{
    mica_session *session = (mica_session *)constant;
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), us);
    MICA_CHECK_ARG(MICA_LOG_OF(session), mhz >= 0 && inferences > 0);
    MICA_CHECK_ARG(MICA_LOG_OF(session), cores > 0 && cores <= MICA_MAX_CORES);
    int error = check_results(session);
    return error ? error : mica_run_stream_us(&session->run, mhz, inferences, cores, &session->context->log, us);
}
