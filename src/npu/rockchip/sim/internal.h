/* SPDX-License-Identifier: MIT */
/* What the simulator's files share. */
#ifndef MICA_ROCKCHIP_SIM_INTERNAL_H
#define MICA_ROCKCHIP_SIM_INTERNAL_H

#include "npu/npu.h"
#include "npu/rockchip/hw/chips.h"
#include "npu/rockchip/hw/registers.h"
#include "npu/rockchip/hw/timing.h"

/* Memory that keeps its size between tasks. */
struct rk_buffer {
    uint8_t *data;
    size_t size;
};

/* At least `size` bytes, contents undefined; false when memory runs out. */
bool rk_buffer_reserve(struct rk_buffer *buffer, size_t size);

/* The look-up tables of the DPU; they keep their entries from one task to the next. */
#define RK_LUT_ENTRIES 513
enum { RK_LUT_LE, RK_LUT_LO, RK_LUT_TABLES };
struct rk_lut {
    int16_t table[RK_LUT_TABLES][RK_LUT_ENTRIES];
    bool loaded[RK_LUT_TABLES]; /* to the last entry, in this submission */
    bool writing;
    uint32_t id, next; /* where the next access writes */
};

/* What the CBUF holds from the last convolution of the submission, for tasks that reuse it. */
struct rk_cbuf {
    bool valid;
    uint64_t weights, weight_bytes;
    uint32_t weight_banks, data_banks;
    uint64_t feature;
    uint32_t width, rows, channels;
};

/* The pointer register of a block. */
struct rk_pointer {
    uint8_t write, execute;          /* group */
    bool write_flips, execute_flips; /* after every task */
};

struct rk_weights_cache;
struct rk_kernels;

struct rk_sim {
    const struct rk_chip *chip;
    struct mica_device_memory *memory;
    struct mica_threads *threads;
    struct mica_log *log;
    double clock_mhz;
    uint64_t cycle_limit; /* of one submission: the kernel's 500 ms at the default clock */
    /* Two shadow groups of every block; the state of the pointers (specification, section 3). */
    struct rk_registers group[2];
    struct rk_pointer pointer[RK_BLOCK_COUNT];
    struct rk_registers registers;     /* what the blocks of the running task execute */
    uint32_t known[RK_REGISTER_WORDS]; /* bits of each register that aren't reserved */
    uint64_t cycles_left;              /* in the running submission */
    struct rk_lut lut;
    struct rk_cbuf cbuf;
    struct rk_buffer coefficients;    /* of the running task, an entry a channel (dpu_job.c) */
    bool pool_noted;                  /* that mainline would time out */
    struct rk_weights_cache *weights; /* conv.c's */
    struct rk_buffer image, lanes;    /* work space of conv.c */
};

/* Host pointer to device memory; NULL with a message that names `what` when the device can't go there. */
void *rk_sim_at(struct rk_sim *sim, uint64_t address, uint64_t size, unsigned access, const char *what);

/* ---- the output stage (dpu.c): what happens to accumulators ----------------- */

struct rk_dpu; /* registers resolved and checked, operand and destination pointers (dpu.h) */

/*
 * Takes accumulators of pixels [first_pixel, + pixels) (row-major over the task's output) and channels
 * [first_channel, + lanes), a multiple of the atom, at most 64 lanes, through BS, BN, EW and OUT into memory.
 * acc: [pixels][lanes]. sum: sums of the inputs of the window; direct: [pixels], depthwise: [pixels][lanes];
 * NULL: CORE computed none. Threads may call it at the same time for different pixels or channels.
 */
void rk_dpu_block(const struct rk_dpu *dpu, uint32_t first_pixel, uint32_t pixels, uint32_t first_channel,
                  uint32_t lanes, const int32_t *acc, const int32_t *sum);

/* ---- the convolution pipeline (conv.c, weights.c, kernels*.c) --------------- */

/* What CNA and CORE were told, resolved from registers and checked against each other by job.c. */
struct rk_conv {
    bool depthwise;
    bool packed; /* pixel mode: NHWC bytes of `real_channels` (1 to 4) a pixel */
    uint32_t real_channels;
    uint8_t flip;     /* that bytes of features are XORed with on their way in: 0x80 of unsigned ones */
    uint64_t feature; /* address of the first row of surface 0 */
    uint64_t line_bytes, surface_bytes; /* from row to row, from surface to surface */
    uint32_t in_w, in_h;                /* pixels that are fetched; all outside is padding */
    uint32_t channels;                  /* that the weights have lanes for: multiple of the atom */
    uint32_t kernel_w, kernel_h, stride_x, stride_y, dilation_x, dilation_y;
    uint32_t spread_x, spread_y; /* transposed convolution: input pixels stand so far apart; else 1 */
    int32_t pad_left, pad_top;
    int8_t pad[2]; /* padding value: of direct convolutions [0]; of depthwise lanes by section 8's rule */
    uint32_t out_w, out_h;
    uint32_t kernels;      /* output channels with weights: further ones see weights of 0 */
    uint32_t out_channels; /* that go through the output stage, multiple of the atom, <= the programmed */
    uint64_t weights;      /* address */
    uint64_t weight_bytes;
    bool window_sums;  /* CORE computes them (QD_EN) */
    uint32_t truncate; /* right shift of accumulators */
};

/* Runs one convolution into the output stage. -EFAULT, -EIO (a shape that can't be), -ENOMEM: nothing got there. */
int rk_conv_run(struct rk_sim *sim, const struct rk_conv *conv, const struct rk_dpu *dpu);
/* Frees what conv.c keeps in the simulator. */
void rk_conv_finish(struct rk_sim *sim);

#endif
