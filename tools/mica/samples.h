/* SPDX-License-Identifier: MIT */
/* What a picture's samples, 0 to 255, are in a model: normalisation. */
#ifndef MICA_CLI_SAMPLES_H
#define MICA_CLI_SAMPLES_H

#include "layout.h"

/* Real values are (sample - mean) / deviation, a channel each. */
struct cli_samples {
    const char *name; /* as --normalize has it */
    double mean[3], deviation[3];
    bool as_they_are; /* quantized tensors: codes are the samples, whatever they stand for */
};

/*
 * What the model's picture input takes: as --normalize says, or else quantized ones samples as they are, and floats
 * what the model's quantization of them has the range for, or what is usual. `note`: says what was guessed. 0 or an
 * exit code.
 */
int cli_samples_choose(struct cli *cli, const struct mica_tensor_info *input, const struct cli_map *map, bool note,
                       struct cli_samples *samples);

/* Fills the tensor's `data` from rows of pixels of `map`'s channels. */
void cli_samples_put(const struct cli_samples *samples, const struct mica_tensor_info *tensor,
                     const struct cli_map *map, const uint8_t *pixels, void *data);

/* The way back for element `index` of an output. */
uint8_t cli_samples_get(const struct cli_samples *samples, const struct mica_tensor_info *tensor, const void *data,
                        size_t index, size_t channel);

#endif
