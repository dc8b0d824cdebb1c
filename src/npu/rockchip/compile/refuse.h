/* SPDX-License-Identifier: MIT */
/* Answers to "can the chip run it?" that many operations share. */
#ifndef MICA_ROCKCHIP_COMPILE_REFUSE_H
#define MICA_ROCKCHIP_COMPILE_REFUSE_H

#include "npu/rockchip/compile/plan.h"

/* Writes the reason; -ENOTSUP. */
int rk_refuse(char *reason, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* NULL, or why a tensor can't be a cube of 8-bit values with one quantization. */
const char *rk_tensor_problem(const struct mica_tensor *tensor);
/* The same for an image [1, H, W, C] or [H, W, C]. */
const char *rk_image_problem(const struct mica_tensor *tensor);

/* Checks all inputs up to `inputs` and all outputs by rk_tensor_problem(); 0 or -ENOTSUP with the reason. */
int rk_check_tensors(const struct mica_graph *graph, const struct mica_op *op, uint32_t first, uint32_t inputs,
                     char *reason, size_t size);

/* One real step of both tensors' values is the same, and so is their zero in the stored domain. */
bool rk_same_quantization(const struct mica_tensor *a, const struct mica_tensor *b);

/* The clamp of a fused activation, stored domain. */
void rk_activation_range(enum mica_activation activation, const struct mica_tensor *out, int32_t *min, int32_t *max);

#endif
