/* SPDX-License-Identifier: MIT */
/* Names for sounds: keywords from features, sound events from the sound itself. And the names of pictures. */
#include "listen.h"
#include "speech.h"
#include "task.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How a model wants to hear. */
enum ears { DEAF, CEPSTRA, BANDS, WAVE };

static bool single_output_is_classes(const struct cli *cli)
{
    struct mica_tensor_info tensor;
    return mica_model_output_count(cli->model) == 1 && cli_task_output(cli, 0, &tensor) && cli_is_classes(&tensor);
}

static enum ears ears_of(const struct cli *cli, const struct mica_tensor_info *tensor)
{
    size_t count = cli_element_count(tensor);
    bool quantized = (tensor->type == MICA_TYPE_INT8 || tensor->type == MICA_TYPE_UINT8) && tensor->scale != 0;
    bool real = quantized || tensor->type == MICA_TYPE_FLOAT32;
    struct cli_map map;
    if (real && cli_task_is_map(cli, tensor, 1, &map) && map.height == CLI_FRAMES && map.width == CLI_CEPSTRA)
        return CEPSTRA;
    if (tensor->type == MICA_TYPE_INT8 && count == CLI_FRAMES * CLI_BANDS)
        return BANDS;
    bool flat = tensor->rank == 1 || (tensor->rank == 2 && tensor->dims[0] == 1);
    return flat && tensor->type == MICA_TYPE_FLOAT32 && count >= CLI_SOUND_RATE / 10 ? WAVE : DEAF;
}

static bool hears(const struct cli *cli, bool wave)
{
    struct mica_tensor_info tensor;
    enum ears ears = cli_task_input(cli, &tensor) ? ears_of(cli, &tensor) : DEAF;
    return ears != DEAF && (ears == WAVE) == wave && single_output_is_classes(cli);
}

static const char *keyword_misfit(const struct cli *cli)
{
    return hears(cli, false)
               ? NULL
               : "one output of class scores, and as input 1 x 49 x 10 x 1 cepstra or 1960 int8 band features; other "
                 "front ends aren't built in: make the features yourself and give them with --input";
}

static const char *event_misfit(const struct cli *cli)
{
    return hears(cli, true) ? NULL
                            : "one output of class scores, and as input a tenth of a second or more of float32 samples";
}

static double clamp(double value, double least, double most)
{
    return fmin(fmax(value, least), most);
}

/* Real numbers as codes of the tensor, rounded to nearest. */
static void quantize(const struct mica_tensor_info *tensor, const float *values, size_t count, void *data)
{
    double low = tensor->type == MICA_TYPE_INT8 ? -128 : 0;
    for (size_t i = 0; i < count; i++) {
        double code = round((double)values[i] / (double)tensor->scale) + tensor->zero_point;
        ((uint8_t *)data)[i] = (uint8_t)(int)clamp(code, low, low + 255);
    }
}

static void put_cepstra(const struct mica_tensor_info *tensor, const float *second, void *data)
{
    float features[CLI_FRAMES * CLI_CEPSTRA];
    cli_features_cepstra(second, features);
    if (tensor->type == MICA_TYPE_FLOAT32)
        memcpy(data, features, sizeof(features));
    else
        quantize(tensor, features, CLI_FRAMES * CLI_CEPSTRA, data);
}

/* The example's own scale: 25.6 a step of 26, whatever the tensor says. */
static void put_bands(const float *second, void *data)
{
    float features[CLI_FRAMES * CLI_BANDS];
    cli_features_bands(second, features);
    for (size_t i = 0; i < CLI_FRAMES * CLI_BANDS; i++)
        ((int8_t *)data)[i] = (int8_t)clamp(floor(((double)features[i] * 256 + 333) / 666) - 128, -128, 127);
}

size_t cli_sound_window(const struct cli *cli, const struct mica_tensor_info *tensor)
{
    return ears_of(cli, tensor) == WAVE ? cli_element_count(tensor) : CLI_SECOND_FRAMES;
}

void cli_sound_put(const struct cli *cli, const struct mica_tensor_info *tensor, const float *samples, void *data)
{
    enum ears ears = ears_of(cli, tensor);
    if (ears == CEPSTRA)
        put_cepstra(tensor, samples, data);
    else if (ears == BANDS)
        put_bands(samples, data);
    else
        memcpy(data, samples, tensor->bytes);
}

/* The first samples of the sound, silence behind it. */
static int put_start(struct cli *cli, const struct mica_tensor_info *tensor, const struct cli_sound *sound, void *data)
{
    size_t count = cli_sound_window(cli, tensor);
    float *samples = calloc(count, sizeof(*samples));
    if (!samples)
        return cli_fail_nomem(cli);
    memcpy(samples, sound->samples, (sound->count < count ? sound->count : count) * sizeof(*samples));
    if (sound->count > count)
        cli_note(cli, "the model hears %.2f s, the sound has %.2f: only the first are used; 'mica run --every' goes on",
                 (double)count / CLI_SOUND_RATE, (double)sound->count / CLI_SOUND_RATE);
    cli_sound_put(cli, tensor, samples, data);
    free(samples);
    return 0;
}

int cli_sound_input(struct cli *cli, const char *path, void **data)
{
    struct mica_tensor_info tensor;
    struct cli_sound sound;
    *data = NULL;
    if (!cli_task_input(cli, &tensor) || ears_of(cli, &tensor) == DEAF)
        return cli_fail(cli, "the model's input is none that a sound is made into: 1 x 49 x 10 x 1 cepstra, 1960 int8 "
                             "band features, or a tenth of a second or more of float32 samples; use --input");
    int failed = cli_sound_read(cli, path, &sound);
    if (!failed && !(*data = malloc(tensor.bytes)))
        failed = cli_fail_nomem(cli);
    if (!failed)
        failed = put_start(cli, &tensor, &sound, *data);
    free(sound.samples);
    if (failed) {
        free(*data);
        *data = NULL;
    }
    return failed;
}

/* Outputs are classes, which are shown anyway. */
const struct cli_task cli_task_keyword = {
    .name = "keyword", .sound = true, .misfit = keyword_misfit, .drives = cli_listens, .drive = cli_listen};
const struct cli_task cli_task_audio_event = {
    .name = "audio-event", .sound = true, .misfit = event_misfit, .drives = cli_listens, .drive = cli_listen};

static const char *classify_misfit(const struct cli *cli)
{
    return single_output_is_classes(cli) ? NULL : "one output of class scores, one a class";
}

const struct cli_task cli_task_classify = {.name = "classify", .misfit = classify_misfit};
