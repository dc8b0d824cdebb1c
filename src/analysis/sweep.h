/* SPDX-License-Identifier: MIT */
/* Fields of jobs over a grid of parameters: which vary, and what they follow. */
#ifndef MICA_ANALYSIS_SWEEP_H
#define MICA_ANALYSIS_SWEEP_H

#include <stdio.h>

#include "analysis/jobs.h"

#define MICA_SWEEP_MOST_POINTS 4096u
#define MICA_SWEEP_MOST_AXES 8u

struct mica_sweep_axis {
    char *name;
    char **values;
    size_t count;
};

struct mica_sweep_cell {
    bool there;
    double number;    /* of an address, its offset; of a text, what it says as a number, else 0 */
    const char *text; /* NULL: the number says it all */
};

/* A field of a job: "NN 0: NN.KERNEL_X_SIZE" is that of the first NN job. */
struct mica_sweep_column {
    const char *name, *meaning;
    struct mica_sweep_cell *cells; /* a point each */
    bool varies;                   /* where it is there */
    bool partial;                  /* it is there at some points only: jobs come and go */
    unsigned follows;              /* axes, a bit each, along which it changes by itself */
    char rule[64];                 /* "= kernel - 1", where it is linear in the only axis that it follows; else "" */
};

struct mica_sweep {
    struct mica_sweep_axis axes[MICA_SWEEP_MOST_AXES];
    size_t axis_count, point_count, column_count, column_room;
    struct mica_sweep_column *columns;
    size_t *index; /* by name's hash: a column's number + 1 */
    size_t index_room;
    struct mica_decoding strings;
};

/* "NAME=V1,V2,...". -EINVAL or -ENOMEM, said. */
int mica_sweep_add_axis(struct mica_sweep *sweep, const char *text, struct mica_log *log);

/* The value that axis `axis` has at a point; the last axis goes fastest. */
const char *mica_sweep_value(const struct mica_sweep *sweep, size_t axis, size_t point);

/* What was captured at a point. */
int mica_sweep_add(struct mica_sweep *sweep, size_t point, const struct mica_jobs *jobs, struct mica_log *log);

/* When all points are there: fills in what varies and what it follows. */
void mica_sweep_analyse(struct mica_sweep *sweep);

void mica_sweep_release(struct mica_sweep *sweep);

/* The cell as text, "" when it isn't there. */
void mica_sweep_print(const struct mica_sweep_cell *cell, char *text, size_t size);

/* A row a point: its parameters, then the fields that vary. */
void mica_sweep_write_csv(const struct mica_sweep *sweep, FILE *out);

/* plot.c: a line a field that varies, from its least value to its largest, over the points. */
void mica_sweep_write_svg(const struct mica_sweep *sweep, FILE *out);

#endif
