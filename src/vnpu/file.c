/* SPDX-License-Identifier: MIT */
/* An open file of the node: what the DRM core answers, and the way to the driver. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "uapi/drm.h"
#include "uapi/etnaviv.h"
#include "util/checked.h"
#include "vnpu/node.h"
#include "vnpu/real.h"
#include "vnpu/user.h"

#define MOST_ARGUMENT_BYTES 128            /* of any request */
#define FIRST_OFFSET UINT64_C(0x100000000) /* of buffers in mmap(); 0 is never one */

const struct vnpu_driver *vnpu_driver_of(const struct mica_chip *chip)
{
    const struct vnpu_driver *const drivers[] = {&vnpu_etnaviv, &vnpu_rocket};
    for (size_t i = 0; i < sizeof drivers / sizeof drivers[0]; i++)
        if (!strcmp(drivers[i]->name, chip->driver))
            return drivers[i];
    return NULL;
}

/* What the kernel's log would say of a job goes to standard error, if wanted. */
static void print_message(void *user, enum mica_log_level level, const char *message)
{
    fprintf(stderr, "mica vnpu: %s\n", message);
}

int vnpu_file_open(const struct mica_chip *chip, struct vnpu_file **out)
{
    const struct vnpu_driver *driver = vnpu_driver_of(chip);
    struct vnpu_file *file = driver ? calloc(1, sizeof *file) : NULL;
    if (!file)
        return driver ? -ENOMEM : -ENODEV;
    file->driver = driver;
    file->chip = chip;
    file->next_offset = FIRST_OFFSET;
    if (getenv("MICA_VNPU_VERBOSE"))
        file->log.sink = print_message;
    pthread_mutex_init(&file->lock, NULL);
    file->threads = mica_threads_create(mica_threads_default()); /* none does as well, slowly */
    int error = mica_device_memory_create(&file->memory);
    if (!error)
        error = chip->family->sim_create(chip, &file->memory, file->threads, &file->log, &file->sim);
    if (error) {
        vnpu_file_close(file);
        return error;
    }
    *out = file;
    return 0;
}

void vnpu_file_close(struct vnpu_file *file)
{
    while (file->buffers) {
        vnpu_buffer_close(file, file->buffers->handle);
    }
    if (!file->dead) { /* else it stopped in the middle of a job, with its threads in another process */
        file->chip->family->sim_destroy(file->sim);
        mica_threads_destroy(file->threads);
    }
    mica_device_memory_destroy(&file->memory);
    pthread_mutex_destroy(&file->lock);
    free(file);
}

/* As the kernel does: as much as fits, and the whole length. */
static int give_text(uint64_t *length, uint64_t pointer, const char *text)
{
    size_t size = strlen(text), room = (size_t)*length;
    int error = pointer && room ? vnpu_copy_out(pointer, text, size < room ? size : room) : 0;
    *length = size;
    return error;
}

static int version(const struct vnpu_driver *driver, struct mica_drm_version *call)
{
    call->major = driver->version[0];
    call->minor = driver->version[1];
    call->patch = driver->version[2];
    int error = give_text(&call->name_length, call->name, driver->name);
    if (!error)
        error = give_text(&call->date_length, call->date, driver->date);
    return error ? error : give_text(&call->description_length, call->description, driver->description);
}

static int export_buffer(const struct vnpu_file *file, struct mica_drm_prime *call)
{
    const struct vnpu_buffer *buffer = vnpu_buffer_find(file, call->handle);
    if (!buffer)
        return -ENOENT;
    if (buffer->memory < 0)
        return -EINVAL;
    int fd = fcntl(buffer->memory, call->flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
    if (fd < 0)
        return -errno;
    call->fd = fd;
    return 0;
}

/* Memory of another's: what is sealed against shrinking, as buffers of these nodes are. */
static int import_foreign(struct vnpu_file *file, int fd, const struct stat *status, uint32_t *handle)
{
    int seals = fcntl(fd, F_GET_SEALS), memory;
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || status->st_size <= 0 || status->st_size % MICA_DEVICE_PAGE)
        return -EINVAL;
    struct vnpu_buffer *buffer;
    int error = vnpu_buffer_create(file, (uint64_t)status->st_size, &buffer);
    if (error)
        return error;
    memory = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (memory < 0) {
        error = -errno;
        vnpu_buffer_close(file, buffer->handle);
        return error;
    }
    vnpu_buffer_replace(buffer, memory, status);
    *handle = buffer->handle;
    return 0;
}

