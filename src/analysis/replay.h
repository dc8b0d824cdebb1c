/* SPDX-License-Identifier: MIT */
/* A recording executed on a simulator, and what it leaves compared with what was recorded. */
#ifndef MICA_ANALYSIS_REPLAY_H
#define MICA_ANALYSIS_REPLAY_H

#include "analysis/capture.h"
#include "npu/npu.h"

struct mica_replay_options {
    const struct mica_chip *chip;
    bool read_v7;         /* coefficient buffers are V7 streams, whatever the chip would make of them */
    uint64_t cycle_limit; /* of a submission's job by the timing model; 0: the simulator's own */
    struct mica_threads *threads;
    /* Called before each submission; may be NULL. False ends the replay with -ECANCELED. */
    bool (*progress)(void *user, size_t submit, size_t count);
    void *user;
};

struct mica_replayed_job {
    size_t submit;
    const char *unit; /* "NN", "TP", "task" */
    struct mica_job_report report;
};

enum mica_replay_what {
    MICA_REPLAY_OUTPUT, /* an output of the model, with the CPU's result */
    MICA_REPLAY_BUFFER, /* a buffer after a submission, with what the device left in it */
};

struct mica_replay_comparison {
    enum mica_replay_what what;
    uint32_t index;     /* of the output; handle of the buffer */
    size_t submit;      /* of a buffer */
    const char *absent; /* why it isn't compared; NULL: it is */
    bool failed;        /* absent although it should be there */
    uint64_t address;
    size_t bytes, different;
    size_t first;          /* that differs, when one does */
    unsigned largest;      /* difference */
    size_t histogram[511]; /* of ours minus the recorded value, from -255 */
};

struct mica_replay {
    struct mica_replayed_job *jobs;
    size_t job_count, job_capacity;
    struct mica_replay_comparison *comparisons; /* buffers first, then outputs */
    size_t comparison_count;
    bool different, failed; /* anything of it */
};

/* 0 or a negative errno, said: the stream does what the device can't. Release it in both cases. */
int mica_replay_run(const struct mica_recording *recording, const struct mica_replay_options *options,
                    struct mica_log *log, struct mica_replay *replay);
void mica_replay_release(struct mica_replay *replay);

#endif
