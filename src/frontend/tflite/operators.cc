/* SPDX-License-Identifier: MIT */
/* From the file's operators to the graph's operations; parameters.cc reads what each kind has of its own. */
#include "frontend/tflite/internal.h"

extern "C" {
#include "frontend/tflite/names.h"
}

#include <errno.h>
#include <stdio.h>

namespace mica
{
namespace
{

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
    const mica_tensor *input = reader_input(reader, pending, 0), *shape = reader_input(reader, pending, 1);
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
    const mica_tensor *input = reader_input(reader, pending, 0);
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
    mica_slice slice;
    mica_slice_masks masks;
    if (pending.op.kind == MICA_OP_DETECTION_POSTPROCESS)
        return infer_detection(pending.op.detection, output, rank, dims);
    if (pending.code == MICA_TFLITE_RESHAPE)
        return infer_reshape(reader, pending, rank, dims);
    if (pending.code == MICA_TFLITE_SQUEEZE)
        return infer_squeeze(reader, pending, rank, dims);
    if (pending.code == MICA_TFLITE_STRIDED_SLICE && reader_slice_masks(pending, masks))
        return output == 0 && !mica_slice_resolve(reader.graph, &pending.op, &masks, &slice, rank, dims);
    return mica_op_infer_output_shape(reader.graph, &pending.op, output, rank, dims);
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

const mica_tensor *reader_input(const Reader &reader, const Pending &pending, uint32_t i)
{
    const mica_tensor *tensor = mica_op_input(reader.graph, &pending.op, i);
    return tensor && !tensor->problem ? tensor : nullptr;
}

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
    reader_parameters(reader, pending);
    error = complete_shapes(reader, pending);
    settle(reader, pending.op);
    return error ? error : mica_graph_add_op(reader.graph, &pending.op, reader.log);
}

} // namespace mica
