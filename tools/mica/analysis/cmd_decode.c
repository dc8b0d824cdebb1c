/* SPDX-License-Identifier: MIT */
/* mica decode: what a capture, or a raw file, says. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common.h"
#include "file.h"

#define MOST_FILE ((size_t)64 << 20)

struct decode {
    struct cli *cli;
    struct mica_log log;
    const struct mica_chip *chip;
    struct cli_json json;
    json_t *root; /* NULL: text */
    size_t unknown;
    bool full;
};

static void add_up(struct decode *decode, const struct mica_decoding *decoding)
{
    decode->unknown += decoding->unknown;
    decode->full |= decoding->full;
}

/* The last lines, or the last keys. */
static int finish(struct decode *decode)
{
    struct cli *cli = decode->cli;
    if (decode->full)
        cli_note(cli, "not everything is shown: there is more than a million fields or 256 MiB of it");
    if (!decode->root) {
        if (decode->unknown)
            fprintf(cli->out, "%zu unknown\n", decode->unknown);
        return 0;
    }
    cli_json_set_integer(&decode->json, decode->root, "unknown", decode->unknown);
    cli_json_set(&decode->json, decode->root, "complete", json_boolean(!decode->full));
    json_t *root = decode->root;
    decode->root = NULL;
    return cli_json_print(cli, &decode->json, root);
}

/* ---- captures ------------------------------------------------------------------------- */

static const char *access_text(unsigned access)
{
    static const char *const texts[] = {"none", "r", "w", "rw"};
    return texts[access & 3];
}

static void print_buffers(struct decode *decode, const struct mica_recorded_submit *submit, struct mica_places *places)
{
    if (decode->root || !submit->bo_count)
        return;
    fprintf(decode->cli->out, "  buffers:\n");
    for (size_t i = 0; i < submit->bo_count; i++) {
        const struct mica_recorded_bo *bo = &submit->bos[i];
        uint64_t offset;
        uint32_t number = mica_place_find(places, submit, bo->address, &offset);
        fprintf(decode->cli->out, "    buffer %-3u  0x%08" PRIx64 "  %9" PRIu64 " bytes  %-2s  handle %u\n", number,
                bo->address, bo->size, access_text(bo->access), bo->handle);
    }
}

static json_t *json_buffers(struct decode *decode, const struct mica_recorded_submit *submit,
                            struct mica_places *places)
{
    json_t *list = cli_json_array(&decode->json);
    for (size_t i = 0; i < submit->bo_count; i++) {
        const struct mica_recorded_bo *bo = &submit->bos[i];
        uint64_t offset;
        json_t *object = cli_json_object(&decode->json);
        cli_json_set_integer(&decode->json, object, "number", mica_place_find(places, submit, bo->address, &offset));
        cli_json_set_integer(&decode->json, object, "handle", bo->handle);
        cli_json_set_integer(&decode->json, object, "address", bo->address);
        cli_json_set_integer(&decode->json, object, "size", bo->size);
        cli_json_set_text(&decode->json, object, "access", access_text(bo->access));
        cli_json_append(&decode->json, list, object);
    }
    return list;
}

static void show_submit(struct decode *decode, const struct cli_decoded *decoded, size_t number, json_t *submits)
{
    const struct mica_recorded_submit *submit = decoded->submit;
    if (!decode->root) {
        fprintf(decode->cli->out, "submission %zu: %zu words, %zu buffers\n", number, submit->words, submit->bo_count);
        cli_decoded_print(decode->cli, decoded);
        print_buffers(decode, submit, decoded->places);
        return;
    }
    json_t *object = cli_json_object(&decode->json);
    cli_json_set_integer(&decode->json, object, "index", number);
    cli_json_set_integer(&decode->json, object, "words", submit->words);
    cli_json_set(&decode->json, object, "items", cli_decoded_json(&decode->json, decoded));
    cli_json_set(&decode->json, object, "buffers", json_buffers(decode, submit, decoded->places));
    cli_json_append(&decode->json, submits, object);
}

static int decode_submit(struct decode *decode, const struct mica_recording *recording, size_t submit,
                         struct mica_device_memory *memory, struct mica_places *places, json_t *submits)
{
    struct mica_decoding decoding = {0};
    const struct cli_decoded decoded = {&decoding, decode->chip, &recording->submits[submit], places,
                                        decode->cli->options.verbose > 0};
    int error = mica_recording_map(recording, submit, memory);
    if (!error)
        error = mica_decoding_submit(&decoding, decoded.submit, decode->chip, memory, decode->cli->options.weights,
                                     &decode->log);
    if (!error)
        show_submit(decode, &decoded, recording->first_submit + submit, submits);
    add_up(decode, &decoding);
    mica_decoding_release(&decoding);
    return error ? cli_analysis_fail(decode->cli, &decode->log) : 0;
}

