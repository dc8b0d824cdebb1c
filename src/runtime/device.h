/* SPDX-License-Identifier: MIT */
/* Device names to opened devices, for libmica and for the delegate. */
#ifndef MICA_RUNTIME_DEVICE_H
#define MICA_RUNTIME_DEVICE_H

#include "mica/mica.h"
#include "winsys/winsys.h"

struct mica_opened_device {
    char name[64];                /* the resolved name, "sim:a311d" for "auto" on a PC */
    const struct mica_chip *chip; /* NULL for "cpu" */
    struct mica_winsys *winsys;   /* NULL for "cpu" */
    /* One more connection to the same device, for another core. NULL: there is only one. */
    int (*connect)(const struct mica_opened_device *device, struct mica_threads *threads, struct mica_log *log,
                   struct mica_winsys **winsys);
};

/* See mica_device_list() and mica_device_open() in mica.h. `threads` (may be NULL) and `log` are borrowed. */
int mica_known_device(size_t index, struct mica_device_info *info);
int mica_open_device(const char *name, struct mica_threads *threads, struct mica_log *log,
                     struct mica_opened_device *device);
void mica_close_device(struct mica_opened_device *device);

#endif
