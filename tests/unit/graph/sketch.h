/* SPDX-License-Identifier: MIT */
/* One operation with its tensors, drawn by hand: change one thing, and see what the graph says. */
#ifndef TEST_GRAPH_SKETCH_H
#define TEST_GRAPH_SKETCH_H

#include "graph/graph.h"

struct sketch {
    struct mica_tensor tensors[8];
    uint32_t tensor_count;
    struct mica_op op;
    int32_t inputs[4], outputs[4];
};

/* All tensors are inputs but the last. */
struct sketch sketch_finish(struct sketch sketch, enum mica_op_kind kind, const char *type);

/* Adds a tensor: `scale` 0 for none. Returns its index. */
int32_t sketch_tensor(struct sketch *sketch, enum mica_type type, float scale, int32_t zero_point, uint32_t rank,
                      const int32_t *dims);

#define DIMS(...)                                                               \
    sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (const int32_t[]) \
    {                                                                           \
        __VA_ARGS__                                                             \
    }

/* uint8 convolution, 1x8x8x4 to 1x8x8x6, 3x3, SAME, with bias; tensors 0 to 2 and 3. */
struct sketch sketch_conv(void);
struct sketch sketch_depthwise(void); /* int8, per channel, 1x8x8x4 to 1x4x4x8, stride 2 */
struct sketch sketch_fully_connected(void);
struct sketch sketch_pool(void);
struct sketch sketch_add(void); /* 1x4x4x8 + 8 */
struct sketch sketch_reshape(void);
struct sketch sketch_softmax(void);
struct sketch sketch_logistic(void);
struct sketch sketch_concat(void); /* 2x3x4 and 2x5x4 along 1 */
struct sketch sketch_pad(void);
struct sketch sketch_quantize(void);
struct sketch sketch_dequantize(void);
struct sketch sketch_resize(void);
struct sketch sketch_detection(void);

/* The same for what came later; see their first lines for shapes. */
struct sketch sketch_transpose_conv(void); /* int8, per channel, 1x4x4x3 to 1x8x8x2, stride 2, SAME */
struct sketch sketch_binary(enum mica_op_kind kind);
struct sketch sketch_prelu(void);
struct sketch sketch_matmul(void); /* 2x3x4 times 5x4, turned */
struct sketch sketch_unary(enum mica_op_kind kind);
struct sketch sketch_reduce(enum mica_op_kind kind); /* 2x5x6x3 along 1 and -2, 2x3 is left */
struct sketch sketch_arg_max(void);
struct sketch sketch_slice(void);   /* rows 1 and 3, the columns backwards, one channel: the dimension is lost */
struct sketch sketch_split(void);   /* 2x6x3 in two along -2 */
struct sketch sketch_split_v(void); /* in 2 and the rest */
struct sketch sketch_transpose(void);
struct sketch sketch_mirror_pad(void);
struct sketch sketch_pad_value(void);
struct sketch sketch_block(enum mica_op_kind kind);
struct sketch sketch_pack(void);
struct sketch sketch_unpack(void);
struct sketch sketch_gather(void);
struct sketch sketch_gather_nd(void);
struct sketch sketch_reverse(void);
struct sketch sketch_cast(void);
struct sketch sketch_wide_conv(void); /* int16 with int8 weights and a 64-bit bias */

/* Builds it: index and out-of-memory errors fail the test. The caller destroys the graph. */
struct mica_graph *sketch_build(const struct sketch *sketch);

/* Fails unless the operation has no problem, or one that contains `part`. */
void expect_good(const struct sketch *sketch);
void expect_problem(const struct sketch *sketch, const char *part);

/*
 * The change speaks of the sketch as `s`, of its tensors as `t`; the second form
 * is for sketches that are made of a kind.
 */
#define REFUSES(make, part, ...) REFUSES_KIND(make(), part, __VA_ARGS__)
#define ACCEPTS(make, ...) ACCEPTS_KIND(make(), __VA_ARGS__)

#define REFUSES_KIND(made, part, ...)      \
    do {                                   \
        struct sketch s = made;            \
        struct mica_tensor *t = s.tensors; \
        (void)t;                           \
        __VA_ARGS__;                       \
        expect_problem(&s, part);          \
    } while (0)

#define ACCEPTS_KIND(made, ...)            \
    do {                                   \
        struct sketch s = made;            \
        struct mica_tensor *t = s.tensors; \
        (void)t;                           \
        __VA_ARGS__;                       \
        expect_good(&s);                   \
    } while (0)

#endif
