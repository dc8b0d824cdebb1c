/* SPDX-License-Identifier: MIT */
/*
 * What the node answers to calls that are wrong, and to jobs that don't end well: as the kernel's drivers do
 * (specification of the kernel interfaces). Runs with the library preloaded; MICA_VNPU_CHIP says which driver.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <linux/sync_file.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uapi/etnaviv.h"
#include "uapi/rocket.h"

#define ETNAVIV_NODE "/dev/dri/renderD128"
#define ROCKET_NODE "/dev/accel/accel0"
#define BAD_POINTER 0x10 /* no process has memory there */
#define KILLED (-ECANCELED)

static int node;

static int call(unsigned long request, void *argument)
{
    return ioctl(node, request, argument) ? -errno : 0;
}

static int open_etnaviv(void **state)
{
    node = open(ETNAVIV_NODE, O_RDWR | O_CLOEXEC);
    return node < 0;
}

static int open_rocket(void **state)
{
    node = open(ROCKET_NODE, O_RDWR | O_CLOEXEC);
    return node < 0;
}

static int close_node(void **state)
{
    return close(node);
}

static int sync_status(int sync)
{
    struct sync_file_info info = {.num_fences = 0};
    struct pollfd poller = {sync, POLLIN, 0};
    assert_int_equal(poll(&poller, 1, 0), 1);
    assert_int_equal(ioctl(sync, SYNC_IOC_FILE_INFO, &info), 0);
    return info.status;
}

/* ---- both ------------------------------------------------------------------------------------ */

static void the_node_tells_its_driver(void **state)
{
    char name[16] = "";
    struct mica_drm_version version = {.name = (uintptr_t)name, .name_length = sizeof name};
    struct stat status;
    assert_int_equal(call(MICA_DRM_VERSION, &version), 0);
    assert_string_equal(name, *state);
    assert_int_equal(version.name_length, strlen(*state));
    assert_int_equal(fstat(node, &status), 0);
    assert_true(S_ISCHR(status.st_mode));
    char path[64];
    snprintf(path, sizeof path, "/sys/dev/char/%u:%u/device/drm", major(status.st_rdev), minor(status.st_rdev));
    assert_int_equal(stat(path, &status), 0); /* libdrm's way to ask whether that is a DRM device */
    assert_true(S_ISDIR(status.st_mode));
    version.name = BAD_POINTER;
    assert_int_equal(call(MICA_DRM_VERSION, &version), -EFAULT);
    assert_int_equal(call(MICA_DRM_VERSION, (void *)BAD_POINTER), -EFAULT);
    assert_int_equal(call(_IOW('d', 0x7f, uint32_t), &version), -ENOTTY);
}

/* ---- etnaviv ----------------------------------------------------------------------------------- */

static uint32_t etnaviv_buffer(uint64_t size)
{
    struct mica_etnaviv_gem_new make = {.size = size, .flags = MICA_ETNAVIV_BO_WRITE_COMBINED};
    assert_int_equal(call(MICA_ETNAVIV_GEM_NEW, &make), 0);
    return make.handle;
}

static void *etnaviv_map(uint32_t handle, size_t size)
{
    struct mica_etnaviv_gem_info info = {.handle = handle};
    assert_int_equal(call(MICA_ETNAVIV_GEM_INFO, &info), 0);
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, node, (off_t)info.offset);
}

static void parameters_are_those_of_the_chip(void **state)
{
    struct mica_etnaviv_param param = {.param = MICA_ETNAVIV_MODEL};
    assert_int_equal(call(MICA_ETNAVIV_GET_PARAM, &param), 0);
    assert_int_equal(param.value, 0x8000);
    param.param = MICA_ETNAVIV_SOFTPIN_START;
    assert_int_equal(call(MICA_ETNAVIV_GET_PARAM, &param), 0);
    assert_int_equal(param.value, 0x400000);
    param.param = 0x1f;
    assert_int_equal(call(MICA_ETNAVIV_GET_PARAM, &param), -EINVAL);
    param = (struct mica_etnaviv_param){.pipe = 1, .param = MICA_ETNAVIV_MODEL};
    assert_int_equal(call(MICA_ETNAVIV_GET_PARAM, &param), -ENXIO);
    param.pipe = 4;
    assert_int_equal(call(MICA_ETNAVIV_GET_PARAM, &param), -EINVAL);
}

