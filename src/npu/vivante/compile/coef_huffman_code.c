/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/coef_huffman_code.h"

#include <assert.h>

#include "util/bits.h"

const uint8_t viv_symbol_bits[8] = {2, 2, 3, 3, 3, 4, 5, 5};

/*
 * The parts of a code in one word: bits 2:0 the 3-bit part, 4:3 the 2-bit part,
 * 6:5 its width (0 or 2), 11:8 the width of the value field, 23:16 the field.
 */
#define CODE(three, two, two_bits, value, value_bits)                                                     \
    ((uint32_t)(three) | (uint32_t)(two) << 3 | (uint32_t)(two_bits) << 5 | (uint32_t)(value_bits) << 8 | \
     (uint32_t)(value) << 16)

static uint32_t significant_bits(uint32_t value)
{
    return value ? 32 - (uint32_t)__builtin_clz(value) : 0;
}

uint32_t viv_class_bits(uint32_t class, uint32_t runs)
{
    if (runs == 0)
        return class ? class : 1;
    if (class == VIV_CLASS_RUN_LONG)
        return significant_bits(runs - 2) - 1;
    return class == VIV_CLASS_RUN_SHORT ? 1 : class == VIV_CLASS_RAW ? 8 : class;
}

/* A symbol with its value (specification, table in section 5.2.3). */
static uint32_t symbol_code(uint32_t symbol, uint32_t value, uint32_t bits)
{
    switch (symbol) {
    case 0:
    case 1:
        return CODE(symbol | (value & 1) << 2, 0, 0, value >> 1, bits - 1);
    case 2:
        return CODE(7, 0, 0, value, bits);
    case 3:
        return CODE(3, 0, 0, value, bits);
    case 4:
        return CODE(6, 0, 0, value, bits);
    case 5:
        return CODE(2, 1 | (value & 1) << 1, 2, value >> 1, bits - 1);
    case 6:
        return CODE(2, 2, 2, value, bits);
    default:
        return CODE(2, 0, 2, value, bits);
    }
}

struct codes {
    uint32_t byte[256]; /* by byte of the sequence */
    uint32_t run[VIV_HUFFMAN_MAX_RUNS];
    uint32_t dummy;
    uint8_t zero; /* byte that runs are made of */
};

/* Sign and magnitude, the leading one of which is known from the length. */
static uint32_t signed_value(uint32_t sign, uint32_t magnitude)
{
    uint32_t length = significant_bits(magnitude);
    return (length ? magnitude - (1u << (length - 1)) : 0) << 1 | sign;
}

static uint32_t value_code(const int8_t *symbol_of, uint32_t runs, uint32_t value)
{
    uint32_t sign = value >> 7;
    if (!runs) {
        uint32_t magnitude = sign ? ~value & 255 : value, class = significant_bits(magnitude);
        return symbol_code((uint32_t)symbol_of[class], signed_value(sign, magnitude), viv_class_bits(class, 0));
    }
    uint32_t magnitude = sign ? 256 - value : value, class = significant_bits(magnitude);
    if (class == 0 || class > 6 || symbol_of[class] < 0)
        return symbol_code((uint32_t)symbol_of[VIV_CLASS_RAW], value, 8);
    return symbol_code((uint32_t)symbol_of[class], signed_value(sign, magnitude), class);
}

static void symbols_of(const struct viv_huffman_choices *choices, int8_t symbol_of[VIV_CLASSES])
{
    for (uint32_t class = 0; class < VIV_CLASSES; class ++)
        symbol_of[class] = -1;
    for (int8_t symbol = 0; symbol < 8; symbol++)
        symbol_of[choices->symbol_map[symbol]] = symbol;
}

static void make_codes(const struct viv_huffman_choices *choices, uint8_t zero_point, struct codes *codes)
{
    int8_t symbol_of[VIV_CLASSES];
    symbols_of(choices, symbol_of);
    codes->zero = (uint8_t)(zero_point + choices->average_bias);
    for (uint32_t value = 0; value < 256; value++)
        codes->byte[(uint8_t)(value + codes->zero)] = value_code(symbol_of, choices->runs, value);
    codes->dummy = codes->byte[codes->zero];
    for (uint32_t i = 0; i < choices->runs; i++) {
        uint32_t class = i < 2 ? VIV_CLASS_RUN_SHORT : VIV_CLASS_RUN_LONG;
        codes->run[i] =
            symbol_code((uint32_t)symbol_of[class], i < 2 ? i : i - 2, viv_class_bits(class, choices->runs));
    }
}

