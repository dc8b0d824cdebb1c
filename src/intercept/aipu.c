/* SPDX-License-Identifier: MIT */
/*
 * The vendor's driver of Zhouyi NPUs. A job is kept as its bytes: its members differ between versions of the driver.
 * Buffers are read through the program's own mappings, as it is not known that the driver maps one twice.
 */
#include "uapi/aipu.h"

#include <string.h>

#include "intercept/intercept.h"

static bool is(const struct ic_call *call, enum mica_aipu_request number)
{
    return _IOC_TYPE(call->request) == MICA_AIPU_TYPE && _IOC_NR(call->request) == number;
}

static struct ic_submit *record(const struct ic_call *call)
{
    struct ic_file *file = call->file;
    struct ic_submit *submit = ic_submit_new(file);
    if (!submit)
        return NULL;
    struct ic_text *head = ic_submit_head(submit);
    ic_text_put(head, "{\n \"driver\":\"aipu\",\"chip\":\"unknown\",\"index\":%u,\"version\":%u,\n \"job\":\"",
                ic_submit_index(submit), IC_FORMAT_VERSION);
    ic_text_hex(head, call->argument, call->size);
    ic_text_put(head, "\",\n \"bos\":[");
    for (size_t i = 0; i < file->buffer_count; i++)
        ic_submit_use(submit, file->buffers[i].handle, &file->buffers[i], true, true, "");
    ic_text_put(ic_submit_tail(submit), "]");
    return ic_submit_commit(submit);
}

static void before(struct ic_call *call)
{
    if (is(call, MICA_AIPU_SCHEDULE_JOB))
        call->submit = record(call);
}

/* Buffers have no handles: they are numbered. */
static void made(struct ic_call *call)
{
    static uint32_t last;
    uint8_t answer[MICA_AIPU_REQ_BUF_SIZE];
    struct mica_aipu_buffer made;
    if ((call->size != MICA_AIPU_REQ_BUF_SIZE && call->size != MICA_AIPU_FIRST_REQ_BUF_SIZE) ||
        !ic_answer(call, answer, sizeof answer))
        return;
    bool first = call->size == MICA_AIPU_FIRST_REQ_BUF_SIZE;
    memcpy(&made, answer + (first ? MICA_AIPU_FIRST_BUFFER_AT : MICA_AIPU_BUFFER_AT), sizeof made);
    struct ic_buffer *buffer = ic_buffer_add(call->file, ++last, made.bytes);
    if (!buffer)
        return;
    buffer->address = made.address;
    buffer->offset = made.offset;
    buffer->offset_known = true;
}

static void ended(struct ic_call *call)
{
    struct mica_aipu_buffer ended;
    ic_argument(call, &ended, sizeof ended);
    const struct ic_buffer *buffer = ic_buffer_at(call->file, ended.address);
    if (buffer && buffer->address == ended.address)
        ic_buffer_remove(call->file, buffer->handle);
}

/* Some jobs ended, which ones is in the raw line's bytes at best. */
static void asked(struct ic_call *call)
{
    struct mica_aipu_query_status answer;
    if (ic_answer(call, &answer, sizeof answer) && answer.count)
        ic_submits_done(call->file, ic_submit_any, 0, 0, "status");
}

static void after(struct ic_call *call)
{
    if (call->submit)
        ic_submit_result(call, 0, 0);
    else if (call->result < 0)
        return;
    else if (is(call, MICA_AIPU_REQ_BUF))
        made(call);
    else if (is(call, MICA_AIPU_FREE_BUF))
        ended(call);
    else if (is(call, MICA_AIPU_QUERY_STATUS))
        asked(call);
}

const struct ic_driver ic_aipu = {.name = "aipu", .program_views = true, .before = before, .after = after};
