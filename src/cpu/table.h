/* SPDX-License-Identifier: MIT */
/*
 * Operations that make one value from one, between 8-bit tensors: a table of
 * 256 says all; and one that makes it from two. Of cpu/ this is all that compilers may include; it depends on
 * the graph alone.
 */
#ifndef MICA_CPU_TABLE_H
#define MICA_CPU_TABLE_H

#include "graph/graph.h"

/*
 * table[stored input byte] = stored output byte, as TFLite's reference kernels
 * (BUILTIN_REF; for ELU, which those lack, the built-in ones) compute it, for LOGISTIC, TANH, HARD_SWISH, the RELU
 * family, LEAKY_RELU, ELU, ABS, NEG, EXP, LOG, SQRT, RSQRT and QUANTIZE. int8 tensors for all of them; uint8 ones as
 * well where TFLite takes them: not for ELU, ABS, NEG, EXP, LOG, SQRT and RSQRT. What TFLite has no result for (roots
 * of negative values) becomes the largest output, as for 0. -ENOTSUP for everything else.
 */
int mica_cpu_table(const struct mica_graph *graph, const struct mica_op *op, uint8_t table[256]);

/*
 * table[256 * a + b], a and b the inputs' bytes: SQUARED_DIFFERENCE of int8 tensors as TFLite's reference kernels
 * compute it. -ENOTSUP for everything else.
 */
#define MICA_CPU_PAIRS 65536
int mica_cpu_squares(const struct mica_graph *graph, const struct mica_op *op, uint8_t table[MICA_CPU_PAIRS]);

#endif
