/* SPDX-License-Identifier: MIT */
/* An executable made ready to run: tensors have memory, programs live on the device. */
#ifndef MICA_RUNTIME_RUN_H
#define MICA_RUNTIME_RUN_H

#include "mica/mica.h"
#include "runtime/cores.h"
#include "runtime/instance.h"
#include "runtime/tensor_memory.h"

/* An NPU step; all NULL for a CPU step. */
struct mica_run_step {
    struct mica_instance *instance;
    const void **inputs; /* host values of the program's inputs and outputs */
    void **outputs;
};

struct mica_run {
    const mica_executable *executable;
    struct mica_tensor_memory memory;
    struct mica_core *core; /* that its NPU steps run on; NULL without an NPU */
    struct mica_run_step *steps;
    struct mica_job_info *jobs; /* rows of the steps that ran since mica_run_start() */
    size_t job_count;
    struct mica_job_report *reports; /* what the device reported of its jobs among them */
    size_t report_count;
    uint32_t next_stage; /* of the rows */
    double clock_mhz;    /* that the reports count at */
};

/* Checked executables only. */
int mica_run_create(const mica_executable *executable, struct mica_log *log, struct mica_run *run);
void mica_run_finish(struct mica_run *run);

/* Forgets the rows of the last run. */
void mica_run_start(struct mica_run *run);

/* Runs one step to its end; steps must run in order. `before` (may be NULL) sees the submissions of NPU steps. */
int mica_run_step(struct mica_run *run, uint32_t step, mica_instance_watch *before, void *user, struct mica_log *log);

/*
 * Microseconds until `inferences` runs like the last are done on `cores` cores, by the timing model at `mhz`
 * (0: as it ran): mica_session_stream_us().
 */
int mica_run_stream_us(const struct mica_run *run, double mhz, uint32_t inferences, uint32_t cores,
                       struct mica_log *log, double *us);

/* The one use of a tensor by an NPU step. */
struct mica_tensor_use {
    uint32_t step, io; /* io: index in the program's inputs or outputs */
    bool output;
};

/* Can the device's own memory of an input or output of the model be the session's? NULL and *use, or why not. */
const char *mica_run_why_not_in_place(const struct mica_run *run, uint32_t tensor, bool output,
                                      struct mica_tensor_use *use);

/* Where a tensor crosses to the device (as an output: back), whole; false: it does not. The first place of several. */
bool mica_run_locate(const struct mica_run *run, uint32_t tensor, bool output, struct mica_tensor_place *place);

/* Moves the values of all inputs and outputs that can be in place there. */
void mica_run_place(struct mica_run *run);

/* See mica_instance_bind(); -ENOTSUP when the tensor can't be used in place. */
int mica_run_bind(struct mica_run *run, uint32_t tensor, bool output, int fd, uint64_t offset, struct mica_log *log);

#endif
