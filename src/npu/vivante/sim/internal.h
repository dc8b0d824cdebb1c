/* SPDX-License-Identifier: MIT */
/* What the simulator's files share. */
#ifndef MICA_VIVANTE_SIM_INTERNAL_H
#define MICA_VIVANTE_SIM_INTERNAL_H

#include "npu/npu.h"
#include "npu/vivante/hw/chips.h"
#include "npu/vivante/hw/fields.h"
#include "npu/vivante/hw/timing.h"
#include "npu/vivante/sim/kernels.h"
#include "npu/vivante/sim/weights.h"

/* Memory that keeps its size between jobs. */
struct viv_buffer {
    uint8_t *data;
    size_t size;
};

/* At least `size` bytes, contents undefined; false when memory runs out. */
bool viv_buffer_reserve(struct viv_buffer *buffer, size_t size);

/* Front-end states that jobs look at; they keep their values from one stream to the next. */
struct viv_registers {
    uint32_t ocb_start, ocb_end;
};

struct viv_sim {
    const struct viv_chip *chip;
    enum viv_coef_format coef_format; /* what coefficient buffers are read as: the chip's, or on request V7 */
    struct mica_device_memory *memory;
    struct mica_threads *threads;
    struct mica_log *log;
    const struct viv_kernels *kernels;
    struct viv_registers registers;
    struct viv_weights_cache weights;
    struct viv_buffer image;    /* input of the running job, with its border */
    struct viv_buffer unpooled; /* its result before pooling */
    struct viv_buffer lanes;    /* work space of the threads */
    uint64_t cycle_limit;       /* of one stream */
    uint64_t cycles_left;       /* in the running stream */
    bool element_wise;          /* TP jobs take no short cuts: for tests */
};

/* Host pointer to device memory; NULL with a message that names `what` when the device can't go there. */
void *viv_sim_at(struct viv_sim *sim, uint64_t address, uint64_t size, unsigned access, const char *what);

/* Which memory stands behind an address: the chip's table says it, and it matters for times and traffic only. */
enum viv_place viv_sim_place(const struct viv_sim *sim, uint64_t address);

/* Takes a job's cycles from what the stream may use; -EIO when it would run into the kernel's timeout. */
int viv_sim_spend(struct viv_sim *sim, const char *unit, uint32_t descriptor, uint64_t cycles);

/* Reports fields that nobody knows the meaning of and that don't hold what drivers write, at debug level. */
void viv_sim_note_unknown(struct viv_sim *sim, const char *unit, uint32_t descriptor, const uint32_t *words,
                          const struct viv_field *fields, size_t count);

/* Run the job whose descriptor is at `address`. */
int viv_nn_run(struct viv_sim *sim, uint32_t address, struct viv_cost *cost);
int viv_tp_run(struct viv_sim *sim, uint32_t address, struct viv_cost *cost);

#endif