static void buffers_are_checked(void **state)
{
    struct mica_etnaviv_gem_new make = {.size = 4096};
    assert_int_equal(call(MICA_ETNAVIV_GEM_NEW, &make), -EINVAL);
    make.flags = MICA_ETNAVIV_BO_CACHED | MICA_ETNAVIV_BO_UNCACHED;
    assert_int_equal(call(MICA_ETNAVIV_GEM_NEW, &make), -EINVAL);
    make.flags = MICA_ETNAVIV_BO_CACHED | 1;
    assert_int_equal(call(MICA_ETNAVIV_GEM_NEW, &make), -EINVAL);
    uint32_t handle = etnaviv_buffer(100), *map = etnaviv_map(handle, 4096);
    assert_ptr_not_equal(map, MAP_FAILED);
    assert_int_equal(map[1023], 0);
    munmap(map, 4096);
    assert_ptr_equal(mmap(NULL, 4096, PROT_READ, MAP_SHARED, node, 0), MAP_FAILED);
    assert_int_equal(errno, EINVAL);
    struct mica_etnaviv_cpu_prep prep = {.handle = handle, .op = 8};
    assert_int_equal(call(MICA_ETNAVIV_GEM_CPU_PREP, &prep), -EINVAL);
    prep = (struct mica_etnaviv_cpu_prep){.handle = 99, .op = MICA_ETNAVIV_PREP_READ};
    assert_int_equal(call(MICA_ETNAVIV_GEM_CPU_PREP, &prep), -ENOENT);
    struct mica_drm_gem_close close_it = {.handle = handle};
    assert_int_equal(call(MICA_DRM_GEM_CLOSE, &close_it), 0);
    assert_int_equal(call(MICA_DRM_GEM_CLOSE, &close_it), -EINVAL);
}

/* A stream of nothing but fillers, with one buffer. */
static struct mica_etnaviv_submit good_submit(struct mica_etnaviv_bo *bo, const uint32_t *stream)
{
    return (struct mica_etnaviv_submit){
        .nr_bos = 1,
        .stream_size = 16,
        .bos = (uintptr_t)bo,
        .stream = (uintptr_t)stream,
        .flags = MICA_ETNAVIV_SUBMIT_SOFTPIN | MICA_ETNAVIV_SUBMIT_FENCE_OUT,
    };
}

static int submit_closed(struct mica_etnaviv_submit submit)
{
    int result = call(MICA_ETNAVIV_GEM_SUBMIT, &submit);
    if (!result && submit.flags & MICA_ETNAVIV_SUBMIT_FENCE_OUT)
        close(submit.fence_fd);
    return result;
}

