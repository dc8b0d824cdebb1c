/* SPDX-License-Identifier: MIT */
/*
 * TFLite_Detection_PostProcess: decodes boxes relative to anchors, then keeps
 * the best that don't overlap. Results are those of TFLite's kernel, whose
 * steps in float64 and float32 are kept. Where more than one class of a box
 * is wanted and scores are equal, classes come here in ascending order; TFLite
 * leaves their order to its sorting.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "cpu/kernels.h"
#include "util/checked.h"

static bool rows_of(const struct mica_tensor *tensor, uint32_t rank, int32_t rows, int32_t least_columns)
{
    return tensor->rank == rank && tensor->dims[rank - 2] == rows && tensor->dims[rank - 1] >= least_columns &&
           (rank == 2 || tensor->dims[0] == 1);
}

static bool is_value(const struct mica_tensor *tensor)
{
    return tensor->type == MICA_TYPE_FLOAT32 || (tensor->type == MICA_TYPE_UINT8 && mica_cpu_per_tensor(tensor));
}

static int check_inputs(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    const struct mica_tensor *boxes = mica_op_input(graph, op, 0), *scores = mica_op_input(graph, op, 1);
    const struct mica_tensor *anchors = mica_op_input(graph, op, 2);
    if (!is_value(boxes) || !is_value(scores) || anchors->type != boxes->type || !is_value(anchors))
        return mica_cpu_refuse(reason, "boxes, scores and anchors must be float32 or uint8 with one scale");
    if (boxes->rank != 3 || !rows_of(boxes, 3, boxes->dims[1], 4))
        return mica_cpu_refuse(reason, "box encodings are not [1, boxes, 4 or more]");
    if (!rows_of(scores, 3, boxes->dims[1], op->detection.classes) || scores->dims[2] - op->detection.classes > 1)
        return mica_cpu_refuse(reason, "scores are not [1, boxes, classes (and one for the background)]");
    if (!rows_of(anchors, 2, boxes->dims[1], 4) || anchors->dims[1] != 4)
        return mica_cpu_refuse(reason, "anchors are not [boxes, 4]");
    return 0;
}

static int check_options(const struct mica_detection *options, struct mica_cpu_reason *reason)
{
    if (options->classes < 1 || options->max_detections < 1)
        return mica_cpu_refuse(reason, "numbers of classes and detections must be positive");
    if (options->regular_nms ? options->detections_per_class < 1 : options->max_classes_per_detection < 1)
        return mica_cpu_refuse(reason, "detections per class, or classes per detection, must be positive");
    if (!(options->iou_threshold > 0 && options->iou_threshold <= 1))
        return mica_cpu_refuse(reason, "the overlap threshold is not between 0 and 1");
    return 0;
}

/* Suppression compares every box with every better one: more than this would be no detector but a way to hang. */
#define MAX_COMPARISONS ((uint64_t)1 << 33)

static int check_work(const struct mica_detection *options, uint64_t boxes, struct mica_cpu_reason *reason)
{
    uint64_t most = (uint64_t)options->max_detections, rounds = options->regular_nms ? (uint64_t)options->classes : 1;
    uint64_t comparisons;
    if (__builtin_mul_overflow(boxes * (most < boxes ? most : boxes), rounds, &comparisons) ||
        comparisons > MAX_COMPARISONS)
        return mica_cpu_refuse(reason, "too many boxes and detections to compare all of them");
    return 0;
}

/* Detections that the outputs have room for, at least. */
static int64_t slots(const struct mica_detection *options)
{
    int64_t classes = options->regular_nms ? 1 : options->max_classes_per_detection;
    return options->max_detections * classes;
}

int mica_cpu_check_postprocess(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    static const int64_t values[4] = {4, 1, 1, 0}; /* floats a detection in each output; the last holds the number */
    int result = mica_cpu_check_operands(graph, op, 3, 4, reason);
    if (!result)
        result = check_inputs(graph, op, reason);
    if (!result)
        result = check_options(&op->detection, reason);
    if (!result)
        result = check_work(&op->detection, (uint64_t)mica_op_input(graph, op, 0)->dims[1], reason);
    for (uint32_t i = 0; i < 4 && !result; i++) {
        const struct mica_tensor *out = mica_op_output(graph, op, i);
        int64_t elements = (int64_t)mica_cpu_elements(out);
        bool fits = values[i] ? elements / values[i] >= slots(&op->detection) : elements >= 1;
        if (out->type != MICA_TYPE_FLOAT32 || !fits)
            result = mica_cpu_refuse(reason, "output %u is not float32 or too small for all detections", i);
    }
    return result;
}

struct box {
    float y_min, x_min, y_max, x_max;
};

struct detection {
    int32_t box, class;
    float score;
};

