/* SPDX-License-Identifier: MIT */
#include "cli.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

void cli_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

static void print_line(struct cli *cli, const char *prefix, const char *format, va_list arguments)
{
    char text[1024];
    vsnprintf(text, sizeof(text), format, arguments);
    cli_clean(text);
    cli_progress_erase(&cli->progress);
    fprintf(cli->err, "mica: %s%s\n", prefix, text);
}

int cli_fail(struct cli *cli, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(cli, "error: ", format, arguments);
    va_end(arguments);
    return CLI_FAILED;
}

int cli_usage(struct cli *cli, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(cli, "", format, arguments);
    va_end(arguments);
    if (cli->command)
        fprintf(cli->err, "See 'mica %s --help'.\n", cli->command->name);
    else
        fputs("See 'mica --help'.\n", cli->err);
    return CLI_USAGE;
}

void cli_note(struct cli *cli, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    print_line(cli, "", format, arguments);
    va_end(arguments);
}

int cli_fail_nomem(struct cli *cli)
{
    return cli_fail(cli, "out of memory");
}

int cli_fail_library(struct cli *cli, int error)
{
    const char *said = cli->context ? mica_last_error(cli->context) : "";
    return cli_fail(cli, "%s", *said ? said : strerror(-error));
}

/* Edit distance where swapped neighbours count once; texts of at most LENGTH_MAX characters. */
#define LENGTH_MAX 31

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned distance(const char *a, const char *b)
{
    unsigned rows[LENGTH_MAX + 1][LENGTH_MAX + 1];
    size_t a_length = strlen(a), b_length = strlen(b);
    if (a_length > LENGTH_MAX || b_length > LENGTH_MAX)
        return UINT_MAX;
    for (size_t i = 0; i <= a_length; i++) {
        for (size_t j = 0; j <= b_length; j++) {
            if (!i || !j) {
                rows[i][j] = (unsigned)(i + j);
                continue;
            }
            unsigned cost = a[i - 1] != b[j - 1];
            rows[i][j] = least(least(rows[i - 1][j], rows[i][j - 1]) + 1, rows[i - 1][j - 1] + cost);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                rows[i][j] = least(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[a_length][b_length];
}

const char *cli_nearest(const char *text, const void *names, size_t count, size_t stride)
{
    const char *best = NULL;
    unsigned best_distance = 3; /* further away is a guess, not a typing error */
    for (size_t i = 0; i < count; i++) {
        const char *name;
        memcpy(&name, (const char *)names + i * stride, sizeof(name));
        unsigned d = distance(text, name);
        if (d < best_distance) {
            best = name;
            best_distance = d;
        }
    }
    return best;
}
