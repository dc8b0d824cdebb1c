/* SPDX-License-Identifier: MIT */
/*
 * On-chip and imported memory of the simulated winsys. Behind it stands a
 * device of the test's own whose stream is a list of copies (from, to, bytes).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime/instance.h"
#include "winsys/winsys.h"

#define PAGE MICA_DEVICE_PAGE
#define SRAM UINT64_C(0xc0000000)
#define OTHER_SRAM UINT64_C(0x400000)
#define SRAM_SIZE (UINT64_C(16) * PAGE)

static int sim_create(const struct mica_chip *chip, struct mica_device_memory *memory, struct mica_threads *threads,
                      struct mica_log *log, void **sim)
{
    *sim = memory;
    return 0;
}

static void sim_destroy(void *sim)
{
}

static int sim_run(void *sim, const uint32_t *stream, size_t words, struct mica_job_report *reports, size_t capacity,
                   size_t *count)
{
    uint64_t fault;
    *count = 0;
    for (size_t i = 0; i + 3 <= words; i += 3) {
        const void *from = mica_device_at(sim, stream[i], stream[i + 2], MICA_ACCESS_READ, &fault);
        void *to = mica_device_at(sim, stream[i + 1], stream[i + 2], MICA_ACCESS_WRITE, &fault);
        if (!from || !to)
            return -EFAULT;
        memmove(to, from, stream[i + 2]);
    }
    return 0;
}

static const struct mica_npu_family family = {
    .name = "copies", .sim_create = sim_create, .sim_destroy = sim_destroy, .sim_run = sim_run};
static const struct mica_on_chip windows[MICA_ON_CHIP_WINDOWS] = {{SRAM, SRAM_SIZE}, {OTHER_SRAM, SRAM_SIZE}};
static const struct mica_chip chip = {
    .name = "copychip", .driver = "etnaviv", .clock_mhz = 1, .family = &family, .on_chip = windows};

struct fixture {
    struct mica_log log;
    struct mica_winsys *winsys;
    struct mica_bo *a, *b; /* a page each */
};

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    assert_int_equal(mica_winsys_sim_create(&chip, NULL, &f->log, &f->winsys), 0);
    assert_int_equal(f->winsys->bo_create(f->winsys, PAGE, &f->a), 0);
    assert_int_equal(f->winsys->bo_create(f->winsys, PAGE, &f->b), 0);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    f->winsys->bo_destroy(f->winsys, f->a);
    f->winsys->bo_destroy(f->winsys, f->b);
    f->winsys->destroy(f->winsys);
    free(f);
    return 0;
}

/* Copies `size` bytes from one buffer to the other; the result of the job. */
static int copy(struct fixture *f, struct mica_bo *from, struct mica_bo *to, uint32_t size)
{
    const uint32_t stream[] = {(uint32_t)from->address, (uint32_t)to->address, size};
    const struct mica_bo_use uses[] = {{from, MICA_ACCESS_READ}, {to, MICA_ACCESS_WRITE}};
    uint64_t fence;
    assert_int_equal(f->winsys->submit(f->winsys,
                                       &(struct mica_submit){.stream = stream, .words = 3, .bos = uses, .bo_count = 2},
                                       &fence),
                     0);
    return f->winsys->wait(f->winsys, fence, INT64_MAX);
}

