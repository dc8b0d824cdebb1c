/* SPDX-License-Identifier: MIT */
/* Constants that are weights, and what is added to their sums. */
#include "frontend/onnx/internal.h"

#include <math.h>

int onnx_weights(struct onnx_reader *reader, int32_t index, const uint8_t *order, int32_t *tensor)
{
    index = onnx_resolve(reader, index);
    int result = onnx_usable(reader, index);
    struct onnx_value *value = &reader->values[index];
    if (!result && value->state != ONNX_CONSTANT && value->source >= 0)
        result = onnx_fold_dequantize(reader, index);
    if (!result && value->state != ONNX_CONSTANT)
        result = onnx_refuse(reader, "its weights should be constant");
    if (result)
        return result;
    if (value->weights < 0 || value->weights_order != order) {
        result = onnx_constant_tensor(reader, index, order, &value->weights);
        value->weights_order = order;
    }
    *tensor = value->weights;
    return result;
}

/* ---- bias ------------------------------------------------------------- */

/* What one unit of the sum of channel `i` is worth. */
static double sum_scale(const struct onnx_reader *reader, const struct onnx_call *call, size_t i)
{
    const struct onnx_quant *weights = &reader->values[call->in[1]].quant;
    return (double)reader->values[call->in[0]].quant.scale[0] * (double)weights->scale[weights->count > 1 ? i : 0];
}

/* The codes as they are, if they count in those units. */
static bool codes_fit(const struct onnx_reader *reader, const struct onnx_call *call, const struct onnx_value *codes,
                      size_t count)
{
    const struct onnx_quant *quant = &codes->quant;
    if (codes->type != MICA_TYPE_INT32 || (quant->count > 1 && quant->count != count))
        return false;
    for (size_t i = 0; i < count && quant->count; i++) {
        size_t k = quant->count > 1 ? i : 0;
        double wanted = sum_scale(reader, call, i);
        if (quant->zero_point[k] || fabs((double)quant->scale[k] - wanted) > 1e-4 * wanted)
            return false;
    }
    return true;
}

static int32_t bias_code(double real, double scale)
{
    double code = rint(real / scale);
    if (!(code >= INT32_MIN))
        return INT32_MIN;
    return code > INT32_MAX ? INT32_MAX : (int32_t)code;
}

/* From real numbers to those units. */
static int quantize_bias(struct onnx_reader *reader, const struct onnx_call *call, const struct onnx_value *real,
                         size_t count, const void **data)
{
    int error = 0;
    int32_t *codes = onnx_alloc(reader, count * sizeof *codes, &error);
    for (size_t i = 0; codes && i < count; i++)
        codes[i] = bias_code((double)((const float *)real->data)[i], sum_scale(reader, call, i));
    *data = codes;
    return error;
}

static int bias_codes(struct onnx_reader *reader, const struct onnx_call *call, int32_t index, size_t *count,
                      const void **data)
{
    struct onnx_value *value = &reader->values[index];
    const struct onnx_quant *weights = &reader->values[call->in[1]].quant;
    int32_t codes = value->source >= 0 ? onnx_resolve(reader, value->source) : index;
    int result = onnx_decode(reader, codes);
    if (result)
        return result;
    *count = onnx_elements(value);
    if (weights->count > 1 && weights->count != *count)
        return onnx_refuse(reader, "it has not as many values to add as weights have scales");
    if (codes_fit(reader, call, &reader->values[codes], *count)) {
        *data = reader->values[codes].data;
        return 0;
    }
    if (value->source >= 0 && value->state != ONNX_CONSTANT)
        result = onnx_fold_dequantize(reader, index);
    if (!result && value->type != MICA_TYPE_FLOAT32)
        result = onnx_refuse(reader, "what it adds is neither int32 nor float32");
    return result ? result : quantize_bias(reader, call, value, *count, data);
}

static int quantized_bias(struct onnx_reader *reader, const struct onnx_call *call, int32_t index, int32_t *tensor)
{
    const struct onnx_quant *weights = &reader->values[call->in[1]].quant;
    struct mica_tensor bias = {.type = MICA_TYPE_INT32, .rank = 1};
    struct onnx_text name = onnx_text(reader->values[index].name);
    size_t count;
    int result = bias_codes(reader, call, index, &count, &bias.data);
    if (result)
        return result;
    float *scale = onnx_alloc(reader, weights->count * sizeof *scale, &result);
    int32_t *zero_point = scale ? onnx_alloc(reader, weights->count * sizeof *zero_point, &result) : NULL;
    if (!zero_point)
        return result;
    for (uint32_t i = 0; i < weights->count; i++)
        scale[i] = (float)sum_scale(reader, call, i);
    bias.name = name.text;
    bias.dims[0] = (int32_t)count;
    bias.quant = (struct mica_quantization){.count = weights->count, .scale = scale, .zero_point = zero_point};
    *tensor = (int32_t)reader->graph->tensor_count;
    return mica_graph_add_tensor(reader->graph, &bias, reader->log);
}

int onnx_bias(struct onnx_reader *reader, const struct onnx_call *call, int32_t bias, int32_t *tensor)
{
    *tensor = MICA_NO_TENSOR;
    bias = onnx_resolve(reader, bias);
    if (bias < 0)
        return 0;
    int result = onnx_usable(reader, bias);
    if (result)
        return result;
    return call->quantized ? quantized_bias(reader, call, bias, tensor) : onnx_tensor(reader, bias, ONNX_PLAIN, tensor);
}
