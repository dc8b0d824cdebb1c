/* SPDX-License-Identifier: MIT */
/* What the commands about captures share. */
#ifndef MICA_CLI_ANALYSIS_COMMON_H
#define MICA_CLI_ANALYSIS_COMMON_H

#include "analysis/analysis.h"
#include "cli.h"
#include "json.h"

/* Prints what the library says, as far as --verbose wants it; the last error is for cli_analysis_fail(). */
void cli_analysis_log(struct cli *cli, struct mica_log *log);
int cli_analysis_fail(struct cli *cli, const struct mica_log *log);

/* Loads a capture and finds its chip, which --chip may name. 0 or an exit code. Release the recording in both cases. */
int cli_analysis_load(struct cli *cli, const char *path, struct mica_log *log, struct mica_recording *recording,
                      const struct mica_chip **chip);

/* A decoding for people and for tools (decode_text.c, decode_json.c). */
struct cli_decoded {
    const struct mica_decoding *decoding;
    const struct mica_chip *chip;
    const struct mica_recorded_submit *submit; /* NULL: a raw file */
    struct mica_places *places;                /* of the whole recording; NULL: a raw file */
    bool verbose;
};

void cli_decoded_print(struct cli *cli, const struct cli_decoded *decoded);
json_t *cli_decoded_json(struct cli_json *json, const struct cli_decoded *decoded);

/* The buffer and offset that a field names, "buffer 2 + 0x40"; "" when it names none. */
void cli_decoded_place(const struct cli_decoded *decoded, const struct mica_decoding_item *group,
                       const struct mica_decoding_item *item, char *text, size_t size);

#endif
