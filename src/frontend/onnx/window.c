/* SPDX-License-Identifier: MIT */
/* Windows over images, and pools. Attributes name rows before columns, and all that is before before all behind. */
#include "frontend/onnx/internal.h"

/* ---- windows ---------------------------------------------------------- */

/* Two numbers of an attribute, ones when it is absent. */
static int pair(struct onnx_reader *reader, const char *name, int32_t out[2])
{
    int64_t numbers[2] = {1, 1};
    uint32_t count;
    if (!onnx_ints(reader, name, numbers, 2, &count) || count == 1)
        return onnx_refuse(reader, "its %s should be two numbers", name);
    for (int i = 0; i < 2; i++) {
        if (numbers[i] < 1 || numbers[i] > MICA_MAX_WINDOW)
            return onnx_refuse(reader, "its %s are out of range (1 to %d)", name, MICA_MAX_WINDOW);
        out[i] = (int32_t)numbers[i];
    }
    return 0;
}

static int explicit_pads(struct onnx_reader *reader, int32_t pads[4])
{
    int64_t numbers[4] = {0};
    uint32_t count;
    if (!onnx_ints(reader, "pads", numbers, 4, &count) || (count && count != 4))
        return onnx_refuse(reader, "its pads should be four numbers");
    for (int i = 0; i < 4; i++) {
        if (numbers[i] < 0 || numbers[i] > MICA_MAX_WINDOW)
            return onnx_refuse(reader, "its pads are out of range (0 to %d)", MICA_MAX_WINDOW);
        pads[i] = (int32_t)numbers[i];
    }
    return 0;
}

/* SAME_UPPER puts the odd one behind, as mica_same_padding() does; SAME_LOWER before. */
static void same_pads(const int32_t *image, const int32_t kernel[2], const int32_t stride[2], const int32_t dilation[2],
                      bool lower, int32_t pads[4])
{
    for (int i = 0; i < 2; i++) {
        int32_t after, before = mica_same_padding(image[2 + i], kernel[i], stride[i], dilation[i], &after);
        pads[i] = lower ? after : before;
        pads[2 + i] = lower ? before : after;
    }
}

/* So much more behind that the last, cut window counts; one that starts behind the image does not. */
static void round_pads_up(const int32_t *image, const int32_t kernel[2], const int32_t stride[2],
                          const int32_t dilation[2], int32_t pads[4])
{
    for (int i = 0; i < 2; i++) {
        int64_t extent = ((int64_t)kernel[i] - 1) * dilation[i] + 1;
        int64_t room = (int64_t)image[2 + i] + pads[i] + pads[2 + i] - extent;
        if (room < 0)
            continue;
        int64_t steps = (room + stride[i] - 1) / stride[i];
        if (steps * stride[i] >= (int64_t)image[2 + i] + pads[i])
            steps--;
        int64_t more = steps * stride[i] - room;
        pads[2 + i] += more > 0 && more <= MICA_MAX_WINDOW ? (int32_t)more : 0;
    }
}

int onnx_window(struct onnx_reader *reader, const int32_t *image, const int32_t kernel[2], bool round_up,
                struct mica_window *window)
{
    int32_t stride[2], dilation[2], pads[4] = {0};
    struct onnx_bytes automatic = onnx_string(reader, "auto_pad", "NOTSET");
    bool lower = onnx_is(automatic, "SAME_LOWER");
    int result = pair(reader, "strides", stride);
    if (!result)
        result = pair(reader, "dilations", dilation);
    if (!result && onnx_is(automatic, "NOTSET"))
        result = explicit_pads(reader, pads);
    else if (!result && (lower || onnx_is(automatic, "SAME_UPPER")))
        same_pads(image, kernel, stride, dilation, lower, pads);
    if (result)
        return result;
    if (round_up)
        round_pads_up(image, kernel, stride, dilation, pads);
    *window = (struct mica_window){
        .kernel_y = kernel[0],
        .kernel_x = kernel[1],
        .stride_y = stride[0],
        .stride_x = stride[1],
        .dilation_y = dilation[0],
        .dilation_x = dilation[1],
        .padding = {.top = pads[0], .left = pads[1], .bottom = pads[2], .right = pads[3]},
    };
    return 0;
}

int onnx_pad_image(struct onnx_reader *reader, const struct mica_padding *padding, const struct onnx_result *like,
                   int32_t *tensor)
{
    const int32_t amounts[8] = {0, 0, padding->top, padding->bottom, padding->left, padding->right, 0, 0};
    const int32_t dims[2] = {4, 2};
    struct onnx_result result = *like;
    int32_t inputs[2] = {*tensor, ONNX_NONE};
    result.value = ONNX_NONE;
    result.checked = false;
    int error = onnx_add_int32(reader, amounts, 2, dims, &inputs[1]);
    if (!error)
        error = onnx_emit(reader, &(struct mica_op){.kind = MICA_OP_PAD, .type = "Pad"}, inputs, 2, &result);
    *tensor = result.tensor;
    return error;
}

/* ---- pools ------------------------------------------------------------ */

static bool has_padding(const struct mica_padding *padding)
{
    return padding->left || padding->right || padding->top || padding->bottom;
}

