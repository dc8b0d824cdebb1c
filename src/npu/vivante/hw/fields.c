/* SPDX-License-Identifier: MIT */
#include "npu/vivante/hw/fields.h"

#define P(word, shift, width) \
    {                         \
        word, shift, width    \
    }

const struct viv_field viv_nn_fields[VIV_NN_FIELD_COUNT] = {
#define FIELD(name, idle, is_signed, evidence, meaning, ...) \
    [VIV_NN_##name] = {#name, meaning, idle, is_signed, evidence, {__VA_ARGS__}},
#include "npu/vivante/hw/nn_descriptor.def"
#undef FIELD
};

const struct viv_field viv_tp_fields[VIV_TP_FIELD_COUNT] = {
#define FIELD(name, idle, is_signed, evidence, meaning, ...) \
    [VIV_TP_##name] = {#name, meaning, idle, is_signed, evidence, {__VA_ARGS__}},
#include "npu/vivante/hw/tp_descriptor.def"
#undef FIELD
};

#define MAX_PARTS (sizeof((struct viv_field *)0)->parts / sizeof(struct viv_field_part))

static uint32_t mask(unsigned width)
{
    return (uint32_t)((UINT64_C(1) << width) - 1);
}

unsigned viv_field_width(const struct viv_field *field)
{
    unsigned width = 0;
    for (size_t i = 0; i < MAX_PARTS; i++)
        width += field->parts[i].width;
    return width;
}

uint32_t viv_field_get(const uint32_t *words, const struct viv_field *field)
{
    uint32_t value = 0;
    unsigned position = 0;
    for (size_t i = 0; i < MAX_PARTS && field->parts[i].width; i++) {
        const struct viv_field_part *part = &field->parts[i];
        value |= (words[part->word] >> part->shift & mask(part->width)) << position;
        position += part->width;
    }
    return value;
}

int32_t viv_field_get_signed(const uint32_t *words, const struct viv_field *field, unsigned width)
{
    uint32_t sign = UINT32_C(1) << (width - 1);
    uint32_t value = viv_field_get(words, field) & mask(width);
    return (int32_t)((value ^ sign) - sign);
}

static bool fits(uint32_t value, unsigned width, bool is_signed)
{
    if (width == 32)
        return true;
    if (!is_signed)
        return value <= mask(width);
    uint32_t bias = UINT32_C(1) << (width - 1);
    return value + bias <= mask(width);
}

bool viv_field_set(uint32_t *words, const struct viv_field *field, uint32_t value)
{
    if (!fits(value, viv_field_width(field), field->is_signed))
        return false;
    for (size_t i = 0; i < MAX_PARTS && field->parts[i].width; i++) {
        const struct viv_field_part *part = &field->parts[i];
        words[part->word] &= ~(mask(part->width) << part->shift);
        words[part->word] |= (value & mask(part->width)) << part->shift;
        value = part->width == 32 ? 0 : value >> part->width;
    }
    return true;
}

void viv_fields_idle(uint32_t *words, size_t word_count, const struct viv_field *fields, size_t field_count)
{
    for (size_t i = 0; i < word_count; i++)
        words[i] = 0;
    for (size_t i = 0; i < field_count; i++)
        viv_field_set(words, &fields[i], fields[i].idle);
}
