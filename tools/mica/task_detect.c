/* SPDX-License-Identifier: MIT */
/* Boxes around things: of SSD models with their post-processing inside, and of YOLO models without. */
#include "detect.h"
#include "table.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>

#define MAX_BOXES 100 /* that are kept */
#define SCORE 0.4     /* that a box needs, unless the user says otherwise */
#define OVERLAP 0.45  /* boxes of one class that overlap more are one thing */
#define YOLOX_HEAD 5  /* box and objectness come before the classes */
#define MAX_YOLOX_GRIDS 4

/* ---- signatures ------------------------------------------------------- */

/* Outputs: boxes 1 x N x 4 (top, left, bottom, right), classes, scores, how many. */
static bool is_ssd(const struct cli *cli)
{
    struct mica_tensor_info tensor[4];
    for (size_t i = 0; i < 4; i++)
        if (!cli_task_output(cli, i, &tensor[i]))
            return false;
    size_t slots = cli_element_count(&tensor[1]);
    return mica_model_output_count(cli->model) == 4 && cli_element_count(&tensor[0]) == slots * 4 &&
           cli_element_count(&tensor[2]) == slots && cli_element_count(&tensor[3]) == 1;
}

/* Outputs: grids of cells, each half as fine as the one before: x, y, width, height, objectness, classes. */
static bool is_yolox(const struct cli *cli)
{
    struct mica_tensor_info tensor;
    struct cli_map first, map;
    size_t count = mica_model_output_count(cli->model);
    if (count < 2 || count > MAX_YOLOX_GRIDS || !cli_task_output(cli, 0, &tensor) ||
        !cli_task_is_map(cli, &tensor, 0, &first) || first.channels <= YOLOX_HEAD)
        return false;
    for (size_t i = 0; i < count; i++)
        if (!cli_task_output(cli, i, &tensor) || !cli_task_is_map(cli, &tensor, first.channels, &map) ||
            map.height << i != first.height || map.width << i != first.width)
            return false;
    return true;
}

static const char *misfit(const struct cli *cli)
{
    return is_ssd(cli) || is_yolox(cli) || cli_rows_fit(cli)
               ? NULL
               : "the four outputs of SSD's post-processing (boxes, classes, scores, count), or YOLOX's grids of "
                 "1 x height x width x (5 + classes), or 1 x (5 + classes) x height x width, each half as fine as the "
                 "one before, or a YOLO model's list: 1 x cells x (5 + classes), 1 x 3 cells x (5 + classes), or "
                 "1 x (4 + classes) x cells";
}

/* ---- boxes ------------------------------------------------------------ */

bool cli_boxes_add(struct cli_boxes *boxes, struct cli_box box)
{
    if (!(isfinite(box.left) && isfinite(box.top) && isfinite(box.right) && isfinite(box.bottom)))
        return true;
    if (boxes->count == boxes->capacity) {
        size_t capacity = boxes->capacity ? boxes->capacity * 2 : 64;
        struct cli_box *items = realloc(boxes->items, capacity * sizeof(*items));
        if (!items)
            return false;
        boxes->items = items;
        boxes->capacity = capacity;
    }
    boxes->items[boxes->count++] = box;
    return true;
}

static bool add_ssd(const struct cli_task_view *view, double threshold, struct cli_boxes *boxes)
{
    size_t slots = cli_element_count(&view->outputs->items[1].tensor);
    double found = cli_task_value(view, 3, 0);
    bool room = true;
    for (size_t i = 0; i < slots && (double)i < found && room; i++) {
        double class = cli_task_value(view, 1, i), score = cli_task_value(view, 2, i);
        if (!(score >= threshold) || !(class >= 0 && class < 1e6))
            continue;
        double top = cli_task_value(view, 0, 4 * i), left = cli_task_value(view, 0, 4 * i + 1);
        double bottom = cli_task_value(view, 0, 4 * i + 2), right = cli_task_value(view, 0, 4 * i + 3);
        room = cli_boxes_add(boxes, (struct cli_box){left, top, right, bottom, score, (size_t) class});
    }
    return room;
}

