/* SPDX-License-Identifier: MIT */
/* The NN and TP job descriptors as data: one table each, used to pack, to unpack and to print. */
#ifndef MICA_VIVANTE_HW_FIELDS_H
#define MICA_VIVANTE_HW_FIELDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words that mainline and we write, and the 64-byte aligned slot a descriptor gets. */
#define VIV_NN_WORDS 34
#define VIV_NN_SLOT 192
#define VIV_TP_WORDS 31
#define VIV_TP_SLOT 128

struct viv_field_part {
    uint8_t word, shift, width;
};

struct viv_field {
    const char *name;
    const char *meaning;
    uint32_t idle;                  /* value of a field that the job doesn't care about */
    bool is_signed;                 /* two's complement over all parts */
    char evidence;                  /* 'V' verified, 'M' one public driver, 'I' inferred, 'U' unknown */
    struct viv_field_part parts[4]; /* least significant first, width 0 ends the list */
};

enum viv_nn_field {
#define FIELD(name, idle, is_signed, evidence, meaning, ...) VIV_NN_##name,
#include "npu/vivante/hw/nn_descriptor.def"
#undef FIELD
    VIV_NN_FIELD_COUNT
};

enum viv_tp_field {
#define FIELD(name, idle, is_signed, evidence, meaning, ...) VIV_TP_##name,
#include "npu/vivante/hw/tp_descriptor.def"
#undef FIELD
    VIV_TP_FIELD_COUNT
};

extern const struct viv_field viv_nn_fields[VIV_NN_FIELD_COUNT];
extern const struct viv_field viv_tp_fields[VIV_TP_FIELD_COUNT];

/* Bits of all parts. */
unsigned viv_field_width(const struct viv_field *field);

/* Value of a field; signed ones are not extended, see viv_field_get_signed(). */
uint32_t viv_field_get(const uint32_t *words, const struct viv_field *field);

/* The same, sign-extended from the lowest `width` bits (chips differ in how many of an offset's bits they have). */
int32_t viv_field_get_signed(const uint32_t *words, const struct viv_field *field, unsigned width);

/* Stores `value`; false, with nothing stored, when it doesn't fit. Signed values are passed cast to uint32_t. */
bool viv_field_set(uint32_t *words, const struct viv_field *field, uint32_t value);

/* Fills `words` with every field's idle value. */
void viv_fields_idle(uint32_t *words, size_t word_count, const struct viv_field *fields, size_t field_count);

static inline uint32_t viv_nn_get(const uint32_t *words, enum viv_nn_field field)
{
    return viv_field_get(words, &viv_nn_fields[field]);
}

static inline uint32_t viv_tp_get(const uint32_t *words, enum viv_tp_field field)
{
    return viv_field_get(words, &viv_tp_fields[field]);
}

#endif
