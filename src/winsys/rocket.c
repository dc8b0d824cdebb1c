/* SPDX-License-Identifier: MIT */
/*
 * The kernel's rocket driver as a winsys: one open file is one core's queue and one address space
 * (specification of the kernel interfaces, section 2). Written from the interface alone; never yet run on a board.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/dma-buf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "uapi/rocket.h"
#include "util/checked.h"
#include "winsys/drm.h"
#include "winsys/kernel.h"

#define DRIVER "rocket"
/* How long close() waits for jobs: the kernel has a defect when a file goes before them. Twice its own limit. */
#define CLOSE_TIMEOUT_NS INT64_C(1000000000)
/* PREP_BO for the host's accesses: jobs are waited for before, so that this is about caches. */
#define PREP_TIMEOUT_NS INT64_C(5000000000)

struct rocket {
    struct mica_winsys winsys;
    struct mica_log *log;
    int fd;
    struct mica_drm_fences fences;
};

static struct rocket *self(struct mica_winsys *winsys)
{
    return (struct rocket *)winsys;
}

/* ---- buffers -------------------------------------------------------------- */

static int bo_create(struct mica_winsys *winsys, uint64_t size, struct mica_bo **out)
{
    struct rocket *rocket = self(winsys);
    uint64_t bytes = mica_align(size, MICA_DEVICE_PAGE);
    if (size == 0 || bytes == 0 || bytes > UINT32_MAX)
        return mica_fail(rocket->log, -EINVAL, "a buffer of %llu bytes cannot exist in a 4 GiB address space",
                         (unsigned long long)size);
    struct mica_bo *bo = calloc(1, sizeof *bo);
    if (!bo)
        return mica_fail_nomem(rocket->log);
    struct mica_rocket_create_bo create = {.size = (uint32_t)bytes};
    int error = mica_drm_call(rocket->fd, MICA_ROCKET_CREATE_BO, &create);
    if (error) {
        free(bo);
        return mica_fail(rocket->log, error, "the NPU's driver gives no buffer of %llu bytes: %s",
                         (unsigned long long)bytes, strerror(-error));
    }
    void *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rocket->fd, (off_t)create.offset);
    if (map == MAP_FAILED) {
        error = -errno;
        mica_drm_close_handle(rocket->fd, create.handle);
        free(bo);
        return mica_fail(rocket->log, error, "a buffer of the NPU can't be mapped: %s", strerror(-error));
    }
    *bo = (struct mica_bo){create.handle, create.dma_address, bytes, map};
    *out = bo;
    return 0;
}

static void bo_destroy(struct mica_winsys *winsys, struct mica_bo *bo)
{
    if (!bo)
        return;
    munmap(bo->map, bo->size);
    mica_drm_close_handle(self(winsys)->fd, bo->handle);
    free(bo);
}

static int prepare(struct rocket *rocket, uint32_t handle, int64_t timeout_ns)
{
    struct mica_rocket_prep_bo prep = {.handle = handle, .timeout_ns = mica_drm_deadline(timeout_ns)};
    return mica_drm_call(rocket->fd, MICA_ROCKET_PREP_BO, &prep);
}

static int bo_begin_cpu(struct mica_winsys *winsys, struct mica_bo *bo, unsigned access)
{
    int error = prepare(self(winsys), bo->handle, PREP_TIMEOUT_NS);
    if (error)
        return mica_fail(self(winsys)->log, error, "a buffer of the NPU can't be used by the CPU: %s",
                         strerror(-error));
    return 0;
}

static void bo_end_cpu(struct mica_winsys *winsys, struct mica_bo *bo)
{
    struct mica_rocket_fini_bo fini = {.handle = bo->handle};
    mica_drm_call(self(winsys)->fd, MICA_ROCKET_FINI_BO, &fini);
}

/* ---- submissions ------------------------------------------------------------ */

/* A buffer that is written goes to the outputs only: in both lists, the job would be signalled without running. */
static uint32_t list_handles(const struct mica_submit *submit, bool written, uint32_t *handles)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < submit->bo_count; i++) {
        if (!(submit->bos[i].access & MICA_ACCESS_WRITE) == !written)
            handles[count++] = submit->bos[i].bo->handle;
    }
    return count;
}

/*
 * The sync_file of what runs into a buffer: has to be taken before the job ends, because only it tells a job that
 * was killed from one that is done. -ENOTTY, -EINVAL: the kernel has no way.
 */
static int take_sync(struct rocket *rocket, uint32_t handle)
{
    struct mica_drm_prime prime = {.handle = handle, .flags = O_CLOEXEC};
    struct dma_buf_export_sync_file sync = {.flags = DMA_BUF_SYNC_RW, .fd = -1};
    int error = mica_drm_call(rocket->fd, MICA_DRM_PRIME_HANDLE_TO_FD, &prime);
    if (!error) {
        error = mica_drm_call(prime.fd, DMA_BUF_IOCTL_EXPORT_SYNC_FILE, &sync);
        close(prime.fd);
    }
    return error ? error : sync.fd;
}

/* The kernel answers 0 to jobs that it then doesn't run: what it would drop is refused here. */
static int check_submit(struct rocket *rocket, const struct mica_submit *submit)
{
    if (submit->words == 0 || submit->words % 2)
        return mica_fail(rocket->log, -EINVAL, "a submission of %u words is no list of tasks, which have 2 each",
                         submit->words);
    for (uint32_t i = 1; i < submit->words; i += 2)
        if (submit->stream[i] == 0)
            return mica_fail(rocket->log, -EINVAL, "task %u of the submission has no commands", i / 2);
    return 0;
}

