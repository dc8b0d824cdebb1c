/* SPDX-License-Identifier: MIT */
/*
 * The interface of the vendor's driver of Zhouyi NPUs (/dev/aipu), as far as it is recorded. Numbers, offsets and
 * sizes are those of the vendor's kernel header (armchina_aipu.h), whose versions differ: which one a program was
 * built with shows in the size that its requests name. Not tried on hardware.
 */
#ifndef MICA_UAPI_AIPU_H
#define MICA_UAPI_AIPU_H

#include <stdint.h>
#include <sys/ioctl.h>

#define MICA_AIPU_TYPE 'A'

enum mica_aipu_request {
    MICA_AIPU_QUERY_CAP = 0,
    MICA_AIPU_REQ_BUF = 2,
    MICA_AIPU_FREE_BUF = 3,
    MICA_AIPU_SCHEDULE_JOB = 6,
    MICA_AIPU_QUERY_STATUS = 7,
};

/* A buffer's description begins like this in every version. */
struct mica_aipu_buffer {
    uint64_t address, offset, bytes; /* offset: for mmap() */
};

/* Where the description stands in a request for a buffer: of 40 bytes in the first version, of 64 since then. */
#define MICA_AIPU_FIRST_REQ_BUF_SIZE 40u
#define MICA_AIPU_FIRST_BUFFER_AT 16u
#define MICA_AIPU_REQ_BUF_SIZE 64u
#define MICA_AIPU_BUFFER_AT 24u

struct mica_aipu_query_status {
    uint32_t most, of_this_thread;
    uint64_t status; /* array, to be filled in */
    uint32_t count, pad;
};

_Static_assert(sizeof(struct mica_aipu_query_status) == 24, "as the vendor's kernel header has it");

#endif
