/* SPDX-License-Identifier: MIT */
/* ADD, with broadcasting. */
#include <math.h>

#include "cpu/requant.h"
#include "cpu/simd.h"

static int32_t dim_from_end(const struct mica_tensor *tensor, uint32_t i)
{
    return i < tensor->rank ? tensor->dims[tensor->rank - 1 - i] : 1;
}

static bool broadcasts(const struct mica_tensor *a, const struct mica_tensor *b, const struct mica_tensor *out)
{
    for (uint32_t i = 0; i < MICA_MAX_RANK; i++) {
        int32_t x = dim_from_end(a, i), y = dim_from_end(b, i), z = dim_from_end(out, i);
        if ((x != z && x != 1) || (y != z && y != 1))
            return false;
    }
    return true;
}

int mica_cpu_check_add(const struct mica_graph *graph, const struct mica_op *op, struct mica_cpu_reason *reason)
{
    int result = mica_cpu_check_operands(graph, op, 2, 1, reason);
    if (result)
        return result;
    const struct mica_tensor *a = mica_op_input(graph, op, 0), *b = mica_op_input(graph, op, 1);
    const struct mica_tensor *out = mica_op_output(graph, op, 0);
    result = mica_cpu_check_value(a, "first input", reason);
    if (!result)
        result = mica_cpu_check_value(b, "second input", reason);
    if (!result)
        result = mica_cpu_check_value(out, "output", reason);
    if (result)
        return result;
    if (a->type != b->type || a->type != out->type)
        return mica_cpu_refuse(reason, "inputs and output have different types");
    if (!broadcasts(a, b, out))
        return mica_cpu_refuse(reason, "the inputs' shapes don't broadcast to the output's");
    if (a->type != MICA_TYPE_FLOAT32 &&
        2 * fmaxf(a->quant.scale[0], b->quant.scale[0]) >= (float)(1 << 20) * out->quant.scale[0])
        return mica_cpu_refuse(reason, "the output's scale is too small for the inputs'");
    return mica_cpu_check_activation(op->activation, reason);
}

/* What each possible byte of an input adds to the sum, and how the sum becomes the result. */
struct addition {
    int32_t terms[2][256];
    struct mica_requant requant;
    struct mica_multiplier multiplier;
    float min, max;
};

static int32_t value_of(const struct mica_tensor *tensor, int byte)
{
    return (byte ^ mica_cpu_flip(tensor)) - mica_cpu_zero_point(tensor);
}

/* TFLite brings both inputs to half of the larger scale, with 20 more bits. */
static void prepare_tflite(struct addition *addition, const struct mica_tensor *const inputs[2],
                           const struct mica_tensor *out)
{
    double twice = 2 * (double)fmaxf(inputs[0]->quant.scale[0], inputs[1]->quant.scale[0]);
    for (int i = 0; i < 2; i++) {
        struct mica_multiplier multiplier = mica_multiplier_tflite((double)inputs[i]->quant.scale[0] / twice);
        for (int byte = 0; byte < 256; byte++)
            addition->terms[i][byte] =
                mica_scale_tflite(value_of(inputs[i], byte) * (1 << 20), multiplier.mantissa, multiplier.shift);
    }
    addition->multiplier = mica_multiplier_tflite(twice / ((double)(1 << 20) * (double)out->quant.scale[0]));
}

/*
 * Specification, section 7.5: the NPU convolves with two weights. All steps are in float32. The form of the V7
 * lowering serves for V8 as well, whose streams differ from it only by the rounding of the bias.
 */
static void prepare_vivante(struct addition *addition, const struct mica_tensor *const inputs[2],
                            const struct mica_tensor *out, enum mica_arithmetic arithmetic)
{
    float ratio = inputs[1]->quant.scale[0] / inputs[0]->quant.scale[0];
    float weight_scale = fmaxf(ratio, 1.0f) / 255.0f;
    const int32_t weights[2] = {(int32_t)roundf(1.0f / weight_scale), (int32_t)roundf(ratio / weight_scale)};
    for (int i = 0; i < 2; i++)
        for (int byte = 0; byte < 256; byte++)
            addition->terms[i][byte] = weights[i] * value_of(inputs[i], byte);
    float product = inputs[0]->quant.scale[0] * weight_scale;
    addition->multiplier = mica_multiplier_vivante(product / out->quant.scale[0], arithmetic);
}

static void prepare(struct addition *addition, const struct mica_cpu_call *call)
{
    const struct mica_tensor *const inputs[2] = {mica_cpu_input(call, 0), mica_cpu_input(call, 1)};
    const struct mica_tensor *out = mica_cpu_output(call, 0);
    if (out->type == MICA_TYPE_FLOAT32) {
        mica_activation_range(call->op->activation, &addition->min, &addition->max);
        return;
    }
    mica_requant_set_output(&addition->requant, call->arithmetic, out, call->op->activation);
    if (call->arithmetic == MICA_ARITHMETIC_TFLITE)
        prepare_tflite(addition, inputs, out);
    else
        prepare_vivante(addition, inputs, out, call->arithmetic);
}

