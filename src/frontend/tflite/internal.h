/* SPDX-License-Identifier: MIT */
/* Inside the reader: C++ only because the flatbuffers library is; no exceptions, no run-time library. */
#ifndef MICA_FRONTEND_TFLITE_INTERNAL_H
#define MICA_FRONTEND_TFLITE_INTERNAL_H

#include "schema_generated.h"

#include <string.h>

extern "C" {
#include "graph/graph.h"
}

namespace mica
{

struct Reader {
    const tflite::Model *model;
    const tflite::SubGraph *subgraph;
    mica_graph *graph;
    struct mica_log *log;
    /* Bytes that may still be copied: parts of a file can be shared by any number of tables. */
    size_t budget;
    /* Per tensor: an operation or the graph itself uses it, so that its shape is settled. */
    uint8_t *settled;
    int32_t *scratch; /* zero points of the tensor at hand */
    size_t scratch_size;
};

/* The elements of a verified vector, nullptr and 0 for an absent one. */
template <typename T> struct Elements {
    const uint8_t *bytes = nullptr;
    uint32_t count = 0;

    explicit Elements(const flatbuffers::Vector<T> *vector)
        : bytes(vector ? vector->Data() : nullptr), count(vector ? vector->size() : 0)
    {
    }

    /* The verifier does not check the alignment of 64-bit elements. */
    T operator[](uint32_t i) const
    {
        T value;
        memcpy(&value, bytes + i * sizeof value, sizeof value);
        return value;
    }

    /* For elements of up to 32 bits, which are aligned. */
    const T *array() const
    {
        static_assert(sizeof(T) <= 4, "unaligned elements");
        return reinterpret_cast<const T *>(bytes);
    }
};

/* Takes `bytes` off the budget, or fails. */
int reader_spend(Reader &reader, size_t bytes);

/* One operator on its way into the graph. */
struct Pending {
    const tflite::Operator *source;
    int32_t code;
    mica_op op;
    char text[160]; /* for a problem that has to be composed */
};

/* Input `i`, nullptr when it is absent or can't be used. */
const mica_tensor *reader_input(const Reader &reader, const Pending &pending, uint32_t i);

/* parameters.cc: sets kind, parameters and, where those make no sense, the problem. */
void reader_parameters(const Reader &reader, Pending &pending);

/* How a STRIDED_SLICE counts; false when it has no parameters. */
bool reader_slice_masks(const Pending &pending, mica_slice_masks &masks);

/* operators.cc: adds operator `index` of the subgraph. */
int reader_add_operator(Reader &reader, uint32_t index);

} // namespace mica

#endif
