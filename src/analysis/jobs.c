/* SPDX-License-Identifier: MIT */
#include "analysis/jobs.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_DEPTH 8u
#define PATH_BYTES 192u

struct builder {
    struct mica_jobs *out;
    const struct mica_recording *recording;
    const struct mica_chip *chip;
    struct mica_places places;
    size_t submit, first; /* of the job that is being collected */
    bool weights;
    const struct mica_decoding_item *groups[MOST_DEPTH];
};

/* ---- one field --------------------------------------------------------------------- */

static struct mica_job_field *new_field(struct mica_jobs *jobs)
{
    if (jobs->field_count == jobs->field_capacity) {
        size_t capacity = jobs->field_capacity ? 2 * jobs->field_capacity : 1024;
        struct mica_job_field *grown = realloc(jobs->fields, capacity * sizeof *grown);
        if (!grown)
            return NULL;
        jobs->fields = grown;
        jobs->field_capacity = capacity;
    }
    return &jobs->fields[jobs->field_count++];
}

static void normalise(struct builder *builder, struct mica_job_field *field)
{
    uint64_t address, offset;
    uint32_t extra;
    if (!mica_field_address(field->path, field->value, builder->chip, &address, &extra))
        return;
    field->buffer = mica_place_find(&builder->places, &builder->recording->submits[builder->submit], address, &offset);
    field->is_address = field->buffer != 0;
    if (!field->is_address)
        return;
    field->value = offset;
    field->extra = extra;
}

static bool add_field(struct builder *builder, const struct mica_decoding_item *item)
{
    static const struct mica_decoding_item none = {.name = "", .text = ""};
    char path[PATH_BYTES];
    const struct mica_decoding_item *group =
        item->depth && item->depth <= MOST_DEPTH ? builder->groups[item->depth - 1] : &none;
    bool statistics = !strcmp(group->name, "histogram") || !strcmp(group->name, "kernel");
    if (statistics && !builder->weights)
        return true;
    struct mica_job_field *field = new_field(builder->out);
    mica_field_path(group->name, group->text, item->name, path, sizeof path);
    if (!field)
        return false;
    *field = (struct mica_job_field){
        .path = mica_decoding_keep(&builder->out->strings, path),
        .order = (uint32_t)(builder->out->field_count - builder->first),
        .value = item->value,
        .text = mica_decoding_keep(&builder->out->strings, item->text),
        .meaning = mica_decoding_keep(&builder->out->strings, item->meaning),
        .is_signed = item->is_signed,
        .unknown = item->unknown,
        .idle = item->idle,
    };
    if (builder->out->strings.failed)
        return false;
    normalise(builder, field);
    return !builder->places.failed;
}

int mica_job_field_compare(const struct mica_job_field *a, const struct mica_job_field *b)
{
    int order = strcmp(a->path, b->path);
    return order ? order : (a->repeat > b->repeat) - (a->repeat < b->repeat);
}

