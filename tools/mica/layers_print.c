/* SPDX-License-Identifier: MIT */
/* Compared layers as a table and as JSON. */
#include "layers.h"

#include "table.h"
#include "tensor.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What the layers come to, all together. */
struct totals {
    size_t npu, exact, borders, inconsistent;
};

static struct totals count(const struct cli_layers *layers)
{
    struct totals totals = {0};
    for (size_t i = 0; i < layers->count; i++) {
        const struct cli_layer *layer = &layers->items[i];
        totals.npu += layer->partition >= 0;
        totals.exact += layer->partition >= 0 && !layer->alone.differing;
        totals.borders += layer->at_border;
        totals.inconsistent += layer->at_border && !layer->consistent;
    }
    return totals;
}

static void add_difference(struct cli_table *table, bool there, const struct cli_difference *difference)
{
    if (!there) {
        for (int i = 0; i < 4; i++)
            cli_table_add(table, "-");
        return;
    }
    cli_table_add(table, "%.6g", difference->largest);
    cli_table_add(table, "%.4g", cli_difference_mean(difference));
    cli_table_add(table, "%.6f", cli_difference_cosine(difference));
    cli_table_add(table, "%.3f", 100 * cli_difference_share(difference));
}

static void add_layer(struct cli_table *table, const struct cli_layer *layer)
{
    char shape[CLI_SHAPE_SIZE];
    cli_dims_text(layer->info.dims, layer->info.rank, shape);
    cli_table_add(table, "%zu", layer->operation);
    cli_table_add(table, "%s", layer->info.type);
    cli_table_add(table, "%s", shape);
    if (layer->partition < 0)
        cli_table_add(table, "CPU");
    else
        cli_table_add(table, "NPU %d", layer->partition);
    add_difference(table, layer->partition >= 0, &layer->alone);
    add_difference(table, layer->chained.count > 0, &layer->chained);
}

