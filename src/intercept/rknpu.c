/* SPDX-License-Identifier: MIT */
/* The vendor's driver of Rockchip's NPU. Tasks stand in a buffer; every buffer of the file is mapped. */
#include "uapi/rknpu.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

#define MOST_TASKS 65536u

static bool is(const struct ic_call *call, enum mica_rknpu_request number)
{
    return (_IOC_TYPE(call->request) == MICA_RKNPU_TYPE && _IOC_NR(call->request) == number) ||
           (_IOC_TYPE(call->request) == MICA_DRM_TYPE && _IOC_NR(call->request) == MICA_DRM_COMMAND_BASE + number);
}

static struct ic_buffer *find_object(const struct ic_file *file, uint64_t object)
{
    for (size_t i = 0; i < file->buffer_count; i++)
        if (file->buffers[i].object == object)
            return &file->buffers[i];
    return NULL;
}

/* Through DRM a buffer is mapped at an offset that has to be asked for. */
static void find_offset(const struct ic_file *file, struct ic_buffer *buffer)
{
    struct mica_rknpu_mem_map call = {.handle = buffer->handle};
    unsigned long request = _IOWR(MICA_DRM_TYPE, MICA_DRM_COMMAND_BASE + MICA_RKNPU_MEM_MAP, struct mica_rknpu_mem_map);
    if (buffer->offset_known || ic_real()->ioctl(file->fd, request, &call))
        return;
    buffer->offset = call.offset;
    buffer->offset_known = true;
}

/* ---- a submission ------------------------------------------------------------------- */

static void put_task(struct ic_text *text, const struct ic_file *file, const struct mica_rknpu_task *task)
{
    uint64_t address = task->regcmd[0] | (uint64_t)task->regcmd[1] << 32;
    ic_text_put(text,
                "{\"regcmd\":\"0x%08" PRIx64 "\",\"regcmd_count\":%u,\"regcfg_amount\":%u,\"regcfg_offset\":%u,"
                "\"flags\":%u,\"op_index\":%u,\"enable_mask\":%u,\"int_mask\":%u,\"int_clear\":%u",
                address, task->regcfg_amount + MICA_RKNPU_TAIL_COMMANDS, task->regcfg_amount, task->regcfg_offset,
                task->flags, task->op_index, task->enable_mask, task->interrupt_mask, task->interrupt_clear);
    const struct ic_buffer *buffer = ic_buffer_at(file, address);
    if (buffer)
        ic_text_put(text, ",\"bo\":%u,\"offset\":%" PRIu64, buffer->handle, address - buffer->address);
    ic_text_put(text, "}");
}

static void put_tasks(struct ic_text *text, const struct ic_file *file, const struct mica_rknpu_submit *call)
{
    const struct ic_buffer *buffer = find_object(file, call->task_object);
    uint64_t at = (uint64_t)call->task_start * sizeof(struct mica_rknpu_task);
    for (uint32_t i = 0; buffer && buffer->view && i < call->task_number && i < MOST_TASKS; i++) {
        struct mica_rknpu_task task;
        if (at + sizeof task > buffer->size)
            break;
        memcpy(&task, buffer->view + at, sizeof task);
        ic_text_put(text, i ? ",\n   " : "\n   ");
        put_task(text, file, &task);
        at += sizeof task;
    }
}

static void put_tail(struct ic_text *text, const struct ic_file *file, const struct mica_rknpu_submit *call)
{
    ic_text_put(text,
                "],\n \"flags\":%u,\"timeout\":%u,\"task_start\":%u,\"task_number\":%u,\"priority\":%d,"
                "\"task_object\":\"0x%" PRIx64 "\",\"task_base\":\"0x%" PRIx64 "\",\"core_mask\":%u,\"subcores\":[",
                call->flags, call->timeout, call->task_start, call->task_number, call->priority, call->task_object,
                call->task_base, call->core_mask);
    for (size_t i = 0; i < sizeof call->subcores / sizeof call->subcores[0]; i++)
        ic_text_put(text, "%s[%u,%u]", i ? "," : "", call->subcores[i].start, call->subcores[i].count);
    ic_text_put(text, "],\n \"jobs\":[\n  {\"task_struct_size\":%zu,\"in_bos\":[],\"out_bos\":[],\"tasks\":[",
                sizeof(struct mica_rknpu_task));
    put_tasks(text, file, call);
    ic_text_put(text, "]}]");
}

