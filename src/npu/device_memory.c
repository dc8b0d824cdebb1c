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

static int map(struct mica_device_memory *memory, uint64_t address, uint64_t size, int flags, int fd)
{
    if (!page_range(address, size))
        return -EINVAL;
    if (size == 0)
        return 0;
    void *at = mmap(memory->base + address, size, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd, 0);
    return at == MAP_FAILED ? -errno : 0;
}

int mica_device_memory_map(struct mica_device_memory *memory, uint64_t address, uint64_t size)
{
    return map(memory, address, size, MAP_PRIVATE | MAP_ANONYMOUS, -1);
}

int mica_device_memory_map_file(struct mica_device_memory *memory, uint64_t address, uint64_t size, int fd)
{
    return map(memory, address, size, MAP_SHARED, fd);
}

void mica_device_memory_unmap(struct mica_device_memory *memory, uint64_t address, uint64_t size)
{
    if (!page_range(address, size) || size == 0)
        return;
    mica_device_memory_protect(memory, address, size, 0);
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    if (mmap(memory->base + address, size, PROT_NONE, flags, -1, 0) == MAP_FAILED)
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
