/* SPDX-License-Identifier: MIT */
#include "fake.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

#define PAGE 4096u

/* ---- family ----------------------------------------------------------- */

static int supports(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason,
                    size_t size)
{
    if (graph->ops[op].kind == MICA_OP_RESHAPE)
        return 0;
    snprintf(reason, size, "%s is no RESHAPE", graph->ops[op].type);
    return -ENOTSUP;
}

uint32_t fake_block;
int fake_connect_result;

/* By the size alone, so that a copy is a RESHAPE here too. */
static struct mica_program_layout layout_of(const struct mica_tensor *tensor)
{
    uint32_t channels = tensor->bytes % 10 ? tensor->bytes % 4 ? 1 : 4 : 10;
    if (!fake_block)
        return (struct mica_program_layout){0};
    uint32_t pixels = (uint32_t)(tensor->bytes / channels);
    return (struct mica_program_layout){fake_block, channels, pixels, 0x77, (uint64_t)pixels * fake_block + 8};
}

/* Buffer t is for graph tensor t. */
static struct mica_program_io io_of(const struct mica_graph *graph, uint32_t tensor)
{
    return (struct mica_program_io){.tensor = tensor,
                                    .buffer = tensor,
                                    .size = graph->tensors[tensor].bytes,
                                    .layout = layout_of(&graph->tensors[tensor])};
}

static uint64_t extent(const struct mica_graph *graph, uint32_t tensor)
{
    struct mica_program_io io = io_of(graph, tensor);
    return mica_program_io_extent(&io);
}

static void fill_io(const struct mica_graph *graph, const uint32_t *tensors, uint32_t count,
                    struct mica_program_io *ios)
{
    for (uint32_t i = 0; i < count; i++)
        ios[i] = io_of(graph, tensors[i]);
}

/* One submission of one copy per operation; `split` of them make a stage, so that tests must give it independent
 * ones. */
static bool fill_op(const struct mica_graph *graph, uint32_t index, uint32_t k, uint32_t split,
                    struct mica_program *program)
{
    const struct mica_op *op = &graph->ops[index];
    uint32_t from = (uint32_t)op->inputs[0], to = (uint32_t)op->outputs[0];
    uint32_t *stream = calloc(3, sizeof *stream);
    if (!stream)
        return false;
    stream[2] = (uint32_t)extent(graph, to);
    program->buffers[to].access |= MICA_ACCESS_WRITE;
    program->submits[k] = (struct mica_program_submit){stream, 3, k, 1, k % split, k / split};
    program->jobs[k] = (struct mica_program_job){"NN", index, 7};
    program->relocs[2 * k] = (struct mica_program_reloc){true, k, 0, from, 0, 0};
    program->relocs[2 * k + 1] = (struct mica_program_reloc){true, k, 4, to, 0, 0};
    return true;
}

static int compile(const struct mica_chip *chip, const struct mica_partition *partition,
                   const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log,
                   struct mica_program **result)
{
    const struct mica_graph *graph = partition->graph;
    struct mica_program *program = calloc(1, sizeof *program);
    if (!program)
        return mica_fail_nomem(log);
    program->buffers = mica_new_array(graph->tensor_count, sizeof *program->buffers);
    program->relocs = mica_new_array(partition->op_count, 2 * sizeof *program->relocs);
    program->inputs = mica_new_array(partition->input_count, sizeof *program->inputs);
    program->outputs = mica_new_array(partition->output_count, sizeof *program->outputs);
    program->jobs = mica_new_array(partition->op_count, sizeof *program->jobs);
    program->submits = mica_new_array(partition->op_count, sizeof *program->submits);
    bool ok =
        program->buffers && program->relocs && program->inputs && program->outputs && program->jobs && program->submits;
    if (ok) {
        program->buffer_count = graph->tensor_count;
        for (uint32_t i = 0; i < graph->tensor_count; i++)
            program->buffers[i] = (struct mica_program_buffer){extent(graph, i) + 1, NULL, 0, MICA_ACCESS_READ, 0};
        program->input_count = partition->input_count;
        program->output_count = partition->output_count;
        fill_io(graph, partition->inputs, partition->input_count, program->inputs);
        fill_io(graph, partition->outputs, partition->output_count, program->outputs);
        program->reloc_count = 2 * partition->op_count;
        program->job_count = program->submit_count = partition->op_count;
        for (uint32_t k = 0; ok && k < partition->op_count; k++)
            ok = fill_op(graph, partition->ops[k], k, options && options->split ? options->split : 1, program);
    }
    if (!ok) {
        mica_program_destroy(program);
        return mica_fail_nomem(log);
    }
    *result = program;
    return 0;
}

