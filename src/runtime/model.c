/* SPDX-License-Identifier: MIT */
/* Models of the public API. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/cpu.h"
#include "frontend/onnx/reader.h"
#include "frontend/tflite/reader.h"
#include "runtime/objects.h"
#include "util/checked.h"

int mica_model_load_memory(mica_context *context, const void *data, size_t size, mica_model **result)
{
    MICA_CHECK_ARG(NULL, context);
    MICA_CHECK_ARG(&context->log, data);
    MICA_CHECK_ARG(&context->log, result);
    if ((uintptr_t)data % MICA_MODEL_ALIGNMENT)
        return mica_fail(&context->log, -EINVAL, "a model in memory must be %d-byte aligned", MICA_MODEL_ALIGNMENT);
    mica_model *model = calloc(1, sizeof *model);
    if (!model)
        return mica_fail_nomem(&context->log);
    *model = (mica_model){.context = context, .data = data, .size = size};
    int error = mica_onnx_recognize(data, size) ? mica_onnx_read(data, size, &context->log, &model->graph)
                                                : mica_tflite_read(data, size, &context->log, &model->graph);
    if (error) {
        free(model);
        return error;
    }
    *result = model;
    return 0;
}

void mica_model_set_name(mica_model *model, const char *path)
{
    const char *slash = strrchr(path, '/');
    snprintf(model->name, sizeof model->name, "%s", slash ? slash + 1 : path);
}

int mica_model_load(mica_context *context, const char *path, mica_model **result)
{
    MICA_CHECK_ARG(NULL, context);
    MICA_CHECK_ARG(&context->log, path);
    MICA_CHECK_ARG(&context->log, result);
    struct mica_mapping mapping;
    int error = mica_mapping_open(path, &context->log, &mapping);
    if (error)
        return error;
    error = mica_model_load_memory(context, mapping.data, mapping.size, result);
    if (error) {
        mica_mapping_close(&mapping);
        return error;
    }
    (*result)->mapping = mapping;
    mica_model_set_name(*result, path);
    return 0;
}

void mica_model_destroy(mica_model *model)
{
    if (!model)
        return;
    free(model->choices);
    mica_graph_destroy(model->graph);
    mica_mapping_close(&model->mapping);
    free(model);
}

size_t mica_model_input_count(const mica_model *model)
{
    return model ? model->graph->input_count : 0;
}

size_t mica_model_output_count(const mica_model *model)
{
    return model ? model->graph->output_count : 0;
}

static void describe(const struct mica_tensor *tensor, struct mica_tensor_info *info)
{
    *info = (struct mica_tensor_info){
        .name = tensor->name,
        .type = tensor->type,
        .rank = tensor->rank,
        .dims = tensor->dims,
        .bytes = tensor->bytes,
    };
    if (tensor->quant.count == 1) {
        info->scale = tensor->quant.scale[0];
        info->zero_point = tensor->quant.zero_point[0];
    }
}

int mica_model_input(const mica_model *model, size_t index, struct mica_tensor_info *info)
{
    MICA_CHECK_ARG(NULL, model);
    MICA_CHECK_ARG(MICA_LOG_OF(model), info);
    MICA_CHECK_ARG(MICA_LOG_OF(model), index < mica_model_input_count(model));
    describe(&model->graph->tensors[model->graph->inputs[index]], info);
    return 0;
}

int mica_model_output(const mica_model *model, size_t index, struct mica_tensor_info *info)
{
    MICA_CHECK_ARG(NULL, model);
    MICA_CHECK_ARG(MICA_LOG_OF(model), info);
    MICA_CHECK_ARG(MICA_LOG_OF(model), index < mica_model_output_count(model));
    describe(&model->graph->tensors[model->graph->outputs[index]], info);
    return 0;
}

size_t mica_model_tensor_count(const mica_model *model)
{
    return model ? model->graph->tensor_count : 0;
}

int mica_model_tensor(const mica_model *model, size_t index, struct mica_tensor_info *info)
{
    MICA_CHECK_ARG(NULL, model);
    MICA_CHECK_ARG(MICA_LOG_OF(model), info);
    MICA_CHECK_ARG(MICA_LOG_OF(model), index < mica_model_tensor_count(model));
    describe(&model->graph->tensors[index], info);
    return 0;
}

size_t mica_model_operation_count(const mica_model *model)
{
    return model ? model->graph->op_count : 0;
}

int mica_model_operation(const mica_model *model, size_t index, struct mica_operation_info *info)
{
    MICA_CHECK_ARG(NULL, model);
    MICA_CHECK_ARG(MICA_LOG_OF(model), info);
    MICA_CHECK_ARG(MICA_LOG_OF(model), index < mica_model_operation_count(model));
    const struct mica_op *op = &model->graph->ops[index];
    const struct mica_tensor *output = mica_op_output(model->graph, op, 0);
    *info = (struct mica_operation_info){
        .type = op->type,
        .output = output ? output->name : "",
        .rank = output ? output->rank : 0,
        .dims = output ? output->dims : NULL,
        .macs = op->problem ? 0 : mica_op_macs(model->graph, op),
        .output_count = op->output_count,
        .outputs = op->outputs,
    };
    return 0;
}

int mica_place_operation(const struct mica_graph *graph, const struct mica_chip *chip, uint32_t op, char *reason,
                         size_t size)
{
    char npu[256] = "the device has no NPU", cpu[256] = "";
    if (graph->ops[op].problem) {
        snprintf(reason, size, "%s", graph->ops[op].problem);
        return -ENOTSUP;
    }
    int answer = chip ? chip->family->supports(chip, graph, op, npu, sizeof npu) : -ENOTSUP;
    if (!answer || answer == -ENOMEM) {
        snprintf(reason, size, "%s", answer ? "out of memory" : "");
        return answer ? answer : 1;
    }
    if (!mica_cpu_supports(graph, op, cpu, sizeof cpu)) {
        snprintf(reason, size, "%s", npu);
        return 0;
    }
    bool same = !chip || !strcmp(npu, cpu);
    snprintf(reason, size, "%s%s%s", same ? "" : npu, same ? "" : "; on the CPU: ", cpu);
    return -ENOTSUP;
}

/* What of the graph the CPU has kernels for. */
static bool *find_cpu_operations(const struct mica_graph *graph)
{
    char reason[256];
    bool *can = mica_new_array(graph->op_count, sizeof *can);
    for (uint32_t i = 0; can && i < graph->op_count; i++)
        can[i] = !graph->ops[i].problem && !mica_cpu_supports(graph, i, reason, sizeof reason);
    return can;
}

