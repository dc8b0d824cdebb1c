/* SPDX-License-Identifier: MIT */
/* A recording as its jobs, each with the fields that it was started with, under names that stay the same from one
 * recording to another: addresses are a buffer's number and an offset. */
#ifndef MICA_ANALYSIS_JOBS_H
#define MICA_ANALYSIS_JOBS_H

#include "analysis/decoding.h"

struct mica_job_field {
    const char *path; /* "GL.NN_CONFIG", "NN.KERNEL_X_SIZE", "CNA.CONV_CON1.CONV_MODE", "coefficients.bytes" */
    uint32_t repeat;  /* 0; of a path that was there before in the job, 1 and on */
    uint32_t order;   /* in the job */
    uint64_t value;   /* of an address, its offset in the buffer */
    const char *text, *meaning;
    bool is_signed, is_address, unknown, idle;
    uint32_t buffer; /* of an address: numbered from 1, in the order in which jobs name them */
    uint32_t extra;  /* bits below an address that are something else: a job's number */
};

struct mica_submitted_job {
    size_t submit;
    char unit[8]; /* "NN", "TP", "task", or "other": states that start nothing */
    size_t first, count;
};

struct mica_jobs {
    struct mica_decoding strings;
    struct mica_submitted_job *jobs;
    size_t job_count;
    struct mica_job_field *fields; /* of a job: by path, then repeat */
    size_t field_count, field_capacity;
    size_t unknown;
    bool full;
};

/* 0 or a negative errno, said. Release it in both cases. `weights`: each kernel's bias and weights are fields too. */
int mica_jobs_load(const struct mica_recording *recording, const struct mica_chip *chip, bool weights,
                   struct mica_log *log, struct mica_jobs *jobs);
void mica_jobs_release(struct mica_jobs *jobs);

/* By path, then repeat. */
int mica_job_field_compare(const struct mica_job_field *a, const struct mica_job_field *b);

/* Do they say the same? */
bool mica_job_field_same(const struct mica_job_field *a, const struct mica_job_field *b);

/* "0x10 (16)", "-3", "buffer 2 + 0x40", or the text that says it. As snprintf(). */
void mica_job_field_print(const struct mica_job_field *field, char *text, size_t size);

/* ---- addresses (places.c) --------------------------------------------------------- */

/* A recording's buffers by number, in the order in which they are asked for. */
struct mica_places {
    struct mica_place {
        uint64_t address, size;
        uint32_t handle;
    } * list;
    size_t count;
    bool failed;
};

/* The buffer of a submission that has `address`: its number, 0: none. */
uint32_t mica_place_find(struct mica_places *places, const struct mica_recorded_submit *submit, uint64_t address,
                         uint64_t *offset);
void mica_places_release(struct mica_places *places);

/* Is a field of that path an address? Then *address gets the byte it names, *extra the bits of it that mean more. */
bool mica_field_address(const char *path, uint64_t value, const struct mica_chip *chip, uint64_t *address,
                        uint32_t *extra);

/* The path of a field from the group that has it, as `kind` and `title`. */
void mica_field_path(const char *kind, const char *title, const char *field, char *path, size_t size);

#endif
