/* SPDX-License-Identifier: MIT */
#include "files.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

bool test_file_exists(const char *path)
{
    return access(path, R_OK) == 0;
}

static struct test_file allocate(size_t size)
{
    void *data = NULL;
    assert_int_equal(posix_memalign(&data, 16, size ? size : 1), 0);
    return (struct test_file){data, size};
}

struct test_file test_file_read(const char *path)
{
    struct stat status;
    FILE *stream = fopen(path, "rb");
    if (!stream || fstat(fileno(stream), &status))
        fail_msg("%s can't be opened", path);
    struct test_file file = allocate((size_t)status.st_size);
    assert_int_equal(fread(file.data, 1, file.size, stream), file.size);
    fclose(stream);
    return file;
}

struct test_file test_file_copy(const struct test_file *file, size_t size)
{
    struct test_file copy = allocate(size);
    memcpy(copy.data, file->data, size);
    return copy;
}

void test_file_free(struct test_file *file)
{
    free(file->data);
    file->data = NULL;
}
