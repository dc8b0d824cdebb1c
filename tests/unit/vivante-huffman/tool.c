/* SPDX-License-Identifier: MIT */
/*
 * The C decoder and encoder for tests/conformance/test_coefficient_spec.py:
 *
 *   huffman_tool decode CHIP WIDTH HEIGHT CHANNELS PER_CORE ZERO_POINT KERNELS DEPTHWISE <buffer
 *   huffman_tool random NUMBER
 *
 * Prints lines of a name and hexadecimal digits, or of a name and a number:
 * what was decoded, and how large the streams are and ours would be.
 * `random` encodes made-up kernels and prints the decode line's arguments, the
 * buffer, and what must come of it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

#define MOST_BUFFER (1u << 24)

static void print_bytes(const char *name, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    printf("%s ", name);
    for (size_t i = 0; i < size; i++)
        printf("%02x", bytes[i]);
    printf("\n");
}

static void print_coefs(const struct viv_coefs *coefs)
{
    printf("kernels %u\n", coefs->kernels);
    print_bytes("weights", coefs->weights, (size_t)coefs->kernels * coefs->taps);
    print_bytes("bias", coefs->bias, 4 * (size_t)coefs->kernels);
    print_bytes("offset", coefs->offset, 4 * (size_t)coefs->kernels);
}

/* Bytes of the streams, and of those that the encoder makes of the same kernels. */
static void print_sizes(const struct viv_huffman_shape *shape, const struct viv_coefs *coefs, const uint8_t *buffer)
{
    struct kernels kernels;
    struct viv_coefficients ours;
    if (!kernels_from(&kernels, shape, coefs))
        return;
    if (viv_coef_huffman_encode(shape->chip, &kernels.set, &kernels.job, &ours, NULL)) {
        printf("recorded %zu\nours %zu\n", recorded_bytes(shape->chip, buffer), ours.stream_bytes);
        free(ours.data);
    }
    kernels_finish(&kernels);
}

static uint32_t number(const char *text)
{
    return (uint32_t)strtoul(text, NULL, 10);
}

static int decode(char **argument)
{
    struct viv_huffman_shape shape = {
        .chip = strcmp(argument[0], "imx8mp") ? &viv_s905d3 : &viv_imx8mp,
        .kernel_w = number(argument[1]),
        .kernel_h = number(argument[2]),
        .channels = number(argument[3]),
        .kernels_per_core = number(argument[4]),
        .zero_point = (uint8_t)number(argument[5]),
        .kernels = number(argument[6]),
        .depthwise = number(argument[7]),
        .plane = 1,
    };
    struct mica_log log = {.sink = NULL};
    struct viv_coefs coefs;
    uint8_t *buffer = malloc(MOST_BUFFER);
    int result = 1;
    if (!buffer)
        return 1;
    size_t size = fread(buffer, 1, MOST_BUFFER, stdin);
    if (viv_coef_huffman_decode(buffer, size, &shape, 0, NULL, &log, &coefs)) {
        printf("error %s\n", log.last_error);
    } else {
        print_coefs(&coefs);
        print_sizes(&shape, &coefs, buffer);
        viv_coefs_release(&coefs);
        result = 0;
    }
    free(buffer);
    return result;
}

static int encode(uint64_t seed)
{
    struct random random = {seed};
    struct kernels kernels;
    struct viv_huffman_choices choices;
    struct viv_coefficients coefficients;
    if (!kernels_random(&kernels, &random, 400))
        return 1;
    choices_random(&choices, &kernels, &random);
    bool done = seed % 4
                    ? viv_coef_huffman_write(kernels.chip, &kernels.set, &kernels.job, &choices, NULL, &coefficients)
                    : viv_coef_huffman_encode(kernels.chip, &kernels.set, &kernels.job, &coefficients, NULL);
    if (!done)
        return 1;
    const struct viv_huffman_shape *shape = &kernels.shape;
    printf("arguments %s %u %u %u %u %u %u %u\n", kernels.chip->name, shape->kernel_w, shape->kernel_h, shape->channels,
           shape->kernels_per_core, shape->zero_point, shape->kernels, shape->depthwise);
    printf("plane %u\n", shape->plane);
    print_bytes("buffer", coefficients.data, coefficients.size);
    print_bytes("weights", kernels.weights, (size_t)kernels.set.count * kernels.set.channels * kernels.set.taps);
    print_bytes("bias", kernels.bias, 4 * (size_t)kernels.set.count);
    free(coefficients.data);
    kernels_finish(&kernels);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 10 && !strcmp(argv[1], "decode"))
        return decode(argv + 2);
    if (argc == 3 && !strcmp(argv[1], "random"))
        return encode(strtoull(argv[2], NULL, 10));
    fprintf(stderr, "see the source for how to use this\n");
    return 2;
}
