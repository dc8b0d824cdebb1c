/* SPDX-License-Identifier: MIT */
#include "rig.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"

void rig_open(struct rig *rig, const struct mica_chip *chip, uint64_t seed)
{
    memset(rig, 0, sizeof(*rig));
    rig->chip = chip;
    rig->random.state = seed * UINT64_C(7919);
    net_open(&rig->net);
    rig->type = random_below(&rig->random, 2) ? MICA_TYPE_UINT8 : MICA_TYPE_INT8;
}

void rig_close(struct rig *rig)
{
    net_close(&rig->net);
    for (uint32_t i = 0; i < RIG_TENSORS; i++)
        free(rig->data[i]);
}

int32_t rig_between(struct rig *rig, int32_t low, int32_t high)
{
    return random_between(&rig->random, low, high);
}

int32_t rig_channels(struct rig *rig)
{
    static const int32_t sizes[] = {1, 2, 3, 5, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 40, 48, 63, 64, 65, 70};
    return sizes[random_below(&rig->random, sizeof(sizes) / sizeof(sizes[0]))];
}

struct spec rig_spec(struct rig *rig, double scale, uint32_t rank, int32_t a, int32_t b, int32_t c, int32_t d)
{
    int32_t zero = rig_between(rig, 0, 3) ? rig_between(rig, 0, 255) : rig_between(rig, 0, 2) * 255 / 2;
    struct spec spec = {.type = rig->type, .rank = rank, .dims = {a, b, c, d}};
    spec.scale = (float)(scale * exp2(rig_between(rig, -1000, 1000) / 1000.0));
    spec.zero_point = rig->type == MICA_TYPE_INT8 ? zero - 128 : zero;
    return spec;
}

struct spec rig_image(struct rig *rig, double scale, int32_t h, int32_t w, int32_t c)
{
    return rig_spec(rig, scale, 4, 1, h, w, c);
}

static size_t size_of(const struct spec *spec)
{
    size_t size = 1;
    for (uint32_t i = 0; i < spec->rank; i++)
        size *= (size_t)spec->dims[i];
    return size;
}

static int32_t keep(struct rig *rig, int32_t tensor, size_t size)
{
    assert_true(tensor < RIG_TENSORS);
    rig->data[tensor] = malloc(size);
    assert_non_null(rig->data[tensor]);
    random_bytes(&rig->random, rig->data[tensor], size);
    return tensor;
}

int32_t rig_input(struct rig *rig, const struct spec *spec)
{
    int32_t tensor = net_tensor(&rig->net, spec, NULL);
    rig->inputs[rig->input_count++] = tensor;
    return keep(rig, tensor, size_of(spec));
}

int32_t rig_constant(struct rig *rig, const struct spec *spec)
{
    size_t size = size_of(spec);
    uint8_t *data = malloc(size);
    assert_non_null(data);
    random_bytes(&rig->random, data, size);
    int32_t tensor = keep(rig, net_tensor(&rig->net, spec, data), size);
    memcpy(rig->data[tensor], data, size);
    free(data);
    return tensor;
}

int32_t rig_numbers(struct rig *rig, const int32_t *values, int32_t count)
{
    struct spec spec = {.type = MICA_TYPE_INT32, .rank = 1, .dims = {count}};
    return net_tensor(&rig->net, &spec, values);
}

int32_t rig_output(struct rig *rig, const struct spec *spec)
{
    int32_t tensor = net_tensor(&rig->net, spec, NULL);
    rig->outputs[rig->output_count++] = tensor;
    return keep(rig, tensor, size_of(spec));
}

void rig_op(struct rig *rig, struct mica_op op, const char *type, const int32_t *inputs, uint32_t input_count,
            const int32_t *outputs, uint32_t output_count)
{
    op.type = type;
    op.inputs = inputs;
    op.input_count = input_count;
    op.outputs = outputs;
    op.output_count = output_count;
    assert_int_equal(mica_graph_add_op(rig->net.graph, &op, &rig->net.log), 0);
    const struct mica_op *added = &rig->net.graph->ops[rig->net.graph->op_count - 1];
    if (added->problem)
        fail_msg("the test made a bad %s: %s", type, added->problem);
}