static void only_the_windows_are_on_chip(void **state)
{
    struct fixture *f = *state;
    struct mica_bo *bo = NULL;
    static const struct {
        uint64_t address, size;
    } bad[] = {{SRAM - PAGE, PAGE},
               {SRAM - PAGE, 2 * PAGE},
               {SRAM, SRAM_SIZE + 1},
               {SRAM + SRAM_SIZE, 1},
               {SRAM + 64, PAGE},
               {SRAM, 0},
               {0, PAGE},
               {SRAM, UINT64_MAX},
               {UINT64_MAX - PAGE + 1, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(f->winsys->bo_create_on_chip(f->winsys, bad[i].address, bad[i].size, &bo), -EINVAL);
        assert_non_null(strstr(f->log.last_error, "copychip has no"));
    }
    assert_int_equal(f->winsys->bo_create_on_chip(f->winsys, SRAM, SRAM_SIZE, &bo), 0);
    assert_int_equal(bo->address, SRAM);
    assert_int_equal(bo->size, SRAM_SIZE);
    assert_null(bo->map);
    f->winsys->bo_destroy(f->winsys, bo);
}

static void buffers_keep_away_from_the_windows(void **state)
{
    struct fixture *f = *state;
    struct mica_bo *bos[64];
    unsigned count = 0;
    for (uint64_t size = UINT64_C(1) << 30; size >= UINT64_C(1) << 22; size /= 2) {
        while (count < 64 && !f->winsys->bo_create(f->winsys, size, &bos[count])) {
            for (unsigned i = 0; i < MICA_ON_CHIP_WINDOWS; i++)
                assert_true(bos[count]->address >= windows[i].address + windows[i].size ||
                            bos[count]->address + size <= windows[i].address);
            count++;
        }
    }
    assert_true(count > 5); /* so that the space around the windows was full */
    while (count)
        f->winsys->bo_destroy(f->winsys, bos[--count]);
}

static void on_chip_memory_lasts_until_others_use_it(void **state)
{
    struct fixture *f = *state;
    struct mica_bo *mine, *theirs, *apart;
    uint8_t expected[100];
    assert_int_equal(f->winsys->bo_create_on_chip(f->winsys, SRAM, 2 * PAGE, &mine), 0);
    assert_int_equal(f->winsys->bo_create_on_chip(f->winsys, SRAM + PAGE, 2 * PAGE, &theirs), 0);
    assert_int_equal(f->winsys->bo_create_on_chip(f->winsys, SRAM + 3 * PAGE, PAGE, &apart), 0);
    memset(f->a->map, 7, 100);
    assert_int_equal(copy(f, f->a, mine, 100), 0);
    assert_int_equal(copy(f, f->a, apart, 100), 0);
    assert_int_equal(copy(f, mine, f->b, 100), 0);
    assert_memory_equal(f->b->map, f->a->map, 100);
    assert_int_equal(copy(f, f->a, theirs, 100), 0);
    assert_int_equal(copy(f, mine, f->b, 100), 0);
    memset(expected, 0xa5, sizeof expected);
    assert_memory_equal(f->b->map, expected, 100);
    assert_int_equal(copy(f, apart, f->b, 100), 0);
    assert_memory_equal(f->b->map, f->a->map, 100);
    f->winsys->bo_destroy(f->winsys, mine);
    f->winsys->bo_destroy(f->winsys, theirs);
    f->winsys->bo_destroy(f->winsys, apart);
}

static void on_chip_memory_that_is_not_named_faults(void **state)
{
    struct fixture *f = *state;
    struct mica_bo *bo;
    assert_int_equal(f->winsys->bo_create_on_chip(f->winsys, SRAM, PAGE, &bo), 0);
    struct mica_bo elsewhere = *f->b;
    const uint32_t stream[] = {(uint32_t)f->a->address, (uint32_t)SRAM, 4};
    const struct mica_bo_use use = {f->a, MICA_ACCESS_READ};
    uint64_t fence;
    const struct mica_submit submit = {.stream = stream, .words = 3, .bos = &use, .bo_count = 1};
    assert_int_equal(f->winsys->submit(f->winsys, &submit, &fence), 0);
    assert_int_equal(f->winsys->wait(f->winsys, fence, INT64_MAX), -EFAULT);
    /* One of another device in the list: nothing stays open for the next. */
    const struct mica_bo_use bad[] = {{bo, MICA_ACCESS_WRITE}, {&elsewhere, MICA_ACCESS_READ}};
    const struct mica_submit wrong = {.stream = stream, .words = 3, .bos = bad, .bo_count = 2};
    assert_int_equal(f->winsys->submit(f->winsys, &wrong, &fence), -EINVAL);
    assert_int_equal(f->winsys->submit(f->winsys, &submit, &fence), 0);
    assert_int_equal(f->winsys->wait(f->winsys, fence, INT64_MAX), -EFAULT);
    f->winsys->bo_destroy(f->winsys, bo);
}

/* ---- imports ------------------------------------------------------------ */

static int make_memfd(off_t size, int seals)
{
    int fd = memfd_create("test", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, size), 0);
    if (seals)
        assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

static void imported_memory_is_used_in_place(void **state)
{
    struct fixture *f = *state;
    struct mica_bo *bo, *again;
    int fd = make_memfd(PAGE + 100, F_SEAL_SHRINK);
    uint8_t *mine = mmap(NULL, PAGE + 100, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(mine != MAP_FAILED);
    assert_int_equal(f->winsys->bo_import(f->winsys, fd, &bo), 0);
    assert_int_equal(f->winsys->bo_import(f->winsys, fd, &again), 0);
    close(fd);
    assert_int_equal(bo->size, 2 * PAGE);
    assert_int_equal(bo->address % PAGE, 0);
    memset(mine, 3, 50);
    assert_int_equal(copy(f, bo, f->a, 50), 0);
    assert_memory_equal(f->a->map, mine, 50);
    memset(f->b->map, 9, 60);
    assert_int_equal(copy(f, f->b, bo, 60), 0);
    assert_memory_equal(mine, f->b->map, 60);
    assert_memory_equal(again->map, f->b->map, 60);
    f->winsys->bo_destroy(f->winsys, bo);
    assert_int_equal(copy(f, again, f->a, 60), 0);
    f->winsys->bo_destroy(f->winsys, again);
    assert_int_equal(mine[59], 9);
    munmap(mine, PAGE + 100);
}

static void memory_that_may_vanish_is_refused(void **state)
{
    struct fixture *f = *state;
    struct mica_bo *bo = NULL;
    char path[] = "/tmp/mica-import-XXXXXX";
    int file = mkstemp(path), null = open("/dev/null", O_RDWR);
    unlink(path);
    assert_int_equal(ftruncate(file, PAGE), 0);
    const int fds[] = {make_memfd(PAGE, 0), make_memfd(PAGE, F_SEAL_GROW), file, null};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(f->winsys->bo_import(f->winsys, fds[i], &bo), -EINVAL);
        assert_non_null(strstr(f->log.last_error, "F_SEAL_SHRINK"));
        close(fds[i]);
    }
    int empty = make_memfd(0, F_SEAL_SHRINK), fixed = make_memfd(PAGE, F_SEAL_SHRINK | F_SEAL_WRITE);
    assert_int_equal(f->winsys->bo_import(f->winsys, empty, &bo), -EINVAL);
    assert_non_null(strstr(f->log.last_error, "0 bytes"));
    assert_int_equal(f->winsys->bo_import(f->winsys, fixed, &bo), -EPERM);
    assert_non_null(strstr(f->log.last_error, "for writing"));
    close(empty);
    close(fixed);
    assert_int_equal(f->winsys->bo_import(f->winsys, empty, &bo), -EBADF);
    assert_null(bo);
}

/* ---- programs ----------------------------------------------------------- */

/* One submission: input -> on chip -> output. */
struct fixture_program {
    uint32_t stream[6];
    struct mica_program_buffer buffers[3];
    struct mica_program_reloc relocs[4];
    struct mica_program_io input, output;
    struct mica_program_submit submit;
    struct mica_program program;
};

static void make_program(struct fixture_program *p)
{
    const unsigned both = MICA_ACCESS_READ | MICA_ACCESS_WRITE;
    *p = (struct fixture_program){
        .stream = {0, 0, 8, 0, 0, 8},
        .buffers = {{8, NULL, 0, MICA_ACCESS_READ, 0},
                    {8, NULL, 0, both, SRAM + PAGE},
                    {8, NULL, 0, MICA_ACCESS_WRITE, 0}},
        .relocs = {{true, 0, 0, 0, 0, 0}, {true, 0, 4, 1, 0, 0}, {true, 0, 12, 1, 0, 0}, {true, 0, 16, 2, 0, 0}},
        .input = {0, 0, 0, 8, false},
        .output = {1, 2, 0, 8, false},
    };
    p->submit = (struct mica_program_submit){p->stream, 6, 0, 0};
    p->program =
        (struct mica_program){3, 4, 1, 1, 0, 1, p->buffers, p->relocs, &p->input, &p->output, NULL, &p->submit};
}

static void programs_use_on_chip_memory_in_turn(void **state)
{
    struct fixture *f = *state;
    struct fixture_program p;
    struct mica_instance *instances[2];
    make_program(&p);
    for (int i = 0; i < 2; i++)
        assert_int_equal(mica_instance_create(f->winsys, &p.program, &f->log, &instances[i]), 0);
    for (uint8_t i = 0; i < 6; i++) {
        const uint8_t in[8] = {i, 1, 2, 3, 4, 5, 6, 7};
        uint8_t out[8] = {0};
        const void *inputs[] = {in};
        void *outputs[] = {out};
        assert_int_equal(mica_instance_invoke(instances[i % 2], inputs, outputs), 0);
        assert_memory_equal(in, out, 8);
    }
    mica_instance_destroy(instances[0]);
    mica_instance_destroy(instances[1]);
    f->winsys->bo_create_on_chip = NULL;
    assert_int_equal(mica_instance_create(f->winsys, &p.program, &f->log, &instances[0]), -ENOTSUP);
    assert_non_null(strstr(f->log.last_error, "compile without on-chip"));
}

static void bad_places_on_chip_are_refused(void **state)
{
    struct fixture *f = *state;
    struct fixture_program p;
    struct mica_instance *instance;
    uint8_t data[8] = {0};
    make_program(&p);
    assert_true(mica_program_valid(&p.program));
#define REFUSED(change)                                                                             \
    do {                                                                                            \
        make_program(&p);                                                                           \
        change;                                                                                     \
        assert_false(mica_program_valid(&p.program));                                               \
        assert_int_equal(mica_instance_create(f->winsys, &p.program, &f->log, &instance), -EINVAL); \
    } while (0)
    REFUSED(p.buffers[1].fixed_address += 64);
    REFUSED((p.buffers[1].data = data, p.buffers[1].data_size = 8));
    REFUSED(p.buffers[1].fixed_address = MICA_DEVICE_SPACE);
    REFUSED((p.buffers[1].fixed_address = MICA_DEVICE_SPACE - PAGE, p.buffers[1].size = PAGE + 1));
    REFUSED(p.buffers[1].size = UINT64_MAX);
    REFUSED(p.input.buffer = 1);
    REFUSED(p.output.buffer = 1);
    REFUSED((p.relocs[0].in_stream = false, p.relocs[0].where = 1));
    make_program(&p);
    p.output.size = 0; /* else the output's place is what is wrong */
    p.output.buffer = 0;
    p.buffers[2].fixed_address = SRAM;
    assert_true(mica_program_valid(&p.program));
    p.buffers[2].size = PAGE + 1;
    assert_false(mica_program_valid(&p.program));
    make_program(&p);
    p.buffers[1].fixed_address = SRAM + SRAM_SIZE; /* valid for some chip, not for this one */
    assert_true(mica_program_valid(&p.program));
    assert_int_equal(mica_instance_create(f->winsys, &p.program, &f->log, &instance), -EINVAL);
}

static void bound_memory_takes_part_and_can_be_given_back(void **state)
{
    struct fixture *f = *state;
    struct fixture_program p;
    struct mica_instance *instance;
    make_program(&p);
    assert_int_equal(mica_instance_create(f->winsys, &p.program, &f->log, &instance), 0);
    int fd = make_memfd(3 * PAGE, F_SEAL_SHRINK);
    uint8_t *mine = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(mine != MAP_FAILED);
    assert_null(mica_instance_why_not_in_place(instance, false, 0));
    assert_null(mica_instance_why_not_in_place(instance, true, 0));
    assert_int_equal(mica_instance_bind(instance, false, 0, fd, PAGE), 0);
    assert_int_equal(mica_instance_bind(instance, true, 0, fd, 2 * PAGE), 0);
    const void *inputs[] = {mica_instance_map(instance, false, 0)};
    void *outputs[] = {mica_instance_map(instance, true, 0)};
    for (uint8_t i = 1; i < 4; i++) {
        memset(mine + PAGE, i, 8);
        assert_int_equal(mica_instance_invoke(instance, inputs, outputs), 0);
        assert_memory_equal(mine + 2 * PAGE, mine + PAGE, 8);
        assert_int_equal(mine[2 * PAGE + 8], 0);
    }
    assert_int_equal(mica_instance_bind(instance, false, 0, fd, 0), 0);
    assert_int_equal(mica_instance_bind(instance, false, 0, fd, 1), -EINVAL);
    assert_int_equal(mica_instance_bind(instance, false, 0, fd, 3 * PAGE), -EINVAL);
    assert_non_null(strstr(f->log.last_error, "too small"));
    assert_int_equal(mica_instance_bind(instance, false, 0, fd, UINT64_MAX / PAGE * PAGE), -EINVAL);
    assert_int_equal(mica_instance_bind(instance, false, 0, -1, 0), 0);
    inputs[0] = mica_instance_map(instance, false, 0);
    assert_ptr_not_equal(inputs[0], mine);
    memset(mica_instance_map(instance, false, 0), 77, 8);
    assert_int_equal(mica_instance_invoke(instance, inputs, outputs), 0);
    assert_int_equal(mine[2 * PAGE], 77);
    close(fd);
    mica_instance_destroy(instance);
    munmap(mine, 3 * PAGE);
}

/* ---- other drivers ----------------------------------------------------- */

static void rocket_gives_the_lowest_addresses(void **state)
{
    static const struct mica_chip rocket = {.name = "copychip", .driver = "rocket", .clock_mhz = 1, .family = &family};
    struct mica_log log = {0};
    struct mica_winsys *winsys;
    struct mica_bo *bos[4];
    assert_int_equal(mica_winsys_sim_create(&rocket, NULL, &log, &winsys), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(winsys->bo_create(winsys, PAGE + 1, &bos[i]), 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(bos[i]->address, (uint64_t)i * 3 * PAGE); /* from 0, a page that faults between two */
    winsys->bo_destroy(winsys, bos[0]);
    winsys->bo_destroy(winsys, bos[2]);
    assert_int_equal(winsys->bo_create(winsys, 3 * PAGE, &bos[0]), 0); /* fits no hole */
    assert_int_equal(bos[0]->address, 12 * PAGE);
    assert_int_equal(winsys->bo_create(winsys, 1, &bos[2]), 0);
    assert_int_equal(bos[2]->address, 0);
    assert_int_equal(winsys->bo_create(winsys, MICA_DEVICE_SPACE - 12 * PAGE, &bos[2]), -ENOMEM);

    /* A stream is tasks of two words, as many as one likes. */
    uint64_t fence;
    uint32_t *stream = calloc(40000, sizeof *stream);
    struct mica_submit submit = {.stream = stream, .words = 3};
    assert_int_equal(winsys->submit(winsys, &submit, &fence), -EINVAL);
    assert_non_null(strstr(log.last_error, "no list of tasks"));
    submit.words = 40000;
    assert_int_equal(winsys->submit(winsys, &submit, &fence), 0);
    free(stream);
    winsys->destroy(winsys);
}

static void a_driver_that_nobody_knows_is_refused(void **state)
{
    static const struct mica_chip other = {.name = "copychip", .driver = "none", .family = &family};
    struct mica_log log = {0};
    struct mica_winsys *winsys;
    assert_int_equal(mica_winsys_sim_create(&other, NULL, &log, &winsys), -ENOTSUP);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(only_the_windows_are_on_chip),
        TEST(buffers_keep_away_from_the_windows),
        TEST(on_chip_memory_lasts_until_others_use_it),
        TEST(on_chip_memory_that_is_not_named_faults),
        TEST(imported_memory_is_used_in_place),
        TEST(memory_that_may_vanish_is_refused),
        TEST(programs_use_on_chip_memory_in_turn),
        TEST(bad_places_on_chip_are_refused),
        TEST(bound_memory_takes_part_and_can_be_given_back),
        cmocka_unit_test(rocket_gives_the_lowest_addresses),
        cmocka_unit_test(a_driver_that_nobody_knows_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
