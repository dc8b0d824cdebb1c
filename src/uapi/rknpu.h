/* SPDX-License-Identifier: MIT */
/*
 * The interface of the vendor's driver of Rockchip's NPU, as far as it is recorded. Numbers, offsets and sizes are
 * those of the vendor's kernel header (rknpu_ioctl.h, versions 0.8 to 0.9.8); versions differ in what follows the
 * members named here. Through /dev/dri the requests are DRM's, through /dev/rknpu they have a type of their own and
 * a buffer's handle is a dma-buf. Not tried on hardware.
 */
#ifndef MICA_UAPI_RKNPU_H
#define MICA_UAPI_RKNPU_H

#include "uapi/drm.h"

#define MICA_RKNPU_TYPE 'r'

enum mica_rknpu_request {
    MICA_RKNPU_ACTION,
    MICA_RKNPU_SUBMIT,
    MICA_RKNPU_MEM_CREATE,
    MICA_RKNPU_MEM_MAP,
    MICA_RKNPU_MEM_DESTROY,
    MICA_RKNPU_MEM_SYNC,
};

struct mica_rknpu_mem_create {
    uint32_t handle, flags;
    uint64_t size, object, dma_address;
};

struct mica_rknpu_mem_map {
    uint32_t handle, reserved;
    uint64_t offset;
};

struct mica_rknpu_mem_destroy {
    uint32_t handle, reserved;
    uint64_t object;
};

#define MICA_RKNPU_SYNC_FROM_DEVICE 2u

struct mica_rknpu_mem_sync {
    uint32_t flags, reserved;
    uint64_t object, offset, size;
};

/* In a buffer, not in an array of the program. */
struct mica_rknpu_task {
    uint32_t flags, op_index, enable_mask;
    uint32_t interrupt_mask, interrupt_clear, interrupt_status;
    uint32_t regcfg_amount, regcfg_offset;
    uint32_t regcmd[2]; /* a 64-bit address, the structure being packed */
};

#define MICA_RKNPU_TAIL_COMMANDS 4u /* the amount of a task leaves these out */

#define MICA_RKNPU_JOB_NONBLOCK 2u

struct mica_rknpu_subcore_task {
    uint32_t start, count;
};

struct mica_rknpu_submit {
    uint32_t flags, timeout, task_start, task_number, task_counter;
    int32_t priority;
    uint64_t task_object;
    uint64_t varies; /* IOMMU domain, or an object of register configurations */
    uint64_t task_base, elapsed;
    uint32_t core_mask;
    int32_t fence_fd;
    struct mica_rknpu_subcore_task subcores[5];
};

_Static_assert(sizeof(struct mica_rknpu_task) == 40 && sizeof(struct mica_rknpu_submit) == 104 &&
                   sizeof(struct mica_rknpu_mem_create) == 32 && sizeof(struct mica_rknpu_mem_sync) == 32,
               "as the vendor's kernel header has them");

#endif
