/* SPDX-License-Identifier: MIT */
/* Small graphs in the test host. */
#ifndef MICA_TESTS_DELEGATE_MODELS_H
#define MICA_TESTS_DELEGATE_MODELS_H

#include "../../clients/host.h"

enum { CONV_INPUT, CONV_WEIGHTS, CONV_BIAS, CONV_OUTPUT, CONV_TENSORS };

/* One int8 convolution, 1x6x6x4 to 1x6x6x8, 3x3, SAME, a scale for every output channel; node 0. */
struct host *model_conv(void);

/* The same with one scale for all channels, which more chips take. */
struct host *model_conv_per_tensor(void);

/* A chain of `count` uint8 additions of a tensor to itself; tensor i + 1 = 2 * tensor i; node i. */
struct host *model_chain(int count);

#endif
