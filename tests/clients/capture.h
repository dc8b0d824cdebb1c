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
    uint32_t *stream; /* etnaviv: the command stream; rocket: the tasks of all jobs, two words each */
    size_t words, bo_count;
    struct capture_bo *bos;
    size_t job_count; /* kernel jobs, each run by itself; etnaviv: 1 */
    size_t *job_ends; /* word behind each job's last */
};

/* How the device has the bytes of a tensor; block 0: as the host has them. See struct mica_program_layout. */
struct capture_layout {
    size_t block, channels, surface;
};

struct capture {
    char chip[32], driver[32];
    size_t submit_count;
    struct capture_submit *submits;
    uint8_t *expected; /* output 0 as the CPU computes it; NULL: not recorded */
    size_t expected_size;
    bool expected_signed; /* the device has it with the sign bit flipped: int8 on etnaviv, uint8 on rocket */
    struct capture_layout layout;
    bool output_known;   /* run.json says where output 0 is: Mica's captures */
    bool not_comparable; /* a capture of Mica's in which the CPU makes output 0 */
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

/* The stream of one of a submission's jobs; *words gets its length. */
const uint32_t *capture_job(const struct capture_submit *submit, size_t job, size_t *words);

/* Where byte `index` of output 0 is, from its first one. */
size_t capture_output_offset(const struct capture *capture, size_t index);
/* Bytes from its first to its last. */
size_t capture_output_extent(const struct capture *capture);

/*
 * Where the first byte of output 0 is: what run.json says, or else where the last job of the last submission writes;
 * of several TP jobs at its end, which share an operation, the lowest address. False when no job is found.
 * The second one is for captures of rocket, whose jobs are of another family (capture_rocket.c).
 */
bool capture_output_address(const struct capture *capture, const struct mica_device_memory *memory, uint32_t *address);
bool capture_rocket_output_address(const struct capture *capture, const struct mica_device_memory *memory,
                                   uint32_t *address);

#endif
