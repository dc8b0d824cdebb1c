/* SPDX-License-Identifier: MIT */
#include "captures.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/program.h"
#include "support.h"
#include "util/checked.h"

static uint32_t number(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? (uint32_t)strtoul(text, NULL, 0) : (uint32_t)json_integer_value(json_object_get(object, key));
}

static bool map_buffer(const char *folder, const json_t *bo, struct mica_device_memory *memory)
{
    char path[700];
    size_t size = 0;
    uint64_t address = number(bo, "va"), room = mica_align(number(bo, "size"), MICA_DEVICE_PAGE);
    const char *file = json_string_value(json_object_get(bo, "file"));
    if (mica_device_memory_map(memory, address, room))
        return false;
    mica_device_memory_protect(memory, address, room, MICA_ACCESS_READ | MICA_ACCESS_WRITE);
    if (!file)
        return true;
    snprintf(path, sizeof path, "%s/rk3588/submit_0000/%s", folder, file);
    uint8_t *data = read_whole_file(path, &size);
    bool fits = data && size <= room;
    if (fits)
        memcpy(memory->base + address, data, size);
    free(data);
    return fits;
}

static bool read_tasks(const json_t *jobs, struct captured *captured)
{
    size_t i, j;
    json_t *job, *task;
    json_array_foreach(jobs, i, job)
    {
        captured->job_tasks[captured->job_count++] = (uint32_t)json_array_size(json_object_get(job, "tasks"));
        json_array_foreach(json_object_get(job, "tasks"), j, task)
        {
            if (captured->task_count == MAX_CAPTURED_TASKS)
                return false;
            captured->tasks[2 * captured->task_count] = number(task, "regcmd");
            captured->tasks[2 * captured->task_count++ + 1] = number(task, "regcmd_count");
        }
    }
    return captured->task_count > 0;
}

static bool load_submission(const char *folder, struct mica_device_memory *memory, struct captured *captured)
{
    char path[700];
    size_t i;
    json_t *bo;
    snprintf(path, sizeof path, "%s/rk3588/submit_0000/submit.json", folder);
    json_t *json = json_load_file(path, 0, NULL);
    bool ok = json && read_tasks(json_object_get(json, "jobs"), captured);
    json_array_foreach(json_object_get(json, "bos"), i, bo) ok = ok && map_buffer(folder, bo, memory);
    json_decref(json);
    return ok;
}

bool captured_load(const char *folder, struct mica_device_memory *memory, struct captured *captured)
{
    char path[700];
    size_t i;
    json_t *tensor;
    *captured = (struct captured){0};
    snprintf(path, sizeof path, "%s/rk3588/cpu_0.bin", folder);
    captured->expected = read_whole_file(path, &captured->expected_size);
    snprintf(path, sizeof path, "%s/rk3588/run.json", folder);
    json_t *run = json_load_file(path, 0, NULL);
    json_array_foreach(json_object_get(run, "tensors"), i, tensor)
    {
        const char *type = json_string_value(json_object_get(tensor, "type"));
        captured->is_signed |= type && !strcmp(type, "INT8");
    }
    json_decref(run);
    return captured->expected && load_submission(folder, memory, captured);
}
