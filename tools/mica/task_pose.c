/* SPDX-License-Identifier: MIT */
/* The 17 points of a body: of MoveNet, which tells where they are, and of PoseNet, from heat maps and offsets. */
#include "table.h"
#include "task.h"
#include "tensor.h"

#include <math.h>

#define POINTS 17
#define SCORE 0.3 /* that a point needs to be drawn */

/* Place as shares of the picture. */
struct point {
    double x, y, score;
};

static const char *const names[POINTS] = {
    "nose",           "left eye",   "right eye",   "left ear",   "right ear",   "left shoulder",
    "right shoulder", "left elbow", "right elbow", "left wrist", "right wrist", "left hip",
    "right hip",      "left knee",  "right knee",  "left ankle", "right ankle",
};

static const uint8_t bones[][2] = {
    {0, 1},  {0, 2},  {1, 3},  {2, 4},   {5, 6},   {5, 7},   {7, 9},   {6, 8},
    {8, 10}, {5, 11}, {6, 12}, {11, 12}, {11, 13}, {13, 15}, {12, 14}, {14, 16},
};

static bool is_movenet(const struct cli *cli)
{
    struct mica_tensor_info tensor;
    return mica_model_output_count(cli->model) == 1 && cli_task_output(cli, 0, &tensor) && tensor.rank == 4 &&
           tensor.dims[2] == POINTS && tensor.dims[3] == 3 && cli_element_count(&tensor) == (size_t)POINTS * 3;
}

struct posenet {
    struct cli_map input, heat, offsets;
};

/* Heat maps, and where the point is from the middle of a cell: rows first, then columns. */
static bool is_posenet(const struct cli *cli, struct posenet *maps)
{
    struct mica_tensor_info input, heat, offsets;
    return cli_task_input(cli, &input) && cli_task_output(cli, 0, &heat) && cli_task_output(cli, 1, &offsets) &&
           cli_task_is_map(cli, &input, 3, &maps->input) && cli_task_is_map(cli, &heat, POINTS, &maps->heat) &&
           cli_task_is_map(cli, &offsets, 2 * POINTS, &maps->offsets) && maps->heat.height == maps->offsets.height &&
           maps->heat.width == maps->offsets.width && maps->heat.height > 1 && maps->heat.width > 1;
}

static const char *misfit(const struct cli *cli)
{
    struct posenet maps;
    return is_movenet(cli) || is_posenet(cli, &maps)
               ? NULL
               : "MoveNet's output of 1 x 1 x 17 x 3, or PoseNet's heat maps (17 channels) and offsets (34 channels)";
}

static void read_movenet(const struct cli_task_view *view, struct point *points)
{
    for (size_t i = 0; i < POINTS; i++)
        points[i] = (struct point){cli_task_value(view, 0, 3 * i + 1), cli_task_value(view, 0, 3 * i),
                                   cli_task_value(view, 0, 3 * i + 2)};
}

/* The warmest cell and its offset. Cells are a stride of (input - 1) / (cells - 1) pixels apart, from the first pixel.
 */
static struct point find_point(const struct cli_task_view *view, const struct posenet *maps, size_t point)
{
    const struct cli_map *heat = &maps->heat, *offsets = &maps->offsets;
    size_t best = 0;
    for (size_t i = 1; i < cli_map_pixels(heat); i++)
        if (cli_task_value(view, 0, cli_map_index(heat, i, point)) >
            cli_task_value(view, 0, cli_map_index(heat, best, point)))
            best = i;
    double height = maps->input.height, width = maps->input.width;
    double y = (double)(best / heat->width) * (height - 1) / (heat->height - 1),
           x = (double)(best % heat->width) * (width - 1) / (heat->width - 1);
    y += cli_task_value(view, 1, cli_map_index(offsets, best, point));
    x += cli_task_value(view, 1, cli_map_index(offsets, best, POINTS + point));
    double warmth = cli_task_value(view, 0, cli_map_index(heat, best, point));
    return (struct point){x / width, y / height, 1 / (1 + exp(-warmth))};
}

static int print(struct cli *cli, const struct cli_task_view *view, const struct point *points)
{
    static const char *const headers[] = {">score", ">x", ">y", "point"};
    bool scaled = view->picture->data;
    struct cli_table table;
    cli_table_init(&table, headers, 4);
    for (size_t i = 0; i < POINTS; i++) {
        cli_table_add(&table, "%.4f", points[i].score);
        cli_table_add(&table, "%.*f", scaled ? 1 : 4, points[i].x * (scaled ? view->picture->width : 1));
        cli_table_add(&table, "%.*f", scaled ? 1 : 4, points[i].y * (scaled ? view->picture->height : 1));
        cli_table_add(&table, "%s", names[i]);
    }
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

static void put_json(const struct cli_task_view *view, const struct point *points)
{
    json_t *rows = cli_json_array(view->json);
    for (size_t i = 0; i < POINTS; i++) {
        json_t *row = cli_json_object(view->json);
        cli_json_set_text(view->json, row, "point", names[i]);
        cli_json_set_real(view->json, row, "score", points[i].score);
        cli_json_set_real(view->json, row, "x", points[i].x);
        cli_json_set_real(view->json, row, "y", points[i].y);
        cli_json_append(view->json, rows, row);
    }
    cli_json_set(view->json, view->object, "points", rows);
}

/* Bones between points that are both there: limbs of the left in another colour than those of the right. */
static void draw(struct cli *cli, const struct cli_task_view *view, const struct point *points)
{
    const struct cli_pixels *canvas = view->picture;
    double width = canvas->width, height = canvas->height, threshold = cli_task_threshold(cli, SCORE);
    if (!canvas->data)
        return;
    for (size_t i = 0; i < sizeof(bones) / sizeof(bones[0]); i++) {
        const struct point *a = &points[bones[i][0]], *b = &points[bones[i][1]];
        if (a->score >= threshold && b->score >= threshold)
            cli_canvas_line(canvas, a->x * width, a->y * height, b->x * width, b->y * height,
                            cli_color_of(bones[i][1] % 2 ? 1 : 2));
    }
    for (size_t i = 0; i < POINTS; i++)
        if (points[i].score >= threshold)
            cli_canvas_dot(canvas, points[i].x * width, points[i].y * height, cli_color_of(0));
}

static int show(struct cli *cli, struct cli_task_view *view)
{
    struct point points[POINTS];
    struct posenet maps;
    if (is_movenet(cli))
        read_movenet(view, points);
    else if (is_posenet(cli, &maps))
        for (size_t i = 0; i < POINTS; i++)
            points[i] = find_point(view, &maps, i);
    else
        return cli_fail(cli, "the model has no usable input");
    int failed = 0;
    if (view->json)
        put_json(view, points);
    else
        failed = print(cli, view, points);
    draw(cli, view, points);
    return failed;
}

const struct cli_task cli_task_pose = {.name = "pose", .picture = true, .misfit = misfit, .show = show};
