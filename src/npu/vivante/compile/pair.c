/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/pair.h"

#include "npu/vivante/compile/requant.h"

#define MOST_LAID_DOWN (UINT64_C(1) << 20) /* bytes: programs must not grow with what constants are repeated to */

/* One dimension of the output that has more than one element, as bytes of both. */
struct axis {
    uint32_t count;
    uint64_t in, out;
    bool repeated; /* the operand has one element there */
};

struct axes {
    uint32_t count;
    struct axis axis[MICA_MAX_RANK + 1]; /* the largest stride of the output first */
};

/* ---- shapes in a layout --------------------------------------------------------- */

/* Sizes and strides of the tensor's dimensions, behind as many of one element as bring it to `rank`. */
static void describe(const struct mica_tensor *tensor, bool planar, uint32_t rank, uint32_t *sizes, uint64_t *strides)
{
    struct viv_shape shape = viv_shape_of(tensor);
    uint64_t row = planar ? shape.w : (uint64_t)shape.w * shape.c;
    for (uint32_t behind = 0; behind < rank; behind++) {
        uint32_t at = rank - 1 - behind;
        sizes[at] = behind < tensor->rank ? (uint32_t)tensor->dims[tensor->rank - 1 - behind] : 1;
        if (behind == 0)
            strides[at] = planar ? (uint64_t)shape.w * shape.h : 1;
        else if (behind == 1)
            strides[at] = planar ? 1 : shape.c;
        else
            strides[at] = row;
        if (behind > 1)
            row *= sizes[at];
    }
}

static void insert(struct axes *axes, struct axis axis)
{
    uint32_t at = axes->count++;
    for (; at && axes->axis[at - 1].out < axis.out; at--)
        axes->axis[at] = axes->axis[at - 1];
    axes->axis[at] = axis;
}

/* Neighbours that are both repeated become one. */
static void join(struct axes *axes)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < axes->count; i++) {
        struct axis axis = axes->axis[i];
        struct axis *outer = kept ? &axes->axis[kept - 1] : NULL;
        if (outer && outer->repeated && axis.repeated && outer->out == axis.out * axis.count) {
            axis.count *= outer->count;
            *outer = axis;
        } else {
            axes->axis[kept++] = axis;
        }
    }
    axes->count = kept;
}

static struct axes axes_of(const struct mica_tensor *tensor, const struct mica_tensor *out, bool planar)
{
    uint32_t sizes[MICA_MAX_RANK], out_sizes[MICA_MAX_RANK];
    uint64_t strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK];
    struct axes axes = {0};
    describe(tensor, planar, out->rank, sizes, strides);
    describe(out, planar, out->rank, out_sizes, out_strides);
    for (uint32_t i = 0; i < out->rank; i++)
        if (out_sizes[i] > 1)
            insert(&axes, (struct axis){out_sizes[i], strides[i], out_strides[i], sizes[i] == 1});
    join(&axes);
    return axes;
}

/* ---- repeating computed operands ------------------------------------------------- */

/* Where boxes go: a plan, or a count of jobs. */
struct repeater {
    struct viv_plan *plan; /* NULL: count */
    uint32_t op, jobs;
    struct viv_ref in, out;
};

static int move(struct repeater *repeater, const struct viv_box *box, bool inside)
{
    if (!repeater->plan) {
        repeater->jobs += viv_box_jobs(box);
        return 0;
    }
    struct viv_ref in = inside ? repeater->out : repeater->in, out = repeater->out;
    out.offset += box->out_offset;
    return viv_box_lower(repeater->plan, repeater->op, box, in, out, 0);
}

/* As many rounds of axis `at` as are there already, to behind them; axes further in are done. */
static int copy_rounds(struct repeater *repeater, const struct axes *axes, uint32_t at, uint32_t done, uint32_t rounds)
{
    struct viv_box box = {.out_offset = done * axes->axis[at].out};
    for (uint32_t i = 0; i < axes->count; i++) {
        const struct axis *axis = &axes->axis[i];
        if (i >= at || !axis->repeated)
            viv_box_add(&box, i == at ? rounds : axis->count, axis->out, axis->out);
    }
    return move(repeater, &box, true);
}

/* The elements once, then axis by axis what is there already, again and again. */
static int repeat(struct repeater *repeater, const struct axes *axes)
{
    struct viv_box box = {0};
    for (uint32_t i = 0; i < axes->count; i++)
        if (!axes->axis[i].repeated)
            viv_box_add(&box, axes->axis[i].count, axes->axis[i].in, axes->axis[i].out);
    int error = move(repeater, &box, false);
    for (uint32_t at = axes->count; at-- > 0;) {
        uint32_t count = axes->axis[at].count;
        for (uint32_t done = 1; !error && axes->axis[at].repeated && done < count; done *= 2)
            error = copy_rounds(repeater, axes, at, done, count - done < done ? count - done : done);
    }
    return error;
}

static bool has_shape(const struct mica_tensor *tensor, const struct mica_tensor *out)
{
    return tensor->bytes == out->bytes; /* they broadcast, so that they differ in dimensions of one element only */
}

/* A constant that is repeated in the program. */
static bool laid_down(const struct mica_tensor *tensor, const struct mica_tensor *out)
{
    return tensor->data && (has_shape(tensor, out) || out->bytes <= MOST_LAID_DOWN);
}

