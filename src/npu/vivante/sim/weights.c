/* SPDX-License-Identifier: MIT */
#include "npu/vivante/sim/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "npu/vivante/sim/kernels.h"
#include "util/checked.h"

/* The cache forgets what was not used for longest beyond this. */
#define CACHE_BYTES ((size_t)256 << 20)
/* Lists of taps pay below this share of weights that aren't zero: dense() does four multiplications for one of
 * sparse(). */
#define SPARSE_DENSITY 0.25

struct viv_weights_entry {
    struct viv_weights_entry *older;
    struct viv_weights_source source;
    XXH128_hash_t hash;
    struct viv_weights weights;
};

static void release(struct viv_weights *weights)
{
    free(weights->bias);
    free(weights->offset);
    free(weights->values);
    free(weights->places);
    free(weights->first);
}

static size_t dense_pairs(uint32_t taps)
{
    return ((size_t)taps + 1) / 2;
}

static bool make_dense(struct viv_weights *weights, const struct viv_coefs *coefs, int zero_point)
{
    size_t pairs = dense_pairs(coefs->taps), groups = mica_cdiv(coefs->kernels, VIV_ROWS);
    size_t count = groups * pairs * VIV_ROWS * 2;
    weights->values = mica_new_array(count, sizeof *weights->values);
    if (!weights->values)
        return false;
    weights->bytes += count * sizeof *weights->values;
    for (uint32_t kernel = 0; kernel < coefs->kernels; kernel++) {
        int16_t *group = weights->values + kernel / VIV_ROWS * pairs * VIV_ROWS * 2;
        const uint8_t *source = coefs->weights + (size_t)kernel * coefs->taps;
        for (uint32_t tap = 0; tap < coefs->taps; tap++)
            group[(tap / 2 * VIV_ROWS + kernel % VIV_ROWS) * 2 + tap % 2] = (int16_t)(source[tap] - zero_point);
    }
    return true;
}

/* `stride`: places from one kernel's first tap to the next kernel's. */
static bool make_sparse(struct viv_weights *weights, const struct viv_coefs *coefs, int zero_point, uint32_t stride)
{
    size_t most = (size_t)coefs->nonzero + coefs->kernels; /* each kernel may need one to make its pairs even */
    weights->values = mica_new_array(most, sizeof *weights->values);
    weights->places = mica_new_array(most, sizeof *weights->places);
    weights->first = mica_new_array((size_t)coefs->kernels + 1, sizeof *weights->first);
    if (!weights->values || !weights->places || !weights->first)
        return false;
    weights->bytes += most * (sizeof *weights->values + sizeof *weights->places) + coefs->kernels * sizeof(size_t);
    size_t n = 0;
    for (uint32_t kernel = 0; kernel < coefs->kernels; kernel++) {
        const uint8_t *source = coefs->weights + (size_t)kernel * coefs->taps;
        weights->first[kernel] = n / 2;
        for (uint32_t tap = 0; tap < coefs->taps; tap++) {
            if (source[tap] == zero_point)
                continue;
            weights->places[n] = kernel * stride + tap;
            weights->values[n++] = (int16_t)(source[tap] - zero_point);
        }
        if (n % 2) {
            weights->places[n] = weights->places[n - 1];
            weights->values[n++] = 0;
        }
    }
    weights->first[coefs->kernels] = n / 2;
    return true;
}

/*
 * Some chips subtract a constant from every input (specification, section 6.1). As sums wrap, that is a change of the
 * bias.
 */
static void fold_input_zero(struct viv_coefs *coefs, const struct viv_huffman_shape *shape)
{
    if (!shape->chip->bias_input_zero)
        return;
    for (uint32_t kernel = 0; kernel < coefs->kernels; kernel++) {
        const uint8_t *source = coefs->weights + (size_t)kernel * coefs->taps;
        uint32_t sum = 0;
        for (uint32_t tap = 0; tap < coefs->taps; tap++)
            sum += (uint32_t)source[tap] - shape->zero_point;
        coefs->bias[kernel] -= sum * shape->chip->bias_input_zero;
    }
}

/* Takes bias and offset over from `coefs`. */
static bool make_weights(struct viv_weights *weights, struct viv_coefs *coefs, const struct viv_huffman_shape *shape)
{
    fold_input_zero(coefs, shape);
    weights->kernels = coefs->kernels;
    /* Depthwise, each kernel looks at its own channel only. */
    weights->taps = shape->depthwise ? coefs->taps * coefs->kernels : coefs->taps;
    weights->stream_bytes = coefs->stream_bytes;
    weights->density = (double)coefs->nonzero / ((double)coefs->kernels * coefs->taps);
    weights->bias = coefs->bias;
    weights->offset = coefs->offset;
    weights->bytes = 2 * sizeof(uint32_t) * coefs->kernels;
    coefs->bias = coefs->offset = NULL;
    if (shape->depthwise)
        return make_sparse(weights, coefs, shape->zero_point, coefs->taps);
    return weights->density < SPARSE_DENSITY ? make_sparse(weights, coefs, shape->zero_point, 0)
                                             : make_dense(weights, coefs, shape->zero_point);
}

