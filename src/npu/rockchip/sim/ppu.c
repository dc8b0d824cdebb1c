/* SPDX-License-Identifier: MIT */
/* PPU and PPU_RDMA: pooling (specification, section 13). */
#include <errno.h>

#include "npu/rockchip/sim/dpu.h"
#include "npu/rockchip/sim/job.h"
#include "util/checked.h"

#define INT8 0u
#define RECIPROCAL 65536u /* of 1 */
#define PAD_BITS 19u      /* of a padding value */

enum method { AVERAGE, MAX, MIN };

static const struct rk_rule rules[] = {
    {RK_PPU_OPERATION_MODE_CFG_FLYING_MODE, 1, "pooling that isn't a task of its own is not simulated"},
    {RK_PPU_OPERATION_MODE_CFG_INDEX_EN, 0, "positions of maxima are not simulated"},
    {RK_PPU_OPERATION_MODE_CFG_NOTCH_ADDR, 0, "what it does is not known"},
    {RK_PPU_OPERATION_MODE_CFG_USE_CNT, 0, "what it does is not known"},
    {RK_PPU_DATA_FORMAT_DPU_FLYIN, 0, "input from the DPU is not simulated"},
    {RK_PPU_DATA_FORMAT_PROC_PRECISION, INT8, "only int8 is simulated"},
    {RK_PPU_MISC_CTRL_SURF_LEN, 0, "what it does is not known"},
    {RK_PPU_MISC_CTRL_MC_SURF_OUT, 0, "what it does is not known"},
    {RK_PPU_MISC_CTRL_NONALIGN, 0, "what it does is not known"},
};

struct pool {
    enum method method;
    uint32_t atom, surfaces;
    uint32_t in_w, in_h, out_w, out_h;
    uint32_t kernel_w, kernel_h, stride_x, stride_y, left, top, right, bottom;
    int32_t pad;         /* what average takes from outside */
    bool odd_reciprocal; /* 65536 / kernel size isn't whole in both directions: halves go towards zero */
    const uint8_t *in;
    uint8_t *out;
    uint64_t in_line, in_surface, out_surface;
};

