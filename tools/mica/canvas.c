/* SPDX-License-Identifier: MIT */
#include "canvas.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

/* No coordinate is further out: keeps arithmetic on what a model says small. */
#define FAR 1e6

struct cli_color cli_color_of(size_t index)
{
    static const struct cli_color colors[] = {
        {230, 60, 50},   {40, 160, 60},  {40, 90, 220}, {240, 170, 20}, {150, 60, 190}, {20, 170, 180},
        {240, 110, 170}, {130, 200, 40}, {120, 90, 40}, {90, 110, 140}, {250, 120, 40}, {20, 100, 100},
    };
    return colors[index % (sizeof(colors) / sizeof(colors[0]))];
}

unsigned cli_canvas_stroke(const struct cli_pixels *canvas)
{
    unsigned least = canvas->width < canvas->height ? canvas->width : canvas->height;
    return least / 240 + 1;
}

static uint8_t mix(uint8_t old, uint8_t color, unsigned share)
{
    return (uint8_t)((old * (256 - share) + color * share + 128) >> 8);
}

void cli_canvas_blend(const struct cli_pixels *canvas, int64_t x, int64_t y, struct cli_color color, unsigned share)
{
    if (x < 0 || y < 0 || x >= canvas->width || y >= canvas->height)
        return;
    uint8_t *pixel = canvas->data + ((size_t)y * canvas->width + (size_t)x) * 3;
    pixel[0] = mix(pixel[0], color.red, share);
    pixel[1] = mix(pixel[1], color.green, share);
    pixel[2] = mix(pixel[2], color.blue, share);
}

/* Cuts [*from, *from + *count) to [0, limit). */
static void clip(int64_t *from, int64_t *count, int64_t limit)
{
    int64_t end = *from + *count;
    *from = *from < 0 ? 0 : *from;
    *count = (end > limit ? limit : end) - *from;
}

void cli_canvas_fill(const struct cli_pixels *canvas, int64_t x, int64_t y, int64_t width, int64_t height,
                     struct cli_color color)
{
    clip(&x, &width, canvas->width);
    clip(&y, &height, canvas->height);
    for (int64_t row = 0; row < height; row++)
        for (int64_t column = 0; column < width; column++)
            cli_canvas_blend(canvas, x + column, y + row, color, 256);
}

static int64_t whole(double value)
{
    return isnan(value) ? 0 : (int64_t)fmin(fmax(round(value), -FAR), FAR);
}

void cli_canvas_rectangle(const struct cli_pixels *canvas, double left, double top, double right, double bottom,
                          struct cli_color color)
{
    int64_t stroke = cli_canvas_stroke(canvas), x = whole(left), y = whole(top);
    int64_t width = whole(right) - x, height = whole(bottom) - y;
    cli_canvas_fill(canvas, x, y, width, stroke, color);
    cli_canvas_fill(canvas, x, y + height - stroke, width, stroke, color);
    cli_canvas_fill(canvas, x, y, stroke, height, color);
    cli_canvas_fill(canvas, x + width - stroke, y, stroke, height, color);
}

void cli_canvas_dot(const struct cli_pixels *canvas, double x, double y, struct cli_color color)
{
    int64_t radius = cli_canvas_stroke(canvas) + 1, at_x = whole(x), at_y = whole(y);
    for (int64_t dy = -radius; dy <= radius; dy++)
        for (int64_t dx = -radius; dx <= radius; dx++)
            if (dx * dx + dy * dy <= radius * radius + 1)
                cli_canvas_blend(canvas, at_x + dx, at_y + dy, color, 256);
}

void cli_canvas_line(const struct cli_pixels *canvas, double x0, double y0, double x1, double y1,
                     struct cli_color color)
{
    int64_t stroke = cli_canvas_stroke(canvas);
    x0 = (double)whole(x0), y0 = (double)whole(y0), x1 = (double)whole(x1), y1 = (double)whole(y1);
    double length = fmax(fabs(x1 - x0), fabs(y1 - y0));
    if (length > 4.0 * (canvas->width + (double)canvas->height)) /* mostly outside: not worth the time */
        return;
    for (double at = 0; at <= length; at++) {
        double part = length > 0 ? at / length : 0;
        cli_canvas_fill(canvas, whole(x0 + (x1 - x0) * part) - stroke / 2, whole(y0 + (y1 - y0) * part) - stroke / 2,
                        stroke, stroke, color);
    }
}

/* ---- letters ---------------------------------------------------------- */

#define LETTER_WIDTH 5
#define LETTER_HEIGHT 7

