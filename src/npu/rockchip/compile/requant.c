/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/compile/requant.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "npu/rockchip/compile/plan.h"

#define SCALE_BITS 15 /* a scale has its top bit in bit 14 */
#define MAX_SHIFT 63  /* 6 bits count (specification, section 8) */
#define MAX_MUL_SHIFT 15u
/* Where factors are large, the rounding between the two multiplications is kept below this part of an output step. */
#define STEP_LOSS (1.0 / 64)
/* Steps between the ends of an output; larger results saturate. */
#define OUTPUT_STEPS 255.0
/* So far down nothing is left but the least value, whatever the zero point and roundings. */
#define DROP_STEPS 512.0

bool rk_scale_make(double factor, uint32_t *scale, uint32_t *shift)
{
    int exponent;
    double fraction = frexp(factor, &exponent); /* [0.5, 1) */
    double rounded = rint(ldexp(fraction, SCALE_BITS));
    if (rounded >= 1 << SCALE_BITS) { /* the carry: 0x8000 would be negative */
        rounded = 1 << (SCALE_BITS - 1);
        exponent++;
    }
    int wanted = SCALE_BITS - exponent;
    if (!(factor > 0) || !isfinite(factor) || wanted < 0)
        return false;
    /* Below 2^-49 every 32-bit accumulator gives 0, as it does with the longest shift. */
    *shift = wanted > MAX_SHIFT ? MAX_SHIFT : (uint32_t)wanted;
    *scale = wanted > MAX_SHIFT ? 1u << (SCALE_BITS - 1) : (uint32_t)rounded;
    return true;
}

/* Can the channel give anything but its zero point? */
static bool is_alive(struct rk_factor channel)
{
    return channel.factor * channel.reach >= 0.5;
}

int32_t rk_requant_multiplier(const struct rk_requant *requant, struct rk_factor channel)
{
    double steps = rint(channel.factor / requant->unit);
    return !is_alive(channel) ? 0 : steps > RK_MAX_MULTIPLIER ? RK_MAX_MULTIPLIER : (int32_t)steps;
}

static double channel_error(const struct rk_requant *requant, struct rk_factor channel)
{
    if (!is_alive(channel))
        return 0;
    double out = ldexp((double)requant->scale, -(int)requant->shift), real = out;
    if (requant->per_channel)
        real *= ldexp(rk_requant_multiplier(requant, channel), -(int)requant->mul_shift);
    double most = fmin(channel.factor * channel.reach, OUTPUT_STEPS);
    return most * fabs(real / channel.factor - 1) + (requant->per_channel ? out / 2 : 0);
}

static void measure_error(struct rk_requant *requant, const struct rk_factor *channels, uint32_t count)
{
    requant->error = 0;
    for (uint32_t i = 0; i < count; i++)
        requant->error = fmax(requant->error, channel_error(requant, channels[i]));
}

static bool same_factors(const struct rk_factor *channels, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++)
        if (channels[i].factor != channels[0].factor)
            return false;
    return true;
}

/* A conversion per channel whose largest multiplier is worth `largest`; returns the output's factor. */
static double set_unit(struct rk_requant *requant, double largest)
{
    requant->unit = largest / RK_MAX_MULTIPLIER;
    double shift = floor(log2(2 * STEP_LOSS / requant->unit));
    requant->mul_shift = shift < 0 ? 0 : shift > MAX_MUL_SHIFT ? MAX_MUL_SHIFT : (uint32_t)shift;
    return ldexp(requant->unit, (int)requant->mul_shift);
}

bool rk_requant_make(const struct rk_factor *channels, uint32_t count, bool same_zero, struct rk_requant *requant)
{
    *requant = (struct rk_requant){.per_channel = !same_zero || !same_factors(channels, count)};
    double largest = requant->per_channel ? 0 : channels[0].factor;
    for (uint32_t i = 0; i < count; i++)
        if (is_alive(channels[i]) && channels[i].factor > largest)
            largest = channels[i].factor;
    if (largest == 0) /* all channels give their zero points */
        largest = channels[0].factor;
    double factor = requant->per_channel ? set_unit(requant, largest) : largest;
    if (!rk_scale_make(factor, &requant->scale, &requant->shift))
        return false;
    measure_error(requant, channels, count);
    return true;
}

int64_t rk_round_shift(int64_t product, uint32_t shift)
{
    if (shift == 0)
        return product;
    return (product + ((INT64_C(1) << (shift - 1)) - 1) + (product >> shift & 1)) >> shift;
}

static int64_t convert(const struct rk_requant *requant, int64_t value)
{
    return rk_round_shift(value * (int64_t)requant->scale, requant->shift);
}

/* The largest value that converts to at most `limit`, which is >= 0. */
static int32_t last_below(const struct rk_requant *requant, int64_t limit)
{
    int64_t low = 0, high = INT32_MAX; /* convert(low) <= limit */
    while (low < high) {
        int64_t middle = (low + high + 1) / 2;
        if (convert(requant, middle) <= limit)
            low = middle;
        else
            high = middle - 1;
    }
    return (int32_t)low;
}

bool rk_requant_clamp(struct rk_requant *requant, int32_t zero, int32_t min, int32_t max)
{
    requant->relu = requant->relux = false;
    if (min <= INT8_MIN && max >= INT8_MAX) /* the result saturates there */
        return true;
    if (min != zero && !(min <= INT8_MIN && zero <= INT8_MIN))
        return false;
    requant->relu = min > INT8_MIN || max < INT8_MAX;
    if (max >= INT8_MAX)
        return true;
    if (max < zero)
        return false;
    requant->relux = true;
    requant->upper = last_below(requant, max - zero);
    /* Large factors step over some results: then no bound gives just this one. */
    return requant->upper == INT32_MAX || convert(requant, requant->upper) == max - zero;
}

