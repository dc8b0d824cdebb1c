/* SPDX-License-Identifier: MIT */
/* Convolutions and fully connected layers of int16 values with int8 weights, whose sums have 64 bits. */
#ifndef MICA_CPU_INT16_H
#define MICA_CPU_INT16_H

#include "cpu/kernels.h"

/* What mica_cpu_check_weighted() asks, of int16 input and output. */
int mica_int16_check_weighted(const struct mica_graph *graph, const struct mica_op *op, int32_t channels,
                              int32_t channel_axis, struct mica_cpu_reason *reason);

int mica_int16_conv(const struct mica_cpu_call *call);
int mica_int16_depthwise(const struct mica_cpu_call *call);
int mica_int16_fully_connected(const struct mica_cpu_call *call);

#endif
