/* SPDX-License-Identifier: MIT */
/* Models of one operation as .tflite files: what a sweep has drivers compile. */
#ifndef MICA_ANALYSIS_MODEL_H
#define MICA_ANALYSIS_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/log.h"

struct mica_model_shape {
    bool depthwise; /* has `in` channels, `out` isn't looked at */
    bool is_signed; /* int8, else uint8 */
    bool valid;     /* padding; else same */
    uint32_t height, width, kernel, stride, in, out;
    uint32_t seed; /* of weights and biases */
};

/* *data is to be freed. -EINVAL: no such operation, -ENOMEM; both said. The same shape gives the same bytes. */
int mica_model_write(const struct mica_model_shape *shape, struct mica_log *log, uint8_t **data, size_t *size);

#endif