static double value_of(const struct cli_task_view *view, size_t output, const struct cli_map *map, size_t cell,
                       size_t channel)
{
    return cli_task_value(view, output, cli_map_index(map, cell, channel));
}

/* Cell `cell` of a grid; the box's centre counts cells from the cell's corner, its size is the logarithm of cells. */
static bool add_cell(const struct cli_task_view *view, size_t output, const struct cli_map *map, size_t cell,
                     double threshold, struct cli_boxes *boxes)
{
    size_t best = 0;
    double columns = map->width, rows = map->height, objectness = value_of(view, output, map, cell, 4), score = 0;
    if (!(objectness >= threshold)) /* no class's score is above 1 */
        return true;
    for (size_t i = 0; i + YOLOX_HEAD < map->channels; i++) {
        double value = objectness * value_of(view, output, map, cell, YOLOX_HEAD + i);
        if (value > score) {
            score = value;
            best = i;
        }
    }
    if (!(score >= threshold))
        return true;
    double x = ((double)(cell % map->width) + value_of(view, output, map, cell, 0)) / columns;
    double y = ((double)(cell / map->width) + value_of(view, output, map, cell, 1)) / rows;
    double width = exp(value_of(view, output, map, cell, 2)) / columns;
    double height = exp(value_of(view, output, map, cell, 3)) / rows;
    return cli_boxes_add(boxes,
                         (struct cli_box){x - width / 2, y - height / 2, x + width / 2, y + height / 2, score, best});
}

static bool add_yolox(const struct cli *cli, const struct cli_task_view *view, double threshold,
                      struct cli_boxes *boxes)
{
    bool room = true;
    struct cli_map map;
    for (size_t output = 0; output < view->outputs->count; output++)
        if (cli_task_is_map(cli, &view->outputs->items[output].tensor, 0, &map))
            for (size_t cell = 0; cell < cli_map_pixels(&map) && room; cell++)
                room = add_cell(view, output, &map, cell, threshold, boxes);
    return room;
}

static bool add_boxes(const struct cli *cli, const struct cli_task_view *view, double threshold,
                      struct cli_boxes *boxes)
{
    if (is_ssd(cli))
        return add_ssd(view, threshold, boxes);
    return is_yolox(cli) ? add_yolox(cli, view, threshold, boxes) : cli_rows_add(cli, view, threshold, boxes);
}

/* Equal scores keep their order: addresses tell it, as qsort() is not stable. */
static int by_score(const void *a, const void *b)
{
    const struct cli_box *x = *(struct cli_box *const *)a, *y = *(struct cli_box *const *)b;
    if (x->score != y->score)
        return x->score < y->score ? 1 : -1;
    return (x > y) - (x < y);
}

static double area(const struct cli_box *box)
{
    return fmax(box->right - box->left, 0) * fmax(box->bottom - box->top, 0);
}

static double overlap(const struct cli_box *a, const struct cli_box *b)
{
    struct cli_box both = {
        fmax(a->left, b->left), fmax(a->top, b->top), fmin(a->right, b->right), fmin(a->bottom, b->bottom), 0, 0};
    double common = area(&both), all = area(a) + area(b) - common;
    return all > 0 ? common / all : 0;
}

static bool is_new(struct cli_box *const *kept, size_t count, const struct cli_box *box)
{
    for (size_t i = 0; i < count; i++)
        if (kept[i]->class == box->class && overlap(kept[i], box) > OVERLAP)
            return false;
    return true;
}

/* The best ones in order; of those that overlap, the best. Returns how many of `sorted` are left; 0 too where memory
 * runs out, with *sorted NULL. */
static size_t select_boxes(const struct cli_boxes *boxes, bool suppress, struct cli_box ***sorted)
{
    struct cli_box **order = calloc(boxes->count + 1, sizeof(struct cli_box *));
    size_t kept = 0;
    *sorted = order;
    if (!order)
        return 0;
    for (size_t i = 0; i < boxes->count; i++)
        order[i] = &boxes->items[i];
    qsort(order, boxes->count, sizeof(struct cli_box *), by_score);
    for (size_t i = 0; i < boxes->count && kept < MAX_BOXES; i++)
        if (!suppress || is_new(order, kept, order[i]))
            order[kept++] = order[i];
    return kept;
}

