/* SPDX-License-Identifier: MIT */
#ifndef MICA_DELEGATE_OP_NAMES_H
#define MICA_DELEGATE_OP_NAMES_H

#include <stdint.h>

/* "CONV_2D" for 3; never NULL. */
const char *mica_builtin_name(int32_t code);

#endif
