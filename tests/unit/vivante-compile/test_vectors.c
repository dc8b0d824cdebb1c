/* SPDX-License-Identifier: MIT */
/* The A311D golden vectors: their streams, their NN descriptors and their command words against ours. */
#include "support.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/compile.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/hw/fields.h"

#define VECTORS MICA_SHARED_DIR "/spec/vivante/vectors/"

static const struct mica_chip chip = {.name = "a311d", .clock_mhz = 800, .parameters = &viv_a311d};

/* ---- reading ----------------------------------------------------------------- */

static uint8_t *read_hex(const char *hex, size_t size)
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
    return read_hex(hex, *size);
}

static bool flag(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_true(value) || json_integer_value(value) != 0;
}

static struct spec spec_of(const json_t *vector, const char *shape, const char *quant)
{
    const json_t *q = json_object_get(vector, quant), *dims = json_object_get(vector, shape);
    struct spec spec = {.type = flag(vector, "signed") ? MICA_TYPE_INT8 : MICA_TYPE_UINT8, .rank = 4};
    spec.scale = (float)json_number_value(json_object_get(q, "scale"));
    spec.zero_point = (int32_t)json_integer_value(json_object_get(q, "zero_point"));
    for (unsigned i = 0; i < 4; i++)
        spec.dims[i] = (int32_t)json_integer_value(json_array_get(dims, i));
    return spec;
}

/* ---- the vector's operation as a graph ---------------------------------------- */

struct subject {
    struct net net;
    int32_t inputs[2], output;
    uint32_t input_count;
};

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
    bool depthwise = flag(params, "depthwise"),
         same = !strcmp(json_string_value(json_object_get(params, "padding")), "SAME");
    struct mica_op op = {.kind = depthwise ? MICA_OP_DEPTHWISE_CONV_2D : MICA_OP_CONV_2D};
    int32_t stride = (int32_t)json_integer_value(json_object_get(params, "stride"));
    op.window = (struct mica_window){.kernel_x = kernel_size(params, 0), .kernel_y = kernel_size(params, 1)};
    op.window.stride_x = op.window.stride_y = stride;
    op.window.dilation_x = op.window.dilation_y = op.window.depth_multiplier = 1;
    op.window.activation = flag(params, "relu") ? MICA_ACT_RELU : MICA_ACT_NONE;
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

static void build(struct subject *subject, const json_t *vector)
{
    net_open(&subject->net);
    if (!strcmp(json_string_value(json_object_get(vector, "op")), "add"))
        build_add(subject, vector);
    else
        build_conv(subject, vector);
    assert_null(subject->net.graph->ops[0].problem);
}

/* ---- walking over the vectors --------------------------------------------------- */

static bool for_each_vector(const char *prefix, void (*body)(const json_t *vector))
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

static const json_t *nn_job(const json_t *vector)
{
    size_t i;
    json_t *job, *jobs = json_object_get(vector, "jobs");
    json_array_foreach(jobs, i, job) if (!strcmp(json_string_value(json_object_get(job, "unit")), "NN")) return job;
    fail_msg("no NN job");
    return NULL;
}

static void words_of(const json_t *job, uint32_t *words, size_t count)
{
    const json_t *hex = json_object_get(json_array_get(json_object_get(job, "descriptors"), 0), "words");
    memset(words, 0, count * 4);
    for (size_t i = 0; i < count && i < json_array_size(hex); i++)
        words[i] = (uint32_t)strtoul(json_string_value(json_array_get(hex, i)), NULL, 16);
}

/* ---- streams ---------------------------------------------------------------------- */

static void compare_kernels(const char *name, const struct decoded *ours, const struct decoded *theirs,
                            const struct shape *shape)
{
    if (ours->count != theirs->count)
        fail_msg("%s: %u kernels instead of %u", name, ours->count, theirs->count);
    for (uint32_t k = 0; k < ours->count; k++) {
        const struct kernel *a = &ours->kernels[k], *b = &theirs->kernels[k];
        if (a->offset != b->offset || a->bias != b->bias)
            fail_msg("%s: kernel %u: offset %u %u, bias %u %u", name, k, a->offset, b->offset, a->bias, b->bias);
        if (memcmp(a->weights, b->weights, (size_t)shape->channels * shape->taps))
            fail_msg("%s: weights of kernel %u", name, k);
    }
}

