/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake.h"

/* Steps as text: "N01 C2" = operations 0 and 1 on the NPU, then 2 on the CPU. */
static void assert_plan(const struct mica_graph *graph, const char *expected)
{
    struct mica_plan plan;
    char text[256] = "";
    assert_int_equal(mica_plan_create(graph, &fake_chip, NULL, &plan), 0);
    for (uint32_t i = 0; i < plan.step_count; i++) {
        strcat(text, i ? " " : "");
        strcat(text, plan.steps[i].npu ? "N" : "C");
        for (uint32_t k = 0; k < plan.steps[i].partition.op_count; k++)
            strcat(text, (char[]){(char)('0' + plan.steps[i].partition.ops[k]), 0});
    }
    assert_string_equal(text, expected);
    mica_plan_finish(&plan);
}

#define PLAN(expected, inputs, outputs, ...)                                                                \
    do {                                                                                                    \
        const struct fake_op ops[] = {__VA_ARGS__};                                                         \
        struct mica_graph *graph = fake_graph_create(ops, sizeof ops / sizeof ops[0], inputs, outputs, ""); \
        assert_plan(graph, expected);                                                                       \
        fake_graph_destroy(graph);                                                                          \
    } while (0)

static void chains_are_cut_where_the_device_changes(void **state)
{
    PLAN("N012", "a", "d", {1, "a", "b"}, {1, "b", "c"}, {1, "c", "d"});
    PLAN("C012", "a", "d", {0, "a", "b"}, {0, "b", "c"}, {0, "c", "d"});
    PLAN("N0 C1 N2", "a", "d", {1, "a", "b"}, {0, "b", "c"}, {1, "c", "d"});
}

static void branches_share_a_partition(void **state)
{
    /* a -> 0 -> b, which 1 (CPU) and 2 (NPU) read; 3 joins them. */
    PLAN("N02 C1 N3", "a", "e", {1, "a", "b"}, {0, "b", "c"}, {1, "b", "d"}, {1, "cd", "e"});
}

static void cpu_operations_run_early_when_that_saves_a_partition(void **state)
{
    PLAN("C1 N02", "a", "bd", {1, "a", "b"}, {0, "a", "c"}, {1, "c", "d"});
}

static void a_graph_without_operations_has_no_steps(void **state)
{
    struct mica_graph *graph = fake_graph_create(NULL, 0, "a", "a", "");
    assert_plan(graph, "");
    fake_graph_destroy(graph);
}

static void without_a_chip_everything_is_one_cpu_step(void **state)
{
    const struct fake_op ops[] = {{1, "a", "b"}, {0, "b", "c"}, {1, "c", "d"}};
    struct mica_graph *graph = fake_graph_create(ops, 3, "a", "d", "");
    struct mica_plan plan;
    assert_int_equal(mica_plan_create(graph, NULL, NULL, &plan), 0);
    assert_int_equal(plan.step_count, 1);
    assert_false(plan.steps[0].npu);
    assert_int_equal(plan.steps[0].partition.op_count, 3);
    mica_plan_finish(&plan);
    fake_graph_destroy(graph);
}

static void operations_with_a_problem_stay_off_the_npu(void **state)
{
    const struct fake_op ops[] = {{1, "a", "b"}, {1, "b", "c"}};
    struct mica_graph *graph = fake_graph_create(ops, 2, "a", "c", "");
    graph->ops[1].problem = "broken";
    assert_plan(graph, "N0 C1");
    fake_graph_destroy(graph);
}

static void a_tensor_that_is_overwritten_keeps_the_order(void **state)
{
    /* 1 reads b before 2 writes it again, and 3 reads what 2 wrote. */
    PLAN("N0 C1 N2 C3", "a", "d", {1, "a", "b"}, {0, "b", "c"}, {1, "a", "b"}, {0, "b", "d"});
}

static void assert_tensors(const uint32_t *tensors, uint32_t count, const char *letters)
{
    assert_int_equal(count, strlen(letters));
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(tensors[i], letters[i] - 'a');
}

static void borders_have_what_crosses_them_once(void **state)
{
    /* w is a constant; c is read inside only, d inside and outside, e is an output of the graph, f is read by nobody.
     */
    const struct fake_op ops[] = {{1, "aw-", "c"}, {1, "cab", "d"}, {1, "dd", "ef"}, {0, "d", "g"}};
    const uint32_t inside[] = {0, 1, 2};
    struct mica_graph *graph = fake_graph_create(ops, 4, "ab", "eg", "w");
    struct mica_partition partition;
    assert_int_equal(mica_partition_create(graph, inside, 3, NULL, &partition), 0);
    assert_tensors(partition.inputs, partition.input_count, "ab");
    assert_tensors(partition.outputs, partition.output_count, "de");
    mica_partition_finish(&partition);
    fake_graph_destroy(graph);
}

static void partitions_of_operations_that_do_not_exist_are_refused(void **state)
{
    const struct fake_op ops[] = {{1, "a", "b"}};
    const uint32_t bad[] = {1};
    struct mica_graph *graph = fake_graph_create(ops, 1, "a", "b", "");
    struct mica_partition partition;
    assert_int_equal(mica_partition_create(graph, bad, 1, NULL, &partition), -EINVAL);
    fake_graph_destroy(graph);
}

