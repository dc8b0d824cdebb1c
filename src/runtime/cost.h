/* SPDX-License-Identifier: MIT */
/*
 * The cost model of partitions: what a plan costs, and which operations are
 * better left to the CPU although the NPU takes them. Rough, and meant to be:
 * its NPU figures are a timing model's, its CPU figures come from one measured rate.
 */
#ifndef MICA_RUNTIME_COST_H
#define MICA_RUNTIME_COST_H

#include "runtime/partition.h"

/*
 * MACs a microsecond of one thread of the CPU: MobileNetV1, 568.7 million of
 * them, in 12.51 ms (docs/bench.md). Boards are slower: "cost:N" tells how much.
 */
#define MICA_CPU_MACS_PER_US 45000u
#define MICA_MAX_CPU_MACS_PER_US 10000000u

/* Microseconds; of an operation that stayed on the CPU by choice, for the part of the graph it stayed with. */
struct mica_choice {
    double npu_us, border_us, cpu_us; /* border_us: copies, part of npu_us. All 0: no such choice was made */
};

/* All of a plan, one step after the other; negative when memory runs out. The chip may be NULL; else its family must
 * have describe(). */
double mica_plan_us(const struct mica_plan *plan, const struct mica_graph *graph, const struct mica_chip *chip,
                    const struct mica_compile_options *options);

/*
 * Places operations on the NPU or the CPU by what looks faster, the CPU taking
 * options->cost_cpu_macs MACs a microsecond (0: everything that `chip` takes goes
 * to the NPU). The unit of choice is a connected part of a partition. cpu_can[i]: the
 * CPU can run operation i; NULL: it can run all. npu and choices (may be NULL)
 * have an entry an operation.
 */
int mica_place_by_cost(const struct mica_graph *graph, const struct mica_chip *chip,
                       const struct mica_compile_options *options, const bool *cpu_can, struct mica_log *log, bool *npu,
                       struct mica_choice *choices);

/* Was such a choice made? Then `reason` gets the sentence that explains it. */
bool mica_choice_reason(const struct mica_choice *choice, char *reason, size_t size);

#endif
