/* SPDX-License-Identifier: MIT */
#include "models.h"

#include <string.h>

struct host *model_conv(void)
{
    static const int8_t weights[8 * 3 * 3 * 4] = {1, -2, 3, 0, 5};
    static _Alignas(4) const int32_t bias[8] = {100, -100, 7};
    static const struct tfl_conv_params params = {
        .padding = TFL_PADDING_SAME, .stride_width = 1, .stride_height = 1, .dilation_width = 1, .dilation_height = 1};
    static const int image[] = {1, 6, 6, 4}, kernel[] = {8, 3, 3, 4}, channels[] = {8}, result[] = {1, 6, 6, 8};
    static const int inputs[] = {CONV_INPUT, CONV_WEIGHTS, CONV_BIAS}, outputs[] = {CONV_OUTPUT};
    const int zero = 0, zeros[8] = {0};
    const float input_scale = 0.5f, output_scale = 0.75f;
    const float scales[8] = {0.1f, 0.2f, 0.3f, 0.4f, 0.5f, 0.6f, 0.7f, 0.8f};
    float bias_scales[8];
    for (int i = 0; i < 8; i++)
        bias_scales[i] = input_scale * scales[i];
    struct host *host = host_create(CONV_TENSORS);
    host_set_tensor(host, CONV_INPUT, TFL_TYPE_INT8, 4, image, "image");
    host_set_quantization(host, CONV_INPUT, 1, &input_scale, &zero, 0);
    host_set_tensor(host, CONV_WEIGHTS, TFL_TYPE_INT8, 4, kernel, "weights");
    host_set_quantization(host, CONV_WEIGHTS, 8, scales, zeros, 0);
    host_set_constant(host, CONV_WEIGHTS, weights);
    host_set_tensor(host, CONV_BIAS, TFL_TYPE_INT32, 1, channels, "bias");
    host_set_quantization(host, CONV_BIAS, 8, bias_scales, zeros, 0);
    host_set_constant(host, CONV_BIAS, bias);
    host_set_tensor(host, CONV_OUTPUT, TFL_TYPE_INT8, 4, result, "result");
    host_set_quantization(host, CONV_OUTPUT, 1, &output_scale, &zero, 0);
    host_add_node(host, TFL_BUILTIN_CONV_2D, &params, sizeof params, 3, inputs, 1, outputs);
    host_set_outputs(host, 1, outputs);
    return host;
}

struct host *model_conv_per_tensor(void)
{
    struct host *host = model_conv();
    for (int tensor = CONV_WEIGHTS; tensor <= CONV_BIAS; tensor++) {
        struct tfl_affine_quantization *affine = host->context.tensors[tensor].quantization.params;
        affine->scale->size = affine->zero_point->size = 1;
        affine->quantized_dimension = 0;
    }
    return host;
}

struct host *model_chain(int count)
{
    static const struct tfl_add_params params = {TFL_ACT_NONE};
    static const int shape[] = {1, 4, 4, 3};
    struct host *host = host_create(count + 1);
    const float scale = 0.5f;
    const int zero_point = 128;
    for (int i = 0; i <= count; i++) {
        host_set_tensor(host, i, TFL_TYPE_UINT8, 4, shape, "link");
        host_set_quantization(host, i, 1, &scale, &zero_point, 0);
    }
    for (int i = 0; i < count; i++) {
        const int inputs[] = {i, i}, output = i + 1;
        host_add_node(host, TFL_BUILTIN_ADD, &params, sizeof params, 2, inputs, 1, &output);
    }
    host_set_outputs(host, 1, &count);
    return host;
}
