/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/descriptor.h"

#include <errno.h>

#include "npu/vivante/compile/tile.h"

#define POOLING_FIRST_PIXEL 3u
#define CACHE_FULL 1u

/* Remembers the first value that did not fit. */
struct packer {
    uint32_t *words;
    const struct viv_field *fields, *failed;
    uint32_t value;
};

static void put(struct packer *packer, unsigned field, uint32_t value)
{
    if (!viv_field_set(packer->words, &packer->fields[field], value) && !packer->failed) {
        packer->failed = &packer->fields[field];
        packer->value = value;
    }
}

static int packed(const struct viv_plan *plan, const struct packer *packer, const char *unit)
{
    if (!packer->failed)
        return 0;
    return mica_fail(plan->log, -ENOTSUP, "%s descriptor field %s can't hold %u", unit, packer->failed->name,
                     packer->value);
}

static void put_input(struct packer *packer, const struct viv_nn *nn)
{
    put(packer, VIV_NN_IN_IMAGE_X_SIZE, nn->in_w);
    put(packer, VIV_NN_IN_IMAGE_Y_SIZE, nn->in_h);
    put(packer, VIV_NN_IN_IMAGE_X_STRIDE, nn->in_x_stride);
    put(packer, VIV_NN_IN_IMAGE_Y_STRIDE, nn->in_y_stride);
    put(packer, VIV_NN_IN_IMAGE_X_OFFSET, (uint32_t)nn->x_offset);
    put(packer, VIV_NN_IN_IMAGE_Y_OFFSET, (uint32_t)nn->y_offset);
    put(packer, VIV_NN_IN_IMAGE_BORDER_CONST, nn->in_zero_point);
}

/* Kernels one column wide and several rows high: some chips have a layer type for them and want the rows in both sizes.
 */
static void put_kernel(struct packer *packer, const struct viv_chip *chip, const struct viv_nn *nn,
                       const struct viv_weights *weights)
{
    bool column = nn->kernel_w == 1 && nn->kernel_h > 1 && !chip->thin_kernels;
    put(packer, VIV_NN_LAYER_TYPE, column);
    put(packer, VIV_NN_KERNEL_X_SIZE, column ? nn->kernel_h : nn->kernel_w);
    put(packer, VIV_NN_KERNEL_Y_SIZE, nn->kernel_h);
    put(packer, VIV_NN_KERNEL_Z_SIZE, nn->depthwise ? 1 : nn->in_c);
    put(packer, VIV_NN_DEPTHWISE, nn->depthwise);
    put(packer, VIV_NN_KERNELS_PER_CORE, nn->tile.kernels_per_core);
    put(packer, VIV_NN_COEF_ZERO_POINT, weights->zero_point);
}

static void put_output(struct packer *packer, const struct viv_nn *nn)
{
    put(packer, VIV_NN_OUT_IMAGE_X_SIZE, nn->out_w);
    put(packer, VIV_NN_OUT_IMAGE_Y_SIZE, nn->out_h);
    put(packer, VIV_NN_OUT_IMAGE_Z_SIZE, nn->out_c);
    put(packer, VIV_NN_OUT_IMAGE_X_STRIDE, nn->out_x_stride);
    put(packer, VIV_NN_OUT_IMAGE_Y_STRIDE, nn->out_y_stride);
    put(packer, VIV_NN_OUT_IMAGE_TILE_X_SIZE, nn->tile.x);
    put(packer, VIV_NN_OUT_IMAGE_TILE_Y_SIZE, nn->tile.y);
    put(packer, VIV_NN_OUT_ZERO_POINT, nn->out_zero_point);
    put(packer, VIV_NN_POST_MULTIPLIER, nn->post_multiplier);
    put(packer, VIV_NN_POST_SHIFT, nn->post_shift);
    put(packer, VIV_NN_RELU, nn->relu);
    if (nn->first_pixel) {
        put(packer, VIV_NN_POOLING, POOLING_FIRST_PIXEL);
        put(packer, VIV_NN_POOLING_XY_SIZE, 0);
    }
}

static void put_caches(struct packer *packer, const struct viv_plan *plan, const struct viv_nn *nn)
{
    uint64_t bytes = (uint64_t)nn->coefficients.largest_core * nn->coefficients.cores;
    struct viv_sram sram = viv_sram_plan(plan->chip, nn, &nn->tile, bytes);
    put(packer, VIV_NN_IMAGE_CACHING_MODE, sram.image ? CACHE_FULL : 0);
    put(packer, VIV_NN_IMAGE_CACHE_START, sram.image_start);
    put(packer, VIV_NN_IMAGE_CACHE_END, sram.image_end);
    put(packer, VIV_NN_KERNEL_CACHING_MODE, sram.kernel ? CACHE_FULL : 0);
    put(packer, VIV_NN_KERNEL_CACHE_START, sram.kernel_start);
    put(packer, VIV_NN_KERNEL_CACHE_END, sram.kernel_end);
}