static void drop(struct viv_weights_cache *cache, struct viv_weights_entry **link)
{
    struct viv_weights_entry *entry = *link;
    *link = entry->older;
    cache->bytes -= entry->weights.bytes;
    release(&entry->weights);
    free(entry);
}

static void trim(struct viv_weights_cache *cache)
{
    while (cache->bytes > CACHE_BYTES && cache->newest->older) {
        struct viv_weights_entry **link = &cache->newest->older;
        while ((*link)->older)
            link = &(*link)->older;
        drop(cache, link);
    }
}

static bool same_place(const struct viv_weights_source *s, const struct viv_weights_source *t)
{
    const struct viv_huffman_shape *a = &s->shape, *b = &t->shape;
    return s->address == t->address && s->format == t->format && a->chip == b->chip &&
           a->kernels_per_core == b->kernels_per_core && a->kernel_w == b->kernel_w && a->kernel_h == b->kernel_h &&
           a->channels == b->channels && a->depthwise == b->depthwise && a->zero_point == b->zero_point &&
           a->kernels == b->kernels && a->plane == b->plane;
}

/* Moves the wanted entry to the front; an entry of the same place with other bytes is dropped. */
static struct viv_weights_entry *find(struct viv_weights_cache *cache, const struct viv_weights_entry *wanted)
{
    for (struct viv_weights_entry **link = &cache->newest; *link; link = &(*link)->older) {
        struct viv_weights_entry *entry = *link;
        if (!same_place(&entry->source, &wanted->source))
            continue;
        if (entry->source.size != wanted->source.size || !XXH128_isEqual(entry->hash, wanted->hash)) {
            drop(cache, link);
            return NULL;
        }
        *link = entry->older;
        entry->older = cache->newest;
        cache->newest = entry;
        return entry;
    }
    return NULL;
}

size_t viv_weights_header_bytes(const struct viv_weights_source *source)
{
    return source->format == VIV_COEF_V7 ? viv_coef_v7_header_bytes(source->shape.chip->nn_cores)
                                         : VIV_HUFFMAN_HEADER_BYTES;
}

int viv_weights_size(const struct viv_weights_source *source, const uint8_t *header, struct mica_log *log,
                     uint64_t *size)
{
    if (source->format == VIV_COEF_V7)
        return viv_coef_v7_size(header, source->shape.chip->nn_cores, source->address, log, size);
    return viv_coef_huffman_size(header, &source->shape, source->address, log, size);
}

static int decode_v7(const struct viv_weights_source *source, const uint8_t *buffer, struct mica_threads *threads,
                     struct mica_log *log, struct viv_coefs *coefs)
{
    const struct viv_coef_shape shape = {
        .cores = source->shape.chip->nn_cores,
        .kernels_per_core = source->shape.kernels_per_core,
        .kernel_w = source->shape.kernel_w,
        .kernel_h = source->shape.kernel_h,
        .channels = source->shape.channels,
        .zero_run_bits = source->shape.chip->zero_run_bits,
        .zero_point = source->shape.zero_point,
    };
    return viv_coef_v7_decode(buffer, source->size, &shape, source->address, threads, log, coefs);
}

static int decode(struct viv_weights_entry *entry, const uint8_t *buffer, struct mica_threads *threads,
                  struct mica_log *log)
{
    const struct viv_weights_source *source = &entry->source;
    struct viv_coefs coefs;
    int result = source->format == VIV_COEF_V7 ? decode_v7(source, buffer, threads, log, &coefs)
                                               : viv_coef_huffman_decode(buffer, source->size, &source->shape,
                                                                         source->address, threads, log, &coefs);
    if (result)
        return result;
    if (!make_weights(&entry->weights, &coefs, &source->shape))
        result = mica_fail_nomem(log);
    viv_coefs_release(&coefs);
    return result;
}

int viv_weights_get(struct viv_weights_cache *cache, const uint8_t *buffer, const struct viv_weights_source *source,
                    struct mica_threads *threads, struct mica_log *log, const struct viv_weights **weights)
{
    struct viv_weights_entry wanted = {.source = *source, .hash = XXH3_128bits(buffer, source->size)};
    struct viv_weights_entry *entry = find(cache, &wanted);
    if (!entry) {
        entry = malloc(sizeof *entry);
        if (!entry)
            return mica_fail_nomem(log);
        *entry = wanted;
        int result = decode(entry, buffer, threads, log);
        if (result) {
            release(&entry->weights);
            free(entry);
            return result;
        }
        entry->older = cache->newest;
        cache->newest = entry;
        cache->bytes += entry->weights.bytes + sizeof *entry;
        entry->weights.bytes += sizeof *entry;
        trim(cache);
    }
    *weights = &entry->weights;
    return 0;
}

void viv_weights_cache_clear(struct viv_weights_cache *cache)
{
    while (cache->newest)
        drop(cache, &cache->newest);
}
