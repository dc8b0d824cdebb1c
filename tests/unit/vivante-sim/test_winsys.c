/* SPDX-License-Identifier: MIT */
/* The simulated winsys and the device memory under it. */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "npu/vivante/hw/states.h"
#include "winsys/winsys.h"

#define PAGE MICA_DEVICE_PAGE

/* ---- device memory ---------------------------------------------------- */

static void pages_open_and_close(void **state)
{
    struct mica_device_memory memory;
    uint64_t fault = 0;
    assert_int_equal(mica_device_memory_create(&memory), 0);
    assert_int_equal(mica_device_memory_map(&memory, 0x400000, 2 * PAGE), 0);
    assert_null(mica_device_at(&memory, 0x400000, 1, MICA_ACCESS_READ, &fault));
    assert_int_equal(fault, 0x400000);
    mica_device_memory_protect(&memory, 0x400000, 2 * PAGE, MICA_ACCESS_READ);
    assert_ptr_equal(mica_device_at(&memory, 0x400010, 2 * PAGE - 16, MICA_ACCESS_READ, &fault),
                     memory.base + 0x400010);
    assert_null(mica_device_at(&memory, 0x400010, 2 * PAGE - 15, MICA_ACCESS_READ, &fault));
    assert_int_equal(fault, 0x400000 + 2 * PAGE);
    assert_null(mica_device_at(&memory, 0x400010, 1, MICA_ACCESS_WRITE, &fault));
    assert_int_equal(fault, 0x400010);
    assert_non_null(mica_device_at(&memory, UINT64_MAX, 0, MICA_ACCESS_WRITE, &fault));
    assert_null(mica_device_at(&memory, UINT64_MAX, 2, MICA_ACCESS_READ, &fault));
    assert_null(mica_device_at(&memory, 0x400000, UINT64_MAX, MICA_ACCESS_READ, &fault));
    assert_int_equal(mica_device_memory_map(&memory, 0x400010, PAGE), -EINVAL);
    assert_int_equal(mica_device_memory_map(&memory, MICA_DEVICE_SPACE - PAGE, 2 * PAGE), -EINVAL);
    mica_device_memory_destroy(&memory);
}

static void remapped_memory_is_zero(void **state)
{
    struct mica_device_memory memory;
    uint64_t fault;
    assert_int_equal(mica_device_memory_create(&memory), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(mica_device_memory_map(&memory, PAGE, PAGE), 0);
        mica_device_memory_protect(&memory, PAGE, PAGE, MICA_ACCESS_WRITE);
        assert_int_equal(memory.base[PAGE + 5], 0);
        memory.base[PAGE + 5] = 1;
        mica_device_memory_unmap(&memory, PAGE, PAGE);
        assert_null(mica_device_at(&memory, PAGE, 1, MICA_ACCESS_WRITE, &fault));
    }
    mica_device_memory_destroy(&memory);
}

/* ---- buffers ---------------------------------------------------------- */

struct device {
    struct mica_log log;
    struct mica_winsys *winsys;
};

static void open_device(struct device *device)
{
    *device = (struct device){0};
    assert_int_equal(mica_winsys_sim_create(&bench_chip, NULL, &device->log, &device->winsys), 0);
    assert_true(device->winsys->simulated);
}

static void close_device(struct device *device)
{
    device->winsys->destroy(device->winsys);
}

static struct mica_bo *new_bo(struct device *device, uint64_t size)
{
    struct mica_bo *bo;
    assert_int_equal(device->winsys->bo_create(device->winsys, size, &bo), 0);
    return bo;
}

/*
 * A file of huge pages that the system does not have is refused by its own driver, late. The range must stay reserved:
 * what the host maps meanwhile may not lie where device memory will be. On a system with huge pages it is mapped.
 */
static void a_file_that_cannot_be_mapped_leaves_no_hole(void **state)
{
    enum { HUGE_PAGE = 2 << 20 };
    struct mica_device_memory memory;
    unsigned char resident;
    int fd = memfd_create("huge", MFD_HUGETLB);
    if (fd < 0 || ftruncate(fd, HUGE_PAGE))
        skip();
    assert_int_equal(mica_device_memory_create(&memory), 0);
    uint64_t address = HUGE_PAGE - (uintptr_t)memory.base % HUGE_PAGE;
    int result = mica_device_memory_map_file(&memory, address, HUGE_PAGE, fd);
    assert_true(result <= 0);
    for (uint64_t page = 0; page < HUGE_PAGE; page += MICA_DEVICE_PAGE)
        assert_int_equal(mincore(memory.base + address + page, MICA_DEVICE_PAGE, &resident), 0);
    mica_device_memory_destroy(&memory);
    close(fd);
}

