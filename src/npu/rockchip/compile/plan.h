/* SPDX-License-Identifier: MIT */
/*
 * The compiler's own picture of a program, between the graph and a
 * mica_program: storages (pieces of memory, not yet placed), where each
 * tensor's value is, and tasks whose register words are final but for
 * addresses. lower_*.c fill it, memory.c places the storages, emit.c makes
 * the mica_program.
 */
#ifndef MICA_ROCKCHIP_COMPILE_PLAN_H
#define MICA_ROCKCHIP_COMPILE_PLAN_H

#include "npu/npu.h"
#include "npu/rockchip/hw/chips.h"
#include "npu/rockchip/hw/registers.h"
#include "npu/rockchip/hw/timing.h"

#define RK_NONE UINT32_MAX

/* Any tensor as an image: the last dimension is channels, the one before columns, all others rows. */
struct rk_shape {
    uint32_t w, h, c;
};

struct rk_shape rk_shape_of(const struct mica_tensor *tensor);

/* A byte of a storage. */
struct rk_ref {
    uint32_t storage; /* RK_NONE: nothing */
    uint64_t offset;
};

/*
 * A piece of memory with one address. `data` (owned): constant contents.
 * A storage that was claimed lives at a fixed place inside its parent
 * (slices of a concatenation or a split).
 */
struct rk_storage {
    uint64_t size;
    uint8_t *data;
    uint32_t parent; /* RK_NONE: stands alone */
    uint64_t parent_offset;
    bool external;        /* the host reads or writes it: a program buffer of its own */
    unsigned access;      /* what tasks do with it, enum mica_access */
    uint32_t first, last; /* tasks that use it; first RK_NONE: none does */
    uint32_t buffer;      /* program buffer and place in it, set by memory.c */
    uint64_t offset;
};

/*
 * A feature cube (specification, section 4): surfaces of `atom` channels, in each h rows of w pixels of
 * `atom` bytes, rows `line` bytes apart, surfaces `surface` bytes apart, both multiples of the atom.
 * Values are in the stored domain: signed, uint8 tensors as value - 128.
 */
struct rk_cube {
    struct rk_ref at;
    struct rk_shape shape;
    uint64_t line, surface;
    bool packed; /* instead: dense NHWC bytes, 1 to 4 channels, for the CNA's pixel mode */
};

/* Memory whose address a word of a task has. */
struct rk_use {
    uint32_t word; /* index in the task's words */
    struct rk_ref ref;
    unsigned access; /* enum mica_access */
};

/* One register program. Words have no tail yet: emit.c appends link, amount, barrier and start. */
struct rk_task {
    uint32_t op;  /* graph index */
    char unit[4]; /* "CNV", "DW", "EW", "LUT": for reports */
    uint64_t macs;
    uint32_t start;  /* enum rk_start bits */
    uint64_t *words; /* owned */
    uint32_t word_count;
    struct rk_use *uses; /* owned */
    uint32_t use_count;
    /* Tasks of one layer that compute pieces of one result and may run at the same time have one number, rising. */
    uint32_t layer;
    uint64_t compute_cycles, bytes; /* of the timing model; 0, 0: not known, then the storages' sizes count */
    bool follows; /* must run right behind the task before it, on the same core: it uses what that one left on chip */
};

/*
 * Where a tensor's value is. Mostly one cube. Else its bytes, in order, are those of several, which are
 * plan->pieces[first_piece], ...: all of one storage, all of which, as a row of pixels of one surface, is `cube` then.
 */
struct rk_value {
    struct rk_cube cube; /* at.storage RK_NONE: nowhere yet */
    uint32_t first_piece, piece_count;
};

struct rk_plan {
    const struct rk_chip *chip;
    const struct mica_partition *partition;
    const struct mica_graph *graph;
    struct mica_compile_options options;
    struct mica_threads *threads;
    struct mica_log *log;

    struct rk_storage *storages;
    uint32_t storage_count, storage_capacity;
    struct rk_task *tasks;
    uint32_t task_count, task_capacity;
    uint32_t layer_count;
    struct rk_value *values; /* per graph tensor */
    struct rk_cube *pieces;
    uint32_t piece_count, piece_capacity;
    uint64_t scratch_bytes, constant_bytes; /* this and the next set by memory.c */
    uint32_t external_count;
};

int rk_plan_init(struct rk_plan *plan, const struct mica_chip *chip, const struct mica_partition *partition,
                 const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log);
void rk_plan_finish(struct rk_plan *plan);

/* A new storage of `size` bytes that tasks write and read. */
int rk_plan_storage(struct rk_plan *plan, uint64_t size, struct rk_ref *ref);
/* Constant contents; takes `data` (malloc'ed) over, also when it fails. */
int rk_plan_constant(struct rk_plan *plan, uint8_t *data, uint64_t size, struct rk_ref *ref);

/* The storage without parent that `ref` lies in, and where. */
struct rk_ref rk_plan_resolve(const struct rk_plan *plan, struct rk_ref ref);
/*
 * Puts a storage at `offset` of `parent` for good: it is memory of the parent from then on. False, with nothing
 * done, when it has a place already, holds constants, or does not fit.
 */
