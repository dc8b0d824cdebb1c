/* SPDX-License-Identifier: MIT */
/* The A311D golden vectors: their streams, their NN descriptors and their command words against ours. */
#include "vectors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/compile.h"
#include "npu/vivante/compile/lower.h"
#include "npu/vivante/hw/fields.h"

static const struct mica_chip chip = {.name = "a311d", .clock_mhz = 800, .parameters = &viv_a311d};

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
    vector_build(&subject, vector);
    struct mica_partition partition;
    partition_init(&partition, &subject.net, subject.inputs, subject.input_count, &subject.output, 1);
    struct viv_plan plan;
    assert_int_equal(viv_plan_init(&plan, &viv_a311d, &partition, NULL, &subject.net.log), 0);
    assert_int_equal(viv_lower(&plan), 0);
    assert_int_equal(plan.weights_count, 1);
    assert_true(viv_weights_prepare(plan.weights[0]));

    uint32_t words[VIV_NN_WORDS];
    vector_words(vector_nn_job(vector), words, VIV_NN_WORDS);
    struct viv_kernel_set set = whole_set(&plan, plan.weights[0]);
    struct shape shape = {viv_nn_get(words, VIV_NN_KERNELS_PER_CORE), set.channels, set.taps, set.pointwise,
                          set.zero_point};
    const json_t *buffer = json_array_get(json_object_get(vector_nn_job(vector), "coefficients"), 0);
    size_t size = (size_t)json_integer_value(json_object_get(buffer, "size"));
    uint8_t *recorded = vector_hex(json_string_value(json_object_get(buffer, "bytes")), size);

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
    if (!vectors_each("a311d-", compare_stream))
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

/* Transposes that are too small to split are the driver's own, words and all; 10 and 13 are addresses. */
static void compare_transposes(const json_t *vector, const struct mica_program *program)
{
    size_t i, found = 0;
    json_t *job, *jobs = json_object_get(vector, "jobs");
    uint32_t ours[VIV_TP_WORDS], theirs[VIV_TP_WORDS], reloc = 0;
    json_array_foreach(jobs, i, job)
    {
        if (strcmp(json_string_value(json_object_get(job, "unit")), "TP"))
            continue;
        while (!program_names_descriptor(program, reloc, 0x0801042e))
            reloc++;
        memcpy(ours, program->buffers[program->relocs[reloc].target].data + program->relocs[reloc].addend,
               sizeof(ours));
        vector_words(job, theirs, VIV_TP_WORDS);
        theirs[10] = theirs[13] = 0;
        assert_memory_equal(ours, theirs, sizeof(ours));
        reloc++;
        found++;
    }
    assert_int_equal(found, 2);
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
    vector_build(&subject, vector);
    if (viv_supports(&chip, subject.net.graph, 0, reason, sizeof(reason)))
        fail_msg("%s: %s", name, reason);
    partition_init(&partition, &subject.net, subject.inputs, subject.input_count, &subject.output, 1);
    assert_int_equal(viv_compile(&chip, &partition, NULL, NULL, &subject.net.log, &program), 0);
    assert_true(mica_program_valid(program));
    uint32_t ours[VIV_NN_WORDS], theirs[VIV_NN_WORDS];
    program_nn(program, ours);
    vector_words(vector_nn_job(vector), theirs, VIV_NN_WORDS);
    compare_fields(name, ours, theirs);
    if (!strcmp(name, "a311d-conv3x3-same-8x8x4-8")) { /* the same jobs, with no TP job large enough to split */
        compare_commands(vector, program);
        compare_transposes(vector, program);
    }
    mica_program_destroy(program);
    partition_finish(&partition);
    net_close(&subject.net);
}

static void descriptors_and_commands_are_the_vectors(void **state)
{
    (void)state;
    if (!vectors_each("a311d-", compare_program))
        skip();
}

int main(void)
{
    if (!vectors_exist())
        return SKIP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_decode_to_the_vectors_kernels_and_are_not_larger),
        cmocka_unit_test(descriptors_and_commands_are_the_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
