/* SPDX-License-Identifier: MIT */
/* What SLICE and STRIDED_SLICE take: beginnings, ends, steps and masks against the answers worked out by hand. */
#include "sketch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST 8

struct question {
    uint32_t places;
    int32_t begin[MOST], end[MOST], step[MOST];
    struct mica_slice_masks masks;
};

static const int32_t input_dims[] = {4, 5, 6};

/* Resolves `question` over an input of 4x5x6; `text` gets "begin:step*count" for each dimension, and the output's
 * shape. */
static const char *resolve(const struct question *question, char text[200])
{
    struct sketch sketch = {.op.kind = MICA_OP_SLICE};
    const int32_t places = (int32_t)question->places;
    const int32_t *const parts[] = {question->begin, question->end, question->step};
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 0, 3, input_dims);
    for (int i = 0; i < 3; i++)
        sketch.tensors[sketch_tensor(&sketch, MICA_TYPE_INT32, 0, 0, 1, &places)].data = parts[i];
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 0, 3, input_dims);
    sketch = sketch_finish(sketch, MICA_OP_SLICE, "STRIDED_SLICE");
    struct mica_graph *graph = sketch_build(&sketch);
    struct mica_slice slice;
    uint32_t rank = 0;
    int32_t dims[MICA_MAX_RANK];
    const char *problem = mica_slice_resolve(graph, graph->ops, &question->masks, &slice, &rank, dims);
    mica_graph_destroy(graph);
    size_t used = 0;
    for (uint32_t i = 0; i < 3 && !problem; i++)
        used += (size_t)snprintf(text + used, 200 - used, "%d:%d*%d ", slice.begin[i], slice.step[i], slice.count[i]);
    for (uint32_t i = 0; i < rank && !problem; i++)
        used += (size_t)snprintf(text + used, 200 - used, i ? "x%d" : "= %d", dims[i]);
    return problem;
}

static void expect(struct question question, const char *answer)
{
    char text[200] = "";
    const char *problem = resolve(&question, text);
    if (problem)
        fail_msg("should be %s: %s", answer, problem);
    assert_string_equal(text, answer);
}

static void refuse(struct question question, const char *part)
{
    char text[200] = "";
    const char *problem = resolve(&question, text);
    if (!problem || !strstr(problem, part))
        fail_msg("should complain about %s, not: %s", part, problem ? problem : text);
}

#define ASK(...) ((struct question){__VA_ARGS__})

static void ends_and_steps_are_counted(void **state)
{
    expect(ASK(3, {1, 0, 2}, {3, 5, 6}, {1, 1, 1}), "1:1*2 0:1*5 2:1*4 = 2x5x4");
    expect(ASK(3, {0, 0, 0}, {4, 5, 6}, {2, 2, 4}), "0:2*2 0:2*3 0:4*2 = 2x3x2");
    expect(ASK(3, {-1, -3, -6}, {4, -1, 100}, {1, 1, 1}), "3:1*1 2:1*2 0:1*6 = 1x2x6");
    expect(ASK(3, {3, 4, 5}, {0, -6, 1}, {-1, -1, -2}), "3:-1*3 4:-1*5 5:-2*2 = 3x5x2");
    expect(ASK(2, {1, 1}, {2, 2}, {1, 1}), "1:1*1 1:1*1 0:1*6 = 1x1x6");
}

static void masks_stand_for_the_borders(void **state)
{
    expect(ASK(3, {2, 2, 2}, {3, 3, 3}, {1, 1, 1}, .masks = {.begin = 1, .end = 2}), "0:1*3 2:1*3 2:1*1 = 3x3x1");
    expect(ASK(3, {2, 2, 2}, {3, 3, 1}, {-1, -1, -1}, .masks = {.begin = 3, .end = 3}), "3:-1*4 4:-1*5 2:1*1 = 4x5x1");
}

static void shrinking_loses_a_dimension(void **state)
{
    expect(ASK(3, {1, 0, -1}, {0, 5, 0}, {1, 1, 1}, .masks = {.shrink_axis = 5}), "1:1*1 0:1*5 5:1*1 = 5");
    refuse(ASK(3, {4, 0, 0}, {0, 5, 6}, {1, 1, 1}, .masks = {.shrink_axis = 1}), "takes nothing");
}

