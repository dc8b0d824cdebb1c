/* SPDX-License-Identifier: MIT */
/* A regular file as read-only memory. */
#ifndef MICA_RUNTIME_MAPPING_H
#define MICA_RUNTIME_MAPPING_H

#include <stddef.h>

#include "util/log.h"

struct mica_mapping {
    const void *data; /* page aligned, NULL: nothing is mapped */
    size_t size;
};

/* Refuses what is no regular file, is empty, or is larger than any file Mica reads. */
int mica_mapping_open(const char *path, struct mica_log *log, struct mica_mapping *mapping);
void mica_mapping_close(struct mica_mapping *mapping);

#endif