static bool serves(const struct rk_factor *channels, uint32_t count, bool same_zero, double limit,
                   struct rk_requant *requant)
{
    return rk_requant_make(channels, count, same_zero, requant) && requant->error <= limit;
}

uint32_t rk_requant_group(const struct rk_factor *channels, uint32_t count, uint32_t atom, bool same_zero,
                          struct rk_requant *requant)
{
    if (serves(channels, count, same_zero, RK_GROUP_ERROR, requant))
        return count;
    uint32_t used = 0;
    for (uint32_t next = atom; used < count; next += atom) {
        uint32_t wanted = next < count ? next : count;
        if (!serves(channels, wanted, same_zero, used ? RK_GROUP_ERROR : RK_MAX_ERROR, requant))
            break;
        used = wanted;
    }
    if (used)
        rk_requant_make(channels, used, same_zero, requant);
    return used;
}

/* ---- classes ------------------------------------------------------------------------- */

#define UNSORTED UINT8_MAX

/* One more class: of the largest factor that is left, and all that its conversion serves. How many it takes. */
static uint32_t add_class(const struct rk_factor *channels, uint32_t count, uint8_t *class_of,
                          struct rk_classes *classes)
{
    struct rk_requant requant = {.per_channel = true};
    double largest = RK_LEAST_CLASS_FACTOR;
    uint32_t taken = 0;
    for (uint32_t i = 0; i < count; i++)
        if (class_of[i] == UNSORTED && is_alive(channels[i]))
            largest = fmax(largest, channels[i].factor);
    if (!rk_scale_make(set_unit(&requant, largest), &requant.scale, &requant.shift))
        return 0;
    for (uint32_t i = 0; i < count; i++) {
        double error = channel_error(&requant, channels[i]);
        if (class_of[i] != UNSORTED || error > RK_GROUP_ERROR)
            continue;
        class_of[i] = (uint8_t)classes->count;
        requant.error = fmax(requant.error, error);
        taken++;
    }
    classes->requants[classes->count++] = requant;
    return taken;
}

static bool sort_classes(const struct rk_factor *channels, uint32_t count, uint32_t most, uint8_t *class_of,
                         struct rk_classes *classes)
{
    uint32_t left = count;
    classes->count = 0;
    memset(class_of, UNSORTED, count);
    while (left && classes->count < most) {
        uint32_t taken = add_class(channels, count, class_of, classes);
        if (!taken)
            return false;
        left -= taken;
    }
    return left == 0;
}

uint32_t rk_requant_classes(const struct rk_factor *channels, uint32_t count, uint32_t atom, bool same_zero,
                            uint8_t *class_of, struct rk_classes *classes)
{
    struct rk_requant alone;
    uint32_t used = count < atom ? count : atom;
    if (!sort_classes(channels, used, RK_MAX_CLASSES, class_of, classes))
        return 0;
    for (uint32_t most = classes->count; used < count;) {
        uint32_t next = count - used < atom ? count - used : atom;
        if (serves(channels + used, next, same_zero, RK_MAX_ERROR, &alone))
            break;
        if (!sort_classes(channels, used + next, most, class_of, classes)) {
            sort_classes(channels, used, most, class_of, classes);
            break;
        }
        used += next;
    }
    return used;
}

int32_t rk_requant_drop(const struct rk_requant *requant, double swing)
{
    return -(int32_t)(ceil(swing) + ceil(DROP_STEPS / (requant->unit * RK_MAX_MULTIPLIER)) + 1);
}

const char *rk_requant_problem(const struct rk_factor *channels, uint32_t count, uint32_t atom, uint8_t *class_of,
                               double *error)
{
    struct rk_requant requant;
    struct rk_classes classes;
    double largest = 0;
    for (uint32_t first = 0, used; first < count; first += used) {
        uint32_t scale, shift;
        for (uint32_t i = first; i < count && i < first + atom; i++)
            if (!rk_scale_make(channels[i].factor, &scale, &shift))
                return "the scales give a factor of 2^15 or more, beyond the output converter's shift";
        used = rk_requant_group(channels + first, count - first, atom, false, &requant);
        if (!used && class_of) {
            used = rk_requant_classes(channels + first, count - first, atom, false, class_of + first, &classes);
            requant.error = RK_GROUP_ERROR;
        }
        if (!used)
            return "the scales of neighbouring output channels are too far apart: they share one output converter and "
                   "their 16-bit multipliers would be a step or more off";
        largest = fmax(largest, requant.error);
    }
    if (error)
        *error = largest;
    return NULL;
}

const char *rk_factors_problem(const double *factor, uint32_t count, double *bound)
{
    struct rk_factor surface[16];
    double largest = 0, error = 0;
    for (uint32_t first = 0; first < count; first += 16) {
        uint32_t n = count - first < 16 ? count - first : 16;
        for (uint32_t i = 0; i < n; i++)
            surface[i] = (struct rk_factor){factor[first + i], INT32_MAX};
        const char *problem = rk_requant_problem(surface, n, 16, NULL, &error);
        if (problem)
            return problem;
        largest = fmax(largest, error);
    }
    if (bound)
        *bound = largest;
    return NULL;
}
