/* SPDX-License-Identifier: MIT */
/*
 * The compiler's own picture of a program, between the graph and the words:
 * storages (pieces of memory, not yet placed), jobs on references into them,
 * and the weights that the NN jobs need. lower.h fills it, memory.c places
 * the storages, emit.c turns it into a mica_program.
 */
#ifndef MICA_VIVANTE_COMPILE_PLAN_H
#define MICA_VIVANTE_COMPILE_PLAN_H

#include "npu/npu.h"
#include "npu/vivante/compile/coef_v7.h"
#include "npu/vivante/compile/weights.h"
#include "npu/vivante/hw/chips.h"
#include "npu/vivante/hw/timing.h"

#define VIV_NONE UINT32_MAX
/*
 * What another job costs beyond the model's own fixed cycles, in microseconds.
 * The true figure is unknown: the model has 3.1, published whole-network times
 * bound it by 40 (timing.md, section 6); 10 is the middle of the studied cases.
 */
#define VIV_EXTRA_JOB_US 10.0
#define VIV_MAX_TP_PARTS 8 /* more than any chip has TP cores */

/*
 * A piece of memory with one address. A storage that was claimed by another
 * one lives at a fixed place inside it (concatenation slices, the two inputs
 * of an addition).
 */
struct viv_storage {
    uint64_t size;
    uint32_t parent; /* VIV_NONE: stands alone */
    uint64_t parent_offset;
    bool is_input; /* holds a partition input as the host writes it */
    uint8_t *data; /* a constant's bytes, `size` of them, owned; NULL: what jobs write. Its root is external. */
    /* The rest counts for storages without a parent only. */
    bool external;        /* gets a program buffer of its own: the host reads or writes it, or it has constants */
    unsigned access;      /* what jobs do with it, enum mica_access */
    uint32_t first, last; /* jobs that use it; first UINT32_MAX: none does */
    enum viv_place place; /* memory that it is in; `offset` is set then */
    uint32_t buffer;      /* program buffer and place in it, set by viv_memory_place() */
    uint64_t offset;
};

/* Index of the chip's window to such a memory, MICA_ON_CHIP_WINDOWS: it has none. AXI SRAM comes first where it is. */
static inline unsigned viv_place_window(const struct viv_chip *chip, enum viv_place place)
{
    unsigned vip = chip->on_chip[1].size ? 1 : 0;
    if (place == VIV_IN_AXI_SRAM && vip)
        return 0;
    return place == VIV_IN_VIP_SRAM && chip->on_chip[vip].size ? vip : MICA_ON_CHIP_WINDOWS;
}

/* A byte of a storage. */
struct viv_ref {
    uint32_t storage; /* VIV_NONE: nothing */
    uint64_t offset;
};

/* Output tile and superblocks of an NN job, and what of it the on-chip SRAM keeps. */
struct viv_tile {
    uint32_t x, y, kernels_per_core;
    bool image_cached, kernel_cached;
    uint64_t cycles; /* what the timing model says */
};

/* One NN job: everything its descriptor says, in the descriptor's terms. */
struct viv_nn {
    struct viv_ref in, out;
    uint32_t in_w, in_h, in_c;
    uint32_t in_x_stride, in_y_stride; /* bytes per row, rows per plane */
    uint32_t kernel_w, kernel_h;
    int32_t x_offset, y_offset;
    uint32_t out_w, out_h, out_c; /* before pooling */
    uint32_t out_x_stride, out_y_stride;
    bool first_pixel; /* pooling mode 3: the top left of each 2x2 is kept */
    bool relu;
    bool depthwise; /* in hardware: kernel k sees plane k only */
    uint8_t in_zero_point, out_zero_point;
    uint32_t post_multiplier, post_shift;
    struct viv_tile tile;
    uint64_t stream_bytes; /* what the coefficients are expected to take, and how dense they are: set with the tile */
    double density;
    uint32_t sram_bytes; /* on-chip memory that this job's caches may use, up to this offset; 0: all */
    enum viv_place in_place, out_place;
    uint32_t weights;      /* index in the plan */
    uint32_t first_kernel; /* of the weights: the job computes out_c of their kernels */
    uint32_t first_place;  /* of weights with an order: the channel that is plane 0 of `in` or `out` */
    struct viv_coefficients coefficients;
};

