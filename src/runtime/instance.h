/* SPDX-License-Identifier: MIT */
/* A compiled program living on a device: buffers allocated, relocations applied, contents uploaded. */
#ifndef MICA_RUNTIME_INSTANCE_H
#define MICA_RUNTIME_INSTANCE_H

#include "winsys/winsys.h"

struct mica_instance;

/* `program` is borrowed and must outlive the instance. */
int mica_instance_create(struct mica_winsys *winsys, const struct mica_program *program, struct mica_log *log,
                         struct mica_instance **instance);
void mica_instance_destroy(struct mica_instance *instance); /* accepts NULL */

/*
 * One run: inputs[i] / outputs[i] is the host value of the tensor of program->inputs[i] /
 * outputs[i], all of it, whatever piece that is.
 */
int mica_instance_invoke(struct mica_instance *instance, const void *const *inputs, void *const *outputs);

/* Reports of the last run, one per program job; *count is 0 where the device makes none. */
const struct mica_job_report *mica_instance_reports(const struct mica_instance *instance, size_t *count);

/* Sees a submission as it goes to the kernel; not 0 stops the run, which then returns that. */
typedef int mica_instance_watch(void *user, const struct mica_submit *submit);

/* Wall time of the last run from submission to the end of the wait, all submissions together. */
double mica_instance_device_seconds(const struct mica_instance *instance);

/*
 * Calls `visit` for every submission as it would go to the kernel, with the inputs
 * already in their buffers, without submitting anything.
 */
int mica_instance_visit(struct mica_instance *instance, const void *const *inputs, mica_instance_watch *visit,
                        void *user);

/* mica_instance_invoke() that calls `before` (may be NULL) ahead of every submission: buffers are as the job finds
 * them. For captures. */
int mica_instance_invoke_watched(struct mica_instance *instance, const void *const *inputs, void *const *outputs,
                                 mica_instance_watch *before, void *user);

/*
 * Can the host use the device's own memory of an input or output? NULL, or why
 * not. Where it can, invoke() copies nothing for pointers of mica_instance_map().
 */
const char *mica_instance_why_not_in_place(const struct mica_instance *instance, bool output, uint32_t index);
void *mica_instance_map(const struct mica_instance *instance, bool output, uint32_t index);

/* Where the device has a tensor of the program's border. */
struct mica_tensor_place {
    uint32_t bo;                              /* handle */
    uint64_t address;                         /* of the buffer */
    uint64_t offset;                          /* of the tensor in it */
    bool flip_sign;                           /* the device's bytes are the tensor's XORed with 0x80 */
    const struct mica_program_layout *layout; /* the program's */
};

struct mica_tensor_place mica_instance_locate(const struct mica_instance *instance, bool output, uint32_t index);

/*
 * Has the device use the memory behind a descriptor (see bo_import in winsys.h),
 * from `offset` on, for a tensor that can be in place; negative `fd`: its own again.
 * After an error that is not about the arguments the instance is of no use any more.
 */
int mica_instance_bind(struct mica_instance *instance, bool output, uint32_t index, int fd, uint64_t offset);

#endif
