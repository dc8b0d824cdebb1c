/* SPDX-License-Identifier: MIT */
/* submit.json and the files that it names. */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/capture.h"
#include "npu/program.h"
#include "util/checked.h"

#define MOST_BOS 4096u
#define MOST_JOBS 65536u
#define MOST_TASKS 1048576u
#define MOST_STREAM ((uint64_t)16 << 20) /* bytes */

struct reader {
    struct mica_recording *recording;
    const char *directory; /* "submit_0001" */
    const json_t *json;
};

static int fail(const struct reader *reader, const char *why)
{
    return mica_fail(reader->recording->folder.log, -EINVAL, "%s/%s: %s", reader->recording->folder.path,
                     reader->directory, why);
}

static int nomem(const struct reader *reader)
{
    return mica_fail_nomem(reader->recording->folder.log);
}

/* ---- buffers ---------------------------------------------------------------------- */

static int read_contents(const struct reader *reader, const json_t *json, const char *key, uint64_t most,
                         const uint8_t **data, size_t *size)
{
    const struct mica_folder_file *file;
    const char *name = mica_json_text(json, key);
    if (!*name)
        return 0;
    int error = mica_folder_read(&reader->recording->folder, reader->directory, name, most, &file);
    if (error)
        return error;
    *data = file->data;
    *size = file->size;
    return 0;
}

static int read_bo(const struct reader *reader, const json_t *json, struct mica_recorded_bo *bo)
{
    const char *access = mica_json_text(json, "access");
    uint64_t size = mica_json_number(json, "size");
    *bo = (struct mica_recorded_bo){
        .handle = (uint32_t)mica_json_number(json, "handle"),
        .access = (strchr(access, 'r') ? MICA_ACCESS_READ : 0) | (strchr(access, 'w') ? MICA_ACCESS_WRITE : 0),
    };
    if (!mica_json_address(json, "va", &bo->address))
        return fail(reader, "a buffer has no address ('va'): only captures of soft-pinned buffers can be read");
    if (bo->address % MICA_DEVICE_PAGE || !mica_range_inside(bo->address, size, MICA_DEVICE_SPACE))
        return fail(reader, "a buffer's address is not page aligned, or the buffer ends beyond 4 GiB");
    bo->size = mica_align(size, MICA_DEVICE_PAGE);
    int error = read_contents(reader, json, "file", bo->size, &bo->contents, &bo->contents_size);
    if (!error && bo->contents && mica_json_number(json, "nonzero_end") > bo->contents_size)
        error = fail(reader, "a buffer's file is truncated: it ends before 'nonzero_end'");
    return error ? error : read_contents(reader, json, "file_after", bo->size, &bo->after, &bo->after_size);
}

static int read_bos(const struct reader *reader, struct mica_recorded_submit *out)
{
    const json_t *list = json_object_get(reader->json, "bos");
    size_t count = json_array_size(list);
    if (count > MOST_BOS)
        return fail(reader, "more than 4096 buffers");
    out->bos = mica_new_array(count, sizeof *out->bos);
    if (!out->bos)
        return nomem(reader);
    for (; out->bo_count < count; out->bo_count++) {
        int error = read_bo(reader, json_array_get(list, out->bo_count), &out->bos[out->bo_count]);
        if (error)
            return error;
    }
    return 0;
}

static bool names_handle(const json_t *handles, uint32_t handle)
{
    size_t i;
    json_t *item;
    json_array_foreach(handles, i, item)
    {
        if (json_integer_value(item) == handle)
            return true;
    }
    return false;
}

/*
 * rocket's buffers have no access rights of their own: every one of the file is mapped. Those that no job says it
 * writes are only for reading here, so that a stray write shows.
 */
static void set_access(const struct reader *reader, struct mica_recorded_submit *out)
{
    size_t j;
    json_t *job;
    for (size_t i = 0; i < out->bo_count; i++) {
        struct mica_recorded_bo *bo = &out->bos[i];
        if (bo->access)
            continue;
        bo->access = MICA_ACCESS_READ;
        json_array_foreach(json_object_get(reader->json, "jobs"), j, job)
        {
            if (names_handle(json_object_get(job, "out_bos"), bo->handle)) {
                bo->access |= MICA_ACCESS_WRITE;
                break;
            }
        }
    }
}

/* ---- streams and tasks -------------------------------------------------------------- */