static void an_ellipsis_stands_for_the_rest(void **state)
{
    expect(ASK(2, {0, 2}, {0, 3}, {1, 1}, .masks = {.ellipsis = 1}), "0:1*4 0:1*5 2:1*1 = 4x5x1");
    expect(ASK(3, {1, 0, 2}, {2, 0, 3}, {1, 1, 1}, .masks = {.ellipsis = 2}), "1:1*1 0:1*5 2:1*1 = 1x5x1");
    expect(ASK(4, {1, 1, 0, 2}, {2, 2, 0, 3}, {1, 1, 1, 1}, .masks = {.ellipsis = 4}), "1:1*1 1:1*1 2:1*1 = 1x1x1");
    refuse(ASK(3, {0}, {0}, {1, 1, 1}, .masks = {.ellipsis = 5}), "more than one ellipsis");
}

static void new_axes_come_between(void **state)
{
    expect(ASK(4, {0, 1, 0, 0}, {0, 2, 5, 6}, {1, 1, 1, 1}, .masks = {.new_axis = 1}), "1:1*1 0:1*5 0:1*6 = 1x1x5x6");
    expect(ASK(2, {0, 0}, {0, 0}, {1, 1}, .masks = {.ellipsis = 1, .new_axis = 2}), "0:1*4 0:1*5 0:1*6 = 4x5x6x1");
    refuse(ASK(8, {0}, {0}, {1, 1, 1, 1, 1, 1, 1, 1}, .masks = {.new_axis = 0xff}), "more than 8");
}

static void ends_may_count_from_the_beginnings(void **state)
{
    expect(ASK(3, {1, -2, 0}, {2, 1, 6}, {1, 1, 1}, .masks = {.offset = true}), "1:1*2 3:1*1 0:1*6 = 2x1x6");
}

static void senseless_numbers_are_refused(void **state)
{
    refuse(ASK(3, {2, 0, 0}, {2, 5, 6}, {1, 1, 1}), "takes nothing");
    refuse(ASK(3, {0, 0, 0}, {4, 5, 6}, {1, 0, 1}), "takes nothing");
    refuse(ASK(3, {0, 0, 0}, {4, 5, 6}, {1, INT32_MIN, 1}), "takes nothing");
    refuse(ASK(4, {0}, {1, 1, 1, 1}, {1, 1, 1, 1}), "more dimensions than");
    expect(ASK(3, {INT32_MIN, 0, INT32_MAX}, {INT32_MAX, 5, INT32_MIN}, {INT32_MAX, 1, -INT32_MAX}),
           "0:1*1 0:1*5 5:1*1 = 1x5x1");
}

/* begin and size, as SLICE has them */
static void a_plain_slice_has_sizes(void **state)
{
    static const int32_t three = 3, begin[] = {1, 0, 2}, size[] = {2, -1, 4}, large[] = {2, 6, 4};
    struct sketch sketch = {.op.kind = MICA_OP_SLICE};
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 0, 3, input_dims);
    sketch.tensors[sketch_tensor(&sketch, MICA_TYPE_INT32, 0, 0, 1, &three)].data = begin;
    sketch.tensors[sketch_tensor(&sketch, MICA_TYPE_INT32, 0, 0, 1, &three)].data = size;
    sketch_tensor(&sketch, MICA_TYPE_INT8, 0.5f, 0, DIMS(2, 5, 4));
    sketch = sketch_finish(sketch, MICA_OP_SLICE, "SLICE");
    struct mica_graph *graph = sketch_build(&sketch);
    uint32_t rank;
    int32_t dims[MICA_MAX_RANK];
    assert_null(mica_slice_resolve(graph, graph->ops, NULL, &sketch.op.slice, &rank, dims));
    assert_int_equal(rank, 3);
    assert_memory_equal(dims, graph->tensors[3].dims, 3 * sizeof *dims);
    graph->tensors[2].data = large;
    assert_non_null(mica_slice_resolve(graph, graph->ops, NULL, &(struct mica_slice){.count = {0}}, &rank, dims));
    graph->tensors[2].data = NULL;
    assert_non_null(mica_slice_resolve(graph, graph->ops, NULL, &(struct mica_slice){.count = {0}}, &rank, dims));
    mica_graph_destroy(graph);
    expect_good(&sketch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ends_and_steps_are_counted),    cmocka_unit_test(masks_stand_for_the_borders),
        cmocka_unit_test(shrinking_loses_a_dimension),   cmocka_unit_test(an_ellipsis_stands_for_the_rest),
        cmocka_unit_test(new_axes_come_between),         cmocka_unit_test(ends_may_count_from_the_beginnings),
        cmocka_unit_test(senseless_numbers_are_refused), cmocka_unit_test(a_plain_slice_has_sizes),
    };
    return cmocka_run_group_tests_name("slice", tests, NULL, NULL);
}
