/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "npu/npu.h"

const struct mica_chip *const mica_chips[] = {
    &mica_chip_a311d, &mica_chip_imx8mp, &mica_chip_s905d3, &mica_chip_rk3588, &mica_chip_rk3566,
};
const size_t mica_chip_count = sizeof mica_chips / sizeof mica_chips[0];

const struct mica_chip *mica_find_chip(const char *name)
{
    for (size_t i = 0; i < mica_chip_count; i++)
        if (!strcmp(mica_chips[i]->name, name))
            return mica_chips[i];
    return NULL;
}