static int read_stream(const struct reader *reader, struct mica_recorded_submit *out)
{
    const struct mica_folder_file *file;
    const json_t *stream = json_object_get(reader->json, "stream");
    const char *name = mica_json_text(stream, "file");
    if (!*name)
        return fail(reader, "no stream is named");
    if (json_array_size(json_object_get(reader->json, "relocs")))
        return fail(reader, "the stream has relocations: only captures of soft-pinned buffers can be read");
    int error = mica_folder_read(&reader->recording->folder, reader->directory, name, MOST_STREAM, &file);
    if (error)
        return error;
    if (file->size % sizeof *out->stream || file->size / sizeof *out->stream < mica_json_number(stream, "words"))
        return fail(reader, "the stream's file is truncated");
    out->stream = mica_new_array(file->size, 1);
    out->job_ends = mica_new_array(1, sizeof *out->job_ends);
    if (!out->stream || !out->job_ends)
        return nomem(reader);
    memcpy(out->stream, file->data, file->size);
    out->words = out->job_ends[0] = file->size / sizeof *out->stream;
    out->job_count = 1;
    return 0;
}

static size_t count_tasks(const json_t *jobs)
{
    size_t i, count = 0;
    json_t *job;
    json_array_foreach(jobs, i, job) count += json_array_size(json_object_get(job, "tasks"));
    return count;
}

static int read_task(const struct reader *reader, const json_t *task, uint32_t *words)
{
    uint64_t address, count = mica_json_number(task, "regcmd_count");
    if (!mica_json_address(task, "regcmd", &address) || address > UINT32_MAX || count > UINT32_MAX)
        return fail(reader, "a task's 'regcmd' or 'regcmd_count' is no 32-bit number");
    words[0] = (uint32_t)address;
    words[1] = (uint32_t)count;
    return 0;
}

static int read_tasks(const struct reader *reader, struct mica_recorded_submit *out)
{
    size_t i, j;
    json_t *job, *task, *jobs = json_object_get(reader->json, "jobs");
    if (json_array_size(jobs) > MOST_JOBS || count_tasks(jobs) > MOST_TASKS)
        return fail(reader, "more than 65536 jobs or a million tasks");
    out->stream = mica_new_array(2 * count_tasks(jobs), sizeof *out->stream);
    out->job_ends = mica_new_array(json_array_size(jobs), sizeof *out->job_ends);
    if (!out->stream || !out->job_ends)
        return nomem(reader);
    json_array_foreach(jobs, i, job)
    {
        json_array_foreach(json_object_get(job, "tasks"), j, task)
        {
            int error = read_task(reader, task, out->stream + out->words);
            if (error)
                return error;
            out->words += 2;
        }
        out->job_ends[out->job_count++] = out->words;
    }
    return 0;
}

/* "not waited for": the job may have been running when the contents were looked at. */
static void forget_after(struct mica_recorded_submit *submit)
{
    for (size_t i = 0; i < submit->bo_count; i++)
        submit->bos[i].after = NULL;
}

/* ---- the whole ------------------------------------------------------------------------ */

static int check_driver(const struct reader *reader)
{
    struct mica_recording *recording = reader->recording;
    const char *driver = mica_json_text(reader->json, "driver"), *chip = mica_json_text(reader->json, "chip");
    if (strcmp(driver, "etnaviv") && strcmp(driver, "rocket"))
        return fail(reader, "its driver is none whose submissions are known; those of etnaviv and rocket are");
    if (*recording->driver && (strcmp(recording->driver, driver) || strcmp(recording->chip, chip)))
        return fail(reader, "it is of another driver or chip than the submissions before it");
    snprintf(recording->driver, sizeof recording->driver, "%s", driver);
    snprintf(recording->chip, sizeof recording->chip, "%s", chip);
    return 0;
}

int mica_recording_read_submit(struct mica_recording *recording, size_t number, struct mica_recorded_submit *submit)
{
    char directory[32];
    int error;
    snprintf(directory, sizeof directory, "submit_%04zu", number);
    json_t *json = mica_recording_json(recording, directory, "submit.json", &error);
    if (!json)
        return error;
    struct reader reader = {recording, directory, json};
    error = check_driver(&reader);
    if (!error)
        error = (mica_recording_is_rocket(recording) ? read_tasks : read_stream)(&reader, submit);
    if (!error)
        error = read_bos(&reader, submit);
    if (!error && mica_recording_is_rocket(recording))
        set_access(&reader, submit);
    if (!error && !strncmp(mica_json_text(json, "after"), "not", 3))
        forget_after(submit);
    submit->start_ns = mica_json_number(json, "start_ns");
    submit->after_ns = mica_json_number(json, "after_ns");
    json_decref(json);
    return error;
}
