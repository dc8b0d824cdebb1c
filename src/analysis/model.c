/* SPDX-License-Identifier: MIT */
/*
 * A flatbuffer of the public TensorFlow Lite format, written from its front to its back: tables first, then what they
 * refer to, so that every offset points forward as it must. Every field gets a slot of four bytes.
 */
#include "analysis/model.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOST_SIZE 4096u /* of an image's side */
#define MOST_CHANNELS 16384u
#define MOST_BYTES ((uint64_t)64 << 20)

enum { TYPE_INT32 = 2, TYPE_UINT8 = 3, TYPE_INT8 = 9 };
enum { OPERATOR_CONV_2D = 3, OPERATOR_DEPTHWISE = 4 };
enum { OPTIONS_CONV_2D = 1, OPTIONS_DEPTHWISE = 2 };
enum { INPUT, WEIGHTS, BIAS, OUTPUT, TENSORS };

#define INPUT_SCALE 0.0078125f
#define WEIGHT_SCALE 0.015625f
#define WEIGHT_SPREAD 40        /* weights are uniform in -40..40 */
#define DEVIATION (74.0 * 23.4) /* of a product: a uniform byte times such a weight */
#define OUTPUT_DEVIATION 40.0   /* in steps: outputs spread over the range and hardly saturate */

struct writer {
    uint8_t *data;
    size_t size, room;
    bool failed;
};

/* ---- flatbuffers --------------------------------------------------------------------- */

/* Zeroed room for `size` bytes at the end. */
static size_t extend(struct writer *writer, size_t size)
{
    size_t at = writer->size;
    if (!writer->failed && size > writer->room - at) {
        size_t room = 2 * writer->room + size + 1024;
        uint8_t *grown = realloc(writer->data, room);
        writer->failed = !grown;
        if (grown) {
            writer->data = grown;
            writer->room = room;
        }
    }
    if (writer->failed)
        return 0;
    memset(writer->data + at, 0, size);
    writer->size += size;
    return at;
}

static void align(struct writer *writer, size_t alignment)
{
    extend(writer, (alignment - writer->size % alignment) % alignment);
}

static void set(struct writer *writer, size_t at, uint32_t value)
{
    if (!writer->failed)
        memcpy(writer->data + at, &value, sizeof value);
}

static void set_float(struct writer *writer, size_t at, float value)
{
    if (!writer->failed)
        memcpy(writer->data + at, &value, sizeof value);
}

/* The slot refers to what comes next, which starts at a multiple of 4. */
static void refer(struct writer *writer, size_t slot)
{
    align(writer, 4);
    set(writer, slot, (uint32_t)(writer->size - slot));
}

/* A table with the fields of these ids, ended by -1: the place of the first one's slot; the others are behind. */
static size_t put_table(struct writer *writer, const int *ids)
{
    uint16_t entries[16] = {0};
    int count = 0, most = -1;
    for (; ids[count] >= 0; count++) {
        entries[2 + ids[count]] = (uint16_t)(4 + 4 * count);
        most = ids[count] > most ? ids[count] : most;
    }
    entries[0] = (uint16_t)(2 * (3 + most));
    entries[1] = (uint16_t)(4 + 4 * count);
    align(writer, 4);
    size_t vtable = extend(writer, entries[0]);
    if (!writer->failed)
        memcpy(writer->data + vtable, entries, entries[0]);
    align(writer, 4);
    size_t table = extend(writer, entries[1]);
    set(writer, table, (uint32_t)(table - vtable));
    return table + 4;
}

/* The same where `slot` refers to it: the vtable stands in between. */
static size_t put_referred(struct writer *writer, size_t slot, const int *ids)
{
    size_t first = put_table(writer, ids);
    set(writer, slot, (uint32_t)(first - 4 - slot));
    return first;
}

static size_t put_vector(struct writer *writer, size_t slot, const uint32_t *values, uint32_t count)
{
    refer(writer, slot);
    set(writer, extend(writer, 4), count);
    size_t at = extend(writer, 4 * (size_t)count);
    for (uint32_t i = 0; values && i < count; i++)
        set(writer, at + 4 * (size_t)i, values[i]);
    return at;
}

static void put_string(struct writer *writer, size_t slot, const char *text)
{
    refer(writer, slot);
    set(writer, extend(writer, 4), (uint32_t)strlen(text));
    size_t at = extend(writer, strlen(text) + 1);
    if (!writer->failed)
        memcpy(writer->data + at, text, strlen(text));
}

