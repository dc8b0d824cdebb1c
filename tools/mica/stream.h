/* SPDX-License-Identifier: MIT */
/* Many runs of one model on several cores at the same time: 'mica run --repeat N --cores K'. */
#ifndef MICA_CLI_STREAM_H
#define MICA_CLI_STREAM_H

struct cli;

/* Runs --repeat inferences of the session's inputs, on the session and copies of it; *ms gets what all took. 0 or an
 * exit code. The session ends with results. */
int cli_stream_run(struct cli *cli, double *ms);

#endif
