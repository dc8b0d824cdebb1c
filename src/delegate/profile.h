/* SPDX-License-Identifier: MIT */
/* What the device's jobs cost, summed over a delegate's life: the table of option `profile`. */
#ifndef MICA_DELEGATE_PROFILE_H
#define MICA_DELEGATE_PROFILE_H

#include <stdio.h>

#include "npu/npu.h"

struct mica_profile_row {
    char unit[4];
    char op[96];        /* "CONV_2D output_name" */
    uint32_t partition; /* from 1 */
    uint64_t runs;      /* that the device reported */
    uint64_t macs;      /* of one run */
    struct mica_job_report sum;
};

/* All zeros is an empty profile. */
struct mica_profile {
    struct mica_profile_row *rows;
    uint32_t row_count, partition_count;
    uint64_t invocations;
    double host_seconds;   /* in invocations, the device's time included */
    double device_seconds; /* from submissions to the ends of the waits */
};

/* Adds one row for each job of a program; *first gets the index of the first. 0 or -ENOMEM. */
int mica_profile_add(struct mica_profile *profile, const struct mica_graph *graph, const struct mica_program *program,
                     struct mica_log *log, uint32_t *first);

/* One invocation of the program whose rows begin at `first`; `count` is its number of jobs, or 0: no reports. */
void mica_profile_count(struct mica_profile *profile, uint32_t first, const struct mica_job_report *reports,
                        size_t count, double seconds, double device_seconds);

/* `clock_mhz` turns cycles into time. */
void mica_profile_print(const struct mica_profile *profile, const struct mica_chip *chip, double clock_mhz,
                        bool simulated, FILE *file);
void mica_profile_finish(struct mica_profile *profile);

#endif
