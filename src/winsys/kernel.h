/* SPDX-License-Identifier: MIT */
/* Devices behind the kernel's drivers. Written from the kernel interfaces alone; never yet run on a board. */
#ifndef MICA_WINSYS_KERNEL_H
#define MICA_WINSYS_KERNEL_H

#include "winsys/winsys.h"

/*
 * Opens the etnaviv node `path` and finds the one of `chips` that is behind it by what the kernel says of its cores.
 * -ENODEV: none is. `log` is borrowed.
 */
int mica_winsys_etnaviv_open(const char *path, const struct mica_chip *const *chips, size_t count, struct mica_log *log,
                             struct mica_winsys **winsys);

/*
 * Opens the rocket node `path`: one open file is one core and one address space. Which chip it is, the interface
 * doesn't say; the device tree does, and where that can't be read it is `chips[0]` of the driver's, as mainline knows
 * no other.
 */
int mica_winsys_rocket_open(const char *path, const struct mica_chip *const *chips, size_t count, struct mica_log *log,
                            struct mica_winsys **winsys);

#endif