/* repeat is 0 still */
static int compare_appearance(const void *a, const void *b)
{
    const struct mica_job_field *x = a, *y = b;
    int order = strcmp(x->path, y->path);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* ---- one job -------------------------------------------------------------------------- */

static bool finish_job(struct builder *builder, const char *unit)
{
    struct mica_jobs *out = builder->out;
    size_t count = out->field_count - builder->first;
    if (!count)
        return true;
    struct mica_submitted_job *grown = realloc(out->jobs, (out->job_count + 1) * sizeof *grown);
    if (!grown)
        return false;
    out->jobs = grown;
    struct mica_submitted_job *job = &grown[out->job_count++];
    *job = (struct mica_submitted_job){.submit = builder->submit, .first = builder->first, .count = count};
    snprintf(job->unit, sizeof job->unit, "%s", unit);
    struct mica_job_field *fields = out->fields + builder->first;
    qsort(fields, count, sizeof *fields, compare_appearance);
    for (size_t i = 1; i < count; i++)
        fields[i].repeat = strcmp(fields[i].path, fields[i - 1].path) ? 0 : fields[i - 1].repeat + 1;
    builder->first = out->field_count;
    return true;
}

/* A job ends with what starts it: its descriptor, its task. */
static const char *unit_of(const struct mica_decoding_item *group)
{
    if (!strcmp(group->name, "NN descriptor"))
        return "NN";
    if (!strcmp(group->name, "TP descriptor"))
        return "TP";
    return !strcmp(group->name, "task") ? "task" : NULL;
}

/* Groups that an item at `depth` is behind are closed. */
static bool close_groups(struct builder *builder, uint32_t depth)
{
    bool good = true;
    for (uint32_t i = MOST_DEPTH; i-- > depth;) {
        const char *unit = builder->groups[i] ? unit_of(builder->groups[i]) : NULL;
        if (unit)
            good = finish_job(builder, unit) && good;
        builder->groups[i] = NULL;
    }
    return good;
}

static bool collect(struct builder *builder, const struct mica_decoding *decoding)
{
    bool good = true;
    for (size_t i = 0; good && i < decoding->count; i++) {
        const struct mica_decoding_item *item = &decoding->items[i];
        good = close_groups(builder, item->depth);
        if (good && item->group && item->depth < MOST_DEPTH)
            builder->groups[item->depth] = item;
        else if (good && !item->group)
            good = add_field(builder, item);
    }
    return good && close_groups(builder, 0) && finish_job(builder, "other");
}

/* ---- all of them ------------------------------------------------------------------------ */

static int load_submit(struct builder *builder, size_t submit, struct mica_device_memory *memory, struct mica_log *log)
{
    struct mica_decoding decoding = {0};
    struct mica_jobs *out = builder->out;
    int error = mica_recording_map(builder->recording, submit, memory);
    if (!error)
        error = mica_decoding_submit(&decoding, &builder->recording->submits[submit], builder->chip, memory,
                                     builder->weights, log);
    builder->submit = submit;
    if (!error && !collect(builder, &decoding))
        error = mica_fail_nomem(log);
    out->unknown += decoding.unknown;
    out->full |= decoding.full;
    mica_decoding_release(&decoding);
    return error;
}

int mica_jobs_load(const struct mica_recording *recording, const struct mica_chip *chip, bool weights,
                   struct mica_log *log, struct mica_jobs *jobs)
{
    struct mica_device_memory memory;
    struct builder builder = {.out = jobs, .recording = recording, .chip = chip, .weights = weights};
    *jobs = (struct mica_jobs){0};
    int error = mica_device_memory_create(&memory);
    if (error)
        return mica_fail_nomem(log);
    for (size_t i = 0; !error && i < recording->submit_count && jobs->field_count < MICA_DECODING_MOST_ITEMS; i++)
        error = load_submit(&builder, i, &memory, log);
    jobs->full |= jobs->field_count >= MICA_DECODING_MOST_ITEMS;
    mica_places_release(&builder.places);
    mica_device_memory_destroy(&memory);
    return error;
}

void mica_jobs_release(struct mica_jobs *jobs)
{
    mica_decoding_release(&jobs->strings);
    free(jobs->jobs);
    free(jobs->fields);
    *jobs = (struct mica_jobs){0};
}

bool mica_job_field_same(const struct mica_job_field *a, const struct mica_job_field *b)
{
    if (a->value != b->value || a->is_address != b->is_address || a->buffer != b->buffer || a->extra != b->extra)
        return false;
    return a->text && b->text ? !strcmp(a->text, b->text) : a->text == b->text;
}

void mica_job_field_print(const struct mica_job_field *field, char *text, size_t size)
{
    if (field->is_address && field->extra)
        snprintf(text, size, "buffer %u + 0x%" PRIx64 ", job %u", field->buffer, field->value, field->extra);
    else if (field->is_address)
        snprintf(text, size, "buffer %u + 0x%" PRIx64, field->buffer, field->value);
    else if (field->text && !field->value)
        snprintf(text, size, "%s", field->text);
    else if (field->text)
        snprintf(text, size, "%" PRIu64 ": %s", field->value, field->text);
    else if (field->is_signed)
        snprintf(text, size, "%" PRId64, (int64_t)field->value);
    else if (field->value < 10)
        snprintf(text, size, "%" PRIu64, field->value);
    else
        snprintf(text, size, "%" PRIu64 " (0x%" PRIx64 ")", field->value, field->value);
}
