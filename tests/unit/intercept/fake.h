/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTERCEPT_FAKE_H
#define TESTS_INTERCEPT_FAKE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>
#include <unistd.h>

#define FAKE_TURNED 64 /* bytes that a job changes at the start of each buffer that it writes ... */
#define FAKE_TURN 0x5a /* ... by turning these bits */

static inline bool fake_readable(uint64_t pointer, uint64_t size)
{
    uint8_t bytes[4096];
    for (uint64_t at = 0; at < size; at += sizeof bytes) {
        uint64_t part = size - at < sizeof bytes ? size - at : sizeof bytes;
        struct iovec here = {bytes, part}, there = {(void *)(uintptr_t)(pointer + at), part};
        if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != (ssize_t)part)
            return false;
    }
    return true;
}

#endif
