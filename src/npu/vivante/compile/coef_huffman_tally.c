/* SPDX-License-Identifier: MIT */
/* Counting bytes and runs of a sequence, and turning counts into classes. */
#include "npu/vivante/compile/coef_huffman_search.h"

#define DIFFERENCE_SAMPLE 8192u

/* Two tables, so that the same byte twice in a row does not wait for its own count. */
static void tally_weights(struct viv_tally *tally, uint32_t odd[256], const uint8_t *data, uint32_t count)
{
    if (!count)
        return;
    tally->all[data[0]]++;
    tally->runs[data[0]]++;
    uint32_t i = 1;
    for (; i + 2 <= count; i += 2) {
        odd[data[i]]++;
        tally->runs[data[i]] += data[i] != data[i - 1];
        tally->all[data[i + 1]]++;
        tally->runs[data[i + 1]] += data[i + 1] != data[i];
    }
    if (i < count) {
        tally->all[data[i]]++;
        tally->runs[data[i]] += data[i] != data[i - 1];
    }
}

void viv_tally_add(struct viv_tally *tally, const struct viv_sequence *sequence)
{
    uint32_t odd[256] = {0}, at = 0;
    for (uint32_t i = 0; i < sequence->break_count; i++) {
        struct viv_break stop = sequence->breaks[i];
        tally_weights(tally, odd, sequence->data + at, stop.at - at);
        for (at = stop.at; at < stop.at + stop.skip; at++) {
            tally->all[sequence->data[at]]++;
            tally->field[sequence->data[at]]++;
        }
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        tally->all[byte] += odd[byte];
}

/* Bits of magnitude around the byte `zero`. */
static uint32_t magnitude_bits(uint8_t byte, uint8_t zero)
{
    int8_t value = (int8_t)(byte - zero);
    uint32_t magnitude = (uint32_t)(value < 0 ? -value : value);
    return magnitude ? 32 - (uint32_t)__builtin_clz(magnitude) : 0;
}

/*
 * Differences that pay have smaller magnitudes than the bytes have around the
 * commonest one; a little more is allowed for what magnitudes do not tell.
 */
bool viv_differences_may_pay(const struct viv_sequence *plain)
{
    uint32_t counts[256] = {0}, zero = 0, own = 0, other = 0;
    if (plain->count <= DIFFERENCE_SAMPLE)
        return true;
    for (uint32_t i = 0; i < DIFFERENCE_SAMPLE; i++)
        counts[plain->data[i]]++;
    for (uint32_t byte = 1; byte < 256; byte++)
        zero = counts[byte] > counts[zero] ? byte : zero;
    for (uint32_t i = 1; i < DIFFERENCE_SAMPLE; i++) {
        own += magnitude_bits(plain->data[i], (uint8_t)zero);
        other += magnitude_bits(plain->data[i], plain->data[i - 1]);
    }
    return other < own + own / 32;
}

static void count_run(struct viv_run_lengths *lengths, uint32_t run)
{
    if (run > VIV_RUN_LIMIT) {
        uint32_t pieces = (run - VIV_RUN_LIMIT + 255) / 256;
        lengths->count[256] += pieces;
        run -= pieces * 256;
    }
    lengths->count[run]++;
    lengths->longest = run > lengths->longest ? run : lengths->longest;
}

void viv_run_lengths_add(struct viv_run_lengths *lengths, const struct viv_sequence *sequence, uint8_t byte)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < sequence->break_count; i++) {
        struct viv_break stop = sequence->breaks[i];
        uint32_t run = 0;
        for (; at < stop.at; at++) {
            if (sequence->data[at] == byte) {
                run++;
            } else if (run) {
                count_run(lengths, run);
                run = 0;
            }
        }
        if (run)
            count_run(lengths, run);
        at = stop.at + stop.skip;
    }
}

void viv_tally_merge(struct viv_tally *tally, const struct viv_tally *other)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        tally->all[byte] += other->all[byte];
        tally->field[byte] += other->field[byte];
        tally->runs[byte] += other->runs[byte];
    }
}

void viv_tally_sum(struct viv_tally *tally)
{
    for (uint32_t i = 0; i < 512; i++)
        tally->below[i + 1] = tally->below[i] + tally->all[i % 256];
}

/* Bytes in [zero + first, zero + last], around the circle of 256. */
static uint64_t count_between(const struct viv_tally *tally, uint8_t zero, uint32_t first, uint32_t last)
{
    return tally->below[zero + last + 1] - tally->below[zero + first];
}

void viv_class_counts(const struct viv_tally *tally, uint8_t zero, bool runs, uint64_t counts[VIV_CLASSES])
{
    counts[VIV_CLASS_RUN_LONG] = 0;
    for (uint32_t class = 1; class <= 7; class ++) { /* magnitudes 2^(class - 1) to 2^class - 1 of either sign */
        uint32_t low = 1u << (class - 1), high = 2 * low - 1, shift = runs ? 0 : 1;
        counts[class] =
            count_between(tally, zero, low, high) + count_between(tally, zero, 256 - shift - high, 256 - shift - low);
    }
    if (runs) {
        counts[0] = tally->runs[zero];
        counts[VIV_CLASS_RAW] += tally->all[(uint8_t)(zero + 128)] + tally->field[zero];
    } else {
        counts[0] = (uint64_t)tally->all[zero] + tally->all[(uint8_t)(zero + 255)];
    }
}
