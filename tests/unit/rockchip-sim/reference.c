/* SPDX-License-Identifier: MIT */
#include "reference.h"

#include <string.h>

static uint32_t bits(const struct reference_registers *r, uint32_t offset, unsigned msb, unsigned lsb)
{
    return (uint32_t)((uint64_t)r->word[offset / 4] >> lsb & ((UINT64_C(2) << (msb - lsb)) - 1));
}

static int64_t extend(uint64_t value, unsigned width)
{
    int64_t sign = INT64_C(1) << (width - 1);
    return ((int64_t)value & (2 * sign - 1)) < sign ? ((int64_t)value & (2 * sign - 1))
                                                    : ((int64_t)value & (2 * sign - 1)) - 2 * sign;
}

static int64_t signed_bits(const struct reference_registers *r, uint32_t offset, unsigned msb, unsigned lsb)
{
    return extend(bits(r, offset, msb, lsb), msb - lsb + 1);
}

void reference_read(struct reference_registers *registers, const uint64_t *words, uint32_t count)
{
    memset(registers, 0, sizeof *registers);
    for (uint32_t i = 0; i < count; i++)
        if ((words[i] & 0xffff) < 0x8000)
            registers->word[(words[i] & 0xffff) / 4] = (uint32_t)(words[i] >> 16);
}

/* The specification's own expression. */
static int64_t rne(int64_t p, unsigned s)
{
    return s == 0 ? p : (p + (INT64_C(1) << (s - 1)) - 1 + ((p >> s) & 1)) >> s;
}

