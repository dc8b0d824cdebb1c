/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/stream.h"

#include "npu/vivante/hw/states.h"

#define SYSTEM_MODE 0x11u /* last provoking vertex, half pixel centre: what every driver sets */
#define API_OPENCL 2u

static void emit(struct viv_stream *stream, uint32_t word)
{
    stream->words[stream->count++] = word;
}

static void set_state(struct viv_stream *stream, enum viv_state_address address, uint32_t value)
{
    emit(stream, VIV_LOAD_STATE((uint32_t)address));
    emit(stream, value);
}

static void filler(struct viv_stream *stream, unsigned pairs)
{
    for (unsigned i = 0; i < 2 * pairs; i++)
        emit(stream, 0);
}

void viv_stream_init(struct viv_stream *stream)
{
    filler(stream, 4);
    set_state(stream, VIV_PA_SYSTEM_MODE, SYSTEM_MODE);
    set_state(stream, VIV_GL_API_MODE, API_OPENCL);
    filler(stream, 1);
}

void viv_stream_begin(struct viv_stream *stream)
{
    filler(stream, 4);
}

void viv_stream_end(struct viv_stream *stream)
{
    set_state(stream, VIV_GL_FLUSH_CACHE, VIV_FLUSH_BATCH);
    set_state(stream, VIV_GL_FLUSH_CACHE, VIV_FLUSH_BATCH);
    filler(stream, 1);
}

uint32_t viv_stream_nn(struct viv_stream *stream)
{
    set_state(stream, VIV_GL_OCB_REMAP_START, 0);
    set_state(stream, VIV_GL_OCB_REMAP_END, 0);
    set_state(stream, VIV_GL_NN_CONFIG, VIV_NN_CONFIG_SAFE);
    set_state(stream, VIV_PS_NN_INST_ADDR, 0);
    set_state(stream, VIV_PS_10A4, 0);
    return stream->count - 3;
}

/* Job id 1 for all parts but the last, which completes the operation with id 0. */
uint32_t viv_stream_tp(struct viv_stream *stream, bool more, bool split)
{
    set_state(stream, VIV_GL_OCB_REMAP_START, 0);
    set_state(stream, VIV_GL_OCB_REMAP_END, 0);
    set_state(stream, VIV_GL_TP_CONFIG, 0);
    set_state(stream, VIV_GL_3950, more && split ? VIV_TP_MORE : 0);
    set_state(stream, VIV_PS_TP_INST_ADDR, more ? 1 : 0);
    uint32_t address = stream->count - 1;
    if (!more)
        set_state(stream, VIV_PS_10A4, 0);
    return address;
}