/* Its presence is what counts: the fake winsys keeps the clock. */
static int sim_set_clock(void *sim, double mhz)
{
    return 0;
}

struct mica_npu_family fake_family = {
    .name = "fake", .supports = supports, .compile = compile, .sim_set_clock = sim_set_clock};
struct mica_chip fake_chip = {.name = "fakechip",
                              .description = "a chip for tests",
                              .driver = "etnaviv",
                              .clock_mhz = 100.0,
                              .family = &fake_family,
                              .cores = 3,
                              .clock_least_mhz = 50,
                              .clock_most_mhz = 200};

/* ---- winsys ----------------------------------------------------------- */

static struct fake_winsys *self(struct mica_winsys *winsys)
{
    return (struct fake_winsys *)winsys;
}

static int bo_create(struct mica_winsys *winsys, uint64_t size, struct mica_bo **result)
{
    struct fake_winsys *fake = self(winsys);
    size = mica_align(size, PAGE);
    struct fake_bo *bo = size > 1u << 28 ? NULL : calloc(1, sizeof *bo);
    if (!bo)
        return -ENOMEM;
    bo->bo = (struct mica_bo){++fake->last_handle, fake->next_address, size, calloc(1, size)};
    if (!bo->bo.map) {
        free(bo);
        return -ENOMEM;
    }
    fake->next_address += size + PAGE;
    bo->next = fake->bos;
    fake->bos = bo;
    fake->bo_count++;
    *result = &bo->bo;
    return 0;
}

static void bo_destroy(struct mica_winsys *winsys, struct mica_bo *target)
{
    struct fake_winsys *fake = self(winsys);
    for (struct fake_bo **link = &fake->bos; target && *link; link = &(*link)->next) {
        struct fake_bo *bo = *link;
        if (&bo->bo != target)
            continue;
        *link = bo->next;
        fake->misuses += bo->open != 0;
        fake->bo_count--;
        free(bo->bo.map);
        free(bo);
        return;
    }
}

static int bo_begin_cpu(struct mica_winsys *winsys, struct mica_bo *bo, unsigned access)
{
    if (self(winsys)->begin_result)
        return self(winsys)->begin_result;
    ((struct fake_bo *)bo)->open++;
    return 0;
}

static void bo_end_cpu(struct mica_winsys *winsys, struct mica_bo *bo)
{
    self(winsys)->misuses += ((struct fake_bo *)bo)->open-- != 1;
}

static uint8_t *at(const struct mica_submit *submit, uint64_t address, uint64_t size, unsigned access)
{
    for (uint32_t i = 0; i < submit->bo_count; i++) {
        const struct mica_bo *bo = submit->bos[i].bo;
        if (address >= bo->address && mica_range_inside(address - bo->address, size, bo->size) &&
            (submit->bos[i].access & access))
            return bo->map + (address - bo->address);
    }
    return NULL;
}

static int run_stream(struct fake_winsys *fake, const struct mica_submit *submit)
{
    size_t count = 0;
    for (uint32_t i = 0; i + 3 <= submit->words; i += 3, count++) {
        uint32_t size = submit->stream[i + 2];
        const uint8_t *from = at(submit, submit->stream[i], size, MICA_ACCESS_READ);
        uint8_t *to = at(submit, submit->stream[i + 1], size, MICA_ACCESS_WRITE);
        if (!from || !to)
            return -EFAULT;
        memmove(to, from, size);
        if (count < submit->report_capacity)
            submit->reports[count] = (struct mica_job_report){.cycles = size,
                                                              .read_bytes = size,
                                                              .write_bytes = size,
                                                              .compute_cycles = size,
                                                              .memory_cycles = size / 2,
                                                              .dispatch_us = 3};
    }
    if (submit->report_count)
        *submit->report_count = fake->no_reports ? 0 : count;
    return 0;
}

static int run_submit(struct mica_winsys *winsys, const struct mica_submit *submit, uint64_t *fence)
{
    struct fake_winsys *fake = self(winsys);
    for (uint32_t i = 0; i < submit->bo_count; i++)
        fake->misuses += ((struct fake_bo *)submit->bos[i].bo)->open != 0;
    pthread_mutex_lock(&fake->gate);
    pthread_mutex_unlock(&fake->gate);
    fake->submit_count++;
    *fence = fake->submit_count;
    return fake->submit_result ? fake->submit_result : run_stream(fake, submit);
}

