/* SPDX-License-Identifier: MIT */
/* Lifetimes: random graphs are "run" by filling tensors with their number and looking whether it is still there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "fake.h"

static void assert_holds(const struct mica_graph *graph, const struct mica_tensor_memory *memory, int32_t tensor)
{
    const uint8_t *data = memory->data[tensor];
    assert_non_null(data);
    for (size_t i = 0; i < graph->tensors[tensor].bytes; i++)
        assert_int_equal(data[i], graph->tensors[tensor].data ? 0 : (uint8_t)(tensor + 1));
}

static void fill(const struct mica_graph *graph, const struct mica_tensor_memory *memory, int32_t tensor)
{
    assert_int_equal((uintptr_t)memory->data[tensor] % 64, 0);
    memset(memory->data[tensor], tensor + 1, graph->tensors[tensor].bytes);
}

static void run_step(const struct mica_graph *graph, const struct mica_step *step,
                     const struct mica_tensor_memory *memory)
{
    const struct mica_partition *part = &step->partition;
    for (uint32_t i = 0; step->npu && i < part->input_count; i++)
        assert_holds(graph, memory, (int32_t)part->inputs[i]);
    for (uint32_t i = 0; step->npu && i < part->output_count; i++)
        fill(graph, memory, (int32_t)part->outputs[i]);
    for (uint32_t k = 0; !step->npu && k < part->op_count; k++) {
        const struct mica_op *op = &graph->ops[part->ops[k]];
        for (uint32_t i = 0; i < op->output_count; i++)
            fill(graph, memory, op->outputs[i]);
        for (uint32_t i = 0; i < op->input_count; i++) /* after the outputs: they may not share */
            assert_holds(graph, memory, op->inputs[i]);
    }
}

/* Operation k writes tensor k + 1 and reads two before it, or the constant z; a is the input. */
static struct mica_graph *random_graph(char (*names)[3], uint32_t count)
{
    struct fake_op ops[20];
    for (uint32_t k = 0; k < count; k++) {
        names[2 * k][0] = (char)('a' + rand() % (int)(k + 1));
        names[2 * k][1] = rand() % 4 ? (char)('a' + rand() % (int)(k + 1)) : 'z';
        names[2 * k + 1][0] = (char)('a' + k + 1);
        ops[k] = (struct fake_op){rand() % 3 == 0, names[2 * k], names[2 * k + 1]};
    }
    const char outputs[] = {(char)('a' + count), (char)('a' + 1 + rand() % (int)count), 0};
    struct mica_graph *graph = fake_graph_create(ops, count, "a", outputs, "z");
    for (uint32_t i = 0; i < 25; i++)
        graph->tensors[i].bytes = 1 + (size_t)rand() % 300;
    return graph;
}

static void values_live_until_their_last_reader(void **state)
{
    srand(4);
    for (int round = 0; round < 3000; round++) {
        char names[40][3] = {{0}};
        struct mica_graph *graph = random_graph(names, 1 + (uint32_t)rand() % 20);
        struct mica_plan plan;
        struct mica_tensor_memory memory;
        assert_int_equal(mica_plan_create(graph, rand() & 1 ? &fake_chip : NULL, NULL, &plan), 0);
        assert_int_equal(mica_tensor_memory_create(graph, &plan, NULL, &memory), 0);
        for (int run = 0; run < 2; run++) {
            if (!run)
                fill(graph, &memory, graph->inputs[0]);
            for (uint32_t i = 0; i < plan.step_count; i++)
                run_step(graph, &plan.steps[i], &memory);
            assert_holds(graph, &memory, graph->inputs[0]); /* inputs keep their value over runs */
            for (uint32_t i = 0; i < graph->output_count; i++)
                assert_holds(graph, &memory, graph->outputs[i]);
        }
        mica_tensor_memory_finish(&memory);
        mica_plan_finish(&plan);
        fake_graph_destroy(graph);
    }
}

