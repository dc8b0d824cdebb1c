/* SPDX-License-Identifier: MIT */
#include "npu/rockchip/compile/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/checked.h"

int rk_plan_init(struct rk_plan *plan, const struct mica_chip *chip, const struct mica_partition *partition,
                 const struct mica_compile_options *options, struct mica_threads *threads, struct mica_log *log)
{
    *plan = (struct rk_plan){.chip = chip->parameters, .partition = partition, .graph = partition->graph};
    if (options)
        plan->options = *options;
    plan->threads = threads;
    plan->log = log;
    plan->values = mica_new_array(partition->graph->tensor_count, sizeof(*plan->values));
    if (!plan->values)
        return mica_fail_nomem(log);
    for (uint32_t i = 0; i < partition->graph->tensor_count; i++)
        plan->values[i].cube.at.storage = RK_NONE;
    return 0;
}

void rk_plan_finish(struct rk_plan *plan)
{
    for (uint32_t i = 0; i < plan->task_count; i++) {
        free(plan->tasks[i].words);
        free(plan->tasks[i].uses);
    }
    for (uint32_t i = 0; i < plan->storage_count; i++)
        free(plan->storages[i].data);
    free(plan->tasks);
    free(plan->storages);
    free(plan->values);
    free(plan->pieces);
}

void *rk_plan_grow(void *array, uint32_t count, uint32_t *capacity, size_t size)
{
    if (count < *capacity)
        return array;
    uint32_t wanted = *capacity ? *capacity * 2 : 32;
    void *larger = realloc(array, wanted * size);
    if (larger)
        *capacity = wanted;
    return larger;
}

int rk_plan_storage(struct rk_plan *plan, uint64_t size, struct rk_ref *ref)
{
    void *storages =
        rk_plan_grow(plan->storages, plan->storage_count, &plan->storage_capacity, sizeof(*plan->storages));
    if (!storages)
        return mica_fail_nomem(plan->log);
    plan->storages = storages;
    plan->storages[plan->storage_count] = (struct rk_storage){.size = size, .parent = RK_NONE, .first = RK_NONE};
    *ref = (struct rk_ref){plan->storage_count++, 0};
    return 0;
}

int rk_plan_constant(struct rk_plan *plan, uint8_t *data, uint64_t size, struct rk_ref *ref)
{
    int error = rk_plan_storage(plan, size, ref);
    if (error)
        free(data);
    else
        plan->storages[ref->storage].data = data;
    return error;
}

int rk_plan_reach(struct rk_plan *plan, struct rk_ref ref, uint64_t bytes)
{
    struct rk_ref root = rk_plan_resolve(plan, ref);
    struct rk_storage *storage = &plan->storages[root.storage];
    uint64_t size = root.offset + bytes;
    if (size <= storage->size)
        return 0;
    if (storage->data) {
        uint8_t *data = realloc(storage->data, size);
        if (!data)
            return mica_fail_nomem(plan->log);
        memset(data + storage->size, 0, size - storage->size);
        storage->data = data;
    }
    storage->size = size;
    return 0;
}

bool rk_plan_claim(struct rk_plan *plan, uint32_t storage, uint32_t parent, uint64_t offset)
{
    struct rk_storage *child = &plan->storages[storage];
    if (child->parent != RK_NONE || child->data || storage == parent)
        return false;
    if (!mica_range_inside(offset, child->size, plan->storages[parent].size))
        return false;
    if (rk_plan_resolve(plan, (struct rk_ref){parent, 0}).storage == storage)
        return false;
    child->parent = parent;
    child->parent_offset = offset;
    plan->storages[rk_plan_resolve(plan, (struct rk_ref){parent, 0}).storage].external |= child->external;
    return true;
}

struct rk_ref rk_plan_resolve(const struct rk_plan *plan, struct rk_ref ref)
{
    while (plan->storages[ref.storage].parent != RK_NONE) {
        ref.offset += plan->storages[ref.storage].parent_offset;
        ref.storage = plan->storages[ref.storage].parent;
    }
    return ref;
}
