/* SPDX-License-Identifier: MIT */
/* Register programs of the tests' own: small tasks of every kind, for either chip, to run and to damage. */
#ifndef TESTS_ROCKCHIP_SIM_PROGRAMS_H
#define TESTS_ROCKCHIP_SIM_PROGRAMS_H

#include "npu/rockchip/hw/registers.h"
#include "support.h"

struct shape {
    uint32_t width, rows, channels;
    uint32_t out_width, out_rows, out_channels;
    uint32_t kernel_w, kernel_h, stride_x, stride_y, dilation_x, dilation_y, left, top;
    bool depthwise;
};

extern const struct shape small_shape; /* 3x3 with padding, 16 channels to 40, and a row beyond */

/* How large the output is when windows cover the padded image and no more. */
void shape_fit(struct shape *shape);

struct task {
    const struct mica_chip *chip;
    struct rk_registers registers;
    enum rk_program_kind kind;
    uint32_t start;
};

/* Everything in the rooms of support.h; per-channel coefficients. */
void make_convolution(struct task *task, const struct mica_chip *chip, const struct shape *shape);
/* a + b of out_channels channels. */
void make_elementwise(struct task *task, const struct mica_chip *chip, const struct shape *shape);
/* Max. */
void make_pool(struct task *task, const struct mica_chip *chip, const struct shape *shape);

void set_field(struct task *task, enum rk_field_id field, uint32_t value);
uint32_t get_field(const struct task *task, enum rk_field_id field);
/* What a field of bytes (strides) counts is set in bytes. */
void set_bytes(struct task *task, enum rk_field_id field, uint32_t bytes);

/* Appends the program. */
void append_task(struct vector_program *program, const struct task *task);
/* Runs the task alone. */
int run_task(struct bench *bench, const struct task *task, struct mica_job_report *report);

/* Rooms with random bytes in all but the output and the programs. */
void fill_rooms(struct bench *bench, struct random *random);

#endif
