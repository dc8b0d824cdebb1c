/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "npu/vivante/hw/fields.h"
#include "npu/vivante/hw/states.h"

static void claim_every_bit(const struct viv_field *fields, size_t count, uint32_t *claimed)
{
    for (size_t i = 0; i < count; i++) {
        for (size_t p = 0; p < 4 && fields[i].parts[p].width; p++) {
            const struct viv_field_part *part = &fields[i].parts[p];
            uint32_t bits = (uint32_t)((UINT64_C(1) << part->width) - 1) << part->shift;
            assert_int_equal(claimed[part->word] & bits, 0);
            claimed[part->word] |= bits;
        }
    }
}

static void nn_fields_cover_every_bit_once(void **state)
{
    uint32_t claimed[VIV_NN_WORDS] = {0};
    claim_every_bit(viv_nn_fields, VIV_NN_FIELD_COUNT, claimed);
    for (int i = 0; i < VIV_NN_WORDS; i++)
        assert_int_equal(claimed[i], UINT32_MAX);
}

static void tp_fields_cover_every_bit_once(void **state)
{
    uint32_t claimed[VIV_TP_WORDS] = {0};
    claim_every_bit(viv_tp_fields, VIV_TP_FIELD_COUNT, claimed);
    for (int i = 0; i < VIV_TP_WORDS; i++)
        assert_int_equal(claimed[i], UINT32_MAX);
}

static void values_come_back_and_what_does_not_fit_is_refused(void **state)
{
    for (int i = 0; i < VIV_NN_FIELD_COUNT; i++) {
        const struct viv_field *field = &viv_nn_fields[i];
        uint32_t words[VIV_NN_WORDS] = {0}, none[VIV_NN_WORDS] = {0};
        unsigned width = viv_field_width(field);
        uint32_t top = (uint32_t)((UINT64_C(1) << width) - 1);
        uint32_t value = field->is_signed ? (uint32_t)-1 : top;
        assert_true(viv_field_set(words, field, value));
        assert_int_equal(viv_field_get(words, field), top);
        if (field->is_signed)
            assert_int_equal(viv_field_get_signed(words, field, width), -1);
        assert_true(viv_field_set(words, field, 0));
        assert_memory_equal(words, none, sizeof words);
        if (width < 32) {
            assert_false(viv_field_set(words, field, top + 1));
            assert_memory_equal(words, none, sizeof words);
        }
    }
}

/* The worked example of the specification, section 10.1. */
static void a_known_descriptor_reads_as_documented(void **state)
{
    const uint32_t words[VIV_NN_WORDS] = {
        0xa010004c, 0x00200100, 0xc4000000, 0x00100080, 0x04084001, 0x00010100, 0x00402000, 0x00403000, 0x00023000,
        0,          0,          0x800,      0xa00,      0,          0x800,      0x1f4,      0x00040004, 0xfd000002,
        0,          0x03ffffff, 0,          0x03ffffff, 0x7700,     0,          0,          0,          0,
        0,          0x03ffffff, 0x7f800000, 0xff800000, 0,          0,          0};
    assert_int_equal(viv_nn_get(words, VIV_NN_KERNEL_X_SIZE), 3);
    assert_int_equal(viv_nn_get(words, VIV_NN_KERNEL_Y_SIZE), 3);
    assert_int_equal(viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE), 1);
    assert_int_equal(viv_nn_get(words, VIV_NN_POST_SHIFT), 24);
    assert_int_equal(viv_nn_get(words, VIV_NN_POST_MULTIPLIER), 0x7e81);
    assert_int_equal(viv_nn_get(words, VIV_NN_KERNEL_ADDRESS), 0x404000 >> 6);
    assert_int_equal(viv_nn_get(words, VIV_NN_IN_IMAGE_BORDER_CONST), 125);
    assert_int_equal(viv_nn_get(words, VIV_NN_OUT_ZERO_POINT), 119);
    assert_int_equal(viv_nn_get(words, VIV_NN_OUT_IMAGE_TILE_X_SIZE), 2);
    assert_int_equal(viv_nn_get(words, VIV_NN_ROUNDING_MODE), 1);
}

static void states_are_found_by_address(void **state)
{
    assert_string_equal(viv_state_find(VIV_PS_NN_INST_ADDR)->name, "PS.NN_INST_ADDR");
    assert_null(viv_state_find(0x1234));
    assert_int_equal(VIV_LOAD_STATE(VIV_GL_NN_CONFIG), 0x08010e4c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nn_fields_cover_every_bit_once),
        cmocka_unit_test(tp_fields_cover_every_bit_once),
        cmocka_unit_test(values_come_back_and_what_does_not_fit_is_refused),
        cmocka_unit_test(a_known_descriptor_reads_as_documented),
        cmocka_unit_test(states_are_found_by_address),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