static int decode_submits(struct decode *decode, const struct mica_recording *recording)
{
    struct mica_device_memory memory;
    struct mica_places places = {0};
    int failed = mica_device_memory_create(&memory) ? cli_fail_nomem(decode->cli) : 0;
    if (failed)
        return failed;
    json_t *submits = decode->root ? cli_json_array(&decode->json) : NULL;
    if (decode->root) {
        cli_json_set_text(&decode->json, decode->root, "driver", recording->driver);
        cli_json_set_text(&decode->json, decode->root, "chip", decode->chip->name);
        cli_json_set(&decode->json, decode->root, "submits", submits);
    } else {
        fprintf(decode->cli->out, "%s, %s: %zu submission%s\n", decode->chip->name, recording->driver,
                recording->submit_count, recording->submit_count == 1 ? "" : "s");
    }
    for (size_t i = 0; !failed && i < recording->submit_count; i++)
        failed = decode_submit(decode, recording, i, &memory, &places, submits);
    mica_places_release(&places);
    mica_device_memory_destroy(&memory);
    return failed ? failed : finish(decode);
}

static int decode_capture(struct decode *decode, const char *path)
{
    struct mica_recording recording;
    if (decode->cli->options.shape)
        return cli_usage(decode->cli, "--coefficients is for a raw file; a capture says itself what is in it");
    int failed = cli_analysis_load(decode->cli, path, &decode->log, &recording, &decode->chip);
    if (!failed)
        failed = decode_submits(decode, &recording);
    mica_recording_release(&recording);
    return failed;
}

/* ---- raw files -------------------------------------------------------------------------- */

static int decode_bytes(struct decode *decode, const uint8_t *bytes, size_t size, struct mica_decoding *decoding)
{
    struct mica_coefficient_shape shape;
    const char *text = decode->cli->options.shape;
    int error = text ? mica_coefficient_shape_parse(text, &decode->log, &shape) : 0;
    if (!error && text)
        error = mica_decoding_coefficients(decoding, decode->chip, bytes, size, &shape, decode->cli->options.weights,
                                           &decode->log);
    else if (!error)
        error = mica_decoding_raw(decoding, decode->chip, bytes, size, &decode->log);
    return error ? cli_analysis_fail(decode->cli, &decode->log) : 0;
}

static int show_raw(struct decode *decode, const struct mica_decoding *decoding)
{
    const struct cli_decoded decoded = {decoding, decode->chip, NULL, NULL, decode->cli->options.verbose > 0};
    add_up(decode, decoding);
    if (decode->root) {
        cli_json_set_text(&decode->json, decode->root, "chip", decode->chip->name);
        cli_json_set(&decode->json, decode->root, "items", cli_decoded_json(&decode->json, &decoded));
    } else {
        cli_decoded_print(decode->cli, &decoded);
    }
    return finish(decode);
}

static int decode_file(struct decode *decode, const char *path)
{
    struct mica_decoding decoding = {0};
    void *bytes = NULL;
    size_t size;
    const char *chip = decode->cli->options.chip;
    if (!chip && access(path, R_OK))
        return cli_fail(decode->cli, "can't open '%s': %s", path, strerror(errno));
    if (!chip)
        return cli_usage(decode->cli, "a raw file doesn't say what it is for: --chip NAME does");
    if (mica_analysis_find_chip(chip, NULL, &decode->log, &decode->chip))
        return cli_analysis_fail(decode->cli, &decode->log);
    int failed = cli_file_read(decode->cli, path, MOST_FILE, &bytes, &size);
    if (!failed && size > MOST_FILE)
        failed = cli_fail(decode->cli, "%s is larger than 64 MiB: that is no stream", path);
    if (!failed)
        failed = decode_bytes(decode, bytes, size, &decoding);
    if (!failed)
        failed = show_raw(decode, &decoding);
    mica_decoding_release(&decoding);
    free(bytes);
    return failed;
}

int cli_decode(struct cli *cli)
{
    struct stat status;
    struct decode decode = {.cli = cli};
    const char *path = cli->options.operands.items[0];
    cli_analysis_log(cli, &decode.log);
    if (cli->options.json && !(decode.root = cli_json_object(&decode.json)))
        return cli_fail_nomem(cli);
    bool folder = stat(path, &status) == 0 && S_ISDIR(status.st_mode);
    int failed = folder ? decode_capture(&decode, path) : decode_file(&decode, path);
    json_decref(decode.root);
    return failed;
}