static struct viv_kernel_set whole_set(const struct viv_plan *plan, const struct viv_weights *weights)
{
    const struct viv_nn *nn = NULL;
    for (uint32_t i = 0; !nn; i++)
        nn = plan->jobs[i].is_nn ? &plan->jobs[i].nn : NULL;
    struct viv_kernel_set set = {.count = weights->kernels, .taps = weights->taps, .diagonal = weights->diagonal};
    set.stored_channels = weights->channels * weights->phases;
    set.channels = weights->diagonal ? set.stored_channels * weights->kernels : set.stored_channels;
    set.pointwise = weights->pointwise;
    set.zero_point = weights->zero_point;
    set.data = weights->data;
    set.bias = weights->bias;
    set.plane = nn->out_x_stride * nn->out_y_stride;
    return set;
}

static void compare_stream(const json_t *vector)
{
    const char *name = json_string_value(json_object_get(vector, "name"));
    struct subject subject = {0};
    build(&subject, vector);
    struct mica_partition partition;
    partition_init(&partition, &subject.net, subject.inputs, subject.input_count, &subject.output, 1);
    struct viv_plan plan;
    assert_int_equal(viv_plan_init(&plan, &viv_a311d, &partition, NULL, &subject.net.log), 0);
    assert_int_equal(viv_lower(&plan), 0);
    assert_int_equal(plan.weights_count, 1);
    assert_true(viv_weights_prepare(plan.weights[0]));

    uint32_t words[VIV_NN_WORDS];
    words_of(nn_job(vector), words, VIV_NN_WORDS);
    struct viv_kernel_set set = whole_set(&plan, plan.weights[0]);
    struct shape shape = {viv_nn_get(words, VIV_NN_KERNELS_PER_CORE), set.channels, set.taps, set.pointwise,
                          set.zero_point};
    const json_t *buffer = json_array_get(json_object_get(nn_job(vector), "coefficients"), 0);
    size_t size = (size_t)json_integer_value(json_object_get(buffer, "size"));
    uint8_t *recorded = read_hex(json_string_value(json_object_get(buffer, "bytes")), size);

    struct viv_coefficients coefficients;
    struct decoded ours, theirs;
    assert_true(viv_coef_v7_encode(&viv_a311d, &set, shape.kernels_per_core, &coefficients));
    const char *wrong = decode_v7(recorded, size, &shape, &theirs);
    if (wrong)
        fail_msg("%s, recorded: %s", name, wrong);
    wrong = decode_v7(coefficients.data, coefficients.size, &shape, &ours);
    if (wrong)
        fail_msg("%s, ours: %s", name, wrong);
    compare_kernels(name, &ours, &theirs, &shape);
    assert_int_equal(ours.size, coefficients.size);
    if (ours.size > theirs.size)
        fail_msg("%s: %zu bytes, recorded %zu", name, ours.size, theirs.size);
    decoded_finish(&ours);
    decoded_finish(&theirs);
    free(coefficients.data);
    free(recorded);
    viv_plan_finish(&plan);
    partition_finish(&partition);
    net_close(&subject.net);
}

static void streams_decode_to_the_vectors_kernels_and_are_not_larger(void **state)
{
    (void)state;
    if (!for_each_vector("a311d-", compare_stream))
        skip();
}

/* ---- descriptors --------------------------------------------------------------------- */

/* Ours to choose: addresses, tile, superblocks, and where the caches lie. */
static bool is_choice(unsigned field)
{
    switch (field) {
    case VIV_NN_KERNEL_ADDRESS:
    case VIV_NN_IN_IMAGE_ADDRESS:
    case VIV_NN_OUT_IMAGE_ADDRESS:
    case VIV_NN_OUT_IMAGE_TILE_X_SIZE:
    case VIV_NN_OUT_IMAGE_TILE_Y_SIZE:
    case VIV_NN_KERNELS_PER_CORE:
    case VIV_NN_IMAGE_CACHING_MODE:
    case VIV_NN_IMAGE_CACHE_START:
    case VIV_NN_IMAGE_CACHE_END:
    case VIV_NN_KERNEL_CACHING_MODE:
    case VIV_NN_KERNEL_CACHE_START:
    case VIV_NN_KERNEL_CACHE_END:
    case VIV_NN_KERNEL_PATTERN_MSB:
    case VIV_NN_KERNEL_PATTERN_LOW:
    case VIV_NN_KERNEL_PATTERN_HIGH:
        return true;
    default:
        return false;
    }
}

