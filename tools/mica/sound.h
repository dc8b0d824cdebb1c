/* SPDX-License-Identifier: MIT */
/* Sounds: WAV files of 16000 samples a second, which is what models of speech take. */
#ifndef MICA_CLI_SOUND_H
#define MICA_CLI_SOUND_H

#include <stdbool.h>
#include <stddef.h>

struct cli;

#define CLI_SOUND_RATE 16000

/* One channel; full scale is -1 to 1. */
struct cli_sound {
    float *samples;
    size_t count;
};

/* Does the file begin like a WAV? */
bool cli_sound_is(const char *path);

/* Channels are averaged. 0 or an exit code; so the other. */
int cli_sound_read(struct cli *cli, const char *path, struct cli_sound *sound);
int cli_sound_write(struct cli *cli, const char *path, const struct cli_sound *sound); /* 16 bits */

#endif
