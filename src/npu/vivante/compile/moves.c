/* SPDX-License-Identifier: MIT */
/*
 * Operations that put bytes at other places: slices, splits, concatenations,
 * transposes, blocks to channels, nearest neighbours. Each is a few
 * boxes: loops over both tensors with a stride in each, whatever their layout.
 */
#include "npu/vivante/compile/compose.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "npu/vivante/compile/box.h"
#include "npu/vivante/compile/resize.h"

#define MAX_JOBS 1024u /* of one operation */

/* What is done with each box: a job is made, or jobs are counted. */
struct mover {
    const struct mica_graph *graph;
    const struct mica_op *op;
    bool in_planar, out_planar;
    struct viv_plan *plan; /* NULL: count */
    uint32_t op_index, jobs;
    const struct viv_ref *ins, *outs;
};

/* Bytes from one element to the next along each dimension, in one of the layouts. */
static void strides_of(const struct mica_tensor *tensor, bool planar, uint64_t *strides)
{
    struct viv_shape shape = viv_shape_of(tensor);
    uint64_t row = planar ? shape.w : (uint64_t)shape.w * shape.c;
    for (uint32_t i = tensor->rank; i-- > 0;) {
        uint32_t behind = tensor->rank - 1 - i;
        if (behind == 0) {
            strides[i] = planar ? (uint64_t)shape.w * shape.h : 1;
        } else if (behind == 1) {
            strides[i] = planar ? 1 : shape.c;
        } else {
            strides[i] = row;
            row *= (uint32_t)tensor->dims[i];
        }
    }
}

static int move(struct mover *mover, uint32_t in, uint32_t out, struct viv_box *box)
{
    if (!mover->plan) {
        mover->jobs += viv_box_jobs(box);
        return mover->jobs > MAX_JOBS ? -ENOTSUP : 0; /* enough is known */
    }
    struct viv_ref from = mover->ins[in], to = mover->outs[out];
    from.offset += box->in_offset;
    to.offset += box->out_offset;
    return viv_box_lower(mover->plan, mover->op_index, box, from, to, 0);
}

static const struct mica_tensor *input(const struct mover *mover, uint32_t i)
{
    return mica_op_input(mover->graph, mover->op, i);
}

static const struct mica_tensor *output(const struct mover *mover, uint32_t i)
{
    return mica_op_output(mover->graph, mover->op, i);
}

/* ---- the operations ------------------------------------------------------------ */

/* Dimensions of more than one element come in the same order on both sides. */
static void match(const struct mica_tensor *small, const uint64_t *small_strides, const int32_t *counts, uint32_t rank,
                  uint64_t *strides)
{
    uint32_t at = 0;
    for (uint32_t d = 0; d < rank; d++) {
        strides[d] = 0;
        if (counts[d] == 1)
            continue;
        while (at < small->rank && small->dims[at] == 1)
            at++;
        strides[d] = at < small->rank ? small_strides[at++] : 0;
    }
}

static int move_slice(struct mover *mover)
{
    const struct mica_slice *slice = &mover->op->slice;
    const struct mica_tensor *in = input(mover, 0), *out = output(mover, 0);
    uint64_t in_strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK], matched[MICA_MAX_RANK];
    struct viv_box box = {0};
    strides_of(in, mover->in_planar, in_strides);
    strides_of(out, mover->out_planar, out_strides);
    match(out, out_strides, slice->count, in->rank, matched);
    for (uint32_t d = 0; d < in->rank; d++) {
        box.in_offset += (uint64_t)slice->begin[d] * in_strides[d];
        viv_box_add(&box, (uint32_t)slice->count[d], in_strides[d] * (uint64_t)slice->step[d], matched[d]);
    }
    return move(mover, 0, 0, &box);
}