/* A vector whose elements start at a multiple of `alignment`. */
static size_t put_aligned(struct writer *writer, size_t slot, uint32_t count, size_t bytes, size_t alignment)
{
    align(writer, 4);
    while (!writer->failed && (writer->size + 4) % alignment)
        extend(writer, 4);
    refer(writer, slot);
    set(writer, extend(writer, 4), count);
    return extend(writer, bytes);
}

/* ---- the model ------------------------------------------------------------------------- */

struct tensor {
    const char *name;
    uint32_t dims[4], rank;
    uint32_t type, buffer;
    float scale;
    uint32_t zero_point;
};

static void put_quantization(struct writer *writer, size_t slot, const struct tensor *tensor)
{
    size_t fields = put_referred(writer, slot, (const int[]){2, 3, -1});
    size_t scale = put_vector(writer, fields, NULL, 1);
    set_float(writer, scale, tensor->scale);
    set(writer, put_aligned(writer, fields + 4, 1, 8, 8), tensor->zero_point);
}

static void put_tensor(struct writer *writer, size_t slot, const struct tensor *tensor)
{
    size_t fields = put_referred(writer, slot, (const int[]){0, 1, 2, 3, 4, -1});
    set(writer, fields + 4, tensor->type);
    set(writer, fields + 8, tensor->buffer);
    put_vector(writer, fields, tensor->dims, tensor->rank);
    put_string(writer, fields + 12, tensor->name);
    put_quantization(writer, fields + 16, tensor);
}

static void put_options(struct writer *writer, size_t slot, const struct mica_model_shape *shape)
{
    /* Depthwise ones have the multiplier where the others have the activation. */
    size_t fields = put_referred(writer, slot, (const int[]){0, 1, 2, 3, -1});
    set(writer, fields, shape->valid);
    set(writer, fields + 4, shape->stride);
    set(writer, fields + 8, shape->stride);
    set(writer, fields + 12, shape->depthwise);
}

static void put_operator(struct writer *writer, size_t slot, const struct mica_model_shape *shape)
{
    size_t list = put_vector(writer, slot, NULL, 1);
    size_t fields = put_referred(writer, list, (const int[]){1, 2, 3, 4, -1});
    set(writer, fields + 8, shape->depthwise ? OPTIONS_DEPTHWISE : OPTIONS_CONV_2D);
    put_vector(writer, fields, (const uint32_t[]){INPUT, WEIGHTS, BIAS}, 3);
    put_vector(writer, fields + 4, (const uint32_t[]){OUTPUT}, 1);
    put_options(writer, fields + 12, shape);
}

static uint32_t output_size(const struct mica_model_shape *shape, uint32_t size)
{
    return shape->valid ? (size - shape->kernel) / shape->stride + 1 : (size + shape->stride - 1) / shape->stride;
}

static void describe(const struct mica_model_shape *shape, struct tensor *tensors)
{
    uint32_t type = shape->is_signed ? TYPE_INT8 : TYPE_UINT8, zero = shape->is_signed ? 0 : 128;
    uint32_t out = shape->depthwise ? shape->in : shape->out, in = shape->depthwise ? 1 : shape->in;
    double taps = (double)shape->kernel * shape->kernel * in;
    float scale = INPUT_SCALE * WEIGHT_SCALE, wide = (float)((double)scale * DEVIATION * sqrt(taps) / OUTPUT_DEVIATION);
    tensors[INPUT] =
        (struct tensor){"input", {1, shape->height, shape->width, shape->in}, 4, type, 0, INPUT_SCALE, zero};
    tensors[WEIGHTS] =
        (struct tensor){"weights", {out, shape->kernel, shape->kernel, in}, 4, type, 1, WEIGHT_SCALE, zero};
    if (shape->depthwise) {
        tensors[WEIGHTS].dims[0] = 1;
        tensors[WEIGHTS].dims[3] = out;
    }
    tensors[BIAS] = (struct tensor){"bias", {out}, 1, TYPE_INT32, 2, scale, 0};
    tensors[OUTPUT] = (struct tensor){
        "output", {1, output_size(shape, shape->height), output_size(shape, shape->width), out}, 4, type, 0, wide,
        zero};
}

static uint32_t random_below(uint64_t *state, uint32_t bound)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((*state >> 32) % bound);
}

