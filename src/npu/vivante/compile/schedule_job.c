/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/schedule.h"

#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/tile.h"
#include "util/checked.h"

#define MEMO_ENTRIES 1024u /* a power of two; newer ones replace older ones */
#define KEY_WORDS 21u
#define VECTOR 64u /* lanes */

struct entry {
    uint32_t key[KEY_WORDS];
    struct viv_tile tile;
};

struct viv_job_memo {
    struct entry entries[MEMO_ENTRIES];
};

struct viv_job_memo *viv_job_memo_create(void)
{
    return calloc(1, sizeof(struct viv_job_memo));
}

void viv_job_memo_destroy(struct viv_job_memo *memo)
{
    free(memo);
}

/* Everything that a tile depends on. */
static void make_key(const struct viv_nn *nn, bool quick, uint32_t *key)
{
    const uint32_t words[] = {
        nn->in_w,
        nn->in_h,
        nn->in_c,
        nn->in_x_stride,
        nn->in_y_stride,
        nn->kernel_w,
        nn->kernel_h,
        (uint32_t)nn->x_offset,
        (uint32_t)nn->y_offset,
        nn->out_w,
        nn->out_h,
        nn->out_c,
        nn->out_x_stride,
        nn->out_y_stride,
        nn->first_pixel | nn->depthwise << 1 | quick << 2 | (uint32_t)nn->in_place << 3 | (uint32_t)nn->out_place << 6,
        nn->sram_bytes,
        (uint32_t)nn->stream_bytes,
        (uint32_t)(nn->stream_bytes >> 32),
    };
    memset(key, 0, KEY_WORDS * sizeof(*key));
    memcpy(key, words, sizeof(words));
    memcpy(key + sizeof(words) / sizeof(*words), &nn->density, sizeof(nn->density));
    key[KEY_WORDS - 1] = 1; /* in use */
}

static struct entry *find(struct viv_job_memo *memo, const uint32_t *key)
{
    uint32_t hash = 2166136261u;
    for (unsigned i = 0; i < KEY_WORDS; i++)
        hash = (hash ^ key[i]) * 16777619u;
    return &memo->entries[(hash ^ hash >> 16) % MEMO_ENTRIES];
}

static void choose_tile(const struct viv_chip *chip, struct viv_job_memo *memo, struct viv_nn *nn, bool quick)
{
    uint32_t key[KEY_WORDS];
    make_key(nn, quick, key);
    struct entry *entry = find(memo, key);
    if (memcmp(entry->key, key, sizeof(key)) == 0) {
        nn->tile = entry->tile;
        return;
    }
    if (quick)
        viv_tile_choose(chip, nn, nn->stream_bytes, nn->density);
    else
        viv_tile_refine(chip, nn);
    memcpy(entry->key, key, sizeof(key));
    entry->tile = nn->tile;
}

/* Pixels of a 1x1 job do not know their neighbours: an image without padding can have any width. */
static bool can_fold(const struct viv_nn *nn)
{
    return nn->kernel_w == 1 && nn->kernel_h == 1 && !nn->first_pixel && !nn->x_offset && !nn->y_offset &&
           nn->in_w == nn->out_w && nn->in_h == nn->out_h && nn->in_x_stride == nn->out_x_stride;
}

/*
 * The planes as rows of `columns` bytes. Where rows or planes have gaps, what
 * lies in the gaps is computed too and means nothing. False when a plane is not
 * a whole number of such rows, or they would leave it.
 */
static bool fold(struct viv_nn *nn, uint32_t columns)
{
    uint32_t in_plane = nn->in_x_stride * nn->in_y_stride, out_plane = nn->out_x_stride * nn->out_y_stride;
    uint32_t rows = mica_cdiv(nn->in_x_stride * (nn->in_h - 1) + nn->in_w, columns);
    if (in_plane % columns || out_plane % columns || rows > VIV_MAX_IMAGE || rows * columns > in_plane ||
        rows * columns > out_plane || in_plane / columns > UINT16_MAX || out_plane / columns > UINT16_MAX)
        return false;
    nn->in_w = nn->in_x_stride = nn->out_w = nn->out_x_stride = columns;
    nn->in_h = nn->out_h = rows;
    nn->in_y_stride = in_plane / columns;
    nn->out_y_stride = out_plane / columns;
    return true;
}

static void try_fold(const struct viv_chip *chip, struct viv_job_memo *memo, const struct viv_nn *flat,
                     uint32_t columns, bool quick, struct viv_nn *best)
{
    struct viv_nn folded = *flat;
    if (!fold(&folded, columns))
        return;
    choose_tile(chip, memo, &folded, quick);
    if (folded.tile.cycles < best->tile.cycles)
        *best = folded;
}

/* As it is, in whole, half and quarter vectors (timing.md, section 7.5), or in the widest rows that divide a plane. */
void viv_job_shape(const struct viv_chip *chip, struct viv_job_memo *memo, struct viv_nn *nn, bool quick)
{
    struct viv_nn flat = *nn;
    choose_tile(chip, memo, nn, quick);
    if (!can_fold(&flat))
        return;
    for (uint32_t columns = VECTOR; columns >= VECTOR / 4; columns /= 2) {
        try_fold(chip, memo, &flat, columns, quick, nn);
        uint32_t plane = flat.in_x_stride * flat.in_y_stride, divisor = columns;
        while (divisor > columns / 2 && plane % divisor)
            divisor--;
        if (divisor > columns / 2 && divisor != columns)
            try_fold(chip, memo, &flat, divisor, quick, nn);
    }
}
