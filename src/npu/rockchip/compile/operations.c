/* SPDX-License-Identifier: MIT */
/*
 * The table of operations, for people and for the test that tries its edges: what supports.c dispatches, under the
 * names that models call it by. A new operation is a line here. Both chips take the same.
 */
#include "npu/rockchip/compile/plan.h"

/* clang-format off */
#define BYTES "uint8 int8"
#define KERNEL {"kernel", MICA_LIMIT_RANGE, 1, RK_MAX_KERNEL}
#define STRIDE {"stride", MICA_LIMIT_RANGE, 1, RK_MAX_STRIDE}
#define DILATION {"dilation", MICA_LIMIT_RANGE, 1, RK_MAX_DILATION}
#define COLUMNS {"columns", MICA_LIMIT_RANGE, 1, RK_MAX_IMAGE}
#define CHANNELS_IN {"channels in", MICA_LIMIT_RANGE, 1, RK_MAX_CHANNELS}
#define CHANNELS_OUT {"channels out", MICA_LIMIT_RANGE, 1, RK_MAX_CHANNELS}
#define BATCH {"batch", MICA_LIMIT_RANGE, 1, 1}
#define SPREAD(name) {name, MICA_LIMIT_POWERS_OF_TWO, 1, 8} /* strides of the transposed convolution: specification, section 12 */
#define AXES(least) {"axis from the last", MICA_LIMIT_RANGE, least, 2}
#define WITH(name) {name, MICA_LIMIT_FLAG, 0, 1}
#define WITHOUT(name) {name, MICA_LIMIT_FLAG, 0, 0}

#define CONVOLUTION "convolution core"
#define DEPTHWISE "depthwise convolution core"
#define BUFFER "the rows of a window and 16 kernels fit the convolution buffer"
#define TRANSPOSED "transposed convolution of the core"
#define ELEMENTS "element-wise unit"
#define TABLE "lookup table of 256 entries, TFLite's own values"
#define MOVED "views, and convolutions by 1 where the channels' layout changes"
#define PICKED "copies of rows, convolutions that select columns and channels"
#define REDUCED "over rows, columns or both"
#define AVERAGED "over rows, columns, channels"
#define ALIKE "input and output quantized alike"

