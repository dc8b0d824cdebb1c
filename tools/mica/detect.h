/* SPDX-License-Identifier: MIT */
/* Boxes as models give them. */
#ifndef MICA_CLI_DETECT_H
#define MICA_CLI_DETECT_H

#include "task.h"

/* Corners as shares of the picture. */
struct cli_box {
    double left, top, right, bottom, score;
    size_t class;
};

struct cli_boxes {
    struct cli_box *items;
    size_t count, capacity;
};

/* False when memory ran out. Boxes that are nowhere are left out. */
bool cli_boxes_add(struct cli_boxes *boxes, struct cli_box box);

/*
 * Outputs of the YOLO family that are one list of boxes, all grids one after the other (strides 8, 16, 32):
 * YOLOX, 1 x cells x (5 + classes); YOLOv5 to v7, 1 x 3 cells x (5 + classes); YOLOv8 and later, 1 x (4 + classes) x
 * cells.
 */
bool cli_rows_fit(const struct cli *cli);

/* Adds the boxes of that output; false when memory ran out. */
bool cli_rows_add(const struct cli *cli, const struct cli_task_view *view, double threshold, struct cli_boxes *boxes);

#endif