static void buffers_are_aligned_apart_and_reused(void **state)
{
    struct device device;
    open_device(&device);
    struct mica_bo *a = new_bo(&device, 1), *b = new_bo(&device, 3 * PAGE), *c = new_bo(&device, PAGE);
    assert_int_equal(a->size, PAGE);
    assert_int_equal(a->address % PAGE, 0);
    assert_true(a->address + a->size < MICA_DEVICE_SPACE);
    assert_true(b->address + b->size < a->address && c->address + c->size < b->address);
    memset(b->map, 1, b->size);
    uint64_t place = b->address;
    device.winsys->bo_destroy(device.winsys, b);
    b = new_bo(&device, 2 * PAGE);
    assert_true(b->address >= place && b->address + b->size <= place + 3 * PAGE);
    for (size_t i = 0; i < b->size; i++)
        assert_int_equal(b->map[i], 0);
    assert_int_equal(device.winsys->bo_begin_cpu(device.winsys, b, MICA_ACCESS_WRITE), 0);
    device.winsys->bo_end_cpu(device.winsys, b);
    device.winsys->bo_destroy(device.winsys, NULL);
    device.winsys->bo_destroy(device.winsys, a);
    close_device(&device); /* with two buffers left */
}

static void buffers_that_cannot_be_are_refused(void **state)
{
    struct device device;
    struct mica_bo *bo;
    open_device(&device);
    assert_int_equal(device.winsys->bo_create(device.winsys, 0, &bo), -EINVAL);
    assert_int_equal(device.winsys->bo_create(device.winsys, UINT64_MAX, &bo), -EINVAL);
    assert_int_equal(device.winsys->bo_create(device.winsys, MICA_DEVICE_SPACE, &bo), -ENOMEM);
    assert_true(device.log.last_error[0]);
    bo = new_bo(&device, 100);
    assert_true(bo->address >= 4u << 20);
    close_device(&device);
}

/* ---- submissions ------------------------------------------------------ */

/* A job that copies 16 bytes from one buffer to another, on the TP. */
struct copy {
    struct mica_bo *descriptor, *from, *to;
    uint32_t stream[2];
    struct mica_bo_use uses[3];
    struct mica_job_report report;
    size_t reports;
    struct mica_submit submit;
};

static void set(uint32_t *words, enum viv_tp_field field, uint64_t value)
{
    assert_true(viv_field_set(words, &viv_tp_fields[field], (uint32_t)value));
}

static void make_copy(struct device *device, struct copy *copy)
{
    copy->descriptor = new_bo(device, VIV_TP_SLOT);
    copy->from = new_bo(device, 16);
    copy->to = new_bo(device, 16);
    uint32_t words[VIV_TP_WORDS];
    viv_fields_idle(words, VIV_TP_WORDS, viv_tp_fields, VIV_TP_FIELD_COUNT);
    set(words, VIV_TP_IN_IMAGE_X_SIZE, 16);
    set(words, VIV_TP_IN_IMAGE_Y_SIZE, 1);
    set(words, VIV_TP_IN_IMAGE_Z_SIZE, 1);
    set(words, VIV_TP_IN_WINDOW_X_END, 15);
    set(words, VIV_TP_IN_TILE_X_SIZE, 16);
    set(words, VIV_TP_IN_TILE_Y_SIZE, 1);
    set(words, VIV_TP_IN_TILE_X_INC, 16);
    set(words, VIV_TP_IN_TILE_Y_INC, 1);
    set(words, VIV_TP_IN_IMAGE_BASE_ADDRESS, copy->from->address);
    set(words, VIV_TP_OUT_IMAGE_BASE_ADDRESS, copy->to->address);
    set(words, VIV_TP_OUT_LOOP_0_INC, 1);
    set(words, VIV_TP_OUT_LOOP_0_COUNT, 16);
    set(words, VIV_TP_OUT_LOOP_1_COUNT, 1);
    set(words, VIV_TP_OUT_LOOP_2_COUNT, 1);
    memcpy(copy->descriptor->map, words, sizeof words);
    memcpy(copy->from->map, "0123456789abcdef", 16);
    copy->stream[0] = VIV_LOAD_STATE(VIV_PS_TP_INST_ADDR);
    copy->stream[1] = (uint32_t)copy->descriptor->address;
    copy->uses[0] = (struct mica_bo_use){copy->descriptor, MICA_ACCESS_READ};
    copy->uses[1] = (struct mica_bo_use){copy->from, MICA_ACCESS_READ};
    copy->uses[2] = (struct mica_bo_use){copy->to, MICA_ACCESS_WRITE};
    copy->submit = (struct mica_submit){
        .stream = copy->stream,
        .words = 2,
        .bos = copy->uses,
        .bo_count = 3,
        .reports = &copy->report,
        .report_capacity = 1,
        .report_count = &copy->reports,
    };
}