/* What one TP core scans and where it writes (specification, section 4.1). */
struct viv_tp_part {
    uint64_t in_offset, out_offset; /* added to the job's references */
    uint32_t x_size, y_size, z_size, stride, slice;
    int32_t window_x, window_y, window_x_end, window_y_end; /* inclusive */
    uint32_t tile_x, tile_y;
    uint32_t tile_x_step, tile_y_step; /* 0: the tile's size */
    struct {
        uint32_t inc, count;
    } loop[6];
    uint32_t loop_6_inc;
};

struct viv_tp {
    struct viv_ref in, out;
    uint8_t zero_point;
    bool reshuffle; /* resets loops 1 and 3, and does not mark its parts as split (specification, sections 2.3, 4.2) */
    uint32_t pool_size, pool_step; /* maximum of windows: 2 or 3, step 1 or 2; 0: no pooling */
    uint32_t part_count;
    struct viv_tp_part parts[VIV_MAX_TP_PARTS];
};

struct viv_job {
    bool is_nn;
    uint32_t op; /* graph index */
    uint64_t macs;
    union {
        struct viv_nn nn;
        struct viv_tp tp;
    };
};

/* The forms in which a tensor's value exists. Equal references when both layouts are the same bytes. */
struct viv_value {
    struct viv_ref nhwc, planar;
    uint32_t reshape_of; /* tensor with the same NHWC bytes; VIV_NONE: none */
    uint32_t op;         /* graph index of the operation that computes it; VIV_NONE: an input or not yet */
};

/* Results of the operation that is being lowered, to be clamped where no job's own clamp is (clamp.c). */
struct viv_clamp {
    bool pending;
    struct viv_ref from, to;
    uint64_t bytes;
    uint8_t zero, low, high; /* of the output */
};

#define VIV_BATCH_INPUTS 4u

/* A graph with one operation more, which has one image of what another has several of (batch.h). */
struct viv_batch_graph {
    struct mica_graph graph; /* owns its arrays of tensors and operations; no tensors: there is no such graph */
    int32_t inputs[VIV_BATCH_INPUTS], output;
};

struct viv_plan {
    const struct viv_chip *chip;
    const struct mica_partition *partition;
    const struct mica_graph *graph; /* the partition's, or `batch` */
    struct viv_batch_graph batch;
    struct mica_compile_options options;
    struct mica_threads *threads;
    struct mica_log *log;

    struct viv_storage *storages;
    uint32_t storage_count, storage_capacity;
    struct viv_job *jobs;
    uint32_t job_count, job_capacity;
    struct viv_weights **weights;
    uint32_t weights_count, weights_capacity;
    struct viv_value *values; /* per graph tensor */
    struct viv_clamp clamp;
    char way[160]; /* how the last operation with several ways is computed, and how far off TFLite it may be */
    uint32_t off;
    uint64_t scratch_bytes;
    struct mica_on_chip on_chip[MICA_ON_CHIP_WINDOWS]; /* used ranges, device addresses */
};

int viv_plan_init(struct viv_plan *plan, const struct viv_chip *chip, const struct mica_partition *partition,
                  struct mica_threads *threads, struct mica_log *log);
void viv_plan_finish(struct viv_plan *plan);

/* A new storage of `size` bytes; *ref gets its first byte. */
int viv_plan_storage(struct viv_plan *plan, uint64_t size, struct viv_ref *ref);

/* The same with contents, *data: zeros that the caller fills in. No job may write them. */
int viv_plan_constant(struct viv_plan *plan, uint64_t size, struct viv_ref *ref, uint8_t **data);

/*
 * Puts the storage of `ref` at `offset` of `parent` for good. False when that
 * is not possible, because `ref` does not begin it, it is larger than `size`,
 * or it has a place already.
 */
bool viv_plan_claim(struct viv_plan *plan, struct viv_ref ref, uint64_t size, uint32_t parent, uint64_t offset);

/* The storage without parent that `ref` lies in, and where. */
struct viv_ref viv_plan_resolve(const struct viv_plan *plan, struct viv_ref ref);

/* What a job whose tile is chosen takes, by the timing model (describe.c). */
double viv_job_cycles(const struct viv_chip *chip, const struct viv_job *job);

/* A new zeroed job; the pointer lives until the next call. NULL when memory runs out. */
struct viv_job *viv_plan_job(struct viv_plan *plan, uint32_t op, bool is_nn);

/* New zeroed weights, owned by the plan, that stay where they are; *index names them. NULL when memory runs out. */
struct viv_weights *viv_plan_weights(struct viv_plan *plan, uint32_t *index);

#endif
