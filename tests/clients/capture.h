/* SPDX-License-Identifier: MIT */
/* Reads folders in the capture format: what a driver submitted for one model, and what the CPU makes of it. */
#ifndef TESTS_CLIENTS_CAPTURE_H
#define TESTS_CLIENTS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "npu/device_memory.h"

struct capture_bo {
    uint64_t address, size;
    unsigned access;
    uint8_t *contents; /* before the submission; NULL: zeros */
    size_t contents_size;
};

struct capture_submit {
    uint32_t *stream;
    size_t words, bo_count;
    struct capture_bo *bos;
};

struct capture {
    char chip[32];
    size_t submit_count;
    struct capture_submit *submits;
    uint8_t *expected; /* output 0 as the CPU computes it; NULL: not recorded */
    size_t expected_size;
    bool expected_signed; /* int8, which the device has as uint8 */
    bool output_known;    /* run.json says where output 0 is: Mica's captures */
    bool not_comparable;  /* a capture of Mica's in which the CPU makes output 0 */
    uint32_t output_address;
};

/* 0, or -1 with a message in `error`. Release it in both cases. */
int capture_load(const char *folder, struct capture *capture, char *error, size_t size);
void capture_release(struct capture *capture);

/*
 * Maps a submission's buffers with their contents and access bits; buffers of
 * earlier submissions are closed, and what the device wrote stays.
 */
int capture_map(const struct capture *capture, size_t submit, struct mica_device_memory *memory);

/*
 * Where the first byte of output 0 is: what run.json says, or else where the last job of the last submission writes;
 * of several TP jobs at its end, which share an operation, the lowest address. False when no job is found.
 */
bool capture_output_address(const struct capture *capture, const struct mica_device_memory *memory, uint32_t *address);

#endif
