/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <string.h>

static void print_message(void *user, enum mica_log_level level, const char *message)
{
    if (level != MICA_LOG_ERROR) /* those are the command's own error */
        cli_note(user, "%s", message);
}

void cli_analysis_log(struct cli *cli, struct mica_log *log)
{
    unsigned verbose = cli->options.verbose;
    *log = (struct mica_log){.sink = print_message,
                             .user = cli,
                             .level = verbose > 1 ? MICA_LOG_DEBUG
                                      : verbose   ? MICA_LOG_INFO
                                                  : MICA_LOG_WARNING};
}

int cli_analysis_fail(struct cli *cli, const struct mica_log *log)
{
    return cli_fail(cli, "%s", log->last_error[0] ? log->last_error : "out of memory");
}

int cli_analysis_load(struct cli *cli, const char *path, struct mica_log *log, struct mica_recording *recording,
                      const struct mica_chip **chip)
{
    int error = mica_recording_load(path, log, recording);
    if (!error)
        error = mica_analysis_find_chip(cli->options.chip ? cli->options.chip : recording->chip, recording->driver, log,
                                        chip);
    return error ? cli_analysis_fail(cli, log) : 0;
}

void cli_decoded_place(const struct cli_decoded *decoded, const struct mica_decoding_item *group,
                       const struct mica_decoding_item *item, char *text, size_t size)
{
    char path[192];
    uint64_t address, offset;
    uint32_t extra;
    *text = 0;
    mica_field_path(group ? group->name : "", group ? group->text : "", item->name, path, sizeof path);
    if (!decoded->submit || !mica_field_address(path, item->value, decoded->chip, &address, &extra))
        return;
    uint32_t number = mica_place_find(decoded->places, decoded->submit, address, &offset);
    if (number)
        snprintf(text, size, "buffer %u + 0x%llx", number, (unsigned long long)offset);
}
