/* SPDX-License-Identifier: MIT */
/* NN and TP descriptors field by field, from the tables that they are packed with. */
#include <stdio.h>
#include <string.h>

#include "npu/vivante/decode/decode.h"
#include "npu/vivante/decode/internal.h"
#include "npu/vivante/hw/fields.h"

static void show_fields(const struct viv_decode *decode, const uint32_t *words, const struct viv_field *fields,
                        size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct viv_field *field = &fields[i];
        uint32_t value = viv_field_get(words, field);
        bool idle = value == field->idle;
        bool unknown = field->evidence == 'U' || !strncmp(field->name, "RSVD", 4);
        int32_t extended = viv_field_get_signed(words, field, viv_field_width(field));
        viv_decode_field(decode, &(struct mica_decoded){
                                     .name = field->name,
                                     .value = field->is_signed ? (uint64_t)(int64_t)extended : value,
                                     .is_signed = field->is_signed,
                                     .meaning = field->meaning,
                                     .unknown = unknown && !idle,
                                     .idle = idle,
                                 });
    }
}

/* Bits that no field of the table covers. */
static void show_rest(const struct viv_decode *decode, const uint32_t *words, size_t word_count,
                      const struct viv_field *fields, size_t count)
{
    for (size_t word = 0; word < word_count; word++) {
        uint32_t covered = 0;
        for (size_t i = 0; i < count; i++)
            for (size_t p = 0; p < 4 && fields[i].parts[p].width; p++)
                if (fields[i].parts[p].word == word)
                    covered |= (uint32_t)((UINT64_C(1) << fields[i].parts[p].width) - 1) << fields[i].parts[p].shift;
        if (!(words[word] & ~covered))
            continue;
        char name[48];
        snprintf(name, sizeof name, "word %zu, other bits", word);
        viv_decode_field(decode,
                         &(struct mica_decoded){.name = name, .value = words[word] & ~covered, .unknown = true});
    }
}

static void show_coefficients(const struct viv_decode *decode, const uint32_t *words)
{
    struct viv_huffman_shape shape = {
        .chip = decode->chip,
        .kernels_per_core = viv_nn_get(words, VIV_NN_KERNELS_PER_CORE),
        .kernel_w = viv_nn_get(words, VIV_NN_LAYER_TYPE) ? 1 : viv_nn_get(words, VIV_NN_KERNEL_X_SIZE),
        .kernel_h = viv_nn_get(words, VIV_NN_KERNEL_Y_SIZE),
        .channels = viv_nn_get(words, VIV_NN_KERNEL_Z_SIZE),
        .depthwise = viv_nn_get(words, VIV_NN_DEPTHWISE),
        .zero_point = (uint8_t)viv_nn_get(words, VIV_NN_COEF_ZERO_POINT),
        .kernels = viv_nn_get(words, VIV_NN_OUT_IMAGE_Z_SIZE),
        .plane = viv_nn_get(words, VIV_NN_OUT_IMAGE_X_STRIDE) * viv_nn_get(words, VIV_NN_OUT_IMAGE_Y_STRIDE),
    };
    uint64_t address = (uint64_t)viv_nn_get(words, VIV_NN_KERNEL_ADDRESS) << 6;
    viv_decode_coefficients(decode, address, NULL, 0, &shape);
}

void viv_decode_nn(const struct viv_decode *decode, uint64_t address, const uint32_t *words)
{
    viv_decode_open(decode, "NN descriptor", address, "a job of the NN cores");
    show_fields(decode, words, viv_nn_fields, VIV_NN_FIELD_COUNT);
    show_rest(decode, words, VIV_NN_WORDS, viv_nn_fields, VIV_NN_FIELD_COUNT);
    if (decode->memory)
        show_coefficients(decode, words);
    viv_decode_close(decode);
}

void viv_decode_tp(const struct viv_decode *decode, uint64_t address, const uint32_t *words)
{
    viv_decode_open(decode, "TP descriptor", address, "a job of the tensor processor");
    show_fields(decode, words, viv_tp_fields, VIV_TP_FIELD_COUNT);
    show_rest(decode, words, VIV_TP_WORDS, viv_tp_fields, VIV_TP_FIELD_COUNT);
    viv_decode_close(decode);
}
