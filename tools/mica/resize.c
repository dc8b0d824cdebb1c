/* SPDX-License-Identifier: MIT */
#include "resize.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define FRACTION_BITS 22

/* Along one axis: output i is the sum of `weights[i * taps + k] * input[first[i] + k]`, k < count[i]. */
struct filter {
    uint32_t taps;
    uint32_t *first, *count;
    int32_t *weights;
};

static double cubic(double x)
{
    x = fabs(x);
    if (x < 1)
        return (1.5 * x - 2.5) * x * x + 1;
    if (x < 2)
        return ((-0.5 * x + 2.5) * x - 4) * x + 2;
    return 0;
}

static void filter_finish(struct filter *filter)
{
    free(filter->first);
    free(filter->count);
    free(filter->weights);
}

/* The taps of output `i`, centred at (i + 0.5) * scale, `reach` inputs to each side. */
static void fill_taps(struct filter *filter, uint32_t i, uint32_t from, double scale, double reach, double *values)
{
    double center = (i + 0.5) * scale, width = reach / 2, sum = 0;
    double low = center - reach + 0.5, high = center + reach + 0.5;
    uint32_t first = low > 0 ? (uint32_t)low : 0;
    uint32_t end = high < from ? (uint32_t)high : from;
    uint32_t count = end - first;
    for (uint32_t k = 0; k < count; k++) {
        values[k] = cubic((k + first - center + 0.5) * (1 / width));
        sum += values[k];
    }
    for (uint32_t k = 0; k < count; k++) {
        double weight = values[k] / sum * (1 << FRACTION_BITS);
        filter->weights[(size_t)i * filter->taps + k] = (int32_t)(weight < 0 ? weight - 0.5 : weight + 0.5);
    }
    filter->first[i] = first;
    filter->count[i] = count;
}

static int filter_make(struct filter *filter, uint32_t from, uint32_t to)
{
    double scale = (double)from / to, reach = 2 * (scale > 1 ? scale : 1);
    filter->taps = (uint32_t)ceil(reach) * 2 + 1;
    filter->first = calloc(to, sizeof(*filter->first));
    filter->count = calloc(to, sizeof(*filter->count));
    filter->weights = calloc((size_t)to * filter->taps, sizeof(*filter->weights));
    double *values = calloc(filter->taps, sizeof(*values));
    if (!filter->first || !filter->count || !filter->weights || !values) {
        filter_finish(filter);
        free(values);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < to; i++)
        fill_taps(filter, i, from, scale, reach, values);
    free(values);
    return 0;
}

/* One output sample from inputs `step` bytes apart. */
static uint8_t apply(const struct filter *filter, uint32_t i, const uint8_t *input, size_t step)
{
    const int32_t *weights = filter->weights + (size_t)i * filter->taps;
    int64_t sum = INT64_C(1) << (FRACTION_BITS - 1);
    input += filter->first[i] * step;
    for (uint32_t k = 0; k < filter->count[i]; k++)
        sum += (int64_t)weights[k] * input[k * step];
    sum >>= FRACTION_BITS;
    return (uint8_t)(sum < 0 ? 0 : sum > 255 ? 255 : sum);
}

static void resize_rows(const struct filter *filter, const struct cli_pixels *from, uint8_t *to, uint32_t to_width)
{
    uint32_t channels = from->channels;
    for (uint32_t y = 0; y < from->height; y++) {
        const uint8_t *row = from->data + (size_t)y * from->width * channels;
        for (uint32_t x = 0; x < to_width; x++)
            for (uint32_t c = 0; c < channels; c++)
                *to++ = apply(filter, x, row + c, channels);
    }
}

static void resize_columns(const struct filter *filter, const uint8_t *from, const struct cli_pixels *to)
{
    size_t row = (size_t)to->width * to->channels;
    uint8_t *out = to->data;
    for (uint32_t y = 0; y < to->height; y++)
        for (size_t i = 0; i < row; i++)
            *out++ = apply(filter, y, from + i, row);
}

int cli_resize(const struct cli_pixels *from, const struct cli_pixels *to)
{
    struct filter across = {0}, down = {0};
    uint8_t *narrow = NULL;
    int error = -ENOMEM;
    if (filter_make(&across, from->width, to->width))
        return error;
    if (filter_make(&down, from->height, to->height))
        goto no_down;
    narrow = malloc((size_t)to->width * from->height * to->channels);
    if (narrow) {
        resize_rows(&across, from, narrow, to->width);
        resize_columns(&down, narrow, to);
        error = 0;
    }
    free(narrow);
    filter_finish(&down);
no_down:
    filter_finish(&across);
    return error;
}