static void submissions_are_checked(void **state)
{
    static const uint32_t stream[131080 / 4];
    struct mica_etnaviv_bo bo = {MICA_ETNAVIV_USE_READ, etnaviv_buffer(4096), 0x400000};
    struct mica_etnaviv_submit good = good_submit(&bo, stream), bad;
#define REFUSED(code, change)                       \
    do {                                            \
        bad = good;                                 \
        change;                                     \
        assert_int_equal(submit_closed(bad), code); \
    } while (0)
    assert_int_equal(submit_closed(good), 0);
    REFUSED(0, bad.stream_size = 0);
    REFUSED(0, bad.stream_size = 131072);
    REFUSED(-EINVAL, bad.stream_size = 131076);
    REFUSED(-EINVAL, bad.stream_size = 6);
    REFUSED(-EINVAL, bad.pipe = 4);
    REFUSED(-ENXIO, bad.pipe = 1);
    REFUSED(-EINVAL, bad.exec_state = 3);
    REFUSED(-EINVAL, bad.flags |= 16);
    REFUSED(-EINVAL, bad.nr_bos = 131073);
    REFUSED(-EINVAL, bad.nr_relocs = 1);
    REFUSED(-EFAULT, bad.bos = BAD_POINTER);
    REFUSED(-EFAULT, bad.stream = BAD_POINTER);
    struct mica_etnaviv_bo twice[2] = {bo, bo};
    REFUSED(-EALREADY, (bad.bos = (uintptr_t)twice, bad.nr_bos = 2));
    struct mica_etnaviv_bo overlap[2] = {bo, {MICA_ETNAVIV_USE_READ, etnaviv_buffer(8192), 0x3ff000 + 0x1000}};
    REFUSED(-ENOSPC, (bad.bos = (uintptr_t)overlap, bad.nr_bos = 2));
    struct mica_etnaviv_bo unknown = {MICA_ETNAVIV_USE_READ, 12345, 0x400000};
    REFUSED(-EINVAL, bad.bos = (uintptr_t)&unknown);
    struct mica_etnaviv_bo low = {MICA_ETNAVIV_USE_READ, bo.handle, 0x3ff000};
    REFUSED(-EINVAL, bad.bos = (uintptr_t)&low);
    struct mica_etnaviv_bo askew = {MICA_ETNAVIV_USE_READ, bo.handle, 0x400800};
    REFUSED(-EINVAL, bad.bos = (uintptr_t)&askew);
    struct mica_etnaviv_bo flags = {4, bo.handle, 0x400000};
    REFUSED(-EINVAL, bad.bos = (uintptr_t)&flags);
    /* An address that an idle buffer has is given up by it. */
    struct mica_etnaviv_bo other = {MICA_ETNAVIV_USE_READ, etnaviv_buffer(4096), 0x400000};
    REFUSED(0, bad.bos = (uintptr_t)&other);
    assert_int_equal(submit_closed(good), 0);
#undef REFUSED
}

/* LOAD_STATE of PS.NN_INST_ADDR: starts the job whose descriptor is at an address where nothing is. */
static void jobs_that_fault_are_killed(void **state)
{
    const uint32_t stream[4] = {0x08010000 | 0x10a0 >> 2, 0x10000000};
    struct mica_etnaviv_bo bo = {MICA_ETNAVIV_USE_READ, etnaviv_buffer(4096), 0x400000};
    struct mica_etnaviv_submit submit = good_submit(&bo, stream);
    assert_int_equal(call(MICA_ETNAVIV_GEM_SUBMIT, &submit), 0);
    assert_int_equal(sync_status(submit.fence_fd), KILLED);
    close(submit.fence_fd);
    /* Nobody else tells, and the file works on. */
    struct mica_etnaviv_wait_fence wait = {.fence = submit.fence};
    assert_int_equal(call(MICA_ETNAVIV_WAIT_FENCE, &wait), 0);
    submit.stream_size = 0;
    assert_int_equal(call(MICA_ETNAVIV_GEM_SUBMIT, &submit), 0);
    assert_int_equal(sync_status(submit.fence_fd), 1);
    close(submit.fence_fd);
}

static void buffers_are_shared_by_export(void **state)
{
    uint32_t handle = etnaviv_buffer(4096), *map = etnaviv_map(handle, 4096);
    struct mica_drm_prime out = {.handle = handle, .flags = O_CLOEXEC};
    map[5] = 77;
    assert_int_equal(call(MICA_DRM_PRIME_HANDLE_TO_FD, &out), 0);
    struct mica_drm_prime back = {.fd = out.fd};
    assert_int_equal(call(MICA_DRM_PRIME_FD_TO_HANDLE, &back), 0);
    assert_int_equal(back.handle, handle);
    int first = node;
    assert_int_equal(open_etnaviv(NULL), 0); /* another client */
    assert_int_equal(call(MICA_DRM_PRIME_FD_TO_HANDLE, &back), 0);
    const uint32_t *shared = etnaviv_map(back.handle, 4096);
    assert_int_equal(shared[5], 77);
    struct mica_etnaviv_gem_info info = {.handle = 100};
    assert_int_equal(call(MICA_ETNAVIV_GEM_INFO, &info), -ENOENT); /* handles are each file's own */
    close(node);
    node = first;
    close(out.fd);
    assert_int_equal(map[5], 77);
    /* What came back is the same handle, and one: closing it ends it. */
    struct mica_drm_gem_close close_it = {.handle = handle};
    assert_int_equal(call(MICA_DRM_GEM_CLOSE, &close_it), 0);
    info.handle = handle;
    assert_int_equal(call(MICA_ETNAVIV_GEM_INFO, &info), -ENOENT);
}

