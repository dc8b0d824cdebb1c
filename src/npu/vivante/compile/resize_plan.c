/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/resize.h"

#include <math.h>

#define MAX_PERIOD 64u
#define MAX_STEP 64u
#define MAX_PHASES 1024u
#define LARGEST 255.0 /* weight */
/*
 * Steps that weights and positions may cost: with half a step that the job rounds, another that TFLite does, and the
 * multiplier's own error of 255 / 2^15, the distance stays below 2, so that results differ by at most 1.
 */
#define MAX_ERROR 0.98

static uint32_t gcd(uint32_t a, uint32_t b)
{
    return b ? gcd(b, a % b) : a;
}

static double clamped(double position, const struct viv_resize_axis *axis)
{
    return position < 0 ? 0 : position > axis->in - 1 ? axis->in - 1 : position;
}

static double position_of(const struct viv_resize_axis *axis, uint32_t phase)
{
    return axis->single ? 0 : (double)phase * axis->step / axis->period + axis->offset;
}

/* Where TFLite's reference kernel looks: in float32, for int8 in whole numbers with ten bits behind the point. */
static double reference_position(const struct viv_resize_axis *axis, uint32_t output, bool is_int8, bool align,
                                 bool half)
{
    bool corners = align && axis->out > 1;
    int64_t in = (int64_t)axis->in - corners, out = (int64_t)axis->out - corners;
    if (is_int8) {
        int64_t step = (in * 1024 + out / 2) / out, value = output * step + (half ? step / 2 - 512 : 0);
        return clamped((double)value / 1024, axis);
    }
    float step = (float)in / (float)out;
    return clamped((double)(half ? ((float)output + 0.5f) * step - 0.5f : (float)output * step), axis);
}

static const char *make_axis(struct viv_resize_axis *axis, bool is_int8, bool align, bool half)
{
    bool corners = align && axis->out > 1;
    uint32_t in = axis->in - corners, out = axis->out - corners, divisor = gcd(in, out);
    axis->single = axis->in == 1;
    axis->period = axis->single ? axis->out : out / divisor;
    axis->step = axis->single ? 1 : in / divisor;
    axis->offset = half ? (double)axis->step / axis->period / 2 - 0.5 : 0;
    if (axis->period > MAX_PERIOD || axis->step > MAX_STEP)
        return axis->single ? "one row or column becomes too many"
                            : "the factor is no fraction of small numbers: nearly each row and column would have "
                              "weights of its own";
    axis->count = (axis->out + axis->period - 1) / axis->period;
    axis->base = (int32_t)floor(position_of(axis, 0));
    axis->kernel = (uint32_t)((int32_t)floor(position_of(axis, axis->period - 1)) + 1 - axis->base) / axis->step + 1;
    axis->deviation = 0;
    for (uint32_t i = 0; i < axis->out; i++) {
        double ours = position_of(axis, i % axis->period) + (double)(i / axis->period) * axis->step;
        double off = fabs(clamped(ours, axis) - reference_position(axis, i, is_int8, align, half));
        axis->deviation = off > axis->deviation ? off : axis->deviation;
    }
    return NULL;
}

double viv_resize_weight(const struct viv_resize_axis *axis, uint32_t phase, uint32_t distance)
{
    double off = fabs(position_of(axis, phase) - axis->base - distance);
    return off < 1 ? 1 - off : 0;
}

/* ---- whole weights --------------------------------------------------------------------- */

/* The weights of the four neighbours of a phase. */
static void neighbours(const struct viv_resize *resize, uint32_t phase, double *weights)
{
    uint32_t phases[] = {phase % resize->x.period, phase / resize->x.period};
    const struct viv_resize_axis *axes[] = {&resize->x, &resize->y};
    double along[2][2];
    for (unsigned i = 0; i < 2; i++) {
        uint32_t first = (uint32_t)((int32_t)floor(position_of(axes[i], phases[i])) - axes[i]->base);
        along[i][0] = viv_resize_weight(axes[i], phases[i], first);
        along[i][1] = viv_resize_weight(axes[i], phases[i], first + 1);
    }
    for (unsigned i = 0; i < 4; i++)
        weights[i] = along[0][i % 2] * along[1][i / 2];
}

uint8_t viv_resize_round(double weight, double scale)
{
    return (uint8_t)(weight * scale < LARGEST ? lround(weight * scale) : LARGEST);
}

/* What rounding costs at most: pixels are up to 255 steps apart. Where one pixel is all, TFLite rounds nothing. */
static double rounding_error(const double *weights, double scale)
{
    double above = 0, below = 0, spared = 0;
    for (unsigned i = 0; i < 4; i++) {
        double off = viv_resize_round(weights[i], scale) / scale - weights[i];
        above += off > 0 ? off : 0;
        below += off < 0 ? -off : 0;
        spared = weights[i] == 1 ? 0.5 : spared;
    }
    double error = 255 * (above > below ? above : below) - spared;
    return error > 0 ? error : 0;
}

static double worst_error(const struct viv_resize *resize, uint32_t phase, double scale)
{
    double weights[4], worst = 0;
    uint32_t first = phase == VIV_NONE ? 0 : phase;
    uint32_t end = phase == VIV_NONE ? resize->x.period * resize->y.period : phase + 1;
    for (uint32_t i = first; i < end; i++) {
        neighbours(resize, i, weights);
        double error = rounding_error(weights, scale);
        worst = error > worst ? error : worst;
    }
    return worst;
}

