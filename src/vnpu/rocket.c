/* SPDX-License-Identifier: MIT */
/* What the kernel's rocket driver answers (specification of the kernel interfaces, section 2). */
#include "uapi/rocket.h"

#include <errno.h>
#include <stdlib.h>

#include "vnpu/node.h"
#include "vnpu/user.h"

/* Most that one call may list: the kernel copies what it is told to; here it bounds what a hostile process can ask. */
#define MOST_JOBS 4096u
#define MOST_TASKS (1u << 20)
#define MOST_HANDLES (1u << 16)

static int create_bo(struct vnpu_file *file, struct mica_rocket_create_bo *call)
{
    struct vnpu_buffer *buffer;
    uint64_t address;
    if (call->size == 0)
        return -ENOSPC;
    int error = vnpu_buffer_create(file, call->size, &buffer);
    if (error)
        return error;
    error = vnpu_find_range(file, 0, buffer->size, &address) ? vnpu_buffer_place(file, buffer, address) : -ENOSPC;
    if (error) {
        vnpu_buffer_close(file, buffer->handle);
        return error;
    }
    call->handle = buffer->handle;
    call->dma_address = buffer->address;
    call->offset = buffer->offset;
    return 0;
}

/* A job as it was submitted, its arrays copied. */
struct copied_job {
    struct mica_rocket_job job;
    uint32_t *stream; /* its tasks, two words each */
    uint32_t *in, *out;
};

static bool handles_known(const struct vnpu_file *file, const uint32_t *handles, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (!vnpu_buffer_find(file, handles[i]))
            return false;
    return true;
}

/* A handle that is both read and written: the job is signalled without running. */
static bool handles_disjoint(const struct copied_job *copied)
{
    for (uint32_t i = 0; i < copied->job.out_count; i++)
        for (uint32_t k = 0; k < copied->job.in_count; k++)
            if (copied->out[i] == copied->in[k])
                return false;
    return true;
}

static bool tasks_good(const struct copied_job *copied)
{
    for (uint32_t i = 0; i < copied->job.task_count; i++)
        if (copied->stream[2 * i + 1] == 0)
            return false;
    return true;
}

/* Tasks may be larger than those that are known; what is behind is not looked at. */
static int copy_tasks(const struct mica_rocket_job *job, uint32_t *stream)
{
    int error = 0;
    for (uint32_t i = 0; !error && i < job->task_count; i++)
        error = vnpu_copy_in(stream + 2 * (size_t)i, job->tasks + (uint64_t)i * job->task_struct_size,
                             sizeof(struct mica_rocket_task));
    return error;
}

static int copy_job(struct copied_job *copied)
{
    const struct mica_rocket_job *job = &copied->job;
    if (!job->task_count || job->task_count > MOST_TASKS || job->in_count > MOST_HANDLES ||
        job->out_count > MOST_HANDLES || job->task_struct_size < sizeof(struct mica_rocket_task))
        return -EINVAL;
    copied->stream = calloc(job->task_count, sizeof(struct mica_rocket_task));
    int error = copied->stream ? copy_tasks(job, copied->stream) : -ENOMEM;
    if (!error)
        error = vnpu_copy_array(job->in_handles, job->in_count, sizeof(uint32_t), (void **)&copied->in);
    return error ? error : vnpu_copy_array(job->out_handles, job->out_count, sizeof(uint32_t), (void **)&copied->out);
}

static void run_job(struct vnpu_file *file, const struct copied_job *copied)
{
    for (struct vnpu_buffer *buffer = file->buffers; buffer; buffer = buffer->next)
        buffer->listed = true; /* every buffer of the file is mapped */
    int outcome = vnpu_run(file, copied->stream, 2 * (size_t)copied->job.task_count);
    for (uint32_t i = 0; i < copied->job.out_count; i++)
        vnpu_buffer_set_outcome(vnpu_buffer_find(file, copied->out[i]), outcome);
}

/* What was wrong with a job nobody is told: the kernel drops its result. */
static void try_job(struct vnpu_file *file, const struct mica_rocket_job *job)
{
    struct copied_job copied = {.job = *job};
    if (!copy_job(&copied) && tasks_good(&copied) && handles_known(file, copied.in, job->in_count) &&
        handles_known(file, copied.out, job->out_count) && handles_disjoint(&copied))
        run_job(file, &copied);
    free(copied.stream);
    free(copied.in);
    free(copied.out);
}

static int submit(struct vnpu_file *file, const struct mica_rocket_submit *call)
{
    if (call->job_struct_size < sizeof(struct mica_rocket_job) || call->reserved || call->job_count > MOST_JOBS)
        return -EINVAL;
    for (uint32_t i = 0; i < call->job_count; i++) {
        struct mica_rocket_job job;
        int error = vnpu_copy_in(&job, call->jobs + (uint64_t)i * call->job_struct_size, sizeof job);
        if (error)
            return error;
        try_job(file, &job);
    }
    return 0;
}

/* Jobs are done when their submission returns, so that there is nothing to wait for; nor caches. */
static int check_handle(const struct vnpu_file *file, uint32_t handle, uint32_t reserved)
{
    if (reserved)
        return -EINVAL;
    return vnpu_buffer_find(file, handle) ? 0 : -ENOENT;
}

static int call(struct vnpu_file *file, unsigned long request, void *argument)
{
    const struct mica_rocket_prep_bo *prep = argument;
    const struct mica_rocket_fini_bo *fini = argument;
    switch (request) {
    case MICA_ROCKET_CREATE_BO:
        return create_bo(file, argument);
    case MICA_ROCKET_SUBMIT:
        return submit(file, argument);
    case MICA_ROCKET_PREP_BO:
        return check_handle(file, prep->handle, prep->reserved);
    case MICA_ROCKET_FINI_BO:
        return check_handle(file, fini->handle, fini->reserved);
    default:
        return -ENOTTY;
    }
}

const struct vnpu_driver vnpu_rocket = {
    .name = "rocket",
    .date = "0",
    .description = "rocket DRM",
    .folder = "/dev/accel",
    .node = "accel0",
    .major = 261,
    .call = call,
};
