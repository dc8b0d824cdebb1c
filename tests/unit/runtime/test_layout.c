/* SPDX-License-Identifier: MIT */
/* Layouts of the border: against the definition in program.h, byte by byte, with memory that ends where it should. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include <cmocka.h>

#include "runtime/layout.h"

#define PAGE 4096u

/* `size` bytes at the end of a mapping, a page that can't be touched behind them, another before. */
struct guarded {
    uint8_t *map, *bytes;
    size_t mapped;
};

static struct guarded guarded(size_t size)
{
    struct guarded g;
    size_t inner = (size + PAGE - 1) / PAGE * PAGE;
    g.mapped = inner + 2 * PAGE;
    g.map = mmap(NULL, g.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    assert_int_equal(mprotect(g.map, PAGE, PROT_NONE), 0);
    assert_int_equal(mprotect(g.map + PAGE + inner, PAGE, PROT_NONE), 0);
    g.bytes = g.map + PAGE + inner - size;
    return g;
}

static void release(struct guarded *g)
{
    munmap(g->map, g->mapped);
}

static struct mica_program_io io_of(uint32_t block, uint32_t channels, uint32_t pixels, uint32_t gap, bool flip)
{
    return (struct mica_program_io){
        .size = (uint64_t)channels * pixels,
        .flip_sign = flip,
        .layout = {block, channels, pixels, 0x5a, (uint64_t)pixels * block + gap},
    };
}

static uint64_t place(const struct mica_program_layout *l, uint32_t c, uint32_t p)
{
    return c / l->block * l->surface + (uint64_t)p * l->block + c % l->block;
}

#define UNTOUCHED 0xee

static void check(uint32_t block, uint32_t channels, uint32_t pixels, uint32_t gap, bool flip)
{
    struct mica_program_io io = io_of(block, channels, pixels, gap, flip);
    const struct mica_program_layout *l = &io.layout;
    size_t extent = (size_t)mica_program_io_extent(&io);
    struct guarded host = guarded(io.size), device = guarded(extent), back = guarded(io.size);
    uint8_t *expected = malloc(extent);
    memset(expected, UNTOUCHED, extent);
    memset(device.bytes, UNTOUCHED, extent);
    for (size_t i = 0; i < io.size; i++)
        host.bytes[i] = (uint8_t)(i * 41 + i / 251);
    for (uint32_t p = 0; p < pixels; p++) {
        for (uint32_t c = 0; c < (channels + block - 1) / block * block; c++)
            expected[place(l, c, p)] =
                c < channels ? host.bytes[(size_t)p * channels + c] ^ (flip ? 0x80 : 0) : l->padding;
    }
    mica_layout_write(&io, host.bytes, device.bytes);
    assert_memory_equal(device.bytes, expected, extent);
    for (uint32_t p = 0; p < pixels; p++) { /* what an output has in lanes past its channels is anything */
        for (uint32_t c = channels; c < (channels + block - 1) / block * block; c++)
            device.bytes[place(l, c, p)] = 0x33;
    }
    mica_layout_read(&io, back.bytes, device.bytes);
    assert_memory_equal(back.bytes, host.bytes, io.size);
    free(expected);
    release(&host);
    release(&device);
    release(&back);
}

static void blocks_are_where_the_contract_says(void **state)
{
    static const uint32_t pixels[] = {1, 2, 3, 7, 49, 1000};
    for (uint32_t channels = 1; channels <= 70; channels++) {
        for (size_t i = 0; i < sizeof pixels / sizeof pixels[0]; i++) {
            for (unsigned flip = 0; flip < 2; flip++) {
                check(8, channels, pixels[i], channels % 3 * 8, flip);
                check(16, channels, pixels[i], channels % 3 * 16, flip);
            }
        }
    }
    check(16, 8191, 5, 0, true);
    check(8, 8191, 5, 24, false);
    check(16, 20000, 3, 0, true); /* a pixel is more than a tile */
    check(16, 3, 224 * 224, 0, true);
}

static void plain_tensors_are_copied_or_flipped(void **state)
{
    uint8_t host[37], device[37], back[37];
    for (unsigned flip = 0; flip < 2; flip++) {
        struct mica_program_io io = {.size = sizeof host, .flip_sign = flip};
        for (size_t i = 0; i < sizeof host; i++)
            host[i] = (uint8_t)(i * 7);
        mica_layout_write(&io, host, device);
        for (size_t i = 0; i < sizeof host; i++)
            assert_int_equal(device[i], host[i] ^ (flip ? 0x80 : 0));
        mica_layout_read(&io, back, device);
        assert_memory_equal(back, host, sizeof host);
        memcpy(back, device, sizeof back);
        mica_layout_read(&io, device, device); /* in place already */
        assert_memory_equal(device, back, sizeof back);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_are_where_the_contract_says),
        cmocka_unit_test(plain_tensors_are_copied_or_flipped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
