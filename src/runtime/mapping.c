/* SPDX-License-Identifier: MIT */
#include "runtime/mapping.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The offsets of a .tflite file have 31 bits; an executable adds its programs. */
#define MAX_FILE_SIZE (INT64_C(1) << 32)

static int check_file(int file, const char *path, struct mica_log *log, size_t *size)
{
    struct stat status;
    if (fstat(file, &status)) {
        int error = errno;
        return mica_fail(log, -error, "%s: %s", path, strerror(error));
    }
    if (S_ISDIR(status.st_mode))
        return mica_fail(log, -EISDIR, "%s is a directory", path);
    if (!S_ISREG(status.st_mode))
        return mica_fail(log, -EINVAL, "%s is no regular file", path);
    if (status.st_size == 0)
        return mica_fail(log, -EINVAL, "%s is empty", path);
    if (status.st_size > MAX_FILE_SIZE)
        return mica_fail(log, -EFBIG, "%s is larger than 4 GiB", path);
    *size = (size_t)status.st_size;
    return 0;
}

int mica_mapping_open(const char *path, struct mica_log *log, struct mica_mapping *mapping)
{
    *mapping = (struct mica_mapping){0};
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO without a writer must not block */
    if (file < 0) {
        int error = errno;
        return mica_fail(log, -error, "%s: %s", path, strerror(error));
    }
    size_t size = 0;
    int error = check_file(file, path, log, &size);
    if (!error) {
        void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, file, 0);
        if (data == MAP_FAILED) {
            error = -errno;
            mica_fail(log, error, "%s can't be mapped: %s", path, strerror(-error));
        } else {
            *mapping = (struct mica_mapping){data, size};
        }
    }
    close(file);
    return error;
}

void mica_mapping_close(struct mica_mapping *mapping)
{
    if (mapping->data)
        munmap((void *)mapping->data, mapping->size);
    *mapping = (struct mica_mapping){0};
}