/* Different where the job is another one: the 1x1 image's width is free, and our space-to-depth image has no border. */
static bool is_reshaped(unsigned field)
{
    switch (field) {
    case VIV_NN_IN_IMAGE_X_SIZE:
    case VIV_NN_IN_IMAGE_Y_SIZE:
    case VIV_NN_IN_IMAGE_X_STRIDE:
    case VIV_NN_IN_IMAGE_Y_STRIDE:
    case VIV_NN_OUT_IMAGE_X_SIZE:
    case VIV_NN_OUT_IMAGE_Y_SIZE:
    case VIV_NN_OUT_IMAGE_X_STRIDE:
    case VIV_NN_OUT_IMAGE_Y_STRIDE:
        return true;
    default:
        return false;
    }
}

static void compare_fields(const char *name, const uint32_t *ours, const uint32_t *theirs)
{
    bool pointwise = viv_nn_get(theirs, VIV_NN_KERNEL_X_SIZE) == 1;
    bool halved = strstr(name, "conv3x3-s2") != NULL;
    for (unsigned i = 0; i < VIV_NN_FIELD_COUNT; i++) {
        const struct viv_field *field = &viv_nn_fields[i];
        /* Four bits count on this chip; we write the fifth as sign extension, as the vendor does. */
        bool offset = i == VIV_NN_IN_IMAGE_X_OFFSET || i == VIV_NN_IN_IMAGE_Y_OFFSET;
        uint32_t a = offset ? (uint32_t)viv_field_get_signed(ours, field, 4) : viv_field_get(ours, field);
        uint32_t b = offset ? (uint32_t)viv_field_get_signed(theirs, field, 4) : viv_field_get(theirs, field);
        if (is_choice(i) || ((pointwise || halved) && is_reshaped(i)))
            continue;
        if (a != b)
            fail_msg("%s: %s is %x instead of %x", name, field->name, a, b);
    }
}

/* The first NN descriptor of a program: its stream word names it through a relocation. */
static void find_nn(const struct mica_program *program, uint32_t *words)
{
    for (uint32_t i = 0; i < program->reloc_count; i++) {
        const struct mica_program_reloc *reloc = &program->relocs[i];
        if (!reloc->in_stream || program->submits[reloc->where].stream[reloc->offset / 4 - 1] != 0x08010428)
            continue;
        memcpy(words, program->buffers[reloc->target].data + reloc->addend, 4 * VIV_NN_WORDS);
        return;
    }
    fail_msg("no NN job in the program");
}

static void compare_commands(const json_t *vector, const struct mica_program *program)
{
    const json_t *lists = json_object_get(vector, "command_words");
    assert_int_equal(program->submit_count, json_array_size(lists));
    for (uint32_t s = 0; s < program->submit_count; s++) {
        const json_t *list = json_array_get(lists, s);
        assert_int_equal(program->submits[s].words, json_array_size(list));
        uint32_t before = 0;
        for (uint32_t i = 0; i < program->submits[s].words; i++) {
            uint32_t word = (uint32_t)strtoul(json_string_value(json_array_get(list, i)), NULL, 16);
            bool address = before == 0x08010428 || before == 0x0801042e;
            assert_int_equal(program->submits[s].stream[i], address ? word & 31 : word);
            before = word;
        }
    }
}

static void compare_program(const json_t *vector)
{
    const char *name = json_string_value(json_object_get(vector, "name"));
    struct subject subject = {0};
    struct mica_partition partition;
    struct mica_program *program;
    char reason[256];
    if (!strncmp(name, "a311d-vendor-", 13)) /* its circular buffers and flattened images are its own */
        return;
    build(&subject, vector);
    if (viv_supports(&chip, subject.net.graph, 0, reason, sizeof(reason)))
        fail_msg("%s: %s", name, reason);
    partition_init(&partition, &subject.net, subject.inputs, subject.input_count, &subject.output, 1);
    assert_int_equal(viv_compile(&chip, &partition, NULL, &subject.net.log, &program), 0);
    assert_true(mica_program_valid(program));
    uint32_t ours[VIV_NN_WORDS], theirs[VIV_NN_WORDS];
    find_nn(program, ours);
    words_of(nn_job(vector), theirs, VIV_NN_WORDS);
    compare_fields(name, ours, theirs);
    if (!strcmp(name, "a311d-conv3x3-same-8x8x4-8")) /* the same jobs, with no TP job large enough to split */
        compare_commands(vector, program);
    mica_program_destroy(program);
    partition_finish(&partition);
    net_close(&subject.net);
}

static void descriptors_and_commands_are_the_vectors(void **state)
{
    (void)state;
    if (!for_each_vector("a311d-", compare_program))
        skip();
}

int main(void)
{
    DIR *directory = opendir(VECTORS);
    if (!directory)
        return SKIP;
    closedir(directory);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_decode_to_the_vectors_kernels_and_are_not_larger),
        cmocka_unit_test(descriptors_and_commands_are_the_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
