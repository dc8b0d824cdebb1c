/* SPDX-License-Identifier: MIT */
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint32_t random_word(struct random *random)
{
    random->state += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = random->state;
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return (uint32_t)(z >> 32 ^ z);
}

uint32_t random_below(struct random *random, uint32_t bound)
{
    return (uint32_t)((uint64_t)random_word(random) * bound >> 32);
}

int32_t random_between(struct random *random, int32_t low, int32_t high)
{
    return low + (int32_t)random_below(random, (uint32_t)(high - low) + 1);
}

void random_bytes(struct random *random, void *data, size_t size)
{
    uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)random_word(random);
}

void net_open(struct net *net)
{
    memset(net, 0, sizeof(*net));
    assert_int_equal(mica_graph_create(&net->log, &net->graph), 0);
}

void net_close(struct net *net)
{
    mica_graph_destroy(net->graph);
    for (size_t i = 0; i < net->constant_count; i++)
        free(net->constants[i]);
    free(net->constants);
}

static const void *keep(struct net *net, const void *data, size_t size)
{
    net->constants = realloc(net->constants, (net->constant_count + 1) * sizeof(void *));
    assert_non_null(net->constants);
    void *copy = malloc(size);
    assert_non_null(copy);
    net->constants[net->constant_count++] = copy;
    return memcpy(copy, data, size);
}

int32_t net_tensor(struct net *net, const struct spec *spec, const void *data)
{
    struct mica_tensor tensor = {.name = "t", .type = spec->type, .rank = spec->rank};
    size_t size = mica_type_size(spec->type);
    int32_t zeros[8192] = {0};
    for (uint32_t i = 0; i < spec->rank; i++) {
        tensor.dims[i] = spec->dims[i];
        size *= (size_t)spec->dims[i];
    }
    if (spec->scales)
        tensor.quant =
            (struct mica_quantization){(uint32_t)spec->dims[spec->axis], spec->scales, zeros, spec->axis, 0, false};
    else if (spec->scale > 0)
        tensor.quant = (struct mica_quantization){1, &spec->scale, &spec->zero_point, 0, 0, false};
    if (data)
        tensor.data = keep(net, data, size);
    int32_t index = (int32_t)net->graph->tensor_count;
    assert_int_equal(mica_graph_add_tensor(net->graph, &tensor, &net->log), 0);
    assert_null(net->graph->tensors[index].problem);
    return index;
}

void net_op(struct net *net, struct mica_op op, const char *type, const int32_t *inputs, uint32_t input_count,
            int32_t output)
{
    op.type = type;
    op.inputs = inputs;
    op.input_count = input_count;
    op.outputs = &output;
    op.output_count = 1;
    assert_int_equal(mica_graph_add_op(net->graph, &op, &net->log), 0);
}

static uint32_t *copy_indices(const int32_t *indices, uint32_t count)
{
    uint32_t *copy = calloc(count + 1, sizeof(*copy));
    assert_non_null(copy);
    for (uint32_t i = 0; i < count; i++)
        copy[i] = (uint32_t)indices[i];
    return copy;
}

void partition_init(struct mica_partition *partition, const struct net *net, const int32_t *inputs,
                    uint32_t input_count, const int32_t *outputs, uint32_t output_count)
{
    uint32_t *ops = calloc(net->graph->op_count + 1, sizeof(*ops));
    assert_non_null(ops);
    for (uint32_t i = 0; i < net->graph->op_count; i++)
        ops[i] = i;
    *partition = (struct mica_partition){.graph = net->graph, .op_count = net->graph->op_count, .ops = ops};
    partition->input_count = input_count;
    partition->inputs = copy_indices(inputs, input_count);
    partition->output_count = output_count;
    partition->outputs = copy_indices(outputs, output_count);
}

void partition_finish(struct mica_partition *partition)
{
    free((void *)partition->ops);
    free((void *)partition->inputs);
    free((void *)partition->outputs);
}

void *file_contents(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return NULL;
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    void *data = aligned_alloc(64, (*size + 63) / 64 * 64);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *size, file), *size);
    fclose(file);
    return data;
}