/* ---- how runs are cut --------------------------------------------------- */

void viv_run_plan_vendor(const struct viv_huffman_choices *choices, struct viv_run_plan *plan)
{
    plan->limit = VIV_RUN_LIMIT;
    plan->piece = 1;
    for (uint32_t i = 0; i < choices->runs; i++)
        plan->piece = choices->run[i] > plan->piece ? choices->run[i] : plan->piece;
    for (uint32_t length = 0; length <= VIV_RUN_LIMIT; length++) {
        uint32_t best = VIV_RUN_RAW;
        for (uint32_t i = 0; i < choices->runs; i++)
            if (choices->run[i] <= length && (best == VIV_RUN_RAW || choices->run[i] > choices->run[best]))
                best = i;
        plan->entry[length] = (uint8_t)best;
    }
}

struct viv_run_costs viv_run_costs_of(const struct viv_huffman_choices *choices)
{
    int8_t symbol_of[VIV_CLASSES];
    symbols_of(choices, symbol_of);
    return (struct viv_run_costs){
        .shorter = viv_symbol_bits[symbol_of[VIV_CLASS_RUN_SHORT]] + 1u,
        .longer = viv_symbol_bits[symbol_of[VIV_CLASS_RUN_LONG]] + viv_class_bits(VIV_CLASS_RUN_LONG, choices->runs),
        .raw = viv_symbol_bits[symbol_of[VIV_CLASS_RAW]] + 8u,
    };
}

/* The entries, shortest first: each as its place in the table and what its code costs. */
static uint32_t sort_runs(const struct viv_huffman_choices *choices, const struct viv_run_costs *costs, uint16_t *run,
                          uint32_t *keys)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < choices->runs; i++) {
        uint32_t place = count++;
        for (; place > 0 && run[place - 1] > choices->run[i]; place--) {
            run[place] = run[place - 1];
            keys[place] = keys[place - 1];
        }
        run[place] = choices->run[i];
        keys[place] = (i < 2 ? costs->shorter : costs->longer) << 8 | i;
    }
    return count;
}

void viv_run_plan_cheapest(const struct viv_huffman_choices *choices, const struct viv_run_costs *costs,
                           uint32_t longest, struct viv_run_plan *plan)
{
    uint32_t bits[VIV_RUN_LIMIT + 1], keys[VIV_HUFFMAN_MAX_RUNS]; /* bits are times 256, to compare with an entry */
    uint16_t run[VIV_HUFFMAN_MAX_RUNS];
    uint32_t count = sort_runs(choices, costs, run, keys), usable = 0;
    longest = longest > VIV_RUN_LIMIT ? VIV_RUN_LIMIT : longest;
    bits[0] = 0;
    plan->limit = longest;
    plan->piece = longest < 256 ? longest : 256;
    for (uint32_t length = 1; length <= longest; length++) {
        uint32_t best = bits[length - 1] + (costs->raw << 8 | VIV_RUN_RAW);
        while (usable < count && run[usable] <= length)
            usable++;
        for (uint32_t i = 0; i < usable; i++) {
            uint32_t key = bits[length - run[i]] + keys[i];
            best = key < best ? key : best;
        }
        bits[length] = best & ~255u;
        plan->entry[length] = (uint8_t)best;
    }
}

/* ---- the pipeline: 3-bit parts of a pair, 2-bit parts of the one before, values of the one before that ---- */

struct pipe {
    struct mica_bit_writer bits;
    uint64_t pending; /* written when 32 bits have come together */
    uint32_t pending_bits;
    uint32_t two, two_bits;           /* of the last pair */
    uint32_t value[2], value_bits[2]; /* of the last pair, and of the one before it */
    uint32_t waiting;                 /* a code without a partner */
    bool waits;
};

static inline void pipe_put(struct pipe *pipe, uint32_t word, uint32_t count)
{
    pipe->pending |= (uint64_t)word << pipe->pending_bits;
    pipe->pending_bits += count;
    if (pipe->pending_bits >= 32) {
        mica_bits_write(&pipe->bits, (uint32_t)pipe->pending, 32);
        pipe->pending >>= 32;
        pipe->pending_bits -= 32;
    }
}

