/* SPDX-License-Identifier: MIT */
/* A sweep as a picture: fields that change alike lie on each other, and are one line with all their names. */
#include <stdlib.h>
#include <string.h>

#include "analysis/sweep.h"
#include "util/checked.h"

#define LEFT 40
#define TOP 20
#define WIDTH 560
#define HEIGHT 400
#define MOST_LINES 40u /* that are drawn; the table has all */
#define LINE_HEIGHT 14

static const char *const colours[] = {"#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#9467bd",
                                      "#8c564b", "#e377c2", "#7f7f7f", "#bcbd22", "#17becf"};

struct range {
    double least, most;
};

static struct range range_of(const struct mica_sweep *sweep, const struct mica_sweep_column *column)
{
    struct range range = {0};
    bool any = false;
    for (size_t i = 0; i < sweep->point_count; i++) {
        const struct mica_sweep_cell *cell = &column->cells[i];
        if (!cell->there)
            continue;
        range.least = any && range.least < cell->number ? range.least : cell->number;
        range.most = any && range.most > cell->number ? range.most : cell->number;
        any = true;
    }
    return range;
}

static void put_text(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '<')
            fputs("&lt;", out);
        else if (*text == '&')
            fputs("&amp;", out);
        else
            fputc((unsigned char)*text < ' ' ? '?' : *text, out);
    }
}

static int x_of(const struct mica_sweep *sweep, size_t point)
{
    return LEFT + (int)(point * WIDTH / (sweep->point_count > 1 ? sweep->point_count - 1 : 1));
}

static double y_of(struct range range, double number)
{
    return TOP + HEIGHT * (1 - (number - range.least) / (range.most - range.least));
}

/* The cells of both, each from 0 to 1. */
static bool alike(const struct mica_sweep *sweep, const struct mica_sweep_column *a, const struct mica_sweep_column *b)
{
    struct range x = range_of(sweep, a), y = range_of(sweep, b);
    for (size_t i = 0; i < sweep->point_count; i++) {
        if (a->cells[i].there != b->cells[i].there)
            return false;
        double distance = y_of(x, a->cells[i].number) - y_of(y, b->cells[i].number);
        if (a->cells[i].there && (distance > 0.5 || distance < -0.5))
            return false;
    }
    return true;
}

static void put_line(const struct mica_sweep *sweep, const struct mica_sweep_column *column, const char *colour,
                     FILE *out)
{
    struct range range = range_of(sweep, column);
    fprintf(out, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"1.5\" points=\"", colour);
    for (size_t i = 0; i < sweep->point_count; i++)
        if (column->cells[i].there)
            fprintf(out, "%d,%.1f ", x_of(sweep, i), y_of(range, column->cells[i].number));
    fputs("\"/>\n", out);
}

static void put_label(const struct mica_sweep *sweep, const struct mica_sweep_column *column, const char *colour,
                      size_t row, FILE *out)
{
    struct range range = range_of(sweep, column);
    fprintf(out, "<text x=\"%d\" y=\"%zu\" fill=\"%s\">", LEFT + WIDTH + 20, TOP + 10 + row * LINE_HEIGHT, colour);
    put_text(out, column->name);
    fprintf(out, " %.10g to %.10g</text>\n", range.least, range.most);
}

static void put_points(const struct mica_sweep *sweep, FILE *out)
{
    size_t step = 1 + sweep->point_count / 16;
    for (size_t point = 0; point < sweep->point_count; point += step)
        for (size_t axis = 0; axis < sweep->axis_count; axis++) {
            fprintf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"middle\">", x_of(sweep, point),
                    (size_t)(TOP + HEIGHT + 16) + axis * LINE_HEIGHT);
            put_text(out, mica_sweep_value(sweep, axis, point));
            fputs("</text>\n", out);
        }
    for (size_t axis = 0; axis < sweep->axis_count; axis++) {
        fprintf(out, "<text x=\"%d\" y=\"%zu\">", LEFT + WIDTH + 20, (size_t)(TOP + HEIGHT + 16) + axis * LINE_HEIGHT);
        put_text(out, sweep->axes[axis].name);
        fputs("</text>\n", out);
    }
}

/* Columns that can be drawn: their numbers, and whose line each shares. */
static size_t choose(const struct mica_sweep *sweep, size_t *chosen, size_t *line)
{
    size_t count = 0;
    for (size_t i = 0; i < sweep->column_count && count < MOST_LINES; i++) {
        struct range range = range_of(sweep, &sweep->columns[i]);
        if (!sweep->columns[i].varies || !(range.most > range.least))
            continue;
        chosen[count] = i;
        line[count] = count;
        for (size_t k = 0; k < count; k++)
            if (alike(sweep, &sweep->columns[chosen[k]], &sweep->columns[i])) {
                line[count] = line[k];
                break;
            }
        count++;
    }
    return count;
}

void mica_sweep_write_svg(const struct mica_sweep *sweep, FILE *out)
{
    size_t chosen[MOST_LINES], line[MOST_LINES], count = choose(sweep, chosen, line), row = 0;
    size_t height = TOP + HEIGHT + 40 + sweep->axis_count * LINE_HEIGHT, labels = TOP + 40 + count * LINE_HEIGHT;
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" font-family=\"sans-serif\" "
            "font-size=\"11\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
            "<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"none\" stroke=\"#ccc\"/>\n",
            LEFT + WIDTH + 440, height > labels ? height : labels, LEFT, TOP, WIDTH, HEIGHT);
    for (size_t i = 0; i < count; i++) {
        const char *colour = colours[i % (sizeof colours / sizeof colours[0])];
        if (line[i] != i)
            continue;
        put_line(sweep, &sweep->columns[chosen[i]], colour, out);
        for (size_t k = i; k < count; k++)
            if (line[k] == i)
                put_label(sweep, &sweep->columns[chosen[k]], colour, row++, out);
    }
    put_points(sweep, out);
    fputs("</svg>\n", out);
}
