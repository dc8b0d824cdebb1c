/* SPDX-License-Identifier: MIT */
/* replay [OPTIONS] FOLDER...: what `mica replay` does, for several captures; the exit code is the worst of theirs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "mica_cli.h"

static int replay(char **options, int count, char *folder)
{
    char command[] = "mica", name[] = "replay";
    char **arguments = calloc((size_t)count + 4, sizeof *arguments);
    if (!arguments)
        return 2;
    arguments[0] = command;
    arguments[1] = name;
    for (int i = 0; i < count; i++)
        arguments[i + 2] = options[i];
    arguments[count + 2] = folder;
    printf("%s\n", folder);
    int result = mica_cli_main(count + 3, arguments, stdout, stderr);
    free(arguments);
    return result;
}

/* The one option of `mica replay` that tests need here takes a value. */
int main(int argc, char **argv)
{
    int options = argc > 3 && !strcmp(argv[1], "--coefficients") ? 2 : 0, worst = 0;
    if (argc < 2 || argv[options + 1][0] == '-') {
        fprintf(argc < 2 ? stderr : stdout, "usage: replay [--coefficients v7] FOLDER...\nSee 'mica replay --help'.\n");
        return argc == 2 && !strcmp(argv[1], "--help") ? 0 : 2;
    }
    for (int i = options + 1; i < argc; i++) {
        int result = replay(argv + 1, options, argv[i]);
        worst = result > worst ? result : worst;
    }
    return worst;
}