static void restored_plans_must_have_every_operation_once(void **state)
{
    const struct fake_op ops[] = {{1, "a", "b"}, {0, "b", "c"}};
    struct mica_graph *graph = fake_graph_create(ops, 2, "a", "c", "");
    bool npu[] = {true, false};
    uint32_t counts[] = {1, 1}, order[] = {0, 1};
    struct mica_plan_layout layout = {2, npu, counts, order};
    struct mica_plan plan;
    assert_int_equal(mica_plan_restore(graph, &layout, NULL, &plan), 0);
    assert_int_equal(plan.step_count, 2);
    assert_tensors(plan.steps[0].partition.outputs, plan.steps[0].partition.output_count, "b");
    mica_plan_finish(&plan);
    order[1] = 0;
    assert_int_equal(mica_plan_restore(graph, &layout, NULL, &plan), -EINVAL);
    order[1] = 2;
    assert_int_equal(mica_plan_restore(graph, &layout, NULL, &plan), -EINVAL);
    order[1] = 1;
    counts[1] = 2;
    assert_int_equal(mica_plan_restore(graph, &layout, NULL, &plan), -EINVAL);
    counts[0] = 2, counts[1] = 0;
    assert_int_equal(mica_plan_restore(graph, &layout, NULL, &plan), -EINVAL);
    counts[0] = UINT32_MAX, counts[1] = 3;
    assert_int_equal(mica_plan_restore(graph, &layout, NULL, &plan), -EINVAL);
    fake_graph_destroy(graph);
}

/* ---- random graphs against a search through all orders ---------------- */

#define MAX_OPS 8

static uint32_t before[MAX_OPS]; /* per operation: those it needs, as bits */

/* A graph where operation k writes tensor k + 1; tensor 0 is the input. */
static struct mica_graph *random_graph(uint32_t count, struct fake_op *ops, char (*names)[4])
{
    for (uint32_t k = 0; k < count; k++) {
        uint32_t first = (uint32_t)rand() % (k + 1), second = (uint32_t)rand() % (k + 1);
        before[k] = (first ? 1u << (first - 1) : 0) | (second ? 1u << (second - 1) : 0);
        names[2 * k][0] = (char)('a' + first);
        names[2 * k][1] = (char)('a' + second);
        names[2 * k + 1][0] = (char)('a' + k + 1);
        ops[k] = (struct fake_op){rand() & 1, names[2 * k], names[2 * k + 1]};
    }
    return fake_graph_create(ops, count, "a", (char[]){(char)('a' + count), 0}, "");
}

/* Fewest partitions that still follow once `done` has run and the last one ran on the NPU or not. */
static unsigned fewest(const struct fake_op *ops, uint32_t count, uint32_t done, bool npu, uint8_t (*known)[2])
{
    if (done == (1u << count) - 1)
        return 0;
    if (known[done][npu])
        return known[done][npu] - 1u;
    unsigned best = UINT8_MAX - 1;
    for (uint32_t k = 0; k < count; k++) {
        if (done >> k & 1 || (before[k] & ~done))
            continue;
        unsigned cost = (ops[k].npu && !npu) + fewest(ops, count, done | 1u << k, ops[k].npu, known);
        best = cost < best ? cost : best;
    }
    known[done][npu] = (uint8_t)(best + 1);
    return best;
}

static void random_plans_are_valid_and_have_the_fewest_partitions(void **state)
{
    static uint8_t known[1 << MAX_OPS][2];
    srand(1);
    for (int round = 0; round < 2000; round++) {
        struct fake_op ops[MAX_OPS];
        char names[2 * MAX_OPS][4] = {{0}};
        uint32_t count = 1 + (uint32_t)rand() % MAX_OPS, done = 0;
        unsigned partitions = 0;
        struct mica_graph *graph = random_graph(count, ops, names);
        struct mica_plan plan;
        assert_int_equal(mica_plan_create(graph, &fake_chip, NULL, &plan), 0);
        for (uint32_t i = 0; i < plan.step_count; i++) {
            partitions += plan.steps[i].npu;
            assert_true(plan.steps[i].partition.op_count > 0);
            for (uint32_t k = 0; k < plan.steps[i].partition.op_count; k++) {
                uint32_t op = plan.steps[i].partition.ops[k];
                assert_int_equal(plan.steps[i].npu, ops[op].npu);
                assert_int_equal(before[op] & ~done, 0);
                assert_int_equal(done >> op & 1, 0);
                done |= 1u << op;
            }
        }
        assert_int_equal(done, (1u << count) - 1);
        memset(known, 0, sizeof known);
        assert_int_equal(partitions, fewest(ops, count, 0, false, known));
        mica_plan_finish(&plan);
        fake_graph_destroy(graph);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_are_cut_where_the_device_changes),
        cmocka_unit_test(branches_share_a_partition),
        cmocka_unit_test(cpu_operations_run_early_when_that_saves_a_partition),
        cmocka_unit_test(a_graph_without_operations_has_no_steps),
        cmocka_unit_test(without_a_chip_everything_is_one_cpu_step),
        cmocka_unit_test(operations_with_a_problem_stay_off_the_npu),
        cmocka_unit_test(a_tensor_that_is_overwritten_keeps_the_order),
        cmocka_unit_test(borders_have_what_crosses_them_once),
        cmocka_unit_test(partitions_of_operations_that_do_not_exist_are_refused),
        cmocka_unit_test(restored_plans_must_have_every_operation_once),
        cmocka_unit_test(random_plans_are_valid_and_have_the_fewest_partitions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
