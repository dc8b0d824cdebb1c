/* SPDX-License-Identifier: MIT */
/*
 * Graph operations to jobs. Inside a partition images are planar (C planes of
 * H rows of W bytes); at its border tensors are NHWC. Each function appends
 * jobs to the plan and records where its output's value is.
 */
#ifndef MICA_VIVANTE_COMPILE_LOWER_H
#define MICA_VIVANTE_COMPILE_LOWER_H

#include "npu/vivante/compile/plan.h"

/* Weights of one kernel over all its channels; as many as its channels may be. */
#define VIV_MAX_KERNEL_WEIGHTS (1u << 20)
/* Bytes of the copies of an operation's inputs: all that a program has shares 4 GiB of addresses. */
#define VIV_MAX_COPIES (UINT64_C(1) << 30)

/* Any tensor as an image: the last dimension is channels, the one before columns, all others rows. */
struct viv_shape {
    uint32_t w, h, c;
};

struct viv_shape viv_shape_of(const struct mica_tensor *tensor);

/* NHWC and planar are the same bytes. */
static inline bool viv_shape_flat(struct viv_shape shape)
{
    return shape.c == 1 || (uint64_t)shape.w * shape.h == 1;
}

/* Could a TP job transpose an image of this shape? (16-bit fields, signed for the last row and column.) */
bool viv_shape_transposable(struct viv_shape shape);

/* Zero point of a tensor as the hardware sees it, 0 for one without quantization. */
uint8_t viv_tensor_zero(const struct mica_tensor *tensor);

/* ---- layout.c: where values are ----------------------------------------- */

/* The value of `tensor` in that layout; appends the job for `op` that makes it if there is none yet. */
int viv_need_nhwc(struct viv_plan *plan, uint32_t tensor, uint32_t op, struct viv_ref *ref);
int viv_need_planar(struct viv_plan *plan, uint32_t tensor, uint32_t op, struct viv_ref *ref);

/* Is the value there without another job? */
bool viv_has_nhwc(const struct viv_plan *plan, uint32_t tensor);
bool viv_has_planar(const struct viv_plan *plan, uint32_t tensor);

/* New storage for a tensor that is about to be computed. */
int viv_make_planar(struct viv_plan *plan, uint32_t tensor, struct viv_ref *ref);
int viv_make_nhwc(struct viv_plan *plan, uint32_t tensor, struct viv_ref *ref);

/* Puts `ref`, `size` bytes, at `offset` of `parent`: by placement, else by a copy job. */
int viv_place(struct viv_plan *plan, struct viv_ref ref, uint64_t size, struct viv_ref parent, uint64_t offset,
              uint8_t zero_point, uint32_t op);

/* ---- tp.c: jobs of the tensor processor --------------------------------- */

int viv_tp_transpose(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in, struct viv_ref out,
                     uint8_t zero_point);
int viv_tp_detranspose(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in,
                       struct viv_ref out, uint8_t zero_point);
int viv_tp_copy(struct viv_plan *plan, uint32_t op, uint64_t size, struct viv_ref in, struct viv_ref out,
                uint8_t zero_point);
int viv_tp_pad(struct viv_plan *plan, uint32_t op, struct viv_shape shape, const struct mica_padding *padding,
               struct viv_ref in, struct viv_ref out, uint8_t zero_point);
/* Channel c becomes channels 4c + 2 * (row parity) + (column parity); an odd last row or column is filled up. */
int viv_tp_space_to_depth(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in,
                          struct viv_ref out, uint8_t zero_point);
/* The same from an NHWC image with an even number of rows. */
int viv_tp_space_to_depth_nhwc(struct viv_plan *plan, uint32_t op, struct viv_shape shape, struct viv_ref in,
                               struct viv_ref out, uint8_t zero_point);

/* One group of lanes (window.h), phase by phase, of planes that are `pitch` bytes apart. */
struct viv_lanes;
int viv_tp_lanes(struct viv_plan *plan, uint32_t op, struct viv_shape shape, uint32_t pitch, const struct viv_lanes *x,
                 const struct viv_lanes *y, uint32_t group, struct viv_ref in, struct viv_ref out, uint8_t zero_point);

/* All lanes, of one group, from an NHWC image that has all the rows. */
int viv_tp_lanes_nhwc(struct viv_plan *plan, uint32_t op, struct viv_shape shape, const struct viv_lanes *x,
                      const struct viv_lanes *y, struct viv_ref in, struct viv_ref out, uint8_t zero_point);

/* Maxima of windows of 2 or 3 pixels each way, step 1 or 2. */
int viv_tp_max_pool(struct viv_plan *plan, uint32_t op, struct viv_shape shape, uint32_t size, uint32_t step,
                    struct viv_ref in, struct viv_ref out);

/* ---- one function an operation ------------------------------------------- */

int viv_lower_conv(struct viv_plan *plan, uint32_t op);
int viv_lower_depthwise(struct viv_plan *plan, uint32_t op);
int viv_lower_fully_connected(struct viv_plan *plan, uint32_t op);
int viv_lower_add(struct viv_plan *plan, uint32_t op);
int viv_lower_concatenation(struct viv_plan *plan, uint32_t op);
int viv_lower_pad(struct viv_plan *plan, uint32_t op);
int viv_lower_reshape(struct viv_plan *plan, uint32_t op);

/* All operations of the partition, its inputs and its outputs. */
int viv_lower(struct viv_plan *plan);

/* ---- shared with supports.c ----------------------------------------------- */

/* Largest k <= the chip's kernels with inputs = k * k * n: the kernel of a fully connected layer. */
uint32_t viv_fully_connected_kernel(const struct viv_chip *chip, uint32_t inputs);

/* Weights of a quantized addition (specification, section 7.5). */
struct viv_add {
    int32_t weight[2];
    float weight_scale; /* with the first input's scale, the scale of the sum */
    double error;       /* largest error of the sum before rounding, in steps of the output */
};

struct viv_add viv_add_weights(const struct mica_tensor *a, const struct mica_tensor *b, const struct mica_tensor *out,
                               bool subtract);

/* Columns an addition folds its tensors to; 0: too large. */
uint32_t viv_add_columns(uint64_t bytes);

#endif
