/* SPDX-License-Identifier: MIT */
/* .tflite files to graphs. */
#ifndef MICA_FRONTEND_TFLITE_READER_H
#define MICA_FRONTEND_TFLITE_READER_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct mica_log;
struct mica_graph;

/*
 * Reads the first subgraph of a model. `data`, 16-byte aligned, is verified
 * before anything is believed; constants are borrowed from it, so it must
 * outlive the graph. What only one tensor or operation suffers from becomes its
 * `problem`; -EINVAL is for files that are damaged or not models.
 */
int mica_tflite_read(const void *data, size_t size, struct mica_log *log, struct mica_graph **graph);

#ifdef __cplusplus
}
#endif

#endif
