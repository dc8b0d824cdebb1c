/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake.h"

/*
 * Two buffers and two submissions: the first copies the 4 input bytes at
 * offset 4 of buffer 0 to buffer 1, the second copies them from there to offset 8.
 */
struct fixture {
    uint32_t streams[2][3];
    uint8_t contents[4];
    struct mica_program_buffer buffers[2];
    struct mica_program_reloc relocs[5];
    struct mica_program_io input, output;
    struct mica_program_job jobs[2];
    struct mica_program_submit submits[2];
    struct mica_program program;
    struct mica_winsys *winsys;
    struct fake_winsys *fake;
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    const unsigned both = MICA_ACCESS_READ | MICA_ACCESS_WRITE;
    *f = (struct fixture){
        .streams = {{0, 0, 4}, {0, 0, 4}},
        .contents = {1, 2, 3, 4},
        .buffers = {{16, f->contents, 4, both}, {32, NULL, 0, both}},
        .relocs = {{true, 0, 0, 0, 0, 4}, {true, 0, 4, 1, 0, 0}, {true, 1, 0, 1, 0, 0}, {true, 1, 4, 1, 0, 8}},
        .input = {0, 0, 4, 4, true},
        .output = {1, 1, 8, 4, true},
        .jobs = {{"NN", 0, 1}, {"TP", 1, 2}},
        .submits = {{f->streams[0], 3, 0, 1}, {f->streams[1], 3, 1, 1}},
        .program = {2, 4, 1, 1, 2, 2, f->buffers, f->relocs, &f->input, &f->output, f->jobs, f->submits},
        .winsys = fake_winsys_create(),
    };
    f->fake = (struct fake_winsys *)f->winsys;
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    f->winsys->destroy(f->winsys);
    free(f);
    return 0;
}

static const uint8_t input[4] = {10, 20, 30, 255};
static const void *const inputs[] = {input};

static void submissions_run_in_order_and_report(void **state)
{
    struct fixture *f = *state;
    struct mica_instance *instance;
    uint8_t output[4] = {0};
    void *outputs[] = {output};
    size_t count;
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(mica_instance_invoke(instance, inputs, outputs), 0);
        assert_memory_equal(output, input, sizeof input); /* flipped on the way in and again on the way out */
    }
    const struct mica_job_report *reports = mica_instance_reports(instance, &count);
    assert_int_equal(count, 2);
    assert_int_equal(reports[1].cycles, 4);
    assert_int_equal(f->fake->submit_count, 4);
    mica_instance_destroy(instance);
}

/* The first two bytes come from behind the last two. */
static void outputs_in_pieces_are_put_together(void **state)
{
    struct fixture *f = *state;
    struct mica_program_io pieces[] = {{1, 1, 10, 2, true, .first = 0}, {1, 1, 8, 2, true, .first = 2}};
    struct mica_instance *instance;
    uint8_t output[4] = {0};
    void *outputs[] = {output, output};
    static const uint8_t expected[] = {30, 255, 10, 20};
    f->program.outputs = pieces;
    f->program.output_count = 2;
    assert_true(mica_program_valid(&f->program));
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), 0);
    assert_int_equal(mica_instance_invoke(instance, inputs, outputs), 0);
    assert_memory_equal(output, expected, sizeof expected);
    mica_instance_destroy(instance);
}

static int see_buffers(void *user, const struct mica_submit *submit)
{
    const uint8_t *first = submit->bos[0].bo->map, *second = submit->bos[1].bo->map;
    static const uint8_t expected[] = {1, 2, 3, 4, 10 ^ 0x80, 20 ^ 0x80, 30 ^ 0x80, 0x7f, 0, 0};
    int *seen = user;
    assert_int_equal(submit->bo_count, 2);
    assert_memory_equal(first, expected, sizeof expected);
    if (*seen == 1)
        assert_memory_equal(second, expected + 4, 4);
    return *seen == 7 ? -EIO : (++*seen, 0);
}

static void watching_shows_buffers_as_the_jobs_find_them(void **state)
{
    struct fixture *f = *state;
    struct mica_instance *instance;
    uint8_t output[4] = {0};
    void *outputs[] = {output};
    int seen = 0;
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), 0);
    assert_int_equal(mica_instance_invoke_watched(instance, inputs, outputs, see_buffers, &seen), 0);
    assert_int_equal(seen, 2);
    seen = 7;
    assert_int_equal(mica_instance_invoke_watched(instance, inputs, outputs, see_buffers, &seen), -EIO);
    mica_instance_destroy(instance);
}

static int count_submissions(void *user, const struct mica_submit *submit)
{
    assert_int_equal(submit->bos[0].bo->map[4], input[0] ^ 0x80);
    ++*(int *)user;
    return 0;
}

static void visiting_submits_nothing(void **state)
{
    struct fixture *f = *state;
    struct mica_instance *instance;
    int seen = 0;
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), 0);
    assert_int_equal(mica_instance_visit(instance, inputs, count_submissions, &seen), 0);
    assert_int_equal(seen, 2);
    assert_int_equal(f->fake->submit_count, 0);
    mica_instance_destroy(instance);
}

static int see_reloc(void *user, const struct mica_submit *submit)
{
    uint32_t word;
    memcpy(&word, submit->bos[1].bo->map + 5, 4);
    *(uint64_t *)user = submit->bos[0].bo->address;
    assert_int_equal(word, (submit->bos[0].bo->address + 8) >> 6);
    return 0;
}