/* An answer that can't be given leaves no descriptor behind. */
static void answers_nowhere_leak_nothing(void **state)
{
    struct mica_drm_prime *call_at = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *call_at = (struct mica_drm_prime){.handle = etnaviv_buffer(4096)};
    assert_int_equal(mprotect(call_at, 4096, PROT_READ), 0);
    int before = dup(0);
    close(before);
    for (int i = 0; i < 10; i++)
        assert_int_equal(call(MICA_DRM_PRIME_HANDLE_TO_FD, call_at), -EFAULT);
    int after = dup(0);
    close(after);
    assert_int_equal(before, after);
    munmap(call_at, 4096);
}

/* ---- rocket -------------------------------------------------------------------------------------- */

static struct mica_rocket_create_bo rocket_buffer(uint32_t size)
{
    struct mica_rocket_create_bo make = {.size = size};
    assert_int_equal(call(MICA_ROCKET_CREATE_BO, &make), 0);
    return make;
}

static void addresses_are_the_lowest_free_ones(void **state)
{
    struct mica_rocket_create_bo none = {.size = 0};
    assert_int_equal(call(MICA_ROCKET_CREATE_BO, &none), -ENOSPC);
    struct mica_rocket_create_bo a = rocket_buffer(5000), b = rocket_buffer(1), c;
    assert_int_equal(a.dma_address, 0);
    assert_int_equal(b.dma_address, 8192);
    struct mica_drm_gem_close close_it = {.handle = a.handle};
    assert_int_equal(call(MICA_DRM_GEM_CLOSE, &close_it), 0);
    c = rocket_buffer(4096);
    assert_int_equal(c.dma_address, 0);
    struct mica_drm_prime import = {.fd = 0};
    assert_int_equal(call(MICA_DRM_PRIME_FD_TO_HANDLE, &import), -EINVAL);
}

/* Outcome of the last job into a buffer, as a sync_file has it. */
static int rocket_outcome(uint32_t handle)
{
    struct mica_drm_prime out = {.handle = handle, .flags = O_CLOEXEC};
    struct dma_buf_export_sync_file sync = {.flags = DMA_BUF_SYNC_RW, .fd = -1};
    assert_int_equal(call(MICA_DRM_PRIME_HANDLE_TO_FD, &out), 0);
    assert_int_equal(ioctl(out.fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &sync), 0);
    close(out.fd);
    int status = sync_status(sync.fd);
    close(sync.fd);
    return status;
}

