/* SPDX-License-Identifier: MIT */
#include "samples.h"

#include "cli.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum preset { NONE, UNIT, SIGNED, IMAGENET, PRESETS };

/* ImageNet's: mean and standard deviation of its pictures, 0.485, 0.456, 0.406 and 0.229, 0.224, 0.225 of 255. */
static const struct cli_samples presets[PRESETS] = {
    [NONE] = {"none", {0, 0, 0}, {1, 1, 1}, true},
    [UNIT] = {"0..1", {0, 0, 0}, {255, 255, 255}, false},
    [SIGNED] = {"-1..1", {127.5, 127.5, 127.5}, {127.5, 127.5, 127.5}, false},
    [IMAGENET] = {"imagenet", {123.675, 116.28, 103.53}, {58.395, 57.12, 57.375}, false},
};

/* ---- as the user says -------------------------------------------------- */

/* One number for all channels or one for each, up to `end`; shares of 255. */
static bool parse_channels(const char *text, const char *end, double values[3])
{
    unsigned count = 0;
    for (; count < 3; count++) {
        char *after;
        values[count] = strtod(text, &after) * 255;
        if (after == text || after > end || !isfinite(values[count]))
            return false;
        text = after;
        if (text == end)
            break;
        if (*text++ != ',')
            return false;
    }
    if (count == 0)
        values[1] = values[2] = values[0];
    return count == 0 || count == 2;
}

static bool parse(const char *text, struct cli_samples *samples)
{
    const char *slash = strchr(text, '/');
    *samples = (struct cli_samples){.name = text};
    return slash && parse_channels(text, slash, samples->mean) &&
           parse_channels(slash + 1, text + strlen(text), samples->deviation) && samples->deviation[0] > 0 &&
           samples->deviation[1] > 0 && samples->deviation[2] > 0;
}

static int take_named(struct cli *cli, const char *name, struct cli_samples *samples)
{
    for (int i = 0; i < PRESETS; i++)
        if (strcmp(presets[i].name, name) == 0) {
            *samples = presets[i];
            return 0;
        }
    if (parse(name, samples))
        return 0;
    return cli_usage(cli,
                     "--normalize must be none, 0..1, -1..1, imagenet, or means and deviations, 0 to 1, as in "
                     "0.5,0.5,0.5/0.25,0.25,0.25 or 0.5/0.25, not '%s'",
                     name);
}

/* ---- as it looks ------------------------------------------------------- */

/* The quantization that the model gives its float input: of one of its first operations. */
static bool find_range(const struct cli *cli, const struct mica_tensor_info *input, double *least, double *most)
{
    struct mica_operation_info operation;
    struct mica_tensor_info tensor;
    for (size_t i = 0; i < 2 && mica_model_operation(cli->model, i, &operation) == 0; i++) {
        bool quantizes = strcmp(operation.type, "QuantizeLinear") == 0 || strcmp(operation.type, "QUANTIZE") == 0;
        if (!quantizes || operation.output_count != 1 || operation.outputs[0] < 0 ||
            mica_model_tensor(cli->model, (size_t)operation.outputs[0], &tensor))
            continue;
        bool is_signed = tensor.type == MICA_TYPE_INT8;
        if (!(is_signed || tensor.type == MICA_TYPE_UINT8) || !(tensor.scale > 0) ||
            cli_element_count(&tensor) != cli_element_count(input))
            continue;
        int first = is_signed ? -128 : 0;
        *least = (double)tensor.scale * (first - tensor.zero_point);
        *most = (double)tensor.scale * (first + 255 - tensor.zero_point);
        return true;
    }
    return false;
}

/* Ranges come from pictures that hardly miss black and white. A little room: quantizers count zero in. */
static enum preset preset_of_range(double least, double most)
{
    if (most > 16)
        return NONE;
    if (most > 1.5)
        return IMAGENET;
    return least < -0.25 ? SIGNED : UNIT;
}

static enum preset guess(struct cli *cli, const struct mica_tensor_info *input, const struct cli_map *map, bool note)
{
    double least, most;
    if (input->type != MICA_TYPE_FLOAT32)
        return NONE;
    bool known = find_range(cli, input, &least, &most);
    enum preset usual = !map->channels_first ? SIGNED : map->channels == 1 ? UNIT : IMAGENET;
    enum preset preset = known ? preset_of_range(least, most) : usual;
    if (note && known)
        cli_note(cli, "picture: --normalize %s, as the model quantizes values from %.3g to %.3g", presets[preset].name,
                 least, most);
    else if (note)
        cli_note(cli, "picture: --normalize %s, which is usual for %s inputs of float32", presets[preset].name,
                 cli_layout_name(cli));
    return preset;
}

int cli_samples_choose(struct cli *cli, const struct mica_tensor_info *input, const struct cli_map *map, bool note,
                       struct cli_samples *samples)
{
    if (cli->options.normalize)
        return take_named(cli, cli->options.normalize, samples);
    *samples = presets[guess(cli, input, map, note)];
    return 0;
}

/* ---- values ------------------------------------------------------------ */

static double clamp(double value, double least, double most)
{
    return value < most ? (value > least ? value : least) : most;
}

static uint8_t code_of(const struct cli_samples *samples, const struct mica_tensor_info *tensor, uint8_t sample,
                       size_t channel)
{
    int first = tensor->type == MICA_TYPE_INT8 ? -128 : 0;
    if (samples->as_they_are || !(tensor->scale > 0))
        return (uint8_t)(sample + first);
    double real = (sample - samples->mean[channel]) / samples->deviation[channel];
    return (uint8_t)(int)clamp(round(real / (double)tensor->scale) + tensor->zero_point, first, first + 255);
}

void cli_samples_put(const struct cli_samples *samples, const struct mica_tensor_info *tensor,
                     const struct cli_map *map, const uint8_t *pixels, void *data)
{
    size_t count = cli_map_pixels(map) * map->channels;
    for (size_t i = 0; i < count; i++) {
        size_t channel = i % map->channels, index = cli_map_index(map, i / map->channels, channel);
        if (tensor->type == MICA_TYPE_FLOAT32)
            ((float *)data)[index] = (float)((pixels[i] - samples->mean[channel]) / samples->deviation[channel]);
        else
            ((uint8_t *)data)[index] = code_of(samples, tensor, pixels[i], channel);
    }
}

uint8_t cli_samples_get(const struct cli_samples *samples, const struct mica_tensor_info *tensor, const void *data,
                        size_t index, size_t channel)
{
    bool codes = tensor->type != MICA_TYPE_FLOAT32 && (samples->as_they_are || !(tensor->scale > 0));
    double value = codes ? cli_raw_value(tensor, data, index) : cli_real_value(tensor, data, index);
    if (codes)
        value += tensor->type == MICA_TYPE_INT8 ? 128 : 0;
    else
        value = value * samples->deviation[channel] + samples->mean[channel];
    return (uint8_t)(clamp(value, 0, 255) + 0.5);
}