static int wait_fence(struct mica_winsys *winsys, uint64_t fence, int64_t timeout_ns)
{
    return self(winsys)->wait_result;
}

static int set_clock(struct mica_winsys *winsys, double mhz)
{
    self(winsys)->clock_mhz = mhz;
    return 0;
}

static void destroy(struct mica_winsys *winsys)
{
    struct fake_winsys *fake = self(winsys);
    if (fake->bo_count || fake->misuses)
        abort(); /* buffers were left, or used while the host had them */
    pthread_mutex_destroy(&fake->gate);
    free(fake);
}

struct mica_winsys *fake_winsys_create(void)
{
    struct fake_winsys *fake = calloc(1, sizeof *fake);
    if (!fake)
        abort();
    fake->winsys = (struct mica_winsys){
        .chip = &fake_chip,
        .simulated = true,
        .destroy = destroy,
        .bo_create = bo_create,
        .bo_destroy = bo_destroy,
        .bo_begin_cpu = bo_begin_cpu,
        .bo_end_cpu = bo_end_cpu,
        .submit = run_submit,
        .wait = wait_fence,
        .set_clock = set_clock,
    };
    fake->next_address = 0x10000;
    pthread_mutex_init(&fake->gate, NULL);
    return &fake->winsys;
}

static int connect_fake(const struct mica_opened_device *device, struct mica_threads *threads, struct mica_log *log,
                        struct mica_winsys **winsys)
{
    if (fake_connect_result)
        return mica_fail(log, fake_connect_result, "the test refuses another core");
    *winsys = fake_winsys_create();
    return 0;
}

/* Opens "cpu" and puts the fake chip into it: what only a device table with a fake entry could do otherwise. */
mica_device *fake_device_open(mica_context *context)
{
    mica_device *device;
    if (mica_device_open(context, "cpu", &device))
        abort();
    device->opened.chip = &fake_chip;
    device->opened.winsys = fake_winsys_create();
    device->opened.connect = connect_fake;
    device->cores.limit = 1;
    return device;
}

struct fake_winsys *fake_core_of(mica_device *device, uint32_t core)
{
    return (struct fake_winsys *)device->cores.cores[core].winsys;
}

struct fake_winsys *fake_winsys_of(mica_device *device)
{
    return (struct fake_winsys *)device->opened.winsys;
}

/* ---- graphs ----------------------------------------------------------- */

static int32_t *indices(const char *letters, uint32_t *count)
{
    *count = (uint32_t)strlen(letters);
    int32_t *result = calloc(*count + 1, sizeof *result);
    for (uint32_t i = 0; i < *count; i++)
        result[i] = letters[i] == '-' ? MICA_NO_TENSOR : letters[i] - 'a';
    return result;
}

struct mica_graph *fake_graph_create(const struct fake_op *ops, uint32_t count, const char *inputs, const char *outputs,
                                     const char *constants)
{
    static const int8_t constant[4];
    struct mica_graph *graph = calloc(1, sizeof *graph);
    graph->tensor_count = 26;
    graph->tensors = calloc(graph->tensor_count, sizeof *graph->tensors);
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        graph->tensors[i] =
            (struct mica_tensor){.name = "t", .type = MICA_TYPE_INT8, .rank = 1, .dims = {4}, .bytes = 4};
    for (; *constants; constants++)
        graph->tensors[*constants - 'a'].data = constant;
    graph->op_count = count;
    graph->ops = calloc(count + 1, sizeof *graph->ops);
    for (uint32_t i = 0; i < count; i++) {
        graph->ops[i].kind = ops[i].npu ? MICA_OP_RESHAPE : MICA_OP_SOFTMAX;
        graph->ops[i].type = ops[i].npu ? "RESHAPE" : "SOFTMAX";
        graph->ops[i].inputs = indices(ops[i].inputs, &graph->ops[i].input_count);
        graph->ops[i].outputs = indices(ops[i].outputs, &graph->ops[i].output_count);
    }
    graph->inputs = indices(inputs, &graph->input_count);
    graph->outputs = indices(outputs, &graph->output_count);
    return graph;
}

void fake_graph_destroy(struct mica_graph *graph)
{
    for (uint32_t i = 0; i < graph->op_count; i++) {
        free((void *)graph->ops[i].inputs);
        free((void *)graph->ops[i].outputs);
    }
    free((void *)graph->inputs);
    free((void *)graph->outputs);
    free(graph->ops);
    free(graph->tensors);
    free(graph);
}