static void relocations_reach_any_byte_of_a_buffer(void **state)
{
    struct fixture *f = *state;
    struct mica_instance *instance;
    uint64_t address = 0;
    f->relocs[4] = (struct mica_program_reloc){false, 1, 5, 0, 6, 8};
    f->program.reloc_count = 5;
    f->program.submit_count = f->program.job_count = 1;
    f->program.reloc_count = 2;
    f->relocs[1] = f->relocs[4];
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), 0);
    assert_int_equal(mica_instance_visit(instance, inputs, see_reloc, &address), 0);
    assert_int_equal(address, 0x10000);
    mica_instance_destroy(instance);
}

static void programs_out_of_bounds_are_refused(void **state)
{
    struct fixture *f = *state;
    const struct mica_program good = f->program;
    struct fixture copy = *f;
    struct mica_instance *instance;
#define REFUSED(change)                                                                           \
    do {                                                                                          \
        change;                                                                                   \
        assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), -EINVAL); \
        memcpy(f, &copy, offsetof(struct fixture, winsys));                                       \
        f->program = good;                                                                        \
    } while (0)
    REFUSED(f->relocs[0].offset = 9);
    REFUSED(f->relocs[0].offset = UINT32_MAX);
    REFUSED(f->relocs[0].where = 2);
    REFUSED(f->relocs[0].target = 2);
    REFUSED(f->relocs[0].shift = 32);
    REFUSED((f->relocs[0].in_stream = false, f->relocs[0].offset = 13));
    REFUSED(f->input.buffer = 2);
    REFUSED(f->input.offset = 13);
    REFUSED(f->input.size = UINT64_MAX);
    REFUSED(f->output.offset = UINT64_MAX);
    REFUSED(f->buffers[0].data_size = 17);
    REFUSED(f->buffers[0].size = 0);
    REFUSED(f->submits[1].first_job = 2);
    REFUSED(f->submits[1].job_count = 2);
    REFUSED(f->submits[1].first_job = 0); /* jobs of the submission before */
    REFUSED(f->submits[0].stage = 1);     /* stages fall */
    REFUSED(f->submits[1].core = 3);      /* the chip has three */
    REFUSED(f->submits[1].core = UINT32_MAX);
    /* A sound layout: two pixels of two channels in 16 bytes of the 32 of buffer 1. */
#define LAYOUT(...) (f->output.offset = 0, f->output.layout = (struct mica_program_layout){__VA_ARGS__})
    LAYOUT(8, 2, 2, 0, 16);
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), 0);
    mica_instance_destroy(instance);
    REFUSED(LAYOUT(0, 2, 2, 0, 16));
    REFUSED(LAYOUT(0, 0, 0, 1, 0));
    REFUSED(LAYOUT(4, 2, 2, 0, 16));
    REFUSED(LAYOUT(32, 2, 2, 0, 64));
    REFUSED(LAYOUT(UINT32_MAX, 2, 2, 0, UINT64_MAX));
    REFUSED(LAYOUT(8, 0, 2, 0, 16));
    REFUSED(LAYOUT(8, 2, 0, 0, 16));
    REFUSED(LAYOUT(8, 2, 3, 0, 24));
    REFUSED(LAYOUT(8, 1u << 31, 2, 0, 16)); /* 4 bytes only when it overflows */
    REFUSED(LAYOUT(8, 2, 2, 0, 15));
    REFUSED((LAYOUT(16, 2, 2, 0, 32), f->output.offset = 1));
    REFUSED((LAYOUT(8, 2, 2, 0, 16), f->output.offset = UINT64_MAX - 8));
    /* Two surfaces that are too far apart, by far. */
    f->buffers[1].size = 64;
    f->output.size = 9;
    copy = *f;
    LAYOUT(8, 9, 1, 0, 56);
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), 0);
    mica_instance_destroy(instance);
    REFUSED(LAYOUT(8, 9, 1, 0, 57));
    REFUSED(LAYOUT(8, 9, 1, 0, UINT64_MAX));
    REFUSED(LAYOUT(8, 9, 1, 0, UINT64_MAX - 7));
}

static void errors_of_the_winsys_come_through(void **state)
{
    struct fixture *f = *state;
    struct mica_instance *instance;
    uint8_t output[4] = {0};
    void *outputs[] = {output};
    size_t count;
    f->fake->begin_result = -EIO;
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), -EIO);
    f->fake->begin_result = 0;
    f->buffers[1].size = UINT64_C(1) << 40;
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), -ENOMEM);
    f->buffers[1].size = 32;
    assert_int_equal(mica_instance_create(f->winsys, &f->program, NULL, &instance), 0);
    f->fake->submit_result = -EFAULT;
    assert_int_equal(mica_instance_invoke(instance, inputs, outputs), -EFAULT);
    f->fake->submit_result = 0;
    f->fake->wait_result = -ETIMEDOUT;
    assert_int_equal(mica_instance_invoke(instance, inputs, outputs), -ETIMEDOUT);
    f->fake->wait_result = 0;
    f->fake->begin_result = -EINTR;
    assert_int_equal(mica_instance_invoke(instance, inputs, outputs), -EINTR);
    f->fake->begin_result = 0;
    assert_int_equal(mica_instance_invoke(instance, inputs, outputs), 0);
    assert_memory_equal(output, input, sizeof input);
    f->fake->no_reports = true;
    assert_int_equal(mica_instance_invoke(instance, inputs, outputs), 0);
    mica_instance_reports(instance, &count);
    assert_int_equal(count, 0);
    mica_instance_destroy(instance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(submissions_run_in_order_and_report, setup, teardown),
        cmocka_unit_test_setup_teardown(outputs_in_pieces_are_put_together, setup, teardown),
        cmocka_unit_test_setup_teardown(watching_shows_buffers_as_the_jobs_find_them, setup, teardown),
        cmocka_unit_test_setup_teardown(visiting_submits_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(relocations_reach_any_byte_of_a_buffer, setup, teardown),
        cmocka_unit_test_setup_teardown(programs_out_of_bounds_are_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_of_the_winsys_come_through, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