/* A piece of `whole` that has `count` elements along `axis`, from `start` on; `part` is all of it. */
static void piece(const struct mica_tensor *part, const uint64_t *part_strides, const uint64_t *whole_strides,
                  bool joining, struct viv_box *box)
{
    for (uint32_t d = 0; d < part->rank; d++)
        viv_box_add(box, (uint32_t)part->dims[d], joining ? part_strides[d] : whole_strides[d],
                    joining ? whole_strides[d] : part_strides[d]);
}

static int move_concatenation(struct mover *mover)
{
    const struct mica_tensor *out = output(mover, 0);
    uint64_t in_strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK], start = 0;
    strides_of(out, mover->out_planar, out_strides);
    int error = 0;
    for (uint32_t i = 0; !error && i < mover->op->input_count; i++) {
        const struct mica_tensor *in = input(mover, i);
        struct viv_box box = {.out_offset = start * out_strides[mover->op->axis]};
        strides_of(in, mover->in_planar, in_strides);
        piece(in, in_strides, out_strides, true, &box);
        start += (uint32_t)in->dims[mover->op->axis];
        error = move(mover, i, 0, &box);
    }
    return error;
}

static int move_split(struct mover *mover)
{
    uint32_t data = mica_op_data_input(mover->op);
    const struct mica_tensor *in = input(mover, data);
    uint64_t in_strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK], start = 0;
    strides_of(in, mover->in_planar, in_strides);
    int error = 0;
    for (uint32_t i = 0; !error && i < mover->op->output_count; i++) {
        const struct mica_tensor *out = output(mover, i);
        struct viv_box box = {.in_offset = start * in_strides[mover->op->axis]};
        strides_of(out, mover->out_planar, out_strides);
        piece(out, out_strides, in_strides, false, &box);
        start += (uint32_t)out->dims[mover->op->axis];
        error = move(mover, data, i, &box);
    }
    return error;
}

/* Tensors side by side along a dimension that the others do not have. */
static int move_stack(struct mover *mover)
{
    bool pack = mover->op->kind == MICA_OP_PACK;
    const struct mica_tensor *whole = pack ? output(mover, 0) : input(mover, 0);
    uint32_t count = pack ? mover->op->input_count : mover->op->output_count, axis = (uint32_t)mover->op->axis;
    uint64_t strides[MICA_MAX_RANK], others[MICA_MAX_RANK];
    strides_of(whole, pack ? mover->out_planar : mover->in_planar, strides);
    int error = 0;
    for (uint32_t i = 0; !error && i < count; i++) {
        const struct mica_tensor *part = pack ? input(mover, i) : output(mover, i);
        struct viv_box box = {.in_offset = pack ? 0 : i * strides[axis], .out_offset = pack ? i * strides[axis] : 0};
        strides_of(part, pack ? mover->in_planar : mover->out_planar, others);
        for (uint32_t d = 0; d < part->rank; d++) {
            uint64_t stride = strides[d < axis ? d : d + 1];
            viv_box_add(&box, (uint32_t)part->dims[d], pack ? others[d] : stride, pack ? stride : others[d]);
        }
        error = move(mover, pack ? i : 0, pack ? 0 : i, &box);
    }
    return error;
}

static int move_transpose(struct mover *mover)
{
    const struct mica_tensor *in = input(mover, 0), *out = output(mover, 0);
    const int32_t *order = input(mover, 1)->data;
    uint64_t in_strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK];
    struct viv_box box = {0};
    strides_of(in, mover->in_planar, in_strides);
    strides_of(out, mover->out_planar, out_strides);
    for (uint32_t d = 0; d < out->rank; d++) {
        uint32_t from = (uint32_t)(order[d] < 0 ? order[d] + (int32_t)in->rank : order[d]);
        viv_box_add(&box, (uint32_t)out->dims[d], in_strides[from], out_strides[d]);
    }
    return move(mover, 0, 0, &box);
}