/* Rows from the top, '#' is ink; what a row lacks is empty. */
static const struct {
    char letter;
    const char *rows[LETTER_HEIGHT];
} letters[] = {
    {'A', {" ###", "#   #", "#   #", "#####", "#   #", "#   #", "#   #"}},
    {'B', {"####", "#   #", "#   #", "####", "#   #", "#   #", "####"}},
    {'C', {" ###", "#   #", "#", "#", "#", "#   #", " ###"}},
    {'D', {"####", "#   #", "#   #", "#   #", "#   #", "#   #", "####"}},
    {'E', {"#####", "#", "#", "####", "#", "#", "#####"}},
    {'F', {"#####", "#", "#", "####", "#", "#", "#"}},
    {'G', {" ###", "#   #", "#", "#  ##", "#   #", "#   #", " ###"}},
    {'H', {"#   #", "#   #", "#   #", "#####", "#   #", "#   #", "#   #"}},
    {'I', {" ###", "  #", "  #", "  #", "  #", "  #", " ###"}},
    {'J', {"  ###", "   #", "   #", "   #", "   #", "#  #", " ##"}},
    {'K', {"#   #", "#  #", "# #", "##", "# #", "#  #", "#   #"}},
    {'L', {"#", "#", "#", "#", "#", "#", "#####"}},
    {'M', {"#   #", "## ##", "# # #", "# # #", "#   #", "#   #", "#   #"}},
    {'N', {"#   #", "##  #", "##  #", "# # #", "#  ##", "#  ##", "#   #"}},
    {'O', {" ###", "#   #", "#   #", "#   #", "#   #", "#   #", " ###"}},
    {'P', {"####", "#   #", "#   #", "####", "#", "#", "#"}},
    {'Q', {" ###", "#   #", "#   #", "#   #", "# # #", "#  #", " ## #"}},
    {'R', {"####", "#   #", "#   #", "####", "# #", "#  #", "#   #"}},
    {'S', {" ####", "#", "#", " ###", "    #", "    #", "####"}},
    {'T', {"#####", "  #", "  #", "  #", "  #", "  #", "  #"}},
    {'U', {"#   #", "#   #", "#   #", "#   #", "#   #", "#   #", " ###"}},
    {'V', {"#   #", "#   #", "#   #", "#   #", " # #", " # #", "  #"}},
    {'W', {"#   #", "#   #", "#   #", "# # #", "# # #", "## ##", "#   #"}},
    {'X', {"#   #", "#   #", " # #", "  #", " # #", "#   #", "#   #"}},
    {'Y', {"#   #", "#   #", " # #", "  #", "  #", "  #", "  #"}},
    {'Z', {"#####", "    #", "   #", "  #", " #", "#", "#####"}},
    {'0', {" ###", "#   #", "#  ##", "# # #", "##  #", "#   #", " ###"}},
    {'1', {"  #", " ##", "  #", "  #", "  #", "  #", " ###"}},
    {'2', {" ###", "#   #", "    #", "   #", "  #", " #", "#####"}},
    {'3', {"####", "    #", "    #", " ###", "    #", "    #", "####"}},
    {'4', {"   #", "  ##", " # #", "#  #", "#####", "   #", "   #"}},
    {'5', {"#####", "#", "####", "    #", "    #", "#   #", " ###"}},
    {'6', {"  ##", " #", "#", "####", "#   #", "#   #", " ###"}},
    {'7', {"#####", "    #", "   #", "   #", "  #", "  #", "  #"}},
    {'8', {" ###", "#   #", "#   #", " ###", "#   #", "#   #", " ###"}},
    {'9', {" ###", "#   #", "#   #", " ####", "    #", "   #", " ##"}},
    {'.', {"", "", "", "", "", " ##", " ##"}},
    {',', {"", "", "", "", " ##", "  #", " #"}},
    {':', {"", " ##", " ##", "", " ##", " ##", ""}},
    {'%', {"##  #", "##  #", "   #", "  #", " #", "#  ##", "#  ##"}},
    {'-', {"", "", "", "####", "", "", ""}},
    {'+', {"", "  #", "  #", "#####", "  #", "  #", ""}},
    {'/', {"    #", "    #", "   #", "  #", " #", "#", "#"}},
    {'\'', {"  #", "  #", "", "", "", "", ""}},
};

static const char *const *letter_rows(char letter)
{
    for (size_t i = 0; i < sizeof(letters) / sizeof(letters[0]); i++)
        if (letters[i].letter == toupper((unsigned char)letter))
            return letters[i].rows;
    return NULL;
}

static void draw_letter(const struct cli_pixels *canvas, int64_t x, int64_t y, int64_t size, const char *const *rows)
{
    static const struct cli_color white = {255, 255, 255};
    for (int row = 0; row < LETTER_HEIGHT; row++)
        for (int column = 0; rows[row][column]; column++)
            if (rows[row][column] == '#')
                cli_canvas_fill(canvas, x + column * size, y + row * size, size, size, white);
}

void cli_canvas_text(const struct cli_pixels *canvas, double x, double y, const char *text, struct cli_color color)
{
    int64_t size = cli_canvas_stroke(canvas), step = (LETTER_WIDTH + 1) * size, length = (int64_t)strlen(text);
    int64_t width = length * step + size, height = (LETTER_HEIGHT + 2) * size;
    int64_t left = whole(x), top = whole(y) - height;
    if (top < 0)
        top = whole(fmax(y, 0));
    if (left + width > canvas->width)
        left = canvas->width > width ? canvas->width - width : 0;
    cli_canvas_fill(canvas, left, top, width, height, color);
    for (int64_t i = 0; i < length; i++) {
        const char *const *rows = letter_rows(text[i]);
        if (rows)
            draw_letter(canvas, left + size + i * step, top + size, size, rows);
    }
}
