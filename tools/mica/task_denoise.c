/* SPDX-License-Identifier: MIT */
/* Noise suppression: a model that says, block by block, how much of each frequency is speech. */
#include "fft.h"
#include "sound.h"
#include "task.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define STEP (CLI_FFT_SIZE / 4) /* samples from block to block: each is in four of them */

static bool is_spectrum(const struct mica_tensor_info *tensor)
{
    bool quantized = (tensor->type == MICA_TYPE_INT8 || tensor->type == MICA_TYPE_UINT8) && tensor->scale != 0;
    return (quantized || tensor->type == MICA_TYPE_FLOAT32) && cli_element_count(tensor) == CLI_FFT_BINS;
}

static const char *misfit(const struct cli *cli)
{
    struct mica_tensor_info input, output;
    if (cli_task_input(cli, &input) && mica_model_output_count(cli->model) == 1 && cli_task_output(cli, 0, &output) &&
        is_spectrum(&input) && is_spectrum(&output))
        return NULL;
    return "257 magnitudes as input and a mask of 257 as output";
}

static void put_magnitudes(const struct mica_tensor_info *tensor, const double *real, const double *imaginary,
                           void *data)
{
    double low = tensor->type == MICA_TYPE_INT8 ? -128 : 0;
    for (size_t i = 0; i < CLI_FFT_BINS; i++) {
        double value = hypot(real[i], imaginary[i]);
        if (tensor->type == MICA_TYPE_FLOAT32)
            ((float *)data)[i] = (float)value;
        else
            ((uint8_t *)data)[i] =
                (uint8_t)(int)fmin(fmax(round(value / (double)tensor->scale) + tensor->zero_point, low), low + 255);
    }
}

/* Applies the mask to a spectrum, on both sides of its middle. */
static void apply_mask(const struct mica_tensor_info *tensor, const void *mask, double *real, double *imaginary)
{
    for (size_t i = 0; i < CLI_FFT_SIZE; i++) {
        double share = cli_real_value(tensor, mask, i < CLI_FFT_BINS ? i : CLI_FFT_SIZE - i);
        real[i] *= share;
        imaginary[i] *= share;
    }
}

/* Adds what the model lets through of one block to `clean`. */
static int clean_block(struct cli *cli, const struct mica_tensor_info *input, const struct mica_tensor_info *output,
                       const float *block, float *clean)
{
    double real[CLI_FFT_SIZE], imaginary[CLI_FFT_SIZE] = {0};
    float data[CLI_FFT_BINS];
    for (size_t i = 0; i < CLI_FFT_SIZE; i++)
        real[i] = (double)block[i];
    cli_fft(real, imaginary, 0);
    put_magnitudes(input, real, imaginary, data);
    int error = mica_session_set_input(cli->session, 0, data, input->bytes);
    if (!error)
        error = mica_session_invoke(cli->session);
    if (!error)
        error = mica_session_get_output(cli->session, 0, data, output->bytes);
    if (error)
        return cli_fail_library(cli, error);
    apply_mask(output, data, real, imaginary);
    cli_fft(real, imaginary, 1);
    for (size_t i = 0; i < CLI_FFT_SIZE; i++)
        clean[i] += (float)(real[i] / CLI_FFT_SIZE * STEP / CLI_FFT_SIZE);
    return 0;
}

/* Silence on both sides, so that all samples are in four blocks. */
static int clean_sound(struct cli *cli, struct cli_sound *sound)
{
    struct mica_tensor_info input, output;
    size_t lead = CLI_FFT_SIZE - STEP, blocks = (sound->count + lead + STEP - 1) / STEP;
    size_t size = blocks * STEP + lead;
    float *noisy = calloc(size, sizeof(*noisy)), *clean = calloc(size, sizeof(*clean));
    int failed = noisy && clean ? 0 : cli_fail_nomem(cli);
    if (!failed && !(cli_task_input(cli, &input) && cli_task_output(cli, 0, &output)))
        failed = cli_fail(cli, "the model has no usable input");
    if (!failed)
        memcpy(noisy + lead, sound->samples, sound->count * sizeof(*noisy));
    cli_progress_start(&cli->progress, cli->err, "cleaning", (unsigned)blocks);
    for (size_t i = 0; !failed && i < blocks; i++) {
        failed = clean_block(cli, &input, &output, noisy + i * STEP, clean + i * STEP);
        cli_progress_step(&cli->progress);
    }
    cli_progress_stop(&cli->progress);
    if (!failed)
        memcpy(sound->samples, clean + lead, sound->count * sizeof(*clean));
    free(noisy);
    free(clean);
    return failed;
}

static double power_of(const struct cli_sound *sound)
{
    double sum = 0;
    for (size_t i = 0; i < sound->count; i++)
        sum += (double)sound->samples[i] * (double)sound->samples[i];
    return sum;
}

static int report(struct cli *cli, const struct cli_sound *sound, double before)
{
    double seconds = (double)sound->count / CLI_SOUND_RATE, share = before > 0 ? power_of(sound) / before : 0;
    if (!cli->options.json) {
        fprintf(cli->out, "%.2f s of sound, %.2f %% of its energy is left: %s\n", seconds, 100 * share,
                cli->options.sound);
        return 0;
    }
    struct cli_json json = {0};
    json_t *root = cli_json_object(&json);
    cli_json_set_text(&json, root, "model", cli->options.operands.items[0]);
    cli_json_set_text(&json, root, "device", mica_device_name(cli->device));
    cli_json_set_text(&json, root, "task", cli_task_denoise.name);
    cli_json_set_real(&json, root, "seconds", seconds);
    cli_json_set_real(&json, root, "energy_left", share);
    return cli_json_print(cli, &json, root);
}

static int drive(struct cli *cli, const struct cli_task *task)
{
    struct cli_sound sound;
    if (cli->options.operands.count < 2 || !cli->options.sound)
        return cli_usage(cli, "--task denoise needs a WAV file, and --sound for the result");
    int failed = cli_sound_read(cli, cli->options.operands.items[1], &sound);
    if (failed)
        return failed;
    double before = power_of(&sound);
    failed = clean_sound(cli, &sound);
    if (!failed)
        failed = cli_sound_write(cli, cli->options.sound, &sound);
    if (!failed)
        failed = report(cli, &sound, before);
    free(sound.samples);
    return failed;
}

const struct cli_task cli_task_denoise = {.name = "denoise", .sound = true, .misfit = misfit, .drive = drive};
