/* SPDX-License-Identifier: MIT */
/* Capture folders made up for tests. */
#ifndef TESTS_ANALYSIS_FOLDER_H
#define TESTS_ANALYSIS_FOLDER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define FOLDER_PATH 512

/* An empty folder of its own; folder_remove() takes it away again. */
static inline void folder_make(char *folder)
{
    snprintf(folder, FOLDER_PATH, "/tmp/mica-analysis-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static inline void folder_remove(const char *folder)
{
    char command[FOLDER_PATH + 16];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* Makes the folder of a submission too. */
static inline void folder_write(const char *folder, const char *name, const void *data, size_t size)
{
    char path[2 * FOLDER_PATH];
    const char *slash = strchr(name, '/');
    snprintf(path, sizeof path, "%s/%.*s", folder, slash ? (int)(slash - name) : 0, name);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline void folder_text(const char *folder, const char *name, const char *text)
{
    folder_write(folder, name, text, strlen(text));
}

#endif