static int send(struct rocket *rocket, const struct mica_submit *submit, uint32_t *handles, uint32_t *outcome)
{
    uint32_t in_count = list_handles(submit, false, handles);
    uint32_t out_count = list_handles(submit, true, handles + in_count);
    if (out_count == 0)
        return mica_fail(rocket->log, -EINVAL, "a submission that writes no buffer can't be waited for");
    struct mica_rocket_job job = {
        .tasks = (uintptr_t)submit->stream,
        .in_handles = (uintptr_t)handles,
        .out_handles = (uintptr_t)(handles + in_count),
        .task_count = submit->words / 2,
        .task_struct_size = sizeof(struct mica_rocket_task),
        .in_count = in_count,
        .out_count = out_count,
    };
    struct mica_rocket_submit call = {.jobs = (uintptr_t)&job, .job_count = 1, .job_struct_size = sizeof job};
    int error = mica_drm_call(rocket->fd, MICA_ROCKET_SUBMIT, &call);
    if (error)
        return mica_fail(rocket->log, error, "the NPU's driver refused a submission: %s", strerror(-error));
    *outcome = handles[in_count];
    return 0;
}

static int submit_tasks(struct mica_winsys *winsys, const struct mica_submit *submit, uint64_t *fence)
{
    struct rocket *rocket = self(winsys);
    int error = check_submit(rocket, submit);
    if (error)
        return error;
    uint32_t outcome = 0, *handles = mica_new_array(submit->bo_count, sizeof *handles);
    if (!handles)
        return mica_fail_nomem(rocket->log);
    if (submit->report_count)
        *submit->report_count = 0;
    error = send(rocket, submit, handles, &outcome);
    free(handles);
    if (error)
        return error;
    int sync = take_sync(rocket, outcome);
    if (sync < 0 && sync != -ENOTTY && sync != -EINVAL) { /* there is a way, but no descriptor or memory left */
        prepare(rocket, outcome, PREP_TIMEOUT_NS);
        return mica_fail(rocket->log, sync, "nothing would tell whether the job was killed: %s", strerror(-sync));
    }
    *fence = mica_drm_fences_add(&rocket->fences, sync, outcome);
    return 0;
}

static int wait_fence(struct mica_winsys *winsys, uint64_t fence, int64_t timeout_ns)
{
    struct rocket *rocket = self(winsys);
    int sync;
    uint32_t outcome;
    int error = mica_drm_fences_get(&rocket->fences, fence, &sync, &outcome);
    if (error)
        return mica_fail(rocket->log, error, "fence %llu can't be waited for: %s", (unsigned long long)fence,
                         error == -EINVAL ? "it is unknown, or too old" : strerror(-error));
    error = sync >= 0 ? mica_drm_wait_sync(sync, timeout_ns) : prepare(rocket, outcome, timeout_ns);
    if (sync >= 0)
        close(sync);
    if (error == -EIO)
        return mica_fail(rocket->log, -EIO,
                         "the kernel gave a job up: it took longer than 500 ms, or used an address that it may not");
    return error ? mica_fail(rocket->log, error, "waiting for the NPU failed: %s", strerror(-error)) : 0;
}

/* ---- the device ---------------------------------------------------------------- */

static void destroy(struct mica_winsys *winsys)
{
    if (!winsys)
        return;
    struct rocket *rocket = self(winsys);
    mica_drm_fences_finish(&rocket->fences, CLOSE_TIMEOUT_NS);
    close(rocket->fd);
    free(rocket);
}

/* The device tree's word on the node, "rockchip,rk3588-rknn-core"; "" when it can't be read. */
static void read_compatible(int fd, char *text, size_t size)
{
    char path[96];
    struct stat node;
    text[0] = 0;
    if (fstat(fd, &node))
        return;
    snprintf(path, sizeof path, "/sys/dev/char/%u:%u/device/of_node/compatible", major(node.st_rdev),
             minor(node.st_rdev));
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t got = read(file, text, size - 1);
    text[got > 0 ? got : 0] = 0;
    close(file);
}

static const struct mica_chip *find_chip(const char *compatible, const struct mica_chip *const *chips, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct mica_chip *chip = chips[i];
        if (!strcmp(chip->driver, DRIVER) && chip->identity && (!compatible[0] || !strcmp(compatible, chip->identity)))
            return chip;
    }
    return NULL;
}

static int start(int fd, const char *path, const struct mica_chip *const *chips, size_t count, struct mica_log *log,
                 struct mica_winsys **winsys)
{
    char compatible[64];
    read_compatible(fd, compatible, sizeof compatible);
    const struct mica_chip *chip = find_chip(compatible, chips, count);
    if (!chip)
        return mica_fail(log, -ENODEV, "%s is an NPU that Mica doesn't know: %s", path, compatible);
    struct rocket *rocket = calloc(1, sizeof *rocket);
    if (!rocket)
        return mica_fail_nomem(log);
    rocket->log = log;
    rocket->fd = fd;
    mica_drm_fences_init(&rocket->fences);
    rocket->winsys = (struct mica_winsys){
        .chip = chip,
        .destroy = destroy,
        .bo_create = bo_create,
        .bo_destroy = bo_destroy,
        .bo_begin_cpu = bo_begin_cpu,
        .bo_end_cpu = bo_end_cpu,
        .submit = submit_tasks,
        .wait = wait_fence,
    };
    *winsys = &rocket->winsys;
    return 0;
}

int mica_winsys_rocket_open(const char *path, const struct mica_chip *const *chips, size_t count, struct mica_log *log,
                            struct mica_winsys **winsys)
{
    int fd, error = mica_drm_open(path, DRIVER, log, &fd);
    if (error)
        return error;
    error = start(fd, path, chips, count, log, winsys);
    if (error)
        close(fd);
    return error;
}
