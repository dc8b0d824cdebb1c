/* SPDX-License-Identifier: MIT */
#include "fft.h"

#include <math.h>
#include <stddef.h>

static void exchange(double *a, double *b)
{
    double kept = *a;
    *a = *b;
    *b = kept;
}

/* Every value to the place whose number has the same bits in reverse. */
static void reorder(double *real, double *imaginary)
{
    for (size_t i = 1, reverse = 0; i < CLI_FFT_SIZE; i++) {
        size_t bit = CLI_FFT_SIZE / 2;
        for (; reverse & bit; bit /= 2)
            reverse ^= bit;
        reverse ^= bit;
        if (i < reverse) {
            exchange(&real[i], &real[reverse]);
            exchange(&imaginary[i], &imaginary[reverse]);
        }
    }
}

/* Cooley and Tukey's, radix 2, decimation in time. */
void cli_fft(double real[CLI_FFT_SIZE], double imaginary[CLI_FFT_SIZE], int inverse)
{
    const double pi = 3.14159265358979323846;
    reorder(real, imaginary);
    for (size_t half = 1; half < CLI_FFT_SIZE; half *= 2)
        for (size_t k = 0; k < half; k++) {
            double angle = (inverse ? pi : -pi) * (double)k / (double)half, c = cos(angle), s = sin(angle);
            for (size_t i = k; i < CLI_FFT_SIZE; i += 2 * half) {
                double re = real[i + half] * c - imaginary[i + half] * s;
                double im = real[i + half] * s + imaginary[i + half] * c;
                real[i + half] = real[i] - re;
                imaginary[i + half] = imaginary[i] - im;
                real[i] += re;
                imaginary[i] += im;
            }
        }
}
