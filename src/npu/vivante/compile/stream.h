/* SPDX-License-Identifier: MIT */
/* Command words (specification, section 2.3, the safe mode). */
#ifndef MICA_VIVANTE_COMPILE_STREAM_H
#define MICA_VIVANTE_COMPILE_STREAM_H

#include <stdbool.h>
#include <stdint.h>

/* A stream under construction. */
struct viv_stream {
    uint32_t *words;
    uint32_t count;
};

#define VIV_STREAM_INIT_WORDS 14u
#define VIV_STREAM_NN_WORDS 10u      /* of one NN job */
#define VIV_STREAM_TP_WORDS 10u      /* of one part of a TP job */
#define VIV_STREAM_TP_END_WORDS 2u   /* after its last part */
#define VIV_STREAM_BATCH_WORDS 14u   /* around all jobs of a submission */
#define VIV_STREAM_MAX_WORDS 0x4000u /* longer ones are split */

void viv_stream_init(struct viv_stream *stream);
void viv_stream_begin(struct viv_stream *stream);
void viv_stream_end(struct viv_stream *stream);

/* Both return the index of the word that gets the descriptor's address. */
uint32_t viv_stream_nn(struct viv_stream *stream);
/* `more`: parts of the same job follow; `split`: and the hardware is told so. */
uint32_t viv_stream_tp(struct viv_stream *stream, bool more, bool split);

#endif
