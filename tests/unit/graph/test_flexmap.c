/* SPDX-License-Identifier: MIT */
/* Options of custom operations. */
#include "frontend/tflite/flexmap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* {"big": 300, "f": 0.5, "ii": 70000 (stored apart), "neg": -5, "s": "text", "yes": true}, by the official library. */
static const uint8_t sample[] = {
    0x6e, 0x65, 0x67, 0x00, 0x62, 0x69, 0x67, 0x00, 0x66, 0x00, 0x79, 0x65, 0x73, 0x00, 0x73, 0x00, 0x04,
    0x74, 0x65, 0x78, 0x74, 0x00, 0x69, 0x69, 0x00, 0x00, 0x00, 0x00, 0x70, 0x11, 0x01, 0x00, 0x06, 0x1d,
    0x1a, 0x0d, 0x24, 0x17, 0x1c, 0x00, 0x07, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x06, 0x00, 0x00,
    0x00, 0x2c, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x3f, 0x20, 0x00, 0x00, 0x00, 0xfb, 0xff, 0xff, 0xff,
    0x33, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x0a, 0x0e, 0x1a, 0x06, 0x14, 0x6a, 0x1e, 0x26, 0x01,
};

static void numbers_are_found(void **state)
{
    struct mica_flexmap map;
    int32_t integer = 0;
    float real = 0;
    bool flag = false;
    assert_true(mica_flexmap_open(&map, sample, sizeof sample));
    assert_true(mica_flexmap_int(&map, "big", &integer) && integer == 300);
    assert_true(mica_flexmap_int(&map, "neg", &integer) && integer == -5);
    assert_true(mica_flexmap_int(&map, "ii", &integer) && integer == 70000);
    assert_true(mica_flexmap_float(&map, "f", &real) && real == 0.5f);
    assert_true(mica_flexmap_float(&map, "neg", &real) && real == -5.0f);
    assert_true(mica_flexmap_bool(&map, "yes", &flag) && flag);
}

static void other_kinds_and_names_are_not(void **state)
{
    struct mica_flexmap map;
    int32_t integer = 42;
    float real = 42;
    bool flag = true;
    assert_true(mica_flexmap_open(&map, sample, sizeof sample));
    assert_false(mica_flexmap_int(&map, "absent", &integer));
    assert_false(mica_flexmap_int(&map, "", &integer));
    assert_false(mica_flexmap_int(&map, "bi", &integer));
    assert_false(mica_flexmap_int(&map, "f", &integer));
    assert_false(mica_flexmap_int(&map, "s", &integer));
    assert_false(mica_flexmap_float(&map, "yes", &real));
    assert_false(mica_flexmap_bool(&map, "f", &flag));
    assert_true(integer == 42 && real == 42 && flag);
}

static void look_up_everything(const uint8_t *data, size_t size)
{
    static const char *const keys[] = {"big", "f", "ii", "neg", "s", "yes", "absent"};
    struct mica_flexmap map;
    if (!mica_flexmap_open(&map, data, size))
        return;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        int32_t integer;
        float real;
        bool flag;
        mica_flexmap_int(&map, keys[i], &integer);
        mica_flexmap_float(&map, keys[i], &real);
        mica_flexmap_bool(&map, keys[i], &flag);
    }
}

/* Every value of every byte, and every length, in memory that ends where the data end. */
static void damage_does_no_harm(void **state)
{
    uint8_t *copy = malloc(sizeof sample);
    assert_non_null(copy);
    memcpy(copy, sample, sizeof sample);
    for (size_t i = 0; i < sizeof sample; i++) {
        for (int value = 0; value < 256; value++) {
            copy[i] = (uint8_t)value;
            look_up_everything(copy, sizeof sample);
        }
        copy[i] = sample[i];
    }
    free(copy);
    for (size_t size = 0; size < sizeof sample; size++) {
        uint8_t *part = malloc(size ? size : 1);
        assert_non_null(part);
        memcpy(part, sample + sizeof sample - size, size); /* the root is at the end */
        look_up_everything(part, size);
        free(part);
    }
    look_up_everything(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_found),
        cmocka_unit_test(other_kinds_and_names_are_not),
        cmocka_unit_test(damage_does_no_harm),
    };
    return cmocka_run_group_tests_name("flexmap", tests, NULL, NULL);
}
