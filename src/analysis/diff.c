/* SPDX-License-Identifier: MIT */
#include "analysis/diff.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define MOST_ALIGNED 2000u /* jobs of each side; more are paired as they come */

struct differ {
    const struct mica_jobs *a, *b;
    struct mica_diff *out;
    size_t field_capacity;
};

/* ---- which job is which ------------------------------------------------------------- */

static bool same_unit(const struct differ *differ, size_t i, size_t j)
{
    return !strcmp(differ->a->jobs[i].unit, differ->b->jobs[j].unit);
}

/* lengths[i][j]: of the longest common sequence of units from jobs i and j on. */
static uint16_t *common_lengths(const struct differ *differ)
{
    size_t m = differ->a->job_count, n = differ->b->job_count;
    uint16_t *lengths = mica_new_array((m + 1) * (n + 1), sizeof *lengths);
    for (size_t i = m; lengths && i-- > 0;)
        for (size_t j = n; j-- > 0;) {
            uint16_t down = lengths[(i + 1) * (n + 1) + j], right = lengths[i * (n + 1) + j + 1];
            uint16_t both = (uint16_t)(lengths[(i + 1) * (n + 1) + j + 1] + 1);
            lengths[i * (n + 1) + j] = same_unit(differ, i, j) ? both : down > right ? down : right;
        }
    return lengths;
}

static void add_pair(struct differ *differ, size_t i, size_t j)
{
    struct mica_diff_job *job = &differ->out->jobs[differ->out->job_count++];
    *job = (struct mica_diff_job){.a = i < differ->a->job_count ? &differ->a->jobs[i] : NULL,
                                  .b = j < differ->b->job_count ? &differ->b->jobs[j] : NULL};
}

static void pair_aligned(struct differ *differ, const uint16_t *lengths)
{
    size_t m = differ->a->job_count, n = differ->b->job_count, i = 0, j = 0;
    while (i < m || j < n) {
        bool both = i < m && j < n && same_unit(differ, i, j);
        bool mine = !both && (j >= n || (i < m && lengths[(i + 1) * (n + 1) + j] >= lengths[i * (n + 1) + j + 1]));
        add_pair(differ, both || mine ? i : SIZE_MAX, both || !mine ? j : SIZE_MAX);
        i += both || mine;
        j += both || !mine;
    }
}

static void pair_in_order(struct differ *differ)
{
    size_t m = differ->a->job_count, n = differ->b->job_count;
    for (size_t i = 0; i < m || i < n; i++) {
        if (i < m && i < n && same_unit(differ, i, i)) {
            add_pair(differ, i, i);
            continue;
        }
        if (i < m)
            add_pair(differ, i, SIZE_MAX);
        if (i < n)
            add_pair(differ, SIZE_MAX, i);
    }
}

static bool pair_jobs(struct differ *differ)
{
    size_t m = differ->a->job_count, n = differ->b->job_count;
    differ->out->jobs = mica_new_array(m + n, sizeof *differ->out->jobs);
    if (!differ->out->jobs)
        return false;
    if (m > MOST_ALIGNED || n > MOST_ALIGNED) {
        pair_in_order(differ);
        return true;
    }
    uint16_t *lengths = common_lengths(differ);
    if (!lengths)
        return false;
    pair_aligned(differ, lengths);
    free(lengths);
    return true;
}

/* ---- one pair ---------------------------------------------------------------------------- */

static bool add_field(struct differ *differ, const struct mica_job_field *a, const struct mica_job_field *b)
{
    struct mica_diff *out = differ->out;
    if (out->field_count == differ->field_capacity) {
        size_t capacity = differ->field_capacity ? 2 * differ->field_capacity : 256;
        struct mica_diff_field *grown = realloc(out->fields, capacity * sizeof *grown);
        if (!grown)
            return false;
        out->fields = grown;
        differ->field_capacity = capacity;
    }
    out->fields[out->field_count++] = (struct mica_diff_field){a, b};
    return true;
}

/* As the job sets them. */
static int compare_order(const void *x, const void *y)
{
    const struct mica_diff_field *a = x, *b = y;
    uint32_t i = (a->a ? a->a : a->b)->order, j = (b->a ? b->a : b->b)->order;
    return (i > j) - (i < j);
}

static bool compare_jobs(struct differ *differ, struct mica_diff_job *job)
{
    const struct mica_job_field *a = differ->a->fields + job->a->first, *b = differ->b->fields + job->b->first;
    const struct mica_job_field *a_end = a + job->a->count, *b_end = b + job->b->count;
    bool good = true;
    while (good && (a < a_end || b < b_end)) {
        int order = a == a_end ? 1 : b == b_end ? -1 : mica_job_field_compare(a, b);
        if (order || !mica_job_field_same(a, b))
            good = add_field(differ, order <= 0 ? a : NULL, order >= 0 ? b : NULL);
        a += order <= 0;
        b += order >= 0;
    }
    return good;
}

static bool compare_all(struct differ *differ)
{
    struct mica_diff *out = differ->out;
    for (size_t i = 0; i < out->job_count; i++) {
        struct mica_diff_job *job = &out->jobs[i];
        job->first = out->field_count;
        if (job->a && job->b && !compare_jobs(differ, job))
            return false;
        job->count = out->field_count - job->first;
        out->different += !job->a || !job->b || job->count;
        if (job->count)
            qsort(out->fields + job->first, job->count, sizeof *out->fields, compare_order);
    }
    return true;
}

/* ---- the summary -------------------------------------------------------------------------- */

static int compare_path(const void *x, const void *y)
{
    return strcmp(((const struct mica_diff_total *)x)->path, ((const struct mica_diff_total *)y)->path);
}

static int compare_jobs_of(const void *x, const void *y)
{
    const struct mica_diff_total *a = x, *b = y;
    return a->jobs != b->jobs ? (a->jobs < b->jobs) - (a->jobs > b->jobs) : strcmp(a->path, b->path);
}

static bool add_up(struct mica_diff *out)
{
    size_t kept = 0;
    struct mica_diff_total *totals = out->totals = mica_new_array(out->field_count, sizeof *totals);
    if (!totals)
        return false;
    for (size_t i = 0; i < out->job_count; i++) /* a field that a job sets twice counts once */
        for (size_t k = 0; k < out->jobs[i].count; k++) {
            const struct mica_diff_field *field = &out->fields[out->jobs[i].first + k];
            const struct mica_job_field *side = field->a ? field->a : field->b;
            totals[out->total_count++] = (struct mica_diff_total){side->path, side->repeat == 0};
        }
    qsort(totals, out->total_count, sizeof *totals, compare_path);
    for (size_t i = 0; i < out->total_count; i++) {
        if (kept && !strcmp(totals[kept - 1].path, totals[i].path))
            totals[kept - 1].jobs += totals[i].jobs;
        else
            totals[kept++] = totals[i];
    }
    out->total_count = kept;
    for (size_t i = 0; i < kept; i++)
        totals[i].jobs += totals[i].jobs == 0;
    qsort(totals, kept, sizeof *totals, compare_jobs_of);
    return true;
}

int mica_diff_make(const struct mica_jobs *a, const struct mica_jobs *b, struct mica_log *log, struct mica_diff *diff)
{
    struct differ differ = {.a = a, .b = b, .out = diff};
    *diff = (struct mica_diff){0};
    return pair_jobs(&differ) && compare_all(&differ) && add_up(diff) ? 0 : mica_fail_nomem(log);
}

void mica_diff_release(struct mica_diff *diff)
{
    free(diff->jobs);
    free(diff->fields);
    free(diff->totals);
    *diff = (struct mica_diff){0};
}
