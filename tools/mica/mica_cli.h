/* SPDX-License-Identifier: MIT */
/* The mica command as a function, so that tests and fuzzers call it in their own process. */
#ifndef MICA_CLI_H
#define MICA_CLI_H

#include <stdio.h>

enum {
    CLI_OK = 0,
    CLI_FAILED = 1, /* a file, a model or a device */
    CLI_USAGE = 2,  /* the command line itself */
};

/*
 * Does what `mica ARGUMENTS` does and returns its exit code. Results go to
 * `out`, everything else to `err`. May be called again and again, from one
 * thread at a time; it neither exits nor changes `argv`.
 */
int mica_cli_main(int argc, char **argv, FILE *out, FILE *err);

#endif
