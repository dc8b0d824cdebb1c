/* SPDX-License-Identifier: MIT */
/* Front ends of sound models: one second of speech as 49 frames, 30 ms each, 20 ms apart. */
#ifndef MICA_CLI_SPEECH_H
#define MICA_CLI_SPEECH_H

#include "sound.h"

#define CLI_FRAMES 49
#define CLI_SECOND_FRAMES CLI_SOUND_RATE /* samples they are made from */

/*
 * What MLPerf Tiny's keyword models take: 10 mel cepstral coefficients a frame, as TensorFlow's signal functions define
 * them: Hann window, magnitudes of 512 points, 40 mel bands from 20 to 4000 Hz, logarithm, cosine transform. `samples`
 * are scaled so that the largest is 1, as they were for training.
 */
#define CLI_CEPSTRA 10
void cli_features_cepstra(const float *samples, float features[CLI_FRAMES * CLI_CEPSTRA]);

/*
 * What TensorFlow Lite Micro's speech example takes: 40 bands from 125 to 7500 Hz, noise taken away, automatic gain,
 * logarithm; in the example's units, from 0 to about 670. Computed here in floating point: off the fixed-point
 * original by its rounding.
 */
#define CLI_BANDS 40
void cli_features_bands(const float *samples, float features[CLI_FRAMES * CLI_BANDS]);

#endif
