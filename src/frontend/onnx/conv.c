/* SPDX-License-Identifier: MIT */
/* Convolutions and products of matrices. */
#include "frontend/onnx/internal.h"

static const uint8_t conv_order[] = {0, 2, 3, 1};      /* OIHW to OHWI */
static const uint8_t depthwise_order[] = {1, 2, 3, 0}; /* O1HW to 1HWO; for transposed ones IOHW to OHWI */
static const uint8_t matrix_order[] = {1, 0};

static int32_t input_of(const struct onnx_reader *reader, uint32_t i)
{
    return i < reader->node->inputs ? reader->node->in[i] : ONNX_NONE;
}

/* ---- convolutions ----------------------------------------------------- */

static int check_images(struct onnx_reader *reader, const struct onnx_call *call)
{
    if (call->in[0] < 0 || call->in[1] < 0)
        return onnx_refuse(reader, "it needs an input and weights");
    if (reader->values[call->in[0]].rank != 4 || reader->values[call->in[1]].rank != 4)
        return onnx_refuse(reader, "only convolutions of images (4 dimensions) are supported");
    return 0;
}

static bool beyond(const struct mica_window *window)
{
    const struct mica_padding *p = &window->padding;
    int64_t extent_x = (window->kernel_x - INT64_C(1)) * window->dilation_x,
            extent_y = (window->kernel_y - INT64_C(1)) * window->dilation_y;
    return p->left > extent_x || p->right > extent_x || p->top > extent_y || p->bottom > extent_y;
}

static int conv_inputs(struct onnx_reader *reader, const struct onnx_call *call, const uint8_t *order, int32_t bias,
                       struct mica_op *op, int32_t inputs[3])
{
    struct onnx_result padded = onnx_call_result(reader, call, ONNX_IMAGE);
    int result = onnx_tensor(reader, call->in[0], ONNX_IMAGE, &inputs[0]);
    if (!result)
        result = onnx_weights(reader, call->in[1], order, &inputs[1]);
    if (!result)
        result = onnx_bias(reader, call, bias, &inputs[2]);
    if (result || !beyond(&op->window))
        return result;
    padded.quant = reader->values[call->in[0]].quant;
    result = onnx_pad_image(reader, &op->window.padding, &padded, &inputs[0]);
    op->window.padding = (struct mica_padding){0};
    return result;
}

static int emit_conv(struct onnx_reader *reader, const struct onnx_call *call, int32_t bias)
{
    struct mica_op op = {.kind = MICA_OP_CONV_2D};
    struct onnx_result result = onnx_call_result(reader, call, ONNX_IMAGE);
    int32_t inputs[3];
    int error = check_images(reader, call);
    if (error)
        return error;
    const int32_t *image = reader->values[call->in[0]].dims, *weights = reader->values[call->in[1]].dims;
    int64_t groups = onnx_int(reader, "group", 1);
    if (groups > 1 && groups == image[1] && weights[1] == 1)
        op.kind = MICA_OP_DEPTHWISE_CONV_2D;
    else if (groups != 1)
        return onnx_refuse(reader, "grouped convolution (%lld groups) is not supported", (long long)groups);
    error = onnx_window(reader, image, weights + 2, false, &op.window);
    if (!error)
        error = conv_inputs(reader, call, op.kind == MICA_OP_CONV_2D ? conv_order : depthwise_order, bias, &op, inputs);
    return error ? error : onnx_call_emit(reader, call, &op, inputs, inputs[2] < 0 ? 2 : 3, &result, NULL);
}

int onnx_conv(struct onnx_reader *reader, int kind)
{
    struct onnx_call call;
    int result = onnx_call_plain(reader, 2, &call);
    return result ? result : emit_conv(reader, &call, input_of(reader, 2));
}

int onnx_qlinear_conv(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {0, 3};
    struct onnx_call call;
    int result = onnx_call_qlinear(reader, places, 2, 6, 0, &call);
    if (!result && onnx_int(reader, "channels_last", 0))
        result = onnx_refuse(reader, "images with channels last are not supported");
    return result ? result : emit_conv(reader, &call, input_of(reader, 8));
}