static double largest_weight(const struct viv_resize *resize, uint32_t phase)
{
    double weights[4], largest = 0;
    if (phase == VIV_NONE)
        return 1;
    neighbours(resize, phase, weights);
    for (unsigned i = 0; i < 4; i++)
        largest = weights[i] > largest ? weights[i] : largest;
    return largest;
}

double viv_resize_scale(const struct viv_resize *resize, uint32_t phase, double *error)
{
    double first = floor(LARGEST / largest_weight(resize, phase)) + 1, best = first; /* the largest may be cut */
    *error = worst_error(resize, phase, first);
    for (double scale = first - 1; scale > first / 2 && *error > 1e-9; scale--) {
        double trial = worst_error(resize, phase, scale);
        if (trial < *error) {
            *error = trial;
            best = scale;
        }
    }
    *error += 255 * (resize->x.deviation + resize->y.deviation);
    return best;
}

/* ---- all of it --------------------------------------------------------------------------- */

static bool small_enough(const struct viv_resize_axis *axis)
{
    return axis->in + 2 <= VIV_MAX_IMAGE && axis->out <= VIV_MAX_IMAGE &&
           (axis->count + axis->kernel) * axis->step <= INT16_MAX && axis->kernel <= 3;
}

/* Either way, the one with fewer jobs first. */
static bool near_enough(const struct viv_resize *resize)
{
    uint32_t phases = resize->x.period * resize->y.period;
    double error;
    for (uint32_t i = 0; i < phases; i++) {
        uint32_t phase = resize->by_channel ? VIV_NONE : i;
        viv_resize_scale(resize, phase, &error);
        if (error > MAX_ERROR)
            return false;
        if (resize->by_channel)
            break;
    }
    return true;
}

const char *viv_resize_make(const struct mica_graph *graph, const struct mica_op *op, struct viv_resize *resize)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    bool is_int8 = in->type == MICA_TYPE_INT8, align = op->resize.align_corners, half = op->resize.half_pixel_centers;
    *resize = (struct viv_resize){.x = {.in = (uint32_t)in->dims[2], .out = (uint32_t)out->dims[2]},
                                  .y = {.in = (uint32_t)in->dims[1], .out = (uint32_t)out->dims[1]}};
    if (align && half)
        return "aligned corners and centres of half pixels exclude each other";
    const char *why = make_axis(&resize->x, is_int8, align, half);
    if (!why)
        why = make_axis(&resize->y, is_int8, align, half);
    if (why)
        return why;
    if (resize->x.period * resize->y.period > MAX_PHASES)
        return "the factor gives more than 1024 different pairs of weights";
    if (!small_enough(&resize->x) || !small_enough(&resize->y))
        return "the image is too large for the NN cores";
    resize->kernel = resize->x.kernel > resize->y.kernel ? resize->x.kernel : resize->y.kernel;
    resize->kernel = resize->kernel < 2 ? 2 : resize->kernel;
    resize->by_channel = (uint32_t)in->dims[3] < resize->x.period * resize->y.period;
    if (near_enough(resize))
        return NULL;
    resize->by_channel = false;
    if (near_enough(resize))
        return NULL;
    return is_int8 ? "TFLite's own positions for int8, of ten bits, drift too far from the factor"
                   : "weights of eight bits are too coarse for this factor";
}

/* ---- nearest neighbours ----------------------------------------------------------------- */

/* TFLite's own arithmetic. */
static int32_t nearest_of(const struct mica_resize *resize, int32_t in, int32_t out, int32_t position)
{
    bool align = resize->align_corners && out > 1;
    float scale = align ? (float)(in - 1) / (float)(out - 1) : (float)in / (float)out;
    float value = ((float)position + (resize->half_pixel_centers ? 0.5f : 0.0f)) * scale;
    float place = resize->align_corners ? roundf(value) : floorf(value);
    return place < 0 ? 0 : place > (float)(in - 1) ? in - 1 : (int32_t)place;
}

static bool repeats(const struct mica_resize *resize, int32_t in, int32_t out, struct viv_nearest *nearest)
{
    for (int32_t i = 0; i < out; i++) {
        int32_t place = nearest_of(resize, in, out, i), phase = i % (int32_t)nearest->period;
        if (i < (int32_t)nearest->period)
            nearest->first[phase] = place;
        else if (place != nearest->first[phase] + i / (int32_t)nearest->period * (int32_t)nearest->step)
            return false;
    }
    return true;
}

bool viv_nearest_make(const struct mica_resize *resize, int32_t in, int32_t out, struct viv_nearest *nearest)
{
    bool align = resize->align_corners && out > 1;
    uint32_t from = (uint32_t)(in - align), to = (uint32_t)(out - align), divisor = gcd(from, to);
    nearest->period = to / divisor;
    nearest->step = from / divisor;
    if (nearest->period <= VIV_MAX_NEAREST && repeats(resize, in, out, nearest))
        return true;
    nearest->period = (uint32_t)out;
    nearest->step = 0;
    return out <= (int32_t)VIV_MAX_NEAREST && repeats(resize, in, out, nearest);
}
