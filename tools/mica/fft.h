/* SPDX-License-Identifier: MIT */
/* The discrete Fourier transform of 512 values, for the front ends of sound models. */
#ifndef MICA_CLI_FFT_H
#define MICA_CLI_FFT_H

#define CLI_FFT_SIZE 512
#define CLI_FFT_BINS (CLI_FFT_SIZE / 2 + 1)

/* In place, without any scaling: real and imaginary parts. `inverse` has the other sign in the exponent. */
void cli_fft(double real[CLI_FFT_SIZE], double imaginary[CLI_FFT_SIZE], int inverse);

#endif