static int import_buffer(struct vnpu_file *file, struct mica_drm_prime *call)
{
    struct stat status;
    if (!file->driver->can_import)
        return -EINVAL;
    if (vnpu_real_fstat(call->fd, &status))
        return -EBADF;
    for (struct vnpu_buffer *buffer = file->buffers; buffer; buffer = buffer->next) {
        if (buffer->memory < 0 || buffer->inode != status.st_ino || buffer->device != status.st_dev)
            continue;
        call->handle = buffer->handle; /* as the kernel does: no reference more, one GEM_CLOSE ends it for all */
        return 0;
    }
    return import_foreign(file, call->fd, &status, &call->handle);
}

static int core_call(struct vnpu_file *file, unsigned long request, void *argument)
{
    switch (request) {
    case MICA_DRM_VERSION:
        return version(file->driver, argument);
    case MICA_DRM_GEM_CLOSE:
        return vnpu_buffer_close(file, ((struct mica_drm_gem_close *)argument)->handle);
    case MICA_DRM_PRIME_HANDLE_TO_FD:
        return export_buffer(file, argument);
    case MICA_DRM_PRIME_FD_TO_HANDLE:
        return import_buffer(file, argument);
    default:
        return file->driver->call(file, request, argument);
    }
}

/* Descriptors that the caller will never hear of. */
static void take_back(unsigned long request, const void *call)
{
    const struct mica_etnaviv_submit *submit = call;
    const struct mica_drm_prime *prime = call;
    if (request == MICA_DRM_PRIME_HANDLE_TO_FD)
        vnpu_real_close(prime->fd);
    if (request == MICA_ETNAVIV_GEM_SUBMIT && submit->flags & MICA_ETNAVIV_SUBMIT_FENCE_OUT)
        vnpu_sync_drop(submit->fence_fd);
}

void vnpu_file_forked(struct vnpu_file *file)
{
    if (!pthread_mutex_trylock(&file->lock)) {
        pthread_mutex_unlock(&file->lock);
        return;
    }
    pthread_mutex_init(&file->lock, NULL);
    file->dead = true;
}

int vnpu_file_call(struct vnpu_file *file, unsigned long request, void *argument)
{
    uint64_t call[MOST_ARGUMENT_BYTES / 8] = {0}, pointer = (uintptr_t)argument;
    size_t size = _IOC_SIZE(request);
    if (size > sizeof call)
        return -ENOTTY;
    int result = vnpu_copy_in(call, pointer, size);
    if (result)
        return result;
    pthread_mutex_lock(&file->lock);
    result = file->dead ? -ENODEV : core_call(file, request & UINT32_MAX, call);
    pthread_mutex_unlock(&file->lock);
    if (!result && _IOC_DIR(request) & _IOC_READ) {
        result = vnpu_copy_out(pointer, call, size);
        if (result)
            take_back(request & UINT32_MAX, call);
    }
    return result;
}

int vnpu_file_map(struct vnpu_file *file, uint64_t offset, uint64_t size, uint64_t *inside)
{
    int memory = -1;
    pthread_mutex_lock(&file->lock);
    for (struct vnpu_buffer *buffer = file->buffers; buffer && memory < 0; buffer = buffer->next) {
        if (buffer->memory < 0 || offset < buffer->offset ||
            !mica_range_inside(offset - buffer->offset, size, buffer->size))
            continue;
        *inside = offset - buffer->offset;
        memory = fcntl(buffer->memory, F_DUPFD_CLOEXEC, 0);
        if (memory < 0)
            break;
    }
    pthread_mutex_unlock(&file->lock);
    return memory;
}
