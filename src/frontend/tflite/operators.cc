/* SPDX-License-Identifier: MIT */
/* From the file's operators to the graph's operations. */
#include "frontend/tflite/internal.h"

#include "frontend/tflite/flexmap.h"

extern "C" {
#include "frontend/tflite/names.h"
}

#include <errno.h>
#include <stdio.h>

namespace mica
{
namespace
{

/* One operator on its way into the graph. */
struct Pending {
    const tflite::Operator *source;
    int32_t code;
    mica_op op;
    char text[160]; /* for a problem that has to be composed */
};

const char *const no_options = "its parameters are missing or of another operation's kind";

const mica_tensor *input_of(const Reader &reader, const Pending &pending, uint32_t i)
{
    const mica_tensor *tensor = mica_op_input(reader.graph, &pending.op, i);
    return tensor && !tensor->problem ? tensor : nullptr;
}

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

/* SAME depends on the input's size; the rules refuse what can't be resolved here. */
void set_padding(const Reader &reader, Pending &pending, tflite::Padding source)
{
    mica_window &window = pending.op.window;
    const mica_tensor *input = input_of(reader, pending, 0);
    if (source == tflite::Padding_SAME && input && input->rank == 4) {
        window.padding.top = mica_same_padding(input->dims[1], window.kernel_y, window.stride_y, window.dilation_y,
                                               &window.padding.bottom);
        window.padding.left = mica_same_padding(input->dims[2], window.kernel_x, window.stride_x, window.dilation_x,
                                                &window.padding.right);
    } else if (source != tflite::Padding_SAME && source != tflite::Padding_VALID) {
        pending.op.problem = "its padding is neither SAME nor VALID";
    }
}

/* The part of the parameters that all three window operations have. */
template <typename Options> void set_window(const Reader &reader, Pending &pending, const Options *options)
{
    mica_window &window = pending.op.window;
    window.stride_x = options->stride_w();
    window.stride_y = options->stride_h();
    set_padding(reader, pending, options->padding());
    set_activation(pending, options->fused_activation_function(), window.activation);
}

void set_weight_window(const Reader &reader, Pending &pending, int32_t dilation_x, int32_t dilation_y)
{
    mica_window &window = pending.op.window;
    const mica_tensor *weights = input_of(reader, pending, 1);
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

void read_add(Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_AddOptions();
    pending.op.kind = MICA_OP_ADD;
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

void read_concatenation(const Reader &reader, Pending &pending)
{
    const auto *options = pending.source->builtin_options_as_ConcatenationOptions();
    pending.op.kind = MICA_OP_CONCATENATION;
    if (!options)
        return;
    set_activation(pending, options->fused_activation_function(), pending.op.activation);
    const mica_tensor *input = input_of(reader, pending, 0);
    pending.op.axis = options->axis();
    if (pending.op.axis < 0 && input)
        pending.op.axis += int32_t(input->rank);
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

/* Everything not listed stays MICA_OP_UNKNOWN, for which the rules make the sentence. */
void read_parameters(const Reader &reader, Pending &pending)
{
    switch (pending.code) {
    case MICA_TFLITE_CONV_2D:
        return read_conv(reader, pending);
    case MICA_TFLITE_DEPTHWISE_CONV_2D:
        return read_depthwise(reader, pending);
    case MICA_TFLITE_AVERAGE_POOL_2D:
        return read_pool(reader, pending, MICA_OP_AVERAGE_POOL_2D);
    case MICA_TFLITE_MAX_POOL_2D:
        return read_pool(reader, pending, MICA_OP_MAX_POOL_2D);
    case MICA_TFLITE_FULLY_CONNECTED:
        return read_fully_connected(pending);
    case MICA_TFLITE_ADD:
        return read_add(pending);
    case MICA_TFLITE_SOFTMAX:
        return read_softmax(pending);
    case MICA_TFLITE_CONCATENATION:
        return read_concatenation(reader, pending);
    case MICA_TFLITE_RESIZE_BILINEAR:
        return read_resize_bilinear(pending);
    case MICA_TFLITE_RESIZE_NEAREST_NEIGHBOR:
        return read_resize_nearest(pending);
    case MICA_TFLITE_CUSTOM:
        return read_custom(pending);
    case MICA_TFLITE_RESHAPE:
    case MICA_TFLITE_SQUEEZE:
    case MICA_TFLITE_EXPAND_DIMS:
        pending.op.kind = MICA_OP_RESHAPE;
        return;
    case MICA_TFLITE_LOGISTIC:
        pending.op.kind = MICA_OP_LOGISTIC;
        return;
    case MICA_TFLITE_PAD:
        pending.op.kind = MICA_OP_PAD;
        return;
    case MICA_TFLITE_QUANTIZE:
        pending.op.kind = MICA_OP_QUANTIZE;
        return;
    case MICA_TFLITE_DEQUANTIZE:
        pending.op.kind = MICA_OP_DEQUANTIZE;
        return;
    }
}

/* ---- shapes that the file leaves to be computed ----------------------- */

/* One -1 stands for what is left. */
bool resolve_shape(const mica_tensor *input, const int32_t *wanted, uint32_t rank, int32_t *dims)
{
    uint64_t elements = input->bytes / mica_type_size(input->type), product = 1;
    uint32_t open = rank;
    for (uint32_t i = 0; i < rank; i++) {
        dims[i] = wanted[i];
        if (wanted[i] == -1 && open == rank)
            open = i;
        else if (wanted[i] < 1 || (product *= uint64_t(wanted[i])) > elements)
            return false;
    }
    if (open < rank)
        dims[open] = int32_t(elements / product);
    return true;
}

bool infer_reshape(const Reader &reader, const Pending &pending, uint32_t *rank, int32_t *dims)
{
    const mica_tensor *input = input_of(reader, pending, 0), *shape = input_of(reader, pending, 1);
    const auto *options = pending.source->builtin_options_as_ReshapeOptions();
    const int32_t *wanted = nullptr;
    if (shape && shape->data && shape->type == MICA_TYPE_INT32) {
        wanted = static_cast<const int32_t *>(shape->data);
        *rank = uint32_t(shape->bytes / sizeof *wanted);
    } else if (options) {
        Elements<int32_t> sizes(options->new_shape());
        wanted = sizes.array();
        *rank = sizes.count;
    }
    return input && wanted && *rank <= MICA_MAX_RANK && resolve_shape(input, wanted, *rank, dims);
}

/* True when dimension `i` is to be dropped; without a list all ones are. */
bool squeezed(const mica_tensor *input, Elements<int32_t> list, uint32_t i)
{
    bool listed = list.count == 0;
    for (uint32_t k = 0; k < list.count && k < MICA_MAX_RANK; k++)
        listed = listed || list[k] == int32_t(i) || list[k] + int64_t(input->rank) == int64_t(i);
    return listed && input->dims[i] == 1;
}

bool infer_squeeze(const Reader &reader, const Pending &pending, uint32_t *rank, int32_t *dims)
{
    const mica_tensor *input = input_of(reader, pending, 0);
    const auto *options = pending.source->builtin_options_as_SqueezeOptions();
    if (!input)
        return false;
    Elements<int32_t> list(options ? options->squeeze_dims() : nullptr);
    *rank = 0;
    for (uint32_t i = 0; i < input->rank; i++)
        if (!squeezed(input, list, i))
            dims[(*rank)++] = input->dims[i];
    return true;
}

/* TensorFlow Lite knows this operation's shapes only when it runs, so no file has them. */
bool infer_detection(const mica_detection &detection, uint32_t output, uint32_t *rank, int32_t *dims)
{
    int64_t count = int64_t(detection.max_detections) * detection.max_classes_per_detection;
    if (count < 1 || count > INT32_MAX)
        return false;
    dims[0] = 1;
    dims[1] = int32_t(count);
    dims[2] = 4;
    *rank = output == 0 ? 3 : output == 3 ? 1 : 2;
    return output < 4;
}

bool infer(const Reader &reader, const Pending &pending, uint32_t output, uint32_t *rank, int32_t *dims)
{
    if (pending.op.kind == MICA_OP_DETECTION_POSTPROCESS)
        return infer_detection(pending.op.detection, output, rank, dims);
    if (pending.code == MICA_TFLITE_RESHAPE)
        return infer_reshape(reader, pending, rank, dims);
    if (pending.code == MICA_TFLITE_SQUEEZE)
        return infer_squeeze(reader, pending, rank, dims);
    return output == 0 && mica_op_infer_shape(reader.graph, &pending.op, rank, dims);
}

/* A tensor without dimensions may be a scalar or one whose shape was never written down. */
int complete_shapes(Reader &reader, const Pending &pending)
{
    int error = 0;
    for (uint32_t i = 0; i < pending.op.output_count && !error && !pending.op.problem; i++) {
        int32_t index = pending.op.outputs[i], dims[MICA_MAX_RANK];
        const mica_tensor *tensor = &reader.graph->tensors[index];
        uint32_t rank;
        if (tensor->rank == 0 && !tensor->data && !reader.settled[index] && infer(reader, pending, i, &rank, dims))
            error = mica_graph_set_shape(reader.graph, index, rank, dims, reader.log);
    }
    return error;
}

/* ---- assembly --------------------------------------------------------- */

int read_code(const Reader &reader, uint32_t index, Pending &pending)
{
    const auto *codes = reader.model->operator_codes();
    uint32_t code_index = pending.source->opcode_index();
    if (!codes || code_index >= codes->size())
        return mica_fail(reader.log, -EINVAL, "the model is damaged: operation %u has type %u of %u", index, code_index,
                         codes ? codes->size() : 0);
    const tflite::OperatorCode *code = codes->Get(code_index);
    /* Codes above 127 are only in the newer field, older files have only the older one. */
    int32_t older = code->deprecated_builtin_code(), newer = code->builtin_code();
    pending.code = newer > older ? newer : older;
    pending.op.type = mica_tflite_operator_name(pending.code);
    if (pending.code == MICA_TFLITE_CUSTOM && code->custom_code())
        pending.op.type = code->custom_code()->c_str();
    if (!pending.op.type) {
        snprintf(pending.text, sizeof pending.text, "BUILTIN_%d", pending.code);
        pending.op.type = pending.text;
    }
    return 0;
}

int check_indices(const Reader &reader, uint32_t index, Elements<int32_t> list, int32_t lowest)
{
    for (uint32_t i = 0; i < list.count; i++)
        if (list[i] < lowest || int64_t(list[i]) >= int64_t(reader.graph->tensor_count))
            return mica_fail(reader.log, -EINVAL, "the model is damaged: operation %u refers to tensor %d of %u", index,
                             list[i], reader.graph->tensor_count);
    return 0;
}

int read_indices(Reader &reader, uint32_t index, Pending &pending)
{
    Elements<int32_t> inputs(pending.source->inputs()), outputs(pending.source->outputs());
    pending.op.inputs = inputs.array();
    pending.op.input_count = inputs.count;
    pending.op.outputs = outputs.array();
    pending.op.output_count = outputs.count;
    int error = reader_spend(reader, (size_t(inputs.count) + outputs.count) * sizeof(int32_t));
    if (!error)
        error = check_indices(reader, index, inputs, MICA_NO_TENSOR);
    return error ? error : check_indices(reader, index, outputs, 0);
}

void settle(Reader &reader, const mica_op &op)
{
    for (uint32_t i = 0; i < op.input_count; i++)
        if (op.inputs[i] != MICA_NO_TENSOR)
            reader.settled[op.inputs[i]] = 1;
    for (uint32_t i = 0; i < op.output_count; i++)
        reader.settled[op.outputs[i]] = 1;
}

} // namespace

int reader_add_operator(Reader &reader, uint32_t index)
{
    Pending pending = {};
    pending.source = reader.subgraph->operators()->Get(index);
    int error = read_code(reader, index, pending);
    if (!error)
        error = reader_spend(reader, strlen(pending.op.type) < 64 ? 0 : strlen(pending.op.type));
    if (!error)
        error = read_indices(reader, index, pending);
    if (error)
        return error;
    read_parameters(reader, pending);
    error = complete_shapes(reader, pending);
    settle(reader, pending.op);
    return error ? error : mica_graph_add_op(reader.graph, &pending.op, reader.log);
}

} // namespace mica
