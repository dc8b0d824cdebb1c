/* SPDX-License-Identifier: MIT */
/* The C library's functions that this library stands in front of. Resolved at the first use. */
#ifndef MICA_VNPU_REAL_H
#define MICA_VNPU_REAL_H

#include <sys/stat.h>
#include <sys/types.h>

int vnpu_real_fstat(int fd, struct stat *status);
int vnpu_real_close(int fd);

#endif
