/* SPDX-License-Identifier: MIT */
/* Sessions without copies: memory that the host and the device share. */
#include <errno.h>

#include "runtime/objects.h"

/* Memory changes hands between runs only. */
static int check_idle(mica_session *session)
{
    pthread_mutex_lock(&session->lock);
    bool runs = session->state == MICA_SESSION_RUNNING;
    pthread_mutex_unlock(&session->lock);
    return runs ? mica_fail(&session->context->log, -EBUSY, "the session runs: mica_session_wait() first") : 0;
}

static const struct mica_graph *graph_of(const mica_session *session)
{
    return session->executable->model->graph;
}

int mica_session_map_input(mica_session *session, size_t index, void **data)
{
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), data);
    MICA_CHECK_ARG(MICA_LOG_OF(session), index < graph_of(session)->input_count);
    int error = check_idle(session);
    if (!error)
        *data = session->run.memory.data[graph_of(session)->inputs[index]];
    return error;
}

int mica_session_map_output(mica_session *session, size_t index, void **data)
{
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), data);
    MICA_CHECK_ARG(MICA_LOG_OF(session), index < graph_of(session)->output_count);
    int error = check_idle(session);
    if (!error)
        *data = session->run.memory.data[graph_of(session)->outputs[index]];
    return error;
}

static int bind(mica_session *session, int32_t tensor, bool output, int fd, size_t offset)
{
    int error = check_idle(session);
    return error ? error : mica_run_bind(&session->run, (uint32_t)tensor, output, fd, offset, &session->context->log);
}

int mica_session_bind_input_dmabuf(mica_session *session, size_t index, int fd, size_t offset)
{
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), index < graph_of(session)->input_count);
    return bind(session, graph_of(session)->inputs[index], false, fd, offset);
}

int mica_session_bind_output_dmabuf(mica_session *session, size_t index, int fd, size_t offset)
{
    MICA_CHECK_ARG(NULL, session);
    MICA_CHECK_ARG(MICA_LOG_OF(session), index < graph_of(session)->output_count);
    return bind(session, graph_of(session)->outputs[index], true, fd, offset);
}
