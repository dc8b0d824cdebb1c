/* SPDX-License-Identifier: MIT */
/*
 * Whole networks by the timing model, dispatch left out, at 1 GHz: not above the sums of the vendor's tables, although
 * those count element-wise layers as nothing (specification, section 18). Also prints what compiling takes.
 */
#include "support.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/tflite/reader.h"
#include "npu/rockchip/compile/plan.h"
#include "runtime/partition.h"
#include "util/clock.h"

static const struct {
    const char *model;
    const struct mica_chip *chip;
    uint64_t vendor; /* cycles */
} networks[] = {
    {"mobilenet_v1_1.0_224_quant", &test_rk3588, 1197910},
    {"mobilenet_v2_1.0_224_quant", &test_rk3588, 1301931},
    {"mobilenet_v1_1.0_224_quant", &test_rk3566, 2608685},
    {"mobilenet_v2_1.0_224_quant", &test_rk3566, 2979643},
};

static void *read_model(const char *name, size_t *size)
{
    char path[512];
    snprintf(path, sizeof(path), "%s/models/%s.tflite", MICA_SHARED_DIR, name);
    return file_contents(path, size);
}

static bool has_weights(const struct rk_task *task)
{
    return task->start & RK_START_CNA;
}

static uint64_t partition_cycles(const struct mica_chip *chip, const struct mica_partition *partition, bool fuse,
                                 uint64_t *others)
{
    struct rk_plan plan;
    uint64_t cycles = 0;
    struct mica_compile_options options = {.fuse = fuse};
    assert_int_equal(rk_plan_init(&plan, chip, partition, &options, NULL, NULL), 0);
    assert_int_equal(rk_lower(&plan), 0);
    for (uint32_t i = 0; i < plan.task_count; i++) {
        uint64_t compute = plan.tasks[i].compute_cycles,
                 memory = rk_memory_cycles(plan.chip, plan.tasks[i].bytes, 1000);
        assert_true(!has_weights(&plan.tasks[i]) || (compute > 0 && memory > 0));
        *(has_weights(&plan.tasks[i]) ? &cycles : others) += compute > memory ? compute : memory;
    }
    rk_plan_finish(&plan);
    return cycles;
}

/* The throughput of three cores that share the memory, in that of one. */
static double stream_gain(const struct mica_chip *chip, const struct mica_partition *partition, double mhz,
                          bool dispatch)
{
    enum { INFERENCES = 30, CORES = 3 };
    struct rk_plan plan;
    assert_int_equal(rk_plan_init(&plan, chip, partition, NULL, NULL, NULL), 0);
    assert_int_equal(rk_lower(&plan), 0);
    struct rk_task_cost *tasks = calloc(plan.task_count, sizeof(*tasks));
    assert_non_null(tasks);
    for (uint32_t i = 0; i < plan.task_count; i++)
        tasks[i] = (struct rk_task_cost){.compute_cycles = plan.tasks[i].compute_cycles, .bytes = plan.tasks[i].bytes};
    for (uint32_t i = 0; dispatch && i < plan.task_count; i++)
        tasks[i].dispatch_us = i ? plan.chip->task_us : plan.chip->job_us;
    double one = rk_stream_us(plan.chip, mhz, tasks, plan.task_count, INFERENCES, 1);
    double all = rk_stream_us(plan.chip, mhz, tasks, plan.task_count, INFERENCES, CORES);
    free(tasks);
    rk_plan_finish(&plan);
    return one / all;
}

static double compile_ms(const struct mica_chip *chip, const struct mica_plan *steps)
{
    double begin = mica_clock_seconds();
    for (uint32_t i = 0; i < steps->step_count; i++) {
        struct mica_program *program;
        if (!steps->steps[i].npu)
            continue;
        assert_int_equal(chip->family->compile(chip, &steps->steps[i].partition, NULL, NULL, NULL, &program), 0);
        mica_program_destroy(program);
    }
    return (mica_clock_seconds() - begin) * 1e3;
}

static void networks_take_no_longer_than_the_vendors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(networks) / sizeof(networks[0]); i++) {
        size_t size = 0;
        void *data = read_model(networks[i].model, &size);
        struct mica_graph *graph;
        struct mica_plan steps;
        assert_non_null(data);
        assert_int_equal(mica_tflite_read(data, size, NULL, &graph), 0);
        assert_int_equal(mica_plan_create(graph, networks[i].chip, NULL, &steps), 0);
        uint64_t cycles = 0, others = 0, fused = 0;
        uint32_t npu_ops = 0;
        for (uint32_t s = 0; s < steps.step_count; s++)
            if (steps.steps[s].npu) {
                cycles += partition_cycles(networks[i].chip, &steps.steps[s].partition, false, &others);
                uint64_t rest = 0;
                fused += partition_cycles(networks[i].chip, &steps.steps[s].partition, true, &rest);
                fused += rest;
                npu_ops += steps.steps[s].partition.op_count;
            }
        printf("%s on %s: %u of %u operations, %llu cycles and %llu element-wise, fused %llu, the vendor %llu; "
               "compiled in %.1f ms\n",
               networks[i].model, networks[i].chip->name, npu_ops, graph->op_count, (unsigned long long)cycles,
               (unsigned long long)others, (unsigned long long)fused, (unsigned long long)networks[i].vendor,
               compile_ms(networks[i].chip, &steps));
        assert_true(npu_ops + 1 >= graph->op_count); /* all but the softmax */
        assert_true(cycles + others <= networks[i].vendor);
        assert_true(fused <= cycles + others);
        if (i == 0) {
            assert_int_equal(steps.steps[0].npu, 1);
            double gain = stream_gain(networks[i].chip, &steps.steps[0].partition, 800, true);
            printf("three cores at 800 MHz: %.2f times one, %.2f if tasks cost nothing to start\n", gain,
                   stream_gain(networks[i].chip, &steps.steps[0].partition, 800, false));
            assert_true(gain >= 2.2);
        }
        mica_plan_finish(&steps);
        mica_graph_destroy(graph);
        free(data);
    }
}

int main(void)
{
    size_t size;
    void *data = read_model(networks[0].model, &size);
    if (!data)
        return SKIP;
    free(data);
    const struct CMUnitTest tests[] = {cmocka_unit_test(networks_take_no_longer_than_the_vendors)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