/* Every one of these returns 0: the kernel drops the result of a job, and the job does not run. */
static void wrong_jobs_are_dropped_in_silence(void **state)
{
    struct mica_rocket_create_bo in = rocket_buffer(4096), out = rocket_buffer(4096);
    struct mica_rocket_task task = {.regcmd = 0x40000000, .regcmd_count = 4}, empty = {0};
    const struct mica_rocket_job good = {(uintptr_t)&task, (uintptr_t)&in.handle, (uintptr_t)&out.handle, 1, 8, 1, 1};
    struct mica_rocket_job job = good;
    struct mica_rocket_submit submit = {(uintptr_t)&job, 1, sizeof job, 0};
    const uint32_t unknown = 999;
#define DROPPED(change)                                         \
    do {                                                        \
        job = good;                                             \
        change;                                                 \
        assert_int_equal(call(MICA_ROCKET_SUBMIT, &submit), 0); \
        assert_int_equal(rocket_outcome(out.handle), 1);        \
    } while (0)
    DROPPED(job.task_count = 0);
    DROPPED(job.task_struct_size = 4);
    DROPPED(job.tasks = BAD_POINTER);
    DROPPED(job.tasks = (uintptr_t)&empty);
    DROPPED(job.in_handles = (uintptr_t)&unknown);
    DROPPED(job.in_handles = (uintptr_t)&out.handle); /* read and written */
    DROPPED(job.out_handles = BAD_POINTER);
#undef DROPPED
    job = good;
    submit.reserved = 1;
    assert_int_equal(call(MICA_ROCKET_SUBMIT, &submit), -EINVAL);
    submit = (struct mica_rocket_submit){(uintptr_t)&job, 1, 39, 0};
    assert_int_equal(call(MICA_ROCKET_SUBMIT, &submit), -EINVAL);
    submit = (struct mica_rocket_submit){BAD_POINTER, 1, sizeof job, 0};
    assert_int_equal(call(MICA_ROCKET_SUBMIT, &submit), -EFAULT);
}

static void jobs_at_bad_addresses_are_killed(void **state)
{
    struct mica_rocket_create_bo out = rocket_buffer(4096);
    struct mica_rocket_task task = {.regcmd = 0x40000000, .regcmd_count = 4};
    struct mica_rocket_job job = {(uintptr_t)&task, 0, (uintptr_t)&out.handle, 1, 8, 0, 1};
    struct mica_rocket_submit submit = {(uintptr_t)&job, 1, sizeof job, 0};
    struct mica_rocket_prep_bo prep = {.handle = out.handle};
    assert_int_equal(call(MICA_ROCKET_SUBMIT, &submit), 0);
    assert_int_equal(rocket_outcome(out.handle), KILLED);
    assert_int_equal(call(MICA_ROCKET_PREP_BO, &prep), 0); /* it doesn't tell */
    prep.reserved = 1;
    assert_int_equal(call(MICA_ROCKET_PREP_BO, &prep), -EINVAL);
}

/* ---- descriptors ------------------------------------------------------------------------------------ */

static void copies_of_the_descriptor_are_the_file(void **state)
{
    struct mica_rocket_create_bo bo = rocket_buffer(4096);
    int copy = dup(node), original = node;
    close(node);
    node = copy;
    struct mica_rocket_prep_bo prep = {.handle = bo.handle};
    assert_int_equal(call(MICA_ROCKET_PREP_BO, &prep), 0);
    pid_t child = fork();
    if (child == 0)
        _exit(call(MICA_ROCKET_PREP_BO, &prep) ? 1 : 0);
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    /* A child in this process's memory closes descriptors of its own. */
    child = vfork();
    if (child == 0) {
        close(node);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(call(MICA_ROCKET_PREP_BO, &prep), 0);
    /* A number that was the node's and is another file's now. */
    int other = open("/dev/null", O_RDWR);
    assert_int_equal(other, original);
    assert_int_equal(ioctl(other, MICA_ROCKET_PREP_BO, &prep), -1);
    assert_int_equal(errno, ENOTTY);
    close(other);
    assert_int_equal(call(MICA_ROCKET_PREP_BO, &prep), 0);
}

static void *keep_calling(void *stop)
{
    struct mica_rocket_create_bo bo = {.size = 4096};
    while (!atomic_load((atomic_bool *)stop)) {
        struct mica_drm_gem_close close_it = {0};
        ioctl(node, MICA_ROCKET_CREATE_BO, &bo);
        close_it.handle = bo.handle;
        ioctl(node, MICA_DRM_GEM_CLOSE, &close_it);
    }
    return NULL;
}

/* The child has one thread: locks that another had must not be waited for. */
static void children_of_threaded_programs_go_on(void **state)
{
    atomic_bool stop = false;
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, keep_calling, &stop), 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(10);
            struct mica_rocket_prep_bo prep = {.handle = 1};
            ioctl(node, MICA_ROCKET_PREP_BO, &prep); /* whatever it answers */
            close(node);
            _exit(0);
        }
        int status;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
}

