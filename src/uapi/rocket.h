/* SPDX-License-Identifier: MIT */
/* The kernel interface of rocket, the driver of Rockchip's NPU (specification of the kernel interfaces, section 2). */
#ifndef MICA_UAPI_ROCKET_H
#define MICA_UAPI_ROCKET_H

#include "uapi/drm.h"

struct mica_rocket_create_bo {
    uint32_t size, handle;
    uint64_t dma_address; /* device's, chosen by the kernel; 0 is one */
    uint64_t offset;      /* for mmap() */
};

struct mica_rocket_task {
    uint32_t regcmd;       /* device address of the register program */
    uint32_t regcmd_count; /* its 64-bit words */
};

struct mica_rocket_job {
    uint64_t tasks;
    uint64_t in_handles, out_handles; /* arrays of uint32_t */
    uint32_t task_count, task_struct_size;
    uint32_t in_count, out_count;
};

struct mica_rocket_submit {
    uint64_t jobs;
    uint32_t job_count, job_struct_size;
    uint64_t reserved;
};

struct mica_rocket_prep_bo {
    uint32_t handle, reserved;
    int64_t timeout_ns; /* absolute, CLOCK_MONOTONIC */
};

struct mica_rocket_fini_bo {
    uint32_t handle, reserved;
};

#define MICA_ROCKET_CREATE_BO _IOWR(MICA_DRM_TYPE, MICA_DRM_COMMAND_BASE + 0, struct mica_rocket_create_bo)
#define MICA_ROCKET_SUBMIT _IOW(MICA_DRM_TYPE, MICA_DRM_COMMAND_BASE + 1, struct mica_rocket_submit)
#define MICA_ROCKET_PREP_BO _IOW(MICA_DRM_TYPE, MICA_DRM_COMMAND_BASE + 2, struct mica_rocket_prep_bo)
#define MICA_ROCKET_FINI_BO _IOW(MICA_DRM_TYPE, MICA_DRM_COMMAND_BASE + 3, struct mica_rocket_fini_bo)

_Static_assert(MICA_ROCKET_CREATE_BO == 0xc0186440 && MICA_ROCKET_SUBMIT == 0x40186441 &&
                   MICA_ROCKET_PREP_BO == 0x40106442 && MICA_ROCKET_FINI_BO == 0x40086443,
               "numbers of the kernel's");
_Static_assert(sizeof(struct mica_rocket_job) == 40 && sizeof(struct mica_rocket_task) == 8, "sizes of the kernel's");

#endif
