/* SPDX-License-Identifier: MIT */
#include "build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void put(struct pb *pb, const void *data, size_t size)
{
    assert_true(size <= sizeof pb->data - pb->size);
    if (size)
        memcpy(pb->data + pb->size, data, size);
    pb->size += size;
}

static void number(struct pb *pb, uint64_t value)
{
    do {
        uint8_t byte = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        put(pb, &byte, 1);
        value >>= 7;
    } while (value);
}

void pb_varint(struct pb *pb, uint32_t field, uint64_t value)
{
    number(pb, (uint64_t)field << 3);
    number(pb, value);
}

void pb_float(struct pb *pb, uint32_t field, float value)
{
    number(pb, (uint64_t)field << 3 | 5);
    put(pb, &value, sizeof value);
}

void pb_bytes(struct pb *pb, uint32_t field, const void *data, size_t size)
{
    number(pb, (uint64_t)field << 3 | 2);
    number(pb, size);
    put(pb, data, size);
}

void pb_text(struct pb *pb, uint32_t field, const char *text)
{
    pb_bytes(pb, field, text, strlen(text));
}

void pb_message(struct pb *pb, uint32_t field, const struct pb *inner)
{
    pb_bytes(pb, field, inner->data, inner->size);
}

void pb_value(struct pb *graph, uint32_t field, const char *name, int type, size_t rank, const int64_t *dims)
{
    struct pb shape = {0}, tensor = {0}, outer = {0}, value = {0};
    for (size_t i = 0; i < rank; i++) {
        struct pb dim = {0};
        pb_varint(&dim, 1, (uint64_t)dims[i]);
        pb_message(&shape, 1, &dim);
    }
    pb_varint(&tensor, 1, (uint64_t)type);
    pb_message(&tensor, 2, &shape);
    pb_message(&outer, 1, &tensor);
    pb_text(&value, 1, name);
    pb_message(&value, 2, &outer);
    pb_message(graph, field, &value);
}

void pb_tensor(struct pb *graph, const char *name, int type, size_t rank, const int64_t *dims, const void *data,
               size_t size)
{
    struct pb tensor = {0};
    for (size_t i = 0; i < rank; i++)
        pb_varint(&tensor, 1, (uint64_t)dims[i]);
    pb_varint(&tensor, 2, (uint64_t)type);
    pb_text(&tensor, 8, name);
    pb_bytes(&tensor, 9, data, size);
    pb_message(graph, 5, &tensor);
}

static void names(struct pb *node, uint32_t field, const char *list)
{
    while (*list) {
        size_t length = strcspn(list, " ");
        pb_bytes(node, field, list, length == 1 && *list == '-' ? 0 : length); /* "-": absent */
        list += length + (list[length] == ' ');
    }
}

void pb_node(struct pb *graph, const char *type, const char *inputs, const char *outputs, const struct pb *attributes)
{
    struct pb node = {0};
    names(&node, 1, inputs);
    names(&node, 2, outputs);
    pb_text(&node, 4, type);
    if (attributes)
        put(&node, attributes->data, attributes->size);
    pb_message(graph, 1, &node);
}

void pb_int(struct pb *attributes, const char *name, int64_t value)
{
    struct pb attribute = {0};
    pb_text(&attribute, 1, name);
    pb_varint(&attribute, 3, (uint64_t)value);
    pb_message(attributes, 5, &attribute);
}

void pb_ints(struct pb *attributes, const char *name, size_t count, const int64_t *values)
{
    struct pb attribute = {0};
    pb_text(&attribute, 1, name);
    for (size_t i = 0; i < count; i++)
        pb_varint(&attribute, 8, (uint64_t)values[i]);
    pb_message(attributes, 5, &attribute);
}

void pb_string(struct pb *attributes, const char *name, const char *value)
{
    struct pb attribute = {0};
    pb_text(&attribute, 1, name);
    pb_text(&attribute, 4, value);
    pb_message(attributes, 5, &attribute);
}

uint8_t *pb_model(const struct pb *graph, size_t *size)
{
    struct pb model = {0}, opset = {0};
    void *data;
    pb_varint(&opset, 2, 17);
    pb_varint(&model, 1, 8);
    pb_message(&model, 7, graph);
    pb_message(&model, 8, &opset);
    assert_int_equal(posix_memalign(&data, 16, model.size), 0);
    memcpy(data, model.data, model.size);
    *size = model.size;
    return data;
}

/* ---- the network ------------------------------------------------------ */

static void scale(struct pb *graph, const char *name, float value)
{
    pb_tensor(graph, name, 1, 0, NULL, &value, sizeof value);
}

