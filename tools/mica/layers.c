/* SPDX-License-Identifier: MIT */
/* Measuring: the reference once, each layer of the NPU alone, and the chain as it runs and with all values visible. */
#include "layers.h"

#include "input.h"
#include "tensor.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The device's values at borders, kept while the next run replaces them. */
struct kept {
    void **values; /* per tensor, NULL: none */
    size_t count;
};

static void kept_finish(struct kept *kept)
{
    for (size_t i = 0; kept->values && i < kept->count; i++)
        free(kept->values[i]);
    free(kept->values);
    *kept = (struct kept){0};
}

static int kept_take(struct cli *cli, const mica_comparison *comparison, struct kept *kept)
{
    kept->count = mica_model_tensor_count(cli->model);
    kept->values = calloc(kept->count + 1, sizeof(*kept->values));
    for (size_t i = 0; kept->values && i < kept->count; i++) {
        struct mica_tensor_info tensor;
        const void *value = mica_comparison_device(comparison, i);
        if (!value || mica_model_tensor(cli->model, i, &tensor))
            continue;
        kept->values[i] = malloc(tensor.bytes + 1);
        if (!kept->values[i])
            return cli_fail_nomem(cli);
        memcpy(kept->values[i], value, tensor.bytes);
    }
    return kept->values ? 0 : cli_fail_nomem(cli);
}

/* Outputs of a layer that the device's last run has a value of. */
static void add_outputs(struct cli *cli, const mica_comparison *comparison, const struct cli_layer *layer,
                        struct cli_difference *difference)
{
    for (uint32_t i = 0; i < layer->info.output_count; i++) {
        if (layer->info.outputs[i] < 0)
            continue;
        size_t index = (size_t)layer->info.outputs[i];
        struct mica_tensor_info tensor;
        const void *got = mica_comparison_device(comparison, index);
        const void *wanted = mica_comparison_reference(comparison, index);
        if (got && wanted && !mica_model_tensor(cli->model, index, &tensor))
            cli_difference_add(difference, &tensor, got, wanted);
    }
}

static bool same_as_kept(struct cli *cli, const mica_comparison *comparison, const struct cli_layer *layer,
                         const struct kept *kept)
{
    bool same = true;
    for (uint32_t i = 0; i < layer->info.output_count; i++) {
        if (layer->info.outputs[i] < 0)
            continue;
        size_t index = (size_t)layer->info.outputs[i];
        struct mica_tensor_info tensor;
        const void *value = mica_comparison_device(comparison, index);
        if (value && kept->values[index] && !mica_model_tensor(cli->model, index, &tensor))
            same = same && memcmp(value, kept->values[index], tensor.bytes) == 0;
    }
    return same;
}

static int measure_alone(struct cli *cli, mica_comparison *comparison, struct cli_layers *layers)
{
    for (size_t i = 0; i < layers->count; i++) {
        struct cli_layer *layer = &layers->items[i];
        int error = layer->partition < 0 ? 0 : mica_comparison_run_alone(comparison, i);
        if (error)
            return cli_fail_library(cli, error);
        if (layer->partition >= 0)
            add_outputs(cli, comparison, layer, &layer->alone);
        cli_progress_step(&cli->progress);
    }
    return 0;
}

/* The tensor that output `index` is: its shape lies at the same place. */
static bool find_output(struct cli *cli, size_t index, size_t *tensor)
{
    struct mica_tensor_info output, info;
    if (mica_model_output(cli->model, index, &output))
        return false;
    for (*tensor = 0; mica_model_tensor(cli->model, *tensor, &info) == 0; ++*tensor)
        if (info.dims == output.dims)
            return true;
    return false;
}

static double peak_of(const struct mica_tensor_info *tensor, const void *values)
{
    struct cli_range range;
    if (tensor->type == MICA_TYPE_FLOAT32)
        return cli_range(tensor, values, &range) ? range.most - range.least : 0;
    return (double)tensor->scale * (tensor->type == MICA_TYPE_INT16 ? 65535 : 255); /* 0: no quantization */
}

static int measure_finals(struct cli *cli, const mica_comparison *comparison, struct cli_layers *layers)
{
    layers->final_count = mica_model_output_count(cli->model);
    layers->finals = calloc(layers->final_count + 1, sizeof(*layers->finals));
    if (!layers->finals)
        return cli_fail_nomem(cli);
    for (size_t i = 0; i < layers->final_count; i++) {
        struct cli_final *final = &layers->finals[i];
        size_t tensor;
        int error = mica_model_output(cli->model, i, &final->tensor);
        if (error)
            return cli_fail_library(cli, error);
        const void *got = find_output(cli, i, &tensor) ? mica_comparison_device(comparison, tensor) : NULL;
        const void *wanted = got ? mica_comparison_reference(comparison, tensor) : NULL;
        if (!wanted)
            continue;
        cli_difference_add(&final->difference, &final->tensor, got, wanted);
        final->peak = peak_of(&final->tensor, wanted);
    }
    return 0;
}

