/* SPDX-License-Identifier: MIT */
/* Two recordings, job by job. */
#ifndef MICA_ANALYSIS_DIFF_H
#define MICA_ANALYSIS_DIFF_H

#include "analysis/jobs.h"

/* Which isn't the same in both; NULL: this side hasn't got it. */
struct mica_diff_field {
    const struct mica_job_field *a, *b;
};

/* A pair of jobs; NULL: this side hasn't got it. */
struct mica_diff_job {
    const struct mica_submitted_job *a, *b;
    size_t first, count; /* of the fields that differ */
};

/* A field that differs somewhere. */
struct mica_diff_total {
    const char *path;
    size_t jobs;
};

struct mica_diff {
    struct mica_diff_job *jobs; /* in order, equal ones too */
    struct mica_diff_field *fields;
    struct mica_diff_total *totals; /* the most frequent first */
    size_t job_count, field_count, total_count;
    size_t different; /* jobs that differ, or that one side hasn't got */
};

/* 0 or -ENOMEM, said. `a` and `b` must outlive the result. Release it in both cases. */
int mica_diff_make(const struct mica_jobs *a, const struct mica_jobs *b, struct mica_log *log, struct mica_diff *diff);
void mica_diff_release(struct mica_diff *diff);

#endif