/* Channel (row * block + column) * C + c of the deep image is channel c of the wide one, at that place of a block. */
static int move_blocks(struct mover *mover)
{
    bool deepen = mover->op->kind == MICA_OP_SPACE_TO_DEPTH;
    const struct mica_tensor *wide = deepen ? input(mover, 0) : output(mover, 0);
    const struct mica_tensor *deep = deepen ? output(mover, 0) : input(mover, 0);
    uint64_t w[MICA_MAX_RANK], d[MICA_MAX_RANK];
    uint32_t block = (uint32_t)mover->op->block, channels = (uint32_t)wide->dims[3];
    strides_of(wide, deepen ? mover->in_planar : mover->out_planar, w);
    strides_of(deep, deepen ? mover->out_planar : mover->in_planar, d);
    const struct {
        uint32_t count;
        uint64_t wide, deep;
    } loops[] = {{(uint32_t)deep->dims[0], w[0], d[0]},
                 {(uint32_t)deep->dims[1], block * w[1], d[1]},
                 {block, w[1], (uint64_t)block * channels * d[3]},
                 {(uint32_t)deep->dims[2], block * w[2], d[2]},
                 {block, w[2], channels * d[3]},
                 {channels, w[3], d[3]}};
    struct viv_box box = {0};
    for (unsigned i = 0; i < sizeof(loops) / sizeof(*loops); i++)
        viv_box_add(&box, loops[i].count, deepen ? loops[i].wide : loops[i].deep,
                    deepen ? loops[i].deep : loops[i].wide);
    return move(mover, 0, 0, &box);
}

static int move_phase(struct mover *mover, const struct viv_nearest *y, const struct viv_nearest *x, uint32_t row,
                      uint32_t column)
{
    const struct mica_tensor *in = input(mover, 0), *out = output(mover, 0);
    uint64_t in_strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK];
    uint32_t rows = ((uint32_t)out->dims[1] - row + y->period - 1) / y->period;
    uint32_t columns = ((uint32_t)out->dims[2] - column + x->period - 1) / x->period;
    strides_of(in, mover->in_planar, in_strides);
    strides_of(out, mover->out_planar, out_strides);
    struct viv_box box = {.in_offset =
                              (uint32_t)y->first[row] * in_strides[1] + (uint32_t)x->first[column] * in_strides[2],
                          .out_offset = row * out_strides[1] + column * out_strides[2]};
    viv_box_add(&box, (uint32_t)in->dims[0], in_strides[0], out_strides[0]);
    viv_box_add(&box, rows, y->step * in_strides[1], y->period * out_strides[1]);
    viv_box_add(&box, columns, x->step * in_strides[2], x->period * out_strides[2]);
    viv_box_add(&box, (uint32_t)in->dims[3], in_strides[3], out_strides[3]);
    return move(mover, 0, 0, &box);
}

/* The outputs of each phase are a box: those of a whole factor have the same pixels, one place further. */
static int move_resize(struct mover *mover)
{
    const struct mica_tensor *in = input(mover, 0), *out = output(mover, 0);
    const struct mica_resize *resize = &mover->op->resize;
    struct viv_nearest axes[2];
    int error = 0;
    bool few = viv_nearest_make(resize, in->dims[1], out->dims[1], &axes[0]) &&
               viv_nearest_make(resize, in->dims[2], out->dims[2], &axes[1]) &&
               axes[0].period * axes[1].period <= MAX_JOBS;
    if (!few)
        mover->jobs += MAX_JOBS + 1;
    for (uint32_t i = 0; few && !error && i < axes[0].period * axes[1].period; i++)
        error = move_phase(mover, &axes[0], &axes[1], i / axes[1].period, i % axes[1].period);
    return error;
}

/* A layer across `axis` of what is done already, `before` axes in full, to another place of the output. */
static int repeat_layer(struct mover *mover, uint32_t axis, int32_t from, int32_t to)
{
    const struct mica_tensor *in = input(mover, 0), *out = output(mover, 0);
    const int32_t *amounts = input(mover, 1)->data;
    uint64_t strides[MICA_MAX_RANK];
    struct viv_box box = {0};
    strides_of(out, mover->out_planar, strides);
    box.in_offset = (uint64_t)from * strides[axis];
    box.out_offset = (uint64_t)to * strides[axis];
    for (uint32_t d = 0; d < out->rank; d++) {
        uint64_t start = d > axis ? (uint64_t)amounts[2 * d] * strides[d] : 0;
        box.in_offset += start;
        box.out_offset += start;
        if (d != axis)
            viv_box_add(&box, (uint32_t)(d > axis ? in->dims[d] : out->dims[d]), strides[d], strides[d]);
    }
    const struct viv_ref *ins = mover->ins;
    mover->ins = mover->outs;
    int error = move(mover, 0, 0, &box);
    mover->ins = ins;
    return error;
}

