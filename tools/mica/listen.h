/* SPDX-License-Identifier: MIT */
/* Models that name what they hear: what their input is of a sound, and a sound longer than that piece by piece. */
#ifndef MICA_CLI_LISTEN_H
#define MICA_CLI_LISTEN_H

#include "mica/mica.h"

struct cli;
struct cli_task;

/* How many samples the model's input is made of, and its value of so many. */
size_t cli_sound_window(const struct cli *cli, const struct mica_tensor_info *tensor);
void cli_sound_put(const struct cli *cli, const struct mica_tensor_info *tensor, const float *samples, void *data);

/* With --every: runs the model again and again, further on in the sound each time. 0 or an exit code. */
bool cli_listens(const struct cli *cli);
int cli_listen(struct cli *cli, const struct cli_task *task);

#endif