static void put_weights(struct writer *writer, size_t slot, const struct tensor *tensor, uint64_t *state)
{
    uint32_t bytes = tensor->dims[0] * tensor->dims[1] * tensor->dims[2] * tensor->dims[3];
    size_t fields = put_referred(writer, slot, (const int[]){0, -1});
    size_t at = put_aligned(writer, fields, bytes, bytes, 16);
    for (uint32_t i = 0; !writer->failed && i < bytes; i++)
        writer->data[at + i] =
            (uint8_t)(tensor->zero_point + random_below(state, 2 * WEIGHT_SPREAD + 1) - WEIGHT_SPREAD);
}

static void put_biases(struct writer *writer, size_t slot, const struct tensor *tensor, uint64_t *state)
{
    uint32_t bytes = 4 * tensor->dims[0];
    size_t fields = put_referred(writer, slot, (const int[]){0, -1});
    size_t at = put_aligned(writer, fields, bytes, bytes, 16);
    for (uint32_t i = 0; i < bytes; i += 4)
        set(writer, at + i, random_below(state, 4001) - 2000);
}

static void put_buffers(struct writer *writer, size_t slot, const struct mica_model_shape *shape,
                        const struct tensor *tensors)
{
    uint64_t state = shape->seed;
    size_t list = put_vector(writer, slot, NULL, 3);
    put_referred(writer, list, (const int[]){-1});
    put_weights(writer, list + 4, &tensors[WEIGHTS], &state);
    put_biases(writer, list + 8, &tensors[BIAS], &state);
}

static void put_codes(struct writer *writer, size_t slot, const struct mica_model_shape *shape)
{
    uint32_t code = shape->depthwise ? OPERATOR_DEPTHWISE : OPERATOR_CONV_2D;
    size_t list = put_vector(writer, slot, NULL, 1);
    size_t fields = put_referred(writer, list, (const int[]){0, 2, 3, -1});
    set(writer, fields, code);
    set(writer, fields + 4, shape->is_signed ? 3 : 1); /* the versions that have the type */
    set(writer, fields + 8, code);
}

static void put_model(struct writer *writer, const struct mica_model_shape *shape)
{
    struct tensor tensors[TENSORS];
    describe(shape, tensors);
    size_t head = extend(writer, 8);
    if (!writer->failed)
        memcpy(writer->data + head + 4, "TFL3", 4);
    size_t model = put_referred(writer, head, (const int[]){0, 1, 2, 4, -1});
    set(writer, model, 3);
    put_codes(writer, model + 4, shape);
    size_t list = put_vector(writer, model + 8, NULL, 1);
    size_t graph = put_referred(writer, list, (const int[]){0, 1, 2, 3, -1});
    size_t slots = put_vector(writer, graph, NULL, TENSORS);
    for (size_t i = 0; i < TENSORS; i++)
        put_tensor(writer, slots + 4 * i, &tensors[i]);
    put_vector(writer, graph + 4, (const uint32_t[]){INPUT}, 1);
    put_vector(writer, graph + 8, (const uint32_t[]){OUTPUT}, 1);
    put_operator(writer, graph + 12, shape);
    put_buffers(writer, model + 12, shape, tensors);
}

static bool within(uint32_t value, uint32_t most)
{
    return value >= 1 && value <= most;
}

static int check(const struct mica_model_shape *shape, struct mica_log *log)
{
    if (!within(shape->height, MOST_SIZE) || !within(shape->width, MOST_SIZE) || !within(shape->kernel, 64) ||
        !within(shape->stride, 64) || !within(shape->in, MOST_CHANNELS) || !within(shape->out, MOST_CHANNELS))
        return mica_fail(log, -EINVAL,
                         "a model has sizes from 1 to %u, kernels and strides from 1 to 64, channels from 1 to %u",
                         MOST_SIZE, MOST_CHANNELS);
    if (shape->valid && (shape->kernel > shape->height || shape->kernel > shape->width))
        return mica_fail(log, -EINVAL, "a kernel of %u doesn't fit into an image of %ux%u without padding",
                         shape->kernel, shape->width, shape->height);
    if ((uint64_t)shape->kernel * shape->kernel * shape->in * (shape->depthwise ? 1 : shape->out) > MOST_BYTES)
        return mica_fail(log, -EINVAL, "a model's weights take 64 MiB at most");
    return 0;
}

int mica_model_write(const struct mica_model_shape *shape, struct mica_log *log, uint8_t **data, size_t *size)
{
    struct writer writer = {0};
    int error = check(shape, log);
    if (error)
        return error;
    put_model(&writer, shape);
    if (writer.failed) {
        free(writer.data);
        return mica_fail_nomem(log);
    }
    *data = writer.data;
    *size = writer.size;
    return 0;
}
