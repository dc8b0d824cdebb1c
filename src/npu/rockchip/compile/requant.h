/* SPDX-License-Identifier: MIT */
/* Real factors to the engine's multipliers and shifts (specification, section 8). */
#ifndef MICA_ROCKCHIP_COMPILE_REQUANT_H
#define MICA_ROCKCHIP_COMPILE_REQUANT_H

#include <stdbool.h>
#include <stdint.h>

#define RK_MAX_MULTIPLIER 32767 /* of a channel: signed 16 bit */

/*
 * The output conversion of one task. Per tensor: accumulator * scale / 2^shift. Per channel the accumulator is first
 * multiplied by the channel's multiplier, shifted right by mul_shift, and rounded.
 */
struct rk_requant {
    uint32_t scale, shift;
    bool per_channel;
    uint32_t mul_shift;
    double unit;  /* factor that one step of a multiplier is worth */
    double error; /* largest error in steps of the output, beyond the last rounding */
    /* The clamp before the output conversion: none, at 0, or at 0 and `upper`. */
    bool relu, relux;
    int32_t upper;
    const struct rk_fusion *fusion; /* something is added before it (fusion.h), and clamps are there; NULL: nothing */
    /* Class of every channel of the layer: those of others than `own` come out as the least value. NULL: all are own.
     */
    const uint8_t *class_of;
    uint8_t own;
};

/* scale in [0x4000, 0x7fff] with scale / 2^shift nearest to `factor`; false: no shift is right for it. */
bool rk_scale_make(double factor, uint32_t *scale, uint32_t *shift);

/* What a channel needs: its factor, and how far from 0 its accumulators can be. */
struct rk_factor {
    double factor, reach;
};

/* One conversion for all channels; false when the largest factor is out of range. */
bool rk_requant_make(const struct rk_factor *channels, uint32_t count, bool same_zero, struct rk_requant *requant);
/* The multiplier of a channel under a per-channel conversion. */
int32_t rk_requant_multiplier(const struct rk_requant *requant, struct rk_factor channel);

/* v * scale / 2^shift as the output converter rounds it: to nearest, ties to even. */
int64_t rk_round_shift(int64_t product, uint32_t shift);

/*
 * Has the task clamp its result, which has `zero` added last, to [min, max] (all in the stored domain) exactly.
 * False: the engine can't; a table has to.
 */
bool rk_requant_clamp(struct rk_requant *requant, int32_t zero, int32_t min, int32_t max);

/* A channel group that one conversion serves to half a step is kept whole; one whole step off is too much. */
#define RK_GROUP_ERROR 0.5
#define RK_MAX_ERROR 1.0

/* Channels from the first on, whole surfaces of `atom`, that one conversion serves; 0: not even one surface. */
uint32_t rk_requant_group(const struct rk_factor *channels, uint32_t count, uint32_t atom, bool same_zero,
                          struct rk_requant *requant);

/*
 * Channels of one surface that no one conversion serves are sorted into classes, each with a conversion of its own. The
 * layer is computed once for each class into cubes of their own, where what belongs to other classes lies at the bottom
 * of the range, and the largest of them is the result: exactly what the channel's own class makes.
 */
#define RK_MAX_CLASSES 4u
/* A class's largest multiplier is worth at least this, so that RK_LARGEST_SWING brings what isn't in it down. */
#define RK_LEAST_CLASS_FACTOR 0x1p-20
/* Accumulators without their bias are closer to 0 where there are classes. */
#define RK_LARGEST_SWING 0x1p29

struct rk_classes {
    uint32_t count;
    struct rk_requant requants[RK_MAX_CLASSES];
};

/*
 * Channels from the first on, whole surfaces, that can't be served alone, and that classes serve, no more than the
 * first one needs; class_of[i] gets the class of each. 0: not even one surface.
 */
uint32_t rk_requant_classes(const struct rk_factor *channels, uint32_t count, uint32_t atom, bool same_zero,
                            uint8_t *class_of, struct rk_classes *classes);

/* What brings a channel that is not in its class to the bottom: it is added to the accumulator instead of the bias. */
int32_t rk_requant_drop(const struct rk_requant *requant, double swing);

/* NULL, or why the channels can't be converted exactly enough; `error` (may be NULL) gets the largest error. `class_of`
 * has room for all channels; NULL: there can't be classes. */
const char *rk_requant_problem(const struct rk_factor *channels, uint32_t count, uint32_t atom, uint8_t *class_of,
                               double *error);

#endif
