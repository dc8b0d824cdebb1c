/* SPDX-License-Identifier: MIT */
/*
 * A capture folder in memory: what a driver submitted for one model, what the device left, and what the CPU makes of
 * it. Everything in the folder is untrusted; keys that aren't known are passed over.
 */
#ifndef MICA_ANALYSIS_CAPTURE_H
#define MICA_ANALYSIS_CAPTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "analysis/files.h"
#include "npu/device_memory.h"

/* What becomes of a buffer's memory when its submission's turn comes. */
enum mica_recorded_state {
    MICA_RECORDED_FRESH,   /* mapped: zeros, then the contents */
    MICA_RECORDED_UPDATED, /* gets the recorded contents again */
    MICA_RECORDED_KEPT,    /* what the device wrote stays */
    MICA_RECORDED_MERGED,  /* likewise, but for bytes that the host changed since the device was seen */
};

/* Bytes belong to the recording. */
struct mica_recorded_bo {
    uint64_t address, size; /* whole pages */
    uint32_t handle;
    unsigned access;
    const uint8_t *contents; /* before the submission; NULL: zeros */
    const uint8_t *after;    /* once it was done; NULL: not recorded */
    size_t contents_size, after_size;
    enum mica_recorded_state state;
    const struct mica_recorded_bo *seen; /* MERGED: whose `after` the device's bytes were seen in */
};

struct mica_recorded_submit {
    uint32_t *stream; /* etnaviv: the command stream; rocket: the tasks of all jobs, two words each */
    size_t words, bo_count;
    struct mica_recorded_bo *bos;
    size_t job_count;            /* kernel jobs, each run by itself; etnaviv: 1 */
    size_t *job_ends;            /* word behind each job's last */
    uint64_t start_ns, after_ns; /* 0: not recorded */
};

/* How the device has the bytes of a tensor; block 0: as the host has them. See struct mica_program_layout. */
struct mica_recorded_layout {
    size_t block, channels, surface;
};

/* An output that the CPU's result is recorded of. */
struct mica_recorded_output {
    uint32_t index;
    const uint8_t *expected; /* of the recording; NULL: not recorded */
    size_t size;
    bool flipped; /* the device has it with the sign bit flipped: int8 on etnaviv, uint8 on rocket */
    struct mica_recorded_layout layout;
    bool known;          /* run.json says where it is: Mica's captures */
    bool not_comparable; /* a capture of Mica's in which the CPU makes it */
    uint32_t address;
};

struct mica_recording {
    struct mica_folder folder;
    char chip[32], driver[32];
    size_t first_submit; /* the number of submits[0]; not 0 when one alone was loaded */
    size_t submit_count;
    struct mica_recorded_submit *submits;
    size_t output_count;
    struct mica_recorded_output *outputs; /* there is always one, which may have nothing recorded */
};

/* A folder of submissions, or one submit_NNNN of it. 0 or a negative errno, said. Release it in both cases. */
int mica_recording_load(const char *path, struct mica_log *log, struct mica_recording *recording);
void mica_recording_release(struct mica_recording *recording);

bool mica_recording_is_rocket(const struct mica_recording *recording);

/*
 * Maps a submission's buffers with their contents and access bits; buffers of earlier submissions are closed, and
 * what the device wrote stays. Submissions are mapped in order, from the first.
 */
int mica_recording_map(const struct mica_recording *recording, size_t submit, struct mica_device_memory *memory);

/* The stream of one of a submission's jobs; *words gets its length. */
const uint32_t *mica_recording_job(const struct mica_recorded_submit *submit, size_t job, size_t *words);

/* Where byte `index` of an output is, from its first one. */
size_t mica_recorded_offset(const struct mica_recorded_output *output, size_t index);
/* Bytes from its first to its last. */
size_t mica_recorded_extent(const struct mica_recorded_output *output);

/*
 * Where the first byte of an output is: what run.json says, or else, of output 0, where the last job of the last
 * submission writes; of several TP jobs or tasks at its end, which share an operation, the lowest address. False
 * when no job is found.
 */
bool mica_recording_locate(const struct mica_recording *recording, const struct mica_recorded_output *output,
                           const struct mica_device_memory *memory, uint32_t *address);

/* ---- inside the room ---------------------------------------------------------------- */

struct json_t;

/* capture_submit.c: the folder's submission `number`. */
int mica_recording_read_submit(struct mica_recording *recording, size_t number, struct mica_recorded_submit *submit);
/* capture_output.c: what run.json and cpu_N.bin say. */
int mica_recording_read_outputs(struct mica_recording *recording);
/* capture_memory.c: every buffer's state. */
int mica_recording_plan(struct mica_recording *recording);

/* A JSON file of the folder; NULL: said, *error tells. */
struct json_t *mica_recording_json(struct mica_recording *recording, const char *directory, const char *name,
                                   int *error);
const char *mica_json_text(const struct json_t *object, const char *key);
uint64_t mica_json_number(const struct json_t *object, const char *key);
/* A number written as one or as text in hexadecimal; false: neither. */
bool mica_json_address(const struct json_t *object, const char *key, uint64_t *value);

#endif
