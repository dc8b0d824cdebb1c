/* SPDX-License-Identifier: MIT */
/* The kernel interface of etnaviv, the driver of Vivante's cores (specification of the kernel interfaces, section 1).
 */
#ifndef MICA_UAPI_ETNAVIV_H
#define MICA_UAPI_ETNAVIV_H

#include "uapi/drm.h"

#define MICA_ETNAVIV_PIPES 4u

enum mica_etnaviv_parameter {
    MICA_ETNAVIV_MODEL = 0x01,
    MICA_ETNAVIV_REVISION = 0x02,
    MICA_ETNAVIV_FEATURES_0 = 0x03, /* to 0x0f */
    MICA_ETNAVIV_SOFTPIN_START = 0x1b,
    MICA_ETNAVIV_PRODUCT = 0x1c,
    MICA_ETNAVIV_CUSTOMER = 0x1d,
    MICA_ETNAVIV_ECO = 0x1e,
};

struct mica_etnaviv_param {
    uint32_t pipe, param;
    uint64_t value;
};

#define MICA_ETNAVIV_BO_CACHED 0x10000u
#define MICA_ETNAVIV_BO_WRITE_COMBINED 0x20000u
#define MICA_ETNAVIV_BO_UNCACHED 0x40000u
#define MICA_ETNAVIV_BO_FORCE_MMU 0x100000u

struct mica_etnaviv_gem_new {
    uint64_t size;
    uint32_t flags, handle;
};

struct mica_etnaviv_gem_info {
    uint32_t handle, pad;
    uint64_t offset;
};

struct mica_etnaviv_time { /* absolute, CLOCK_MONOTONIC */
    int64_t seconds, nanoseconds;
};

#define MICA_ETNAVIV_PREP_READ 1u
#define MICA_ETNAVIV_PREP_WRITE 2u
#define MICA_ETNAVIV_PREP_NOSYNC 4u

struct mica_etnaviv_cpu_prep {
    uint32_t handle, op;
    struct mica_etnaviv_time timeout;
};

struct mica_etnaviv_cpu_fini {
    uint32_t handle, flags;
};

#define MICA_ETNAVIV_USE_READ 1u
#define MICA_ETNAVIV_USE_WRITE 2u

struct mica_etnaviv_bo {
    uint32_t flags, handle;
    uint64_t address; /* with soft pinning */
};

struct mica_etnaviv_reloc {
    uint32_t offset, bo;
    uint64_t addend;
    uint32_t flags, pad;
};

#define MICA_ETNAVIV_SUBMIT_NO_IMPLICIT 1u
#define MICA_ETNAVIV_SUBMIT_FENCE_IN 2u
#define MICA_ETNAVIV_SUBMIT_FENCE_OUT 4u
#define MICA_ETNAVIV_SUBMIT_SOFTPIN 8u

struct mica_etnaviv_submit {
    uint32_t fence, pipe, exec_state;
    uint32_t nr_bos, nr_relocs, stream_size;
    uint64_t bos, relocs, stream;
    uint32_t flags;
    int32_t fence_fd;
    uint64_t pmrs;
    uint32_t nr_pmrs, pad;
};

#define MICA_ETNAVIV_WAIT_NONBLOCK 1u

struct mica_etnaviv_wait_fence {
    uint32_t pipe, fence, flags, pad;
    struct mica_etnaviv_time timeout;
};

struct mica_etnaviv_gem_userptr {
    uint64_t pointer, size;
    uint32_t flags, handle;
};

struct mica_etnaviv_gem_wait {
    uint32_t pipe, handle, flags, pad;
    struct mica_etnaviv_time timeout;
};

struct mica_etnaviv_pm_domain {
    uint32_t pipe;
    uint8_t iter, id;
    uint16_t nr_signals;
    char name[64];
};

struct mica_etnaviv_pm_signal {
    uint32_t pipe;
    uint8_t domain, pad;
    uint16_t iter, id;
    char name[64];
};

#define MICA_ETNAVIV_IOCTL(direction, number, type) direction(MICA_DRM_TYPE, MICA_DRM_COMMAND_BASE + (number), type)
#define MICA_ETNAVIV_GET_PARAM MICA_ETNAVIV_IOCTL(_IOWR, 0x0, struct mica_etnaviv_param)
#define MICA_ETNAVIV_GEM_NEW MICA_ETNAVIV_IOCTL(_IOWR, 0x2, struct mica_etnaviv_gem_new)
#define MICA_ETNAVIV_GEM_INFO MICA_ETNAVIV_IOCTL(_IOWR, 0x3, struct mica_etnaviv_gem_info)
#define MICA_ETNAVIV_GEM_CPU_PREP MICA_ETNAVIV_IOCTL(_IOW, 0x4, struct mica_etnaviv_cpu_prep)
#define MICA_ETNAVIV_GEM_CPU_FINI MICA_ETNAVIV_IOCTL(_IOW, 0x5, struct mica_etnaviv_cpu_fini)
#define MICA_ETNAVIV_GEM_SUBMIT MICA_ETNAVIV_IOCTL(_IOWR, 0x6, struct mica_etnaviv_submit)
#define MICA_ETNAVIV_WAIT_FENCE MICA_ETNAVIV_IOCTL(_IOW, 0x7, struct mica_etnaviv_wait_fence)
#define MICA_ETNAVIV_GEM_USERPTR MICA_ETNAVIV_IOCTL(_IOWR, 0x8, struct mica_etnaviv_gem_userptr)
#define MICA_ETNAVIV_GEM_WAIT MICA_ETNAVIV_IOCTL(_IOW, 0x9, struct mica_etnaviv_gem_wait)
#define MICA_ETNAVIV_PM_QUERY_DOM MICA_ETNAVIV_IOCTL(_IOWR, 0xa, struct mica_etnaviv_pm_domain)
#define MICA_ETNAVIV_PM_QUERY_SIG MICA_ETNAVIV_IOCTL(_IOWR, 0xb, struct mica_etnaviv_pm_signal)

_Static_assert(MICA_ETNAVIV_GET_PARAM == 0xc0106440 && MICA_ETNAVIV_GEM_NEW == 0xc0106442 &&
                   MICA_ETNAVIV_GEM_INFO == 0xc0106443 && MICA_ETNAVIV_GEM_CPU_PREP == 0x40186444 &&
                   MICA_ETNAVIV_GEM_CPU_FINI == 0x40086445 && MICA_ETNAVIV_GEM_SUBMIT == 0xc0486446 &&
                   MICA_ETNAVIV_WAIT_FENCE == 0x40206447 && MICA_ETNAVIV_GEM_USERPTR == 0xc0186448 &&
                   MICA_ETNAVIV_GEM_WAIT == 0x40206449 && MICA_ETNAVIV_PM_QUERY_DOM == 0xc048644a &&
                   MICA_ETNAVIV_PM_QUERY_SIG == 0xc04c644b,
               "numbers of the kernel's");
_Static_assert(sizeof(struct mica_etnaviv_bo) == 16 && sizeof(struct mica_etnaviv_reloc) == 24,
               "sizes of the kernel's");

#endif
