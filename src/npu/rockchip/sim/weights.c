/* SPDX-License-Identifier: MIT */
/* Weights in the order of the kernels, kept while the memory they came from holds the same bytes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "npu/rockchip/sim/conv.h"
#include "util/checked.h"

/* The cache forgets what was not used for longest beyond this. */
#define CACHE_BYTES ((size_t)256 << 20)
/* Lanes of a group of input channels (specification, section 5). */
#define GROUP_LANES 32u

/* All that the repacked weights depend on beside the bytes. */
struct key {
    uint64_t address;
    uint32_t depthwise, merged, lanes, used_lanes, image_lanes, taps, kernel_w, kernels, group, unused;
};

struct entry {
    struct entry *older;
    struct key key;
    XXH128_hash_t hash;
    size_t bytes;
    int8_t *weights;
};

struct rk_weights_cache {
    struct entry *newest;
    size_t bytes;
};

static void drop(struct rk_weights_cache *cache, struct entry **link)
{
    struct entry *entry = *link;
    *link = entry->older;
    cache->bytes -= entry->bytes;
    free(entry->weights);
    free(entry);
}

static void trim(struct rk_weights_cache *cache)
{
    while (cache->bytes > CACHE_BYTES && cache->newest->older) {
        struct entry **link = &cache->newest->older;
        while ((*link)->older)
            link = &(*link)->older;
        drop(cache, link);
    }
}

