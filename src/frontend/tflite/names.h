/* SPDX-License-Identifier: MIT */
/* Names of TensorFlow Lite's built-in operations and element types. */
#ifndef MICA_FRONTEND_TFLITE_NAMES_H
#define MICA_FRONTEND_TFLITE_NAMES_H

#include <stdint.h>

/* The codes that the reader tells apart. */
enum {
    MICA_TFLITE_ADD = 0,
    MICA_TFLITE_AVERAGE_POOL_2D = 1,
    MICA_TFLITE_CONCATENATION = 2,
    MICA_TFLITE_CONV_2D = 3,
    MICA_TFLITE_DEPTHWISE_CONV_2D = 4,
    MICA_TFLITE_DEQUANTIZE = 6,
    MICA_TFLITE_FULLY_CONNECTED = 9,
    MICA_TFLITE_LOGISTIC = 14,
    MICA_TFLITE_MAX_POOL_2D = 17,
    MICA_TFLITE_RESHAPE = 22,
    MICA_TFLITE_RESIZE_BILINEAR = 23,
    MICA_TFLITE_SOFTMAX = 25,
    MICA_TFLITE_CUSTOM = 32,
    MICA_TFLITE_PAD = 34,
    MICA_TFLITE_SQUEEZE = 43,
    MICA_TFLITE_EXPAND_DIMS = 70,
    MICA_TFLITE_RESIZE_NEAREST_NEIGHBOR = 97,
    MICA_TFLITE_QUANTIZE = 114,
};

/* "CONV_2D" for 3; NULL for a code newer than this table. Static. */
const char *mica_tflite_operator_name(int32_t code);

/* "FLOAT16" for 1; "unknown" for a type newer than this table. Static. */
const char *mica_tflite_type_name(int32_t type);

#endif
