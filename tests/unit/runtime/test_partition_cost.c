/* SPDX-License-Identifier: MIT */
/* Which operations the cost model leaves to the CPU, in small graphs whose figures the tests set. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake.h"
#include "runtime/cost.h"
#include "runtime/device_options.h"

#define RATE MICA_CPU_MACS_PER_US /* then the CPU does 500 bytes a microsecond, a border 2500; an operation costs 1 */
#define MAX_OPS 8

static double npu_us[MAX_OPS];
static unsigned asked[MAX_OPS];
static const struct mica_compile_options by_cost = {.cost_cpu_macs = RATE};

static int describe(const struct mica_chip *chip, const struct mica_graph *graph, uint32_t op,
                    const struct mica_compile_options *options, struct mica_way *way)
{
    asked[op]++;
    way->us = options && options->fold_scales ? 1 : npu_us[op];
    return 0;
}

static int set_up(void **state)
{
    fake_family.describe = describe;
    fake_chip.submit_us = 2;
    return 0;
}

static int tear_down(void **state)
{
    fake_family.describe = NULL;
    fake_chip.submit_us = 0;
    return 0;
}

static void set_bytes(struct mica_graph *graph, size_t bytes)
{
    for (uint32_t i = 0; i < graph->tensor_count; i++)
        graph->tensors[i].bytes = bytes;
}

/* Where operations go, "N" and "C" in their order. */
static void assert_places(const struct mica_graph *graph, uint32_t rate, const bool *cpu_can, const char *expected,
                          struct mica_choice *choices)
{
    bool npu[MAX_OPS];
    char text[MAX_OPS + 1] = "";
    struct mica_compile_options options = {.cost_cpu_macs = rate};
    assert_int_equal(mica_place_by_cost(graph, &fake_chip, &options, cpu_can, NULL, npu, choices), 0);
    for (uint32_t i = 0; i < graph->op_count; i++)
        text[i] = npu[i] ? 'N' : 'C';
    assert_string_equal(text, expected);
}

static void set_npu(double a, double b, double c, double d)
{
    memcpy(npu_us, (double[]){a, b, c, d}, 4 * sizeof(double));
}

static void without_a_rate_the_npu_gets_all_it_can(void **state)
{
    const struct fake_op ops[] = {{1, "a", "b"}, {0, "b", "c"}, {1, "c", "d"}};
    struct mica_graph *graph = fake_graph_create(ops, 3, "a", "d", "");
    set_npu(1e6, 1e6, 1e6, 1e6);
    assert_places(graph, 0, NULL, "NCN", NULL);
    fake_family.describe = NULL;
    assert_places(graph, RATE, NULL, "NCN", NULL); /* nothing is known to choose by */
    fake_family.describe = describe;
    fake_graph_destroy(graph);
}

static void a_partition_that_is_slower_stays_on_the_cpu(void **state)
{
    /* On the CPU 1 + 1000 / 500 = 3 each; borders of 0.4 twice and a submission of 2 on the NPU. */
    const struct fake_op ops[] = {{1, "a", "b"}, {0, "b", "c"}, {1, "c", "d"}};
    struct mica_graph *graph = fake_graph_create(ops, 3, "a", "d", "");
    struct mica_choice choices[3];
    char reason[200] = "";
    set_bytes(graph, 1000);
    set_npu(0.1, 0, 0.3, 0);
    assert_places(graph, RATE, NULL, "NCC", choices);
    assert_false(mica_choice_reason(&choices[0], reason, sizeof reason));
    assert_false(mica_choice_reason(&choices[1], reason, sizeof reason)); /* the chip doesn't take it at all */
    assert_true(mica_choice_reason(&choices[2], reason, sizeof reason));
    assert_non_null(strstr(reason, "3 us on the CPU"));
    assert_true(choices[2].npu_us > 3.09 && choices[2].npu_us < 3.11);
    assert_true(choices[2].border_us > 0.79 && choices[2].border_us < 0.81);
    assert_places(graph, RATE / 10, NULL, "NCN", NULL); /* a slower CPU */
    fake_graph_destroy(graph);
}

/* Each operation once, with the options that it will be compiled with. */
static void families_are_asked_how_they_would_compute_it(void **state)
{
    const struct fake_op ops[] = {{1, "a", "b"}, {0, "b", "c"}, {1, "c", "d"}};
    struct mica_graph *graph = fake_graph_create(ops, 3, "a", "d", "");
    struct mica_compile_options options = {.cost_cpu_macs = RATE};
    bool npu[MAX_OPS];
    set_bytes(graph, 100000);
    set_npu(1e4, 0, 1e4, 0);
    memset(asked, 0, sizeof asked);
    assert_int_equal(mica_place_by_cost(graph, &fake_chip, &options, NULL, NULL, npu, NULL), 0);
    assert_true(!npu[0] && !npu[2]);
    options.fold_scales = true;
    assert_int_equal(mica_place_by_cost(graph, &fake_chip, &options, NULL, NULL, npu, NULL), 0);
    assert_true(npu[0] && npu[2]);
    assert_true(asked[0] == 2 && asked[2] == 2 && !asked[1]);
    fake_graph_destroy(graph);
}

static void what_the_cpu_lacks_stays_on_the_npu(void **state)
{
    const struct fake_op ops[] = {{1, "a", "b"}, {1, "b", "c"}, {0, "c", "d"}};
    const bool first[] = {false, true, true}, none[] = {true, true, true};
    struct mica_graph *graph = fake_graph_create(ops, 3, "a", "d", "");
    set_npu(100, 100, 0, 0);
    assert_places(graph, RATE, none, "CCC", NULL);
    assert_places(graph, RATE, first, "NNC", NULL);
    fake_graph_destroy(graph);
}