static inline void pipe_pair(struct pipe *pipe, uint32_t a, uint32_t b)
{
    uint32_t word = (a & 7) | (b & 7) << 3, count = 6;
    word |= pipe->two << count;
    count += pipe->two_bits;
    word |= pipe->value[1] << count;
    count += pipe->value_bits[1];
    pipe_put(pipe, word, count);
    uint32_t a_two_bits = a >> 5 & 3, a_bits = a >> 8 & 15;
    pipe->value[1] = pipe->value[0];
    pipe->value_bits[1] = pipe->value_bits[0];
    pipe->two = (a >> 3 & 3) | (b >> 3 & 3) << a_two_bits;
    pipe->two_bits = a_two_bits + (b >> 5 & 3);
    pipe->value[0] = a >> 16 | (b >> 16) << a_bits;
    pipe->value_bits[0] = a_bits + (b >> 8 & 15);
}

static inline void pipe_code(struct pipe *pipe, uint32_t code)
{
    if (pipe->waits)
        pipe_pair(pipe, pipe->waiting, code);
    pipe->waiting = code;
    pipe->waits = !pipe->waits;
}

/* An odd number of codes gets a dummy; two empty pairs let the rest out. */
static void pipe_end(struct pipe *pipe, uint32_t dummy)
{
    uint32_t empty = pipe->waits ? CODE(4, 0, 0, 0, 0) : CODE(0, 0, 0, 0, 0);
    if (pipe->waits)
        pipe_pair(pipe, pipe->waiting, dummy);
    pipe_pair(pipe, empty, empty);
    pipe_pair(pipe, empty, empty);
    mica_bits_write(&pipe->bits, (uint32_t)pipe->pending, pipe->pending_bits);
}

static void code_bytes(struct pipe *pipe, const struct codes *codes, const uint8_t *data, uint32_t count)
{
    uint32_t i = 0;
    if (pipe->waits && count)
        pipe_code(pipe, codes->byte[data[i++]]);
    struct pipe local = *pipe; /* what no pointer reaches stays in registers */
    for (; i + 2 <= count; i += 2)
        pipe_pair(&local, codes->byte[data[i]], codes->byte[data[i + 1]]);
    *pipe = local;
    if (i < count)
        pipe_code(pipe, codes->byte[data[i]]);
}

struct run_coder {
    const struct viv_huffman_choices *choices;
    const struct viv_run_plan *plan;
    const struct codes *codes;
    struct pipe *pipe;
};

static void code_piece(const struct run_coder *coder, uint32_t length)
{
    while (length) {
        uint32_t entry = coder->plan->entry[length];
        pipe_code(coder->pipe, entry == VIV_RUN_RAW ? coder->codes->dummy : coder->codes->run[entry]);
        length -= entry == VIV_RUN_RAW ? 1 : coder->choices->run[entry];
    }
}

static void code_run(const struct run_coder *coder, uint32_t length)
{
    for (; length > coder->plan->limit; length -= coder->plan->piece)
        code_piece(coder, coder->plan->piece);
    code_piece(coder, length);
}

/* Weights between two breaks; `close` leaves the last zero of a run at their end raw, as the vendor does. */
static void code_weights(const struct run_coder *coder, const uint8_t *data, uint32_t count, bool close)
{
    uint32_t run = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (data[i] == coder->codes->zero) {
            run++;
            continue;
        }
        if (run) {
            code_run(coder, run);
            run = 0;
        }
        pipe_code(coder->pipe, coder->codes->byte[data[i]]);
    }
    if (!run)
        return;
    code_run(coder, run - close);
    if (close)
        pipe_code(coder->pipe, coder->codes->dummy);
}

uint64_t viv_huffman_code(const struct viv_sequence *sequence, const struct viv_huffman_choices *choices,
                          const struct viv_run_plan *plan, uint8_t zero_point, uint8_t *out, size_t size)
{
    struct codes codes;
    struct pipe pipe = {.waits = false};
    struct run_coder coder = {choices, plan, &codes, &pipe};
    make_codes(choices, zero_point, &codes);
    mica_bit_writer_init(&pipe.bits, out, (uint64_t)size * 8);
    if (!choices->runs) {
        code_bytes(&pipe, &codes, sequence->data, sequence->count);
    } else {
        uint32_t at = 0;
        for (uint32_t i = 0; i < sequence->break_count; i++) {
            struct viv_break stop = sequence->breaks[i];
            code_weights(&coder, sequence->data + at, stop.at - at, stop.close);
            code_bytes(&pipe, &codes, sequence->data + stop.at, stop.skip);
            at = stop.at + stop.skip;
        }
    }
    pipe_end(&pipe, codes.dummy);
    assert(!pipe.bits.error); /* the caller gave room for the longest codes */
    return pipe.bits.position;
}
