/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/chips.h"

int mica_analysis_find_chip(const char *name, const char *driver, struct mica_log *log, const struct mica_chip **chip)
{
    char known[128] = "";
    *chip = mica_find_chip(name);
    if (*chip && !strcmp((*chip)->driver, driver ? driver : (*chip)->driver))
        return 0;
    if (*chip)
        return mica_fail(log, -EINVAL, "%s isn't a chip of the driver %s", name, driver);
    for (size_t i = 0, used = 0; i < mica_chip_count && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", mica_chips[i]->name);
    return mica_fail(log, -EINVAL, "the chip '%s' isn't known; --chip names one of: %s", name, known);
}