struct postprocess {
    const struct mica_cpu_call *call;
    const struct mica_detection *options;
    int32_t boxes, columns, background; /* columns: scores of a box; background: 1 if the first is no class */
    struct box *decoded;
    float *scores;              /* [boxes][columns] */
    float *candidates;          /* score of each box in the round that runs */
    struct detection *sorted;   /* boxes above the threshold, or classes of a box, best first */
    struct detection *scratch;  /* for merging */
    struct detection *selected; /* that survived a round */
    struct detection *kept;     /* of all rounds */
};

/* Element `i` of a float32 or uint8 tensor. */
static float real_value(const struct mica_cpu_call *call, uint32_t input, size_t i)
{
    const struct mica_tensor *tensor = mica_cpu_input(call, input);
    const void *data = mica_cpu_input_data(call, input);
    if (tensor->type == MICA_TYPE_FLOAT32)
        return ((const float *)data)[i];
    return ((float)((const uint8_t *)data)[i] - (float)tensor->quant.zero_point[0]) * tensor->quant.scale[0];
}

static struct box decode_box(const struct mica_cpu_call *call, size_t i)
{
    const struct mica_detection *options = &call->op->detection;
    size_t stride = (size_t)mica_cpu_input(call, 0)->dims[2];
    double box[4], anchor[4];
    for (size_t j = 0; j < 4; j++) {
        box[j] = (double)real_value(call, 0, i * stride + j);
        anchor[j] = (double)real_value(call, 2, i * 4 + j);
    }
    float y = (float)(box[0] / (double)options->scale_y * anchor[2] + anchor[0]);
    float x = (float)(box[1] / (double)options->scale_x * anchor[3] + anchor[1]);
    float half_h = (float)(0.5 * exp(box[2] / (double)options->scale_h) * anchor[2]);
    float half_w = (float)(0.5 * exp(box[3] / (double)options->scale_w) * anchor[3]);
    return (struct box){y - half_h, x - half_w, y + half_h, x + half_w};
}

static int decode(struct postprocess *p)
{
    for (int32_t i = 0; i < p->boxes; i++) {
        struct box box = decode_box(p->call, (size_t)i);
        if (box.y_min > box.y_max || box.x_min > box.x_max)
            return mica_fail(p->call->log, -EINVAL, "detection box %d has a negative size; check the anchors", i);
        p->decoded[i] = box;
    }
    for (size_t i = 0; i < (size_t)p->boxes * (size_t)p->columns; i++)
        p->scores[i] = real_value(p->call, 1, i);
    return 0;
}

static float overlap(const struct box *a, const struct box *b)
{
    float area_a = (a->y_max - a->y_min) * (a->x_max - a->x_min);
    float area_b = (b->y_max - b->y_min) * (b->x_max - b->x_min);
    if (area_a <= 0 || area_b <= 0)
        return 0;
    float height = fminf(a->y_max, b->y_max) - fmaxf(a->y_min, b->y_min);
    float width = fminf(a->x_max, b->x_max) - fmaxf(a->x_min, b->x_min);
    float common = fmaxf(height, 0) * fmaxf(width, 0);
    return common / (area_a + area_b - common);
}

/* Merges two runs, each best first, into `out`; of equal scores, those of the first run lead. */
static void merge(const struct detection *a, size_t count_a, const struct detection *b, size_t count_b,
                  struct detection *out)
{
    while (count_a || count_b) {
        bool second = !count_a || (count_b && b->score > a->score);
        *out++ = second ? *b++ : *a++;
        if (second)
            count_b--;
        else
            count_a--;
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Stable, best first, bottom up; `scratch` has room for all. */
static void sort(struct detection *detections, size_t count, struct detection *scratch)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t i = 0; i < count; i += 2 * width) {
            size_t a = least(width, count - i), b = least(width, count - i - a);
            merge(detections + i, a, detections + i + a, b, scratch + i);
        }
        memcpy(detections, scratch, count * sizeof *detections);
    }
}

/* One round over p->candidates: at most `most` boxes into p->selected, best first. Returns their number. */
static size_t select_boxes(struct postprocess *p, size_t most)
{
    size_t count = 0, selected = 0;
    for (int32_t i = 0; i < p->boxes; i++)
        if (p->candidates[i] >= p->options->score_threshold)
            p->sorted[count++] = (struct detection){.box = i, .score = p->candidates[i]};
    sort(p->sorted, count, p->scratch);
    for (size_t i = 0; i < count && selected < most; i++) {
        bool covered = false;
        for (size_t j = 0; j < selected && !covered; j++)
            covered =
                overlap(&p->decoded[p->selected[j].box], &p->decoded[p->sorted[i].box]) > p->options->iou_threshold;
        if (!covered)
            p->selected[selected++] = p->sorted[i];
    }
    return selected;
}

