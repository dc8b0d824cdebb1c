/* SPDX-License-Identifier: MIT */
/* What the decoder's files share: saying things to the sink. */
#ifndef MICA_VIVANTE_DECODE_INTERNAL_H
#define MICA_VIVANTE_DECODE_INTERNAL_H

#include "npu/vivante/decode/decode.h"

static inline void viv_decode_open(const struct viv_decode *decode, const char *kind, uint64_t address,
                                   const char *title)
{
    decode->sink->open(decode->sink->user, kind, address, title);
}

static inline void viv_decode_close(const struct viv_decode *decode)
{
    decode->sink->close(decode->sink->user);
}

static inline void viv_decode_field(const struct viv_decode *decode, const struct mica_decoded *field)
{
    decode->sink->field(decode->sink->user, field);
}

/* A number that is known. */
static inline void viv_decode_number(const struct viv_decode *decode, const char *name, uint64_t value,
                                     const char *meaning)
{
    viv_decode_field(decode, &(struct mica_decoded){.name = name, .value = value, .meaning = meaning});
}

/* What went wrong, in words. */
static inline void viv_decode_note(const struct viv_decode *decode, const char *name, const char *text)
{
    viv_decode_field(decode, &(struct mica_decoded){.name = name, .text = text, .unknown = true});
}

#endif