/* ---- transposed convolution ------------------------------------------- */

static int transposed_shape(struct onnx_reader *reader, const struct onnx_call *call, const struct mica_window *window,
                            int32_t dims[4])
{
    const int32_t *image = reader->values[call->in[0]].dims;
    const int32_t stride[2] = {window->stride_y, window->stride_x}, kernel[2] = {window->kernel_y, window->kernel_x};
    const int32_t pads[2] = {window->padding.top + window->padding.bottom,
                             window->padding.left + window->padding.right};
    int64_t more[2] = {0, 0};
    uint32_t count;
    if (!onnx_ints(reader, "output_padding", more, 2, &count) || count == 1)
        return onnx_refuse(reader, "its output_padding should be two numbers");
    dims[0] = image[0];
    dims[3] = reader->values[call->in[1]].dims[1];
    for (int i = 0; i < 2; i++) {
        int64_t size = ((int64_t)image[2 + i] - 1) * stride[i] + kernel[i] - pads[i];
        if (more[i] < 0 || more[i] >= stride[i] || size + more[i] < 1 || size + more[i] > INT32_MAX)
            return onnx_refuse(reader, "its output's size is out of range");
        dims[1 + i] = (int32_t)(size + more[i]);
    }
    return 0;
}

int onnx_conv_transpose(struct onnx_reader *reader, int kind)
{
    struct mica_op op = {.kind = MICA_OP_TRANSPOSE_CONV};
    struct onnx_bytes attribute;
    struct onnx_call call;
    int32_t inputs[4], dims[4];
    const int32_t four = 4;
    int error = onnx_call_plain(reader, 2, &call);
    if (!error)
        error = check_images(reader, &call);
    if (error)
        return error;
    if (onnx_int(reader, "group", 1) != 1)
        return onnx_refuse(reader, "grouped transposed convolution is not supported");
    if (onnx_attribute(reader, "output_shape", &attribute) ||
        !onnx_is(onnx_string(reader, "auto_pad", "NOTSET"), "NOTSET"))
        return onnx_refuse(reader, "padding that follows from the output's shape is not supported");
    error =
        onnx_window(reader, reader->values[call.in[0]].dims, reader->values[call.in[1]].dims + 2, false, &op.window);
    if (!error && (op.window.dilation_x > 1 || op.window.dilation_y > 1))
        error = onnx_refuse(reader, "dilated transposed convolution is not supported");
    if (!error)
        error = transposed_shape(reader, &call, &op.window, dims);
    struct onnx_result result = onnx_call_result(reader, &call, ONNX_IMAGE);
    if (!error)
        error = onnx_add_int32(reader, dims, 1, &four, &inputs[0]);
    if (!error)
        error = onnx_weights(reader, call.in[1], depthwise_order, &inputs[1]);
    if (!error)
        error = onnx_tensor(reader, call.in[0], ONNX_IMAGE, &inputs[2]);
    if (!error)
        error = onnx_bias(reader, &call, input_of(reader, 2), &inputs[3]);
    return error ? error : onnx_call_emit(reader, &call, &op, inputs, inputs[3] < 0 ? 3 : 4, &result, NULL);
}

/* ---- products of matrices --------------------------------------------- */

static bool is_constant(const struct onnx_reader *reader, int32_t index)
{
    const struct onnx_value *value = &reader->values[index];
    return value->state == ONNX_CONSTANT ||
           (value->source >= 0 && reader->values[onnx_resolve(reader, value->source)].state == ONNX_CONSTANT);
}

