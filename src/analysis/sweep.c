/* SPDX-License-Identifier: MIT */
#include "analysis/sweep.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define MOST_COLUMNS 16384u
#define MOST_CELLS ((size_t)1 << 24)

/* ---- the grid ----------------------------------------------------------------------- */

static int add_value(struct mica_sweep_axis *axis, const char *text, size_t length)
{
    char **grown = realloc(axis->values, (axis->count + 1) * sizeof *grown);
    if (!grown)
        return -ENOMEM;
    axis->values = grown;
    grown[axis->count] = strndup(text, length);
    return grown[axis->count] ? (axis->count++, 0) : -ENOMEM;
}

int mica_sweep_add_axis(struct mica_sweep *sweep, const char *text, struct mica_log *log)
{
    const char *equals = strchr(text, '=');
    size_t points = sweep->axis_count ? sweep->point_count : 1;
    if (!equals || equals == text || !equals[1])
        return mica_fail(log, -EINVAL, "'%s' is no NAME=V1,V2", text);
    if (sweep->axis_count == MICA_SWEEP_MOST_AXES)
        return mica_fail(log, -EINVAL, "a grid has at most %u parameters", MICA_SWEEP_MOST_AXES);
    struct mica_sweep_axis *axis = &sweep->axes[sweep->axis_count++];
    *axis = (struct mica_sweep_axis){.name = strndup(text, (size_t)(equals - text))};
    int error = axis->name ? 0 : -ENOMEM;
    for (const char *part = equals + 1; !error; part += strcspn(part, ",") + 1) {
        size_t length = strcspn(part, ",");
        if (!length)
            return mica_fail(log, -EINVAL, "a value of '%s' is empty", text);
        error = add_value(axis, part, length);
        if (!part[length])
            break;
    }
    if (error)
        return mica_fail_nomem(log);
    if (axis->count * points > MICA_SWEEP_MOST_POINTS)
        return mica_fail(log, -EINVAL, "the grid has more than %u points", MICA_SWEEP_MOST_POINTS);
    sweep->point_count = axis->count * points;
    return 0;
}

/* Points from one value of the axis to the next. */
static size_t stride_of(const struct mica_sweep *sweep, size_t axis)
{
    size_t stride = 1;
    for (size_t i = axis + 1; i < sweep->axis_count; i++)
        stride *= sweep->axes[i].count;
    return stride;
}

const char *mica_sweep_value(const struct mica_sweep *sweep, size_t axis, size_t point)
{
    return sweep->axes[axis].values[point / stride_of(sweep, axis) % sweep->axes[axis].count];
}

void mica_sweep_release(struct mica_sweep *sweep)
{
    for (size_t i = 0; i < sweep->axis_count; i++) {
        for (size_t k = 0; k < sweep->axes[i].count; k++)
            free(sweep->axes[i].values[k]);
        free(sweep->axes[i].values);
        free(sweep->axes[i].name);
    }
    for (size_t i = 0; i < sweep->column_count; i++)
        free(sweep->columns[i].cells);
    free(sweep->columns);
    free(sweep->index);
    mica_decoding_release(&sweep->strings);
    *sweep = (struct mica_sweep){0};
}

/* ---- columns -------------------------------------------------------------------------- */

static size_t hash(const char *text)
{
    uint64_t value = UINT64_C(14695981039346656037);
    for (; *text; text++)
        value = (value ^ (unsigned char)*text) * UINT64_C(1099511628211);
    return (size_t)(value >> 17);
}

static bool make_index(struct mica_sweep *sweep)
{
    if (sweep->index)
        return true;
    sweep->index_room = 2 * MOST_COLUMNS;
    sweep->index = mica_new_array(sweep->index_room, sizeof *sweep->index);
    return sweep->index;
}

static bool make_room(struct mica_sweep *sweep)
{
    if (sweep->column_count < sweep->column_room)
        return true;
    size_t room = sweep->column_room ? 2 * sweep->column_room : 256;
    struct mica_sweep_column *grown = realloc(sweep->columns, room * sizeof *grown);
    if (!grown)
        return false;
    sweep->columns = grown;
    sweep->column_room = room;
    return true;
}

static struct mica_sweep_column *new_column(struct mica_sweep *sweep, const char *name, const char *meaning)
{
    if (!make_room(sweep))
        return NULL;
    struct mica_sweep_column *column = &sweep->columns[sweep->column_count];
    *column = (struct mica_sweep_column){
        .name = mica_decoding_keep(&sweep->strings, name),
        .meaning = mica_decoding_keep(&sweep->strings, meaning),
        .cells = mica_new_array(sweep->point_count, sizeof *column->cells),
    };
    if (!column->cells || sweep->strings.failed) {
        free(column->cells);
        return NULL;
    }
    sweep->column_count++;
    return column;
}

