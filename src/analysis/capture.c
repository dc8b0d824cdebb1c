/* SPDX-License-Identifier: MIT */
#include "analysis/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_JSON ((uint64_t)16 << 20)
#define MOST_SUBMITS 100000u

/* ---- JSON ---------------------------------------------------------------------- */

json_t *mica_recording_json(struct mica_recording *recording, const char *directory, const char *name, int *error)
{
    const struct mica_folder_file *file;
    json_error_t problem;
    *error = mica_folder_read(&recording->folder, directory, name, MOST_JSON, &file);
    if (*error)
        return NULL;
    json_t *json = json_loadb((const char *)file->data, file->size, 0, &problem);
    if (json_is_object(json))
        return json;
    *error = mica_fail(recording->folder.log, -EINVAL, "%s is no JSON object: line %d: %s", file->name, problem.line,
                       json ? "not an object" : problem.text);
    json_decref(json);
    return NULL;
}

const char *mica_json_text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value ? value : "";
}

uint64_t mica_json_number(const json_t *object, const char *key)
{
    json_int_t value = json_integer_value(json_object_get(object, key));
    return value > 0 ? (uint64_t)value : 0;
}

bool mica_json_address(const json_t *object, const char *key, uint64_t *value)
{
    const json_t *item = json_object_get(object, key);
    const char *text = json_string_value(item);
    char *end = NULL;
    *value = text ? strtoull(text, &end, 0) : mica_json_number(object, key);
    return text ? *text && !*end : json_is_integer(item) && json_integer_value(item) >= 0;
}

/* ---- the folder ----------------------------------------------------------------- */

bool mica_recording_is_rocket(const struct mica_recording *recording)
{
    return !strcmp(recording->driver, "rocket");
}

const uint32_t *mica_recording_job(const struct mica_recorded_submit *submit, size_t job, size_t *words)
{
    size_t first = job ? submit->job_ends[job - 1] : 0;
    *words = submit->job_ends[job] - first;
    return submit->stream + first;
}

static bool has_submit(const struct mica_recording *recording, size_t number)
{
    char directory[32];
    snprintf(directory, sizeof directory, "submit_%04zu", number);
    return mica_folder_has(&recording->folder, directory, "submit.json");
}

static int read_one(struct mica_recording *recording, size_t number)
{
    struct mica_recorded_submit *grown =
        realloc(recording->submits, (recording->submit_count + 1) * sizeof *recording->submits);
    if (!grown)
        return mica_fail_nomem(recording->folder.log);
    recording->submits = grown;
    grown[recording->submit_count] = (struct mica_recorded_submit){0};
    return mica_recording_read_submit(recording, number, &grown[recording->submit_count++]);
}

static int read_submits(struct mica_recording *recording)
{
    int error = 0;
    while (!error && recording->submit_count < MOST_SUBMITS && has_submit(recording, recording->submit_count))
        error = read_one(recording, recording->submit_count);
    if (error || recording->submit_count)
        return error;
    return mica_fail(
        recording->folder.log, -ENOENT,
        "%s is no capture: it has no submit_0000/submit.json. A capture has a folder for each chip, or for "
        "each process and file, that submits",
        recording->folder.path);
}

/* "…/submit_0001": the capture is the folder above, so that files of other submissions are found. */
static bool is_submit_folder(const char *path, char *above, size_t room, size_t *number)
{
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    size_t name = length;
    while (name && path[name - 1] != '/')
        name--;
    char *end;
    if (length - name < 8 || strncmp(path + name, "submit_", 7) || path[name + 7] < '0' || path[name + 7] > '9')
        return false;
    *number = strtoul(path + name + 7, &end, 10);
    if (end != path + length || *number >= MOST_SUBMITS)
        return false;
    snprintf(above, room, "%.*s", name ? (int)name : 1, name ? path : ".");
    return true;
}

int mica_recording_load(const char *path, struct mica_log *log, struct mica_recording *recording)
{
    char above[1024];
    size_t number = 0;
    bool one = strlen(path) < sizeof above && is_submit_folder(path, above, sizeof above, &number);
    *recording = (struct mica_recording){.folder.fd = -1};
    int error = mica_folder_open(&recording->folder, one ? above : path, log);
    recording->folder.path = path;
    if (error)
        return error;
    recording->first_submit = number;
    if (one)
        error = read_one(recording, number);
    else
        error = read_submits(recording);
    if (!error)
        error = mica_recording_plan(recording);
    return error ? error : mica_recording_read_outputs(recording);
}

void mica_recording_release(struct mica_recording *recording)
{
    for (size_t i = 0; i < recording->submit_count; i++) {
        free(recording->submits[i].bos);
        free(recording->submits[i].stream);
        free(recording->submits[i].job_ends);
    }
    free(recording->submits);
    free(recording->outputs);
    mica_folder_close(&recording->folder);
    *recording = (struct mica_recording){.folder.fd = -1};
}