/* The image, then axis by axis the layers before and behind it. */
static int move_mirror_pad(struct mover *mover)
{
    const struct mica_tensor *in = input(mover, 0), *out = output(mover, 0);
    const int32_t *amounts = input(mover, 1)->data;
    uint64_t in_strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK];
    struct viv_box box = {0};
    strides_of(in, mover->in_planar, in_strides);
    strides_of(out, mover->out_planar, out_strides);
    for (uint32_t d = 0; d < in->rank; d++) {
        box.out_offset += (uint64_t)amounts[2 * d] * out_strides[d];
        viv_box_add(&box, (uint32_t)in->dims[d], in_strides[d], out_strides[d]);
    }
    int32_t skip = mover->op->mirror_symmetric ? 0 : 1;
    int error = move(mover, 0, 0, &box);
    for (uint32_t d = 0; d < in->rank; d++) {
        int32_t first = amounts[2 * d], end = first + in->dims[d];
        for (int32_t i = 0; !error && i < first; i++)
            error = repeat_layer(mover, d, first + skip + i, first - 1 - i);
        for (int32_t i = 0; !error && i < amounts[2 * d + 1]; i++)
            error = repeat_layer(mover, d, end - 1 - skip - i, end + i);
    }
    return error;
}

/* Index `i` of a constant of int32 or int64. */
static int64_t index_of(const struct mica_tensor *indices, size_t i)
{
    return indices->type == MICA_TYPE_INT64 ? ((const int64_t *)indices->data)[i] : ((const int32_t *)indices->data)[i];
}

static size_t count_of(const struct mica_tensor *indices)
{
    return indices->bytes / mica_type_size(indices->type);
}

/* Layer `from` across `axis` of the data; the indices' dimensions stand in its place in the output. */
static int move_gather(struct mover *mover)
{
    const struct mica_tensor *in = input(mover, 0), *indices = input(mover, 1);
    uint64_t in_strides[MICA_MAX_RANK], inner = 1, outer;
    uint32_t axis = (uint32_t)mover->op->axis;
    size_t count = count_of(indices);
    strides_of(in, mover->in_planar, in_strides);
    for (uint32_t d = axis + 1; d < in->rank; d++)
        inner *= (uint32_t)in->dims[d];
    int error = 0;
    for (size_t i = 0; !error && i < count; i++) {
        struct viv_box box = {.in_offset = (uint64_t)index_of(indices, i) * in_strides[axis], .out_offset = i * inner};
        outer = inner * count;
        uint64_t strides[MICA_MAX_RANK], behind = 1;
        for (uint32_t d = in->rank; d-- > 0;) {
            strides[d] = d > axis ? behind : d == axis ? 0 : outer;
            if (d > axis)
                behind *= (uint32_t)in->dims[d];
            else if (d < axis)
                outer *= (uint32_t)in->dims[d];
        }
        for (uint32_t d = 0; d < in->rank; d++)
            if (d != axis)
                viv_box_add(&box, (uint32_t)in->dims[d], in_strides[d], strides[d]);
        error = move(mover, 0, 0, &box);
    }
    return error;
}

