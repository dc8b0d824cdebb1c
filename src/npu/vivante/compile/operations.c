/* SPDX-License-Identifier: MIT */
/* The table of operations, for each kind of chip. The rows are in operations.def. */
#include "npu/vivante/compile/batch.h"
#include "npu/vivante/compile/compile.h"
#include "npu/vivante/compile/compose.h"
#include "npu/vivante/compile/window.h"
#include "npu/vivante/hw/chips.h"

/* clang-format off */
#define BYTES "uint8 int8"
#define KERNEL {"kernel", MICA_LIMIT_RANGE, 1, VIV_MAX_TAPS_ALONG}
#define STRIDE {"stride", MICA_LIMIT_RANGE, 1, 32} /* both ways: 1024 lanes (window.h) */
#define DILATION {"dilation", MICA_LIMIT_RANGE, 1, INT32_MAX}
#define COLUMNS {"columns", MICA_LIMIT_RANGE, 1, VIV_MAX_IMAGE}
#define CHANNELS_OUT {"channels out", MICA_LIMIT_RANGE, 1, VIV_MAX_CHANNELS}
#define BATCH {"batch", MICA_LIMIT_RANGE, 1, VIV_MAX_BATCH}
#define WITH(name) {name, MICA_LIMIT_FLAG, 0, 1}
#define WITHOUT(name) {name, MICA_LIMIT_FLAG, 0, 0}

#define AXES {"axis from the last", MICA_LIMIT_RANGE, 0, 2}
#define ALL_AXES {"axis from the last", MICA_LIMIT_RANGE, 0, 3}
#define CHANNELS "scales per channel in groups, within 1; with per-channel=folded within the bound that mica info tells"
#define SUM "NN cores, a convolution over both inputs"
#define ONE "NN cores, a convolution of single values"
#define TABLE "NN cores, ramps and their weighted sum, exact for all 256 values"
#define MAXIMA "TP cores"
#define MOVED "TP cores, boxes of bytes"
#define ALIKE "input and output quantized alike"

#define MAX_KERNEL 11
#define MAX_TRANSPOSED 9 /* of one phase: one more than the padding */
#define DEPTHWISE "NN cores, every kernel with zeros for other channels"
static const struct mica_operation_support v7_rows[] = {
#include "npu/vivante/compile/operations.def"
};
#undef MAX_KERNEL
#undef MAX_TRANSPOSED
#undef DEPTHWISE

#define MAX_KERNEL 15
#define MAX_TRANSPOSED 15
#define DEPTHWISE "NN cores in depthwise mode"
static const struct mica_operation_support v8_rows[] = {
#include "npu/vivante/compile/operations.def"
};

/* clang-format on */

const struct mica_operation_support *viv_operations(const struct mica_chip *chip, size_t *count)
{
    const struct viv_chip *parameters = chip->parameters;
    *count = sizeof v7_rows / sizeof v7_rows[0];
    return parameters->max_kernel == MAX_KERNEL ? v8_rows : v7_rows;
}