int viv_descriptor_nn(const struct viv_plan *plan, const struct viv_nn *nn, uint32_t *words)
{
    struct packer packer = {.words = words, .fields = viv_nn_fields};
    viv_fields_idle(words, VIV_NN_WORDS, viv_nn_fields, VIV_NN_FIELD_COUNT);
    put(&packer, VIV_NN_NO_Z_OFFSET, !plan->chip->z_offset_in_stream);
    put(&packer, VIV_NN_NO_FLUSH, plan->chip->no_flush);
    put_input(&packer, nn);
    put_kernel(&packer, plan->chip, nn, plan->weights[nn->weights]);
    put_output(&packer, nn);
    put_caches(&packer, plan, nn);
    return packed(plan, &packer, "NN");
}

static void put_scan(struct packer *packer, const struct viv_tp_part *part)
{
    put(packer, VIV_TP_IN_IMAGE_X_SIZE, part->x_size);
    put(packer, VIV_TP_IN_IMAGE_Y_SIZE, part->y_size);
    put(packer, VIV_TP_IN_IMAGE_Z_SIZE, part->z_size);
    put(packer, VIV_TP_IN_IMAGE_STRIDE, part->stride);
    put(packer, VIV_TP_IN_IMAGE_SLICE, part->slice);
    put(packer, VIV_TP_IN_WINDOW_X_START, (uint32_t)part->window_x);
    put(packer, VIV_TP_IN_WINDOW_Y_START, (uint32_t)part->window_y);
    put(packer, VIV_TP_IN_WINDOW_X_END, (uint32_t)part->window_x_end);
    put(packer, VIV_TP_IN_WINDOW_Y_END, (uint32_t)part->window_y_end);
    put(packer, VIV_TP_IN_TILE_X_SIZE, part->tile_x);
    put(packer, VIV_TP_IN_TILE_Y_SIZE, part->tile_y);
    put(packer, VIV_TP_IN_TILE_X_INC, part->tile_x_step ? part->tile_x_step : part->tile_x);
    put(packer, VIV_TP_IN_TILE_Y_INC, part->tile_y_step ? part->tile_y_step : part->tile_y);
}

static void put_loops(struct packer *packer, const struct viv_tp_part *part)
{
    static const enum viv_tp_field inc[] = {VIV_TP_OUT_LOOP_0_INC, VIV_TP_OUT_LOOP_1_INC, VIV_TP_OUT_LOOP_2_INC,
                                            VIV_TP_OUT_LOOP_3_INC, VIV_TP_OUT_LOOP_4_INC, VIV_TP_OUT_LOOP_5_INC};
    static const enum viv_tp_field count[] = {VIV_TP_OUT_LOOP_0_COUNT, VIV_TP_OUT_LOOP_1_COUNT,
                                              VIV_TP_OUT_LOOP_2_COUNT, VIV_TP_OUT_LOOP_3_COUNT,
                                              VIV_TP_OUT_LOOP_4_COUNT, VIV_TP_OUT_LOOP_5_COUNT};
    for (unsigned i = 0; i < 6; i++) {
        put(packer, inc[i], part->loop[i].inc);
        put(packer, count[i], part->loop[i].count);
    }
    put(packer, VIV_TP_OUT_LOOP_6_INC, part->loop_6_inc);
}

/* What the vendor's pooling jobs hold (specification, section 4.4a). */
static void put_pool(struct packer *packer, const struct viv_tp *tp)
{
    uint32_t processing = tp->pool_step == 2 ? 3 : 1;
    put(packer, VIV_TP_ALU_HORZ_PROCESSING, processing);
    put(packer, VIV_TP_ALU_HORZ_PROC_COUNT, tp->pool_size - 1);
    put(packer, VIV_TP_ALU_HORZ_PROC_STRIDE, tp->pool_size == 3 && tp->pool_step == 2);
    put(packer, VIV_TP_ALU_VERT_PROCESSING, processing);
    put(packer, VIV_TP_ALU_VERT_PROC_COUNT, tp->pool_size - 1);
    put(packer, VIV_TP_ALU_VERT_PROC_STRIDE, tp->pool_size == 3 && tp->pool_step == 2);
    put(packer, VIV_TP_ALU_LOAD_PWL_LUT_GLOBAL_MEM, 1);
    put(packer, VIV_TP_IN_IMAGE_BORDER_MODE, 1);
    put(packer, VIV_TP_OUT_LOOP_1_RESET, 1);
    put(packer, VIV_TP_OUT_LOOP_2_RESET, 1);
}

int viv_descriptor_tp(const struct viv_plan *plan, const struct viv_tp *tp, uint32_t index, uint32_t *words)
{
    struct packer packer = {.words = words, .fields = viv_tp_fields};
    viv_fields_idle(words, VIV_TP_WORDS, viv_tp_fields, VIV_TP_FIELD_COUNT);
    put_scan(&packer, &tp->parts[index]);
    put_loops(&packer, &tp->parts[index]);
    put(&packer, VIV_TP_OUT_LOOP_1_RESET, tp->reshuffle);
    put(&packer, VIV_TP_OUT_LOOP_3_RESET, tp->reshuffle);
    if (tp->pool_size)
        put_pool(&packer, tp);
    put(&packer, VIV_TP_NO_FLUSH, index + 1 < tp->part_count);
    put(&packer, VIV_TP_IN_ZP, tp->zero_point);
    put(&packer, VIV_TP_OUT_ZP, tp->zero_point);
    return packed(plan, &packer, "TP");
}
