/* SPDX-License-Identifier: MIT */
/* Front-end opcodes and states of the command stream (specification, section 2). */
#ifndef MICA_VIVANTE_HW_STATES_H
#define MICA_VIVANTE_HW_STATES_H

#include <stddef.h>
#include <stdint.h>

enum viv_state_address {
#define STATE(name, text, address, bits, meaning, used_by) VIV_##name = address,
#include "npu/vivante/hw/states.def"
#undef STATE
};

struct viv_state {
    const char *name; /* "GL.NN_CONFIG" */
    uint32_t address;
    const char *bits, *meaning, *used_by;
};

/* The known states, ordered as in the table; NULL when `address` is not one of them. */
const struct viv_state *viv_state_find(uint32_t address);

enum viv_opcode { /* bits 31:27 of a command's first word */
                  VIV_OP_FILLER = 0,
                  VIV_OP_LOAD_STATE = 1,
                  VIV_OP_END = 2,
                  VIV_OP_NOP = 3,
                  VIV_OP_WAIT = 7,
                  VIV_OP_LINK = 8,
                  VIV_OP_STALL = 9,
};

/* First word of a LOAD_STATE of one register. */
#define VIV_LOAD_STATE(address) (0x08010000u | (address) >> 2)

#define VIV_FLUSH_BATCH 0xc23u   /* GL.FLUSH_CACHE at the end of a batch, written twice */
#define VIV_NN_CONFIG_SAFE 0x10u /* small-batch overlap off */
#define VIV_TP_MORE 8u           /* GL.0x3950: more jobs of the same split TP operation follow */

#endif
