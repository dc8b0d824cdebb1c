/* SPDX-License-Identifier: MIT */
/* The delegate's kernel: one partition of an interpreter's graph, compiled and on the device. */
#ifndef MICA_DELEGATE_KERNEL_H
#define MICA_DELEGATE_KERNEL_H

#include "delegate/tflite_abi.h"

/* What the interpreter puts in place of the nodes it replaces. */
extern const struct tfl_registration mica_delegate_kernel;

#endif
