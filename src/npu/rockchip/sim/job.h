/* SPDX-License-Identifier: MIT */
/* One task as its registers describe it, while it is looked at and run. */
#ifndef MICA_ROCKCHIP_SIM_JOB_H
#define MICA_ROCKCHIP_SIM_JOB_H

#include "npu/rockchip/sim/internal.h"

struct rk_task {
    struct rk_sim *sim;
    const struct rk_registers *registers;
    enum rk_generation generation;
    uint32_t program; /* address of its register program: names it in messages */
    unsigned start;   /* enum rk_start bits */
    double dispatch_us;
    /* What it costs, filled in on the way. */
    uint64_t compute_cycles, read_bytes, write_bytes, coefficient_bytes;
};

/* A field of the task's registers, by the name behind RK_. */
#define RK_GET(task, field) rk_get((task)->registers, (task)->generation, RK_##field)
/* The same of registers that hold multiples of what their lowest bit stands for: bytes. */
#define RK_GET_BYTES(task, field) rk_task_bytes(task, RK_##field)

uint64_t rk_task_bytes(const struct rk_task *task, enum rk_field_id field);

/* -EIO with a message that has the field's name and value, and `why`. */
int rk_task_refuse(const struct rk_task *task, enum rk_field_id field, const char *why);
/* The same when the field isn't `expected`; else 0. `what` says what asks for that value. */
int rk_task_expect(const struct rk_task *task, enum rk_field_id field, uint64_t expected, const char *what);

/* Fields that must have one value, and why. */
struct rk_rule {
    enum rk_field_id field;
    uint32_t value;
    const char *why;
};
int rk_task_check(const struct rk_task *task, const struct rk_rule *rules, size_t count);
#define RK_CHECK(task, rules) rk_task_check(task, rules, sizeof(rules) / sizeof *(rules))

/* An address that must be a multiple of the chip's atom. */
int rk_task_aligned(const struct rk_task *task, enum rk_field_id field);

/* Takes the task's cycles from what the submission may use; -EIO when it would run into the kernel's timeout. */
int rk_task_spend(struct rk_task *task, struct mica_job_report *report);

/* Runs what the start word asks for. */
int rk_task_run(struct rk_task *task, struct mica_job_report *report);

/* ---- what a task consists of ---------------------------------------------- */

/* CNA and CORE (conv_job.c). */
int rk_conv_decode(struct rk_task *task, struct rk_conv *conv);
/* Remembers what the task leaves in the CBUF. */
void rk_conv_keep(struct rk_task *task, const struct rk_conv *conv);
/* DPU and DPU_RDMA (dpu_job.c): shape, stages, destination. */
int rk_dpu_decode(struct rk_task *task, struct rk_dpu *dpu);
/* Coefficients and operands of DPU_RDMA (rdma.c): the second half of rk_dpu_decode(). */
int rk_rdma_decode(struct rk_task *task, struct rk_dpu *dpu);
/* A task of DPU and DPU_RDMA alone (elementwise.c). */
void rk_elementwise_run(struct rk_sim *sim, const struct rk_dpu *dpu);
/* PPU and PPU_RDMA (ppu.c). */
int rk_pool_task(struct rk_task *task, struct mica_job_report *report);

#endif
