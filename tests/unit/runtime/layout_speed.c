/* SPDX-License-Identifier: MIT */
/* What converting a tensor costs, beside memcpy() and the loop one would write first: gigabytes of the tensor a second.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/layout.h"
#include "util/clock.h"

enum how { MEMCPY, NAIVE, OURS };

static void naive(const struct mica_program_io *io, uint8_t *host, uint8_t *device, bool read)
{
    const struct mica_program_layout *l = &io->layout;
    uint8_t flip = io->flip_sign ? 0x80 : 0;
    for (uint32_t p = 0; p < l->pixels; p++) {
        for (uint32_t c = 0; c < l->channels; c++) {
            uint8_t *at = device + c / l->block * l->surface + (size_t)p * l->block + c % l->block;
            uint8_t *value = host + (size_t)p * l->channels + c;
            if (read)
                *value = *at ^ flip;
            else
                *at = *value ^ flip;
        }
    }
}

static void once(const struct mica_program_io *io, enum how how, bool read, uint8_t *host, uint8_t *device)
{
    if (how == MEMCPY)
        memcpy(read ? host : device, read ? device : host, (size_t)io->size);
    else if (how == NAIVE)
        naive(io, host, device, read);
    else if (read)
        mica_layout_read(io, host, device);
    else
        mica_layout_write(io, host, device);
    __asm__ volatile("" : : "r"(host), "r"(device) : "memory");
}

/* The best of several rounds. */
static double speed(const struct mica_program_io *io, enum how how, bool read, uint8_t *host, uint8_t *device)
{
    double best = 1e9;
    int times = (int)(UINT64_C(4000000) / io->size) + 1;
    for (int round = 0; round < 10; round++) {
        double start = mica_clock_seconds();
        for (int i = 0; i < times; i++)
            once(io, how, read, host, device);
        double seconds = (mica_clock_seconds() - start) / times;
        best = seconds < best ? seconds : best;
    }
    return (double)io->size / best / 1e9;
}

static void measure(uint32_t side, uint32_t channels, uint32_t block)
{
    struct mica_program_io io = {.size = (uint64_t)side * side * channels, .flip_sign = true};
    io.layout = (struct mica_program_layout){block, channels, side * side, 0, (uint64_t)side * side * block};
    uint8_t *host = calloc(1, (size_t)io.size), *device = calloc(1, (size_t)mica_program_io_extent(&io) + 64);
    if (!host || !device)
        exit(1);
    printf("%4u x %3u x %4u  %5u", side, side, channels, block);
    for (unsigned read = 0; read < 2; read++)
        printf("  %6.2f %6.2f %6.2f", speed(&io, MEMCPY, read, host, device), speed(&io, NAIVE, read, host, device),
               speed(&io, OURS, read, host, device));
    putchar('\n');
    free(host);
    free(device);
}

int main(void)
{
    puts("GB/s of the tensor              to the device         and back\n"
         "            shape  block  memcpy  naive   ours  memcpy  naive   ours");
    measure(224, 3, 16);
    measure(224, 3, 8);
    measure(112, 32, 16);
    measure(56, 128, 16);
    measure(56, 128, 8);
    measure(28, 255, 16);
    measure(7, 1280, 16);
    measure(320, 64, 16);
    return 0;
}
