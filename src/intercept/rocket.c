/* SPDX-License-Identifier: MIT */
/* rocket: jobs of tasks (specification of the kernel interfaces, section 2). Every buffer of the file is mapped. */
#include "uapi/rocket.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intercept/intercept.h"
#include "intercept/real.h"

#define MOST_ENTRIES ((size_t)1 << 24) /* bytes of an array: what no driver needs */
#define MOST_JOBS 65536u

/* Nothing in the interface tells the chip; mainline's driver knows one. */
static const char *chip_name(void)
{
    const char *name = getenv("MICA_CAPTURE_CHIP");
    return name && *name ? name : "rk3588";
}

static void put_handles(struct ic_text *text, const char *name, const uint32_t *handles, uint32_t count)
{
    ic_text_put(text, "\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++)
        ic_text_put(text, "%s%u", i ? "," : "", handles[i]);
    ic_text_put(text, "],");
}

static void put_tasks(struct ic_text *text, const struct ic_file *file, const struct mica_rocket_job *job,
                      const uint8_t *tasks)
{
    ic_text_put(text, "\"tasks\":[");
    for (uint32_t i = 0; i < job->task_count; i++) {
        struct mica_rocket_task task;
        memcpy(&task, tasks + (size_t)i * job->task_struct_size, sizeof task);
        ic_text_put(text, "%s\n   {\"regcmd\":\"0x%08x\",\"regcmd_count\":%u", i ? "," : "", task.regcmd,
                    task.regcmd_count);
        const struct ic_buffer *buffer = ic_buffer_at(file, task.regcmd);
        if (buffer)
            ic_text_put(text, ",\"bo\":%u,\"offset\":%" PRIu64, buffer->handle, task.regcmd - buffer->address);
        ic_text_put(text, "}");
    }
    ic_text_put(text, "]}");
}

/* Handles that jobs say they write: waiting for one of these is waiting for the job. */
struct outputs {
    uint32_t *handles;
    size_t count;
};

static bool add_outputs(struct outputs *outputs, const uint32_t *handles, uint32_t count)
{
    uint32_t *grown = realloc(outputs->handles, (outputs->count + count + 1) * sizeof *grown);
    if (!grown)
        return false;
    outputs->handles = grown;
    if (count)
        memcpy(grown + outputs->count, handles, count * sizeof *grown);
    outputs->count += count;
    return true;
}

static bool is_output(const struct outputs *outputs, uint32_t handle)
{
    for (size_t i = 0; i < outputs->count; i++)
        if (outputs->handles[i] == handle)
            return true;
    return false;
}

/* False: the kernel can't read it either. */
static bool put_job(struct ic_text *text, const struct ic_file *file, const struct mica_rocket_job *job,
                    struct outputs *outputs)
{
    bool sized = !job->task_count || job->task_struct_size >= sizeof(struct mica_rocket_task);
    uint32_t *in = ic_copy_array(job->in_handles, job->in_count, sizeof *in, MOST_ENTRIES);
    uint32_t *out = ic_copy_array(job->out_handles, job->out_count, sizeof *out, MOST_ENTRIES);
    uint8_t *tasks = sized ? ic_copy_array(job->tasks, job->task_count, job->task_struct_size, MOST_ENTRIES) : NULL;
    bool good = in && out && tasks && add_outputs(outputs, out, job->out_count);
    if (good) {
        ic_text_put(text, "{\"task_struct_size\":%u,", job->task_struct_size);
        put_handles(text, "in_bos", in, job->in_count);
        put_handles(text, "out_bos", out, job->out_count);
        put_tasks(text, file, job, tasks);
    }
    free(in);
    free(out);
    free(tasks);
    return good;
}

static bool put_jobs(struct ic_text *text, const struct ic_file *file, const struct mica_rocket_submit *call,
                     struct outputs *outputs)
{
    bool good = call->job_count <= MOST_JOBS && call->job_struct_size >= sizeof(struct mica_rocket_job);
    for (uint32_t i = 0; good && i < call->job_count; i++) {
        struct mica_rocket_job job;
        good = ic_copy(&job, call->jobs + (uint64_t)i * call->job_struct_size, sizeof job);
        ic_text_put(text, i ? ",\n  " : "\n  ");
        good = good && put_job(text, file, &job, outputs);
    }
    return good;
}

/* What a job writes beyond its list nobody can tell before: all buffers are looked at again afterwards. */
static struct ic_submit *record(struct ic_file *file, const struct mica_rocket_submit *call)
{
    struct ic_text jobs = {0};
    struct outputs outputs = {0};
    struct ic_submit *submit = put_jobs(&jobs, file, call, &outputs) ? ic_submit_new(file) : NULL;
    if (submit) {
        struct ic_text *head = ic_submit_head(submit);
        ic_text_put(head,
                    "{\n \"driver\":\"rocket\",\"chip\":\"%s\",\"index\":%u,\"version\":%u,\"job_struct_size\":%u,\n"
                    " \"jobs\":[",
                    chip_name(), ic_submit_index(submit), IC_FORMAT_VERSION, call->job_struct_size);
        ic_text_bytes(head, jobs.data, jobs.size);
        head->failed |= jobs.failed;
        ic_text_put(head, "],\n \"bos\":[");
        for (size_t i = 0; i < file->buffer_count; i++) {
            struct ic_buffer *buffer = &file->buffers[i];
            ic_submit_use(submit, buffer->handle, buffer, is_output(&outputs, buffer->handle), true, "");
        }
        ic_text_put(ic_submit_tail(submit), "]");
        submit = ic_submit_commit(submit);
    }
    ic_text_free(&jobs);
    free(outputs.handles);
    return submit;
}

static void before(struct ic_call *call)
{
    struct mica_rocket_submit submit;
    if (ic_drm_before(call) || !ic_is(call, MICA_ROCKET_SUBMIT))
        return;
    ic_argument(call, &submit, sizeof submit);
    ic_submits_poll(call->file);
    call->submit = record(call->file, &submit);
}

static void made(struct ic_call *call)
{
    struct mica_rocket_create_bo answer;
    struct ic_buffer *buffer =
        ic_answer(call, &answer, sizeof answer) ? ic_buffer_add(call->file, answer.handle, answer.size) : NULL;
    if (!buffer)
        return;
    buffer->address = answer.dma_address;
    buffer->offset = answer.offset;
    buffer->offset_known = true;
}

static void after(struct ic_call *call)
{
    struct mica_rocket_prep_bo prep;
    if (call->submit) {
        ic_submit_result(call, 0, 0);
    } else if (call->result < 0 || ic_drm_after(call)) {
        return;
    } else if (ic_is(call, MICA_ROCKET_CREATE_BO)) {
        made(call);
    } else if (ic_is(call, MICA_ROCKET_PREP_BO)) {
        ic_argument(call, &prep, sizeof prep);
        ic_submits_done(call->file, ic_submit_uses, prep.handle, true, "waited");
    }
}

const struct ic_driver ic_rocket = {.name = "rocket", .before = before, .after = after};
