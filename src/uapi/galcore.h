/* SPDX-License-Identifier: MIT */
/*
 * The interface of the vendor's driver of Vivante cores (/dev/galcore), as far as it stays the same over its
 * versions: one request, whose argument points to a structure that the driver reads and writes back. Facts of the
 * vendor's kernel headers under their MIT licence (version 6.4). The structure's members and the numbers of its
 * commands differ from version to version, and nothing in a call tells the version.
 */
#ifndef MICA_UAPI_GALCORE_H
#define MICA_UAPI_GALCORE_H

#include <stdint.h>

#define MICA_GALCORE_INTERFACE 30000u /* no number of the usual form: it names no size */
#define MICA_GALCORE_PROFILER 30001u

struct mica_galcore_arguments {
    uint64_t input, input_size, output, output_size;
};

#endif