static void parts_that_have_nothing_in_common_are_chosen_by_themselves(void **state)
{
    /* One partition: 0 and 1 are a chain, 2 stands alone. */
    const struct fake_op ops[] = {{1, "a", "b"}, {1, "b", "c"}, {1, "d", "e"}};
    struct mica_graph *graph = fake_graph_create(ops, 3, "ad", "ce", "");
    set_bytes(graph, 1000);
    set_npu(0.1, 0.1, 50, 0);
    assert_places(graph, RATE, NULL, "NNC", NULL);
    set_npu(50, 0.1, 0.1, 0);
    assert_places(graph, RATE, NULL, "CCN", NULL);
    fake_graph_destroy(graph);
}

static void options_say_all_or_cost(void **state)
{
    struct mica_compile_options options = {0};
    assert_int_equal(options.cost_cpu_macs, 0); /* the default: what can run on the NPU does */
    assert_int_equal(mica_compile_option_set(&options, "partition", "cost", "x", NULL), 0);
    assert_int_equal(options.cost_cpu_macs, RATE);
    assert_int_equal(mica_compile_option_set(&options, "partition", "cost:8000", "x", NULL), 0);
    assert_int_equal(options.cost_cpu_macs, 8000);
    assert_int_equal(mica_compile_option_set(&options, "partition", "all", "x", NULL), 0);
    assert_int_equal(options.cost_cpu_macs, 0);
    const char *const bad[] = {"", "costs", "cost:", "cost:0", "cost:-1", "cost: 1", "cost:1x", "cost:10000001", "al"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(mica_compile_option_set(&options, "partition", bad[i], "x", NULL), -EINVAL);
}

/* ---- random graphs against all placements --------------------------------------- */

static double total(const struct mica_graph *graph, const bool *npu)
{
    struct mica_plan plan;
    assert_int_equal(mica_plan_create_placed(graph, npu, NULL, &plan), 0);
    double us = mica_plan_us(&plan, graph, &fake_chip, &by_cost);
    mica_plan_finish(&plan);
    return us;
}

/* The best total of all placements of `can`. */
static double best_total(const struct mica_graph *graph, const bool *can)
{
    double best = -1;
    for (uint32_t bits = 0; bits < 1u << graph->op_count; bits++) {
        bool npu[MAX_OPS], valid = true;
        for (uint32_t i = 0; i < graph->op_count; i++) {
            npu[i] = bits >> i & 1;
            valid = valid && (can[i] || !npu[i]);
        }
        double us = valid ? total(graph, npu) : -1;
        if (valid && (best < 0 || us < best))
            best = us;
    }
    return best;
}

static struct mica_graph *random_graph(uint32_t count, struct fake_op *ops, char (*names)[4])
{
    for (uint32_t k = 0; k < count; k++) {
        names[2 * k][0] = (char)('a' + rand() % (int)(k + 1));
        names[2 * k][1] = (char)('a' + rand() % (int)(k + 1));
        names[2 * k + 1][0] = (char)('a' + k + 1);
        ops[k] = (struct fake_op){rand() % 4 != 0, names[2 * k], names[2 * k + 1]};
        npu_us[k] = (rand() % 40) / 10.0;
    }
    struct mica_graph *graph = fake_graph_create(ops, count, "a", (char[]){(char)('a' + count), 0}, "");
    for (uint32_t i = 0; i <= count; i++)
        graph->tensors[i].bytes = 4 + (size_t)rand() % 3000;
    return graph;
}

static void random_choices_are_never_worse_than_either_device(void **state)
{
    unsigned best = 0, rounds = 1000;
    double lost = 0;
    srand(2);
    for (unsigned round = 0; round < rounds; round++) {
        struct fake_op ops[MAX_OPS];
        char names[2 * MAX_OPS][4] = {{0}};
        bool all[MAX_OPS], chosen[MAX_OPS], none[MAX_OPS] = {false};
        struct mica_graph *graph = random_graph(1 + (uint32_t)rand() % MAX_OPS, ops, names);
        assert_int_equal(mica_place_all(graph, &fake_chip, NULL, all), 0);
        assert_int_equal(mica_place_by_cost(graph, &fake_chip, &by_cost, NULL, NULL, chosen, NULL), 0);
        double us = total(graph, chosen), least = best_total(graph, all);
        assert_true(us <= total(graph, all) + 1e-9);
        assert_true(us <= total(graph, none) + 1e-9);
        for (uint32_t i = 0; i < graph->op_count; i++)
            assert_true(all[i] || !chosen[i]);
        best += us <= least + 1e-9;
        lost += us / least - 1;
        fake_graph_destroy(graph);
    }
    print_message("the best of all placements in %.1f %% of the graphs, %.2f %% above it on average\n",
                  100.0 * best / rounds, 100 * lost / rounds);
    /* Parts of a partition are the unit of choice, so some graphs could be cut better. */
    assert_true(best >= rounds * 6 / 10);
    assert_true(lost / rounds < 0.10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_rate_the_npu_gets_all_it_can),
        cmocka_unit_test(a_partition_that_is_slower_stays_on_the_cpu),
        cmocka_unit_test(families_are_asked_how_they_would_compute_it),
        cmocka_unit_test(what_the_cpu_lacks_stays_on_the_npu),
        cmocka_unit_test(parts_that_have_nothing_in_common_are_chosen_by_themselves),
        cmocka_unit_test(options_say_all_or_cost),
        cmocka_unit_test(random_choices_are_never_worse_than_either_device),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