static int decode_shape(const struct rk_task *task, struct pool *pool)
{
    uint32_t channels = RK_GET(task, PPU_DATA_CUBE_OUT_CHANNEL_CUBE_OUT_CHANNEL) + 1;
    pool->atom = task->sim->chip->atom;
    pool->surfaces = mica_cdiv(channels, pool->atom);
    pool->in_w = RK_GET(task, PPU_DATA_CUBE_IN_WIDTH_CUBE_IN_WIDTH) + 1;
    pool->in_h = RK_GET(task, PPU_DATA_CUBE_IN_HEIGHT_CUBE_IN_HEIGHT) + 1;
    pool->out_w = RK_GET(task, PPU_DATA_CUBE_OUT_WIDTH_CUBE_OUT_WIDTH) + 1;
    pool->out_h = RK_GET(task, PPU_DATA_CUBE_OUT_HEIGHT_CUBE_OUT_HEIGHT) + 1;
    const struct {
        enum rk_field_id field;
        uint32_t value;
    } expected[] = {
        {RK_PPU_DATA_CUBE_IN_CHANNEL_CUBE_IN_CHANNEL, channels - 1},
        {RK_PPU_RDMA_RDMA_CUBE_IN_WIDTH_CUBE_IN_WIDTH, pool->in_w - 1},
        {RK_PPU_RDMA_RDMA_CUBE_IN_HEIGHT_CUBE_IN_HEIGHT, pool->in_h - 1},
        {RK_PPU_RDMA_RDMA_CUBE_IN_CHANNEL_CUBE_IN_CHANNEL, channels - 1},
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        if (rk_task_expect(task, expected[i].field, expected[i].value, "PPU's cubes say"))
            return -EIO;
    /* 1 says 8 bits on RK3588; on RK356x it holds 0. */
    return rk_task_expect(task, RK_PPU_RDMA_RDMA_DATA_FORMAT_IN_PRECISION, task->generation == RK_GENERATION_RK3588,
                          "8 bits are");
}

static int decode_window(const struct rk_task *task, struct pool *pool)
{
    pool->kernel_w = RK_GET(task, PPU_POOLING_KERNEL_CFG_KERNEL_WIDTH) + 1;
    pool->kernel_h = RK_GET(task, PPU_POOLING_KERNEL_CFG_KERNEL_HEIGHT) + 1;
    pool->stride_x = RK_GET(task, PPU_POOLING_KERNEL_CFG_KERNEL_STRIDE_WIDTH) + 1;
    pool->stride_y = RK_GET(task, PPU_POOLING_KERNEL_CFG_KERNEL_STRIDE_HEIGHT) + 1;
    pool->left = RK_GET(task, PPU_POOLING_PADDING_CFG_PAD_LEFT);
    pool->top = RK_GET(task, PPU_POOLING_PADDING_CFG_PAD_TOP);
    pool->right = RK_GET(task, PPU_POOLING_PADDING_CFG_PAD_RIGHT);
    pool->bottom = RK_GET(task, PPU_POOLING_PADDING_CFG_PAD_BOTTOM);
    if ((pool->out_w - 1) * pool->stride_x + pool->kernel_w > pool->left + pool->in_w + pool->right)
        return rk_task_refuse(task, RK_PPU_DATA_CUBE_OUT_WIDTH_CUBE_OUT_WIDTH, "windows would go over the right edge");
    if ((pool->out_h - 1) * pool->stride_y + pool->kernel_h > pool->top + pool->in_h + pool->bottom)
        return rk_task_refuse(task, RK_PPU_DATA_CUBE_OUT_HEIGHT_CUBE_OUT_HEIGHT, "windows would go over the bottom");
    return 0;
}

static int decode_method(const struct rk_task *task, struct pool *pool)
{
    uint32_t method = RK_GET(task, PPU_OPERATION_MODE_CFG_POOLING_METHOD);
    if (method > MIN)
        return rk_task_refuse(task, RK_PPU_OPERATION_MODE_CFG_POOLING_METHOD,
                              "only 0 (average), 1 (max) and 2 (min) are known");
    pool->method = (enum method)method;
    pool->odd_reciprocal = RECIPROCAL % pool->kernel_w != 0 || RECIPROCAL % pool->kernel_h != 0;
    uint32_t pad = RK_GET(task, PPU_PADDING_VALUE_1_CFG_PAD_VALUE_0), sign = 1u << (PAD_BITS - 1);
    pool->pad = (int32_t)((pad & (2 * sign - 1)) ^ sign) - (int32_t)sign;
    if (pool->method != AVERAGE)
        return 0;
    int result = rk_task_expect(task, RK_PPU_RECIP_KERNEL_WIDTH_RECIP_KERNEL_WIDTH, RECIPROCAL / pool->kernel_w,
                                "the kernel's width makes it");
    return result ? result
                  : rk_task_expect(task, RK_PPU_RECIP_KERNEL_HEIGHT_RECIP_KERNEL_HEIGHT, RECIPROCAL / pool->kernel_h,
                                   "the kernel's height makes it");
}

static int decode_memory(struct rk_task *task, struct pool *pool)
{
    uint64_t in = RK_GET_BYTES(task, PPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR);
    uint64_t out = RK_GET_BYTES(task, PPU_DST_BASE_ADDR_DST_BASE_ADDR);
    pool->in_line = RK_GET_BYTES(task, PPU_RDMA_RDMA_SRC_LINE_STRIDE_SRC_LINE_STRIDE);
    pool->in_surface = RK_GET_BYTES(task, PPU_RDMA_RDMA_SRC_SURF_STRIDE_SRC_SURF_STRIDE);
    pool->out_surface = RK_GET_BYTES(task, PPU_DST_SURF_STRIDE_DST_SURF_STRIDE);
    uint64_t in_bytes = (pool->in_h - 1) * pool->in_line + (uint64_t)pool->in_w * pool->atom;
    uint64_t out_bytes = (uint64_t)pool->out_w * pool->out_h * pool->atom;
    for (uint32_t i = 0; i < pool->surfaces; i++)
        if (!rk_sim_at(task->sim, in + i * pool->in_surface, in_bytes, MICA_ACCESS_READ, "input of the PPU") ||
            !rk_sim_at(task->sim, out + i * pool->out_surface, out_bytes, MICA_ACCESS_WRITE, "output of the PPU"))
            return -EFAULT;
    if (pool->surfaces > 1 && pool->out_surface < out_bytes)
        return rk_task_refuse(task, RK_PPU_DST_SURF_STRIDE_DST_SURF_STRIDE, "surfaces of the output would overlap");
    pool->in = task->sim->memory->base + in;
    pool->out = task->sim->memory->base + out;
    task->read_bytes += (uint64_t)pool->in_w * pool->in_h * pool->surfaces * pool->atom;
    task->write_bytes += out_bytes * pool->surfaces;
    int result = rk_task_aligned(task, RK_PPU_RDMA_RDMA_SRC_BASE_ADDR_SRC_BASE_ADDR);
    return result ? result : rk_task_aligned(task, RK_PPU_DST_BASE_ADDR_DST_BASE_ADDR);
}

/* ---- running it ----------------------------------------------------------- */

/* The part of a window that is inside the image, and how many of its positions are outside. */
struct window {
    uint32_t x0, x1, y0, y1, outside;
};

static uint32_t inside(int32_t position, uint32_t size)
{
    return position < 0 ? 0 : (uint32_t)position > size ? size : (uint32_t)position;
}

static struct window window_at(const struct pool *pool, uint32_t x, uint32_t y)
{
    int32_t left = (int32_t)(x * pool->stride_x) - (int32_t)pool->left;
    int32_t top = (int32_t)(y * pool->stride_y) - (int32_t)pool->top;
    struct window window = {
        .x0 = inside(left, pool->in_w),
        .x1 = inside(left + (int32_t)pool->kernel_w, pool->in_w),
        .y0 = inside(top, pool->in_h),
        .y1 = inside(top + (int32_t)pool->kernel_h, pool->in_h),
    };
    window.outside = pool->kernel_w * pool->kernel_h - (window.x1 - window.x0) * (window.y1 - window.y0);
    return window;
}

/* Rounds halves away from zero, but exact ones back where the reciprocal isn't, or to the even number. */
static int32_t average(const struct pool *pool, int32_t sum)
{
    int32_t n = (int32_t)(pool->kernel_w * pool->kernel_h), size = sum < 0 ? -sum : sum;
    int32_t quotient = (size + n / 2) / n;
    if (n % 2 == 0 && size % n == n / 2 && (pool->odd_reciprocal || quotient % 2 != 0))
        quotient--;
    return sum < 0 ? -quotient : quotient;
}

static int32_t take(const struct pool *pool, int32_t result, int32_t value)
{
    switch (pool->method) {
    case MAX:
        return value > result ? value : result;
    case MIN:
        return value < result ? value : result;
    default:
        return result + value;
    }
}

static void one_pixel(const struct pool *pool, const uint8_t *in, uint32_t x, uint32_t y, uint8_t *out)
{
    struct window window = window_at(pool, x, y);
    int32_t start =
        pool->method == AVERAGE ? (int32_t)window.outside * pool->pad : (pool->method == MAX ? INT8_MIN : INT8_MAX);
    int32_t result[RK_MAX_ATOM];
    for (uint32_t i = 0; i < pool->atom; i++)
        result[i] = start;
    for (uint32_t row = window.y0; row < window.y1; row++)
        for (uint32_t column = window.x0; column < window.x1; column++) {
            const uint8_t *from = in + row * pool->in_line + (size_t)column * pool->atom;
            for (uint32_t i = 0; i < pool->atom; i++)
                result[i] = take(pool, result[i], (int8_t)from[i]);
        }
    for (uint32_t i = 0; i < pool->atom; i++)
        out[i] = (uint8_t)rk_saturate8(pool->method == AVERAGE ? average(pool, result[i]) : result[i]);
}

static void run_row(void *user, size_t index)
{
    const struct pool *pool = user;
    uint32_t surface = (uint32_t)(index / pool->out_h), y = (uint32_t)(index % pool->out_h);
    const uint8_t *in = pool->in + surface * pool->in_surface;
    uint8_t *out = pool->out + surface * pool->out_surface + (uint64_t)y * pool->out_w * pool->atom;
    for (uint32_t x = 0; x < pool->out_w; x++)
        one_pixel(pool, in, x, y, out + (size_t)x * pool->atom);
}

int rk_pool_task(struct rk_task *task, struct mica_job_report *report)
{
    struct pool pool = {0};
    int result = RK_CHECK(task, rules);
    result = result ? result : decode_shape(task, &pool);
    result = result ? result : decode_window(task, &pool);
    result = result ? result : decode_method(task, &pool);
    result = result ? result : decode_memory(task, &pool);
    /* A position of the window a cycle: inferred, no figure is public. It bounds what a program can ask of the host. */
    task->compute_cycles = (uint64_t)pool.out_w * pool.out_h * pool.surfaces * pool.kernel_w * pool.kernel_h;
    result = result ? result : rk_task_spend(task, report);
    if (!result)
        mica_parallel_for(task->sim->threads, (size_t)pool.surfaces * pool.out_h, run_row, &pool);
    return result;
}
