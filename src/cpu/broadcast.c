/* SPDX-License-Identifier: MIT */
#include "cpu/broadcast.h"

static int32_t dim_from_end(const struct mica_tensor *tensor, uint32_t i)
{
    return i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

int mica_cpu_check_broadcast(const struct mica_tensor *a, const struct mica_tensor *b, const struct mica_tensor *out,
                             struct mica_cpu_reason *reason)
{
    for (uint32_t i = 0; i < MICA_MAX_RANK; i++) {
        int32_t x = dim_from_end(a, i), y = dim_from_end(b, i), z = dim_from_end(out, i);
        if ((x != z && x != 1) || (y != z && y != 1))
            return mica_cpu_refuse(reason, "the inputs' shapes don't broadcast to the output's");
    }
    return 0;
}

struct run {
    size_t lines, count; /* count: elements of a line */
    size_t steps[2];
    uint32_t folded; /* dimensions, from the end, that make up a line */
    const struct mica_tensor *inputs[2], *out;
    const uint8_t *in_data[2];
    uint8_t *out_data;
    mica_broadcast_line *line;
    const void *user;
    size_t piece; /* elements of a line that one task takes */
    size_t pieces;
};

static bool spread(const struct mica_tensor *in, const struct mica_tensor *out, uint32_t i)
{
    return dim_from_end(in, i) != dim_from_end(out, i);
}

/* Dimensions that no input repeats join the line; the innermost may be repeated if it is alone. */
static void fold(struct run *run)
{
    run->count = run->steps[0] = run->steps[1] = 1;
    while (run->folded < run->out->rank && !spread(run->inputs[0], run->out, run->folded) &&
           !spread(run->inputs[1], run->out, run->folded))
        run->count *= (size_t)dim_from_end(run->out, run->folded++);
    if (run->folded == 0 && run->out->rank > 0) {
        run->count = (size_t)dim_from_end(run->out, run->folded++);
        for (int i = 0; i < 2; i++)
            run->steps[i] = spread(run->inputs[i], run->out, 0) ? 0 : 1;
    }
    run->lines = mica_cpu_elements(run->out) / run->count;
}

/* First element of an input for line `line` of the output. */
static size_t line_offset(const struct run *run, const struct mica_tensor *in, size_t line)
{
    size_t offset = 0, stride = 1;
    for (uint32_t i = 0; i < run->out->rank; i++) {
        if (i >= run->folded) {
            size_t size = (size_t)dim_from_end(run->out, i);
            offset += spread(in, run->out, i) ? 0 : line % size * stride;
            line /= size;
        }
        stride *= (size_t)dim_from_end(in, i);
    }
    return offset;
}

static void run_piece(void *user, size_t index)
{
    const struct run *run = user;
    size_t line = index / run->pieces, first = index % run->pieces * run->piece;
    size_t count = run->count - first < run->piece ? run->count - first : run->piece;
    const uint8_t *in[2];
    for (int i = 0; i < 2; i++) {
        size_t offset = line_offset(run, run->inputs[i], line) + first * run->steps[i];
        in[i] = run->in_data[i] + offset * mica_type_size(run->inputs[i]->type);
    }
    size_t out = (line * run->count + first) * mica_type_size(run->out->type);
    run->line(run->user, in[0], in[1], run->out_data + out, count, run->steps);
}

void mica_broadcast_run(const struct mica_cpu_call *call, mica_broadcast_line *line, const void *user)
{
    struct run run = {
        .inputs = {mica_cpu_input(call, 0), mica_cpu_input(call, 1)},
        .out = mica_cpu_output(call, 0),
        .in_data = {mica_cpu_input_data(call, 0), mica_cpu_input_data(call, 1)},
        .out_data = mica_cpu_output_data(call, 0),
        .line = line,
        .user = user,
        .piece = 16384,
    };
    fold(&run);
    run.pieces = (run.count + run.piece - 1) / run.piece;
    mica_parallel_for(call->threads, run.lines * run.pieces, run_piece, &run);
}