/* Each row of indices names a piece of the data by its first dimensions. */
static int move_gather_nd(struct mover *mover)
{
    const struct mica_tensor *in = input(mover, 0), *indices = input(mover, 1);
    uint32_t named = (uint32_t)indices->dims[indices->rank - 1];
    uint64_t in_strides[MICA_MAX_RANK], strides[MICA_MAX_RANK], bytes = 1;
    strides_of(in, mover->in_planar, in_strides);
    for (uint32_t d = in->rank; d-- > named; bytes *= (uint32_t)in->dims[d])
        strides[d] = bytes;
    int error = 0;
    for (size_t i = 0; !error && i < count_of(indices) / named; i++) {
        struct viv_box box = {.out_offset = i * bytes};
        for (uint32_t d = 0; d < named; d++)
            box.in_offset += (uint64_t)index_of(indices, i * named + d) * in_strides[d];
        for (uint32_t d = named; d < in->rank; d++)
            viv_box_add(&box, (uint32_t)in->dims[d], in_strides[d], strides[d]);
        error = move(mover, 0, 0, &box);
    }
    return error;
}

/* Layer by layer. */
static int move_reverse(struct mover *mover)
{
    const struct mica_tensor *in = input(mover, 0);
    uint64_t in_strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK];
    uint32_t axis = (uint32_t)__builtin_ctz(mover->op->axes), size = (uint32_t)in->dims[axis];
    strides_of(in, mover->in_planar, in_strides);
    strides_of(output(mover, 0), mover->out_planar, out_strides);
    int error = 0;
    for (uint32_t i = 0; !error && i < size; i++) {
        struct viv_box box = {.in_offset = i * in_strides[axis], .out_offset = (size - 1 - i) * out_strides[axis]};
        for (uint32_t d = 0; d < in->rank; d++)
            if (d != axis)
                viv_box_add(&box, (uint32_t)in->dims[d], in_strides[d], out_strides[d]);
        error = move(mover, 0, 0, &box);
    }
    return error;
}

static int move_all(struct mover *mover)
{
    switch (mover->op->kind) {
    case MICA_OP_SLICE:
        return move_slice(mover);
    case MICA_OP_CONCATENATION:
        return move_concatenation(mover);
    case MICA_OP_SPLIT:
        return move_split(mover);
    case MICA_OP_PACK:
    case MICA_OP_UNPACK:
        return move_stack(mover);
    case MICA_OP_TRANSPOSE:
        return move_transpose(mover);
    case MICA_OP_MIRROR_PAD:
        return move_mirror_pad(mover);
    case MICA_OP_GATHER:
        return move_gather(mover);
    case MICA_OP_GATHER_ND:
        return move_gather_nd(mover);
    case MICA_OP_REVERSE:
        return move_reverse(mover);
    case MICA_OP_SPACE_TO_DEPTH:
    case MICA_OP_DEPTH_TO_SPACE:
        return move_blocks(mover);
    default:
        return move_resize(mover);
    }
}

/* ---- limits -------------------------------------------------------------------- */

/* No rule of the graph looks at indices. */
static const char *refuse_indices(const struct mica_tensor *in, const struct mica_tensor *indices,
                                  const struct mica_op *op)
{
    bool nd = op->kind == MICA_OP_GATHER_ND;
    if (!indices || indices->problem || !indices->data || !indices->rank ||
        (indices->type != MICA_TYPE_INT32 && indices->type != MICA_TYPE_INT64))
        return "the indices are not constant int32 or int64";
    uint32_t named = nd ? (uint32_t)indices->dims[indices->rank - 1] : 1;
    if (named > in->rank || (!nd && (uint32_t)op->axis >= in->rank))
        return "the indices have more dimensions than the data";
    if (count_of(indices) / named > MAX_JOBS)
        return "it would take more than 1024 TP jobs";
    for (size_t i = 0; i < count_of(indices); i++) {
        int64_t index = index_of(indices, i);
        if (index < 0 || index >= in->dims[nd ? i % named : (uint32_t)op->axis])
            return "an index is outside the data";
    }
    return NULL;
}

