/* SPDX-License-Identifier: MIT */
/*
 * What the kernel's DRM core takes from user space, as far as an NPU's driver needs it. Own declarations of the ABI:
 * not every system has the kernel's headers, and older ones know neither etnaviv's soft pinning nor rocket.
 */
#ifndef MICA_UAPI_DRM_H
#define MICA_UAPI_DRM_H

#include <stdint.h>
#include <sys/ioctl.h>

#define MICA_DRM_TYPE 'd'
#define MICA_DRM_COMMAND_BASE 0x40

struct mica_drm_version {
    int32_t major, minor, patch;
    uint64_t name_length, name; /* lengths are written back; pointers as numbers */
    uint64_t date_length, date;
    uint64_t description_length, description;
};

struct mica_drm_gem_close {
    uint32_t handle, pad;
};

struct mica_drm_prime {
    uint32_t handle, flags;
    int32_t fd;
};

#define MICA_DRM_VERSION _IOWR(MICA_DRM_TYPE, 0x00, struct mica_drm_version)
#define MICA_DRM_GEM_CLOSE _IOW(MICA_DRM_TYPE, 0x09, struct mica_drm_gem_close)
#define MICA_DRM_PRIME_HANDLE_TO_FD _IOWR(MICA_DRM_TYPE, 0x2d, struct mica_drm_prime)
#define MICA_DRM_PRIME_FD_TO_HANDLE _IOWR(MICA_DRM_TYPE, 0x2e, struct mica_drm_prime)

_Static_assert(sizeof(struct mica_drm_version) == 64, "as the kernel has it");
_Static_assert(sizeof(struct mica_drm_prime) == 12, "as the kernel has it");

#endif
