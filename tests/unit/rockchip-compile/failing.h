/* SPDX-License-Identifier: MIT */
/* Allocations that fail on demand, for tests that are linked with --wrap=malloc and so on. */
#ifndef TESTS_ROCKCHIP_COMPILE_FAILING_H
#define TESTS_ROCKCHIP_COMPILE_FAILING_H

extern long allocations_left; /* that succeed; negative: all do */

#endif