static const char *refusal(const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    if (op->kind == MICA_OP_TRANSPOSE) {
        const struct mica_tensor *order = mica_op_input(graph, op, 1);
        return order && order->data && order->type == MICA_TYPE_INT32 ? NULL : "the permutation is not constant";
    }
    if (op->kind == MICA_OP_GATHER || op->kind == MICA_OP_GATHER_ND)
        return refuse_indices(in, mica_op_input(graph, op, 1), op);
    if (op->kind == MICA_OP_REVERSE)
        return op->axes && !(op->axes & (op->axes - 1)) ? NULL : "more than one axis is reversed";
    if (op->kind == MICA_OP_MIRROR_PAD) {
        const struct mica_tensor *amounts = mica_op_input(graph, op, 1);
        return amounts && amounts->data && amounts->type == MICA_TYPE_INT32 && amounts->bytes == 8 * (size_t)in->rank
                   ? NULL
                   : "the paddings are not constant int32";
    }
    for (uint32_t d = 0; op->kind == MICA_OP_SLICE && d < in->rank; d++)
        if (op->slice.step[d] < 1 && op->slice.count[d] > 1)
            return "a step below zero is not supported, the TP cores scan forwards";
    if (op->kind != MICA_OP_RESIZE_NEAREST)
        return NULL;
    return in->rank == 4 ? NULL : "the input is no image";
}

bool viv_move_supported(const struct mica_graph *graph, const struct mica_op *op, char *reason, size_t size)
{
    const char *why = refusal(graph, op);
    for (unsigned layouts = 0; !why && layouts < 4; layouts++) {
        struct mover mover = {.graph = graph, .op = op, .in_planar = layouts & 1, .out_planar = layouts & 2};
        move_all(&mover);
        if (mover.jobs > MAX_JOBS)
            why = "it would take more than 1024 TP jobs";
    }
    if (why)
        snprintf(reason, size, "%s", why);
    return !why;
}

/* ---- lowering ------------------------------------------------------------------- */

static bool has_planar(const struct viv_plan *plan, const struct mica_op *op, uint32_t first, uint32_t count)
{
    bool planar = true;
    for (uint32_t i = first; i < first + count; i++) {
        const struct mica_tensor *tensor = &plan->graph->tensors[op->inputs[i]];
        planar &= tensor->rank == 4 && (tensor->data || viv_has_planar(plan, (uint32_t)op->inputs[i]));
    }
    return planar;
}

int viv_lower_move(struct viv_plan *plan, uint32_t op_index)
{
    const struct mica_op *op = &plan->graph->ops[op_index];
    struct mover mover = {.graph = plan->graph, .op = op, .plan = plan, .op_index = op_index};
    bool several = op->kind == MICA_OP_CONCATENATION || op->kind == MICA_OP_PACK;
    uint32_t first = several ? 0 : mica_op_data_input(op), count = several ? op->input_count : 1;
    struct viv_ref *ins = calloc(op->input_count, sizeof(*ins)), *outs = calloc(op->output_count, sizeof(*outs));
    int error = ins && outs ? 0 : mica_fail_nomem(plan->log);
    mover.ins = ins;
    mover.outs = outs;
    mover.in_planar = has_planar(plan, op, first, count);
    /* Gathers count through the output's bytes as they are outside. */
    mover.out_planar = mover.in_planar && op->kind != MICA_OP_GATHER && op->kind != MICA_OP_GATHER_ND;
    for (uint32_t i = 0; i < op->output_count; i++)
        mover.out_planar &= plan->graph->tensors[op->outputs[i]].rank == 4 &&
                            viv_shape_transposable(viv_shape_of(&plan->graph->tensors[op->outputs[i]]));
    for (uint32_t i = first; !error && i < first + count; i++)
        error = viv_join_part(plan, op_index, i, mover.in_planar, &ins[i]);
    for (uint32_t i = 0; !error && i < op->output_count; i++)
        error = mover.out_planar ? viv_make_planar(plan, (uint32_t)op->outputs[i], &outs[i])
                                 : viv_make_nhwc(plan, (uint32_t)op->outputs[i], &outs[i]);
    if (!error)
        error = move_all(&mover);
    free(ins);
    free(outs);
    return error;
}
