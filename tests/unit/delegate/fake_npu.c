/* SPDX-License-Identifier: MIT */
#include "fake_npu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/device.h"
#include "util/checked.h"

struct fake_npu fake_npu;

/* ---- family: buffer t of a program is graph tensor t; the stream lists operations as buffer numbers ---- */

static int supports(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason,
                    size_t size)
{
    if ((int)graph->ops[op].kind != fake_npu.refused_kind)
        return 0;
    snprintf(reason, size, "the test refuses %s", graph->ops[op].type);
    return -ENOTSUP;
}

static void fill_io(const struct mica_graph *graph, const uint32_t *tensors, uint32_t count,
                    struct mica_program_io *ios)
{
    for (uint32_t i = 0; i < count; i++)
        ios[i] = (struct mica_program_io){tensors[i], tensors[i], 0, graph->tensors[tensors[i]].bytes, false};
}

/* Words of an operation: number of inputs, inputs, number of outputs, outputs. */
static uint32_t *add_tensors(const struct mica_graph *graph, const int32_t *tensors, uint32_t count, uint32_t *to)
{
    uint32_t *size = to++;
    for (uint32_t i = 0; i < count; i++) {
        if (tensors[i] == MICA_NO_TENSOR || graph->tensors[tensors[i]].data)
            continue;
        *to++ = (uint32_t)tensors[i];
        ++*size;
    }
    return to;
}

static uint32_t stream_words(const struct mica_partition *partition)
{
    uint32_t words = 0;
    for (uint32_t i = 0; i < partition->op_count; i++) {
        const struct mica_op *op = &partition->graph->ops[partition->ops[i]];
        words += 2 + op->input_count + op->output_count;
    }
    return words;
}

static bool fill_stream(const struct mica_partition *partition, struct mica_program *program)
{
    uint32_t *stream = mica_new_array(stream_words(partition), sizeof *stream), *to = stream;
    program->submits[0] = (struct mica_program_submit){stream, 0, 0, partition->op_count};
    if (!stream)
        return false;
    for (uint32_t i = 0; i < partition->op_count; i++) {
        const struct mica_op *op = &partition->graph->ops[partition->ops[i]];
        to = add_tensors(partition->graph, op->inputs, op->input_count, to);
        to = add_tensors(partition->graph, op->outputs, op->output_count, to);
        program->jobs[i] = (struct mica_program_job){"NN", partition->ops[i], 10};
    }
    program->submits[0].words = (uint32_t)(to - stream);
    return true;
}

static bool allocate(const struct mica_partition *partition, struct mica_program *program)
{
    program->buffers = mica_new_array(partition->graph->tensor_count, sizeof *program->buffers);
    program->inputs = mica_new_array(partition->input_count, sizeof *program->inputs);
    program->outputs = mica_new_array(partition->output_count, sizeof *program->outputs);
    program->jobs = mica_new_array(partition->op_count, sizeof *program->jobs);
    program->submits = mica_new_array(1, sizeof *program->submits);
    if (!program->buffers || !program->inputs || !program->outputs || !program->jobs || !program->submits)
        return false;
    program->buffer_count = partition->graph->tensor_count;
    program->input_count = partition->input_count;
    program->output_count = partition->output_count;
    program->job_count = partition->op_count;
    program->submit_count = 1;
    return true;
}

static int compile(const struct mica_chip *chip, const struct mica_partition *partition,
                   const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log,
                   struct mica_program **result)
{
    if (fake_npu.compile_error)
        return mica_fail(log, fake_npu.compile_error, "the test lets compilation fail");
    const struct mica_graph *graph = partition->graph;
    struct mica_program *program = calloc(1, sizeof *program);
    if (!program || !allocate(partition, program) || !fill_stream(partition, program)) {
        mica_program_destroy(program);
        return mica_fail_nomem(log);
    }
    for (uint32_t i = 0; i < graph->tensor_count; i++) {
        program->buffers[i].size = graph->tensors[i].bytes + 1;
        program->buffers[i].access = MICA_ACCESS_READ | MICA_ACCESS_WRITE;
    }
    fill_io(graph, partition->inputs, partition->input_count, program->inputs);
    fill_io(graph, partition->outputs, partition->output_count, program->outputs);
    *result = program;
    return 0;
}

