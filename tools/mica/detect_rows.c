/* SPDX-License-Identifier: MIT */
#include "detect.h"

#include <math.h>

#define GRIDS 3
#define ANCHORS 3 /* boxes a cell, of those that have several */

static const uint32_t strides[GRIDS] = {8, 16, 32};

/* How the one output has its boxes. */
struct rows {
    uint32_t height, width; /* of the input, in pixels */
    size_t boxes, values;   /* of a box: its place, perhaps objectness, classes */
    bool turned;            /* all boxes of one value come together */
    bool objectness;
    bool in_cells;  /* centres count from the cell, sizes are logarithms; else all are pixels, or: */
    bool in_shares; /* all are shares of the picture */
};

static size_t count_cells(const struct cli_map *input)
{
    size_t cells = 0;
    for (unsigned i = 0; i < GRIDS; i++)
        cells += (size_t)(input->height / strides[i]) * (input->width / strides[i]);
    return cells;
}

static bool find_rows(const struct cli *cli, struct rows *rows)
{
    struct mica_tensor_info input, tensor;
    struct cli_map map;
    if (mica_model_output_count(cli->model) != 1 || !cli_task_input(cli, &input) ||
        !cli_task_is_map(cli, &input, 3, &map) || !cli_task_output(cli, 0, &tensor) || tensor.rank != 3 ||
        tensor.dims[0] != 1 || tensor.dims[1] < 1 || tensor.dims[2] < 1 || map.height % 32 || map.width % 32)
        return false;
    size_t cells = count_cells(&map), first = (size_t)tensor.dims[1], last = (size_t)tensor.dims[2];
    *rows = (struct rows){.height = map.height, .width = map.width, .boxes = first, .values = last, .objectness = true};
    rows->in_cells = first == cells;
    if (last > 5 && (first == cells || first == ANCHORS * cells))
        return true;
    *rows = (struct rows){.height = map.height, .width = map.width, .boxes = last, .values = first, .turned = true};
    return first > 4 && last == cells;
}

bool cli_rows_fit(const struct cli *cli)
{
    struct rows rows;
    return find_rows(cli, &rows);
}

static double value_of(const struct cli_task_view *view, const struct rows *rows, size_t box, size_t value)
{
    return cli_task_value(view, 0, rows->turned ? value * rows->boxes + box : box * rows->values + value);
}

/* Exports to TFLite divide by the picture's size. Of a grid over all of it some centres are beyond the first pixels. */
static bool has_shares(const struct cli_task_view *view, const struct rows *rows)
{
    for (size_t i = 0; i < rows->boxes; i++)
        if (value_of(view, rows, i, 0) > 2 || value_of(view, rows, i, 1) > 2)
            return false;
    return !rows->in_cells;
}

/* The cell that a box belongs to: its grid's stride, its column and row. */
static uint32_t cell_of(const struct rows *rows, size_t box, size_t *x, size_t *y)
{
    for (unsigned i = 0; i < GRIDS; i++) {
        size_t columns = rows->width / strides[i], cells = columns * (rows->height / strides[i]);
        if (box < cells) {
            *x = box % columns;
            *y = box / columns;
            return strides[i];
        }
        box -= cells;
    }
    *x = *y = 0;
    return strides[GRIDS - 1];
}

static bool add_box(const struct cli_task_view *view, const struct rows *rows, size_t box, double threshold,
                    struct cli_boxes *boxes)
{
    size_t first = rows->objectness ? 5 : 4, best = 0, column, row;
    double objectness = rows->objectness ? value_of(view, rows, box, 4) : 1, score = 0;
    for (size_t i = 0; objectness >= threshold && first + i < rows->values; i++) {
        double value = objectness * value_of(view, rows, box, first + i);
        if (value > score) {
            score = value;
            best = i;
        }
    }
    if (!(score >= threshold) || !(score > 0))
        return true;
    double x = value_of(view, rows, box, 0), y = value_of(view, rows, box, 1);
    double width = value_of(view, rows, box, 2), height = value_of(view, rows, box, 3);
    if (rows->in_cells) {
        double stride = cell_of(rows, box, &column, &row);
        x = (x + (double)column) * stride;
        y = (y + (double)row) * stride;
        width = exp(width) * stride;
        height = exp(height) * stride;
    }
    double w = rows->in_shares ? 1 : rows->width, h = rows->in_shares ? 1 : rows->height;
    return cli_boxes_add(boxes, (struct cli_box){(x - width / 2) / w, (y - height / 2) / h, (x + width / 2) / w,
                                                 (y + height / 2) / h, score, best});
}

bool cli_rows_add(const struct cli *cli, const struct cli_task_view *view, double threshold, struct cli_boxes *boxes)
{
    struct rows rows;
    bool room = find_rows(cli, &rows);
    rows.in_shares = room && has_shares(view, &rows);
    for (size_t i = 0; room && i < rows.boxes; i++)
        room = add_box(view, &rows, i, threshold, boxes);
    return room;
}
