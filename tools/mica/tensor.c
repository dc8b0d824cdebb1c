/* SPDX-License-Identifier: MIT */
#include "tensor.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [MICA_TYPE_OTHER] = {"other", 0}, [MICA_TYPE_FLOAT32] = {"float32", 4}, [MICA_TYPE_INT32] = {"int32", 4},
    [MICA_TYPE_UINT8] = {"uint8", 1}, [MICA_TYPE_INT8] = {"int8", 1},       [MICA_TYPE_INT16] = {"int16", 2},
    [MICA_TYPE_INT64] = {"int64", 8}, [MICA_TYPE_BOOL] = {"bool", 1},
};

const char *cli_type_name(enum mica_type type)
{
    return (size_t)type < sizeof(types) / sizeof(types[0]) ? types[type].name : "other";
}

size_t cli_type_bytes(enum mica_type type)
{
    return (size_t)type < sizeof(types) / sizeof(types[0]) ? types[type].bytes : 0;
}

void cli_dims_text(const int32_t *dims, uint32_t rank, char *text)
{
    size_t used = 0;
    if (!rank)
        snprintf(text, CLI_SHAPE_SIZE, "scalar");
    for (uint32_t i = 0; i < rank && i < MICA_MAX_RANK; i++) /* 8 x 12 characters at most */
        used += (size_t)snprintf(text + used, CLI_SHAPE_SIZE - used, "%s%d", i ? "x" : "", (int)dims[i]);
}

void cli_shape_text(const struct mica_tensor_info *tensor, char *text)
{
    int used = snprintf(text, CLI_SHAPE_SIZE, "%s ", cli_type_name(tensor->type));
    char dims[CLI_SHAPE_SIZE];
    cli_dims_text(tensor->dims, tensor->rank, dims);
    snprintf(text + used, CLI_SHAPE_SIZE - (size_t)used, "%s", dims);
}

size_t cli_element_count(const struct mica_tensor_info *tensor)
{
    size_t bytes = cli_type_bytes(tensor->type);
    return bytes ? tensor->bytes / bytes : 0;
}

double cli_raw_value(const struct mica_tensor_info *tensor, const void *data, size_t index)
{
    const char *at = (const char *)data + index * cli_type_bytes(tensor->type);
    float f32;
    int64_t i64;
    int32_t i32;
    int16_t i16;
    switch (tensor->type) {
    case MICA_TYPE_FLOAT32:
        memcpy(&f32, at, sizeof(f32));
        return (double)f32;
    case MICA_TYPE_INT64:
        memcpy(&i64, at, sizeof(i64));
        return (double)i64;
    case MICA_TYPE_INT32:
        memcpy(&i32, at, sizeof(i32));
        return i32;
    case MICA_TYPE_INT16:
        memcpy(&i16, at, sizeof(i16));
        return i16;
    case MICA_TYPE_INT8:
        return *(const int8_t *)at;
    default:
        return *(const uint8_t *)at;
    }
}

static double to_real(const struct mica_tensor_info *tensor, double raw)
{
    bool quantized = tensor->type != MICA_TYPE_FLOAT32 && tensor->scale != 0;
    return quantized ? (double)tensor->scale * (raw - tensor->zero_point) : raw;
}

double cli_real_value(const struct mica_tensor_info *tensor, const void *data, size_t index)
{
    return to_real(tensor, cli_raw_value(tensor, data, index));
}

bool cli_is_classes(const struct mica_tensor_info *tensor)
{
    size_t count = cli_element_count(tensor);
    bool found = false;
    for (uint32_t i = 0; i < tensor->rank; i++)
        found = found || (tensor->dims[i] > 0 && (size_t)tensor->dims[i] == count);
    return count > 1 && found;
}

size_t cli_top(const struct mica_tensor_info *tensor, const void *data, size_t *indices, size_t count)
{
    size_t elements = cli_element_count(tensor), found = 0;
    for (size_t i = 0; i < elements; i++) {
        double value = cli_raw_value(tensor, data, i);
        if (isnan(value))
            continue;
        size_t place = found;
        while (place && cli_raw_value(tensor, data, indices[place - 1]) < value)
            place--;
        if (place >= count)
            continue;
        if (found < count)
            found++;
        memmove(indices + place + 1, indices + place, (found - place - 1) * sizeof(*indices));
        indices[place] = i;
    }
    return found;
}

bool cli_range(const struct mica_tensor_info *tensor, const void *data, struct cli_range *range)
{
    size_t count = cli_element_count(tensor);
    if (!count)
        return false;
    double sum = 0;
    *range = (struct cli_range){INFINITY, -INFINITY, 0};
    for (size_t i = 0; i < count; i++) {
        double value = cli_real_value(tensor, data, i);
        range->least = fmin(range->least, value);
        range->most = fmax(range->most, value);
        sum += value;
    }
    range->mean = sum / (double)count;
    return true;
}