static const struct mica_operation_support rows[] = {
    {"CONV_2D", BYTES, CONVOLUTION, BUFFER, 1, {KERNEL, STRIDE, DILATION, CHANNELS_IN, CHANNELS_OUT, COLUMNS, BATCH, WITH("per channel")}},
    {"DEPTHWISE_CONV_2D", BYTES, DEPTHWISE, BUFFER, 1, {KERNEL, STRIDE, DILATION, CHANNELS_IN, COLUMNS, BATCH, {"multiplier", MICA_LIMIT_RANGE, 1, INT32_MAX}, WITH("per channel")}},
    {"FULLY_CONNECTED", BYTES, "convolution core, 1x1", "", 1, {CHANNELS_IN, CHANNELS_OUT, {"batch", MICA_LIMIT_RANGE, 1, RK_MAX_IMAGE}}},
    {"TRANSPOSE_CONV", BYTES, TRANSPOSED, "kernel minus 1 minus padding is at most 15", 1, {{"kernel", MICA_LIMIT_RANGE, 1, RK_MAX_PAD + 1}, SPREAD("stride"), CHANNELS_IN, CHANNELS_OUT, BATCH, WITH("per channel")}},
    {"ADD", BYTES, ELEMENTS, "", 1, {WITH("broadcast")}},
    {"SUB", BYTES, ELEMENTS, "", 1, {WITH("broadcast")}},
    {"MUL", BYTES, ELEMENTS, "", 1, {WITH("broadcast")}},
    {"MAXIMUM", BYTES, ELEMENTS, ALIKE, 0, {WITH("broadcast")}},
    {"MINIMUM", BYTES, ELEMENTS, ALIKE, 0, {WITH("broadcast")}},
    {"SQUARED_DIFFERENCE", "int8", ELEMENTS ", lookup table", "scales of which 8-bit differences give squares within 1", 1, {WITH("broadcast")}},
    {"PRELU", BYTES, ELEMENTS ", lookup table", "constant slopes", 1, {{0}}},
    {"AVERAGE_POOL_2D", BYTES, DEPTHWISE ", weights of 1", ALIKE "; over all of an image: as MEAN", 1, {KERNEL, STRIDE, COLUMNS, BATCH}},
    {"MAX_POOL_2D", BYTES, "maxima of shifted images", ALIKE "; the padded image has at most 2047 rows and columns", 0, {STRIDE, BATCH}},
    {"MEAN", BYTES, DEPTHWISE ", the image as window; direct over channels", AVERAGED "; sizes of up to 31, or, but with channels, that 2 to 7 divide down to that", 1, {BATCH}},
    {"SUM", "uint8", DEPTHWISE ", the image as window; direct over channels", AVERAGED "; sizes as for MEAN", 1, {BATCH}},
    {"REDUCE_MAX", BYTES, "maxima of shifted images", ALIKE "; " REDUCED, 0, {BATCH}},
    {"REDUCE_MIN", BYTES, "minima of shifted images", ALIKE "; " REDUCED, 0, {BATCH}},
    {"CONCATENATION", BYTES, MOVED, "exact where all are quantized alike, which int8 always is", 1, {WITH("other scales")}},
    {"PACK", BYTES, MOVED, ALIKE "; along the last dimension up to 31 channels that become columns", 0, {{0}}},
    {"UNPACK", BYTES, MOVED, ALIKE, 0, {{0}}},
    {"SPLIT", BYTES, MOVED, ALIKE, 0, {AXES(0)}},
    {"SPLIT_V", BYTES, MOVED, ALIKE, 0, {AXES(0)}},
    {"SLICE", BYTES, MOVED, ALIKE, 0, {AXES(0)}},
    {"STRIDED_SLICE", BYTES, MOVED, ALIKE, 0, {AXES(0)}},
    {"PAD", BYTES, MOVED, ALIKE, 0, {AXES(0)}},
    {"PADV2", BYTES, MOVED, ALIKE, 0, {AXES(0)}},
    {"MIRROR_PAD", BYTES, PICKED, ALIKE, 0, {AXES(0)}},
    {"REVERSE_V2", BYTES, PICKED, ALIKE "; up to 32 rows, 256 columns", 0, {{0}}},
    {"GATHER", BYTES, PICKED, ALIKE "; constant indices; up to 32 runs of rows", 0, {{0}}},
    {"GATHER_ND", BYTES, PICKED, "as GATHER; not of single elements", 0, {{0}}},
    {"TRANSPOSE", BYTES, MOVED, ALIKE "; rows with columns: up to 32; columns with channels: up to 31, and 2048 values a row", 0, {BATCH}},
    {"RESHAPE", BYTES, MOVED, "free where the last dimension stays, the host reads the result or writes the input; else channels split into up to 16 pixels a step, or join from up to 31", 0, {{0}}},
    {"SQUEEZE", BYTES, MOVED, "as RESHAPE", 0, {{0}}},
    {"EXPAND_DIMS", BYTES, MOVED, "as RESHAPE", 0, {{0}}},
    {"RESIZE_NEAREST_NEIGHBOR", BYTES, TRANSPOSED ", or a strided one", ALIKE "; whole factors; larger: powers of two up to 64", 0, {BATCH}},
    {"RESIZE_BILINEAR", BYTES, TRANSPOSED ", weights of a triangle", ALIKE "; factors that are powers of two up to 64, with half pixels up to 8", 1, {BATCH}},
    {"SPACE_TO_DEPTH", BYTES, "strided convolution by 1", ALIKE, 0, {{"block", MICA_LIMIT_RANGE, 1, RK_MAX_STRIDE}, BATCH}},
    {"DEPTH_TO_SPACE", BYTES, TRANSPOSED, ALIKE, 0, {SPREAD("block"), BATCH}},
    {"LOGISTIC", BYTES, TABLE, "", 0, {{0}}},
    {"TANH", BYTES, TABLE, "", 0, {{0}}},
    {"QUANTIZE", BYTES, TABLE, "both sides are 8-bit", 0, {{0}}},
    {"RELU", BYTES, TABLE, "", 0, {{0}}},
    {"RELU6", BYTES, TABLE, "", 0, {{0}}},
    {"RELU_N1_TO_1", BYTES, TABLE, "", 0, {{0}}},
    {"RELU_0_TO_1", BYTES, TABLE, "", 0, {{0}}},
    {"LEAKY_RELU", BYTES, TABLE, "", 0, {{0}}},
    {"HARD_SWISH", BYTES, TABLE, "", 0, {{0}}},
    {"ELU", "int8", TABLE, "", 0, {{0}}},
    {"ABS", "int8", TABLE, "", 0, {{0}}},
    {"NEG", "int8", TABLE, "", 0, {{0}}},
    {"EXP", "int8", TABLE, "", 0, {{0}}},
    {"SQRT", "int8", TABLE, "", 0, {{0}}},
    {"RSQRT", "int8", TABLE, "", 0, {{0}}},
    {"LOG", "int8", TABLE, "", 0, {{0}}},
};

/* clang-format on */

const struct mica_operation_support *rk_operations(const struct mica_chip *chip, size_t *count)
{
    (void)chip;
    *count = sizeof(rows) / sizeof(rows[0]);
    return rows;
}