static int submit_and_wait(struct device *device, const struct mica_submit *submit)
{
    uint64_t fence = 0;
    int result = device->winsys->submit(device->winsys, submit, &fence);
    return result ? result : device->winsys->wait(device->winsys, fence, -1);
}

static void a_submission_runs_and_reports(void **state)
{
    struct device device;
    struct copy copy;
    open_device(&device);
    make_copy(&device, &copy);
    assert_int_equal(submit_and_wait(&device, &copy.submit), 0);
    assert_memory_equal(copy.to->map, "0123456789abcdef", 16);
    assert_int_equal(copy.reports, 1);
    assert_int_equal(copy.report.cycles, 1512 + 16);
    assert_int_equal(copy.report.write_bytes, 16);
    copy.submit.reports = NULL;
    copy.submit.report_count = NULL;
    assert_int_equal(submit_and_wait(&device, &copy.submit), 0);
    close_device(&device);
}

static void only_listed_buffers_are_open(void **state)
{
    struct device device;
    struct copy copy;
    open_device(&device);
    make_copy(&device, &copy);
    for (uint32_t missing = 0; missing < 3; missing++) {
        struct mica_bo_use uses[3] = {copy.uses[0], copy.uses[1], copy.uses[2]};
        struct mica_submit submit = copy.submit;
        submit.bos = uses;
        uses[missing] = uses[(missing + 1) % 3];
        assert_int_equal(submit_and_wait(&device, &submit), -EFAULT);
        uses[missing] = (struct mica_bo_use){copy.uses[missing].bo, copy.uses[missing].access ^ 3};
        assert_int_equal(submit_and_wait(&device, &submit), -EFAULT);
        uses[missing] = copy.uses[missing];
        assert_int_equal(submit_and_wait(&device, &submit), 0);
    }
    close_device(&device);
}

static void bad_streams_leave_the_device_usable(void **state)
{
    struct device device;
    struct copy copy;
    open_device(&device);
    make_copy(&device, &copy);
    const uint32_t bad[][2] = {
        {0x10000000, 0}, {0x40000010, 0}, {0x38000000, 0}, {0x20000000, 0},
        {1, 0},          {0x08050000, 0}, {0x0c010000, 0}, {VIV_LOAD_STATE(VIV_PS_NN_INST_ADDR), 0}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct mica_submit submit = copy.submit;
        submit.stream = bad[i];
        int result = submit_and_wait(&device, &submit);
        assert_true(result == -EIO || result == -EFAULT);
        assert_true(device.log.last_error[0]);
        memset(copy.to->map, 0, 16);
        assert_int_equal(submit_and_wait(&device, &copy.submit), 0);
        assert_memory_equal(copy.to->map, copy.from->map, 16);
    }
    close_device(&device);
}

static void what_no_kernel_would_take_is_refused(void **state)
{
    struct device device;
    struct copy copy;
    struct mica_bo stranger = {0};
    uint64_t fence;
    open_device(&device);
    make_copy(&device, &copy);
    struct mica_submit submit = copy.submit;
    submit.words = 128 * 1024 / 4 + 1;
    assert_int_equal(device.winsys->submit(device.winsys, &submit, &fence), -EINVAL);
    submit = copy.submit;
    copy.uses[1].bo = &stranger;
    assert_int_equal(device.winsys->submit(device.winsys, &submit, &fence), -EINVAL);
    close_device(&device);
}

static void fences_remember_their_results(void **state)
{
    struct device device;
    struct copy copy;
    uint64_t good, bad;
    open_device(&device);
    make_copy(&device, &copy);
    assert_int_equal(device.winsys->submit(device.winsys, &copy.submit, &good), 0);
    copy.submit.bo_count = 2;
    assert_int_equal(device.winsys->submit(device.winsys, &copy.submit, &bad), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(device.winsys->wait(device.winsys, bad, 0), -EFAULT);
        assert_int_equal(device.winsys->wait(device.winsys, good, 0), 0);
    }
    assert_int_equal(device.winsys->wait(device.winsys, 0, 0), -EINVAL);
    assert_int_equal(device.winsys->wait(device.winsys, bad + 1, 0), -EINVAL);
    close_device(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_open_and_close),
        cmocka_unit_test(remapped_memory_is_zero),
        cmocka_unit_test(a_file_that_cannot_be_mapped_leaves_no_hole),
        cmocka_unit_test(buffers_are_aligned_apart_and_reused),
        cmocka_unit_test(buffers_that_cannot_be_are_refused),
        cmocka_unit_test(a_submission_runs_and_reports),
        cmocka_unit_test(only_listed_buffers_are_open),
        cmocka_unit_test(bad_streams_leave_the_device_usable),
        cmocka_unit_test(what_no_kernel_would_take_is_refused),
        cmocka_unit_test(fences_remember_their_results),
    };
    return cmocka_run_group_tests_name("simulated winsys", tests, NULL, NULL);
}