/* Steps are 0 for an input that is repeated along the line, else 1. */
MICA_INLINE void add_line_body(const struct addition *addition, const uint8_t *a, const uint8_t *b, uint8_t *out,
                               size_t count, const size_t *steps)
{
    const struct mica_multiplier multiplier = addition->multiplier;
    for (size_t i = 0; i < count; i++) {
        int32_t sum = addition->terms[0][a[i * steps[0]]] + addition->terms[1][b[i * steps[1]]];
        out[i] = mica_requant_value(&addition->requant, sum, multiplier.mantissa, multiplier.shift);
    }
}

MICA_CPU_WIDE(add_line,
              (const struct addition *addition, const uint8_t *a, const uint8_t *b, uint8_t *out, size_t count,
               const size_t *steps),
              (addition, a, b, out, count, steps))

static void add_line_float(const struct addition *addition, const float *a, const float *b, float *out, size_t count,
                           const size_t *steps)
{
    for (size_t i = 0; i < count; i++)
        out[i] = mica_clamp_float(a[i * steps[0]] + b[i * steps[1]], addition->min, addition->max);
}

/* The output as lines that either input reads with a step of 0 or 1. */
struct walk {
    size_t lines, count; /* count: elements of a line */
    size_t steps[2];
    uint32_t folded; /* dimensions, from the end, that make up a line */
    const struct mica_tensor *inputs[2], *out;
};

static bool spread(const struct mica_tensor *in, const struct mica_tensor *out, uint32_t i)
{
    return dim_from_end(in, i) != dim_from_end(out, i);
}

static struct walk walk_of(const struct mica_cpu_call *call)
{
    struct walk walk = {.count = 1};
    walk.inputs[0] = mica_cpu_input(call, 0), walk.inputs[1] = mica_cpu_input(call, 1);
    walk.out = mica_cpu_output(call, 0);
    /* Dimensions that no input repeats join the line; the innermost may be repeated if it is alone. */
    while (walk.folded < walk.out->rank && !spread(walk.inputs[0], walk.out, walk.folded) &&
           !spread(walk.inputs[1], walk.out, walk.folded))
        walk.count *= (size_t)dim_from_end(walk.out, walk.folded++);
    walk.steps[0] = walk.steps[1] = 1;
    if (walk.folded == 0 && walk.out->rank > 0) {
        walk.count = (size_t)dim_from_end(walk.out, walk.folded++);
        for (int i = 0; i < 2; i++)
            walk.steps[i] = spread(walk.inputs[i], walk.out, 0) ? 0 : 1;
    }
    walk.lines = mica_cpu_elements(walk.out) / walk.count;
    return walk;
}

/* First element of an input for line `line` of the output. */
static size_t line_offset(const struct walk *walk, const struct mica_tensor *in, size_t line)
{
    size_t offset = 0, stride = 1;
    for (uint32_t i = 0; i < walk->out->rank; i++) {
        if (i >= walk->folded) {
            size_t size = (size_t)dim_from_end(walk->out, i);
            offset += spread(in, walk->out, i) ? 0 : line % size * stride;
            line /= size;
        }
        stride *= (size_t)dim_from_end(in, i);
    }
    return offset;
}

struct run {
    const struct mica_cpu_call *call;
    struct addition addition;
    struct walk walk;
    size_t piece; /* elements of a line that one task takes */
    size_t pieces;
};

static void run_piece(void *user, size_t index)
{
    const struct run *run = user;
    const struct walk *walk = &run->walk;
    size_t line = index / run->pieces, first = index % run->pieces * run->piece;
    size_t count = walk->count - first < run->piece ? walk->count - first : run->piece;
    size_t a = line_offset(walk, walk->inputs[0], line) + first * walk->steps[0];
    size_t b = line_offset(walk, walk->inputs[1], line) + first * walk->steps[1];
    size_t out = line * walk->count + first;
    const void *left = mica_cpu_input_data(run->call, 0), *right = mica_cpu_input_data(run->call, 1);
    void *result = mica_cpu_output_data(run->call, 0);
    if (walk->out->type == MICA_TYPE_FLOAT32)
        add_line_float(&run->addition, (const float *)left + a, (const float *)right + b, (float *)result + out, count,
                       walk->steps);
    else
        add_line(&run->addition, (const uint8_t *)left + a, (const uint8_t *)right + b, (uint8_t *)result + out, count,
                 walk->steps);
}

int mica_cpu_add(const struct mica_cpu_call *call)
{
    struct run run = {.call = call, .walk = walk_of(call), .piece = 16384};
    prepare(&run.addition, call);
    run.pieces = (run.walk.count + run.piece - 1) / run.piece;
    mica_parallel_for(call->threads, run.walk.lines * run.pieces, run_piece, &run);
    return 0;
}
