/* SPDX-License-Identifier: MIT */
/* One sketch for each kind that broadcasts, reduces, moves or chooses. */
#include "sketch.h"

static int32_t add_bytes(struct sketch *sketch, float scale, int32_t zero_point, uint32_t rank, const int32_t *dims)
{
    return sketch_tensor(sketch, MICA_TYPE_INT8, scale, zero_point, rank, dims);
}

static void add_constant(struct sketch *sketch, const void *data, uint32_t rank, const int32_t *dims)
{
    sketch->tensors[sketch_tensor(sketch, MICA_TYPE_INT32, 0, 0, rank, dims)].data = data;
}

struct sketch sketch_transpose_conv(void)
{
    static const int32_t shape[] = {1, 8, 8, 2}, zero[2];
    static const float scale[] = {0.1f, 0.2f};
    struct sketch sketch = {.op.window = {.stride_x = 2, .stride_y = 2, .dilation_x = 1, .dilation_y = 1}};
    sketch.op.window.padding = (struct mica_padding){0, 0, 1, 1};
    add_constant(&sketch, shape, DIMS(4));
    add_bytes(&sketch, 1, 0, DIMS(2, 3, 3, 3));
    sketch.tensors[1].quant = (struct mica_quantization){.count = 2, .scale = scale, .zero_point = zero};
    add_bytes(&sketch, 0.5f, 3, DIMS(1, 4, 4, 3));
    sketch_tensor(&sketch, MICA_TYPE_INT32, 0, 0, DIMS(2));
    add_bytes(&sketch, 1, -5, DIMS(1, 8, 8, 2));
    return sketch_finish(sketch, MICA_OP_TRANSPOSE_CONV, "TRANSPOSE_CONV");
}

struct sketch sketch_binary(enum mica_op_kind kind)
{
    bool alike = kind == MICA_OP_MAXIMUM || kind == MICA_OP_MINIMUM;
    struct sketch sketch = {.op.activation = MICA_ACT_NONE};
    add_bytes(&sketch, 0.5f, 1, DIMS(1, 4, 4, 8));
    add_bytes(&sketch, alike ? 0.5f : 0.25f, 1, DIMS(4, 1));
    add_bytes(&sketch, alike ? 0.5f : 0.75f, 1, DIMS(1, 4, 4, 8));
    return sketch_finish(sketch, kind, "BINARY");
}

struct sketch sketch_prelu(void)
{
    static const int8_t slopes[8] = {1, 2, 3};
    struct sketch sketch = {.op.kind = MICA_OP_PRELU};
    add_bytes(&sketch, 0.5f, 1, DIMS(1, 4, 4, 8));
    add_bytes(&sketch, 0.25f, 2, DIMS(1, 1, 8));
    sketch.tensors[1].data = slopes;
    add_bytes(&sketch, 0.7f, 3, DIMS(1, 4, 4, 8));
    return sketch_finish(sketch, MICA_OP_PRELU, "PRELU");
}

struct sketch sketch_matmul(void)
{
    struct sketch sketch = {.op.matmul = {.adjoint_y = true}};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 3, 4));
    add_bytes(&sketch, 0.25f, 2, DIMS(5, 4));
    add_bytes(&sketch, 0.7f, 3, DIMS(2, 3, 5));
    return sketch_finish(sketch, MICA_OP_BATCH_MATMUL, "BATCH_MATMUL");
}

struct sketch sketch_unary(enum mica_op_kind kind)
{
    struct sketch sketch = {.op.kind = kind};
    if (kind == MICA_OP_LEAKY_RELU)
        sketch.op.alpha = 0.1f;
    add_bytes(&sketch, 0.5f, 1, DIMS(1, 4, 8));
    add_bytes(&sketch, kind == MICA_OP_TANH ? 1.0f / 128 : 0.25f, 0, DIMS(1, 4, 8));
    return sketch_finish(sketch, kind, "UNARY");
}

struct sketch sketch_reduce(enum mica_op_kind kind)
{
    static const int32_t axes[] = {1, -2};
    struct sketch sketch = {.op.keep_dims = false};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 5, 6, 3));
    add_constant(&sketch, axes, DIMS(2));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 3));
    return sketch_finish(sketch, kind, "REDUCE");
}

struct sketch sketch_arg_max(void)
{
    static const int32_t axis[] = {-1};
    struct sketch sketch = {.op.kind = MICA_OP_ARG_MAX};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 5, 6));
    add_constant(&sketch, axis, DIMS(1));
    sketch_tensor(&sketch, MICA_TYPE_INT64, 0, 0, DIMS(2, 5));
    return sketch_finish(sketch, MICA_OP_ARG_MAX, "ARG_MAX");
}

struct sketch sketch_slice(void)
{
    struct sketch sketch = {.op.slice = {.begin = {0, 1, 4, 2}, .step = {1, 2, -1, 1}, .count = {1, 2, 5, 1}}};
    add_bytes(&sketch, 0.5f, 1, DIMS(1, 4, 5, 6));
    add_bytes(&sketch, 0.5f, 1, DIMS(1, 2, 5));
    return sketch_finish(sketch, MICA_OP_SLICE, "STRIDED_SLICE");
}

struct sketch sketch_split(void)
{
    static const int32_t axis[] = {-2};
    struct sketch sketch = {.op.kind = MICA_OP_SPLIT};
    add_constant(&sketch, axis, DIMS(1));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 6, 3));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 3, 3));
    sketch = sketch_finish(sketch, MICA_OP_SPLIT, "SPLIT");
    sketch.outputs[1] = add_bytes(&sketch, 0.5f, 1, DIMS(2, 3, 3));
    sketch.op.output_count = 2;
    return sketch;
}

