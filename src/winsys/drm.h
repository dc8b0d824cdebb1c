/* SPDX-License-Identifier: MIT */
/* What the winsys of all kernel drivers share: calls, clocks, fences. */
#ifndef MICA_WINSYS_DRM_H
#define MICA_WINSYS_DRM_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

#include "util/log.h"

/* ioctl() until no signal interrupts it; 0 or a negative errno. */
int mica_drm_call(int fd, unsigned long request, void *argument);

/* Opens a node whose driver has that name. -ENODEV: it is another driver's, or no DRM node. */
int mica_drm_open(const char *path, const char *driver, struct mica_log *log, int *fd);

/* CLOCK_MONOTONIC, `timeout_ns` from now, never overflowing. */
int64_t mica_drm_deadline(int64_t timeout_ns);

/*
 * Waits for a sync_file: 0 when its work is done, -ETIMEDOUT, -EIO when the kernel killed it. The descriptor stays
 * open.
 */
int mica_drm_wait_sync(int sync, int64_t timeout_ns);

void mica_drm_close_handle(int fd, uint32_t handle);
/* The buffer behind a dma-buf, and its size. */
int mica_drm_import(int fd, int dmabuf, uint32_t *handle, uint64_t *size);

/* ---- fences of submissions, by number; threads may share them ---------------- */

/* Fences that can be waited for at the same time. */
#define MICA_DRM_KEPT_FENCES 64u

struct mica_drm_fences {
    pthread_mutex_t lock;
    uint64_t last;
    struct {
        uint64_t number;
        int sync;        /* sync_file; negative: the kernel gave none */
        uint32_t handle; /* of a buffer that the work writes */
    } kept[MICA_DRM_KEPT_FENCES];
};

void mica_drm_fences_init(struct mica_drm_fences *fences);
/* Waits for all that are left, together at most `timeout_ns`. */
void mica_drm_fences_finish(struct mica_drm_fences *fences, int64_t timeout_ns);
/* Takes `sync` over; the new fence's number, never 0. */
uint64_t mica_drm_fences_add(struct mica_drm_fences *fences, int sync, uint32_t handle);
/* A descriptor of its own of the fence's sync_file (negative: none) and its buffer. -EINVAL: unknown or too
 * old; another error: no descriptor is left. */
int mica_drm_fences_get(struct mica_drm_fences *fences, uint64_t number, int *sync, uint32_t *handle);

#endif
