/*
 * What the threads of a kernel read and write, each access before it happens. Faults are: an
 * address outside of the allocations, a misaligned one, shared memory that is read before it is
 * written, and races: two accesses by two threads, one of them a write, one of them neither atomic
 * nor volatile, with nothing between them that orders them. In order are: what a barrier of the
 * block separates, or one of the grid; and between two blocks, what the first did before a
 * __threadfence().
 */
#include <stdlib.h>
#include <string.h>
#include "kernel_run.h"

/* READ_STRUCT: at a multiple of 4 where a member may begin or not. */
enum access_kind { READ, WRITE, ATOMIC, READ_STRUCT };

/* ---- What was done last at an address ---- */

struct access {
    uint32_t thread; /* of the grid, from 1 on; 0: none */
    uint32_t barriers, grid_barriers, fences : 31, atomic : 1;
};

struct cell {
    struct access write, read[2];
};

/* Cells lie as their addresses do: threads use what is side by side. Those of addresses that are no
 * multiples of 4 are in pages of their own. */
enum { PAGE_BYTES = 256, PAGE_CELLS = PAGE_BYTES / 4 };

struct page {
    uint64_t number;
    uint64_t filling; /* of the table; another one: the page is free, and so are those behind it */
    struct cell *cell;
};

struct table {
    struct page *page, *last;
    size_t room, used;
    uint64_t filling;
};

enum {
    LEAST_ROOM = 1 << 8,
    MOST_USED = 1 << 17 /* beyond, addresses in further pages are not watched for races */
};

static struct table global, shared;

static void clear(struct table *table)
{
    table->filling++;
    table->used = 0;
    table->last = NULL;
}

static struct page *place(const struct table *table, uint64_t number)
{
    size_t at = (size_t)((number * 0x9e3779b97f4a7c15ull) >> 32) & (table->room - 1);
    while (table->page[at].filling == table->filling && table->page[at].number != number)
        at = (at + 1) & (table->room - 1);
    return &table->page[at];
}

static void grow(struct table *table)
{
    struct table larger = {.room = table->room > 0 ? 2 * table->room : LEAST_ROOM,
                           .used = table->used,
                           .filling = table->filling + 1};
    larger.page = calloc(larger.room, sizeof *larger.page);
    if (larger.page == NULL)
        abort();
    for (size_t i = 0; i < table->room; i++)
        if (table->page[i].filling == table->filling) {
            struct page *page = place(&larger, table->page[i].number);
            *page = table->page[i];
            page->filling = larger.filling;
        } else {
            free(table->page[i].cell);
        }
    free(table->page);
    *table = larger;
}

static struct page *take_page(struct table *table, uint64_t number)
{
    if (2 * table->used >= table->room)
        grow(table);
    struct page *page = place(table, number);
    if (page->filling == table->filling)
        return page;
    if (table->used == MOST_USED)
        return NULL;
    const size_t bytes = PAGE_CELLS * sizeof *page->cell;
    if (page->cell == NULL)
        page->cell = malloc(bytes);
    if (page->cell == NULL)
        abort();
    memset(page->cell, 0, bytes);
    page->number = number;
    page->filling = table->filling;
    table->used++;
    return page;
}

static struct cell *find(struct table *table, uintptr_t address)
{
    const uint64_t number = address / PAGE_BYTES * 4 + address % 4;
    if (table->last == NULL || table->last->number != number)
        table->last = take_page(table, number);
    return table->last != NULL ? &table->last->cell[address % PAGE_BYTES / 4] : NULL;
}

/* ---- Races ---- */

static struct access this_access(enum access_kind kind)
{
    const struct block *block = kernel_thread->block;
    const struct block_clock *clock = &kernel->clock[block->number];
    return (struct access){.thread =
                               block->number * kernel->launch->threads + kernel_thread->number + 1,
                           .barriers = clock->barriers,
                           .grid_barriers = kernel->grid_barriers,
                           .fences = clock->fences & 0x7fffffff,
                           .atomic = kind == ATOMIC};
}

static bool in_order(const struct access *before, const struct access *now)
{
    const unsigned threads = kernel->launch->threads;
    if (before->thread == 0 || before->thread == now->thread)
        return true;
    const uint32_t first = kernel_thread->block->number * threads + 1;
    if (before->thread - first < threads)
        return before->barriers < now->barriers;
    return before->grid_barriers < now->grid_barriers ||
           before->fences < kernel->clock[(before->thread - 1) / threads].fences;
}

static void check_race(const struct access *before, const struct access *now, const char *what,
                       uintptr_t address)
{
    const unsigned threads = kernel->launch->threads;
    if ((before->atomic && now->atomic) || in_order(before, now))
        return;
    testgpu_fault("race", "address=%#llx: %s, by thread %u of block %u and thread %u of block %u",
                  (unsigned long long)address, what, (before->thread - 1) % threads,
                  (before->thread - 1) / threads, (now->thread - 1) % threads,
                  (now->thread - 1) / threads);
    kernel_fail(CUDA_ERROR_LAUNCH_FAILED);
}

