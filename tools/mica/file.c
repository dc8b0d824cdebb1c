/* SPDX-License-Identifier: MIT */
#include "file.h"

#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static int fail_path(struct cli *cli, const char *verb, const char *path, int error)
{
    return cli_fail(cli, "cannot %s '%s': %s", verb, path, strerror(error));
}

int cli_file_part(struct cli *cli, const char *path, uint64_t offset, void *part, size_t capacity, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return fail_path(cli, "open", path, errno);
    errno = 0;
    bool there = offset <= LONG_MAX && fseek(file, (long)offset, SEEK_SET) == 0;
    *size = there ? fread(part, 1, capacity, file) : 0;
    int error = ferror(file) ? errno : 0;
    fclose(file);
    return error ? fail_path(cli, "read", path, error) : 0;
}

/* Grows as bytes come, not by what the caller expects: a tensor of a hostile model may claim any size. */
static int read_stream(FILE *file, size_t limit, char **data, size_t *size)
{
    size_t capacity = 0, used = 0;
    for (;;) {
        if (used + 1 >= capacity) {
            size_t larger = capacity ? capacity * 2 : 64 * 1024;
            char *grown = realloc(*data, larger);
            if (!grown)
                return ENOMEM;
            *data = grown;
            capacity = larger;
        }
        size_t wanted = capacity - used - 1;
        if (limit - used < wanted)
            wanted = limit - used + 1;
        errno = 0;
        size_t got = fread(*data + used, 1, wanted, file);
        used += got;
        if (got < wanted || used > limit)
            break;
    }
    (*data)[used] = 0;
    *size = used;
    return ferror(file) ? (errno ? errno : EIO) : 0;
}

int cli_file_read(struct cli *cli, const char *path, size_t limit, void **data, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    if (!file)
        return fail_path(cli, "open", path, errno);
    char *bytes = NULL;
    int error = read_stream(file, limit, &bytes, size);
    fclose(file);
    if (error) {
        free(bytes);
        return fail_path(cli, "read", path, error);
    }
    *data = bytes;
    return 0;
}

int cli_file_write(struct cli *cli, const char *path, const void *data, size_t size)
{
    FILE *file = fopen(path, "wbe");
    if (!file)
        return fail_path(cli, "create", path, errno);
    errno = 0;
    int error = 0;
    if (fwrite(data, 1, size, file) != size)
        error = errno ? errno : EIO;
    if (fclose(file) && !error)
        error = errno ? errno : EIO;
    return error ? fail_path(cli, "write", path, error) : 0;
}