static struct ic_submit *record(struct ic_file *file, const struct mica_rknpu_submit *call)
{
    struct ic_submit *submit = ic_submit_new(file);
    if (!submit)
        return NULL;
    ic_text_put(ic_submit_head(submit),
                "{\n \"driver\":\"rknpu\",\"chip\":\"unknown\",\"index\":%u,\"version\":%u,\n \"bos\":[",
                ic_submit_index(submit), IC_FORMAT_VERSION);
    for (size_t i = 0; i < file->buffer_count; i++) {
        struct ic_buffer *buffer = &file->buffers[i];
        find_offset(file, buffer);
        ic_submit_use(submit, buffer->handle, buffer, true, true, "");
    }
    put_tail(ic_submit_tail(submit), file, call);
    return ic_submit_commit(submit);
}

static void before(struct ic_call *call)
{
    struct mica_rknpu_submit submit;
    struct mica_rknpu_mem_destroy destroy;
    if (is(call, MICA_RKNPU_SUBMIT)) {
        ic_argument(call, &submit, sizeof submit);
        call->submit = record(call->file, &submit);
    } else if (is(call, MICA_RKNPU_MEM_DESTROY)) {
        ic_argument(call, &destroy, sizeof destroy);
        struct ic_buffer *buffer = ic_buffer_find(call->file, destroy.handle);
        if (buffer)
            ic_buffer_hide(call->file, buffer);
    } else {
        ic_drm_before(call);
    }
}

/* ---- what the kernel said -------------------------------------------------------------- */

static void made(struct ic_call *call)
{
    struct mica_rknpu_mem_create answer;
    struct ic_buffer *buffer =
        ic_answer(call, &answer, sizeof answer) ? ic_buffer_add(call->file, answer.handle, answer.size) : NULL;
    if (!buffer)
        return;
    buffer->flags = answer.flags;
    buffer->object = answer.object;
    buffer->address = answer.dma_address;
    if (_IOC_TYPE(call->request) == MICA_RKNPU_TYPE) {
        buffer->map_fd = (int)answer.handle;
        buffer->offset_known = true;
    }
}

static void ended(struct ic_call *call)
{
    struct mica_rknpu_mem_destroy destroy;
    ic_argument(call, &destroy, sizeof destroy);
    const struct ic_buffer *buffer = find_object(call->file, destroy.object);
    ic_buffer_remove(call->file, buffer ? buffer->handle : destroy.handle);
}

static void submitted(struct ic_call *call)
{
    struct mica_rknpu_submit submit;
    ic_argument(call, &submit, sizeof submit);
    ic_submit_result(call, 0, 0);
    if (call->result >= 0 && !(submit.flags & MICA_RKNPU_JOB_NONBLOCK))
        ic_submits_done(call->file, ic_submit_any, 0, 0, "waited");
}

static void after(struct ic_call *call)
{
    struct mica_rknpu_mem_sync sync;
    if (call->submit) {
        submitted(call);
    } else if (call->result < 0) {
        return;
    } else if (is(call, MICA_RKNPU_MEM_CREATE)) {
        made(call);
    } else if (is(call, MICA_RKNPU_MEM_DESTROY)) {
        ended(call);
    } else if (is(call, MICA_RKNPU_MEM_SYNC)) {
        ic_argument(call, &sync, sizeof sync);
        if (sync.flags & MICA_RKNPU_SYNC_FROM_DEVICE)
            ic_submits_done(call->file, ic_submit_any, 0, 0, "synced");
    } else {
        ic_drm_after(call);
    }
}

const struct ic_driver ic_rknpu = {.name = "rknpu", .before = before, .after = after};
