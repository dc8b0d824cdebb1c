/* SPDX-License-Identifier: MIT */
/* Drawing into pictures of red, green and blue: what tasks show. Everything outside of the picture is left out. */
#ifndef MICA_CLI_CANVAS_H
#define MICA_CLI_CANVAS_H

#include "resize.h"

struct cli_color {
    uint8_t red, green, blue;
};

/* One of a row of colours that are easy to tell apart; they repeat. */
struct cli_color cli_color_of(size_t index);

/* Line width and size of letters that fit a picture of this size. */
unsigned cli_canvas_stroke(const struct cli_pixels *canvas);

/* `share` of the colour, 0 to 256, the rest stays. */
void cli_canvas_blend(const struct cli_pixels *canvas, int64_t x, int64_t y, struct cli_color color, unsigned share);
void cli_canvas_fill(const struct cli_pixels *canvas, int64_t x, int64_t y, int64_t width, int64_t height,
                     struct cli_color color);

/* Coordinates are pixels and may be anything finite. */
void cli_canvas_rectangle(const struct cli_pixels *canvas, double left, double top, double right, double bottom,
                          struct cli_color color);
void cli_canvas_line(const struct cli_pixels *canvas, double x0, double y0, double x1, double y1,
                     struct cli_color color);
void cli_canvas_dot(const struct cli_pixels *canvas, double x, double y, struct cli_color color);

/* A line of text on a ground of the colour, its lower left corner at (x, y), or below y where above is no room.
 * Letters are all capitals; what is no letter, digit or one of " .,:%-+/'" becomes a space. */
void cli_canvas_text(const struct cli_pixels *canvas, double x, double y, const char *text, struct cli_color color);

#endif
