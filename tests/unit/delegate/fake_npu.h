/* SPDX-License-Identifier: MIT */
/*
 * Stands in for src/runtime/device.c: one device, whose chip takes every
 * operation whose rules hold and computes byte i of each output as 1 plus the
 * sum of bytes i (modulo their sizes) of the operation's variable inputs.
 */
#ifndef MICA_TESTS_DELEGATE_FAKE_NPU_H
#define MICA_TESTS_DELEGATE_FAKE_NPU_H

#include <stdbool.h>

struct fake_npu {
    /* What a test asks for; zeros: everything works. */
    int refused_kind; /* enum mica_op_kind that is not supported */
    int open_error, compile_error, submit_error;
    /* What happened. */
    int opened, closed, buffers, submits;
    char device[64];
};

extern struct fake_npu fake_npu;

#endif
