/* SPDX-License-Identifier: MIT */
/*
 * Files of a folder that somebody else wrote. Only regular files inside the folder are opened, whatever their names
 * say, none larger than its caller wants, and all of them together are bounded.
 */
#ifndef MICA_ANALYSIS_FILES_H
#define MICA_ANALYSIS_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "util/log.h"

#define MICA_FOLDER_MOST_BYTES (UINT64_C(1) << 30) /* of a whole capture */

struct mica_folder_file {
    char *name; /* from the top */
    uint8_t *data;
    size_t size;
};

struct mica_folder {
    const char *path; /* borrowed, for messages */
    struct mica_log *log;
    int fd;
    uint64_t left; /* bytes that may still be read */
    struct mica_folder_file *files;
    size_t count;
};

int mica_folder_open(struct mica_folder *folder, const char *path, struct mica_log *log);
void mica_folder_close(struct mica_folder *folder); /* files go with it */

/* Is there such a regular file? */
bool mica_folder_has(const struct mica_folder *folder, const char *directory, const char *name);

/*
 * The file `name`, as seen from `directory` (of the folder; "": its top), of at most `most` bytes. The folder owns
 * the bytes; a file that was read before is not read again. 0 or a negative errno, said.
 */
int mica_folder_read(struct mica_folder *folder, const char *directory, const char *name, uint64_t most,
                     const struct mica_folder_file **file);

#endif