static int print_layers(struct cli *cli, const struct cli_layers *layers)
{
    static const char *const headers[] = {">#",      "operation", "output",    "runs on",           ">alone: largest",
                                          ">mean",   ">cosine",   ">% differ", ">chained: largest", ">mean",
                                          ">cosine", ">% differ"};
    struct cli_table table;
    cli_table_init(&table, headers, sizeof(headers) / sizeof(headers[0]));
    for (size_t i = 0; i < layers->count; i++)
        add_layer(&table, &layers->items[i]);
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

static int print_reasons(struct cli *cli, const struct cli_layers *layers)
{
    static const char *const headers[] = {">#", "on the CPU", "why not on the NPU"};
    struct cli_table table;
    cli_table_init(&table, headers, 3);
    for (size_t k = 0; k < layers->count; k++) {
        const struct cli_layer *layer = &layers->items[k];
        if (layer->partition >= 0)
            continue;
        cli_table_add(&table, "%zu", layer->operation);
        cli_table_add(&table, "%s", layer->info.type);
        cli_table_add(&table, "%s", layer->reason);
    }
    if (table.count)
        fputc('\n', cli->out);
    bool printed = !table.count || cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed && !table.failed ? 0 : cli_fail_nomem(cli);
}

static void print_final(struct cli *cli, size_t index, const struct cli_final *final)
{
    const struct cli_difference *difference = &final->difference;
    double psnr = cli_final_psnr(final);
    fprintf(cli->out, "As it runs, output %zu, %s, ", index, final->tensor.name);
    if (!difference->differing)
        fputs("is the same.\n", cli->out);
    else if (isnan(psnr))
        fprintf(cli->out, "differs by up to %.6g in %.3f %% of its values.\n", difference->largest,
                100 * cli_difference_share(difference));
    else
        fprintf(cli->out, "differs by up to %.6g in %.3f %% of its values: a PSNR of %.1f dB.\n", difference->largest,
                100 * cli_difference_share(difference), psnr);
}

static void print_totals(struct cli *cli, const struct cli_layers *layers, const char *input)
{
    struct totals totals = count(layers);
    fprintf(cli->out, "\ndevice: %s. Input: %s.\n", mica_device_name(cli->device), input);
    fputs("Against TFLite's reference kernels. Differences count steps of the quantization, or values of floats.\n"
          "alone: each operation of the NPU on the reference's values. chained: on what came before.\n",
          cli->out);
    if (totals.npu)
        fprintf(cli->out, "%zu of %zu operations on the NPU are exact alone.\n", totals.exact, totals.npu);
    if (totals.inconsistent)
        fprintf(cli->out,
                "%zu of %zu operations at a border of partitions give other values where only borders are kept:\n"
                "that is a bug of Mica, please report it.\n",
                totals.inconsistent, totals.borders);
    for (size_t i = 0; i < layers->final_count; i++)
        print_final(cli, i, &layers->finals[i]);
}

int cli_layers_print(struct cli *cli, const struct cli_layers *layers, const char *input)
{
    int failed = print_layers(cli, layers);
    if (!failed)
        failed = print_reasons(cli, layers);
    if (!failed)
        print_totals(cli, layers, input);
    return failed;
}

static json_t *json_layer(struct cli_json *json, const struct cli_layer *layer)
{
    json_t *row = cli_json_object(json), *shape = cli_json_array(json);
    for (uint32_t i = 0; i < layer->info.rank; i++)
        cli_json_append(json, shape, json_integer(layer->info.dims[i]));
    cli_json_set_integer(json, row, "index", layer->operation);
    cli_json_set_text(json, row, "type", layer->info.type);
    cli_json_set_text(json, row, "output", layer->info.output);
    cli_json_set(json, row, "shape", shape);
    cli_json_set_integer(json, row, "macs", layer->info.macs);
    cli_json_set_text(json, row, "runs_on", layer->partition >= 0 ? "NPU" : "CPU");
    if (layer->partition >= 0)
        cli_json_set_integer(json, row, "partition", (uint64_t)layer->partition);
    else
        cli_json_set_text(json, row, "reason", layer->reason);
    cli_json_set(json, row, "alone", layer->partition >= 0 ? cli_difference_json(json, &layer->alone) : json_null());
    cli_json_set(json, row, "chained", cli_difference_json(json, &layer->chained));
    cli_json_set(json, row, "border", layer->at_border ? cli_difference_json(json, &layer->border) : json_null());
    cli_json_set(json, row, "consistent", json_boolean(layer->consistent));
    return row;
}

static json_t *json_finals(struct cli_json *json, const struct cli_layers *layers)
{
    json_t *rows = cli_json_array(json);
    for (size_t i = 0; i < layers->final_count; i++) {
        json_t *row = cli_json_tensor(json, &layers->finals[i].tensor);
        cli_json_set(json, row, "difference", cli_difference_json(json, &layers->finals[i].difference));
        cli_json_set_real(json, row, "psnr", cli_final_psnr(&layers->finals[i]));
        cli_json_append(json, rows, row);
    }
    return rows;
}

int cli_layers_json(struct cli *cli, const struct cli_layers *layers, const char *input)
{
    struct cli_json json = {0};
    struct totals totals = count(layers);
    json_t *root = cli_json_object(&json), *rows = cli_json_array(&json), *summary = cli_json_object(&json);
    for (size_t i = 0; i < layers->count; i++)
        cli_json_append(&json, rows, json_layer(&json, &layers->items[i]));
    cli_json_set_integer(&json, summary, "operations", layers->count);
    cli_json_set_integer(&json, summary, "npu_operations", totals.npu);
    cli_json_set_integer(&json, summary, "exact_alone", totals.exact);
    cli_json_set_integer(&json, summary, "inconsistent", totals.inconsistent);
    cli_json_set_text(&json, root, "model", cli->options.operands.items[0]);
    cli_json_set_text(&json, root, "device", mica_device_name(cli->device));
    cli_json_set_text(&json, root, "input", input);
    cli_json_set(&json, root, "layers", rows);
    cli_json_set(&json, root, "outputs", json_finals(&json, layers));
    cli_json_set(&json, root, "summary", summary);
    return cli_json_print(cli, &json, root);
}
