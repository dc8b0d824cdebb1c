/* SPDX-License-Identifier: MIT */
#include "npu/vivante/compile/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "npu/vivante/compile/batch.h"
#include "util/checked.h"

static bool has_batches(const struct mica_partition *partition)
{
    bool found = false;
    for (uint32_t i = 0; i < partition->op_count; i++)
        found |= viv_is_batched(partition->graph, &partition->graph->ops[partition->ops[i]]);
    return found;
}

int viv_plan_init(struct viv_plan *plan, const struct viv_chip *chip, const struct mica_partition *partition,
                  struct mica_threads *threads, struct mica_log *log)
{
    *plan = (struct viv_plan){.chip = chip, .partition = partition, .graph = partition->graph};
    plan->threads = threads;
    plan->log = log;
    if (has_batches(partition)) {
        if (viv_batch_graph_make(partition->graph, &plan->batch))
            return mica_fail_nomem(log);
        plan->graph = &plan->batch.graph;
    }
    plan->values = mica_new_array(plan->graph->tensor_count, sizeof(*plan->values));
    if (!plan->values)
        return mica_fail_nomem(log);
    for (uint32_t i = 0; i < plan->graph->tensor_count; i++)
        plan->values[i] = (struct viv_value){{VIV_NONE, 0}, {VIV_NONE, 0}, VIV_NONE, VIV_NONE};
    return 0;
}

void viv_plan_finish(struct viv_plan *plan)
{
    for (uint32_t i = 0; i < plan->job_count; i++)
        if (plan->jobs[i].is_nn)
            free(plan->jobs[i].nn.coefficients.data);
    for (uint32_t i = 0; i < plan->weights_count; i++) {
        viv_weights_finish(plan->weights[i]);
        free(plan->weights[i]);
    }
    for (uint32_t i = 0; i < plan->storage_count; i++)
        free(plan->storages[i].data);
    free(plan->weights);
    free(plan->jobs);
    free(plan->storages);
    free(plan->values);
    viv_batch_graph_finish(&plan->batch);
}

/* Makes room for one more element; NULL when memory runs out, the array is then as before. */
static void *grow(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    uint32_t wanted = *capacity ? *capacity * 2 : 32;
    void *larger = realloc(array, wanted * size);
    if (larger)
        *capacity = wanted;
    return larger;
}

int viv_plan_storage(struct viv_plan *plan, uint64_t size, struct viv_ref *ref)
{
    void *storages = grow(plan->storages, plan->storage_count, &plan->storage_capacity, sizeof(*plan->storages));
    if (!storages)
        return mica_fail_nomem(plan->log);
    plan->storages = storages;
    plan->storages[plan->storage_count] = (struct viv_storage){.size = size, .parent = VIV_NONE, .first = UINT32_MAX};
    *ref = (struct viv_ref){plan->storage_count++, 0};
    return 0;
}

int viv_plan_constant(struct viv_plan *plan, uint64_t size, struct viv_ref *ref, uint8_t **data)
{
    int error = viv_plan_storage(plan, size, ref);
    if (error)
        return error;
    struct viv_storage *storage = &plan->storages[ref->storage];
    storage->external = true;
    *data = storage->data = calloc(1, size);
    return storage->data ? 0 : mica_fail_nomem(plan->log);
}

bool viv_plan_claim(struct viv_plan *plan, struct viv_ref ref, uint64_t size, uint32_t parent, uint64_t offset)
{
    struct viv_storage *storage = &plan->storages[ref.storage];
    if (ref.offset || storage->size != size || storage->parent != VIV_NONE || ref.storage == parent)
        return false;
    storage->parent = parent;
    storage->parent_offset = offset;
    plan->storages[parent].external |= storage->external;
    return true;
}

struct viv_ref viv_plan_resolve(const struct viv_plan *plan, struct viv_ref ref)
{
    while (plan->storages[ref.storage].parent != VIV_NONE) {
        ref.offset += plan->storages[ref.storage].parent_offset;
        ref.storage = plan->storages[ref.storage].parent;
    }
    return ref;
}

struct viv_job *viv_plan_job(struct viv_plan *plan, uint32_t op, bool is_nn)
{
    void *jobs = grow(plan->jobs, plan->job_count, &plan->job_capacity, sizeof(*plan->jobs));
    if (!jobs) {
        mica_fail_nomem(plan->log);
        return NULL;
    }
    plan->jobs = jobs;
    struct viv_job *job = &plan->jobs[plan->job_count++];
    memset(job, 0, sizeof(*job));
    job->op = op;
    job->is_nn = is_nn;
    return job;
}

struct viv_weights *viv_plan_weights(struct viv_plan *plan, uint32_t *index)
{
    void *array = grow(plan->weights, plan->weights_count, &plan->weights_capacity, sizeof(*plan->weights));
    struct viv_weights *weights = array ? calloc(1, sizeof(*weights)) : NULL;
    if (array)
        plan->weights = array;
    if (!weights) {
        mica_fail_nomem(plan->log);
        return NULL;
    }
    *index = plan->weights_count;
    plan->weights[plan->weights_count++] = weights;
    return weights;
}
