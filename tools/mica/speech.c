/* SPDX-License-Identifier: MIT */
#include "speech.h"

#include "fft.h"

#include <math.h>

#define WINDOW 480 /* samples: 30 ms */
#define STEP 320   /* 20 ms */

static const double pi = 3.14159265358979323846;

/* Both scales are 1127 * ln(1 + f / 700), in hertz. */
static double mel(double hertz)
{
    return 1127 * log1p(hertz / 700);
}

/* How much band `band` of `bands` between two frequencies has of a bin: a triangle, 1 in the band's middle. */
static double weight(unsigned band, unsigned bands, double low, double high, unsigned bin)
{
    double step = (mel(high) - mel(low)) / (bands + 1);
    double from_peak = mel(bin * (double)CLI_SOUND_RATE / CLI_FFT_SIZE) - (mel(low) + step * (band + 1));
    return fmax(0, 1 - fabs(from_peak) / step);
}

/* Squared magnitudes of one frame's spectrum. `middle`: 0 or 0.5, where in a sample the window is taken. */
static void power_spectrum(const float *samples, double scale, double middle, double power[CLI_FFT_BINS])
{
    double real[CLI_FFT_SIZE] = {0}, imaginary[CLI_FFT_SIZE] = {0};
    for (unsigned i = 0; i < WINDOW; i++)
        real[i] = (double)samples[i] * scale * (0.5 - 0.5 * cos(2 * pi * (i + middle) / WINDOW));
    cli_fft(real, imaginary, 0);
    for (unsigned i = 0; i < CLI_FFT_BINS; i++)
        power[i] = real[i] * real[i] + imaginary[i] * imaginary[i];
}

/* ---- cepstra ---------------------------------------------------------- */

#define CEPSTRA_BANDS 40

static void frame_cepstra(const double power[CLI_FFT_BINS], float *features)
{
    double bands[CEPSTRA_BANDS] = {0};
    for (unsigned b = 0; b < CEPSTRA_BANDS; b++) {
        for (unsigned i = 1; i < CLI_FFT_BINS; i++)
            bands[b] += weight(b, CEPSTRA_BANDS, 20, 4000, i) * sqrt(power[i]);
        bands[b] = log(bands[b] + 1e-6);
    }
    for (unsigned k = 0; k < CLI_CEPSTRA; k++) {
        double sum = 0;
        for (unsigned b = 0; b < CEPSTRA_BANDS; b++)
            sum += bands[b] * cos(pi * k * (b + 0.5) / CEPSTRA_BANDS);
        features[k] = (float)(2 * sum / sqrt(2.0 * CEPSTRA_BANDS));
    }
}

void cli_features_cepstra(const float *samples, float features[CLI_FRAMES * CLI_CEPSTRA])
{
    float largest = 0;
    for (unsigned i = 0; i < CLI_SECOND_FRAMES; i++)
        largest = fmaxf(largest, samples[i]);
    for (unsigned frame = 0; frame < CLI_FRAMES; frame++) {
        double power[CLI_FFT_BINS];
        power_spectrum(samples + frame * STEP, largest > 0 ? 1 / (double)largest : 1, 0, power);
        frame_cepstra(power, features + frame * CLI_CEPSTRA);
    }
}

/* ---- bands ------------------------------------------------------------ */

/* The original counts 16-bit samples, divides the transform by its length, and multiplies by 64 on the way. */
#define BAND_SCALE (32768 * 64.0 / CLI_FFT_SIZE)

/* Follows the noise of a band up slowly and takes it away, but for a twentieth of the signal. */
static double reduce_noise(double signal, unsigned band, double *noise)
{
    double speed = band % 2 ? 0.06 : 0.025;
    *noise = fmin(signal, speed * signal + (1 - speed) * *noise);
    return fmax(0.05 * signal, signal - *noise);
}

/* Louder where there is less noise; small results are squared, so that quiet bands stay quiet. */
static double control_gain(double signal, double noise)
{
    double gain = fmin(exp2(21) * pow(noise * 8 + 80, -0.95), 32767);
    double ratio = signal * gain / 64;
    return ratio < 8192 ? ratio * ratio / exp2(20) : ratio / 64 - 64;
}

static float compress(double value)
{
    value = floor(value) * 8;
    return value > 1 ? (float)floor(64 * log(value) + 0.5) : 0;
}

static void frame_bands(const double power[CLI_FFT_BINS], double *noise, float *features)
{
    for (unsigned b = 0; b < CLI_BANDS; b++) {
        double sum = 0;
        for (unsigned i = 1; i < CLI_FFT_BINS; i++)
            sum += weight(b, CLI_BANDS, 125, 7500, i) * power[i];
        double signal = floor(sqrt(sum) * BAND_SCALE);
        features[b] = compress(control_gain(floor(reduce_noise(signal, b, &noise[b])), noise[b]));
    }
}

void cli_features_bands(const float *samples, float features[CLI_FRAMES * CLI_BANDS])
{
    double noise[CLI_BANDS] = {0};
    for (unsigned frame = 0; frame < CLI_FRAMES; frame++) {
        double power[CLI_FFT_BINS];
        power_spectrum(samples + frame * STEP, 1, 0.5, power);
        frame_bands(power, noise, features + frame * CLI_BANDS);
    }
}
