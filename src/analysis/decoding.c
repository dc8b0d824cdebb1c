/* SPDX-License-Identifier: MIT */
#include "analysis/decoding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/program.h"
#include "npu/rockchip/decode/decode.h"
#include "npu/vivante/decode/decode.h"

#define CHUNK_BYTES 65536u

struct mica_decoding_chunk {
    struct mica_decoding_chunk *next;
    size_t used, size;
    char bytes[];
};

/* ---- strings ------------------------------------------------------------------------ */

static struct mica_decoding_chunk *chunk_for(struct mica_decoding *decoding, size_t size)
{
    struct mica_decoding_chunk *chunk = decoding->chunks;
    if (chunk && size <= chunk->size - chunk->used)
        return chunk;
    size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
    chunk = malloc(sizeof *chunk + room);
    if (!chunk)
        return NULL;
    *chunk = (struct mica_decoding_chunk){.next = decoding->chunks, .size = room};
    decoding->chunks = chunk;
    return chunk;
}

const char *mica_decoding_keep(struct mica_decoding *decoding, const char *text)
{
    if (!text)
        return NULL;
    size_t size = strlen(text) + 1;
    struct mica_decoding_chunk *chunk = chunk_for(decoding, size);
    if (!chunk) {
        decoding->failed = true;
        return NULL;
    }
    char *copy = memcpy(chunk->bytes + chunk->used, text, size);
    chunk->used += size;
    return copy;
}

void mica_decoding_release(struct mica_decoding *decoding)
{
    while (decoding->chunks) {
        struct mica_decoding_chunk *next = decoding->chunks->next;
        free(decoding->chunks);
        decoding->chunks = next;
    }
    free(decoding->items);
    *decoding = (struct mica_decoding){0};
}

/* ---- the sink ------------------------------------------------------------------------- */

static struct mica_decoding_item *new_item(struct mica_decoding *decoding)
{
    if (decoding->count == MICA_DECODING_MOST_ITEMS) {
        decoding->full = true;
        return NULL;
    }
    if (decoding->count == decoding->capacity) {
        size_t capacity = decoding->capacity ? 2 * decoding->capacity : 256;
        struct mica_decoding_item *grown = realloc(decoding->items, capacity * sizeof *grown);
        if (!grown) {
            decoding->failed = true;
            return NULL;
        }
        decoding->items = grown;
        decoding->capacity = capacity;
    }
    return &decoding->items[decoding->count++];
}

static void on_open(void *user, const char *kind, uint64_t address, const char *title)
{
    struct mica_decoding *decoding = user;
    struct mica_decoding_item *item = new_item(decoding);
    if (item)
        *item = (struct mica_decoding_item){
            .group = true,
            .depth = decoding->depth,
            .name = mica_decoding_keep(decoding, kind),
            .text = mica_decoding_keep(decoding, title),
            .value = address,
        };
    decoding->depth++;
}

static void on_field(void *user, const struct mica_decoded *field)
{
    struct mica_decoding *decoding = user;
    struct mica_decoding_item *item = new_item(decoding);
    decoding->unknown += field->unknown;
    if (item)
        *item = (struct mica_decoding_item){
            .depth = decoding->depth,
            .name = mica_decoding_keep(decoding, field->name),
            .text = mica_decoding_keep(decoding, field->text),
            .meaning = mica_decoding_keep(decoding, field->meaning),
            .value = field->value,
            .is_signed = field->is_signed,
            .unknown = field->unknown,
            .idle = field->idle,
        };
}

static void on_close(void *user)
{
    struct mica_decoding *decoding = user;
    decoding->depth--;
}

/* ---- the decoders ----------------------------------------------------------------------- */

struct reach {
    struct mica_decoding *decoding;
    const struct mica_device_memory *memory;
};

/*
 * Nothing is there any more once enough was said: jobs of a hostile stream may all point at the same large buffer,
 * and what isn't there is passed over quickly.
 */
static const void *at(void *user, uint64_t address, uint64_t size)
{
    struct reach *reach = user;
    struct mica_decoding *decoding = reach->decoding;
    uint64_t fault;
    const void *host = mica_device_at(reach->memory, address, size, MICA_ACCESS_READ, &fault);
    if (!host)
        return NULL;
    if (decoding->full || decoding->failed || size > MICA_DECODING_MOST_BYTES - decoding->bytes) {
        decoding->full = true;
        return NULL;
    }
    decoding->bytes += size;
    return host;
}

static enum rk_generation generation_of(const struct mica_chip *chip)
{
    return strncmp(chip->name, "rk356", 5) ? RK_GENERATION_RK3588 : RK_GENERATION_RK356X;
}

static int finish(const struct mica_decoding *decoding, struct mica_log *log)
{
    return decoding->failed ? mica_fail_nomem(log) : 0;
}

