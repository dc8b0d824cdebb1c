/* SPDX-License-Identifier: MIT */
#include "labels.h"

#include "cli.h"
#include "file.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX ((size_t)16 << 20)

static size_t count_lines(const char *text)
{
    size_t count = 0;
    for (; *text; text++)
        count += *text == '\n' || !text[1]; /* the last line may lack its newline */
    return count;
}

/* Cuts `text` into lines in place. */
static void cut_lines(struct cli_labels *labels)
{
    char *line = labels->text;
    for (size_t i = 0; i < labels->count; i++) {
        char *end = line + strcspn(line, "\n");
        char *next = *end ? end + 1 : end;
        *end = 0;
        if (end > line && end[-1] == '\r')
            end[-1] = 0;
        cli_clean(line);
        labels->lines[i] = line;
        line = next;
    }
}

static int load_file(struct cli *cli, const char *path, struct cli_labels *labels)
{
    void *text;
    size_t size;
    int failed = cli_file_read(cli, path, FILE_MAX, &text, &size);
    if (failed)
        return failed;
    labels->text = text;
    if (size > FILE_MAX)
        return cli_fail(cli, "'%s' is larger than %zu MiB, too large for a list of labels", path, FILE_MAX >> 20);
    if (memchr(text, 0, size))
        return cli_fail(cli, "'%s' is no text file", path);
    labels->count = count_lines(text);
    labels->lines = calloc(labels->count + 1, sizeof(*labels->lines));
    if (!labels->lines) {
        labels->count = 0;
        return cli_fail_nomem(cli);
    }
    cut_lines(labels);
    return 0;
}

/* The path beside `model` in `path`, which has room for it; false when there is no such file. */
static bool find_beside(const char *model, char *path)
{
    const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model;
    const char *dot = strrchr(name, '.');
    size_t stem = dot ? (size_t)(dot - model) : strlen(model);
    memcpy(path, model, stem);
    strcpy(path + stem, ".labels.txt");
    if (access(path, R_OK) == 0)
        return true;
    strcpy(path + (name - model), "labels.txt");
    return access(path, R_OK) == 0;
}

static int load_beside(struct cli *cli, size_t classes, struct cli_labels *labels)
{
    const char *model = cli->options.operands.items[0];
    char *path = malloc(strlen(model) + sizeof(".labels.txt"));
    if (!path)
        return cli_fail_nomem(cli);
    int failed = 0;
    if (find_beside(model, path)) {
        failed = load_file(cli, path, labels);
        if (!failed && classes && labels->count != classes) {
            cli_note(cli, "'%s' has %zu lines, the model %zu classes: not used", path, labels->count, classes);
            cli_labels_finish(labels);
        }
    }
    free(path);
    return failed;
}

int cli_labels_load(struct cli *cli, size_t classes, struct cli_labels *labels)
{
    const char *path = cli->options.labels;
    *labels = (struct cli_labels){0};
    int failed = path ? load_file(cli, path, labels) : load_beside(cli, classes, labels);
    if (failed)
        cli_labels_finish(labels);
    else if (path && classes && labels->count != classes)
        cli_note(cli, "'%s' has %zu lines, the model %zu classes", path, labels->count, classes);
    return failed;
}

void cli_labels_finish(struct cli_labels *labels)
{
    free(labels->text);
    free(labels->lines);
    *labels = (struct cli_labels){0};
}

const char *cli_label(const struct cli_labels *labels, size_t index)
{
    return index < labels->count ? labels->lines[index] : NULL;
}
