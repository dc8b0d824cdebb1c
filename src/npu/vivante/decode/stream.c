/* SPDX-License-Identifier: MIT */
/* The command stream (specification, section 2) and, behind the writes that start jobs, their descriptors. */
#include <stdio.h>
#include <string.h>

#include "npu/vivante/decode/decode.h"
#include "npu/vivante/decode/internal.h"
#include "npu/vivante/hw/fields.h"
#include "npu/vivante/hw/states.h"

#define NN_BYTES (4u * VIV_NN_WORDS)
#define TP_BYTES (4u * VIV_TP_WORDS)
#define NN_KNOWN_BYTES 128u /* what the hardware is known to read; mainline writes two words more */
#define ADDRESS_MASK ~63u   /* the low bits of a start are the job's number */

struct walk {
    const struct viv_decode *decode;
    const uint32_t *words;
    size_t count, position;
};

static void show_descriptor(const struct viv_decode *decode, const char *unit, uint32_t address, uint32_t bytes,
                            uint32_t least, void (*show)(const struct viv_decode *, uint64_t, const uint32_t *))
{
    uint32_t words[VIV_NN_WORDS > VIV_TP_WORDS ? VIV_NN_WORDS : VIV_TP_WORDS] = {0};
    if (!decode->memory)
        return;
    const void *host = decode->memory->at(decode->memory->user, address, bytes);
    if (host)
        memcpy(words, host, bytes);
    else if ((host = decode->memory->at(decode->memory->user, address, least)))
        memcpy(words, host, least);
    if (!host) {
        viv_decode_note(decode, unit, "its descriptor is in no buffer");
        return;
    }
    show(decode, address, words);
}

static void show_state(struct walk *walk, uint32_t address, uint32_t value)
{
    const struct viv_state *state = viv_state_find(address);
    char name[24], meaning[400];
    snprintf(name, sizeof name, "0x%05x", address);
    if (state)
        snprintf(meaning, sizeof meaning, "%s%s%s", state->meaning, state->bits[0] ? "; bits: " : "", state->bits);
    viv_decode_field(walk->decode, &(struct mica_decoded){
                                       .name = state ? state->name : name,
                                       .value = value,
                                       .meaning = state ? meaning : NULL,
                                       .unknown = !state,
                                   });
    if (address == VIV_PS_NN_INST_ADDR)
        show_descriptor(walk->decode, "NN", value & ADDRESS_MASK, NN_BYTES, NN_KNOWN_BYTES, viv_decode_nn);
    if (address == VIV_PS_TP_INST_ADDR)
        show_descriptor(walk->decode, "TP", value & ADDRESS_MASK, TP_BYTES, TP_BYTES, viv_decode_tp);
}

static void load_state(struct walk *walk)
{
    uint32_t header = walk->words[walk->position];
    uint32_t count = header >> 16 & 0x3ff, address = (header & 0xffff) << 2;
    size_t first = walk->position + 1;
    if (count == 0)
        count = 1024; /* inferred; nobody uses it */
    char title[64];
    snprintf(title, sizeof title, "LOAD_STATE%s, %u %s", header >> 26 & 1 ? " (fixed point)" : "", count,
             count == 1 ? "register" : "registers");
    viv_decode_open(walk->decode, "command", 4 * walk->position, title);
    for (uint32_t i = 0; i < count && first + i < walk->count; i++)
        show_state(walk, address + 4 * i, walk->words[first + i]);
    if (count > walk->count - first)
        viv_decode_note(walk->decode, "length", "the command runs over the end of the stream");
    viv_decode_close(walk->decode);
    walk->position += (1 + (size_t)count + 1) & ~(size_t)1;
}

static const char *command_name(uint32_t opcode)
{
    switch (opcode) {
    case VIV_OP_FILLER:
        return "filler";
    case VIV_OP_END:
        return "END";
    case VIV_OP_NOP:
        return "NOP";
    case VIV_OP_WAIT:
        return "WAIT";
    case VIV_OP_LINK:
        return "LINK";
    case VIV_OP_STALL:
        return "STALL";
    default:
        return "unknown command";
    }
}

static void other_command(struct walk *walk)
{
    uint32_t header = walk->words[walk->position], opcode = header >> 27;
    bool known = opcode != VIV_OP_FILLER || header == 0;
    const char *name = known ? command_name(opcode) : "unknown command";
    viv_decode_open(walk->decode, "command", 4 * walk->position, name);
    for (size_t i = 0; i < 2 && walk->position + i < walk->count; i++) {
        bool unknown = !known || !strcmp(name, "unknown command");
        if (unknown || walk->words[walk->position + i])
            viv_decode_field(walk->decode, &(struct mica_decoded){.name = i ? "argument" : "word",
                                                                  .value = walk->words[walk->position + i],
                                                                  .unknown = unknown});
    }
    viv_decode_close(walk->decode);
    walk->position += 2;
}

void viv_decode_stream(const struct viv_decode *decode, const uint32_t *words, size_t count)
{
    struct walk walk = {.decode = decode, .words = words, .count = count};
    while (walk.position < walk.count) {
        if (words[walk.position] >> 27 == VIV_OP_LOAD_STATE)
            load_state(&walk);
        else
            other_command(&walk);
    }
}
