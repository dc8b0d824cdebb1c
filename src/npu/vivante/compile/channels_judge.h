/* SPDX-License-Identifier: MIT */
/* What the files that judge a channel in a group share (channels_judge.c, _error.c, _layers.c, _rests.c). */
#ifndef MICA_VIVANTE_COMPILE_CHANNELS_JUDGE_H
#define MICA_VIVANTE_COMPILE_CHANNELS_JUDGE_H

#include "npu/vivante/compile/channels.h"

#define VIV_PLANE_STEPS 255.0    /* that a plane holds */
#define VIV_LARGEST_FACTOR 255.0 /* of the second stage */
#define VIV_EXPECTED_ERROR 1.0   /* of a folded channel that is taken, in steps: one standard deviation */

#define VIV_LARGEST_SUM 2e9 /* accumulators wrap at 2^31 */

/* The nearest whole number, ties to the even one, of less than 2^51: nearbyint() without a call, which takes longer. */
static inline double viv_nearest(double value)
{
    const double shift = 6755399441055744.0; /* 1.5 * 2^52: no bits behind the point are left */
    return (value + shift) - shift;
}

static inline double viv_within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

/* The channel's `taps` weights. */
static inline const int16_t *viv_channel_weights(const struct viv_channel_judge *judge, uint32_t index)
{
    return judge->weights + index * judge->taps;
}

double viv_channel_bias(const struct viv_channel_judge *judge, uint32_t index);

/* A number of accumulator steps as an addition to the bias; false where sums could wrap then. */
bool viv_channel_shift(const struct viv_channel *channel, double steps, int32_t *shift);

/* What folding costs with usual inputs, where a plane's step is the output's. */
double viv_expected_error(const struct viv_channel_judge *judge);

/* Where usual inputs are, above their zero point. */
double viv_usual_input(const struct viv_channel_judge *judge);

/* As viv_channel_try(). */
uint32_t viv_try_layered(const struct viv_channel_judge *judge, const struct viv_channel *channel, double *error,
                         struct viv_plane *planes, int32_t *bias);
uint32_t viv_try_refined(const struct viv_channel_judge *judge, uint32_t index, const struct viv_channel *channel,
                         double *error, struct viv_plane *planes, int32_t *bias);
uint32_t viv_try_scaled(const struct viv_channel_judge *judge, uint32_t index, const struct viv_channel *channel,
                        double *error, struct viv_plane *plane, int32_t *bias);

#endif