/* Moves the wanted entry to the front; an entry of the same place with other bytes is dropped. */
static const struct entry *find(struct rk_weights_cache *cache, const struct key *key, XXH128_hash_t hash)
{
    for (struct entry **link = &cache->newest; *link; link = &(*link)->older) {
        struct entry *entry = *link;
        if (memcmp(&entry->key, key, sizeof *key))
            continue;
        if (!XXH128_isEqual(entry->hash, hash)) {
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

/* ---- orders (specification, sections 5 and 17) ------------------------------ */

/* Lanes that a direct kernel's tap has: 32 a group, the last group 16 where that is enough; pixel mode has one group.
 */
static uint32_t stored_lanes(const struct rk_conv *conv)
{
    uint32_t rest = conv->channels % GROUP_LANES;
    if (conv->depthwise || conv->packed)
        return conv->channels;
    return conv->channels - rest + (rest == 0 ? 0 : rest <= GROUP_LANES / 2 ? GROUP_LANES / 2 : GROUP_LANES);
}

static struct key key_of(const struct rk_sim *sim, const struct rk_conv *conv, const struct rk_taps *taps)
{
    return (struct key){
        .address = conv->weights,
        .depthwise = conv->depthwise,
        .merged = taps->merged,
        .lanes = stored_lanes(conv),
        .used_lanes = conv->packed ? conv->real_channels : conv->channels,
        .image_lanes = rk_image_lanes(conv),
        .taps = conv->kernel_w * conv->kernel_h,
        .kernel_w = conv->kernel_w,
        .kernels = conv->depthwise ? 1 : conv->kernels,
        .group = conv->depthwise ? sim->chip->depthwise_group : sim->chip->kernel_group,
    };
}

struct repack {
    const struct key *key;
    const struct rk_taps *taps;
    const int8_t *source;
    int8_t *out;
};

/* The first lane of group `lane` / 32 at one tap of one kernel: [kernels][lanes][taps][kernels of the group][32]. */
static size_t direct_source(const struct key *key, uint32_t kernel, uint32_t tap, uint32_t lane)
{
    uint32_t first = kernel - kernel % key->group;
    size_t count = key->kernels - first < key->group ? key->kernels - first : key->group;
    size_t width = key->lanes - lane < GROUP_LANES ? key->lanes - lane : GROUP_LANES;
    return (size_t)first * key->taps * key->lanes + count * key->taps * lane + (tap * count + kernel - first) * width;
}

/* One tap of one kernel, all lanes: `place` is the first one's among the terms of its run. */
static void repack_tap(const struct repack *repack, int8_t *out, uint32_t kernel, uint32_t tap, size_t place)
{
    const struct key *key = repack->key;
    out += kernel % RK_COLUMNS * 2;
    for (uint32_t group = 0; group < key->used_lanes; group += GROUP_LANES) {
        const int8_t *source = repack->source + direct_source(key, kernel, tap, group);
        uint32_t rest = key->used_lanes - group, count = rest < GROUP_LANES ? rest : GROUP_LANES;
        for (uint32_t lane = 0; lane < count; lane++, place++)
            out[place / 2 * 2 * RK_COLUMNS + place % 2] = source[lane];
    }
}

static void repack_direct(void *user, size_t index)
{
    const struct repack *repack = user;
    const struct key *key = repack->key;
    size_t run_bytes = repack->taps->runs.pairs * 2 * RK_COLUMNS;
    int8_t *out = repack->out + index * repack->taps->columns_bytes;
    for (uint32_t kernel = (uint32_t)index * RK_COLUMNS; kernel < key->kernels && kernel / RK_COLUMNS == index;
         kernel++)
        for (uint32_t tap = 0; tap < key->taps; tap++) {
            size_t run = key->merged ? tap / key->kernel_w : tap;
            size_t place = key->merged ? (size_t)(tap % key->kernel_w) * key->image_lanes : 0;
            repack_tap(repack, out + run * run_bytes, kernel, tap, place);
        }
}

/* From [channels / group][taps][channels of the group]. */
static void repack_depthwise(void *user, size_t index)
{
    const struct repack *repack = user;
    const struct key *key = repack->key;
    int8_t *out = repack->out + index * repack->taps->columns_bytes;
    for (uint32_t place = 0; place < RK_COLUMNS; place++) {
        uint32_t channel = (uint32_t)index * RK_COLUMNS + rk_depthwise_channel(place);
        if (channel >= key->lanes)
            continue;
        uint32_t first = channel - channel % key->group;
        size_t count = key->lanes - first < key->group ? key->lanes - first : key->group;
        const int8_t *source = repack->source + (size_t)first * key->taps + (channel - first);
        for (size_t tap = 0; tap < key->taps; tap++)
            out[(tap / 2 * RK_COLUMNS + place) * 2 + tap % 2] = source[tap * count];
    }
}

/* ---- the cache -------------------------------------------------------------- */

static int add(struct rk_sim *sim, const struct key *key, XXH128_hash_t hash, const int8_t *source,
               const struct rk_taps *taps, const int8_t **weights)
{
    struct rk_weights_cache *cache = sim->weights;
    size_t chunks = mica_cdiv(key->depthwise ? key->lanes : key->kernels, RK_COLUMNS);
    struct entry *entry = malloc(sizeof *entry);
    int8_t *out = mica_new_array(chunks, taps->columns_bytes);
    if (!entry || !out) {
        free(entry);
        free(out);
        return mica_fail_nomem(sim->log);
    }
    *entry = (struct entry){cache->newest, *key, hash, chunks * taps->columns_bytes + sizeof *entry, out};
    struct repack repack = {key, taps, source, out};
    mica_parallel_for(sim->threads, chunks, key->depthwise ? repack_depthwise : repack_direct, &repack);
    cache->newest = entry;
    cache->bytes += entry->bytes;
    trim(cache);
    *weights = out;
    return 0;
}

/* Bytes that the order has, which are those that the program says, or fewer. */
static int find_source(struct rk_sim *sim, const struct rk_conv *conv, const struct key *key, const int8_t **source,
                       uint64_t *bytes)
{
    *bytes = (uint64_t)key->lanes * key->taps * key->kernels;
    if (*bytes > conv->weight_bytes)
        return mica_fail(sim->log, -EIO,
                         "weights at 0x%08llx: the program fetches %llu bytes of the %llu that its "
                         "shape takes",
                         (unsigned long long)conv->weights, (unsigned long long)conv->weight_bytes,
                         (unsigned long long)*bytes);
    *source = rk_sim_at(sim, conv->weights, *bytes, MICA_ACCESS_READ, "weights");
    return *source ? 0 : -EFAULT;
}

int rk_weights_get(struct rk_sim *sim, const struct rk_conv *conv, const struct rk_taps *taps, const int8_t **weights)
{
    struct key key = key_of(sim, conv, taps);
    const int8_t *source = NULL;
    uint64_t bytes = 0;
    int result = find_source(sim, conv, &key, &source, &bytes);
    if (result)
        return result;
    if (!sim->weights)
        sim->weights = calloc(1, sizeof *sim->weights);
    if (!sim->weights)
        return mica_fail_nomem(sim->log);
    XXH128_hash_t hash = XXH3_128bits(source, bytes);
    const struct entry *entry = find(sim->weights, &key, hash);
    if (!entry)
        return add(sim, &key, hash, source, taps, weights);
    *weights = entry->weights;
    return 0;
}

void rk_weights_clear(struct rk_sim *sim)
{
    while (sim->weights && sim->weights->newest)
        drop(sim->weights, &sim->weights->newest);
    free(sim->weights);
    sim->weights = NULL;
}
