/* SPDX-License-Identifier: MIT */
/* Convolution, requantization and pooling of a checked job with decoded weights. */
#ifndef MICA_VIVANTE_SIM_CONV_H
#define MICA_VIVANTE_SIM_CONV_H

#include "npu/vivante/sim/nn_job.h"

int viv_conv_run(struct viv_sim *sim, const struct viv_nn *job, const struct viv_weights *weights);

#endif