uint32_t viv_repeat_jobs(const struct mica_tensor *tensor, const struct mica_tensor *out, bool planar)
{
    struct repeater repeater = {0};
    struct axes axes = axes_of(tensor, out, planar);
    if (!has_shape(tensor, out) && !laid_down(tensor, out))
        repeat(&repeater, &axes);
    return repeater.jobs;
}

int viv_repeat_lower(struct viv_plan *plan, uint32_t op, const struct mica_tensor *tensor,
                     const struct mica_tensor *out, bool planar, const struct viv_layers *layers, struct viv_ref in,
                     struct viv_ref to)
{
    struct repeater repeater = {.plan = plan, .op = op, .in = in, .out = to};
    struct axes axes = axes_of(tensor, out, planar);
    if (layers)
        insert(&axes, (struct axis){layers->count, layers->in_pitch, layers->out_pitch, false});
    return repeat(&repeater, &axes);
}

uint32_t viv_pair_rounds(const struct mica_tensor *tensor, const struct mica_tensor *out, bool planar)
{
    struct axes axes = axes_of(tensor, out, planar);
    bool does = axes.count > 0 && axes.axis[0].repeated;
    for (uint32_t i = 1; i < axes.count; i++)
        does &= !axes.axis[i].repeated && axes.axis[i].in == axes.axis[i].out;
    return does ? axes.axis[0].count : 0;
}

/* ---- operands --------------------------------------------------------------------- */

void viv_pair_lay_down(const struct mica_tensor *constant, const struct mica_tensor *out, bool planar, uint8_t *data)
{
    uint32_t sizes[MICA_MAX_RANK], out_sizes[MICA_MAX_RANK], at[MICA_MAX_RANK] = {0};
    uint64_t strides[MICA_MAX_RANK], out_strides[MICA_MAX_RANK], from = 0, to = 0;
    const uint8_t *bytes = constant->data, flip = viv_flip(constant);
    describe(constant, false, out->rank, sizes, strides);
    describe(out, planar, out->rank, out_sizes, out_strides);
    for (size_t i = 0; i < out->bytes; i++) {
        data[to] = bytes[from] ^ flip;
        for (uint32_t d = out->rank; d-- > 0;) {
            uint64_t step = sizes[d] > 1 ? strides[d] : 0;
            from += step;
            to += out_strides[d];
            if (++at[d] < out_sizes[d])
                break;
            from -= step * out_sizes[d];
            to -= out_strides[d] * out_sizes[d];
            at[d] = 0;
        }
    }
}

static int add_constant(struct viv_plan *plan, const struct mica_tensor *constant, const struct mica_tensor *out,
                        bool planar, struct viv_ref *ref)
{
    uint8_t *data;
    int error = viv_plan_constant(plan, out->bytes, ref, &data);
    if (!error)
        viv_pair_lay_down(constant, out, planar, data);
    return error;
}

bool viv_pair_planar(const struct viv_plan *plan, const struct mica_op *op)
{
    const struct mica_tensor *out = mica_op_output(plan->graph, op, 0);
    bool nhwc = true, planar = true;
    for (uint32_t i = 0; i < 2; i++) {
        const struct mica_tensor *tensor = mica_op_input(plan->graph, op, i);
        if (tensor->data || !has_shape(tensor, out))
            continue;
        nhwc &= viv_has_nhwc(plan, (uint32_t)op->inputs[i]);
        planar &= viv_has_planar(plan, (uint32_t)op->inputs[i]);
    }
    return viv_shape_transposable(viv_shape_of(out)) && (planar || !nhwc);
}

int viv_pair_source(struct viv_plan *plan, uint32_t op, uint32_t tensor, bool planar, struct viv_ref *ref)
{
    const struct mica_tensor *t = &plan->graph->tensors[tensor];
    if (t->data)
        return add_constant(plan, t, t, planar, ref);
    return planar ? viv_need_planar(plan, tensor, op, ref) : viv_need_nhwc(plan, tensor, op, ref);
}

int viv_pair_value(struct viv_plan *plan, uint32_t op, uint32_t tensor, bool planar, struct viv_ref *ref)
{
    const struct mica_tensor *t = &plan->graph->tensors[tensor];
    const struct mica_tensor *out = mica_op_output(plan->graph, &plan->graph->ops[op], 0);
    struct viv_ref in;
    if (laid_down(t, out))
        return add_constant(plan, t, out, planar, ref);
    if (has_shape(t, out))
        return viv_pair_source(plan, op, tensor, planar, ref);
    int error = viv_pair_source(plan, op, tensor, planar, &in);
    if (!error)
        error = viv_plan_storage(plan, out->bytes, ref);
    return error ? error : viv_repeat_lower(plan, op, t, out, planar, NULL, in, *ref);
}

int viv_pair_place(struct viv_plan *plan, uint32_t op, uint32_t tensor, bool planar, struct viv_ref parent,
                   uint64_t offset)
{
    struct viv_ref ref;
    int error = viv_pair_value(plan, op, tensor, planar, &ref);
    if (error)
        return error;
    const struct mica_tensor *out = mica_op_output(plan->graph, &plan->graph->ops[op], 0);
    return viv_place(plan, ref, out->bytes, parent, offset, 0, op);
}

int viv_pair_output(struct viv_plan *plan, uint32_t op, bool planar, struct viv_ref *ref)
{
    uint32_t tensor = (uint32_t)plan->graph->ops[op].outputs[0];
    return planar ? viv_make_planar(plan, tensor, ref) : viv_make_nhwc(plan, tensor, ref);
}
