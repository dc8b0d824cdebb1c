/* SPDX-License-Identifier: MIT */
#include "difference.h"

#include "tensor.h"

#include <math.h>
#include <string.h>

static void add_element(struct cli_difference *sums, double step, double zero_point, double got, double wanted)
{
    double apart = fabs(got - wanted);
    if (isnan(apart))
        apart = (isnan(got) && isnan(wanted)) || got == wanted ? 0 : INFINITY;
    sums->differing += apart > 0;
    sums->largest = fmax(sums->largest, apart);
    sums->sum += apart;
    got = step * (got - zero_point);
    wanted = step * (wanted - zero_point);
    if (!isfinite(got) || !isfinite(wanted))
        return;
    sums->noise += (got - wanted) * (got - wanted);
    sums->product += got * wanted;
    sums->own += got * got;
    sums->wanted += wanted * wanted;
}

void cli_difference_add(struct cli_difference *difference, const struct mica_tensor_info *tensor, const void *got,
                        const void *wanted)
{
    size_t count = cli_element_count(tensor);
    bool quantized = tensor->type != MICA_TYPE_FLOAT32 && tensor->scale != 0;
    double step = quantized ? (double)tensor->scale : 1, zero_point = quantized ? tensor->zero_point : 0;
    struct cli_difference sums = *difference;
    for (size_t i = 0; i < count; i++)
        add_element(&sums, step, zero_point, cli_raw_value(tensor, got, i), cli_raw_value(tensor, wanted, i));
    sums.count += count;
    *difference = sums;
}

double cli_difference_mean(const struct cli_difference *difference)
{
    return difference->count ? difference->sum / (double)difference->count : 0;
}

double cli_difference_share(const struct cli_difference *difference)
{
    return difference->count ? (double)difference->differing / (double)difference->count : 0;
}

double cli_difference_cosine(const struct cli_difference *difference)
{
    double lengths = sqrt(difference->own) * sqrt(difference->wanted);
    if (!(lengths > 0))
        return difference->own == difference->wanted;
    return fmin(fmax(difference->product / lengths, -1), 1);
}

double cli_difference_error(const struct cli_difference *difference)
{
    if (!(difference->noise > 0))
        return difference->largest > 0 && !isfinite(difference->largest) ? INFINITY : 0;
    return sqrt(difference->noise / difference->wanted);
}

json_t *cli_difference_json(struct cli_json *json, const struct cli_difference *difference)
{
    json_t *object = cli_json_object(json);
    cli_json_set_integer(json, object, "values", difference->count);
    cli_json_set_integer(json, object, "differing", difference->differing);
    cli_json_set_real(json, object, "share", cli_difference_share(difference));
    cli_json_set_real(json, object, "largest", difference->largest);
    cli_json_set_real(json, object, "mean", cli_difference_mean(difference));
    cli_json_set_real(json, object, "cosine", cli_difference_cosine(difference));
    cli_json_set_real(json, object, "error", cli_difference_error(difference));
    return object;
}