static void write_detection(const struct postprocess *p, size_t slot, int32_t box, int32_t class, float score)
{
    memcpy((struct box *)mica_cpu_output_data(p->call, 0) + slot, &p->decoded[box], sizeof(struct box));
    ((float *)mica_cpu_output_data(p->call, 1))[slot] = (float)class;
    ((float *)mica_cpu_output_data(p->call, 2))[slot] = score;
}

static void write_count(const struct postprocess *p, size_t count)
{
    *(float *)mica_cpu_output_data(p->call, 3) = (float)count;
}

/* Regular: each class on its own, the best of all classes are kept. */
static void run_regular(struct postprocess *p)
{
    size_t most = (size_t)p->options->max_detections, kept = 0;
    size_t most_per_class = least((size_t)p->options->detections_per_class, most);
    for (int32_t class = 0; class < p->options->classes; class ++) {
        for (int32_t i = 0; i < p->boxes; i++)
            p->candidates[i] = p->scores[(size_t)i * (size_t)p->columns + (size_t)(class + p->background)];
        size_t selected = select_boxes(p, most_per_class);
        for (size_t i = 0; i < selected; i++)
            p->selected[i].class = class;
        merge(p->kept, kept, p->selected, selected, p->scratch);
        kept = least(kept + selected, most);
        memcpy(p->kept, p->scratch, kept * sizeof *p->kept);
    }
    for (size_t i = 0; i < kept; i++)
        write_detection(p, i, p->kept[i].box, p->kept[i].class, p->kept[i].score);
    write_count(p, kept);
}

static int32_t best_class(const float *scores, int32_t classes)
{
    int32_t best = 0;
    for (int32_t class = 1; class < classes; class ++)
        if (scores[class] > scores[best])
            best = class;
    return best;
}

/* The best `count` classes of a box, best first, to its slots. */
static void write_classes(struct postprocess *p, size_t slot, int32_t box, size_t count)
{
    const float *scores = p->scores + (size_t)box * (size_t)p->columns + p->background;
    size_t classes = (size_t)p->options->classes;
    for (size_t i = 0; i < classes; i++)
        p->sorted[i] = (struct detection){box, (int32_t)i, scores[i]};
    sort(p->sorted, classes, p->scratch);
    for (size_t i = 0; i < count; i++)
        write_detection(p, slot + i, box, p->sorted[i].class, p->sorted[i].score);
}

/* Fast: one round with each box's best class; further classes of the survivors follow in their slots. */
static void run_fast(struct postprocess *p)
{
    size_t per_box = (size_t)p->options->max_classes_per_detection;
    for (int32_t i = 0; i < p->boxes; i++) {
        const float *scores = p->scores + (size_t)i * (size_t)p->columns + p->background;
        p->candidates[i] = scores[best_class(scores, p->options->classes)];
    }
    size_t selected = select_boxes(p, (size_t)p->options->max_detections);
    for (size_t i = 0; i < selected; i++)
        write_classes(p, i * per_box, p->selected[i].box, least(per_box, (size_t)p->options->classes));
    write_count(p, selected);
}

static int allocate(struct postprocess *p)
{
    size_t boxes = (size_t)p->boxes, most = least((size_t)p->options->max_detections, boxes * (size_t)p->columns);
    size_t longest = boxes > (size_t)p->columns ? boxes : (size_t)p->columns;
    p->decoded = mica_new_array(boxes, sizeof *p->decoded);
    p->scores = mica_new_array(boxes * (size_t)p->columns, sizeof *p->scores);
    p->candidates = mica_new_array(boxes, sizeof *p->candidates);
    p->sorted = mica_new_array(longest, sizeof *p->sorted);
    p->scratch = mica_new_array(longest + most, sizeof *p->scratch);
    p->selected = mica_new_array(boxes, sizeof *p->selected);
    p->kept = mica_new_array(most, sizeof *p->kept);
    bool complete = p->decoded && p->scores && p->candidates && p->sorted && p->scratch && p->selected && p->kept;
    return complete ? 0 : mica_fail_nomem(p->call->log);
}

static void release(struct postprocess *p)
{
    free(p->decoded);
    free(p->scores);
    free(p->candidates);
    free(p->sorted);
    free(p->scratch);
    free(p->selected);
    free(p->kept);
}

int mica_cpu_postprocess(const struct mica_cpu_call *call)
{
    struct postprocess p = {.call = call, .options = &call->op->detection};
    p.boxes = mica_cpu_input(call, 0)->dims[1];
    p.columns = mica_cpu_input(call, 1)->dims[2];
    p.background = p.columns - p.options->classes;
    int result = allocate(&p);
    if (!result)
        result = decode(&p);
    if (!result) {
        for (uint32_t i = 0; i < 4; i++)
            memset(mica_cpu_output_data(call, i), 0, mica_cpu_output(call, i)->bytes);
        if (p.options->regular_nms)
            run_regular(&p);
        else
            run_fast(&p);
    }
    release(&p);
    return result;
}
