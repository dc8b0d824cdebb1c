/* SPDX-License-Identifier: MIT */
/* Operations that take values from elsewhere and leave them as they are, of whatever type; and CAST. */
#include "graph/check.h"

static bool does_not_fit(struct mica_check *check, const struct mica_tensor *input, const struct mica_tensor *output)
{
    return mica_reject(check, "output %s does not fit input %s", mica_shape_text(output).text,
                       mica_shape_text(input).text);
}

/* ---- parts ------------------------------------------------------------ */

static bool slice_is_inside(const struct mica_slice *slice, const struct mica_tensor *input, uint32_t i)
{
    int64_t size = input->dims[i], begin = slice->begin[i], step = slice->step[i];
    int64_t last = begin + ((int64_t)slice->count[i] - 1) * step;
    return slice->count[i] >= 1 && step != 0 && begin >= 0 && begin < size && last >= 0 && last < size;
}

/* The same sizes in the same order; ones may have come and gone. */
static bool slice_makes(const struct mica_slice *slice, uint32_t rank, const struct mica_tensor *output)
{
    uint32_t place = 0;
    for (uint32_t i = 0; i < rank; i++) {
        if (slice->count[i] == 1)
            continue;
        while (place < output->rank && output->dims[place] == 1)
            place++;
        if (place == output->rank || output->dims[place++] != slice->count[i])
            return false;
    }
    while (place < output->rank && output->dims[place] == 1)
        place++;
    return place == output->rank;
}

