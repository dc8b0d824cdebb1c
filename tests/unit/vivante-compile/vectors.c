/* SPDX-License-Identifier: MIT */
#include "vectors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/hw/fields.h"

#define VECTORS MICA_SHARED_DIR "/spec/vivante/vectors/"

/* ---- reading ----------------------------------------------------------------- */

uint8_t *vector_hex(const char *hex, size_t size)
{
    uint8_t *data = calloc(1, size + 1);
    assert_non_null(data);
    for (size_t i = 0; hex[2 * i] && i < size; i++) {
        unsigned byte;
        assert_int_equal(sscanf(hex + 2 * i, "%2x", &byte), 1);
        data[i] = (uint8_t)byte;
    }
    return data;
}

static uint8_t *hex_of(const json_t *vector, const char *key, size_t *size)
{
    const char *hex = json_string_value(json_object_get(vector, key));
    assert_non_null(hex);
    *size = strlen(hex) / 2;
    return vector_hex(hex, *size);
}

static bool vector_flag(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_true(value) || json_integer_value(value) != 0;
}

static struct spec spec_of(const json_t *vector, const char *shape, const char *quant)
{
    const json_t *q = json_object_get(vector, quant), *dims = json_object_get(vector, shape);
    struct spec spec = {.type = vector_flag(vector, "signed") ? MICA_TYPE_INT8 : MICA_TYPE_UINT8, .rank = 4};
    spec.scale = (float)json_number_value(json_object_get(q, "scale"));
    spec.zero_point = (int32_t)json_integer_value(json_object_get(q, "zero_point"));
    for (unsigned i = 0; i < 4; i++)
        spec.dims[i] = (int32_t)json_integer_value(json_array_get(dims, i));
    return spec;
}

/* ---- the vector's operation as a graph ---------------------------------------- */

static int32_t kernel_size(const json_t *params, unsigned axis)
{
    const json_t *kernel = json_object_get(params, "kernel");
    return (int32_t)json_integer_value(json_is_array(kernel) ? json_array_get(kernel, axis) : kernel);
}

static void build_conv(struct subject *subject, const json_t *vector)
{
    const json_t *params = json_object_get(vector, "params");
    struct spec in = spec_of(vector, "input_shape", "input_quant"),
                out = spec_of(vector, "output_shape", "output_quant");
    struct spec filter = spec_of(vector, "input_shape", "weight_quant");
    bool depthwise = vector_flag(params, "depthwise"),
         same = !strcmp(json_string_value(json_object_get(params, "padding")), "SAME");
    struct mica_op op = {.kind = depthwise ? MICA_OP_DEPTHWISE_CONV_2D : MICA_OP_CONV_2D};
    int32_t stride = (int32_t)json_integer_value(json_object_get(params, "stride"));
    op.window = (struct mica_window){.kernel_x = kernel_size(params, 0), .kernel_y = kernel_size(params, 1)};
    op.window.stride_x = op.window.stride_y = stride;
    op.window.dilation_x = op.window.dilation_y = op.window.depth_multiplier = 1;
    op.window.activation = vector_flag(params, "relu") ? MICA_ACT_RELU : MICA_ACT_NONE;
    if (same) {
        op.window.padding.left = mica_same_padding(in.dims[2], op.window.kernel_x, stride, 1, &op.window.padding.right);
        op.window.padding.top = mica_same_padding(in.dims[1], op.window.kernel_y, stride, 1, &op.window.padding.bottom);
    }
    int32_t oc = out.dims[3];
    const int32_t dims[] = {depthwise ? 1 : oc, op.window.kernel_y, op.window.kernel_x, depthwise ? oc : in.dims[3]};
    memcpy(filter.dims, dims, sizeof(dims));
    size_t weight_bytes, bias_bytes;
    uint8_t *weights = hex_of(vector, "weights", &weight_bytes), *bias = hex_of(vector, "bias_le32", &bias_bytes);
    struct spec bias_spec = {.type = MICA_TYPE_INT32, .rank = 1, .dims = {oc}, .scale = in.scale * filter.scale};
    int32_t inputs[3];
    inputs[0] = subject->inputs[0] = net_tensor(&subject->net, &in, NULL);
    inputs[1] = net_tensor(&subject->net, &filter, weights);
    inputs[2] = net_tensor(&subject->net, &bias_spec, bias);
    subject->input_count = 1;
    subject->output = net_tensor(&subject->net, &out, NULL);
    net_op(&subject->net, op, depthwise ? "DEPTHWISE_CONV_2D" : "CONV_2D", inputs, 3, subject->output);
    free(weights);
    free(bias);
}

