/* SPDX-License-Identifier: MIT */
/*
 * Tasks of the DPU alone (specification, section 9): it reads one or two cubes, takes each element
 * through its stages and writes a cube. What crosses elementwise.c, table.c and the moving operations.
 */
#ifndef MICA_ROCKCHIP_COMPILE_DPU_TASK_H
#define MICA_ROCKCHIP_COMPILE_DPU_TASK_H

#include "npu/rockchip/compile/builder.h"
#include "npu/rockchip/compile/plan.h"

/* 13-bit sizes less one; "stay below 8191" (specification, section 19). */
#define RK_MAX_CUBE 8190u

/* A real factor below 2^15 as scale / 2^shift (specification, section 8). */
struct rk_scale {
    int32_t scale;
    uint32_t shift;
};

#define RK_LARGEST_SCALE 32767.0
struct rk_scale rk_scale_of(double factor);
double rk_scale_value(struct rk_scale scale);
/* value * scale / 2^shift, ties to even: what every stage of the DPU computes. */
int64_t rk_scale_apply(int64_t value, struct rk_scale scale);

/* What happens to the second cube's value. */
enum rk_dpu_combine {
    RK_DPU_NOTHING, /* there is none */
    RK_DPU_ALU_MAX,
    RK_DPU_ALU_MIN,
    RK_DPU_ALU_ADD,
    RK_DPU_MULTIPLY,
};

/* v = (a + a_offset) * a_scale, combined with (b + b_offset) * b_scale; out = v * out_scale + out_offset. */
struct rk_dpu_stages {
    int32_t a_offset, b_offset, out_offset;
    struct rk_scale a_scale, b_scale, out_scale; /* a_scale.scale 0: not multiplied */
    enum rk_dpu_combine combine;
    bool relu;        /* v >= 0 behind the combination, if any */
    int32_t relu_max; /* v <= this too; 0: no such bound */
    bool table;       /* v is looked up: index = v * 64 + 16 */
};

/* Of rk_dpu_stages.relu_max: none. */
#define RK_NO_RELU_MAX 0

struct rk_dpu_task {
    uint32_t op;
    const char *unit;
    struct rk_cube a, b, out; /* as many pixels and surfaces in each; rows stand without gaps */
    struct rk_dpu_stages stages;
};

/* Stages that change nothing. */
struct rk_dpu_stages rk_dpu_copy(void);

/*
 * Has the stages clamp to [min, max] if they can do so exactly: below at the zero point, above at a value that the
 * output stage makes exactly `max` of. What lies at the ends of the type saturation does.
 */
bool rk_dpu_clamp(struct rk_dpu_stages *stages, int32_t min, int32_t max);

/* Registers of a task over `w` x `h` pixels of a cube with `channels` channels; false: a field is too small. */
bool rk_dpu_registers(struct rk_registers *registers, const struct rk_chip *chip, const struct rk_dpu_task *task,
                      uint32_t w, uint32_t h, uint32_t channels);

/* The third stage: combination, table, clamp; all of it off for stages that have none. */
void rk_dpu_put_third_stage(struct rk_builder *to, const struct rk_dpu_stages *stages);
/* How the second cube is read and converted, but for where it is. */
void rk_dpu_put_operand(struct rk_builder *to, const struct rk_dpu_stages *stages);

/* Appends as few tasks as the fields allow. */
int rk_dpu_lower(struct rk_plan *plan, const struct rk_dpu_task *task);

/* ---- elementwise.c ---------------------------------------------------------- */

/* NULL, or why a combination can't be computed within 1 of the reference: a sentence. Looks at kind and quantization.
 */
const char *rk_elementwise_problem(const struct rk_elementwise *elementwise);

/* What the unit makes of two stored values by ADD or SUB without a clamp. */
int32_t rk_elementwise_sum(const struct rk_elementwise *elementwise, int32_t a, int32_t b);

/* One task: the same values at another place; with another quantization, each within 1. */
int rk_lower_copy(struct rk_plan *plan, uint32_t op, struct rk_cube in, struct rk_cube out);
int rk_lower_requantize(struct rk_plan *plan, uint32_t op, struct rk_cube in, int32_t in_zero, struct rk_cube out,
                        int32_t out_zero, double factor);
/* Can rk_lower_requantize() have this factor? */
bool rk_requantize_possible(double factor);

#endif
