/* SPDX-License-Identifier: MIT */
/* Reading, decoding, comparing and executing what drivers submit. Not part of libmica. */
#ifndef MICA_ANALYSIS_ANALYSIS_H
#define MICA_ANALYSIS_ANALYSIS_H

#include "analysis/capture.h"
#include "analysis/chips.h"
#include "analysis/decoding.h"
#include "analysis/diff.h"
#include "analysis/jobs.h"
#include "analysis/model.h"
#include "analysis/replay.h"
#include "analysis/sweep.h"

#endif
