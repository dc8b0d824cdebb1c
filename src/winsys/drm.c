/* SPDX-License-Identifier: MIT */
#include "winsys/drm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "uapi/drm.h"

#define NAME_BYTES 32
#define SECOND_NS INT64_C(1000000000)
#define MILLISECOND_NS INT64_C(1000000)

int mica_drm_call(int fd, unsigned long request, void *argument)
{
    while (ioctl(fd, request, argument) < 0) {
        if (errno != EINTR && errno != EAGAIN)
            return -errno;
    }
    return 0;
}

int mica_drm_open(const char *path, const char *driver, struct mica_log *log, int *out)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return mica_fail(log, -errno, "%s can't be opened: %s", path, strerror(errno));
    char name[NAME_BYTES] = "";
    struct mica_drm_version version = {.name = (uintptr_t)name, .name_length = sizeof name - 1};
    int error = mica_drm_call(fd, MICA_DRM_VERSION, &version);
    if (error || strcmp(name, driver)) {
        close(fd);
        return mica_fail(log, -ENODEV, "%s is no node of the kernel's %s driver%s%s", path, driver,
                         error ? "" : ", but of ", error ? "" : name);
    }
    *out = fd;
    return 0;
}

static int64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND_NS + now.tv_nsec;
}

int64_t mica_drm_deadline(int64_t timeout_ns)
{
    int64_t now = now_ns(), deadline;
    return __builtin_add_overflow(now, timeout_ns, &deadline) ? INT64_MAX : deadline;
}

/* Polls until the deadline, whatever signals come; poll()'s result. */
static int poll_until(int sync, int64_t deadline)
{
    struct pollfd poller = {.fd = sync, .events = POLLIN};
    for (;;) {
        int64_t left = (deadline - now_ns() + MILLISECOND_NS - 1) / MILLISECOND_NS;
        int result = poll(&poller, 1, left < 0 ? 0 : left > 1000 ? 1000 : (int)left);
        if (result > 0 || (result < 0 && errno != EINTR))
            return result;
        if (left <= 0)
            return 0;
    }
}

int mica_drm_wait_sync(int sync, int64_t timeout_ns)
{
    int ready = poll_until(sync, mica_drm_deadline(timeout_ns));
    if (ready <= 0)
        return ready < 0 ? -errno : -ETIMEDOUT;
    struct sync_file_info info = {.num_fences = 0};
    int error = mica_drm_call(sync, SYNC_IOC_FILE_INFO, &info);
    if (error)
        return error;
    return info.status < 0 ? -EIO : 0;
}

void mica_drm_close_handle(int fd, uint32_t handle)
{
    struct mica_drm_gem_close close_it = {.handle = handle};
    mica_drm_call(fd, MICA_DRM_GEM_CLOSE, &close_it);
}

int mica_drm_import(int fd, int dmabuf, uint32_t *handle, uint64_t *size)
{
    struct mica_drm_prime prime = {.fd = dmabuf};
    off_t end = lseek(dmabuf, 0, SEEK_END);
    if (end <= 0)
        return end < 0 ? -errno : -EINVAL;
    int error = mica_drm_call(fd, MICA_DRM_PRIME_FD_TO_HANDLE, &prime);
    if (error)
        return error;
    *handle = prime.handle;
    *size = (uint64_t)end;
    return 0;
}

void mica_drm_fences_init(struct mica_drm_fences *fences)
{
    *fences = (struct mica_drm_fences){0};
    pthread_mutex_init(&fences->lock, NULL);
}

void mica_drm_fences_finish(struct mica_drm_fences *fences, int64_t timeout_ns)
{
    int64_t deadline = mica_drm_deadline(timeout_ns);
    for (uint32_t i = 0; i < MICA_DRM_KEPT_FENCES; i++) {
        if (!fences->kept[i].number || fences->kept[i].sync < 0)
            continue;
        mica_drm_wait_sync(fences->kept[i].sync, deadline - now_ns());
        close(fences->kept[i].sync);
    }
    pthread_mutex_destroy(&fences->lock);
}

uint64_t mica_drm_fences_add(struct mica_drm_fences *fences, int sync, uint32_t handle)
{
    pthread_mutex_lock(&fences->lock);
    uint64_t number = ++fences->last;
    uint32_t place = (uint32_t)(number % MICA_DRM_KEPT_FENCES);
    if (fences->kept[place].number && fences->kept[place].sync >= 0)
        close(fences->kept[place].sync);
    fences->kept[place].number = number;
    fences->kept[place].sync = sync;
    fences->kept[place].handle = handle;
    pthread_mutex_unlock(&fences->lock);
    return number;
}

int mica_drm_fences_get(struct mica_drm_fences *fences, uint64_t number, int *sync, uint32_t *handle)
{
    uint32_t place = (uint32_t)(number % MICA_DRM_KEPT_FENCES);
    pthread_mutex_lock(&fences->lock);
    bool known = number && fences->kept[place].number == number;
    *sync = known && fences->kept[place].sync >= 0 ? fcntl(fences->kept[place].sync, F_DUPFD_CLOEXEC, 0) : -1;
    int error = !known ? -EINVAL : fences->kept[place].sync >= 0 && *sync < 0 ? -errno : 0;
    *handle = fences->kept[place].handle;
    pthread_mutex_unlock(&fences->lock);
    return error;
}
