/* SPDX-License-Identifier: MIT */
/* What each kind of operator has of its own: its options, in the graph's terms. */
#include "frontend/tflite/flexmap.h"
#include "frontend/tflite/internal.h"

extern "C" {
#include "frontend/tflite/names.h"
}

#include <stdio.h>

namespace mica
{
namespace
{

const char *const no_options = "its parameters are missing or of another operation's kind";

/* ---- windows ---------------------------------------------------------- */

void set_activation(Pending &pending, tflite::ActivationFunctionType source, mica_activation &activation)
{
    switch (source) {
    case tflite::ActivationFunctionType_NONE:
        activation = MICA_ACT_NONE;
        return;
    case tflite::ActivationFunctionType_RELU:
        activation = MICA_ACT_RELU;
        return;
    case tflite::ActivationFunctionType_RELU_N1_TO_1:
        activation = MICA_ACT_RELU_N1_TO_1;
        return;
    case tflite::ActivationFunctionType_RELU6:
        activation = MICA_ACT_RELU6;
        return;
    default:
        snprintf(pending.text, sizeof pending.text, "fused activation %d is not supported", int(source));
        pending.op.problem = pending.text;
    }
}

/*
 * SAME depends on the size of what the window runs over, `rows` and `columns`; the rules refuse what can't be
 * resolved here.
 */
void set_padding(Pending &pending, tflite::Padding source, int32_t rows, int32_t columns)
{
    mica_window &window = pending.op.window;
    if (source == tflite::Padding_SAME) {
        window.padding.top =
            mica_same_padding(rows, window.kernel_y, window.stride_y, window.dilation_y, &window.padding.bottom);
        window.padding.left =
            mica_same_padding(columns, window.kernel_x, window.stride_x, window.dilation_x, &window.padding.right);
    } else if (source != tflite::Padding_VALID) {
        pending.op.problem = "its padding is neither SAME nor VALID";
    }
}

/* The part of the parameters that all three window operations have. */
template <typename Options> void set_window(const Reader &reader, Pending &pending, const Options *options)
{
    mica_window &window = pending.op.window;
    window.stride_x = options->stride_w();
    window.stride_y = options->stride_h();
    const mica_tensor *input = reader_input(reader, pending, 0);
    bool image = input && input->rank == 4;
    set_padding(pending, options->padding(), image ? input->dims[1] : 0, image ? input->dims[2] : 0);
    set_activation(pending, options->fused_activation_function(), window.activation);
}

void set_weight_window(const Reader &reader, Pending &pending, int32_t dilation_x, int32_t dilation_y)
{
    mica_window &window = pending.op.window;
    const mica_tensor *weights = reader_input(reader, pending, 1);
    if (weights && weights->rank == 4) {
        window.kernel_y = weights->dims[1];
        window.kernel_x = weights->dims[2];
    }
    window.dilation_x = dilation_x;
    window.dilation_y = dilation_y;
}

void read_conv(const Reader &reader, Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_Conv2DOptions();
    pending.op.kind = MICA_OP_CONV_2D;
    if (!options) {
        pending.op.problem = no_options;
        return;
    }
    set_weight_window(reader, pending, options->dilation_w_factor(), options->dilation_h_factor());
    set_window(reader, pending, options);
}

void read_depthwise(const Reader &reader, Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_DepthwiseConv2DOptions();
    pending.op.kind = MICA_OP_DEPTHWISE_CONV_2D;
    if (!options) {
        pending.op.problem = no_options;
        return;
    }
    set_weight_window(reader, pending, options->dilation_w_factor(), options->dilation_h_factor());
    set_window(reader, pending, options);
    pending.op.window.depth_multiplier = options->depth_multiplier();
}

void read_pool(const Reader &reader, Pending &pending, mica_op_kind kind)
{
    const auto *options = pending.source->builtin_options_as_Pool2DOptions();
    pending.op.kind = kind;
    if (!options) {
        pending.op.problem = no_options;
        return;
    }
    pending.op.window.kernel_x = options->filter_width();
    pending.op.window.kernel_y = options->filter_height();
    pending.op.window.dilation_x = pending.op.window.dilation_y = 1;
    set_window(reader, pending, options);
}

/* The window runs over the output, whose shape is input 0. */
void read_transpose_conv(const Reader &reader, Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_TransposeConvOptions();
    const mica_tensor *shape = reader_input(reader, pending, 0);
    pending.op.kind = MICA_OP_TRANSPOSE_CONV;
    if (!options) {
        pending.op.problem = no_options;
        return;
    }
    set_weight_window(reader, pending, 1, 1);
    pending.op.window.stride_x = options->stride_w();
    pending.op.window.stride_y = options->stride_h();
    bool known = shape && shape->data && shape->type == MICA_TYPE_INT32 && shape->bytes == 4 * sizeof(int32_t);
    const int32_t *size = known ? static_cast<const int32_t *>(shape->data) : nullptr;
    set_padding(pending, options->padding(), size ? size[1] : 0, size ? size[2] : 0);
    set_activation(pending, options->fused_activation_function(), pending.op.window.activation);
}

/* ---- the rest; parameters that are absent have their defaults --------- */

void read_fully_connected(Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_FullyConnectedOptions();
    pending.op.kind = MICA_OP_FULLY_CONNECTED;
    if (!options)
        return;
    set_activation(pending, options->fused_activation_function(), pending.op.activation);
    if (options->weights_format() != 0)
        pending.op.problem = "its weights are stored in a shuffled format";
}

/* ADD and its like, whose only parameter is the activation. */
template <typename Options> void read_sum(Pending &pending, mica_op_kind kind, const Options *options)
{
    pending.op.kind = kind;
    if (options)
        set_activation(pending, options->fused_activation_function(), pending.op.activation);
}

void read_softmax(Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_SoftmaxOptions();
    pending.op.kind = MICA_OP_SOFTMAX;
    if (options)
        pending.op.beta = options->beta();
    else
        pending.op.problem = no_options;
}

/* Counted from either end of input 0, of which the operation may make `more` dimensions. */
void set_axis(const Reader &reader, Pending &pending, int32_t axis, uint32_t more)
{
    const mica_tensor *input = reader_input(reader, pending, 0);
    pending.op.axis = axis;
    if (axis < 0 && input)
        pending.op.axis += int32_t(input->rank + more);
}

void read_concatenation(const Reader &reader, Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_ConcatenationOptions();
    pending.op.kind = MICA_OP_CONCATENATION;
    if (!options)
        return;
    set_activation(pending, options->fused_activation_function(), pending.op.activation);
    set_axis(reader, pending, options->axis(), 0);
}

void read_pack(const Reader &reader, Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_PackOptions();
    pending.op.kind = MICA_OP_PACK;
    if (options)
        set_axis(reader, pending, options->axis(), 1);
}

void read_unpack(const Reader &reader, Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_UnpackOptions();
    pending.op.kind = MICA_OP_UNPACK;
    if (options)
        set_axis(reader, pending, options->axis(), 0);
}

void read_gather(const Reader &reader, Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_GatherOptions();
    pending.op.kind = MICA_OP_GATHER;
    if (!options)
        return;
    set_axis(reader, pending, options->axis(), 0);
    if (options->batch_dims() != 0)
        pending.op.problem = "gathering in batches is not supported";
}

void read_reduce(Pending &pending, mica_op_kind kind)
{
    const auto *options = pending.source->builtin_options_as_ReducerOptions();
    pending.op.kind = kind;
    pending.op.keep_dims = options && options->keep_dims();
}

void read_slice(const Reader &reader, Pending &pending, bool strided)
{
    mica_slice_masks masks;
    uint32_t rank;
    int32_t dims[MICA_MAX_RANK];
    pending.op.kind = MICA_OP_SLICE;
    if (strided && !reader_slice_masks(pending, masks)) {
        pending.op.problem = no_options;
        return;
    }
    if (!reader_input(reader, pending, 0))
        return; /* the rules say why */
    const mica_slice_masks *said = strided ? &masks : nullptr;
    pending.op.problem = mica_slice_resolve(reader.graph, &pending.op, said, &pending.op.slice, &rank, dims);
}

void read_mirror_pad(Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_MirrorPadOptions();
    pending.op.kind = MICA_OP_MIRROR_PAD;
    pending.op.mirror_symmetric = options && options->mode() == tflite::MirrorPadMode_SYMMETRIC;
    if (options && options->mode() != tflite::MirrorPadMode_SYMMETRIC &&
        options->mode() != tflite::MirrorPadMode_REFLECT)
        pending.op.problem = "its mode is neither REFLECT nor SYMMETRIC";
}

template <typename Options> void read_block(Pending &pending, mica_op_kind kind, const Options *options)
{
    pending.op.kind = kind;
    if (options)
        pending.op.block = options->block_size();
    else
        pending.op.problem = no_options;
}

void read_leaky_relu(Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_LeakyReluOptions();
    pending.op.kind = MICA_OP_LEAKY_RELU;
    if (options)
        pending.op.alpha = options->alpha();
    else
        pending.op.problem = no_options;
}

void read_matmul(Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_BatchMatMulOptions();
    pending.op.kind = MICA_OP_BATCH_MATMUL;
    pending.op.matmul.adjoint_x = options && options->adj_x();
    pending.op.matmul.adjoint_y = options && options->adj_y();
}

void read_resize_bilinear(Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_ResizeBilinearOptions();
    pending.op.kind = MICA_OP_RESIZE_BILINEAR;
    pending.op.resize.align_corners = options && options->align_corners();
    pending.op.resize.half_pixel_centers = options && options->half_pixel_centers();
}

void read_resize_nearest(Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_ResizeNearestNeighborOptions();
    pending.op.kind = MICA_OP_RESIZE_NEAREST;
    pending.op.resize.align_corners = options && options->align_corners();
    pending.op.resize.half_pixel_centers = options && options->half_pixel_centers();
}

/* ---- custom operations ------------------------------------------------ */

bool read_detection_options(const mica_flexmap &map, mica_detection &detection)
{
    detection.detections_per_class = 100; /* the two optional parameters */
    detection.regular_nms = false;
    mica_flexmap_int(&map, "detections_per_class", &detection.detections_per_class);
    mica_flexmap_bool(&map, "use_regular_nms", &detection.regular_nms);
    return mica_flexmap_int(&map, "max_detections", &detection.max_detections) &&
           mica_flexmap_int(&map, "max_classes_per_detection", &detection.max_classes_per_detection) &&
           mica_flexmap_int(&map, "num_classes", &detection.classes) &&
           mica_flexmap_float(&map, "nms_score_threshold", &detection.score_threshold) &&
           mica_flexmap_float(&map, "nms_iou_threshold", &detection.iou_threshold) &&
           mica_flexmap_float(&map, "x_scale", &detection.scale_x) &&
           mica_flexmap_float(&map, "y_scale", &detection.scale_y) &&
           mica_flexmap_float(&map, "w_scale", &detection.scale_w) &&
           mica_flexmap_float(&map, "h_scale", &detection.scale_h);
}

void read_detection(Pending &pending)
{
    Elements<uint8_t> options(pending.source->custom_options());
    mica_flexmap map;
    pending.op.kind = MICA_OP_DETECTION_POSTPROCESS;
    if (!mica_flexmap_open(&map, options.bytes, options.count) || !read_detection_options(map, pending.op.detection))
        pending.op.problem = "its parameters are missing or damaged";
}

void read_custom(Pending &pending)
{
    if (strcmp(pending.op.type, "TFLite_Detection_PostProcess") == 0)
        read_detection(pending);
}

/* Kinds without parameters of their own; everything not listed is MICA_OP_UNKNOWN, for which the rules make the
 * sentence. */
mica_op_kind plain_kind(int32_t code)
{
    switch (code) {
    case MICA_TFLITE_RESHAPE:
    case MICA_TFLITE_SQUEEZE:
    case MICA_TFLITE_EXPAND_DIMS:
        return MICA_OP_RESHAPE;
    case MICA_TFLITE_LOGISTIC:
        return MICA_OP_LOGISTIC;
    case MICA_TFLITE_PAD:
    case MICA_TFLITE_PADV2:
        return MICA_OP_PAD;
    case MICA_TFLITE_QUANTIZE:
        return MICA_OP_QUANTIZE;
    case MICA_TFLITE_DEQUANTIZE:
        return MICA_OP_DEQUANTIZE;
    case MICA_TFLITE_MAXIMUM:
        return MICA_OP_MAXIMUM;
    case MICA_TFLITE_MINIMUM:
        return MICA_OP_MINIMUM;
    case MICA_TFLITE_SQUARED_DIFFERENCE:
        return MICA_OP_SQUARED_DIFFERENCE;
    case MICA_TFLITE_FLOOR_DIV:
        return MICA_OP_FLOOR_DIV;
    case MICA_TFLITE_SPLIT:
    case MICA_TFLITE_SPLIT_V:
        return MICA_OP_SPLIT;
    case MICA_TFLITE_TRANSPOSE:
        return MICA_OP_TRANSPOSE;
    case MICA_TFLITE_RELU:
        return MICA_OP_RELU;
    case MICA_TFLITE_RELU6:
        return MICA_OP_RELU6;
    case MICA_TFLITE_RELU_N1_TO_1:
        return MICA_OP_RELU_N1_TO_1;
    case MICA_TFLITE_RELU_0_TO_1:
        return MICA_OP_RELU_0_TO_1;
    case MICA_TFLITE_TANH:
        return MICA_OP_TANH;
    case MICA_TFLITE_HARD_SWISH:
        return MICA_OP_HARD_SWISH;
    case MICA_TFLITE_ELU:
        return MICA_OP_ELU;
    case MICA_TFLITE_ABS:
        return MICA_OP_ABS;
    case MICA_TFLITE_NEG:
        return MICA_OP_NEG;
    case MICA_TFLITE_EXP:
        return MICA_OP_EXP;
    case MICA_TFLITE_SQRT:
        return MICA_OP_SQRT;
    case MICA_TFLITE_RSQRT:
        return MICA_OP_RSQRT;
    case MICA_TFLITE_LOG:
        return MICA_OP_LOG;
    case MICA_TFLITE_PRELU:
        return MICA_OP_PRELU;
    case MICA_TFLITE_ARG_MAX:
        return MICA_OP_ARG_MAX;
    case MICA_TFLITE_CAST:
        return MICA_OP_CAST;
    case MICA_TFLITE_GATHER_ND:
        return MICA_OP_GATHER_ND;
    case MICA_TFLITE_REVERSE_V2:
        return MICA_OP_REVERSE;
    default:
        return MICA_OP_UNKNOWN;
    }
}

/* Operations whose parameters are not a window. */
void read_others(const Reader &reader, Pending &pending)
{
    const tflite::Operator *source = pending.source;
    switch (pending.code) {
    case MICA_TFLITE_FULLY_CONNECTED:
        return read_fully_connected(pending);
    case MICA_TFLITE_ADD:
        return read_sum(pending, MICA_OP_ADD, source->builtin_options_as_AddOptions());
    case MICA_TFLITE_SUB:
        return read_sum(pending, MICA_OP_SUB, source->builtin_options_as_SubOptions());
    case MICA_TFLITE_MUL:
        return read_sum(pending, MICA_OP_MUL, source->builtin_options_as_MulOptions());
    case MICA_TFLITE_DIV:
        return read_sum(pending, MICA_OP_DIV, source->builtin_options_as_DivOptions());
    case MICA_TFLITE_SOFTMAX:
        return read_softmax(pending);
    case MICA_TFLITE_CONCATENATION:
        return read_concatenation(reader, pending);
    case MICA_TFLITE_RESIZE_BILINEAR:
        return read_resize_bilinear(pending);
    case MICA_TFLITE_RESIZE_NEAREST_NEIGHBOR:
        return read_resize_nearest(pending);
    case MICA_TFLITE_MEAN:
        return read_reduce(pending, MICA_OP_MEAN);
    case MICA_TFLITE_SUM:
        return read_reduce(pending, MICA_OP_SUM);
    case MICA_TFLITE_REDUCE_MAX:
        return read_reduce(pending, MICA_OP_REDUCE_MAX);
    case MICA_TFLITE_REDUCE_MIN:
        return read_reduce(pending, MICA_OP_REDUCE_MIN);
    case MICA_TFLITE_SLICE:
        return read_slice(reader, pending, false);
    case MICA_TFLITE_STRIDED_SLICE:
        return read_slice(reader, pending, true);
    case MICA_TFLITE_MIRROR_PAD:
        return read_mirror_pad(pending);
    case MICA_TFLITE_SPACE_TO_DEPTH:
        return read_block(pending, MICA_OP_SPACE_TO_DEPTH, source->builtin_options_as_SpaceToDepthOptions());
    case MICA_TFLITE_DEPTH_TO_SPACE:
        return read_block(pending, MICA_OP_DEPTH_TO_SPACE, source->builtin_options_as_DepthToSpaceOptions());
    case MICA_TFLITE_LEAKY_RELU:
        return read_leaky_relu(pending);
    case MICA_TFLITE_BATCH_MATMUL:
        return read_matmul(pending);
    case MICA_TFLITE_PACK:
        return read_pack(reader, pending);
    case MICA_TFLITE_UNPACK:
        return read_unpack(reader, pending);
    case MICA_TFLITE_GATHER:
        return read_gather(reader, pending);
    case MICA_TFLITE_CUSTOM:
        return read_custom(pending);
    default:
        pending.op.kind = plain_kind(pending.code);
    }
}

} // namespace

bool reader_slice_masks(const Pending &pending, mica_slice_masks &masks)
{
    const auto *options = pending.source->builtin_options_as_StridedSliceOptions();
    if (!options)
        return false;
    masks.begin = uint32_t(options->begin_mask());
    masks.end = uint32_t(options->end_mask());
    masks.ellipsis = uint32_t(options->ellipsis_mask());
    masks.new_axis = uint32_t(options->new_axis_mask());
    masks.shrink_axis = uint32_t(options->shrink_axis_mask());
    masks.offset = options->offset();
    return true;
}

void reader_parameters(const Reader &reader, Pending &pending)
{
    switch (pending.code) {
    case MICA_TFLITE_CONV_2D:
        return read_conv(reader, pending);
    case MICA_TFLITE_DEPTHWISE_CONV_2D:
        return read_depthwise(reader, pending);
    case MICA_TFLITE_TRANSPOSE_CONV:
        return read_transpose_conv(reader, pending);
    case MICA_TFLITE_AVERAGE_POOL_2D:
        return read_pool(reader, pending, MICA_OP_AVERAGE_POOL_2D);
    case MICA_TFLITE_MAX_POOL_2D:
        return read_pool(reader, pending, MICA_OP_MAX_POOL_2D);
    default:
        return read_others(reader, pending);
    }
}

} // namespace mica
