/* SPDX-License-Identifier: MIT */
#include "capture.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/program.h"
#include "npu/vivante/hw/fields.h"
#include "npu/vivante/hw/states.h"
#include "util/checked.h"

struct reader {
    const char *folder;
    char *error;
    size_t error_size;
};

static int fail(const struct reader *reader, const char *path, const char *why)
{
    snprintf(reader->error, reader->error_size, "%s: %s", path, why);
    return -1;
}

static uint8_t *read_file(const struct reader *reader, const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail(reader, path, "can't be opened");
        return NULL;
    }
    fseek(file, 0, SEEK_END);
    long length = ftell(file);
    rewind(file);
    uint8_t *data = length >= 0 ? malloc((size_t)length + 1) : NULL;
    if (!data || fread(data, 1, (size_t)length, file) != (size_t)length) {
        fail(reader, path, "can't be read");
        free(data);
        data = NULL;
    }
    fclose(file);
    *size = data ? (size_t)length : 0;
    return data;
}

static json_t *read_json(const struct reader *reader, const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (!json)
        fail(reader, path, error.text);
    return json;
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

static size_t number(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (size_t)value : 0;
}

static int load_bo(const struct reader *reader, const char *directory, const json_t *json, struct capture_bo *bo)
{
    const char *access = text(json, "access"), *file = text(json, "file");
    *bo = (struct capture_bo){
        .address = strtoull(text(json, "va"), NULL, 0),
        .size = mica_align((uint64_t)json_integer_value(json_object_get(json, "size")), MICA_DEVICE_PAGE),
        .access = (strchr(access, 'r') ? MICA_ACCESS_READ : 0) | (strchr(access, 'w') ? MICA_ACCESS_WRITE : 0),
    };
    if (!*file)
        return 0;
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", directory, file);
    bo->contents = read_file(reader, path, &bo->contents_size);
    if (!bo->contents)
        return -1;
    return bo->contents_size > bo->size ? fail(reader, path, "is larger than its buffer") : 0;
}

static int load_bos(const struct reader *reader, const char *directory, const json_t *list, struct capture_submit *out)
{
    size_t i;
    json_t *item;
    out->bos = mica_new_array(json_array_size(list), sizeof *out->bos);
    if (!out->bos)
        return fail(reader, directory, "out of memory");
    json_array_foreach(list, i, item)
    {
        out->bo_count = i + 1;
        if (load_bo(reader, directory, item, &out->bos[i]))
            return -1;
    }
    return 0;
}

static int load_stream(const struct reader *reader, const char *directory, const json_t *json,
                       struct capture_submit *out)
{
    char path[1024];
    size_t size;
    snprintf(path, sizeof path, "%s/%s", directory, text(json_object_get(json, "stream"), "file"));
    out->stream = (uint32_t *)(void *)read_file(reader, path, &size);
    out->job_ends = mica_new_array(1, sizeof *out->job_ends);
    if (!out->stream || !out->job_ends)
        return -1;
    out->words = out->job_ends[0] = size / sizeof *out->stream;
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

static int load_tasks(const struct reader *reader, const char *directory, const json_t *json,
                      struct capture_submit *out)
{
    size_t i, j;
    json_t *job, *task, *jobs = json_object_get(json, "jobs");
    out->stream = mica_new_array(2 * count_tasks(jobs), sizeof *out->stream);
    out->job_ends = mica_new_array(json_array_size(jobs), sizeof *out->job_ends);
    if (!out->stream || !out->job_ends)
        return fail(reader, directory, "out of memory");
    json_array_foreach(jobs, i, job)
    {
        json_array_foreach(json_object_get(job, "tasks"), j, task)
        {
            out->stream[out->words++] = (uint32_t)strtoull(text(task, "regcmd"), NULL, 0);
            out->stream[out->words++] = (uint32_t)number(task, "regcmd_count");
        }
        out->job_ends[out->job_count++] = out->words;
    }
    return 0;
}

static bool names_handle(const json_t *handles, json_int_t handle)
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
static void set_access(const json_t *json, struct capture_submit *out)
{
    size_t i, j;
    json_t *bo, *job;
    json_array_foreach(json_object_get(json, "bos"), i, bo)
    {
        if (out->bos[i].access)
            continue;
        json_int_t handle = json_integer_value(json_object_get(bo, "handle"));
        out->bos[i].access = MICA_ACCESS_READ;
        json_array_foreach(json_object_get(json, "jobs"), j, job)
        {
            if (names_handle(json_object_get(job, "out_bos"), handle))
                out->bos[i].access |= MICA_ACCESS_WRITE;
        }
    }
}

static int load_submit(const struct reader *reader, const char *directory, json_t *json, struct capture_submit *out)
{
    bool rocket = !strcmp(text(json, "driver"), "rocket");
    int result = (rocket ? load_tasks : load_stream)(reader, directory, json, out);
    if (!result)
        result = load_bos(reader, directory, json_object_get(json, "bos"), out);
    if (!result && rocket)
        set_access(json, out);
    return result;
}

static bool exists(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file)
        fclose(file);
    return file != NULL;
}

static int load_submits(const struct reader *reader, struct capture *capture)
{
    for (;;) {
        char directory[768], path[800];
        snprintf(directory, sizeof directory, "%s/submit_%04zu", reader->folder, capture->submit_count);
        snprintf(path, sizeof path, "%s/submit.json", directory);
        if (!exists(path))
            return capture->submit_count ? 0 : fail(reader, path, "no submission");
        struct capture_submit *grown =
            realloc(capture->submits, (capture->submit_count + 1) * sizeof *capture->submits);
        json_t *json = read_json(reader, path);
        if (!grown || !json) {
            capture->submits = grown ? grown : capture->submits;
            json_decref(json);
            return -1;
        }
        capture->submits = grown;
        grown[capture->submit_count] = (struct capture_submit){0};
        snprintf(capture->chip, sizeof capture->chip, "%s", text(json, "chip"));
        snprintf(capture->driver, sizeof capture->driver, "%s", text(json, "driver"));
        int result = load_submit(reader, directory, json, &grown[capture->submit_count++]);
        json_decref(json);
        if (result)
            return result;
    }
}

static bool is_rocket(const struct capture *capture)
{
    return !strcmp(capture->driver, "rocket");
}

/* Mainline's user of rocket has everything in cubes of 16 channels without gaps. */
static void mainline_layout(const json_t *shape, struct capture *capture)
{
    size_t pixels = 1, rank = json_array_size(shape);
    for (size_t i = 0; i + 1 < rank; i++)
        pixels *= (size_t)json_integer_value(json_array_get(shape, i));
    size_t channels = rank ? (size_t)json_integer_value(json_array_get(shape, rank - 1)) : 1;
    capture->layout = (struct capture_layout){16, channels, 16 * pixels};
}

static void load_output(const json_t *run, const json_t *tensor, struct capture *capture)
{
    const char *address = text(tensor, "va");
    const json_t *layout = json_object_get(tensor, "layout");
    capture->expected_signed = !strcmp(text(tensor, "type"), is_rocket(capture) ? "UINT8" : "INT8");
    capture->output_known = *address;
    capture->not_comparable = !*address && !strncmp(text(run, "delegate"), "Mica ", 5);
    if (!*address && is_rocket(capture))
        mainline_layout(json_object_get(tensor, "shape"), capture);
    if (!*address)
        return;
    capture->output_address = (uint32_t)(strtoull(address, NULL, 0) + number(tensor, "offset"));
    capture->expected_signed = json_is_true(json_object_get(tensor, "flip_sign"));
    capture->layout =
        (struct capture_layout){number(layout, "block"), number(layout, "channels"), number(layout, "surface")};
}

/* Of `expected_size` elements, does the layout make sense? */
static bool layout_valid(const struct capture *capture)
{
    const struct capture_layout *layout = &capture->layout;
    return !layout->block || (layout->channels && capture->expected_size % layout->channels == 0);
}

static int load_expected(const struct reader *reader, struct capture *capture)
{
    char path[800];
    size_t i;
    json_t *tensor;
    snprintf(path, sizeof path, "%s/cpu_0.bin", reader->folder);
    if (!exists(path))
        return 0;
    capture->expected = read_file(reader, path, &capture->expected_size);
    snprintf(path, sizeof path, "%s/run.json", reader->folder);
    json_t *run = read_json(reader, path);
    json_array_foreach(json_object_get(run, "tensors"), i, tensor)
    {
        bool first =
            !strcmp(text(tensor, "kind"), "output") && json_integer_value(json_object_get(tensor, "index")) == 0;
        if (first)
            load_output(run, tensor, capture);
    }
    json_decref(run);
    if (!layout_valid(capture))
        return fail(reader, path, "the layout of output 0 doesn't go with its size");
    return capture->expected && run ? 0 : -1;
}

int capture_load(const char *folder, struct capture *capture, char *error, size_t size)
{
    struct reader reader = {folder, error, size};
    *capture = (struct capture){0};
    int result = load_submits(&reader, capture);
    return result ? result : load_expected(&reader, capture);
}

void capture_release(struct capture *capture)
{
    for (size_t i = 0; i < capture->submit_count; i++) {
        struct capture_submit *submit = &capture->submits[i];
        for (size_t j = 0; j < submit->bo_count; j++)
            free(submit->bos[j].contents);
        free(submit->bos);
        free(submit->stream);
        free(submit->job_ends);
    }
    free(capture->submits);
    free(capture->expected);
    *capture = (struct capture){0};
}

/* Did an earlier submission let the device write the buffer (2), or at least have it (1)? */
static int history(const struct capture *capture, size_t submit, uint64_t address)
{
    int known = 0;
    for (size_t i = 0; i < submit; i++)
        for (size_t j = 0; j < capture->submits[i].bo_count; j++) {
            const struct capture_bo *bo = &capture->submits[i].bos[j];
            if (bo->address == address)
                known = bo->access & MICA_ACCESS_WRITE || known == 2 ? 2 : 1;
        }
    return known;
}

int capture_map(const struct capture *capture, size_t submit, struct mica_device_memory *memory)
{
    mica_device_memory_protect(memory, 0, MICA_DEVICE_SPACE, 0);
    for (size_t i = 0; i < capture->submits[submit].bo_count; i++) {
        const struct capture_bo *bo = &capture->submits[submit].bos[i];
        int known = history(capture, submit, bo->address);
        if (!known && mica_device_memory_map(memory, bo->address, bo->size))
            return -1;
        if (known < 2 && bo->contents)
            memcpy(memory->base + bo->address, bo->contents, bo->contents_size);
        mica_device_memory_protect(memory, bo->address, bo->size, bo->access);
    }
    return 0;
}

static bool job_output(const struct mica_device_memory *memory, bool nn, uint32_t descriptor, uint32_t *address)
{
    uint32_t words[VIV_TP_WORDS];
    uint64_t fault;
    const void *host = mica_device_at(memory, descriptor, sizeof words, MICA_ACCESS_READ, &fault);
    if (!host)
        return false;
    memcpy(words, host, sizeof words);
    *address = nn ? viv_nn_get(words, VIV_NN_OUT_IMAGE_ADDRESS) : viv_tp_get(words, VIV_TP_OUT_IMAGE_BASE_ADDRESS);
    return true;
}

/* One operation is split into several jobs. */
static bool last_jobs_output(const struct capture *capture, const struct mica_device_memory *memory, uint32_t *address)
{
    const struct capture_submit *submit = &capture->submits[capture->submit_count - 1];
    bool found = false, found_nn = false;
    for (size_t i = submit->words & ~(size_t)1; i >= 2; i -= 2) {
        bool nn = submit->stream[i - 2] == VIV_LOAD_STATE(VIV_PS_NN_INST_ADDR);
        if (!nn && submit->stream[i - 2] != VIV_LOAD_STATE(VIV_PS_TP_INST_ADDR))
            continue;
        uint32_t output;
        if (found && (nn || nn != found_nn))
            break;
        if (!job_output(memory, nn, submit->stream[i - 1] & ~63u, &output))
            return false;
        *address = found && *address < output ? *address : output;
        found = true;
        found_nn = nn;
    }
    return found;
}

const uint32_t *capture_job(const struct capture_submit *submit, size_t job, size_t *words)
{
    size_t first = job ? submit->job_ends[job - 1] : 0;
    *words = submit->job_ends[job] - first;
    return submit->stream + first;
}

size_t capture_output_offset(const struct capture *capture, size_t index)
{
    const struct capture_layout *layout = &capture->layout;
    if (!layout->block)
        return index;
    size_t channel = index % layout->channels, pixel = index / layout->channels;
    return channel / layout->block * layout->surface + pixel * layout->block + channel % layout->block;
}

size_t capture_output_extent(const struct capture *capture)
{
    return capture->expected_size ? capture_output_offset(capture, capture->expected_size - 1) + 1 : 0;
}

bool capture_output_address(const struct capture *capture, const struct mica_device_memory *memory, uint32_t *address)
{
    *address = capture->output_address;
    if (capture->output_known)
        return true;
    return !is_rocket(capture) && last_jobs_output(capture, memory, address);
}
