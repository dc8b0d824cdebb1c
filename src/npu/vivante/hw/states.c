/* SPDX-License-Identifier: MIT */
#include "npu/vivante/hw/states.h"

static const struct viv_state states[] = {
#define STATE(name, text, address, bits, meaning, used_by) {text, address, bits, meaning, used_by},
#include "npu/vivante/hw/states.def"
#undef STATE
};

const struct viv_state *viv_state_find(uint32_t address)
{
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (states[i].address == address)
            return &states[i];
    return NULL;
}