static const struct mica_npu_family family = {.name = "fake", .supports = supports, .compile = compile};
static const struct mica_chip chip = {"fakechip", "a chip for tests", "etnaviv", 100.0, &family, NULL};

/* ---- winsys ----------------------------------------------------------- */

static int bo_create(struct mica_winsys *winsys, uint64_t size, struct mica_bo **result)
{
    struct mica_bo *bo = calloc(1, sizeof *bo);
    uint8_t *map = calloc(1, size);
    if (!bo || !map) {
        free(bo);
        free(map);
        return -ENOMEM;
    }
    *bo = (struct mica_bo){1, 0, (size_t)size, map};
    fake_npu.buffers++;
    *result = bo;
    return 0;
}

static void bo_destroy(struct mica_winsys *winsys, struct mica_bo *bo)
{
    if (!bo)
        return;
    fake_npu.buffers--;
    free(bo->map);
    free(bo);
}

static int bo_begin_cpu(struct mica_winsys *winsys, struct mica_bo *bo, unsigned access)
{
    return 0;
}

static void bo_end_cpu(struct mica_winsys *winsys, struct mica_bo *bo)
{
}

static uint8_t sum(const struct mica_submit *submit, const uint32_t *inputs, uint32_t count, size_t index)
{
    uint8_t total = 1;
    for (uint32_t i = 0; i < count; i++) {
        const struct mica_bo *bo = submit->bos[inputs[i]].bo;
        total = (uint8_t)(total + bo->map[index % (bo->size - 1)]); /* the buffer has one byte more than the tensor */
    }
    return total;
}

static int run(struct mica_winsys *winsys, const struct mica_submit *submit, uint64_t *fence)
{
    fake_npu.submits++;
    size_t jobs = 0;
    for (uint32_t at = 0; at < submit->words; jobs++) {
        const uint32_t *inputs = submit->stream + at + 1, input_count = submit->stream[at];
        const uint32_t *outputs = inputs + input_count + 1, output_count = inputs[input_count];
        for (uint32_t i = 0; i < output_count; i++) {
            const struct mica_bo *bo = submit->bos[outputs[i]].bo;
            for (size_t k = 0; k < bo->size; k++)
                bo->map[k] = sum(submit, inputs, input_count, k);
        }
        submit->reports[jobs] = (struct mica_job_report){.cycles = 100, .read_bytes = 1024, .write_bytes = 2048};
        at += 2 + input_count + output_count;
    }
    *submit->report_count = jobs;
    return fake_npu.submit_error;
}

static int wait_fence(struct mica_winsys *winsys, uint64_t fence, int64_t timeout_ns)
{
    return 0;
}

static void destroy(struct mica_winsys *winsys)
{
}

int mica_open_device(const char *name, struct mica_threads *threads, struct mica_log *log,
                     struct mica_opened_device *device)
{
    static struct mica_winsys winsys = {
        .chip = &chip,
        .simulated = true,
        .destroy = destroy,
        .bo_create = bo_create,
        .bo_destroy = bo_destroy,
        .bo_begin_cpu = bo_begin_cpu,
        .bo_end_cpu = bo_end_cpu,
        .submit = run,
        .wait = wait_fence,
    };
    *device = (struct mica_opened_device){0};
    snprintf(fake_npu.device, sizeof fake_npu.device, "%s", name);
    if (fake_npu.open_error)
        return mica_fail(log, fake_npu.open_error, "the test has no device \"%s\"", name);
    fake_npu.opened++;
    snprintf(device->name, sizeof device->name, "fake:%.32s", name);
    if (strcmp(name, "cpu")) {
        device->chip = &chip;
        device->winsys = &winsys;
    }
    return 0;
}

void mica_close_device(struct mica_opened_device *device)
{
    fake_npu.closed += device->name[0] != 0;
    *device = (struct mica_opened_device){0};
}
