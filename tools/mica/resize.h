/* SPDX-License-Identifier: MIT */
/* Resizing pictures. */
#ifndef MICA_CLI_RESIZE_H
#define MICA_CLI_RESIZE_H

#include <stddef.h>
#include <stdint.h>

struct cli_pixels {
    uint32_t width, height, channels;
    uint8_t *data; /* rows from the top, channels interleaved, no padding */
};

/*
 * Resizes `from` into `to`, whose data is allocated by the caller. Bicubic
 * (a = -0.5), the filter widened when shrinking, first along rows, then along
 * columns, eight bits in between, weights of 22 fractional bits: so the result
 * equals Pillow's Image.resize() bit for bit, by which people compare (Pillow
 * 13 takes the columns first where the height shrinks much more than the
 * width; samples then differ slightly). 0, or -ENOMEM.
 */
int cli_resize(const struct cli_pixels *from, const struct cli_pixels *to);

#endif