bool mica_rule_slice(struct mica_check *check)
{
    const struct mica_slice *slice = &check->op->slice;
    if (!mica_check_io(check, 1, 4, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    for (uint32_t i = 0; i < input->rank; i++)
        if (!slice_is_inside(slice, input, i))
            return mica_reject(check,
                               "%d elements from %d on in steps of %d are not inside of dimension %u of input %s",
                               slice->count[i], slice->begin[i], slice->step[i], i, mica_shape_text(input).text);
    if (!slice_makes(slice, input->rank, output))
        return mica_reject(check, "output %s is not what it takes of input %s", mica_shape_text(output).text,
                           mica_shape_text(input).text);
    return mica_check_moved(check, input, output);
}

/* SPLIT_V says how large the parts are, where one may be left to be computed. */
static bool check_part_size(struct mica_check *check, const struct mica_tensor *data, uint32_t i)
{
    const struct mica_op *op = check->op;
    const struct mica_tensor *sizes = op->input_count == 3 ? mica_check_input(check, 1) : NULL;
    int64_t size = data->dims[op->axis] / (int64_t)op->output_count;
    if (!sizes && size * op->output_count != data->dims[op->axis])
        return mica_reject(check, "dimension %d of input %s can't be split into %u", op->axis,
                           mica_shape_text(data).text, op->output_count);
    if (sizes && (mica_elements(sizes) != op->output_count || !mica_constant_at(sizes, i, &size)))
        return mica_reject(check, "the sizes of its %u parts should be as many constant integers", op->output_count);
    return size == mica_check_output(check, i)->dims[op->axis] || (sizes && size == -1) ||
           mica_reject(check, "output %s should have size %lld in dimension %d",
                       mica_shape_text(mica_check_output(check, i)).text, (long long)size, op->axis);
}

static bool check_part(struct mica_check *check, const struct mica_tensor *data, uint32_t i)
{
    const struct mica_tensor *output = mica_check_output(check, i);
    bool fits = output->rank == data->rank;
    for (uint32_t d = 0; fits && d < data->rank; d++)
        fits = d == (uint32_t)check->op->axis || output->dims[d] == data->dims[d];
    return (fits || does_not_fit(check, data, output)) && check_part_size(check, data, i) &&
           mica_check_moved(check, data, output);
}

bool mica_rule_split(struct mica_check *check)
{
    struct mica_op *op = check->op;
    if (!mica_check_io(check, 2, 3, op->output_count ? op->output_count : 1))
        return false;
    if (op->input_count == 3 && !mica_check_input(check, 2))
        return mica_reject(check, "input 2 is absent");
    const struct mica_tensor *data = mica_check_input(check, mica_op_data_input(op));
    if (!mica_check_axis(check, mica_check_input(check, op->input_count == 3 ? 2 : 0), data, &op->axis))
        return false;
    int64_t sum = 0;
    for (uint32_t i = 0; i < op->output_count; i++) {
        if (!check_part(check, data, i))
            return false;
        sum += mica_check_output(check, i)->dims[op->axis];
    }
    return sum == data->dims[op->axis] || mica_reject(check, "its outputs make %lld along dimension %d of input %s",
                                                      (long long)sum, op->axis, mica_shape_text(data).text);
}

/* One element more of `many`'s dimensions, at `axis`, than `one` has. */
static bool check_stacked(struct mica_check *check, const struct mica_tensor *one, const struct mica_tensor *many)
{
    uint32_t axis = (uint32_t)check->op->axis;
    bool fits = many->rank == one->rank + 1;
    for (uint32_t i = 0; fits && i < one->rank; i++)
        fits = one->dims[i] == many->dims[i < axis ? i : i + 1];
    return fits || mica_reject(check, "slices %s do not fit %s along dimension %u", mica_shape_text(one).text,
                               mica_shape_text(many).text, axis);
}

static bool check_stack_axis(struct mica_check *check, const struct mica_tensor *many, uint32_t count)
{
    int32_t axis = check->op->axis;
    if (axis < 0 || (uint32_t)axis >= many->rank)
        return mica_reject(check, "tensor %s has no dimension %d", mica_shape_text(many).text, axis);
    return (uint32_t)many->dims[axis] == count ||
           mica_reject(check, "%u slices do not make dimension %d of %s", count, axis, mica_shape_text(many).text);
}

bool mica_rule_pack(struct mica_check *check)
{
    const struct mica_op *op = check->op;
    if (!mica_check_io(check, op->input_count ? op->input_count : 1, INT32_MAX, 1))
        return false;
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (!check_stack_axis(check, output, op->input_count))
        return false;
    for (uint32_t i = 0; i < op->input_count; i++)
        if (!check_stacked(check, mica_check_input(check, i), output) ||
            !mica_check_moved(check, mica_check_input(check, i), output))
            return false;
    return true;
}

bool mica_rule_unpack(struct mica_check *check)
{
    const struct mica_op *op = check->op;
    if (!mica_check_io(check, 1, 1, op->output_count ? op->output_count : 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0);
    if (!check_stack_axis(check, input, op->output_count))
        return false;
    for (uint32_t i = 0; i < op->output_count; i++)
        if (!check_stacked(check, mica_check_output(check, i), input) ||
            !mica_check_moved(check, input, mica_check_output(check, i)))
            return false;
    return true;
}

/* ---- orders ----------------------------------------------------------- */

bool mica_rule_transpose(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    if (!mica_check_constant(check, mica_check_input(check, 1), "permutation", input->rank) ||
        !mica_check_rank(check, output, "output", input->rank))
        return false;
    const int32_t *order = mica_check_input(check, 1)->data;
    uint32_t seen = 0;
    for (uint32_t i = 0; i < input->rank; i++) {
        if (order[i] < 0 || (uint32_t)order[i] >= input->rank || seen >> order[i] & 1)
            return mica_reject(check, "the permutation does not name each of %u dimensions once", input->rank);
        seen |= 1u << order[i];
        if (output->dims[i] != input->dims[order[i]])
            return does_not_fit(check, input, output);
    }
    return mica_check_moved(check, input, output);
}

bool mica_rule_block(struct mica_check *check)
{
    if (!mica_check_io(check, 1, 1, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    bool deepen = check->op->kind == MICA_OP_SPACE_TO_DEPTH;
    const struct mica_tensor *wide = deepen ? input : output, *deep = deepen ? output : input;
    int64_t block = check->op->block;
    if (!mica_check_rank(check, input, "input", 4) || !mica_check_rank(check, output, "output", 4))
        return false;
    if (block < 1 || block > MICA_MAX_WINDOW)
        return mica_reject(check, "blocks of %lld are out of range (1 to %d)", (long long)block, MICA_MAX_WINDOW);
    if (wide->dims[0] != deep->dims[0] || wide->dims[1] != deep->dims[1] * block ||
        wide->dims[2] != deep->dims[2] * block || deep->dims[3] != wide->dims[3] * block * block)
        return mica_reject(check, "output %s does not fit input %s in blocks of %lld", mica_shape_text(output).text,
                           mica_shape_text(input).text, (long long)block);
    return mica_check_moved(check, input, output);
}

bool mica_rule_reverse(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1))
        return false;
    const struct mica_tensor *input = mica_check_input(check, 0), *output = mica_check_output(check, 0);
    return mica_check_axes(check, mica_check_input(check, 1), input, &check->op->axes) &&
           mica_check_same_shape(check, input, output) && mica_check_moved(check, input, output);
}

bool mica_rule_cast(struct mica_check *check)
{
    return mica_check_io(check, 1, 1, 1) &&
           mica_check_same_shape(check, mica_check_input(check, 0), mica_check_output(check, 0));
}

/* ---- choices; the indices' values are the kernels' to check ------------ */

static bool check_index_type(struct mica_check *check, const struct mica_tensor *indices)
{
    if (indices->type == MICA_TYPE_INT32 || indices->type == MICA_TYPE_INT64)
        return true;
    return mica_reject(check, "the indices are %s, not int32 or int64", mica_type_name(indices->type));
}

/* `a`'s dimensions from `a_from` to `a_to`, here from `*place` on. */
static bool continues_with(const struct mica_tensor *output, uint32_t *place, const struct mica_tensor *a,
                           uint32_t a_from, uint32_t a_to)
{
    for (uint32_t i = a_from; i < a_to; i++, (*place)++)
        if (*place >= output->rank || output->dims[*place] != a->dims[i])
            return false;
    return true;
}

bool mica_rule_gather(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1))
        return false;
    const struct mica_tensor *data = mica_check_input(check, 0), *indices = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    int32_t axis = check->op->axis;
    uint32_t place = 0;
    if (axis < 0 || (uint32_t)axis >= data->rank)
        return mica_reject(check, "input %s has no dimension %d", mica_shape_text(data).text, axis);
    if (!continues_with(output, &place, data, 0, (uint32_t)axis) ||
        !continues_with(output, &place, indices, 0, indices->rank) ||
        !continues_with(output, &place, data, (uint32_t)axis + 1, data->rank) || place != output->rank)
        return does_not_fit(check, data, output);
    return check_index_type(check, indices) && mica_check_moved(check, data, output);
}

bool mica_rule_gather_nd(struct mica_check *check)
{
    if (!mica_check_io(check, 2, 2, 1))
        return false;
    const struct mica_tensor *data = mica_check_input(check, 0), *indices = mica_check_input(check, 1);
    const struct mica_tensor *output = mica_check_output(check, 0);
    if (indices->rank < 1 || (uint32_t)indices->dims[indices->rank - 1] > data->rank)
        return mica_reject(check, "indices %s do not fit input %s", mica_shape_text(indices).text,
                           mica_shape_text(data).text);
    uint32_t dimensions = (uint32_t)indices->dims[indices->rank - 1], place = 0;
    if (!continues_with(output, &place, indices, 0, indices->rank - 1) ||
        !continues_with(output, &place, data, dimensions, data->rank) || place != output->rank)
        return does_not_fit(check, data, output);
    return check_index_type(check, indices) && mica_check_moved(check, data, output);
}