bool rig_run(struct rig *rig)
{
    const struct mica_npu_family *family = rig->chip->family;
    struct mica_partition partition;
    struct mica_program *program;
    for (uint32_t i = 0; i < rig->net.graph->op_count; i++)
        if (family->supports(rig->chip, rig->net.graph, i, rig->reason, sizeof(rig->reason))) {
            assert_true(rig->reason[0]);
            return false;
        }
    partition_init(&partition, &rig->net, rig->inputs, rig->input_count, rig->outputs, rig->output_count);
    struct mica_compile_options options = {.split = random_below(&rig->random, 4), .fuse = rig->fuse};
    if (family->compile(rig->chip, &partition, &options, NULL, &rig->net.log, &program))
        fail_msg("%s", rig->net.log.last_error);
    board_run(rig->chip, program, rig->data, random_below(&rig->random, 2));
    rig->tasks = program->job_count;
    rig->fused = true;
    for (uint32_t i = 0; i < program->job_count; i++)
        rig->fused &= program->jobs[i].op + 1 != rig->net.graph->op_count;
    mica_program_destroy(program);
    partition_finish(&partition);
    return true;
}

static const struct mica_tensor *tensor_of(const struct rig *rig, int32_t tensor)
{
    return &rig->net.graph->tensors[tensor];
}

int32_t rig_value(const struct rig *rig, int32_t tensor, size_t i)
{
    assert_true(i < tensor_of(rig, tensor)->bytes);
    uint8_t byte = rig->data[tensor][i];
    return tensor_of(rig, tensor)->type == MICA_TYPE_INT8 ? (int8_t)byte : byte;
}

static size_t index_of(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c)
{
    const struct mica_tensor *t = tensor_of(rig, tensor);
    int32_t channels = t->dims[t->rank - 1], columns = t->rank > 1 ? t->dims[t->rank - 2] : 1;
    return ((size_t)y * (size_t)columns + (size_t)x) * (size_t)channels + (size_t)c;
}

int32_t rig_pixel(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c)
{
    return rig_value(rig, tensor, index_of(rig, tensor, y, x, c));
}

double rig_real(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c)
{
    const struct mica_tensor *t = tensor_of(rig, tensor);
    return (double)t->quant.scale[0] * (rig_pixel(rig, tensor, y, x, c) - t->quant.zero_point[0]);
}

void rig_check(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c, double real, double distance)
{
    const struct mica_tensor *t = tensor_of(rig, tensor);
    double low = t->type == MICA_TYPE_INT8 ? -128 : 0;
    double steps = real / (double)t->quant.scale[0] + t->quant.zero_point[0];
    steps = steps < low ? low : steps > low + 255 ? low + 255 : steps;
    int32_t got = rig_pixel(rig, tensor, y, x, c);
    if (fabs(got - steps) > distance)
        fail_msg("row %d column %d channel %d of tensor %d: %d instead of %.3f", y, x, c, tensor, got, steps);
}

void rig_equal(const struct rig *rig, int32_t tensor, int32_t y, int32_t x, int32_t c, int32_t value)
{
    int32_t got = rig_pixel(rig, tensor, y, x, c);
    if (got != value)
        fail_msg("row %d column %d channel %d of tensor %d: %d instead of %d", y, x, c, tensor, got, value);
}

void rig_check_cpu(struct rig *rig, int32_t output)
{
    struct mica_cpu_options options = {.arithmetic = rig->chip == &test_rk3588 ? MICA_ARITHMETIC_ROCKCHIP
                                                                               : MICA_ARITHMETIC_ROCKCHIP_RK356X};
    void *values[RIG_TENSORS];
    size_t size = tensor_of(rig, output)->bytes;
    for (uint32_t i = 0; i < rig->net.graph->tensor_count; i++)
        values[i] = rig->data[i] ? rig->data[i] : (void *)rig->net.graph->tensors[i].data;
    values[output] = malloc(size);
    assert_non_null(values[output]);
    if (mica_cpu_run(rig->net.graph, 0, values, &options, &rig->net.log))
        fail_msg("%s", rig->net.log.last_error);
    for (size_t i = 0; i < size; i++)
        if (((uint8_t *)values[output])[i] != rig->data[output][i])
            fail_msg("byte %zu: %u instead of %u", i, rig->data[output][i], ((uint8_t *)values[output])[i]);
    free(values[output]);
}