static void build_add(struct subject *subject, const json_t *vector)
{
    struct spec in = spec_of(vector, "input_shape", "input_quant");
    struct spec in2 = spec_of(vector, "input_shape", "input2_quant");
    struct spec out = spec_of(vector, "output_shape", "output_quant");
    subject->inputs[0] = net_tensor(&subject->net, &in, NULL);
    subject->inputs[1] = net_tensor(&subject->net, &in2, NULL);
    subject->input_count = 2;
    subject->output = net_tensor(&subject->net, &out, NULL);
    net_op(&subject->net, (struct mica_op){.kind = MICA_OP_ADD}, "ADD", subject->inputs, 2, subject->output);
}

static void build_fully_connected(struct subject *subject, const json_t *vector)
{
    struct spec in = spec_of(vector, "input_shape", "input_quant"),
                out = spec_of(vector, "output_shape", "output_quant");
    struct spec filter = spec_of(vector, "input_shape", "weight_quant");
    in.rank = out.rank = filter.rank = 2;
    filter.dims[0] = out.dims[1];
    size_t weight_bytes, bias_bytes;
    uint8_t *weights = hex_of(vector, "weights", &weight_bytes), *bias = hex_of(vector, "bias_le32", &bias_bytes);
    struct spec bias_spec = {.type = MICA_TYPE_INT32, .rank = 1, .dims = {out.dims[1]}};
    bias_spec.scale = in.scale * filter.scale;
    int32_t inputs[3];
    inputs[0] = subject->inputs[0] = net_tensor(&subject->net, &in, NULL);
    inputs[1] = net_tensor(&subject->net, &filter, weights);
    inputs[2] = net_tensor(&subject->net, &bias_spec, bias);
    subject->input_count = 1;
    subject->output = net_tensor(&subject->net, &out, NULL);
    net_op(&subject->net, (struct mica_op){.kind = MICA_OP_FULLY_CONNECTED}, "FULLY_CONNECTED", inputs, 3,
           subject->output);
    free(weights);
    free(bias);
}

void vector_build(struct subject *subject, const json_t *vector)
{
    const char *op = json_string_value(json_object_get(vector, "op"));
    net_open(&subject->net);
    if (!strcmp(op, "add"))
        build_add(subject, vector);
    else if (!strcmp(op, "fc"))
        build_fully_connected(subject, vector);
    else
        build_conv(subject, vector);
    assert_null(subject->net.graph->ops[0].problem);
}

/* ---- walking over the vectors --------------------------------------------------- */

bool vectors_exist(void)
{
    DIR *directory = opendir(VECTORS);
    if (directory)
        closedir(directory);
    return directory != NULL;
}

bool vectors_each(const char *prefix, void (*body)(const json_t *vector))
{
    DIR *directory = opendir(VECTORS);
    if (!directory)
        return false;
    unsigned count = 0;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char path[512];
        snprintf(path, sizeof(path), VECTORS "%s", entry->d_name);
        if (strncmp(entry->d_name, prefix, strlen(prefix)) || strstr(entry->d_name, "-pad-"))
            continue;
        json_error_t error;
        json_t *vector = json_load_file(path, 0, &error);
        assert_non_null(vector);
        body(vector);
        json_decref(vector);
        count++;
    }
    closedir(directory);
    assert_true(count > 0);
    return true;
}

const json_t *vector_nn_job(const json_t *vector)
{
    size_t i;
    json_t *job, *jobs = json_object_get(vector, "jobs");
    json_array_foreach(jobs, i, job) if (!strcmp(json_string_value(json_object_get(job, "unit")), "NN")) return job;
    fail_msg("no NN job");
    return NULL;
}

void vector_words(const json_t *job, uint32_t *words, size_t count)
{
    const json_t *hex = json_object_get(json_array_get(json_object_get(job, "descriptors"), 0), "words");
    memset(words, 0, count * 4);
    for (size_t i = 0; i < count && i < json_array_size(hex); i++)
        words[i] = (uint32_t)strtoul(json_string_value(json_array_get(hex, i)), NULL, 16);
}

/* ---- programs ------------------------------------------------------------------- */

bool program_names_descriptor(const struct mica_program *program, uint32_t index, uint32_t command)
{
    assert_true(index < program->reloc_count);
    const struct mica_program_reloc *reloc = &program->relocs[index];
    return reloc->in_stream && program->submits[reloc->where].stream[reloc->offset / 4 - 1] == command;
}

void program_nn(const struct mica_program *program, uint32_t *words)
{
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *reloc = &program->relocs[i];
        if (!program_names_descriptor(program, i, 0x08010428))
            continue;
        memcpy(words, program->buffers[reloc->target].data + reloc->addend, 4 * VIV_NN_WORDS);
        return;
    }
    fail_msg("no NN job in the program");
}
