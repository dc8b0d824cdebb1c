/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "analysis/chips.h"

static const struct mica_chip *const chips[] = {
    &mica_chip_a311d, &mica_chip_imx8mp, &mica_chip_s905d3, &mica_chip_rk3588, &mica_chip_rk3566,
};

const struct mica_chip *mica_analysis_chip(const char *name)
{
    for (size_t i = 0; i < sizeof chips / sizeof chips[0]; i++)
        if (!strcmp(chips[i]->name, name))
            return chips[i];
    return NULL;
}

int mica_analysis_find_chip(const char *name, const char *driver, struct mica_log *log, const struct mica_chip **chip)
{
    char known[128] = "";
    *chip = mica_analysis_chip(name);
    if (*chip && !strcmp((*chip)->driver, driver ? driver : (*chip)->driver))
        return 0;
    if (*chip)
        return mica_fail(log, -EINVAL, "%s isn't a chip of the driver %s", name, driver);
    for (size_t i = 0, used = 0; i < sizeof chips / sizeof chips[0] && used < sizeof known; i++)
        used += (size_t)snprintf(known + used, sizeof known - used, "%s%s", i ? ", " : "", chips[i]->name);
    return mica_fail(log, -EINVAL, "the chip '%s' isn't known; --chip names one of: %s", name, known);
}