static int64_t away(int64_t p, unsigned s)
{
    int64_t size = p < 0 ? -p : p;
    size = s == 0 ? size : (size + (INT64_C(1) << (s - 1))) >> s;
    return p < 0 ? -size : size;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static int64_t sat32(int64_t v)
{
    return clamp(v, INT32_MIN, INT32_MAX);
}

static int64_t alu(unsigned code, int64_t v, int64_t operand)
{
    if (code == 2)
        return v + operand;
    return code == 0 ? (v > operand ? v : operand) : (v < operand ? v : operand);
}

static int64_t relu(const struct reference_registers *r, uint32_t cfg, unsigned bypass, unsigned relux,
                    uint32_t compare, int64_t v)
{
    if (bits(r, cfg, bypass, bypass))
        return v;
    v = v < 0 ? 0 : v;
    int64_t limit = (int32_t)r->word[compare / 4];
    return bits(r, cfg, relux, relux) && v > limit ? limit : v;
}

static int64_t stage_bs(const struct reference_registers *r, int64_t acc, int64_t s, int64_t a, int64_t b, int64_t c)
{
    int64_t ow = bits(r, 0x4050, 0, 0) ? b : signed_bits(r, 0x4054, 15, 0);
    int64_t v = acc + (bits(r, 0x4050, 1, 1) ? 0 : ow * s);
    if (bits(r, 0x4040, 0, 0))
        return sat32(v);
    int64_t operand = bits(r, 0x4040, 8, 8) ? a : (int32_t)r->word[0x4044 / 4];
    if (bits(r, 0x4040, 1, 1))
        v = sat32(v);
    else
        v = sat32(alu(bits(r, 0x4040, 19, 16), bits(r, 0x4040, 19, 16) == 2 ? v : sat32(v), operand));
    if (!bits(r, 0x4040, 4, 4) && !(bits(r, 0x4040, 5, 5) && v >= 0)) {
        int64_t p = v * (bits(r, 0x4048, 0, 0) ? c : signed_bits(r, 0x4048, 31, 16));
        v = sat32(rne(p, p >= 0 ? bits(r, 0x4048, 13, 8) : bits(r, 0x4010, 9, 4)));
    }
    return relu(r, 0x4040, 6, 7, 0x404c, v);
}

static int64_t stage_bn(const struct reference_registers *r, int64_t v)
{
    if (bits(r, 0x4060, 0, 0))
        return v;
    bool multiplies = !bits(r, 0x4060, 4, 4), spared = multiplies && bits(r, 0x4060, 5, 5) && v >= 0;
    int64_t p = multiplies && !spared ? v * signed_bits(r, 0x4068, 31, 16) : v;
    if (!bits(r, 0x4060, 1, 1))
        p = alu(bits(r, 0x4060, 19, 16), p, (int32_t)r->word[0x4064 / 4]);
    if (!spared)
        p = rne(p, p >= 0 ? bits(r, 0x4068, 13, 8) : bits(r, 0x4010, 15, 10));
    return relu(r, 0x4060, 6, 7, 0x406c, sat32(p));
}

static int64_t stage_ew(const struct reference_registers *r, int64_t v, int64_t e)
{
    if (bits(r, 0x4070, 0, 0))
        return v;
    if (!bits(r, 0x4070, 1, 1)) {
        if (!bits(r, 0x4070, 8, 8)) {
            int64_t p = (e + (int32_t)r->word[0x4074 / 4]) * signed_bits(r, 0x4078, 15, 0);
            e = sat32(bits(r, 0x4070, 30, 30) ? away(p, bits(r, 0x4078, 21, 16)) : rne(p, bits(r, 0x4078, 21, 16)));
        }
        if (!bits(r, 0x4070, 2, 2))
            v = sat32(alu(bits(r, 0x4070, 19, 16), v, e));
        else if (!(bits(r, 0x4070, 5, 5) && v >= 0))
            v = sat32(v * e);
    }
    return relu(r, 0x4070, 9, 10, 0x407c, v);
}

int reference_output(const struct reference_registers *r, int64_t acc, int64_t s, int64_t a, int64_t b, int64_t c,
                     int64_t e)
{
    int64_t v = stage_ew(r, stage_bn(r, stage_bs(r, acc, s, a, b, c)), e);
    int64_t p = v * signed_bits(r, 0x4084, 15, 0);
    unsigned shift = bits(r, 0x4088, 11, 0);
    p = bits(r, 0x4088, 30, 30) ? away(p, shift) : rne(p, shift);
    return (int)clamp(p + (int32_t)r->word[0x4080 / 4], -128, 127);
}

/* ---- the convolution -------------------------------------------------------- */

struct input {
    const struct reference_registers *r;
    const uint8_t *memory;
    int width, rows, channels, spread_x, spread_y;
    bool packed, depthwise;
    int real, flip;
    int64_t line, plane;
};

static struct input read_input(const struct reference_registers *r, const uint8_t *memory)
{
    struct input in = {.r = r, .memory = memory};
    in.width = (int)bits(r, 0x1084, 29, 16);
    in.rows = (int)bits(r, 0x1084, 10, 0);
    in.channels = (int)bits(r, 0x1024, 15, 0);
    in.packed = bits(r, 0x100c, 15, 12) != 0;
    in.real = (int)bits(r, 0x100c, 15, 12) - 7;
    in.depthwise = bits(r, 0x100c, 3, 0) == 3;
    in.flip = bits(r, 0x104c, 0, 0) ? 0 : 0x80; /* the one conversion that is used */
    in.spread_x = bits(r, 0x100c, 16, 16) ? (int)bits(r, 0x1014, 10, 8) + 1 : 1;
    in.spread_y = bits(r, 0x100c, 16, 16) ? (int)bits(r, 0x1014, 13, 11) + 1 : 1;
    int group = bits(r, 0x100c, 29, 29) ? 1 : 4;
    in.line = (int64_t)bits(r, 0x107c, 27, 0) / group * (in.packed ? in.real : 16);
    in.plane = (signed_bits(r, 0x1080, 27, 0) + group * in.width) * 16;
    return in;
}

static int pad_of(const struct input *in, int c)
{
    bool second = in->depthwise && c % 64 < 32 && c % 2 == 1;
    return (int8_t)bits(in->r, 0x1184, second ? 15 : 7, second ? 8 : 0);
}

static int pixel(const struct input *in, int x, int y, int c)
{
    if (in->packed && c >= in->real)
        return 0;
    if (x < 0 || y < 0 || x % in->spread_x || y % in->spread_y || x / in->spread_x >= in->width ||
        y / in->spread_y >= in->rows)
        return pad_of(in, c);
    x /= in->spread_x;
    y /= in->spread_y;
    uint64_t base = in->r->word[0x1070 / 4];
    uint64_t at = in->packed ? base + (uint64_t)(y * in->line + x * in->real + c)
                             : base + (uint64_t)(c / 16 * in->plane + y * in->line + x * 16 + c % 16);
    return (int8_t)(in->memory[at] ^ in->flip);
}

/* [oc/32][ic/32][kh][kw][oc%32][ic%32] with a last group of 16 or fewer real lanes; depthwise [c/64][kh][kw][c%64]. */
static int weight(const struct input *in, int kernels, int kw, int kh, int o, int kx, int ky, int c)
{
    const uint8_t *weights = in->memory + in->r->word[0x1110 / 4];
    if (in->depthwise) {
        int first = c / 64 * 64, lanes = in->channels - first < 64 ? in->channels - first : 64;
        return (int8_t)weights[(int64_t)first * kw * kh + ((int64_t)ky * kw + kx) * lanes + c % 64];
    }
    if (o >= kernels)
        return 0;
    int group = o / 32 * 32, in_group = kernels - group < 32 ? kernels - group : 32;
    int first = c / 32 * 32, lanes = in->channels - first > 16 ? 32 : 16;
    int64_t at = (int64_t)group * in->channels * kw * kh + (int64_t)in_group * first * kw * kh;
    return (int8_t)weights[at + (((int64_t)ky * kw + kx) * in_group + o % 32) * lanes + c % 32];
}

static int64_t truncate(int64_t acc, unsigned shift)
{
    return sat32(away(acc, shift));
}

/* Coefficients of a channel and its operand at a pixel. */
static int finish(const struct reference_registers *r, const uint8_t *memory, int o, int x, int y, int64_t acc,
                  int64_t s)
{
    const uint8_t *coefficients = memory + r->word[0x5020 / 4];
    int32_t a = 0;
    int16_t b = 0, c = 0;
    if (bits(r, 0x501c, 4, 1) == 1)
        memcpy(&a, coefficients + 4 * o, 4);
    if (bits(r, 0x501c, 4, 1) == 7) {
        memcpy(&a, coefficients + o / 8 * 64 + o % 8 * 4, 4);
        memcpy(&b, coefficients + o / 8 * 64 + 32 + o % 8 * 2, 2);
        memcpy(&c, coefficients + o / 8 * 64 + 48 + o % 8 * 2, 2);
    }
    int8_t e = 0;
    if (bits(r, 0x5044, 10, 8) == 5) {
        int64_t surface = o / 16, width = bits(r, 0x500c, 12, 0) + 1, rows = bits(r, 0x5010, 12, 0) + 1;
        int64_t base = r->word[(surface % 2 ? 0x5038 : 0x5018) / 4],
                notch = bits(r, surface % 2 ? 0x506c : 0x504c, 31, 4);
        e = (int8_t)memory[base + surface / 2 * (width * rows + notch) * 16 + (y * width + x) * 16 + o % 16];
    }
    return reference_output(r, acc, s, a, b, c, e);
}

static int output_at(const struct input *in, int o, int x, int y)
{
    const struct reference_registers *r = in->r;
    int kw = (int)bits(r, 0x1038, 28, 24), kh = (int)bits(r, 0x1038, 20, 16), kernels = (int)bits(r, 0x1038, 13, 0);
    int x0 = x * (int)bits(r, 0x1014, 2, 0) - (int)bits(r, 0x1068, 7, 4);
    int y0 = y * (int)bits(r, 0x1014, 5, 3) - (int)bits(r, 0x1068, 3, 0);
    int64_t acc = 0, s = 0;
    for (int ky = 0; ky < kh; ky++)
        for (int kx = 0; kx < kw; kx++)
            for (int c = in->depthwise ? o : 0; c < (in->depthwise ? o + 1 : in->channels); c++) {
                int value = pixel(in, x0 + kx * ((int)bits(r, 0x1014, 20, 16) + 1),
                                  y0 + ky * ((int)bits(r, 0x1014, 25, 21) + 1), c);
                acc += value * weight(in, kernels, kw, kh, o, kx, ky, c);
                s += value;
            }
    return finish(r, in->memory, o, x, y, truncate(acc, bits(r, 0x301c, 4, 0)), s);
}

void reference_convolution(const struct reference_registers *r, uint8_t *memory)
{
    struct input in = read_input(r, memory);
    int width = (int)bits(r, 0x4030, 12, 0) + 1, rows = (int)bits(r, 0x4034, 12, 0) + 1;
    int channels = (int)bits(r, 0x403c, 28, 16) + 1;
    uint64_t base = r->word[0x4020 / 4], plane = (uint64_t)bits(r, 0x4024, 31, 4) * 16;
    for (int c = 0; c < (channels + 15) / 16 * 16; c++)
        for (int y = 0; y < rows; y++)
            for (int x = 0; x < width; x++)
                memory[base + (uint64_t)(c / 16) * plane + (uint64_t)(y * width + x) * 16 + (uint64_t)(c % 16)] =
                    (uint8_t)(c < channels ? output_at(&in, c, x, y)
                                           : (int)clamp((int32_t)r->word[0x4080 / 4], -128, 127));
}
