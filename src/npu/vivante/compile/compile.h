/* SPDX-License-Identifier: MIT */
/* The compiler of the Vivante NPUs; signatures of struct mica_npu_family. */
#ifndef MICA_VIVANTE_COMPILE_COMPILE_H
#define MICA_VIVANTE_COMPILE_COMPILE_H

#include "npu/npu.h"

int viv_supports(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason, size_t size);

/* The table of what it takes (operations.def): a line a row, to be kept when viv_supports() changes. */
const struct mica_operation_support *viv_operations(const struct mica_chip *chip, size_t *count);
int viv_describe(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op,
                 const struct mica_compile_options *options, struct mica_way *way);

int viv_compile(const struct mica_chip *chip, const struct mica_partition *partition,
                const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log,
                struct mica_program **program);

#endif
