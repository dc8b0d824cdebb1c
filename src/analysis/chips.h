/* SPDX-License-Identifier: MIT */
#ifndef MICA_ANALYSIS_CHIPS_H
#define MICA_ANALYSIS_CHIPS_H

#include "npu/npu.h"

/* The chip of that name; an error that names all when there is none, or when it isn't one of `driver` (NULL: any). */
int mica_analysis_find_chip(const char *name, const char *driver, struct mica_log *log, const struct mica_chip **chip);

#endif