double cli_final_psnr(const struct cli_final *final)
{
    const struct cli_difference *difference = &final->difference;
    if (!(final->peak > 0) || !difference->count)
        return (double)NAN;
    return 10 * log10(final->peak * final->peak * (double)difference->count / difference->noise);
}

static int measure_chain(struct cli *cli, mica_comparison *comparison, struct cli_layers *layers)
{
    struct kept kept = {0};
    int error = mica_comparison_run_chained(comparison, false);
    for (size_t i = 0; !error && i < layers->count; i++) {
        struct cli_layer *layer = &layers->items[i];
        add_outputs(cli, comparison, layer, &layer->border);
        layer->at_border = layer->border.count > 0;
    }
    cli_progress_step(&cli->progress);
    int failed = error ? cli_fail_library(cli, error) : measure_finals(cli, comparison, layers);
    if (!failed)
        failed = kept_take(cli, comparison, &kept);
    if (!failed && (error = mica_comparison_run_chained(comparison, true)))
        failed = cli_fail_library(cli, error);
    for (size_t i = 0; !failed && i < layers->count; i++) {
        struct cli_layer *layer = &layers->items[i];
        add_outputs(cli, comparison, layer, &layer->chained);
        layer->consistent = same_as_kept(cli, comparison, layer, &kept);
    }
    kept_finish(&kept);
    return failed;
}

static int list_layers(struct cli *cli, struct cli_layers *layers)
{
    layers->count = mica_model_operation_count(cli->model);
    layers->items = calloc(layers->count + 1, sizeof(*layers->items));
    if (!layers->items)
        return cli_fail_nomem(cli);
    for (size_t i = 0; i < layers->count; i++) {
        struct cli_layer *layer = &layers->items[i];
        layer->operation = i;
        layer->partition = mica_executable_partition_of(cli->executable, i);
        int error = mica_model_operation(cli->model, i, &layer->info);
        if (error)
            return cli_fail_library(cli, error);
        if (layer->partition < 0 &&
            mica_model_placement(cli->model, cli->device, i, layer->reason, sizeof(layer->reason)) > 0)
            snprintf(layer->reason, sizeof(layer->reason), "the NPU could, but the plan leaves it to the CPU");
    }
    return 0;
}

static int set_inputs(struct cli *cli, mica_comparison *comparison, const char **input)
{
    for (size_t i = 0; i < mica_model_input_count(cli->model); i++) {
        struct mica_tensor_info tensor;
        void *data = NULL;
        int error = mica_model_input(cli->model, i, &tensor);
        int failed = error ? cli_fail_library(cli, error) : cli_input_make(cli, i, &data, input);
        if (!failed && (error = mica_comparison_set_input(comparison, i, data, tensor.bytes)))
            failed = cli_fail_library(cli, error);
        free(data);
        if (failed)
            return failed;
    }
    return 0;
}

static int measure(struct cli *cli, mica_comparison *comparison, struct cli_layers *layers)
{
    cli_progress_start(&cli->progress, cli->err, "comparing", (unsigned)layers->count + 2);
    int error = mica_comparison_run_reference(comparison);
    cli_progress_step(&cli->progress);
    int failed = error ? cli_fail_library(cli, error) : measure_alone(cli, comparison, layers);
    if (!failed)
        failed = measure_chain(cli, comparison, layers);
    cli_progress_stop(&cli->progress);
    return failed;
}

int cli_layers_measure(struct cli *cli, struct cli_layers *layers, const char **input)
{
    mica_comparison *comparison;
    *input = "none";
    *layers = (struct cli_layers){0};
    int error = mica_comparison_create(cli->executable, &comparison);
    if (error)
        return cli_fail_library(cli, error);
    int failed = set_inputs(cli, comparison, input);
    if (!failed)
        failed = list_layers(cli, layers);
    if (!failed)
        failed = measure(cli, comparison, layers);
    mica_comparison_destroy(comparison);
    return failed;
}

void cli_layers_finish(struct cli_layers *layers)
{
    free(layers->items);
    free(layers->finals);
    *layers = (struct cli_layers){0};
}

static int by_error(const struct cli_difference *a, const struct cli_difference *b)
{
    double x = cli_difference_error(a), y = cli_difference_error(b);
    return (x < y) - (x > y);
}

static int by_badness(const void *a, const void *b)
{
    const struct cli_layer *x = a, *y = b;
    int order = by_error(&x->alone, &y->alone);
    if (!order)
        order = (y->partition >= 0) - (x->partition >= 0);
    if (!order)
        order = by_error(&x->chained, &y->chained);
    return order ? order : (x->operation > y->operation) - (x->operation < y->operation);
}

void cli_layers_sort(struct cli_layers *layers)
{
    qsort(layers->items, layers->count, sizeof(*layers->items), by_badness);
}