bool rk_plan_claim(struct rk_plan *plan, uint32_t storage, uint32_t parent, uint64_t offset);
/*
 * Makes the memory at `ref` go on for `bytes`: what the engine fetches and nobody depends on must be the program's too.
 * Constants get zeros there.
 */
int rk_plan_reach(struct rk_plan *plan, struct rk_ref ref, uint64_t bytes);
/* Room for one more element of an array; NULL when memory runs out, the array is as before then. */
void *rk_plan_grow(void *array, uint32_t count, uint32_t *capacity, size_t size);

/* The zero point of a tensor in the stored domain; 0 for one without quantization. */
int32_t rk_stored_zero(const struct mica_tensor *tensor);
/* The cube of a shape whose rows and surfaces lie dense from `at` on. */
struct rk_cube rk_cube_dense(const struct rk_plan *plan, struct rk_ref at, struct rk_shape shape);
/* Makes the value of an input of the partition, which the host writes: its bytes in the order of an image `shape`. */
int rk_plan_input(struct rk_plan *plan, uint32_t tensor, struct rk_shape shape, bool packed);

/* A dense cube of a shape in a storage of its own (not a tensor's: for intermediate steps of one operation). */
int rk_plan_cube(struct rk_plan *plan, struct rk_shape shape, struct rk_cube *cube);
/* The value of a tensor that is computed already, an input of the partition, or a constant (then a cube is made of it).
 */
int rk_plan_value(struct rk_plan *plan, uint32_t tensor, struct rk_cube *cube);
/* Where the value of a tensor that is about to be computed shall go. */
int rk_plan_result(struct rk_plan *plan, uint32_t tensor, struct rk_cube *cube);
/* The same, in the form that another tensor's value has. */
int rk_plan_result_like(struct rk_plan *plan, uint32_t tensor, uint32_t other, struct rk_cube *cube);
/* One piece more, of the value whose last one was made before it. */
int rk_plan_piece(struct rk_plan *plan, struct rk_cube cube);
/* Bytes of a dense cube's storage. */
uint64_t rk_cube_bytes(const struct rk_plan *plan, struct rk_shape shape);

/* Channels [first, first + count) of a cube, `first` a multiple of the atom; rows [first, first + count). */
struct rk_cube rk_cube_channels(const struct rk_plan *plan, struct rk_cube cube, uint32_t first, uint32_t count);
struct rk_cube rk_cube_rows(const struct rk_plan *plan, struct rk_cube cube, uint32_t first, uint32_t count);

/*
 * Appends a task: registers in the order of its kind. `addresses` names the address registers, each of which must
 * be in the program. The new task has a layer number of its own and does not follow; who makes pieces of one
 * result gives them the number of the first. The pointer (`task` may be NULL) lives until the next call.
 */
struct rk_address {
    uint16_t offset; /* of the register */
    struct rk_ref ref;
    unsigned access;
};
int rk_plan_task(struct rk_plan *plan, uint32_t op, const char *unit, uint64_t macs, enum rk_program_kind kind,
                 uint32_t start, const struct rk_registers *registers, const struct rk_address *addresses,
                 uint32_t address_count, struct rk_task **task);
/* The same with words that are made by hand (no tail); copies them. */
int rk_plan_raw_task(struct rk_plan *plan, uint32_t op, const char *unit, uint64_t macs, uint32_t start,
                     const uint64_t *words, uint32_t word_count, const struct rk_address *addresses,
                     uint32_t address_count, struct rk_task **task);

/* ---- one convolution, whatever graph operation it comes from (weighted.c) -- */

/*
 * out = clamp(out_zero + sum((x - in_zero) * (w - weight_zero[o])) * factor[o] + bias) in the stored domain, on one
 * or more tasks. Pads with in_zero; bottom and right padding follow from out.shape.
 * Arrays are borrowed for the call.
 */
struct rk_weighted {
    uint32_t op;   /* graph index, for reports */
    uint64_t macs; /* of the graph's operation, spread over the tasks */
    struct rk_cube in, out;
    bool depthwise; /* as many channels in as out, each for itself */
    uint32_t kernel_w, kernel_h, stride_x, stride_y, dilation_x, dilation_y;
    int32_t pad_left, pad_top;
    uint32_t spread_x, spread_y; /* transposed: pixels of the input stand so far apart, with in_zero between; else 1 */
    const int8_t *weights;       /* stored domain: [o][kh][kw][i], depthwise [kh][kw][c]; not flipped by the callee */
    const int32_t *weight_zero;  /* per output channel, in [-128, 127] */
    const int32_t *bias;         /* per output channel, in input scale x weight scale; NULL: 0 */
    const double *factor;        /* per output channel: input scale x weight scale / output scale */
    int32_t in_zero, out_zero;   /* stored domain */
    int32_t min, max;            /* of the result, stored domain: [-128, 127] or what an activation leaves */
    const struct rk_addend *addend; /* what comes on top (fusion.h); NULL: nothing */
};

