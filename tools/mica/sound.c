/* SPDX-License-Identifier: MIT */
#include "sound.h"

#include "cli.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool cli_sound_is(const char *path)
{
    char start[12] = {0};
    FILE *file = fopen(path, "rb");
    size_t size = file ? fread(start, 1, sizeof(start), file) : 0;
    if (file)
        fclose(file);
    return size == sizeof(start) && memcmp(start, "RIFF", 4) == 0 && memcmp(start + 8, "WAVE", 4) == 0;
}

#ifdef MICA_HAVE_SNDFILE

#include <sndfile.h>

#define FRAMES_MAX ((size_t)CLI_SOUND_RATE * 3600) /* an hour */
#define CHANNELS_MAX 16
#define PIECE 4096 /* frames read at a time */

/* What the file holds, up to FRAMES_MAX; a header may promise anything, so memory grows with what is there. */
static int read_frames(struct cli *cli, SNDFILE *file, size_t channels, struct cli_sound *sound)
{
    static float piece[PIECE * CHANNELS_MAX];
    size_t capacity = 0;
    for (sf_count_t got; (got = sf_readf_float(file, piece, PIECE)) > 0 && sound->count < FRAMES_MAX;) {
        if (sound->count + (size_t)got > capacity) {
            capacity = capacity ? capacity * 2 : 4 * PIECE;
            float *samples = realloc(sound->samples, capacity * sizeof(*samples));
            if (!samples)
                return cli_fail_nomem(cli);
            sound->samples = samples;
        }
        for (size_t i = 0; i < (size_t)got; i++) {
            float sum = 0;
            for (size_t c = 0; c < channels; c++)
                sum += piece[i * channels + c];
            sound->samples[sound->count++] = sum / (float)channels;
        }
    }
    return 0;
}

static int read_open(struct cli *cli, const char *path, SNDFILE *file, const SF_INFO *info, struct cli_sound *sound)
{
    if (info->samplerate != CLI_SOUND_RATE)
        return cli_fail(cli,
                        "'%s' has %d samples a second, models of speech take %d: convert it, as with 'sox IN.wav "
                        "-r %d OUT.wav'",
                        path, info->samplerate, CLI_SOUND_RATE, CLI_SOUND_RATE);
    if (info->channels < 1 || info->channels > CHANNELS_MAX)
        return cli_fail(cli, "'%s' has %d channels, at most %d are read", path, info->channels, CHANNELS_MAX);
    int failed = read_frames(cli, file, (size_t)info->channels, sound);
    if (!failed && !sound->count)
        failed = cli_fail(cli, "'%s' holds no sound", path);
    if (!failed && sound->count >= FRAMES_MAX)
        failed = cli_fail(cli, "'%s' is longer than an hour", path);
    return failed;
}

int cli_sound_read(struct cli *cli, const char *path, struct cli_sound *sound)
{
    SF_INFO info = {0};
    *sound = (struct cli_sound){0};
    SNDFILE *file = sf_open(path, SFM_READ, &info);
    if (!file)
        return cli_fail(cli, "cannot read sound '%s': %s", path, sf_strerror(NULL));
    int failed = read_open(cli, path, file, &info, sound);
    sf_close(file);
    if (failed) {
        free(sound->samples);
        *sound = (struct cli_sound){0};
    }
    return failed;
}

int cli_sound_write(struct cli *cli, const char *path, const struct cli_sound *sound)
{
    SF_INFO info = {.samplerate = CLI_SOUND_RATE, .channels = 1, .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
    SNDFILE *file = sf_open(path, SFM_WRITE, &info);
    if (!file)
        return cli_fail(cli, "cannot write '%s': %s", path, sf_strerror(NULL));
    sf_command(file, SFC_SET_CLIPPING, NULL, SF_TRUE);
    bool written = sf_writef_float(file, sound->samples, (sf_count_t)sound->count) == (sf_count_t)sound->count;
    if (sf_close(file) || !written)
        return cli_fail(cli, "cannot write '%s'", path);
    return 0;
}

#else

int cli_sound_read(struct cli *cli, const char *path, struct cli_sound *sound)
{
    *sound = (struct cli_sound){0};
    return cli_fail(cli,
                    "cannot read sound '%s': mica was built without libsndfile; give the model's own tensors with "
                    "--input",
                    path);
}

int cli_sound_write(struct cli *cli, const char *path, const struct cli_sound *sound)
{
    return cli_fail(cli, "cannot write '%s': mica was built without libsndfile", path);
}

#endif