/* ---- results ---------------------------------------------------------- */

static int print(struct cli *cli, const struct cli_task_view *view, struct cli_box *const *boxes, size_t count)
{
    static const char *const headers[] = {">score", ">class", ">left", ">top", ">right", ">bottom", "label"};
    bool scaled = view->picture->data;
    double width = scaled ? view->picture->width : 1, height = scaled ? view->picture->height : 1;
    int digits = scaled ? 1 : 4;
    struct cli_table table;
    cli_table_init(&table, headers, 7);
    for (size_t i = 0; i < count; i++) {
        const char *label = cli_label(&view->outputs->labels, boxes[i]->class);
        cli_table_add(&table, "%.4f", boxes[i]->score);
        cli_table_add(&table, "%zu", boxes[i]->class);
        cli_table_add(&table, "%.*f", digits, boxes[i]->left * width);
        cli_table_add(&table, "%.*f", digits, boxes[i]->top * height);
        cli_table_add(&table, "%.*f", digits, boxes[i]->right * width);
        cli_table_add(&table, "%.*f", digits, boxes[i]->bottom * height);
        cli_table_add(&table, "%s", label ? label : "");
    }
    bool printed = !count || cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    if (!count)
        fprintf(cli->out, "nothing with a score of %g or more; --threshold asks for less\n",
                cli_task_threshold(cli, SCORE));
    return printed ? 0 : cli_fail_nomem(cli);
}

static void put_json(const struct cli_task_view *view, struct cli_box *const *boxes, size_t count)
{
    json_t *rows = cli_json_array(view->json);
    for (size_t i = 0; i < count; i++) {
        json_t *row = cli_json_object(view->json);
        cli_json_set_integer(view->json, row, "class", boxes[i]->class);
        cli_json_set_text(view->json, row, "label", cli_label(&view->outputs->labels, boxes[i]->class));
        cli_json_set_real(view->json, row, "score", boxes[i]->score);
        cli_json_set_real(view->json, row, "left", boxes[i]->left);
        cli_json_set_real(view->json, row, "top", boxes[i]->top);
        cli_json_set_real(view->json, row, "right", boxes[i]->right);
        cli_json_set_real(view->json, row, "bottom", boxes[i]->bottom);
        cli_json_append(view->json, rows, row);
    }
    cli_json_set(view->json, view->object, "detections", rows);
}

/* The best on top. */
static void draw(const struct cli_task_view *view, struct cli_box *const *boxes, size_t count)
{
    const struct cli_pixels *canvas = view->picture;
    for (size_t i = count; canvas->data && i-- > 0;) {
        const struct cli_box *box = boxes[i];
        struct cli_color color = cli_color_of(box->class);
        char number[16], text[80];
        double left = box->left * canvas->width, top = box->top * canvas->height;
        cli_canvas_rectangle(canvas, left, top, box->right * canvas->width, box->bottom * canvas->height, color);
        snprintf(text, sizeof(text), "%.60s %.0f%%", cli_task_label(view, box->class, number), box->score * 100);
        cli_canvas_text(canvas, left, top, text, color);
    }
}

static int show(struct cli *cli, struct cli_task_view *view)
{
    struct cli_boxes boxes = {0};
    struct cli_box **sorted = NULL;
    double threshold = cli_task_threshold(cli, SCORE);
    bool ssd = is_ssd(cli), room = add_boxes(cli, view, threshold, &boxes);
    size_t count = room ? select_boxes(&boxes, !ssd, &sorted) : 0;
    int failed = sorted ? 0 : cli_fail_nomem(cli);
    if (!failed && view->json)
        put_json(view, sorted, count);
    else if (!failed)
        failed = print(cli, view, sorted, count);
    if (!failed)
        draw(view, sorted, count);
    free(sorted);
    free(boxes.items);
    return failed;
}

const struct cli_task cli_task_detect = {.name = "detect", .picture = true, .misfit = misfit, .show = show};
