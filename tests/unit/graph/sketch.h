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

/* Builds it: index and out-of-memory errors fail the test. The caller destroys the graph. */
struct mica_graph *sketch_build(const struct sketch *sketch);

/* Fails unless the operation has no problem, or one that contains `part`. */
void expect_good(const struct sketch *sketch);
void expect_problem(const struct sketch *sketch, const char *part);

#endif
