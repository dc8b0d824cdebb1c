/* SPDX-License-Identifier: MIT */
/* What the open driver submitted for RK3588: tasks and buffers of every submission that was recorded. */
#ifndef TESTS_ROCKCHIP_HW_CAPTURES_H
#define TESTS_ROCKCHIP_HW_CAPTURES_H

#include <stddef.h>
#include <stdint.h>

struct rk_bo {
    uint64_t address, size;
    uint8_t *data; /* `size` bytes; NULL: zeros */
};

struct rk_submit {
    char name[128];
    uint32_t *tasks; /* address and words of each, of all jobs in order */
    size_t task_count, bo_count;
    struct rk_bo *bos;
};

struct rk_captures {
    struct rk_submit *list;
    size_t count;
};

/* Ends the process with 77 where captures aren't on this machine. */
struct rk_captures rk_captures_load(void);
void rk_captures_release(struct rk_captures *captures);

#endif