/* Keeps two readers: if there are more, one that is in order, or any, gives way. */
static void note_read(struct cell *cell, const struct access *now)
{
    int at = cell->read[0].thread == now->thread || in_order(&cell->read[0], now) ? 0 : 1;
    cell->read[at] = *now;
}

static void check_order(struct cell *cell, uintptr_t address, enum access_kind kind)
{
    const struct access now = this_access(kind);
    if (kind == READ) {
        check_race(&cell->write, &now, "written, then read", address);
        note_read(cell, &now);
        return;
    }
    check_race(&cell->write, &now, "written twice", address);
    for (int i = 0; i < 2; i++)
        check_race(&cell->read[i], &now, "read, then written", address);
    cell->write = now;
    memset(cell->read, 0, sizeof cell->read);
}

/* ---- What other operations may not use meanwhile ---- */

/* Each address that is read, and each that is written, once. */
static struct used {
    uintptr_t address;
    size_t bytes;
    bool writes;
} * used;
static size_t used_count, used_room;

static void note_use(uintptr_t address, size_t bytes, bool writes)
{
    if (!settings.order)
        return;
    if (used_count == used_room) {
        used_room = 2 * used_room + 1024;
        used = realloc(used, used_room * sizeof *used);
        if (used == NULL)
            abort();
    }
    used[used_count++] = (struct used){address, bytes, writes};
}

static int by_address(const void *one, const void *other)
{
    const struct used *x = one, *y = other;
    if (x->writes != y->writes)
        return x->writes - y->writes;
    return (x->address > y->address) - (x->address < y->address);
}

/* Makes one of what is side by side. */
static void join_uses(void)
{
    size_t joined = 0;
    if (used_count == 0)
        return;
    qsort(used, used_count, sizeof *used, by_address);
    for (size_t i = 0; i < used_count; i++) {
        struct used *last = joined > 0 ? &used[joined - 1] : NULL;
        if (last != NULL && last->writes == used[i].writes &&
            used[i].address <= last->address + last->bytes) {
            const uintptr_t end = used[i].address + used[i].bytes;
            if (end > last->address + last->bytes)
                last->bytes = end - last->address;
        } else {
            used[joined++] = used[i];
        }
    }
    used_count = joined;
}

/* Runs of one length, at one distance, are the columns of a place. */
static void touch_uses(void)
{
    join_uses();
    for (size_t i = 0, next; i < used_count; i = next) {
        struct testgpu_place place = {
            used[i].address, used[i].bytes, used[i].bytes, 1, TESTGPU_WHOLE, 1};
        for (next = i + 1; next < used_count && used[next].bytes == used[i].bytes &&
                           used[next].writes == used[i].writes;
             next++) {
            const uint64_t step = used[next].address - used[next - 1].address;
            if (place.columns > 1 && step != place.pitch)
                break;
            place.pitch = step;
            place.columns++;
        }
        testgpu_touch(kernel->run, &place, used[i].writes);
    }
    used_count = 0;
}

/* ---- Places ---- */

static struct view *views;
static size_t views_open, views_room;

static bool open_view(uintptr_t address, size_t bytes)
{
    if (views_open == views_room) {
        views_room = 2 * views_room + 16;
        views = realloc(views, views_room * sizeof *views);
        if (views == NULL)
            abort();
    }
    return memory_open_view(kernel->run, address, bytes, &views[views_open]) && ++views_open;
}

/* The allocation that was used last comes first. */
static bool is_open(uintptr_t address, size_t bytes)
{
    for (size_t i = 0; i < views_open; i++)
        if (address >= views[i].address && address + bytes <= views[i].end) {
            const struct view found = views[i];
            views[i] = views[0];
            views[0] = found;
            return true;
        }
    return false;
}

static bool within(uintptr_t address, size_t bytes, const char *start, size_t size)
{
    return address >= (uintptr_t)start && address + bytes <= (uintptr_t)start + size;
}

static bool is_shared(uintptr_t address, size_t bytes)
{
    return within(address, bytes, kernel_thread->block->shared, kernel->launch->shared_bytes) ||
           within(address, bytes, __start_own_shared,
                  (size_t)(__stop_own_shared - __start_own_shared));
}

