/* SPDX-License-Identifier: MIT */
/*
 * A function of one byte as two NN jobs: ramps h = clamp(gain * (x - start), 0,
 * 255), a plane each, and what their sum makes of them, y = clamp(round(M *
 * (bias + sum(weight * h)))). Exact for all 256 bytes, in the hardware's own
 * arithmetic (specification, section 6.1).
 */
#ifndef MICA_VIVANTE_COMPILE_TABLE_FIT_H
#define MICA_VIVANTE_COMPILE_TABLE_FIT_H

#include "npu/vivante/compile/requant.h"

#define VIV_TABLE_RAMPS 256 /* no function that has a name needs a quarter of it */

struct viv_ramp {
    int16_t gain;   /* -127 to 127, never 0, of one sign in all ramps */
    int16_t start;  /* byte */
    int16_t weight; /* -127 to 127 */
};

struct viv_table_fit {
    bool single; /* one job: y = clamp(round(M * (bias + weight * x))), with the first ramp's weight */
    uint32_t count;
    struct viv_ramp ramps[VIV_TABLE_RAMPS];
    int32_t bias;
    struct viv_requant requant;
    uint8_t zero; /* of `single`: nothing is below, and it is added after rounding */
};

/* `table` maps bytes as the device has them. False: that takes more ramps. */
bool viv_table_fit(const struct viv_chip *chip, const uint8_t table[256], struct viv_table_fit *fit);
/* The same answer sooner. */
bool viv_table_fits(const struct viv_chip *chip, const uint8_t table[256]);
/* The same with one job only. */
bool viv_table_fit_single(const struct viv_chip *chip, const uint8_t table[256], struct viv_table_fit *fit);

/* What the hardware makes of byte x. */
uint8_t viv_table_value(const struct viv_chip *chip, const struct viv_table_fit *fit, uint8_t x);

/* ---- table_walk.c ------------------------------------------------------------- */

/* round(M * sum), ties to even. */
int64_t viv_table_scaled(const struct viv_chip *chip, const struct viv_requant *requant, int32_t sum);

#define VIV_TABLE_PIECES 256

/* A sum for each x, in straight pieces: `first` at 0, then flat up to the first piece's start. */
struct viv_table_line {
    int32_t first;
    uint32_t count;
    struct {
        int32_t start, slope; /* the slope up to the next one's start */
    } pieces[VIV_TABLE_PIECES];
    int32_t last; /* x from which on only a bound counts: the table stays at 0 or 255 */
};

/* The line of the fewest pieces that gives `table`; false: it has more than `most`. */
bool viv_table_walk(const struct viv_chip *chip, const struct viv_requant *requant, const uint8_t table[256],
                    uint32_t most, struct viv_table_line *line);

#endif
