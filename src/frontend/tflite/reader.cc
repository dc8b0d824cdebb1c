/* SPDX-License-Identifier: MIT */
/* From the file to tensors, inputs and outputs; operators.cc does the operations. */
#include "frontend/tflite/reader.h"

#include "frontend/tflite/internal.h"

extern "C" {
#include "frontend/tflite/names.h"
}

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

namespace mica
{

int reader_spend(Reader &reader, size_t bytes)
{
    if (bytes > reader.budget)
        return mica_fail(reader.log, -EINVAL, "the model is damaged: it uses the same data over and over");
    reader.budget -= bytes;
    return 0;
}

namespace
{

/* ---- tensors ---------------------------------------------------------- */

mica_type type_of(tflite::TensorType type)
{
    switch (type) {
    case tflite::TensorType_FLOAT32:
        return MICA_TYPE_FLOAT32;
    case tflite::TensorType_INT32:
        return MICA_TYPE_INT32;
    case tflite::TensorType_UINT8:
        return MICA_TYPE_UINT8;
    case tflite::TensorType_INT64:
        return MICA_TYPE_INT64;
    case tflite::TensorType_BOOL:
        return MICA_TYPE_BOOL;
    case tflite::TensorType_INT16:
        return MICA_TYPE_INT16;
    case tflite::TensorType_INT8:
        return MICA_TYPE_INT8;
    default:
        return MICA_TYPE_OTHER;
    }
}

void read_shape(const tflite::Tensor *source, mica_tensor &tensor)
{
    Elements<int32_t> shape(source->shape());
    tensor.rank = shape.count;
    for (uint32_t i = 0; i < shape.count && i < MICA_MAX_RANK; i++)
        tensor.dims[i] = shape[i];
}

/*
 * A signature tells which dimensions a host may change; -1 there is no obstacle, because
 * the shape itself, which this reader uses, is what TensorFlow Lite starts with.
 */
const char *signature_problem(const tflite::Tensor *source)
{
    Elements<int32_t> shape(source->shape()), signature(source->shape_signature());
    if (shape.count == 0 || signature.count == 0)
        return nullptr;
    if (shape.count > MICA_MAX_RANK) /* refused anyway; tables can share a long vector */
        return nullptr;
    bool same = shape.count == signature.count;
    for (uint32_t i = 0; same && i < shape.count; i++)
        same = signature[i] == -1 || signature[i] == shape[i];
    return same ? nullptr : "its shape and its shape signature contradict each other";
}

const char *feature_problem(const tflite::Tensor *source, char *text, size_t size)
{
    if (type_of(source->type()) == MICA_TYPE_OTHER) {
        snprintf(text, size, "its element type %s is not supported", mica_tflite_type_name(source->type()));
        return text;
    }
    if (source->is_variable())
        return "it is a variable, which keeps its value between runs";
    if (source->sparsity())
        return "its data are stored in a sparse format";
    return nullptr;
}

int use_scratch(Reader &reader, size_t size)
{
    if (size <= reader.scratch_size)
        return 0;
    void *larger = realloc(reader.scratch, size);
    if (!larger)
        return mica_fail_nomem(reader.log);
    reader.scratch = static_cast<int32_t *>(larger);
    reader.scratch_size = size;
    return 0;
}

/* False when one does not fit 32 bits, which is what everything computes with. */
bool narrow_zero_points(Reader &reader, Elements<int64_t> wide)
{
    for (uint32_t i = 0; i < wide.count; i++) {
        if (wide[i] < INT32_MIN || wide[i] > INT32_MAX)
            return false;
        reader.scratch[i] = static_cast<int32_t>(wide[i]);
    }
    return true;
}

int read_quantization(Reader &reader, const tflite::Tensor *source, mica_tensor &tensor)
{
    const tflite::QuantizationParameters *quantization = source->quantization();
    if (!quantization)
        return 0;
    Elements<float> scale(quantization->scale());
    Elements<int64_t> zero_point(quantization->zero_point());
    if (quantization->details_type() != 0)
        tensor.problem = "its quantization is of a custom kind";
    else if (scale.count != zero_point.count && scale.count > 0)
        tensor.problem = "it has not as many zero points as scales";
    if (tensor.problem || scale.count == 0)
        return 0;
    size_t size = scale.count * sizeof(int32_t);
    int error = reader_spend(reader, 2 * size);
    if (!error)
        error = use_scratch(reader, size);
    if (error)
        return error;
    if (!narrow_zero_points(reader, zero_point))
        tensor.problem = "a zero point is outside of the element type's range";
    tensor.quant.count = scale.count;
    tensor.quant.scale = scale.array();
    tensor.quant.zero_point = reader.scratch;
    tensor.quant.axis = quantization->quantized_dimension();
    return 0;
}

int read_data(Reader &reader, const tflite::Tensor *source, mica_tensor &tensor)
{
    const auto *buffers = reader.model->buffers();
    if (!buffers || source->buffer() >= buffers->size())
        return mica_fail(reader.log, -EINVAL, "the model is damaged: tensor \"%.100s\" refers to buffer %u of %u",
                         tensor.name, source->buffer(), buffers ? buffers->size() : 0);
    const tflite::Buffer *buffer = buffers->Get(source->buffer());
    if (buffer->offset() > 1 || buffer->size() > 1)
        tensor.problem = "its data are stored outside of the flatbuffer, which is not supported";
    Elements<uint8_t> data(buffer->data());
    if (data.count > 0) {
        tensor.data = data.bytes;
        tensor.bytes = data.count;
    }
    return 0;
}

int add_tensor(Reader &reader, const tflite::Tensor *source)
{
    mica_tensor tensor = {};
    char text[64];
    const flatbuffers::String *name = source->name();
    tensor.name = name ? name->c_str() : "";
    tensor.type = type_of(source->type());
    tensor.problem = feature_problem(source, text, sizeof text);
    read_shape(source, tensor);
    if (!tensor.problem)
        tensor.problem = signature_problem(source);
    int error = reader_spend(reader, name ? name->size() : 0);
    if (!error)
        error = read_data(reader, source, tensor);
    if (!error && !tensor.problem)
        error = read_quantization(reader, source, tensor);
    return error ? error : mica_graph_add_tensor(reader.graph, &tensor, reader.log);
}

/* ---- the whole -------------------------------------------------------- */

int add_tensors(Reader &reader)
{
    const auto *tensors = reader.subgraph->tensors();
    int error = 0;
    for (uint32_t i = 0; tensors && i < tensors->size() && !error; i++)
        error = add_tensor(reader, tensors->Get(i));
    return error;
}

int set_io(Reader &reader)
{
    Elements<int32_t> inputs(reader.subgraph->inputs()), outputs(reader.subgraph->outputs());
    int error =
        mica_graph_set_io(reader.graph, inputs.array(), inputs.count, outputs.array(), outputs.count, reader.log);
    for (uint32_t i = 0; i < inputs.count && !error; i++)
        reader.settled[inputs[i]] = 1;
    return error;
}

int add_operators(Reader &reader)
{
    const auto *operators = reader.subgraph->operators();
    int error = 0;
    for (uint32_t i = 0; operators && i < operators->size() && !error; i++)
        error = reader_add_operator(reader, i);
    return error;
}

int build(Reader &reader)
{
    int error = add_tensors(reader);
    if (error)
        return error;
    reader.settled = static_cast<uint8_t *>(calloc(size_t(reader.graph->tensor_count) + 1, 1));
    if (!reader.settled)
        return mica_fail_nomem(reader.log);
    error = set_io(reader);
    if (!error)
        error = add_operators(reader);
    return error ? error : mica_graph_check_flow(reader.graph, reader.log);
}

/*
 * Tables can be shared, so a small file can describe a huge graph. An honest tensor takes 24
 * bytes at least (table, shape, place in the vector), an honest operation 32, and any table 8.
 */
bool counts_fit(const tflite::SubGraph *subgraph, size_t size)
{
    size_t tensors = subgraph->tensors() ? subgraph->tensors()->size() : 0;
    size_t operators = subgraph->operators() ? subgraph->operators()->size() : 0;
    return tensors <= size / 24 && operators <= size / 32;
}

bool verify(const void *data, size_t size)
{
    flatbuffers::Verifier::Options options;
    options.max_depth = 16;
    options.max_tables = static_cast<flatbuffers::uoffset_t>(size / 8);
    flatbuffers::Verifier verifier(static_cast<const uint8_t *>(data), size, options);
    return tflite::VerifyModelBuffer(verifier);
}

int open_model(const void *data, size_t size, Reader &reader)
{
    struct mica_log *log = reader.log;
    if (reinterpret_cast<uintptr_t>(data) % 16)
        return mica_fail(log, -EINVAL, "the model's memory is not aligned to 16 bytes");
    if (size < 8 || !tflite::ModelBufferHasIdentifier(data))
        return mica_fail(log, -EINVAL, "this is no .tflite, .onnx or .mica file that Mica knows: its bytes 4 to 7 are not \"TFL3\"");
    if (size >= FLATBUFFERS_MAX_BUFFER_SIZE)
        return mica_fail(log, -EINVAL, "models of 2 GiB or more are not supported");
    if (!verify(data, size))
        return mica_fail(log, -EINVAL,
                         "the model is damaged: its structure leads outside of its %zu bytes or repeats itself", size);
    reader.model = tflite::GetModel(data);
    if (reader.model->version() != 3)
        return mica_fail(log, -EINVAL, "the model has format version %u; version 3 is supported",
                         reader.model->version());
    const auto *subgraphs = reader.model->subgraphs();
    if (!subgraphs || subgraphs->size() == 0)
        return mica_fail(log, -EINVAL, "the model is empty: it has no subgraph");
    reader.subgraph = subgraphs->Get(0);
    if (!counts_fit(reader.subgraph, size))
        return mica_fail(log, -EINVAL, "the model is damaged: more tensors or operations than its %zu bytes can hold",
                         size);
    reader.budget = 2 * size + 4096;
    return 0;
}

} // namespace
} // namespace mica

extern "C" int mica_tflite_read(const void *data, size_t size, struct mica_log *log, mica_graph **graph)
{
    mica::Reader reader = {};
    reader.log = log;
    int error = mica::open_model(data, size, reader);
    if (!error)
        error = mica_graph_create(log, &reader.graph);
    if (!error)
        error = mica::build(reader);
    free(reader.settled);
    free(reader.scratch);
    if (error) {
        mica_graph_destroy(reader.graph);
        return error;
    }
    *graph = reader.graph;
    return 0;
}