/* NULL, with *full set when there are too many. */
static struct mica_sweep_column *find_column(struct mica_sweep *sweep, const char *name, const char *meaning,
                                             bool *full)
{
    if (!make_index(sweep))
        return NULL;
    size_t at = hash(name) % sweep->index_room;
    for (; sweep->index[at]; at = (at + 1) % sweep->index_room)
        if (!strcmp(sweep->columns[sweep->index[at] - 1].name, name))
            return &sweep->columns[sweep->index[at] - 1];
    *full = sweep->column_count == MOST_COLUMNS || sweep->column_count * sweep->point_count >= MOST_CELLS;
    struct mica_sweep_column *column = *full ? NULL : new_column(sweep, name, meaning);
    if (column)
        sweep->index[at] = sweep->column_count;
    return column;
}

/* ---- cells ------------------------------------------------------------------------------ */

static bool text_number(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return end != text && (!*end || *end == ' ');
}

static bool set_cell(struct mica_sweep *sweep, struct mica_sweep_cell *cell, const struct mica_job_field *field)
{
    *cell = (struct mica_sweep_cell){.there = true};
    cell->number = field->is_signed ? (double)(int64_t)field->value : (double)field->value;
    if (field->is_address)
        return true;
    if (field->text && !field->value && text_number(field->text, &cell->number))
        return true;
    if (field->text && strchr(field->text, '%')) /* the number again, as a share */
        return true;
    cell->text = mica_decoding_keep(&sweep->strings, field->text);
    return !sweep->strings.failed;
}

/* Which of the jobs of its unit it is. */
static size_t ordinal(const struct mica_jobs *jobs, size_t job)
{
    size_t number = 0;
    for (size_t i = 0; i < job; i++)
        number += !strcmp(jobs->jobs[i].unit, jobs->jobs[job].unit);
    return number;
}

static int add_field(struct mica_sweep *sweep, size_t point, const char *job, const struct mica_job_field *field,
                     struct mica_log *log)
{
    char name[256], repeat[16] = "";
    bool full = false;
    if (field->repeat)
        snprintf(repeat, sizeof repeat, " (%u)", field->repeat + 1);
    snprintf(name, sizeof name, "%s: %s%s", job, field->path, repeat);
    struct mica_sweep_column *column = find_column(sweep, name, field->meaning, &full);
    if (full)
        return mica_fail(log, -E2BIG,
                         "the captures have too many fields for a table: make the grid or the model smaller");
    return column && set_cell(sweep, &column->cells[point], field) ? 0 : mica_fail_nomem(log);
}

/* In the order in which the job sets them, for people. */
static int compare_order(const void *a, const void *b)
{
    const struct mica_job_field *x = *(const struct mica_job_field *const *)a;
    const struct mica_job_field *y = *(const struct mica_job_field *const *)b;
    return (x->order > y->order) - (x->order < y->order);
}

static int add_job(struct mica_sweep *sweep, size_t point, const struct mica_jobs *jobs, size_t number,
                   struct mica_log *log)
{
    char name[32];
    const struct mica_submitted_job *job = &jobs->jobs[number];
    const struct mica_job_field **fields = mica_new_array(job->count, sizeof *fields);
    int error = 0;
    if (!fields)
        return mica_fail_nomem(log);
    for (size_t i = 0; i < job->count; i++)
        fields[i] = &jobs->fields[job->first + i];
    qsort(fields, job->count, sizeof *fields, compare_order);
    snprintf(name, sizeof name, "%s %zu", job->unit, ordinal(jobs, number));
    for (size_t i = 0; !error && i < job->count; i++)
        error = add_field(sweep, point, name, fields[i], log);
    free(fields);
    return error;
}

int mica_sweep_add(struct mica_sweep *sweep, size_t point, const struct mica_jobs *jobs, struct mica_log *log)
{
    int error = 0;
    for (size_t i = 0; !error && i < jobs->job_count; i++)
        error = add_job(sweep, point, jobs, i, log);
    return error;
}

void mica_sweep_print(const struct mica_sweep_cell *cell, char *text, size_t size)
{
    if (!cell->there)
        snprintf(text, size, "%s", "");
    else if (cell->text)
        snprintf(text, size, "%s", cell->text);
    else
        snprintf(text, size, "%.15g", cell->number);
}

/* ---- what follows what -------------------------------------------------------------------- */

static bool same(const struct mica_sweep_cell *a, const struct mica_sweep_cell *b)
{
    if (a->there != b->there || a->number != b->number)
        return false;
    return a->text && b->text ? !strcmp(a->text, b->text) : a->text == b->text;
}

/* Points whose command failed have nothing, which says nothing. */
static bool any_there(const struct mica_sweep *sweep, size_t point)
{
    for (size_t i = 0; i < sweep->column_count; i++)
        if (sweep->columns[i].cells[point].there)
            return true;
    return false;
}

