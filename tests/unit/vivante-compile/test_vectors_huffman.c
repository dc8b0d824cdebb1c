/* SPDX-License-Identifier: MIT */
/*
 * The golden vectors of the chips with Huffman coefficients: what our compiler
 * makes of the same operations, descriptor field by field and kernel by kernel
 * (through the simulator's decoder), and that our streams are not larger.
 */
#include "vectors.h"

#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/compile.h"
#include "npu/vivante/hw/chips.h"
#include "npu/vivante/hw/fields.h"
#include "npu/vivante/sim/coef_huffman.h"

/* What a test looks at: the vector and the program that we make of it. */
struct comparison {
    const char *name;
    const struct viv_chip *chip;
    struct subject subject;
    struct mica_partition partition;
    struct mica_program *program;
    uint32_t ours[VIV_NN_WORDS], theirs[VIV_NN_WORDS];
    uint8_t *recorded; /* their coefficients */
    size_t recorded_size;
};

static void comparison_open(struct comparison *c, const json_t *vector)
{
    memset(c, 0, sizeof(*c));
    c->name = json_string_value(json_object_get(vector, "name"));
    c->chip = strncmp(c->name, "s905d3", 6) ? &viv_imx8mp : &viv_s905d3;
    struct mica_chip chip = {.name = c->chip->name, .clock_mhz = c->chip->clock_mhz, .parameters = c->chip};
    char reason[256];
    vector_build(&c->subject, vector);
    if (viv_supports(&chip, c->subject.net.graph, 0, reason, sizeof(reason)))
        fail_msg("%s: %s", c->name, reason);
    partition_init(&c->partition, &c->subject.net, c->subject.inputs, c->subject.input_count, &c->subject.output, 1);
    assert_int_equal(viv_compile(&chip, &c->partition, NULL, NULL, &c->subject.net.log, &c->program), 0);
    assert_true(mica_program_valid(c->program));
    program_nn(c->program, c->ours);
    vector_words(vector_nn_job(vector), c->theirs, VIV_NN_WORDS);
    const json_t *buffer = json_array_get(json_object_get(vector_nn_job(vector), "coefficients"), 0);
    c->recorded_size = (size_t)json_integer_value(json_object_get(buffer, "size"));
    c->recorded = vector_hex(json_string_value(json_object_get(buffer, "bytes")), c->recorded_size);
}

static void comparison_close(struct comparison *c)
{
    free(c->recorded);
    mica_program_destroy(c->program);
    partition_finish(&c->partition);
    net_close(&c->subject.net);
}

/* ---- descriptors ------------------------------------------------------------------ */

/* Ours to choose, or where the recorded job's place in memory shows. */
static const unsigned char choices[] = {
    VIV_NN_KERNEL_ADDRESS,        VIV_NN_IN_IMAGE_ADDRESS,    VIV_NN_OUT_IMAGE_ADDRESS,  VIV_NN_OUT_IMAGE_TILE_X_SIZE,
    VIV_NN_OUT_IMAGE_TILE_Y_SIZE, VIV_NN_KERNELS_PER_CORE,    VIV_NN_IMAGE_CACHING_MODE, VIV_NN_IMAGE_CACHE_START,
    VIV_NN_IMAGE_CACHE_END,       VIV_NN_KERNEL_CACHING_MODE, VIV_NN_KERNEL_CACHE_START, VIV_NN_KERNEL_CACHE_END,
};

/* The vendor's habits without which other drivers run (specification, section 3.2); its ends of buffers reach above
 * their field. */
static const unsigned char vendor[] = {
    VIV_NN_OUT_CIRC_SIZE,  VIV_NN_OUT_CIRC_END_P1, VIV_NN_RSVD19_26, VIV_NN_IN_CIRC_SIZE,
    VIV_NN_IN_CIRC_END_P1, VIV_NN_SLOW_OUTPUT,     VIV_NN_EXT6,
};

/* A 1x1 image's width is free, and our space-to-depth image has no border. */
static const unsigned char shape[] = {
    VIV_NN_IN_IMAGE_X_SIZE,  VIV_NN_IN_IMAGE_Y_SIZE,  VIV_NN_IN_IMAGE_X_STRIDE,  VIV_NN_IN_IMAGE_Y_STRIDE,
    VIV_NN_OUT_IMAGE_X_SIZE, VIV_NN_OUT_IMAGE_Y_SIZE, VIV_NN_OUT_IMAGE_X_STRIDE, VIV_NN_OUT_IMAGE_Y_STRIDE,
};

/* One input channel: our 1x1 kernel is widened to 2x2, as mainline does (specification, section 7.4). */
static const unsigned char kernel[] = {VIV_NN_KERNEL_X_SIZE, VIV_NN_KERNEL_Y_SIZE};

static bool is_in(unsigned field, const unsigned char *list, size_t count)
{
    return memchr(list, (int)field, count) != NULL;
}

static bool may_differ(const struct comparison *c, unsigned field)
{
    bool point = viv_nn_get(c->theirs, VIV_NN_KERNEL_X_SIZE) == 1 && viv_nn_get(c->theirs, VIV_NN_KERNEL_Y_SIZE) == 1;
    bool widened = point && viv_nn_get(c->theirs, VIV_NN_KERNEL_Z_SIZE) == 1;
    bool halved = strstr(c->name, "conv3x3-s2") != NULL;
    bool by_vendor = c->chip == &viv_s905d3 || strstr(c->name, "-vendor-");
    if (field == VIV_NN_KERNEL_Z_SIZE) /* of a depthwise job mainline writes all channels, we as the vendor 1 */
        return viv_nn_get(c->theirs, VIV_NN_DEPTHWISE) && !by_vendor;
    return is_in(field, choices, sizeof(choices)) || (by_vendor && is_in(field, vendor, sizeof(vendor))) ||
           ((point || halved) && is_in(field, shape, sizeof(shape))) ||
           (widened && is_in(field, kernel, sizeof(kernel)));
}