static void a_chain_needs_two_buffers_only(void **state)
{
    const struct fake_op ops[] = {{0, "a", "b"}, {0, "b", "c"}, {0, "c", "d"}, {0, "d", "e"}, {0, "e", "f"}};
    struct mica_graph *graph = fake_graph_create(ops, 5, "a", "f", "");
    struct mica_plan plan;
    struct mica_tensor_memory memory;
    for (int i = 0; i < 26; i++)
        graph->tensors[i].bytes = 640;
    assert_int_equal(mica_plan_create(graph, NULL, NULL, &plan), 0);
    assert_int_equal(mica_tensor_memory_create(graph, &plan, NULL, &memory), 0);
    assert_int_equal(memory.size, 4 * 640); /* input and output, which stay, and two in turns */
    assert_null(memory.data[20]);
    mica_tensor_memory_finish(&memory);
    mica_plan_finish(&plan);
    fake_graph_destroy(graph);
}

static void add_tensor(struct mica_graph *graph, int32_t size)
{
    const struct mica_tensor tensor = {.name = "", .type = MICA_TYPE_UINT8, .rank = 1, .dims = {size}};
    assert_int_equal(mica_graph_add_tensor(graph, &tensor, NULL), 0);
}

/* Reads `inputs`, writes the next tensor; only its lists matter here. */
static void add_op(struct mica_graph *graph, const int32_t *inputs, uint32_t count, int32_t output)
{
    const struct mica_op op = {.kind = MICA_OP_CONCATENATION,
                               .type = "CONCATENATION",
                               .input_count = count,
                               .output_count = 1,
                               .inputs = inputs,
                               .outputs = &output};
    assert_int_equal(mica_graph_add_op(graph, &op, NULL), 0);
}

/* `count` tensors made of the input, each read by an operation of its own in random order or by one, at the end. */
static struct mica_graph *wide_graph(int32_t count, bool at_once)
{
    struct mica_graph *graph;
    int32_t input = 0, made = 1, last, *all = malloc((size_t)count * sizeof *all);
    assert_non_null(all);
    assert_int_equal(mica_graph_create(NULL, &graph), 0);
    add_tensor(graph, 1);
    for (int32_t i = 0; i < count; i++) {
        int32_t from = i && !at_once ? 1 + rand() % i : 0;
        all[i] = made;
        add_tensor(graph, 1 + (at_once ? 0 : rand() % 300));
        add_op(graph, &from, 1, made++);
    }
    add_tensor(graph, count);
    add_op(graph, all, at_once ? (uint32_t)count : 1, last = made);
    assert_int_equal(mica_graph_set_io(graph, &input, 1, &last, 1, NULL), 0);
    free(all);
    return graph;
}

static void too_many_to_tell_apart_still_keep_their_values(void **state)
{
    struct mica_graph *graph = wide_graph(5000, false);
    struct mica_plan plan;
    struct mica_tensor_memory memory;
    size_t sum = 0;
    assert_int_equal(mica_plan_create(graph, NULL, NULL, &plan), 0);
    assert_int_equal(mica_tensor_memory_create(graph, &plan, NULL, &memory), 0);
    fill(graph, &memory, graph->inputs[0]);
    for (uint32_t i = 0; i < plan.step_count; i++)
        run_step(graph, &plan.steps[i], &memory);
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        sum += (graph->tensors[i].bytes + 63) / 64 * 64;
    assert_true(memory.size < sum * 2 / 3); /* and share memory */
    mica_tensor_memory_finish(&memory);
    mica_plan_finish(&plan);
    mica_graph_destroy(graph);
}

/* Looking at all of them for each would take minutes. */
static void planning_hundreds_of_thousands_is_quick(void **state)
{
    struct mica_graph *graph = wide_graph(400000, true);
    struct mica_plan plan;
    struct mica_tensor_memory memory;
    assert_int_equal(mica_plan_create(graph, NULL, NULL, &plan), 0);
    clock_t begin = clock();
    assert_int_equal(mica_tensor_memory_create(graph, &plan, NULL, &memory), 0);
    assert_true(clock() - begin < 10 * CLOCKS_PER_SEC);
    mica_tensor_memory_finish(&memory);
    mica_plan_finish(&plan);
    mica_graph_destroy(graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_live_until_their_last_reader),
        cmocka_unit_test(a_chain_needs_two_buffers_only),
        cmocka_unit_test(too_many_to_tell_apart_still_keep_their_values),
        cmocka_unit_test(planning_hundreds_of_thousands_is_quick),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