static void quantize(struct pb *graph, const char *from, const char *codes, const char *real)
{
    char inputs[64];
    strcat(strcpy(inputs, from), " s z");
    pb_node(graph, "QuantizeLinear", inputs, codes, NULL);
    strcat(strcpy(inputs, codes), " s z");
    pb_node(graph, "DequantizeLinear", inputs, real, NULL);
}

static void constants(struct pb *graph)
{
    static const int8_t weights[6 * 3 * 3 * 3] = {5, -7, 100, 3, -128, 127, 9};
    static const int8_t deep[6 * 3 * 3] = {20, -30, 40, 50, -60};
    static const int32_t bias[6] = {100, -200, 300, 0, 5, 6};
    static const int64_t flat[2] = {1, -1};
    static const float twice[4] = {1, 1, 2, 2}, steps[6] = {0.01f, 0.02f, 0.03f, 0.01f, 0.01f, 0.02f};
    static const int8_t dense[4 * 192] = {1, 2, 3, -4};
    const int8_t zero_point = 3, zeros[6] = {0};
    pb_tensor(graph, "w", 3, 4, (const int64_t[]){6, 3, 3, 3}, weights, sizeof weights);
    pb_tensor(graph, "d", 3, 4, (const int64_t[]){6, 1, 3, 3}, deep, sizeof deep);
    pb_tensor(graph, "b", 6, 1, (const int64_t[]){6}, bias, sizeof bias);
    pb_tensor(graph, "f", 7, 1, (const int64_t[]){2}, flat, sizeof flat);
    pb_tensor(graph, "t", 1, 1, (const int64_t[]){4}, twice, sizeof twice);
    pb_tensor(graph, "ws", 1, 1, (const int64_t[]){6}, steps, sizeof steps);
    pb_tensor(graph, "wz", 3, 1, (const int64_t[]){6}, zeros, sizeof zeros);
    pb_tensor(graph, "m", 3, 2, (const int64_t[]){4, 192}, dense, sizeof dense);
    pb_tensor(graph, "z", 3, 0, NULL, &zero_point, 1);
    pb_tensor(graph, "n", 3, 0, NULL, zeros, 1);
    scale(graph, "s", 0.05f);
}

void pb_network(struct pb *graph, bool mystery)
{
    struct pb conv = {0}, deep = {0}, pool = {0}, axis = {0}, turned = {0}, zero = {0};
    pb_ints(&conv, "strides", 2, (const int64_t[]){2, 2});
    pb_ints(&conv, "pads", 4, (const int64_t[]){1, 1, 1, 1});
    pb_int(&deep, "group", 6);
    pb_string(&deep, "auto_pad", "SAME_UPPER");
    pb_ints(&pool, "kernel_shape", 2, (const int64_t[]){2, 2});
    pb_ints(&pool, "strides", 2, (const int64_t[]){2, 2});
    pb_int(&axis, "axis", 1);
    pb_int(&turned, "transB", 1);
    pb_int(&zero, "axis", 0);
    pb_node(graph, "QuantizeLinear", "x s z", "q", NULL);
    pb_node(graph, "QLinearConv", "q s z w ws wz s z b", "c", &conv);
    pb_node(graph, "DequantizeLinear", "c s z", "cr", NULL);
    pb_node(graph, "DequantizeLinear", "d s n", "dr", NULL);
    pb_node(graph, "Conv", "cr dr", "e", &deep);
    pb_node(graph, "Relu", "e", "er", NULL);
    quantize(graph, "er", "eq", "ed");
    pb_node(graph, "Add", "ed cr", "a", NULL);
    quantize(graph, "a", "aq", "ad");
    pb_node(graph, "MaxPool", "ad", "p", &pool);
    pb_node(graph, "Resize", "p - t", "r", NULL);
    pb_node(graph, "Concat", "r ad", "k", &axis);
    quantize(graph, "k", "kq", "kd");
    pb_node(graph, "AveragePool", "kd", "v", &pool);
    quantize(graph, "v", "vq", "vd");
    pb_node(graph, "Sigmoid", "vd", "g", NULL);
    quantize(graph, "g", "gq", "gd");
    pb_node(graph, "Reshape", "gd f", "l", NULL);
    pb_node(graph, "DequantizeLinear", "m s n", "mr", &zero);
    pb_node(graph, "Gemm", "l mr", "y", &turned);
    quantize(graph, "y", "yq", "yd");
    pb_node(graph, "Softmax", "yd", "out", NULL);
    if (mystery)
        pb_node(graph, "Mystery", "kq", "who", NULL);
    constants(graph);
    pb_value(graph, 11, "x", 1, 4, (const int64_t[]){1, 3, 16, 16});
    pb_value(graph, 12, "out", 1, 2, (const int64_t[]){1, 4});
}
