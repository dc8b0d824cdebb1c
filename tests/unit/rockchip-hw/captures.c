/* SPDX-License-Identifier: MIT */
#include "captures.h"

#include <glob.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATTERN MICA_SHARED_DIR "/captures/*/rk3588/submit_*/submit.json"

static void *need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static const char *text(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

/* Files may be shorter than their buffers: the rest is 0. */
static uint8_t *read_bo(const char *folder, const char *name, size_t size)
{
    char path[1024];
    snprintf(path, sizeof(path), "%s%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s can't be opened\n", path);
        exit(1);
    }
    uint8_t *data = need(calloc(1, size > 0 ? size : 1));
    size_t length = fread(data, 1, size, file);
    fclose(file);
    if (length == 0) {
        fprintf(stderr, "%s is empty\n", path);
        exit(1);
    }
    return data;
}

static void load_bos(struct rk_submit *submit, const char *folder, const json_t *list)
{
    submit->bo_count = json_array_size(list);
    submit->bos = need(calloc(submit->bo_count + 1, sizeof(*submit->bos)));
    for (size_t i = 0; i < submit->bo_count; i++) {
        const json_t *item = json_array_get(list, i);
        struct rk_bo *bo = &submit->bos[i];
        bo->address = strtoull(text(item, "va"), NULL, 0);
        bo->size = (uint64_t)json_integer_value(json_object_get(item, "size"));
        if (text(item, "file")[0] != '\0')
            bo->data = read_bo(folder, text(item, "file"), bo->size);
    }
}

static void load_tasks(struct rk_submit *submit, const json_t *jobs)
{
    for (size_t j = 0; j < json_array_size(jobs); j++) {
        const json_t *tasks = json_object_get(json_array_get(jobs, j), "tasks");
        for (size_t t = 0; t < json_array_size(tasks); t++) {
            const json_t *task = json_array_get(tasks, t);
            size_t at = 2 * submit->task_count++;
            submit->tasks = need(realloc(submit->tasks, (at + 2) * sizeof(*submit->tasks)));
            submit->tasks[at] = (uint32_t)strtoul(text(task, "regcmd"), NULL, 0);
            submit->tasks[at + 1] = (uint32_t)json_integer_value(json_object_get(task, "regcmd_count"));
        }
    }
}

static void load_submit(struct rk_submit *submit, const char *path)
{
    json_error_t error;
    json_t *json = json_load_file(path, 0, &error);
    if (json == NULL) {
        fprintf(stderr, "%s: %s\n", path, error.text);
        exit(1);
    }
    char folder[768];
    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') + 1 - path), path);
    *submit = (struct rk_submit){0};
    snprintf(submit->name, sizeof(submit->name), "%s", path + strlen(MICA_SHARED_DIR "/captures/"));
    load_tasks(submit, json_object_get(json, "jobs"));
    load_bos(submit, folder, json_object_get(json, "bos"));
    json_decref(json);
}

struct rk_captures rk_captures_load(void)
{
    glob_t found;
    if (glob(PATTERN, 0, NULL, &found) != 0) {
        fprintf(stderr, "there are no captures at " PATTERN "\n");
        exit(77);
    }
    struct rk_captures captures = {need(calloc(found.gl_pathc, sizeof(*captures.list))), found.gl_pathc};
    for (size_t i = 0; i < captures.count; i++)
        load_submit(&captures.list[i], found.gl_pathv[i]);
    globfree(&found);
    return captures;
}

void rk_captures_release(struct rk_captures *captures)
{
    for (size_t i = 0; i < captures->count; i++) {
        for (size_t k = 0; k < captures->list[i].bo_count; k++)
            free(captures->list[i].bos[k].data);
        free(captures->list[i].bos);
        free(captures->list[i].tasks);
    }
    free(captures->list);
}