static bool follows(const struct mica_sweep *sweep, const struct mica_sweep_column *column, size_t axis)
{
    size_t stride = stride_of(sweep, axis), count = sweep->axes[axis].count;
    for (size_t point = 0; point < sweep->point_count; point++) {
        bool last = point / stride % count + 1 == count;
        const struct mica_sweep_cell *cell = &column->cells[point];
        if (!last && cell->there && cell[stride].there && !same(cell, &cell[stride]))
            return true;
    }
    return false;
}

static void write_rule(struct mica_sweep_column *column, const char *name, double slope, double start)
{
    char factor[24] = "", offset[24] = "";
    if (slope != 1)
        snprintf(factor, sizeof factor, "%g * ", slope);
    if (start != 0)
        snprintf(offset, sizeof offset, " %c %g", start < 0 ? '-' : '+', fabs(start));
    snprintf(column->rule, sizeof column->rule, "= %s%.15s%s", factor, name, offset);
}

/* A line through all points, of which it takes three different ones to mean anything. */
static void find_rule(const struct mica_sweep *sweep, struct mica_sweep_column *column, const bool *there, size_t axis)
{
    double x[2], y[2], at;
    size_t known = 0, distinct = sweep->axes[axis].count;
    for (size_t i = 0; i < sweep->point_count; i++) {
        const struct mica_sweep_cell *cell = &column->cells[i];
        if (!there[i] || !cell->there)
            continue;
        if (cell->text || !text_number(mica_sweep_value(sweep, axis, i), &at))
            return;
        if (known < 2 && (!known || at != x[0])) {
            x[known] = at;
            y[known++] = cell->number;
        }
    }
    if (known < 2 || distinct < 3)
        return;
    double slope = (y[1] - y[0]) / (x[1] - x[0]), start = y[0] - slope * x[0];
    for (size_t i = 0; i < sweep->point_count; i++)
        if (there[i] && column->cells[i].there && text_number(mica_sweep_value(sweep, axis, i), &at) &&
            fabs(slope * at + start - column->cells[i].number) > 1e-6 * (1 + fabs(column->cells[i].number)))
            return;
    write_rule(column, sweep->axes[axis].name, slope, start);
}

static void analyse(const struct mica_sweep *sweep, struct mica_sweep_column *column, const bool *there)
{
    const struct mica_sweep_cell *first = NULL;
    for (size_t i = 0; i < sweep->point_count; i++) {
        if (!there[i])
            continue;
        column->partial |= !column->cells[i].there;
        if (!column->cells[i].there)
            continue;
        first = first ? first : &column->cells[i];
        column->varies |= !same(first, &column->cells[i]);
    }
    if (!column->varies)
        return;
    for (size_t axis = 0; axis < sweep->axis_count; axis++)
        if (follows(sweep, column, axis))
            column->follows |= 1u << axis;
    for (size_t axis = 0; axis < sweep->axis_count; axis++)
        if (column->follows == 1u << axis)
            find_rule(sweep, column, there, axis);
}

void mica_sweep_analyse(struct mica_sweep *sweep)
{
    bool there[MICA_SWEEP_MOST_POINTS];
    for (size_t i = 0; i < sweep->point_count; i++)
        there[i] = any_there(sweep, i);
    for (size_t i = 0; i < sweep->column_count; i++)
        analyse(sweep, &sweep->columns[i], there);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void put_quoted(FILE *out, const char *text)
{
    if (!strpbrk(text, ",\"\n")) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (; *text; text++)
        fputs(*text == '"' ? "\"\"" : (const char[]){*text, 0}, out);
    fputc('"', out);
}

void mica_sweep_write_csv(const struct mica_sweep *sweep, FILE *out)
{
    for (size_t i = 0; i < sweep->axis_count; i++) {
        fputs(i ? "," : "", out);
        put_quoted(out, sweep->axes[i].name);
    }
    for (size_t i = 0; i < sweep->column_count; i++)
        if (sweep->columns[i].varies) {
            fputc(',', out);
            put_quoted(out, sweep->columns[i].name);
        }
    fputc('\n', out);
    for (size_t point = 0; point < sweep->point_count; point++) {
        for (size_t i = 0; i < sweep->axis_count; i++) {
            fputs(i ? "," : "", out);
            put_quoted(out, mica_sweep_value(sweep, i, point));
        }
        for (size_t i = 0; i < sweep->column_count; i++) {
            char text[256];
            if (!sweep->columns[i].varies)
                continue;
            mica_sweep_print(&sweep->columns[i].cells[point], text, sizeof text);
            fputc(',', out);
            put_quoted(out, text);
        }
        fputc('\n', out);
    }
}
