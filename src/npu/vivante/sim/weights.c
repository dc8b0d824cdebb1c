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
    uint64_t address, size;
    struct viv_coef_shape shape;
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

static bool make_sparse(struct viv_weights *weights, const struct viv_coefs *coefs, int zero_point)
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
            weights->places[n] = tap;
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

/* Takes bias and offset over from `coefs`. */
static bool make_weights(struct viv_weights *weights, struct viv_coefs *coefs, int zero_point)
{
    weights->kernels = coefs->kernels;
    weights->taps = coefs->taps;
    weights->stream_bytes = coefs->stream_bytes;
    weights->density = (double)coefs->nonzero / ((double)coefs->kernels * coefs->taps);
    weights->bias = coefs->bias;
    weights->offset = coefs->offset;
    weights->bytes = 2 * sizeof(uint32_t) * coefs->kernels;
    coefs->bias = coefs->offset = NULL;
    return weights->density < SPARSE_DENSITY ? make_sparse(weights, coefs, zero_point)
                                             : make_dense(weights, coefs, zero_point);
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

static bool same_shape(const struct viv_coef_shape *a, const struct viv_coef_shape *b)
{
    return a->cores == b->cores && a->kernels_per_core == b->kernels_per_core && a->kernel_w == b->kernel_w &&
           a->kernel_h == b->kernel_h && a->channels == b->channels && a->zero_run_bits == b->zero_run_bits &&
           a->zero_point == b->zero_point;
}

/* Moves the wanted entry to the front; an entry of the same place with other bytes is dropped. */
static struct viv_weights_entry *find(struct viv_weights_cache *cache, const struct viv_weights_entry *wanted)
{
    for (struct viv_weights_entry **link = &cache->newest; *link; link = &(*link)->older) {
        struct viv_weights_entry *entry = *link;
        if (entry->address != wanted->address || !same_shape(&entry->shape, &wanted->shape))
            continue;
        if (entry->size != wanted->size || !XXH128_isEqual(entry->hash, wanted->hash)) {
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

static int decode(struct viv_weights_entry *entry, const uint8_t *buffer, struct mica_threads *threads,
                  struct mica_log *log)
{
    struct viv_coefs coefs;
    int result = viv_coef_v7_decode(buffer, entry->size, &entry->shape, entry->address, threads, log, &coefs);
    if (result)
        return result;
    if (!make_weights(&entry->weights, &coefs, entry->shape.zero_point))
        result = mica_fail_nomem(log);
    viv_coefs_release(&coefs);
    return result;
}

int viv_weights_get(struct viv_weights_cache *cache, const uint8_t *buffer, uint64_t size, uint64_t address,
                    const struct viv_coef_shape *shape, struct mica_threads *threads, struct mica_log *log,
                    const struct viv_weights **weights)
{
    struct viv_weights_entry wanted = {.address = address, .size = size, .shape = *shape};
    wanted.hash = XXH3_128bits(buffer, size);
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