struct sketch sketch_split_v(void)
{
    static const int32_t axis[] = {1}, sizes[] = {2, -1};
    struct sketch sketch = {.op.kind = MICA_OP_SPLIT};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 6, 3));
    add_constant(&sketch, sizes, DIMS(2));
    add_constant(&sketch, axis, DIMS(1));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 2, 3));
    sketch = sketch_finish(sketch, MICA_OP_SPLIT, "SPLIT_V");
    sketch.outputs[1] = add_bytes(&sketch, 0.5f, 1, DIMS(2, 4, 3));
    sketch.op.output_count = 2;
    return sketch;
}

struct sketch sketch_transpose(void)
{
    static const int32_t order[] = {2, 0, 1};
    struct sketch sketch = {.op.kind = MICA_OP_TRANSPOSE};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 3, 4));
    add_constant(&sketch, order, DIMS(3));
    add_bytes(&sketch, 0.5f, 1, DIMS(4, 2, 3));
    return sketch_finish(sketch, MICA_OP_TRANSPOSE, "TRANSPOSE");
}

struct sketch sketch_mirror_pad(void)
{
    static const int32_t amounts[] = {0, 0, 3, 2};
    struct sketch sketch = {.op.mirror_symmetric = false};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 4));
    add_constant(&sketch, amounts, DIMS(2, 2));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 9));
    return sketch_finish(sketch, MICA_OP_MIRROR_PAD, "MIRROR_PAD");
}

struct sketch sketch_pad_value(void)
{
    static const int32_t amounts[] = {1, 0, 3, 2};
    static const int8_t value = 7;
    struct sketch sketch = {.op.kind = MICA_OP_PAD};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 4));
    add_constant(&sketch, amounts, DIMS(2, 2));
    sketch.tensors[add_bytes(&sketch, 0.5f, 1, DIMS(1))].data = &value;
    add_bytes(&sketch, 0.5f, 1, DIMS(3, 9));
    return sketch_finish(sketch, MICA_OP_PAD, "PADV2");
}

struct sketch sketch_block(enum mica_op_kind kind)
{
    bool deepen = kind == MICA_OP_SPACE_TO_DEPTH;
    struct sketch sketch = {.op.block = 2};
    const int32_t wide[] = {1, 4, 6, 3}, deep[] = {1, 2, 3, 12};
    add_bytes(&sketch, 0.5f, 1, 4, deepen ? wide : deep);
    add_bytes(&sketch, 0.5f, 1, 4, deepen ? deep : wide);
    return sketch_finish(sketch, kind, "BLOCK");
}

struct sketch sketch_pack(void)
{
    struct sketch sketch = {.op.axis = 1};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 3));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 3));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 2, 3));
    return sketch_finish(sketch, MICA_OP_PACK, "PACK");
}

struct sketch sketch_unpack(void)
{
    struct sketch sketch = {.op.axis = 2};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 3, 2));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 3));
    sketch = sketch_finish(sketch, MICA_OP_UNPACK, "UNPACK");
    sketch.outputs[1] = add_bytes(&sketch, 0.5f, 1, DIMS(2, 3));
    sketch.op.output_count = 2;
    return sketch;
}

struct sketch sketch_gather(void)
{
    struct sketch sketch = {.op.axis = 1};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 5, 3));
    sketch_tensor(&sketch, MICA_TYPE_INT32, 0, 0, DIMS(4, 7));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 4, 7, 3));
    return sketch_finish(sketch, MICA_OP_GATHER, "GATHER");
}

struct sketch sketch_gather_nd(void)
{
    struct sketch sketch = {.op.kind = MICA_OP_GATHER_ND};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 5, 3));
    sketch_tensor(&sketch, MICA_TYPE_INT64, 0, 0, DIMS(7, 2));
    add_bytes(&sketch, 0.5f, 1, DIMS(7, 3));
    return sketch_finish(sketch, MICA_OP_GATHER_ND, "GATHER_ND");
}

struct sketch sketch_reverse(void)
{
    static const int32_t axes[] = {-1};
    struct sketch sketch = {.op.kind = MICA_OP_REVERSE};
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 5, 3));
    add_constant(&sketch, axes, DIMS(1));
    add_bytes(&sketch, 0.5f, 1, DIMS(2, 5, 3));
    return sketch_finish(sketch, MICA_OP_REVERSE, "REVERSE_V2");
}

struct sketch sketch_cast(void)
{
    struct sketch sketch = {.op.kind = MICA_OP_CAST};
    sketch_tensor(&sketch, MICA_TYPE_BOOL, 0, 0, DIMS(2, 5));
    sketch_tensor(&sketch, MICA_TYPE_INT64, 0, 0, DIMS(2, 5));
    return sketch_finish(sketch, MICA_OP_CAST, "CAST");
}

struct sketch sketch_wide_conv(void)
{
    struct sketch sketch = sketch_conv();
    static const int32_t zero;
    for (int i = 0; i < 4; i++) {
        sketch.tensors[i].type = i == 1 ? MICA_TYPE_INT8 : i == 2 ? MICA_TYPE_INT64 : MICA_TYPE_INT16;
        sketch.tensors[i].quant.zero_point = &zero;
    }
    return sketch;
}
