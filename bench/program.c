/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/tflite/reader.h"
#include "npu/vivante/hw/fields.h"
#include "runtime/partition.h"

#define COEFFICIENT_WORD 5u /* of the NN descriptor: the buffer's address */
#define COEFFICIENT_SHIFT 6u

const struct mica_chip *bench_chip(const char *name)
{
    static const struct mica_chip *const chips[] = {&mica_chip_a311d, &mica_chip_s905d3, &mica_chip_imx8mp};
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (!strcmp(chips[i]->name, name))
            return chips[i];
    return NULL;
}

/* The relocation of the coefficients' address in the descriptor that a stream's relocation points to. */
static const struct mica_program_reloc *coefficients_of(const struct mica_program *program,
                                                        const struct mica_program_reloc *start)
{
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *reloc = &program->relocs[i];
        if (!reloc->in_stream && reloc->where == start->target && reloc->shift == COEFFICIENT_SHIFT &&
            reloc->offset == start->addend + 4 * COEFFICIENT_WORD)
            return reloc;
    }
    return NULL;
}

/* Padding behind a buffer counts: all that is stored. */
static uint64_t stored_bytes(const struct mica_program *program, const struct mica_program_reloc *coefficients)
{
    uint64_t end = program->buffers[coefficients->target].size;
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *other = &program->relocs[i];
        if (!other->in_stream && other->target == coefficients->target && other->addend > coefficients->addend &&
            other->addend < end)
            end = other->addend;
    }
    return end - coefficients->addend;
}

static bool visit_job(const struct bench_visitor *visitor, const struct mica_program *program,
                      const struct mica_program_reloc *start, uint32_t op, struct mica_log *log)
{
    const struct mica_program_reloc *coefficients = coefficients_of(program, start);
    const struct mica_program_buffer *descriptors = &program->buffers[start->target];
    uint32_t words[VIV_NN_WORDS];
    if (!coefficients || start->addend + sizeof words > descriptors->data_size)
        return mica_fail(log, -EINVAL, "a job of operation %u has no descriptor", op), false;
    memcpy(words, descriptors->data + start->addend, sizeof words);
    struct bench_job job = {.op = op, .words = words, .stored = stored_bytes(program, coefficients)};
    job.coefficients = program->buffers[coefficients->target].data + coefficients->addend;
    return visitor->job(visitor->user, &job, log);
}

/* Relocations of streams come in the order of the jobs, one a job. */
static bool visit_program(const struct bench_visitor *visitor, const struct mica_program *program, struct mica_log *log)
{
    uint32_t job = 0;
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *start = &program->relocs[i];
        if (!start->in_stream)
            continue;
        if (job >= program->job_count)
            return mica_fail(log, -EINVAL, "more jobs are started than the program lists"), false;
        const struct mica_program_job *entry = &program->jobs[job++];
        if (!strcmp(entry->unit, "NN") && !visit_job(visitor, program, start, entry->op, log))
            return false;
    }
    return true;
}

static bool visit_plan(const struct bench_visitor *visitor, const struct mica_plan *plan, struct mica_log *log)
{
    for (uint32_t i = 0; i < plan->step_count; i++) {
        struct mica_program *program = NULL;
        if (!plan->steps[i].npu)
            continue;
        if (visitor->chip->family->compile(visitor->chip, &plan->steps[i].partition, &visitor->options,
                                           visitor->threads, log, &program))
            return false;
        bool done = visit_program(visitor, program, log);
        mica_program_destroy(program);
        if (!done)
            return false;
    }
    return true;
}

static bool visit_graph(const struct bench_visitor *visitor, const struct mica_graph *graph, struct mica_log *log)
{
    struct mica_plan plan;
    if (mica_plan_create(graph, visitor->chip, log, &plan))
        return false;
    bool done = visitor->begin(visitor->user, graph) || (mica_fail_nomem(log), false);
    done = done && visit_plan(visitor, &plan, log);
    if (done)
        visitor->end(visitor->user, graph);
    mica_plan_finish(&plan);
    return done;
}

static void *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    void *data = NULL;
    if (!file)
        return NULL;
    if (!fseek(file, 0, SEEK_END) && (*size = (size_t)ftell(file)) > 0 && !posix_memalign(&data, 16, *size)) {
        rewind(file);
        if (fread(data, 1, *size, file) != *size) {
            free(data);
            data = NULL;
        }
    }
    fclose(file);
    return data;
}

bool bench_visit(const char *path, const struct bench_visitor *visitor)
{
    struct mica_log log = {.sink = NULL};
    struct mica_graph *graph = NULL;
    size_t size = 0;
    void *data = read_file(path, &size);
    bool done = data && !mica_tflite_read(data, size, &log, &graph) && visit_graph(visitor, graph, &log);
    if (!done)
        fprintf(stderr, "%s: %s\n", path, data ? log.last_error : "cannot be read");
    mica_graph_destroy(graph);
    free(data);
    return done;
}