int mica_place_model(const mica_model *model, const mica_device *device, bool *npu, struct mica_choice *choices,
                     struct mica_log *log)
{
    bool *cpu_can = find_cpu_operations(model->graph);
    if (!cpu_can)
        return mica_fail_nomem(log);
    int error = mica_place_by_cost(model->graph, device->opened.chip, &device->options, cpu_can, log, npu, choices);
    free(cpu_can);
    return error;
}

static int make_choices(mica_model *model, const mica_device *device)
{
    struct mica_log *log = &model->context->log;
    bool *npu = mica_new_array(model->graph->op_count, sizeof *npu);
    struct mica_choice *choices = mica_new_array(model->graph->op_count, sizeof *choices);
    int error = npu && choices ? mica_place_model(model, device, npu, choices, log) : mica_fail_nomem(log);
    free(npu);
    free(error ? choices : model->choices);
    if (error)
        return error;
    model->choices = choices;
    model->choices_chip = device->opened.chip;
    model->choices_options = device->options;
    return 0;
}

/* 1 = the cost model leaves the operation on the CPU, and `reason` says why; 0 = it doesn't; -ENOMEM. */
static int left_by_choice(mica_model *model, const mica_device *device, size_t index, char *reason, size_t size)
{
    if (!device->opened.chip || !device->options.cost_cpu_macs)
        return 0;
    bool known = model->choices && model->choices_chip == device->opened.chip &&
                 model->choices_options.cost_cpu_macs == device->options.cost_cpu_macs &&
                 model->choices_options.fold_scales == device->options.fold_scales;
    int error = known ? 0 : make_choices(model, device);
    return error ? error : mica_choice_reason(&model->choices[index], reason, size);
}

int mica_model_placement(const mica_model *model, const mica_device *device, size_t index, char *reason, size_t size)
{
    MICA_CHECK_ARG(NULL, model);
    MICA_CHECK_ARG(MICA_LOG_OF(model), device);
    MICA_CHECK_ARG(MICA_LOG_OF(model), index < mica_model_operation_count(model));
    MICA_CHECK_ARG(MICA_LOG_OF(model), reason || !size);
    int left = left_by_choice((mica_model *)model, device, index, reason, size);
    if (left)
        return left > 0 ? 0 : left;
    return mica_place_operation(model->graph, device->opened.chip, (uint32_t)index, reason, size);
}
