/* SPDX-License-Identifier: MIT */
/* PAD, with a value of its own as PADV2, and MIRROR_PAD. */
#include <string.h>

#include "cpu/copy.h"

static int check_padding(const struct mica_tensor *in, const struct mica_tensor *out,
                         const struct mica_tensor *paddings, struct mica_cpu_reason *reason)
{
    if (paddings->type != MICA_TYPE_INT32 || !paddings->data || mica_cpu_elements(paddings) != 2 * (size_t)in->rank)
        return mica_cpu_refuse(reason, "paddings are not a constant int32 tensor with two values for each dimension");
    const int32_t *amounts = paddings->data;
    for (uint32_t i = 0; i < in->rank; i++)
        if (amounts[2 * i] < 0 || amounts[2 * i + 1] < 0 ||
            (int64_t)in->dims[i] + amounts[2 * i] + amounts[2 * i + 1] != out->dims[i])
            return mica_cpu_refuse(reason, "paddings don't fit input and output");
    return 0;
}

static int check_shapes(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 2, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0), *out = mica_op_output(graph, op, 0);
    if (in->type != out->type || in->rank != out->rank)
        return mica_cpu_refuse(reason, "input and output differ in type or rank");
    return check_padding(in, out, mica_op_input(graph, op, 1), reason);
}

int mica_cpu_check_pad(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_shapes(graph, op, reason);
    if (result)
        return result;
    const struct mica_tensor *out = mica_op_output(graph, op, 0), *value = mica_op_input(graph, op, 2);
    if (mica_cpu_is_8bit(out) && out->quant.count > 1)
        return mica_cpu_refuse(reason, "the output is not quantized with one scale");
    if (value && (value->problem || value->type != out->type || mica_cpu_elements(value) != 1))
        return mica_cpu_refuse(reason, "the padding value is not one element of the output's type");
    return 0;
}

/* Fills the output with the value, or with zeros as its quantization has them. */
static void fill(const struct mica_cpu_call *call, const struct mica_tensor *out, size_t size)
{
    const void *value = mica_cpu_input_data(call, 2);
    uint8_t *to = mica_cpu_output_data(call, 0);
    bool quantized = mica_cpu_is_8bit(out) && out->quant.count;
    if (!value || size == 1) {
        memset(to, value ? *(const uint8_t *)value : quantized ? (uint8_t)out->quant.zero_point[0] : 0, out->bytes);
        return;
    }
    for (size_t i = 0; i < out->bytes; i += size)
        memcpy(to + i, value, size);
}

int mica_cpu_pad(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0), *out = mica_cpu_output(call, 0);
    const int32_t *amounts = mica_cpu_input(call, 1)->data;
    uint8_t *to = mica_cpu_output_data(call, 0);
    size_t size = mica_type_size(in->type);
    struct mica_copy copy = {0};
    ptrdiff_t from_strides[MICA_MAX_RANK], to_strides[MICA_MAX_RANK], offset = 0;
    mica_copy_strides(in, from_strides);
    mica_copy_strides(out, to_strides);
    for (uint32_t i = 0; i < in->rank; i++) {
        mica_copy_add(&copy, (size_t)in->dims[i], from_strides[i], to_strides[i]);
        offset += amounts[2 * i] * to_strides[i];
    }
    fill(call, out, size);
    mica_copy_run(&copy, mica_cpu_input_data(call, 0), to + offset * (ptrdiff_t)size, size, call->threads);
    return 0;
}

/* ---- mirrored ------------------------------------------------------------------ */

int mica_cpu_check_mirror_pad(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = check_shapes(graph, op, reason);
    if (result)
        return result;
    const struct mica_tensor *in = mica_op_input(graph, op, 0);
    const int32_t *amounts = mica_op_input(graph, op, 1)->data;
    for (uint32_t i = 0; i < in->rank; i++) {
        int32_t most = op->mirror_symmetric ? in->dims[i] : in->dims[i] - 1;
        if (amounts[2 * i] > most || amounts[2 * i + 1] > most)
            return mica_cpu_refuse(reason, "paddings are larger than what can be mirrored");
    }
    return 0;
}

/* Three pieces of a dimension: what is mirrored before, the input itself, what is mirrored after. */
struct piece {
    int32_t count, from, to, step;
};

static struct piece piece_of(int32_t size, const int32_t amounts[2], bool symmetric, uint32_t which)
{
    int32_t inside = symmetric ? 0 : 1, before = amounts[0], after = amounts[1];
    if (which == 0)
        return (struct piece){before, before - 1 + inside, 0, -1};
    if (which == 1)
        return (struct piece){size, 0, before, 1};
    return (struct piece){after, size - 1 - inside, before + size, -1};
}

/* The output is 3^rank blocks, each a copy with some dimensions turned round. */
static void copy_block(const struct mica_cpu_call *call, const ptrdiff_t *from_strides, const ptrdiff_t *to_strides,
                       uint32_t block)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    const int32_t *amounts = mica_cpu_input(call, 1)->data;
    ptrdiff_t size = (ptrdiff_t)mica_type_size(in->type), from = 0, to = 0;
    struct mica_copy copy = {0};
    for (uint32_t i = 0; i < in->rank; i++, block /= 3) {
        struct piece piece = piece_of(in->dims[i], amounts + (size_t)2 * i, call->op->mirror_symmetric, block % 3);
        if (!piece.count)
            return;
        mica_copy_add(&copy, (size_t)piece.count, from_strides[i] * piece.step, to_strides[i]);
        from += piece.from * from_strides[i];
        to += piece.to * to_strides[i];
    }
    mica_copy_run(&copy, (const uint8_t *)mica_cpu_input_data(call, 0) + from * size,
                  (uint8_t *)mica_cpu_output_data(call, 0) + to * size, (size_t)size, call->threads);
}

int mica_cpu_mirror_pad(const struct mica_cpu_call *call)
{
    const struct mica_tensor *in = mica_cpu_input(call, 0);
    ptrdiff_t from_strides[MICA_MAX_RANK], to_strides[MICA_MAX_RANK];
    uint32_t blocks = 1;
    mica_copy_strides(in, from_strides);
    mica_copy_strides(mica_cpu_output(call, 0), to_strides);
    for (uint32_t i = 0; i < in->rank; i++)
        blocks *= 3;
    for (uint32_t block = 0; block < blocks; block++)
        copy_block(call, from_strides, to_strides, block);
    return 0;
}
