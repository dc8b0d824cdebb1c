/* SPDX-License-Identifier: MIT */
#include "mica_cli.h"

int main(int argc, char **argv)
{
    return mica_cli_main(argc, argv, stdout, stderr);
}