static int pool_window(struct onnx_reader *reader, const struct onnx_call *call, struct mica_window *window)
{
    int32_t kernel[2];
    int64_t shape[2];
    uint32_t count;
    if (onnx_int(reader, "channels_last", 0))
        return onnx_refuse(reader, "images with channels last are not supported");
    if (reader->values[call->in[0]].rank != 4)
        return onnx_refuse(reader, "its input should have 4 dimensions");
    if (!onnx_ints(reader, "kernel_shape", shape, 2, &count) || count != 2)
        return onnx_refuse(reader, "its kernel_shape should be two numbers");
    for (int i = 0; i < 2; i++) {
        if (shape[i] < 1 || shape[i] > MICA_MAX_WINDOW)
            return onnx_refuse(reader, "its kernel_shape is out of range (1 to %d)", MICA_MAX_WINDOW);
        kernel[i] = (int32_t)shape[i];
    }
    int result =
        onnx_window(reader, reader->values[call->in[0]].dims, kernel, onnx_int(reader, "ceil_mode", 0) != 0, window);
    if (!result && (window->dilation_x > 1 || window->dilation_y > 1))
        result = onnx_refuse(reader, "dilated pools are not supported");
    return result;
}

/* Input and output of a pool are quantized alike; rescaling comes behind it. */
static int emit_pool(struct onnx_reader *reader, const struct onnx_call *call, enum mica_op_kind kind)
{
    struct mica_op op = {.kind = kind};
    struct onnx_result result = onnx_call_result(reader, call, ONNX_IMAGE);
    struct onnx_result inside = result;
    int32_t input;
    int error = pool_window(reader, call, &op.window);
    if (!error)
        error = onnx_tensor(reader, call->in[0], ONNX_IMAGE, &input);
    const struct onnx_quant *quant = &reader->values[call->in[0]].quant;
    inside.quant = *quant;
    if (!error && kind == MICA_OP_AVERAGE_POOL_2D && onnx_int(reader, "count_include_pad", 0) &&
        has_padding(&op.window.padding)) {
        if (onnx_int(reader, "ceil_mode", 0))
            return onnx_refuse(reader, "averages that count the padding of a rounded size are not supported");
        error = onnx_pad_image(reader, &op.window.padding, &inside, &input);
        op.window.padding = (struct mica_padding){0};
    }
    return error ? error : onnx_call_emit(reader, call, &op, &input, 1, &result, quant);
}

int onnx_pool(struct onnx_reader *reader, int kind)
{
    struct onnx_call call;
    bool moves = kind == MICA_OP_MAX_POOL_2D;
    if (reader->node->outputs > 1 && reader->node->out[1] >= 0)
        return onnx_refuse(reader, "the places of the largest values are not supported");
    int result = moves ? onnx_call_moving(reader, 1, &call) : onnx_call_plain(reader, 1, &call);
    return result ? result : emit_pool(reader, &call, (enum mica_op_kind)kind);
}

int onnx_qlinear_pool(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {0};
    struct onnx_call call;
    int result = onnx_call_qlinear(reader, places, 1, 3, 0, &call);
    return result ? result : emit_pool(reader, &call, (enum mica_op_kind)kind);
}

/* One window over all of it, or where it rescales, MEAN, which does so in one step. */
static int emit_global(struct onnx_reader *reader, const struct onnx_call *call, int kind)
{
    static const int32_t axes[2] = {1, 2}, two = 2;
    const struct onnx_value *value = &reader->values[call->in[0]];
    struct onnx_result result = onnx_call_result(reader, call, ONNX_IMAGE);
    struct mica_op op = {.kind = (enum mica_op_kind)kind};
    int32_t inputs[2];
    int error = onnx_tensor(reader, call->in[0], ONNX_IMAGE, &inputs[0]);
    if (error)
        return error;
    if (call->quantized && kind == MICA_OP_AVERAGE_POOL_2D && !onnx_same_quant(&value->quant, &call->quant)) {
        op = (struct mica_op){.kind = MICA_OP_MEAN, .keep_dims = true};
        error = onnx_add_int32(reader, axes, 1, &two, &inputs[1]);
        return error ? error : onnx_call_emit(reader, call, &op, inputs, 2, &result, NULL);
    }
    op.window = (struct mica_window){.kernel_y = value->dims[2],
                                     .kernel_x = value->dims[3],
                                     .stride_x = 1,
                                     .stride_y = 1,
                                     .dilation_x = 1,
                                     .dilation_y = 1};
    return onnx_call_emit(reader, call, &op, inputs, 1, &result, NULL);
}

int onnx_global_pool(struct onnx_reader *reader, int kind)
{
    struct onnx_call call;
    bool moves = kind == MICA_OP_MAX_POOL_2D;
    int result = moves ? onnx_call_moving(reader, 1, &call) : onnx_call_plain(reader, 1, &call);
    return result ? result : emit_global(reader, &call, kind);
}

int onnx_qlinear_global_pool(struct onnx_reader *reader, int kind)
{
    static const uint8_t places[] = {0};
    struct onnx_call call;
    int result = onnx_call_qlinear(reader, places, 1, 3, 0, &call);
    if (!result && onnx_int(reader, "channels_last", 0))
        result = onnx_refuse(reader, "images with channels last are not supported");
    return result ? result : emit_global(reader, &call, kind);
}