int mica_decoding_submit(struct mica_decoding *decoding, const struct mica_recorded_submit *submit,
                         const struct mica_chip *chip, const struct mica_device_memory *memory, bool weights,
                         struct mica_log *log)
{
    struct reach reach = {decoding, memory};
    const struct mica_decode_memory reader = {&reach, at};
    const struct mica_decode_sink sink = {decoding, on_open, on_field, on_close};
    if (chip->family == &mica_vivante)
        viv_decode_stream(&(struct viv_decode){chip->parameters, &sink, &reader, weights}, submit->stream,
                          submit->words);
    else
        rk_decode_tasks(&(struct rk_decode){generation_of(chip), &sink, &reader}, submit->stream, submit->words);
    return finish(decoding, log);
}

int mica_decoding_raw(struct mica_decoding *decoding, const struct mica_chip *chip, const void *bytes, size_t size,
                      struct mica_log *log)
{
    const struct mica_decode_sink sink = {decoding, on_open, on_field, on_close};
    if (chip->family != &mica_vivante) {
        rk_decode_programs(&(struct rk_decode){generation_of(chip), &sink, NULL}, 0, bytes, size);
        return finish(decoding, log);
    }
    uint32_t *words = malloc(size ? size : 1); /* aligned */
    if (!words)
        return mica_fail_nomem(log);
    memcpy(words, bytes, size);
    viv_decode_stream(&(struct viv_decode){chip->parameters, &sink, NULL, false}, words, size / sizeof *words);
    free(words);
    return finish(decoding, log);
}

/* ---- coefficients by themselves ------------------------------------------------------------ */

static bool parse_number(const char *text, size_t length, uint32_t *number)
{
    uint64_t value = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || value > 100000000)
            return false;
        value = 10 * value + (uint64_t)(text[i] - '0');
    }
    *number = (uint32_t)value;
    return length > 0;
}

static bool parse_part(const char *part, size_t length, struct mica_coefficient_shape *shape)
{
    const struct {
        const char *name;
        uint32_t *number;
    } names[] = {
        {"in=", &shape->channels},     {"out=", &shape->kernels}, {"per-core=", &shape->kernels_per_core},
        {"zero=", &shape->zero_point}, {"plane=", &shape->plane},
    };
    if (length == strlen("depthwise") && !strncmp(part, "depthwise", length))
        return shape->depthwise = true;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t prefix = strlen(names[i].name);
        if (length > prefix && !strncmp(part, names[i].name, prefix))
            return parse_number(part + prefix, length - prefix, names[i].number);
    }
    const char *x = memchr(part, 'x', length);
    return x && parse_number(part, (size_t)(x - part), &shape->kernel_w) &&
           parse_number(x + 1, length - 1 - (size_t)(x - part), &shape->kernel_h);
}

int mica_coefficient_shape_parse(const char *text, struct mica_log *log, struct mica_coefficient_shape *shape)
{
    *shape = (struct mica_coefficient_shape){.channels = 1, .kernels = 1, .plane = 1};
    for (const char *part = text; *part;) {
        size_t length = strcspn(part, ",");
        if (!parse_part(part, length, shape))
            return mica_fail(log, -EINVAL,
                             "'%.*s' is no part of a coefficient buffer's shape, which is like "
                             "3x3,in=16,out=32,per-core=4,zero=128,plane=64,depthwise",
                             (int)length, part);
        part += length + (part[length] == ',');
    }
    if (!shape->kernel_w || !shape->kernel_h || !shape->channels || shape->zero_point > 255)
        return mica_fail(log, -EINVAL,
                         "a coefficient buffer's shape needs the kernel's size, as 3x3, and a zero point below 256");
    return 0;
}

int mica_decoding_coefficients(struct mica_decoding *decoding, const struct mica_chip *chip, const void *bytes,
                               size_t size, const struct mica_coefficient_shape *shape, bool weights,
                               struct mica_log *log)
{
    const struct mica_decode_sink sink = {decoding, on_open, on_field, on_close};
    if (chip->family != &mica_vivante)
        return mica_fail(log, -EINVAL, "%s has no coefficient streams: its weights are stored as they are", chip->name);
    const struct viv_chip *parameters = chip->parameters;
    uint32_t per_core = (shape->kernels + parameters->nn_cores - 1) / parameters->nn_cores;
    struct viv_huffman_shape huffman = {
        .chip = parameters,
        .kernels_per_core = shape->kernels_per_core ? shape->kernels_per_core : per_core,
        .kernel_w = shape->kernel_w,
        .kernel_h = shape->kernel_h,
        .channels = shape->channels,
        .depthwise = shape->depthwise,
        .zero_point = (uint8_t)shape->zero_point,
        .kernels = shape->kernels,
        .plane = shape->plane,
    };
    viv_decode_coefficients(&(struct viv_decode){parameters, &sink, NULL, weights}, 0, bytes, size, &huffman);
    return finish(decoding, log);
}
