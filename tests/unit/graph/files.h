/* SPDX-License-Identifier: MIT */
/* Model files in memory. */
#ifndef TEST_GRAPH_FILES_H
#define TEST_GRAPH_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct test_file {
    uint8_t *data; /* 16-byte aligned, exactly `size` bytes */
    size_t size;
};

bool test_file_exists(const char *path);

/* Fails the test when it can't be read. */
struct test_file test_file_read(const char *path);

/* The first `size` bytes of a file, in memory of their own. */
struct test_file test_file_copy(const struct test_file *file, size_t size);

void test_file_free(struct test_file *file);

#endif
