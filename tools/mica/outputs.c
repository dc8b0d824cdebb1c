/* SPDX-License-Identifier: MIT */
#include "outputs.h"

#include "cli.h"
#include "file.h"
#include "table.h"
#include "tensor.h"

#include <stdlib.h>

static int get_output(struct cli *cli, size_t index, struct cli_output *output)
{
    int error = mica_model_output(cli->model, index, &output->tensor);
    if (error)
        return cli_fail_library(cli, error);
    output->data = malloc(output->tensor.bytes ? output->tensor.bytes : 1);
    if (!output->data)
        return cli_fail_nomem(cli);
    error = mica_session_get_output(cli->session, index, output->data, output->tensor.bytes);
    if (error)
        return cli_fail_library(cli, error);
    output->classes = cli_is_classes(&output->tensor);
    return 0;
}

int cli_outputs_get(struct cli *cli, bool labels, struct cli_outputs *outputs)
{
    size_t count = mica_model_output_count(cli->model), classes = 0;
    *outputs = (struct cli_outputs){.items = calloc(count + 1, sizeof(*outputs->items)), .count = count};
    if (!outputs->items)
        return cli_fail_nomem(cli);
    for (size_t i = 0; i < count; i++) {
        int failed = get_output(cli, i, &outputs->items[i]);
        if (failed)
            return failed;
        if (outputs->items[i].classes && !classes)
            classes = cli_element_count(&outputs->items[i].tensor);
    }
    if (labels)
        classes = 0;
    return classes || labels ? cli_labels_load(cli, classes, &outputs->labels) : 0;
}

void cli_outputs_finish(struct cli_outputs *outputs)
{
    for (size_t i = 0; outputs->items && i < outputs->count; i++)
        free(outputs->items[i].data);
    free(outputs->items);
    cli_labels_finish(&outputs->labels);
    *outputs = (struct cli_outputs){0};
}

int cli_outputs_write(struct cli *cli, const struct cli_outputs *outputs)
{
    const struct cli_list *files = &cli->options.outputs;
    for (size_t i = 0; i < files->count && i < outputs->count; i++) {
        const struct cli_output *output = &outputs->items[i];
        int failed = cli_file_write(cli, files->items[i], output->data, output->tensor.bytes);
        if (failed)
            return failed;
    }
    return 0;
}

/* The best classes of `output`: *indices is to be freed. */
static int best_classes(struct cli *cli, const struct cli_output *output, size_t **indices, size_t *count)
{
    *indices = calloc(cli->options.top, sizeof(**indices));
    if (!*indices)
        return cli_fail_nomem(cli);
    *count = cli_top(&output->tensor, output->data, *indices, cli->options.top);
    return 0;
}

static int print_classes(struct cli *cli, const struct cli_output *output, const struct cli_labels *labels)
{
    static const char *const headers[] = {">score", ">class", "label"};
    size_t *indices, count = 0;
    int failed = best_classes(cli, output, &indices, &count);
    if (failed)
        return failed;
    struct cli_table table;
    cli_table_init(&table, headers, labels->count ? 3 : 2);
    for (size_t i = 0; i < count; i++) {
        const char *label = cli_label(labels, indices[i]);
        cli_table_add(&table, "%.4f", cli_real_value(&output->tensor, output->data, indices[i]));
        cli_table_add(&table, "%zu", indices[i]);
        if (labels->count)
            cli_table_add(&table, "%s", label ? label : "");
    }
    free(indices);
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

static int print_range(struct cli *cli, const struct cli_output *output, size_t index)
{
    static const char *const headers[] = {"output", "name", "type", ">least", ">most", ">mean"};
    char shape[CLI_SHAPE_SIZE];
    struct cli_table table;
    struct cli_range range;
    cli_shape_text(&output->tensor, shape);
    bool known = cli_range(&output->tensor, output->data, &range);
    cli_table_init(&table, headers, known ? 6 : 3);
    cli_table_add(&table, "%zu", index);
    cli_table_add(&table, "%s", output->tensor.name);
    cli_table_add(&table, "%s", shape);
    if (known) {
        cli_table_add(&table, "%g", range.least);
        cli_table_add(&table, "%g", range.most);
        cli_table_add(&table, "%g", range.mean);
    }
    bool printed = cli_table_print(&table, cli->out);
    cli_table_finish(&table);
    return printed ? 0 : cli_fail_nomem(cli);
}

int cli_outputs_print(struct cli *cli, const struct cli_outputs *outputs)
{
    int failed = 0;
    for (size_t i = 0; i < outputs->count && !failed; i++) {
        const struct cli_output *output = &outputs->items[i];
        if (i)
            fputc('\n', cli->out);
        failed = output->classes ? print_classes(cli, output, &outputs->labels) : print_range(cli, output, i);
    }
    return failed;
}

static int json_classes(struct cli *cli, const struct cli_output *output, const struct cli_labels *labels,
                        struct cli_json *json, json_t *rows)
{
    size_t *indices, count = 0;
    int failed = best_classes(cli, output, &indices, &count);
    if (failed)
        return failed;
    for (size_t i = 0; i < count; i++) {
        json_t *row = cli_json_object(json);
        cli_json_set_integer(json, row, "class", indices[i]);
        cli_json_set_text(json, row, "label", cli_label(labels, indices[i]));
        cli_json_set_real(json, row, "score", cli_real_value(&output->tensor, output->data, indices[i]));
        cli_json_set_real(json, row, "raw", cli_raw_value(&output->tensor, output->data, indices[i]));
        cli_json_append(json, rows, row);
    }
    free(indices);
    return 0;
}

static void json_range(const struct cli_output *output, struct cli_json *json, json_t *row)
{
    struct cli_range range;
    if (!cli_range(&output->tensor, output->data, &range))
        return;
    cli_json_set_real(json, row, "least", range.least);
    cli_json_set_real(json, row, "most", range.most);
    cli_json_set_real(json, row, "mean", range.mean);
}

int cli_outputs_json(struct cli *cli, const struct cli_outputs *outputs, struct cli_json *json, json_t *array)
{
    int failed = 0;
    for (size_t i = 0; i < outputs->count && !failed; i++) {
        const struct cli_output *output = &outputs->items[i];
        json_t *row = cli_json_tensor(json, &output->tensor);
        if (output->classes) {
            json_t *top = cli_json_array(json);
            failed = json_classes(cli, output, &outputs->labels, json, top);
            cli_json_set(json, row, "top", top);
        } else {
            json_range(output, json, row);
        }
        cli_json_append(json, array, row);
    }
    return failed;
}
