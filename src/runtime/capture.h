/* SPDX-License-Identifier: MIT */
/* Submissions as files, in the capture format that decoders and replayers read. */
#ifndef MICA_RUNTIME_CAPTURE_H
#define MICA_RUNTIME_CAPTURE_H

#include "runtime/run.h"

struct mica_capture;

/* `directory` must be empty or not exist; then it is made. */
int mica_capture_create(const char *directory, const struct mica_chip *chip, struct mica_log *log,
                        struct mica_capture **capture);
void mica_capture_destroy(struct mica_capture *capture); /* accepts NULL */

/* Writes `size` bytes to "KIND_INDEX.bin": "in" for an input, "cpu" for what the CPU makes of it. */
int mica_capture_tensor(struct mica_capture *capture, const char *kind, uint32_t index, const void *data, size_t size);

/* Writes run.json: the tensors of the model's border, and where those that cross to the device are in its memory. */
int mica_capture_run(struct mica_capture *capture, const struct mica_run *run);

/* Writes the next submit_NNNN/ with the buffers as they are now; a mica_instance_watch, `user` is the capture. */
int mica_capture_submit(void *user, const struct mica_submit *submit);

#endif