/* NULL, or why this chip can't: a sentence. Looks at everything but the cubes' addresses and the arrays' contents. */
const char *rk_weighted_problem(const struct rk_chip *chip, const struct rk_weighted *weighted);
/* NULL, or why these factors can't be had exactly enough; `bound`, if not NULL, gets the largest error in steps of
 * the output beyond the engine's own rounding. */
const char *rk_factors_problem(const double *factor, uint32_t count, double *bound);
/* With an addend it may be RK_UNFUSED. */
int rk_lower_weighted(struct rk_plan *plan, const struct rk_weighted *weighted);

/* ---- element-wise tasks (elementwise.c) ------------------------------------ */

/* out[i] = table[in[i] as unsigned byte of the stored domain + 128], both in the stored domain. */
int rk_lower_table(struct rk_plan *plan, uint32_t op, struct rk_cube in, struct rk_cube out, const int8_t table[256]);

enum rk_elementwise_kind {
    RK_ELEMENTWISE_ADD,
    RK_ELEMENTWISE_SUB,
    RK_ELEMENTWISE_MUL,
    RK_ELEMENTWISE_MAX,
    RK_ELEMENTWISE_MIN,
};

struct rk_elementwise {
    uint32_t op;
    enum rk_elementwise_kind kind;
    struct rk_cube a, b, out; /* same shape */
    double scale_a, scale_b, scale_out;
    int32_t zero_a, zero_b, zero_out; /* stored domain */
    int32_t min, max;
};

int rk_lower_elementwise(struct rk_plan *plan, const struct rk_elementwise *elementwise);

/* ---- one function an operation, and the list of them (lower.c) ------------- */

/* Why the chip can't run an operation: -ENOTSUP and a sentence; 0: it can. */
typedef int rk_supports_op(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason,
                           size_t size);
typedef int rk_lower_op(struct rk_plan *plan, uint32_t op);

rk_supports_op rk_supports_conv, rk_supports_depthwise, rk_supports_fully_connected, rk_supports_transpose_conv;
rk_lower_op rk_lower_conv, rk_lower_depthwise, rk_lower_fully_connected, rk_lower_transpose_conv;
/* A convolution and an addition behind it, whose result tensor `out` is; RK_UNFUSED: it can't be. */
int rk_lower_conv_added(struct rk_plan *plan, uint32_t op, const struct rk_addend *addend, uint32_t out);

rk_supports_op rk_supports_reshape;
rk_lower_op rk_lower_reshape;

/* ADD, SUB, MUL, MAXIMUM, MINIMUM, with constants and broadcasting. */
rk_supports_op rk_supports_elementwise;
rk_lower_op rk_lower_elementwise_op;
/* Every operation that makes one value of one: activations, QUANTIZE between 8-bit types. */
rk_supports_op rk_supports_lookup;
rk_lower_op rk_lower_lookup;
rk_supports_op rk_supports_average_pool, rk_supports_max_pool, rk_supports_mean;
rk_lower_op rk_lower_average_pool, rk_lower_max_pool, rk_lower_mean;
/* REDUCE_MAX, REDUCE_MIN. */
rk_supports_op rk_supports_extreme;
rk_lower_op rk_lower_extreme;
rk_supports_op rk_supports_concatenation, rk_supports_split, rk_supports_slice, rk_supports_pad, rk_supports_resize,
    rk_supports_depth_space;
rk_supports_op rk_supports_prelu, rk_supports_squares;
rk_lower_op rk_lower_prelu, rk_lower_squares;
/* GATHER, GATHER_ND, REVERSE_V2, MIRROR_PAD. */
rk_supports_op rk_supports_choice, rk_supports_unpack, rk_supports_transpose;
rk_lower_op rk_lower_choice, rk_lower_unpack, rk_lower_transpose;
rk_lower_op rk_lower_concatenation, rk_lower_split, rk_lower_slice, rk_lower_pad, rk_lower_resize, rk_lower_depth_space;

/* All operations of the partition. */
int rk_lower(struct rk_plan *plan);
/* The family's supports(). */
int rk_supports(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason, size_t size);
/* The table of what it takes (operations.c): a line a row, to be kept when rk_operation_of() changes. */
const struct mica_operation_support *rk_operations(const struct mica_chip *chip, size_t *count);
/* What an operation costs when it is compiled alone (describe.c). */
int rk_describe(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op,
                const struct mica_compile_options *options, struct mica_way *way);

int rk_supports_graph_op(const struct rk_chip *chip, const struct mica_graph *graph, uint32_t op, char *reason,
                         size_t size);

/* Places storages (memory.c) and makes the mica_program (emit.c). */
int rk_memory_place(struct rk_plan *plan);
int rk_emit(struct rk_plan *plan, struct mica_program **program);

/* The family's compile(). */
int rk_compile(const struct mica_chip *chip, const struct mica_partition *partition,
               const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log,
               struct mica_program **program);

#endif