/* Random requests with random arguments: an answer, whatever it is. */
static void random_calls_are_answered(void **state)
{
    uint32_t seed = 7;
    for (int round = 0; round < 20000; round++) {
        uint32_t argument[64];
        for (size_t i = 0; i < 64; i++) {
            seed = seed * 1664525 + 1013904223;
            argument[i] = seed >> 28 < 12 ? seed >> 28 : seed;
        }
        unsigned long requests[] = {0xc0106440,
                                    0xc0106442,
                                    0xc0106443,
                                    0x40186444,
                                    0x40086445,
                                    0xc0486446,
                                    0x40206447,
                                    0xc0186448,
                                    0x40206449,
                                    0xc048644a,
                                    0xc04c644b,
                                    0xc0186440,
                                    0x40186441,
                                    0x40106442,
                                    0x40086443,
                                    MICA_DRM_GEM_CLOSE,
                                    MICA_DRM_PRIME_HANDLE_TO_FD};
        unsigned long request = requests[(seed >> 8) % (sizeof requests / sizeof requests[0])];
        if (request == 0xc0106442 || request == 0xc0186448)
            argument[0] &= 0xfffff, argument[1] = 0, argument[2] = 0; /* no gigabytes */
        if (request == 0xc0186440)
            argument[0] &= 0xfffff;
        int result = ioctl(node, request, argument);
        if (!result && request == MICA_DRM_PRIME_HANDLE_TO_FD)
            close((int)argument[2]);
    }
}

int main(void)
{
    static char etnaviv_name[] = "etnaviv", rocket_name[] = "rocket";
    const struct CMUnitTest etnaviv[] = {
        cmocka_unit_test_prestate_setup_teardown(the_node_tells_its_driver, open_etnaviv, close_node, etnaviv_name),
        cmocka_unit_test_setup_teardown(parameters_are_those_of_the_chip, open_etnaviv, close_node),
        cmocka_unit_test_setup_teardown(buffers_are_checked, open_etnaviv, close_node),
        cmocka_unit_test_setup_teardown(submissions_are_checked, open_etnaviv, close_node),
        cmocka_unit_test_setup_teardown(jobs_that_fault_are_killed, open_etnaviv, close_node),
        cmocka_unit_test_setup_teardown(buffers_are_shared_by_export, open_etnaviv, close_node),
        cmocka_unit_test_setup_teardown(answers_nowhere_leak_nothing, open_etnaviv, close_node),
        cmocka_unit_test_setup_teardown(random_calls_are_answered, open_etnaviv, close_node),
    };
    const struct CMUnitTest rocket[] = {
        cmocka_unit_test_prestate_setup_teardown(the_node_tells_its_driver, open_rocket, close_node, rocket_name),
        cmocka_unit_test_setup_teardown(addresses_are_the_lowest_free_ones, open_rocket, close_node),
        cmocka_unit_test_setup_teardown(wrong_jobs_are_dropped_in_silence, open_rocket, close_node),
        cmocka_unit_test_setup_teardown(jobs_at_bad_addresses_are_killed, open_rocket, close_node),
        cmocka_unit_test_setup_teardown(copies_of_the_descriptor_are_the_file, open_rocket, close_node),
        cmocka_unit_test_setup_teardown(children_of_threaded_programs_go_on, open_rocket, close_node),
        cmocka_unit_test_setup_teardown(random_calls_are_answered, open_rocket, close_node),
    };
    const char *chip = getenv("MICA_VNPU_CHIP");
    if (chip && !strcmp(chip, "rk3588"))
        return cmocka_run_group_tests_name("rocket", rocket, NULL, NULL);
    return cmocka_run_group_tests_name("etnaviv", etnaviv, NULL, NULL);
}
