/* SPDX-License-Identifier: MIT */
/* A class a pixel: from a map of classes, or of scores. */
#include "table.h"
#include "task.h"
#include "tensor.h"

#include <stdlib.h>

#define MAX_CLASSES 65536
#define SHARE 140 /* of 256: how much colour covers the picture */

static bool is_integer(const struct mica_tensor_info *tensor)
{
    return tensor->type != MICA_TYPE_FLOAT32 && tensor->type != MICA_TYPE_BOOL;
}

/* A class a pixel: 1 x height x width, perhaps with one channel, without quantization. */
static bool is_classes(const struct cli *cli, const struct mica_tensor_info *tensor, struct cli_map *map)
{
    const int32_t *dims = tensor->dims;
    bool flat = tensor->rank == 3 && dims[0] == 1 && dims[1] > 1 && dims[2] > 1 && dims[1] <= 65535 && dims[2] <= 65535;
    if (flat)
        *map = (struct cli_map){(uint32_t)dims[1], (uint32_t)dims[2], 1, false};
    return is_integer(tensor) && tensor->scale == 0 &&
           (flat || (cli_task_is_map(cli, tensor, 1, map) && map->height > 1 && map->width > 1));
}

static bool is_scores(const struct cli *cli, const struct mica_tensor_info *tensor, struct cli_map *map)
{
    return cli_task_is_map(cli, tensor, 0, map) && map->channels > 1 && map->height > 1 && map->width > 1;
}

static const char *misfit(const struct cli *cli)
{
    struct mica_tensor_info tensor;
    struct cli_map map;
    if (mica_model_output_count(cli->model) == 1 && cli_task_output(cli, 0, &tensor) &&
        (is_classes(cli, &tensor, &map) || is_scores(cli, &tensor, &map)))
        return NULL;
    return "one output: a class a pixel (1 x height x width of integers), or scores (1 x height x width x classes, or "
           "1 x classes x height x width)";
}

/* Three channels may as well be a picture. */
static bool obvious(const struct cli *cli)
{
    struct mica_tensor_info tensor;
    struct cli_map map;
    return cli_task_output(cli, 0, &tensor) &&
           (is_classes(cli, &tensor, &map) || (is_scores(cli, &tensor, &map) && map.channels != 3));
}

static uint16_t class_at(const struct cli_task_view *view, const struct cli_map *map, size_t pixel)
{
    const struct cli_output *output = &view->outputs->items[0];
    size_t best = 0;
    double most = cli_raw_value(&output->tensor, output->data, cli_map_index(map, pixel, 0));
    if (map->channels == 1)
        return most >= 0 && most < MAX_CLASSES ? (uint16_t)most : 0;
    for (size_t i = 1; i < map->channels && i < MAX_CLASSES; i++) {
        double value = cli_raw_value(&output->tensor, output->data, cli_map_index(map, pixel, i));
        if (value > most) {
            most = value;
            best = i;
        }
    }
    return (uint16_t)best;
}

/* Pixels of each class. */
static void count_classes(const uint16_t *map, size_t pixels, size_t *counts)
{
    for (size_t i = 0; i < pixels; i++)
        counts[map[i]]++;
}

/* The class with the most pixels; its count is forgotten. MAX_CLASSES: no more. */
static size_t take_largest(size_t *counts, size_t *count)
{
    size_t best = 0;
    for (size_t i = 1; i < MAX_CLASSES; i++)
        if (counts[i] > counts[best])
            best = i;
    *count = counts[best];
    counts[best] = 0;
    return *count ? best : MAX_CLASSES;
}

/* As in style sheets, "#e63c32"; NULL for class 0, which is not covered. */
static const char *color_text(size_t class, char text[8])
{
    struct cli_color color = cli_color_of(class - 1);
    snprintf(text, 8, "#%02x%02x%02x", color.red, color.green, color.blue);
    return class ? text : NULL;
}

static void put_json(const struct cli_task_view *view, size_t *counts, size_t pixels)
{
    json_t *rows = cli_json_array(view->json);
    size_t count, class;
    char color[8];
    while ((class = take_largest(counts, &count)) < MAX_CLASSES) {
        json_t *row = cli_json_object(view->json);
        cli_json_set_integer(view->json, row, "class", class);
        cli_json_set_text(view->json, row, "label", cli_label(&view->outputs->labels, class));
        cli_json_set_integer(view->json, row, "pixels", count);
        cli_json_set_real(view->json, row, "share", (double)count / (double)pixels);
        cli_json_set_text(view->json, row, "color", color_text(class, color));
        cli_json_append(view->json, rows, row);
    }
    cli_json_set(view->json, view->object, "classes", rows);
}

static int print(struct cli *cli, const struct cli_task_view *view, size_t *counts, size_t pixels)
{
    static const char *const headers[] = {">% of pixels", ">class", "color", "label"};
    struct cli_table table;
    size_t count, class;
    char color[8];
    cli_table_init(&table, headers, 4);
    while ((class = take_largest(counts, &count)) < MAX_CLASSES) {
        const char *label = cli_label(&view->outputs->labels, class);
        cli_table_add(&table, "%.2f", 100.0 * (double)count / (double)pixels);
        cli_table_add(&table, "%zu", class);
        cli_table_add(&table, "%s", class ? color_text(class, color) : "");
        cli_table_add(&table, "%s", label ? label : "");
    }
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

/* Colour over all but class 0, which is the background of most models. */
static void draw(const struct cli_task_view *view, const uint16_t *map, uint32_t width, uint32_t height)
{
    const struct cli_pixels *canvas = view->picture;
    for (uint32_t y = 0; canvas->data && y < canvas->height; y++)
        for (uint32_t x = 0; x < canvas->width; x++) {
            size_t row = (size_t)y * height / canvas->height, column = (size_t)x * width / canvas->width;
            uint16_t class = map[row * width + column];
            if (class)
                cli_canvas_blend(canvas, x, y, cli_color_of(class - 1u), SHARE);
        }
}

static int show_map(struct cli *cli, const struct cli_task_view *view, const struct cli_map *map, uint16_t *classes,
                    size_t *counts)
{
    size_t pixels = cli_map_pixels(map);
    for (size_t i = 0; i < pixels; i++)
        classes[i] = class_at(view, map, i);
    count_classes(classes, pixels, counts);
    draw(view, classes, map->width, map->height);
    if (!view->json)
        return print(cli, view, counts, pixels);
    put_json(view, counts, pixels);
    return 0;
}

static int show(struct cli *cli, struct cli_task_view *view)
{
    const struct mica_tensor_info *tensor = &view->outputs->items[0].tensor;
    struct cli_map map;
    if (!is_classes(cli, tensor, &map) && !is_scores(cli, tensor, &map))
        return cli_fail(cli, "the model's output is no map");
    uint16_t *classes = calloc(cli_map_pixels(&map), sizeof(*classes));
    size_t *counts = calloc(MAX_CLASSES, sizeof(*counts));
    int failed = classes && counts ? show_map(cli, view, &map, classes, counts) : cli_fail_nomem(cli);
    free(classes);
    free(counts);
    return failed;
}

const struct cli_task cli_task_segment = {
    .name = "segment", .picture = true, .misfit = misfit, .obvious = obvious, .show = show};
