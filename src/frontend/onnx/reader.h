/* SPDX-License-Identifier: MIT */
/* .onnx files to graphs. */
#ifndef MICA_FRONTEND_ONNX_READER_H
#define MICA_FRONTEND_ONNX_READER_H

#include <stdbool.h>
#include <stddef.h>

struct mica_log;
struct mica_graph;

/* Do the first bytes look like a serialized ONNX model? There is no magic number: it starts with its IR version. */
bool mica_onnx_recognize(const void *data, size_t size);

/*
 * Reads a model. Nothing in `data` is believed before it is checked. Constants
 * are borrowed from it where layout and alignment allow, so it must outlive the
 * graph. What only one tensor or operation suffers from becomes its `problem`;
 * -EINVAL is for files that are damaged or not models.
 */
int mica_onnx_read(const void *data, size_t size, struct mica_log *log, struct mica_graph **graph);

#endif
