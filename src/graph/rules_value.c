/* SPDX-License-Identifier: MIT */
/* Operations on single values or rows: softmax, logistic, conversions; and the detection post-processing. */
#include "graph/check.h"

#include <math.h>

/* Softmax and logistic map to 0..1; TensorFlow Lite fixes how an integer says so. */
static bool check_unit_output(struct mica_check *check)
{
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!mica_is_integer(output->type))
        return true;
    int32_t zero_point = output->type == MICA_TYPE_UINT8 ? 0 : INT8_MIN;
    const float scale = 1.0f / 256;
    if (output->quant.zero_point[0] == zero_point && fabsf(output->quant.scale[0] - scale) <= 0.001f * scale)
        return true;
    return mica_reject(check, "the %s output should have scale 1/256 and zero point %d", mica_type_name(output->type),
                       zero_point);
}

bool mica_rule_softmax(struct mica_check *check)
{
    if (!mica_check_io(check, 1, 1, 1) || !mica_check_in_out(check))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0);
    if (input->rank < 1)
        return mica_reject(check, "a scalar has no softmax");
    float beta = check->op->beta;
    if (!isfinite(beta) || beta <= 0)
        return mica_reject(check, "beta %g should be positive", (double)beta);
    /* The fixed-point kernel shifts by 26 bits and takes a factor above 1 for granted. */
    if (mica_is_integer(input->type) && (double)beta * (double)input->quant.scale[0] * (double)(1 << 26) <= 1)
        return mica_reject(check, "the input's scale %g is too small", (double)input->quant.scale[0]);
    return mica_check_same_shape(check, input, mica_check_output(check, 0)) && check_unit_output(check);
}

bool mica_rule_logistic(struct mica_check *check)
{
    return mica_check_io(check, 1, 1, 1) && mica_check_in_out(check) &&
           mica_check_same_shape(check, mica_check_input(check, 0), mica_check_output(check, 0)) &&
           check_unit_output(check);
}

/* Conversions know int16 too, with zero point 0. */
static bool check_convertible(struct mica_check *check, const struct mica_tensor *tensor, const char *what)
{
    if (tensor->type != MICA_TYPE_INT16)
        return mica_check_number(check, tensor, what);
    return (tensor->quant.count == 1 && tensor->quant.symmetric) ||
           mica_reject(check, "type int16 of the %s needs exactly one scale, and zero point 0", what);
}

bool mica_rule_quantize(struct mica_check *check)
{
    if (!mica_check_io(check, 1, 1, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    if (!check_convertible(check, input, "input") || !check_convertible(check, output, "output") ||
        !mica_check_same_shape(check, input, output))
        return false;
    if (!mica_is_quantized(output->type))
        return mica_reject(check, "the output is %s, not an integer", mica_type_name(output->type));
    return !mica_is_quantized(input->type) ||
           mica_check_factor(check, (double)input->quant.scale[0] / (double)output->quant.scale[0]);
}

bool mica_rule_dequantize(struct mica_check *check)
{
    if (!mica_check_io(check, 1, 1, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    if (!mica_is_quantized(input->type) || output->type != MICA_TYPE_FLOAT32)
        return mica_reject(check, "%s to %s is not supported: uint8, int8 or int16 to float32 is",
                           mica_type_name(input->type), mica_type_name(output->type));
    return check_convertible(check, input, "input") && mica_check_same_shape(check, input, output);
}

/* ---- detection post-processing ---------------------------------------- */

static bool check_shape(struct mica_check *check, const struct mica_tensor *tensor, const char *what, uint32_t rank,
                        const int64_t *dims)
{
    bool fits = tensor->rank == rank;
    for (uint32_t i = 0; fits && i < rank; i++)
        fits = tensor->dims[i] == dims[i];
    if (fits)
        return true;
    return mica_reject(check, "shape %s of the %s does not fit the operation's parameters and inputs",
                       mica_shape_text(tensor).text, what);
}

static bool check_detection_options(struct mica_check *check)
{
    const struct mica_detection *options = &check->op->detection;
    if (options->max_detections < 1 || options->max_classes_per_detection < 1 || options->classes < 1)
        return mica_reject(check,
                           "the numbers of detections (%d), classes of one (%d) and classes (%d) should be "
                           "positive",
                           options->max_detections, options->max_classes_per_detection, options->classes);
    if (options->regular_nms && options->detections_per_class < 1)
        return mica_reject(check, "the number of detections of a class (%d) should be positive",
                           options->detections_per_class);
    if (!isfinite(options->score_threshold) || !(options->iou_threshold > 0 && options->iou_threshold <= 1))
        return mica_reject(check, "thresholds %g (score) and %g (overlap) are out of range",
                           (double)options->score_threshold, (double)options->iou_threshold);
    const float scales[] = {options->scale_x, options->scale_y, options->scale_w, options->scale_h};
    for (size_t i = 0; i < 4; i++)
        if (!isfinite(scales[i]) || scales[i] <= 0)
            return mica_reject(check, "box scale %g should be positive", (double)scales[i]);
    return true;
}

static bool check_detection_inputs(struct mica_check *check)
{
    static const char *const parts[] = {"boxes", "scores", "anchors"};
    for (uint32_t i = 0; i < 3; i++) {
        const struct mica_tensor *input = mica_check_input(check, i);
        if (!mica_check_number(check, input, parts[i]))
            return false;
        if (input->type == MICA_TYPE_INT8)
            return mica_reject(check, "int8 %s are not supported: uint8 and float32 are", parts[i]);
    }
    const struct mica_tensor *boxes = mica_check_input(check, 0), *scores = mica_check_input(check, 1);
    if (!mica_check_rank(check, boxes, "boxes", 3) || !mica_check_rank(check, scores, "scores", 3))
        return false;
    int64_t count = boxes->dims[1], classes = scores->dims[2], known = check->op->detection.classes;
    if (classes != known && classes != known + 1)
        return mica_reject(check, "%lld scores a box do not fit %lld classes", (long long)classes, (long long)known);
    return check_shape(check, boxes, "boxes", 3, (const int64_t[]){1, count, 4}) &&
           check_shape(check, scores, "scores", 3, (const int64_t[]){1, count, classes}) &&
           check_shape(check, mica_check_input(check, 2), "anchors", 2, (const int64_t[]){count, 4});
}

bool mica_rule_detection(struct mica_check *check)
{
    if (!mica_check_io(check, 3, 3, 4) || !check_detection_options(check) || !check_detection_inputs(check))
        return false;
    for (uint32_t i = 0; i < 4; i++)
        if (mica_check_output(check, i)->type != MICA_TYPE_FLOAT32)
            return mica_reject(check, "output %u is not float32", i);
    int64_t count = (int64_t)check->op->detection.max_detections * check->op->detection.max_classes_per_detection;
    return check_shape(check, mica_check_output(check, 0), "box output", 3, (const int64_t[]){1, count, 4}) &&
           check_shape(check, mica_check_output(check, 1), "class output", 2, (const int64_t[]){1, count}) &&
           check_shape(check, mica_check_output(check, 2), "score output", 2, (const int64_t[]){1, count}) &&
           check_shape(check, mica_check_output(check, 3), "count output", 1, (const int64_t[]){1});
}
