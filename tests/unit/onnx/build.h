/* SPDX-License-Identifier: MIT */
/* ONNX models in memory, field by field: also such as no exporter writes. */
#ifndef TEST_ONNX_BUILD_H
#define TEST_ONNX_BUILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message under construction; fails the test when it gets too large. */
struct pb {
    size_t size;
    uint8_t data[12000];
};

void pb_varint(struct pb *pb, uint32_t field, uint64_t value);
void pb_float(struct pb *pb, uint32_t field, float value);
void pb_bytes(struct pb *pb, uint32_t field, const void *data, size_t size);
void pb_text(struct pb *pb, uint32_t field, const char *text);
void pb_message(struct pb *pb, uint32_t field, const struct pb *inner);

/* Parts of a graph, appended to `graph`. */
void pb_value(struct pb *graph, uint32_t field, const char *name, int type, size_t rank, const int64_t *dims);
void pb_tensor(struct pb *graph, const char *name, int type, size_t rank, const int64_t *dims, const void *data,
               size_t size);
/* Names with spaces between them; `attributes` (may be NULL) has been made by pb_int() and pb_ints(). */
void pb_node(struct pb *graph, const char *type, const char *inputs, const char *outputs, const struct pb *attributes);
void pb_int(struct pb *attributes, const char *name, int64_t value);
void pb_ints(struct pb *attributes, const char *name, size_t count, const int64_t *values);
void pb_string(struct pb *attributes, const char *name, const char *value);

/* The model around a graph, 16-byte aligned, exactly that large; for free(). */
uint8_t *pb_model(const struct pb *graph, size_t *size);

/* Convolutions in both forms, a branch, pools, moves, a float end; `mystery`: and a node that nobody knows. */
void pb_network(struct pb *graph, bool mystery);

#endif