/* This library's constants, a kernel's among them. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char __bss_start[] __attribute__((visibility("hidden")));

static bool is_constant(uintptr_t address, size_t bytes)
{
    return within(address, bytes, __ehdr_start, (size_t)(__bss_start - __ehdr_start));
}

static void note_shared(uintptr_t address, size_t bytes)
{
    if (!within(address, bytes, __start_own_shared,
                (size_t)(__stop_own_shared - __start_own_shared)))
        return;
    const size_t from = (size_t)(address - (uintptr_t)__start_own_shared);
    if (from < kernel->shared_from)
        kernel->shared_from = from;
    if (from + bytes > kernel->shared_to)
        kernel->shared_to = from + bytes;
}

static void access_shared(uintptr_t address, size_t bytes, enum access_kind kind)
{
    note_shared(address, bytes);
    /* Blocks that are together have the same addresses. */
    const uintptr_t own = address ^ ((uintptr_t)(kernel_thread->block->number + 1) << 48);
    struct cell *cell = find(&shared, own);
    if (cell == NULL)
        return;
    if (kind == READ_STRUCT) {
        if (cell->write.thread == 0)
            return;
        kind = READ;
    }
    if (kind != WRITE && cell->write.thread == 0) {
        testgpu_fault("uninitialised_shared", "thread %u of block %u reads what none has written",
                      kernel_thread->number, kernel_thread->block->number);
        kernel_fail(CUDA_ERROR_LAUNCH_FAILED);
    }
    check_order(cell, own, kind);
}

static void access_global(uintptr_t address, size_t bytes, enum access_kind kind)
{
    if (!is_open(address, bytes) && !open_view(address, bytes))
        kernel_fail(CUDA_ERROR_ILLEGAL_ADDRESS);
    kernel->moved += (double)bytes;
    struct cell *cell = find(&global, address);
    if (cell == NULL)
        return;
    const bool writes = kind != READ && kind != READ_STRUCT;
    if (writes ? cell->write.thread == 0 : cell->write.thread == 0 && cell->read[0].thread == 0)
        note_use(address, bytes, writes);
    check_order(cell, address, kind == READ_STRUCT ? READ : kind);
}

static void access_memory(const void *where, size_t bytes, enum access_kind kind)
{
    const uintptr_t address = (uintptr_t)where;
    static unsigned left;
    if (kernel_thread == NULL || within(address, bytes, kernel_thread->stack, THREAD_STACK))
        return;
    if (left-- == 0) {
        left = (unsigned)(random_next(&kernel->random) >> 16) % 256;
        kernel_yield();
    }
    if (is_shared(address, bytes)) {
        access_shared(address, bytes, kind);
    } else if ((kind != READ && kind != READ_STRUCT) || !is_constant(address, bytes)) {
        if ((bytes & (bytes - 1)) == 0 && address % bytes != 0) {
            testgpu_fault("misaligned_address", "address=%p bytes=%zu", where, bytes);
            kernel_fail(CUDA_ERROR_MISALIGNED_ADDRESS);
        }
        access_global(address, bytes, kind);
    }
}

void kernel_memory_begin(void)
{
    clear(&global);
}

void kernel_memory_end(void)
{
    touch_uses();
    while (views_open > 0)
        memory_close_view(&views[--views_open]);
}

void kernel_forget_shared(void)
{
    clear(&shared);
}

/* ---- What the compiler calls, by the names that testgpu.mk gives its functions ---- */

void testgpu_atomic(const void *address, size_t bytes)
{
    access_memory(address, bytes, ATOMIC);
}

#define ACCESS(name, bytes, access)                                                                \
    void testgpu_tsan_##name##bytes(const void *address);                                          \
    void testgpu_tsan_##name##bytes(const void *address)                                           \
    {                                                                                              \
        access_memory(address, bytes, access);                                                     \
    }
#define SIZED(bytes)                                                                               \
    ACCESS(read, bytes, READ)                                                                      \
    ACCESS(write, bytes, WRITE)                                                                    \
    ACCESS(volatile_read, bytes, ATOMIC)                                                           \
    ACCESS(volatile_write, bytes, ATOMIC)
SIZED(1)
SIZED(2)
SIZED(4)
SIZED(8)
SIZED(16)

/* A struct, whose members begin at multiples of 4. */
#define RANGE(name, kind)                                                                          \
    void testgpu_tsan_##name(const void *address, size_t bytes);                                   \
    void testgpu_tsan_##name(const void *address, size_t bytes)                                    \
    {                                                                                              \
        for (size_t at = 0; at < bytes; at += 4)                                                   \
            access_memory((const char *)address + at, bytes - at < 4 ? bytes - at : 4, kind);      \
    }
RANGE(read_range, READ_STRUCT)
RANGE(write_range, WRITE)

void testgpu_tsan_init(void);
void testgpu_tsan_init(void) {}
void testgpu_ubsan_handle_out_of_bounds(void *site, uintptr_t index);
void testgpu_ubsan_handle_out_of_bounds(void *site, uintptr_t index)
{
    (void)site;
    testgpu_fault("index_out_of_bounds", "index=%llu of an array of known size",
                  (unsigned long long)index);
    kernel_fail(CUDA_ERROR_ILLEGAL_ADDRESS);
}
