/* SPDX-License-Identifier: MIT */
/*
 * The contract of a kernel interface (or of a simulated device): memory the
 * device can see, submission, waiting. Everything above this line knows
 * neither ioctls nor simulators.
 */
#ifndef MICA_WINSYS_WINSYS_H
#define MICA_WINSYS_WINSYS_H

#include "npu/npu.h"

/* A buffer object. */
struct mica_bo {
    uint32_t handle;  /* the kernel's, or a number */
    uint64_t address; /* in the device's address space, page aligned */
    size_t size;      /* multiple of the page size */
    uint8_t *map;     /* the host's view; NULL: it has none (on-chip memory) */
};

struct mica_bo_use {
    struct mica_bo *bo;
    unsigned access; /* enum mica_access bits of the device */
};

struct mica_submit {
    const uint32_t *stream;
    uint32_t words;
    const struct mica_bo_use *bos; /* every buffer the jobs reach, through whatever */
    uint32_t bo_count;
    /* Reports of the jobs, if the device can make them: filled until the wait returns. */
    struct mica_job_report *reports;
    size_t report_capacity;
    size_t *report_count; /* may be NULL; 0 where the device makes none */
};

struct mica_winsys {
    const struct mica_chip *chip;
    bool simulated;
    void (*destroy)(struct mica_winsys *winsys);
    /* A zeroed buffer of at least `size` bytes (> 0). */
    int (*bo_create)(struct mica_winsys *winsys, uint64_t size, struct mica_bo **bo);
    /*
     * On-chip memory at `address`, page aligned, inside one of the chip's windows: a buffer
     * only in name. Others may name the same range; their submissions overwrite it. NULL
     * where the kernel interface has no way.
     */
    int (*bo_create_on_chip)(struct mica_winsys *winsys, uint64_t address, uint64_t size, struct mica_bo **bo);
    /*
     * The memory behind a dma-buf or a memfd (sealed against shrinking), used in place: whole,
     * rounded up to pages. The descriptor may be closed afterwards. NULL where there is no way.
     */
    int (*bo_import)(struct mica_winsys *winsys, int fd, struct mica_bo **bo);
    void (*bo_destroy)(struct mica_winsys *winsys, struct mica_bo *bo); /* accepts NULL */
    /* Brackets around the host's accesses: waits for jobs, maintains caches. */
    int (*bo_begin_cpu)(struct mica_winsys *winsys, struct mica_bo *bo, unsigned access);
    void (*bo_end_cpu)(struct mica_winsys *winsys, struct mica_bo *bo);
    /* Starts a submission; *fence gets what wait() takes. */
    int (*submit)(struct mica_winsys *winsys, const struct mica_submit *submit, uint64_t *fence);
    /* Result of a submission: 0, -ETIMEDOUT, or why the device gave it up. */
    int (*wait)(struct mica_winsys *winsys, uint64_t fence, int64_t timeout_ns);
    /* The clock that a simulator's timing model counts at, of those the chip allows. NULL where there is no way. */
    int (*set_clock)(struct mica_winsys *winsys, double mhz);
};

/* A simulated device of `chip`, as the kernel interface of the chip's driver would have it. `threads` (may be NULL) and
 * `log` are borrowed. */
int mica_winsys_sim_create(const struct mica_chip *chip, struct mica_threads *threads, struct mica_log *log,
                           struct mica_winsys **winsys);

#endif