static uint32_t value_of(const struct comparison *c, const uint32_t *words, unsigned field)
{
    const struct viv_field *f = &viv_nn_fields[field];
    /* On chips with four offset bits the fifth is written by some only. */
    if (field == VIV_NN_IN_IMAGE_X_OFFSET || field == VIV_NN_IN_IMAGE_Y_OFFSET)
        return (uint32_t)viv_field_get_signed(words, f, c->chip->offset_bits);
    return viv_field_get(words, f);
}

static void compare_fields(const json_t *vector)
{
    struct comparison c;
    if (strstr(json_string_value(json_object_get(vector, "name")), "-add-")) /* another view of the same tensors */
        return;
    comparison_open(&c, vector);
    for (unsigned i = 0; i < VIV_NN_FIELD_COUNT; i++) {
        uint32_t ours = value_of(&c, c.ours, i), theirs = value_of(&c, c.theirs, i);
        if (ours != theirs && !may_differ(&c, i))
            fail_msg("%s: %s is %x instead of %x", c.name, viv_nn_fields[i].name, ours, theirs);
    }
    comparison_close(&c);
}

static void descriptors_are_the_vectors(void **state)
{
    (void)state;
    assert_true(vectors_each("imx8mp-", compare_fields));
    assert_true(vectors_each("s905d3-", compare_fields));
}

/* ---- streams ---------------------------------------------------------------------- */

static struct viv_huffman_shape shape_of(const struct comparison *c, const uint32_t *words)
{
    struct viv_huffman_shape s = {.chip = c->chip, .kernels_per_core = viv_nn_get(words, VIV_NN_KERNELS_PER_CORE)};
    bool column = viv_nn_get(words, VIV_NN_LAYER_TYPE) != 0;
    s.kernel_w = column ? 1 : viv_nn_get(words, VIV_NN_KERNEL_X_SIZE);
    s.kernel_h = viv_nn_get(words, VIV_NN_KERNEL_Y_SIZE);
    s.channels = viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE);
    s.depthwise = viv_nn_get(words, VIV_NN_DEPTHWISE) != 0;
    s.zero_point = (uint8_t)viv_nn_get(words, VIV_NN_COEF_ZERO_POINT);
    s.kernels = viv_nn_get(words, VIV_NN_OUT_IMAGE_Z_SIZE);
    s.plane = viv_nn_get(words, VIV_NN_OUT_IMAGE_X_STRIDE) * viv_nn_get(words, VIV_NN_OUT_IMAGE_Y_STRIDE);
    return s;
}

static void decode(struct comparison *c, const uint32_t *words, const uint8_t *data, size_t size,
                   struct viv_coefs *coefs)
{
    struct viv_huffman_shape s = shape_of(c, words);
    struct mica_log log = {0};
    uint64_t needed;
    if (viv_coef_huffman_size(data, &s, 0, &log, &needed) || needed > size ||
        viv_coef_huffman_decode(data, needed, &s, 0, NULL, &log, coefs))
        fail_msg("%s: %s", c->name, log.last_error);
}

static uint32_t kernel_at(const struct viv_coefs *coefs, uint32_t offset)
{
    for (uint32_t k = 0; k < coefs->kernels; k++)
        if (coefs->offset[k] == offset)
            return k;
    fail_msg("no kernel writes at %u", offset);
    return 0;
}

static void compare_kernels(struct comparison *c, const struct viv_coefs *ours, const struct viv_coefs *theirs)
{
    assert_int_equal(ours->kernels, theirs->kernels);
    for (uint32_t k = 0; k < theirs->kernels; k++) {
        uint32_t mine = kernel_at(ours, theirs->offset[k]);
        if (ours->bias[mine] != theirs->bias[k])
            fail_msg("%s: bias %u instead of %u", c->name, ours->bias[mine], theirs->bias[k]);
        if (ours->taps == theirs->taps &&
            memcmp(ours->weights + (size_t)mine * ours->taps, theirs->weights + (size_t)k * ours->taps, ours->taps))
            fail_msg("%s: weights of the kernel at %u", c->name, theirs->offset[k]);
    }
}

static void compare_streams(const json_t *vector)
{
    struct comparison c;
    struct viv_coefs ours, theirs;
    comparison_open(&c, vector);
    const struct mica_program_buffer *buffer = &c.program->buffers[0];
    if (buffer->data_size > c.recorded_size)
        fail_msg("%s: %zu bytes are more than the recorded %zu", c.name, (size_t)buffer->data_size, c.recorded_size);
    if (!strstr(c.name, "-add-")) {
        decode(&c, c.ours, buffer->data, buffer->data_size, &ours);
        decode(&c, c.theirs, c.recorded, c.recorded_size, &theirs);
        compare_kernels(&c, &ours, &theirs);
        viv_coefs_release(&ours);
        viv_coefs_release(&theirs);
    }
    comparison_close(&c);
}

static void streams_decode_to_the_vectors_kernels_and_are_not_larger(void **state)
{
    (void)state;
    assert_true(vectors_each("imx8mp-", compare_streams));
    assert_true(vectors_each("s905d3-", compare_streams));
}

int main(void)
{
    if (!vectors_exist())
        return SKIP;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(descriptors_are_the_vectors),
        cmocka_unit_test(streams_decode_to_the_vectors_kernels_and_are_not_larger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
