/* SPDX-License-Identifier: MIT */
/* What the timing model says of the last run as a whole: at the device's clock, and at the ends of its range. */
#ifndef MICA_CLI_ESTIMATE_H
#define MICA_CLI_ESTIMATE_H

#include "json.h"

struct cli;

/* Microseconds of the NPU for one run at `mhz` (0: the device's clock); 0 where there is no model. */
double cli_estimate_us(struct cli *cli, double mhz);

/* "at 200 MHz about 9.10 ms, ..." as a line for chips whose clock has a range; nothing for others. */
void cli_estimate_print(struct cli *cli);

/* The same as the array "clocks" of {mhz, us} in `object`. */
void cli_estimate_json(struct cli *cli, struct cli_json *json, json_t *object);

/* Says that the model was compiled to be spread over cores, which only simulators can do; nothing if it wasn't. */
void cli_split_print(struct cli *cli);
void cli_split_json(struct cli *cli, struct cli_json *json, json_t *object);

#endif
