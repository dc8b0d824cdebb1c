/* SPDX-License-Identifier: MIT */
/* A graph of one operation and values for its tensors. */
#ifndef TEST_CPU_SCENE_H
#define TEST_CPU_SCENE_H

#include "cpu/cpu.h"

enum { SCENE_TENSORS = 8 };

struct scene {
    struct mica_graph *graph;
    struct mica_log log;
    void *data[SCENE_TENSORS];
    uint32_t count;
};

#define DIMS(...)                                                               \
    sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (const int32_t[]) \
    {                                                                           \
        __VA_ARGS__                                                             \
    }

void scene_create(struct scene *scene);
void scene_destroy(struct scene *scene);

/* Adds a tensor with zeroed data of its own; `scale` 0: not quantized. Returns its index. */
int32_t scene_tensor(struct scene *scene, enum mica_type type, float scale, int32_t zero_point, uint32_t rank,
                     const int32_t *dims);
/* Adds a constant tensor that borrows `data`. */
int32_t scene_constant(struct scene *scene, enum mica_type type, uint32_t rank, const int32_t *dims, const void *data);

/* Adds the operation: inputs are all tensors but the last `outputs`. */
void scene_op(struct scene *scene, struct mica_op op, uint32_t outputs);

/* A 1x1-strided window that needs no padding. */
struct mica_window scene_window(int32_t kernel_x, int32_t kernel_y);

/* Runs; with the result, or failing the test if there is one. */
int scene_try(struct scene *scene, enum mica_arithmetic arithmetic, struct mica_threads *threads);
void scene_run(struct scene *scene, enum mica_arithmetic arithmetic);

/* Bytes that follow from the seed. */
void scene_noise(void *data, size_t size, uint32_t seed);

#endif
