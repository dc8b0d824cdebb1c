/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

void scene_create(struct scene *scene)
{
    memset(scene, 0, sizeof *scene);
    assert_int_equal(mica_graph_create(&scene->log, &scene->graph), 0);
}

void scene_destroy(struct scene *scene)
{
    for (uint32_t i = 0; i < scene->count; i++)
        if (!scene->graph->tensors[i].data)
            free(scene->data[i]);
    mica_graph_destroy(scene->graph);
}

static int32_t add(struct scene *scene, struct mica_tensor *tensor, uint32_t rank, const int32_t *dims)
{
    assert_true(scene->count < SCENE_TENSORS);
    tensor->name = "tensor";
    tensor->rank = rank;
    memcpy(tensor->dims, dims, rank * sizeof *dims);
    assert_int_equal(mica_graph_add_tensor(scene->graph, tensor, &scene->log), 0);
    return (int32_t)scene->count++;
}

int32_t scene_tensor(struct scene *scene, enum mica_type type, float scale, int32_t zero_point, uint32_t rank,
                     const int32_t *dims)
{
    struct mica_tensor tensor = {.type = type};
    if (scale != 0)
        tensor.quant = (struct mica_quantization){.count = 1, .scale = &scale, .zero_point = &zero_point};
    int32_t index = add(scene, &tensor, rank, dims);
    scene->data[index] = calloc(1, scene->graph->tensors[index].bytes);
    assert_non_null(scene->data[index]);
    return index;
}

int32_t scene_constant(struct scene *scene, enum mica_type type, uint32_t rank, const int32_t *dims, const void *data)
{
    struct mica_tensor tensor = {.type = type, .data = data};
    int32_t index = add(scene, &tensor, rank, dims);
    scene->data[index] = (void *)(uintptr_t)data;
    return index;
}

void scene_op(struct scene *scene, struct mica_op op, uint32_t outputs)
{
    int32_t indices[SCENE_TENSORS];
    for (uint32_t i = 0; i < scene->count; i++)
        indices[i] = (int32_t)i;
    op.type = op.type ? op.type : "OPERATION";
    op.inputs = indices;
    op.input_count = scene->count - outputs;
    op.outputs = indices + op.input_count;
    op.output_count = outputs;
    assert_int_equal(mica_graph_add_op(scene->graph, &op, &scene->log), 0);
}

struct mica_window scene_window(int32_t kernel_x, int32_t kernel_y)
{
    return (struct mica_window){
        .kernel_x = kernel_x, .kernel_y = kernel_y, .stride_x = 1, .stride_y = 1, .dilation_x = 1, .dilation_y = 1};
}

int scene_try(struct scene *scene, enum mica_arithmetic arithmetic, struct mica_threads *threads)
{
    struct mica_cpu_options options = {.arithmetic = arithmetic, .threads = threads};
    return mica_cpu_run(scene->graph, scene->graph->op_count - 1, scene->data, &options, &scene->log);
}

void scene_run(struct scene *scene, enum mica_arithmetic arithmetic)
{
    if (scene_try(scene, arithmetic, NULL))
        fail_msg("%s", scene->log.last_error);
}

void scene_noise(void *data, size_t size, uint32_t seed)
{
    uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) {
        seed = seed * 1664525 + 1013904223;
        bytes[i] = (uint8_t)(seed >> 24);
    }
}
