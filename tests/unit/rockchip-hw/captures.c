/* SPDX-License-Identifier: MIT */
#include "captures.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/capture.h"

#define FOLDERS MICA_SHARED_DIR "/captures/"
#define PATTERN FOLDERS "*/rk3588"

static void *need(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static void print_message_of(void *user, enum mica_log_level level, const char *message)
{
    (void)user;
    (void)level;
    fprintf(stderr, "%s\n", message);
}

static void copy_submit(struct rk_submit *submit, const struct mica_recorded_submit *recorded)
{
    submit->task_count = recorded->words / 2;
    submit->tasks = need(malloc(recorded->words * sizeof(*submit->tasks) + 1));
    memcpy(submit->tasks, recorded->stream, recorded->words * sizeof(*submit->tasks));
    submit->bo_count = recorded->bo_count;
    submit->bos = need(calloc(recorded->bo_count + 1, sizeof(*submit->bos)));
    for (size_t i = 0; i < recorded->bo_count; i++) {
        const struct mica_recorded_bo *bo = &recorded->bos[i];
        submit->bos[i] = (struct rk_bo){.address = bo->address, .size = bo->size};
        if (bo->contents == NULL)
            continue;
        submit->bos[i].data = need(calloc(1, bo->size));
        memcpy(submit->bos[i].data, bo->contents, bo->contents_size);
    }
}

static void add_recording(struct rk_captures *captures, const char *folder)
{
    struct mica_log log = {.level = MICA_LOG_ERROR, .sink = print_message_of};
    struct mica_recording recording;
    if (mica_recording_load(folder, &log, &recording) != 0)
        exit(1);
    captures->list =
        need(realloc(captures->list, (captures->count + recording.submit_count + 1) * sizeof(*captures->list)));
    for (size_t i = 0; i < recording.submit_count; i++) {
        struct rk_submit *submit = &captures->list[captures->count++];
        *submit = (struct rk_submit){0};
        snprintf(submit->name, sizeof(submit->name), "%s/submit_%04zu", folder + strlen(FOLDERS), i);
        copy_submit(submit, &recording.submits[i]);
    }
    mica_recording_release(&recording);
}

struct rk_captures rk_captures_load(void)
{
    glob_t found;
    if (glob(PATTERN, 0, NULL, &found) != 0) {
        fprintf(stderr, "there are no captures at " PATTERN "\n");
        exit(77);
    }
    struct rk_captures captures = {0};
    for (size_t i = 0; i < found.gl_pathc; i++)
        add_recording(&captures, found.gl_pathv[i]);
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
