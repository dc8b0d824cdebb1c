/* SPDX-License-Identifier: MIT */
/*
 * A convolution on a bench of its own: memory, a task of random shape, weights
 * in the order that the specification says, an output stage that only records,
 * and a loop that computes one value after the other as sections 4, 5 and 8
 * have it. Defines what else of the simulator rk_conv_run() needs.
 */
#ifndef TESTS_ROCKCHIP_SIM_CONV_SCENE_H
#define TESTS_ROCKCHIP_SIM_CONV_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "npu/rockchip/sim/conv.h"

#define FEATURES 0x00100000u
#define WEIGHTS 0x00800000u
#define MAPPED 0x00400000u /* bytes of either */
#define NOTHING 0x5a5a5a5a

/* Both generations, as far as convolutions look at them. */
#define SCENE_CHIPS 2u
extern const struct rk_chip scene_chips[SCENE_CHIPS];

/* Allocations until the one that fails; negative: none does. */
extern long scene_countdown;

/* Records what it is given. */
struct rk_dpu {
    uint32_t pixels, channels;
    bool depthwise;
    int32_t *acc, *sum; /* [pixel][channel] */
    atomic_uint *seen;  /* [pixel][channel]: how often */
};

struct random {
    uint64_t state;
};

struct scene {
    struct rk_sim *sim;
    struct mica_device_memory memory;
    struct mica_log log;
    struct rk_conv conv;
    struct rk_dpu dpu;
    int8_t *logical; /* weights [kernel, or channel of depthwise][tap][lane] */
};

enum mode { DIRECT, DEPTHWISE, PACKED, TRANSPOSED, MODES };

void open_scene(struct scene *scene, const struct rk_chip *chip, struct mica_threads *threads);
void close_scene(struct scene *scene);

/* A shape, bytes in memory for it, and weights. */
void choose_task(struct scene *scene, enum mode mode, struct random *random);
/* Other weights for the same shape. */
void change_weights(struct scene *scene, struct random *random);
/* The test's own copy of one weight. */
int8_t *logical_weight(const struct scene *scene, uint32_t kernel, uint32_t tap, uint32_t lane);

/* Forgets what was recorded. */
void prepare_record(struct scene *scene);
/* Runs the task in every version of the kernels, and compares. */
void run_all_versions(struct scene *scene);

#endif
