/* SPDX-License-Identifier: MIT */
#include "estimate.h"

#include "cli.h"

/* The clocks to tell of: both ends of the range, and the device's between them. */
static size_t list_clocks(const struct cli *cli, double clocks[3])
{
    double least, most, now = mica_device_clock(cli->device, &least, &most);
    size_t count = 0;
    if (most <= least)
        return 0;
    clocks[count++] = least;
    if (now > least && now < most)
        clocks[count++] = now;
    clocks[count++] = most;
    return count;
}

double cli_estimate_us(struct cli *cli, double mhz)
{
    double us;
    return mica_session_stream_us(cli->session, mhz, 1, 1, &us) ? 0 : us;
}

void cli_estimate_print(struct cli *cli)
{
    double clocks[3];
    size_t count = list_clocks(cli, clocks);
    if (!count || cli_estimate_us(cli, 0) <= 0)
        return;
    for (size_t i = 0; i < count; i++)
        fprintf(cli->out, "%s at %.0f MHz about %.2f ms",
                i ? "," : "by the timing model, dispatch included:", clocks[i], cli_estimate_us(cli, clocks[i]) / 1e3);
    fputc('\n', cli->out);
}

void cli_estimate_json(struct cli *cli, struct cli_json *json, json_t *object)
{
    double clocks[3];
    size_t count = list_clocks(cli, clocks);
    if (!count || cli_estimate_us(cli, 0) <= 0)
        return;
    json_t *rows = cli_json_array(json);
    for (size_t i = 0; i < count; i++) {
        json_t *row = cli_json_object(json);
        cli_json_set_real(json, row, "mhz", clocks[i]);
        cli_json_set_real(json, row, "us", cli_estimate_us(cli, clocks[i]));
        cli_json_append(json, rows, row);
    }
    cli_json_set(json, object, "clocks", rows);
}

void cli_split_print(struct cli *cli)
{
    unsigned split = mica_executable_split(cli->executable);
    if (split > 1)
        fprintf(cli->out, "split: each inference is spread over %u cores, on simulators only: no kernel allows it\n",
                split);
}

void cli_split_json(struct cli *cli, struct cli_json *json, json_t *object)
{
    unsigned split = mica_executable_split(cli->executable);
    if (split > 1)
        cli_json_set_integer(json, object, "split", split);
}
