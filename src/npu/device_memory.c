/* SPDX-License-Identifier: MIT */
#include "npu/device_memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_COUNT (MICA_DEVICE_SPACE / MICA_DEVICE_PAGE)

int mica_device_memory_create(struct mica_device_memory *memory)
{
    *memory = (struct mica_device_memory){0};
    memory->pages = calloc(PAGE_COUNT, 1);
    if (!memory->pages)
        return -ENOMEM;
    void *base = mmap(NULL, MICA_DEVICE_SPACE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        int error = -errno;
        free(memory->pages);
        memory->pages = NULL;
        return error;
    }
    memory->base = base;
    return 0;
}

void mica_device_memory_destroy(struct mica_device_memory *memory)
{
    if (memory->base)
        munmap(memory->base, MICA_DEVICE_SPACE);
    free(memory->pages);
    *memory = (struct mica_device_memory){0};
}

static bool page_range(uint64_t address, uint64_t size)
{
    return address % MICA_DEVICE_PAGE == 0 && size % MICA_DEVICE_PAGE == 0 && address <= MICA_DEVICE_SPACE &&
           size <= MICA_DEVICE_SPACE - address;
}

/* Nothing of the host's may ever be placed where a device address will be mapped later. */
static bool reserve(struct mica_device_memory *memory, uint64_t address, uint64_t size)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    return mmap(memory->base + address, size, PROT_NONE, flags, -1, 0) != MAP_FAILED;
}

int mica_device_memory_map(struct mica_device_memory *memory, uint64_t address, uint64_t size)
{
    if (!page_range(address, size))
        return -EINVAL;
    if (size == 0)
        return 0;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    return mmap(memory->base + address, size, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED ? -errno : 0;
}

/*
 * Mapped elsewhere first, then moved: the driver behind the file may refuse
 * when the old mapping of the range is gone already, and leave a hole.
 */
int mica_device_memory_map_file(struct mica_device_memory *memory, uint64_t address, uint64_t size, int fd)
{
    if (!page_range(address, size))
        return -EINVAL;
    if (size == 0)
        return 0;
    void *elsewhere = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (elsewhere == MAP_FAILED)
        return -errno;
    if (mremap(elsewhere, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, memory->base + address) != MAP_FAILED)
        return 0;
    int error = -errno;
    munmap(elsewhere, size);
    reserve(memory, address, size);
    return error;
}

void mica_device_memory_unmap(struct mica_device_memory *memory, uint64_t address, uint64_t size)
{
    if (!page_range(address, size) || size == 0)
        return;
    mica_device_memory_protect(memory, address, size, 0);
    if (!reserve(memory, address, size))
        /* Out of mappings: the range stays reserved, its contents at least go back to the system. */
        madvise(memory->base + address, size, MADV_DONTNEED);
}

void mica_device_memory_protect(struct mica_device_memory *memory, uint64_t address, uint64_t size, unsigned access)
{
    if (page_range(address, size))
        memset(memory->pages + address / MICA_DEVICE_PAGE, (int)access, size / MICA_DEVICE_PAGE);
}

void *mica_device_at(const struct mica_device_memory *memory, uint64_t address, uint64_t size, unsigned access,
                     uint64_t *fault)
{
    if (size == 0)
        return memory->base + (address < MICA_DEVICE_SPACE ? address : 0);
    if (address >= MICA_DEVICE_SPACE || size > MICA_DEVICE_SPACE - address) {
        *fault = address >= MICA_DEVICE_SPACE ? address : MICA_DEVICE_SPACE;
        return NULL;
    }
    uint64_t last = (address + size - 1) / MICA_DEVICE_PAGE;
    for (uint64_t page = address / MICA_DEVICE_PAGE; page <= last; page++) {
        if ((memory->pages[page] & access) == access)
            continue;
        uint64_t start = page * MICA_DEVICE_PAGE;
        *fault = start > address ? start : address;
        return NULL;
    }
    return memory->base + address;
}