/* Rows of the input times constant weights, stored by outputs (`turned`) or by inputs. */
static int emit_fully_connected(struct onnx_reader *reader, const struct onnx_call *call, bool turned, int32_t bias)
{
    struct mica_op op = {.kind = MICA_OP_FULLY_CONNECTED};
    struct onnx_result result = onnx_call_result(reader, call, ONNX_PLAIN);
    const struct onnx_value *input = &reader->values[call->in[0]], *weights = &reader->values[call->in[1]];
    int32_t inputs[3], dims[MICA_MAX_RANK];
    if (input->rank < 2 || weights->rank != 2 || input->dims[input->rank - 1] != weights->dims[turned ? 1 : 0])
        return onnx_refuse(reader, "its matrices do not fit each other");
    memcpy(dims, input->dims, sizeof dims);
    dims[input->rank - 1] = weights->dims[turned ? 0 : 1];
    result.dims = dims;
    result.rank = input->rank;
    int error = onnx_tensor(reader, call->in[0], ONNX_PLAIN, &inputs[0]);
    if (!error)
        error = onnx_weights(reader, call->in[1], turned ? NULL : matrix_order, &inputs[1]);
    if (!error)
        error = onnx_bias(reader, call, bias, &inputs[2]);
    return error ? error : onnx_call_emit(reader, call, &op, inputs, inputs[2] < 0 ? 2 : 3, &result, NULL);
}

static int emit_matmul(struct onnx_reader *reader, const struct onnx_call *call)
{
    struct mica_op op = {.kind = MICA_OP_BATCH_MATMUL};
    struct onnx_result result = onnx_call_result(reader, call, ONNX_PLAIN);
    int32_t inputs[2];
    if (call->in[0] < 0 || call->in[1] < 0)
        return onnx_refuse(reader, "it needs two inputs");
    if (reader->values[call->in[1]].rank == 2 && is_constant(reader, call->in[1]))
        return emit_fully_connected(reader, call, false, ONNX_NONE);
    if (call->checked && reader->inner == MICA_TYPE_UINT8) /* there is no kernel */
        return ONNX_RETRY;
    int error = onnx_tensor(reader, call->in[0], ONNX_PLAIN, &inputs[0]);
    if (!error)
        error = onnx_tensor(reader, call->in[1], ONNX_PLAIN, &inputs[1]);
    return error ? error : onnx_call_emit(reader, call, &op, inputs, 2, &result, NULL);
}

int onnx_matmul(struct onnx_reader *reader, int kind)
{
    struct onnx_call call;
    int result = onnx_call_plain(reader, 2, &call);
    return result ? result : emit_matmul(reader, &call);
}

int onnx_qlinear_matmul(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {0, 3};
    struct onnx_call call;
    int result = onnx_call_qlinear(reader, places, 2, 6, 1, &call);
    return result ? result : emit_matmul(reader, &call);
}

static int emit_gemm(struct onnx_reader *reader, const struct onnx_call *call, int32_t bias)
{
    float alpha = onnx_float(reader, "alpha", 1), beta = onnx_float(reader, "beta", 1);
    if (call->in[0] < 0 || call->in[1] < 0)
        return onnx_refuse(reader, "it needs two matrices");
    if (alpha < 1 || alpha > 1 || ((beta < 1 || beta > 1) && bias >= 0))
        return onnx_refuse(reader, "factors alpha and beta other than 1 are not supported");
    if (onnx_int(reader, "transA", 0))
        return onnx_refuse(reader, "a transposed first matrix is not supported");
    return emit_fully_connected(reader, call, onnx_int(reader, "transB", 0) != 0, bias);
}

int onnx_gemm(struct onnx_reader *reader, int kind)
{
    struct onnx_call call;
    int result = onnx_call_plain(reader, 2, &call);
    return result ? result : emit_gemm(reader, &call, input_of(reader, 2));
}

int onnx_qgemm(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {0, 3};
    struct onnx_call call;
    int32_t axis = onnx_int(reader, "transB", 0) ? 0 : 1;
    int result = onnx_call_qlinear(reader, places, 2, 7, axis, &call);
    return result ? result : emit_gemm(reader, &call, input_of(reader, 6));
}
