/* SPDX-License-Identifier: MIT */
/* What SLICE and STRIDED_SLICE take, from the many ways in which they say it. */
#include "graph/check.h"

/* The resolution of one operation. Parameters count "places"; each is a dimension of the input, or a new one. */
struct resolver {
    const struct mica_tensor *input, *begin, *end, *step;
    const struct mica_slice_masks *masks;
    struct mica_slice *slice;
    uint32_t places, rank;
    int64_t dims[2 * MICA_MAX_RANK]; /* of the output */
};

static bool bit(uint32_t mask, uint32_t i)
{
    return mask >> i & 1;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

static void take(struct resolver *resolver, uint32_t dimension, int64_t begin, int64_t step, int64_t count)
{
    resolver->slice->begin[dimension] = (int32_t)begin;
    resolver->slice->step[dimension] = (int32_t)step;
    resolver->slice->count[dimension] = (int32_t)count;
}

static void take_all(struct resolver *resolver, uint32_t dimension)
{
    take(resolver, dimension, 0, 1, resolver->input->dims[dimension]);
    resolver->dims[resolver->rank++] = resolver->input->dims[dimension];
}

/* A position counted from either end, inside of the dimension or, for an end, just outside. */
static int64_t position(int64_t value, int64_t size, int64_t step)
{
    value += value < 0 ? size : 0;
    return step > 0 ? clamp(value, 0, size) : clamp(value, -1, size - 1);
}

/* One dimension as one place of the parameters says; false when nothing is left or the numbers make no sense. */
static bool take_place(struct resolver *resolver, uint32_t place, uint32_t dimension)
{
    const struct mica_slice_masks *masks = resolver->masks;
    int64_t size = resolver->input->dims[dimension], begin, end, step;
    if (!mica_constant_at(resolver->begin, place, &begin) || !mica_constant_at(resolver->end, place, &end) ||
        !mica_constant_at(resolver->step, place, &step) || step == 0 || step < -INT32_MAX || step > INT32_MAX)
        return false;
    if (begin < INT32_MIN || begin > INT32_MAX || end < INT32_MIN || end > INT32_MAX)
        return false;
    begin = bit(masks->begin, place) ? (step > 0 ? 0 : size - 1) : position(begin, size, step);
    if (bit(masks->shrink_axis, place)) {
        take(resolver, dimension, begin, 1, 1);
        return begin >= 0 && begin < size;
    }
    end = bit(masks->end, place) ? (step > 0 ? size : -1) : position(end + (masks->offset ? begin : 0), size, step);
    int64_t span = step > 0 ? end - begin : begin - end, stride = step > 0 ? step : -step;
    int64_t count = span > 0 ? (span - 1) / stride + 1 : 0;
    take(resolver, dimension, begin, count > 1 ? step : 1, count);
    resolver->dims[resolver->rank++] = count;
    return count > 0;
}

/* Dimensions that no place names: those at the ellipsis, or the last ones. */
static int64_t unnamed(const struct resolver *resolver)
{
    int64_t named = 0;
    for (uint32_t i = 0; i < resolver->places; i++)
        named += !bit(resolver->masks->ellipsis, i) && !bit(resolver->masks->new_axis, i);
    return (int64_t)resolver->input->rank - named;
}

static const char *resolve_places(struct resolver *resolver)
{
    const struct mica_slice_masks *masks = resolver->masks;
    int64_t rest = unnamed(resolver);
    uint32_t dimension = 0;
    if (masks->ellipsis & (masks->ellipsis - 1))
        return "it has more than one ellipsis";
    if (rest < 0)
        return "it slices more dimensions than its input has";
    for (uint32_t place = 0; place < resolver->places; place++) {
        if (bit(masks->ellipsis, place)) {
            for (; rest > 0; rest--)
                take_all(resolver, dimension++);
        } else if (bit(masks->new_axis, place)) {
            resolver->dims[resolver->rank++] = 1;
        } else if (!take_place(resolver, place, dimension++)) {
            return "it takes nothing, or its constants make no sense";
        }
    }
    for (; rest > 0; rest--)
        take_all(resolver, dimension++);
    return resolver->rank <= MICA_MAX_RANK ? NULL : "its output has more than 8 dimensions";
}

static const char *resolve_strided(struct resolver *resolver, const struct mica_graph *graph, const struct mica_op *op)
{
    resolver->end = mica_op_input(graph, op, 2);
    resolver->step = mica_op_input(graph, op, 3);
    uint64_t places = mica_elements(resolver->begin);
    if (places > MICA_MAX_RANK || !resolver->end || !resolver->step || !resolver->end->data || !resolver->step->data)
        return "its beginnings, ends and steps should be constants of up to 8 elements";
    resolver->places = (uint32_t)places;
    return resolve_places(resolver);
}

/* SLICE: a beginning and a size for every dimension; -1 is all that is left. */
static const char *resolve_plain(struct resolver *resolver, const struct mica_graph *graph, const struct mica_op *op)
{
    const struct mica_tensor *sizes = mica_op_input(graph, op, 2);
    for (uint32_t i = 0; i < resolver->input->rank; i++) {
        int64_t begin, count, size = resolver->input->dims[i];
        if (!mica_constant_at(resolver->begin, i, &begin) || !mica_constant_at(sizes, i, &count))
            return "its beginnings and sizes should be constant integers, one for each dimension";
        if (begin < 0 || begin >= size || count < -1 || count == 0 || count > size - begin)
            return "it takes nothing, or more than its input has";
        count = count == -1 ? size - begin : count;
        take(resolver, i, begin, 1, count);
        resolver->dims[resolver->rank++] = count;
    }
    return NULL;
}

const char *mica_slice_resolve(const struct mica_graph *graph, const struct mica_op *op,
                               const struct mica_slice_masks *masks, struct mica_slice *slice, uint32_t *rank,
                               int32_t dims[MICA_MAX_RANK])
{
    struct resolver resolver = {.input = mica_op_input(graph, op, 0), .masks = masks, .slice = slice};
    *slice = (struct mica_slice){.count = {0}};
    if (!resolver.input || resolver.input->problem)
        return "its input can't be used";
    resolver.begin = mica_op_input(graph, op, 1);
    if (!resolver.begin || resolver.begin->problem || !resolver.begin->data)
        return "where it begins should be a constant";
    const char *problem = masks ? resolve_strided(&resolver, graph, op) : resolve_plain(&resolver, graph, op);
    for (uint32_t i = 0; i < resolver.rank && !problem; i++)
        dims[i] = (int32_t)resolver.dims[i];
    *rank = resolver.rank;
    return problem;
}
