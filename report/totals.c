#define _GNU_SOURCE
#include "totals.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/thread/clock.h"
#include "base/file/file.h"
#include "base/memory/hash.h"
#include "base/text/text.h"
#include "ops/op.h"

/* ---- The table ---- */

/* What tells rows apart. Whole words, so that several processes may write the same one at the same
 * time. */
union label {
    struct {
        char name[40], ran[ACCEL_RAN_BYTES];
        uint8_t why, inner, class;
    } is;
    uint64_t word[18];
};

enum { LABEL_WORDS = sizeof(union label) / sizeof(uint64_t) };

enum totals_sum {
    CALLS,
    UNTIMED,
    TIME, /* nanoseconds, as the two that follow */
    ESTIMATED,
    INSTEAD,
    UP,
    DOWN,
    KEPT,
    AGAIN,
    SUMS
};

/* A row belongs to the label of this digest from the first moment. A process that is killed before
 * it has written the label leaves that to the next one that counts there. */
struct slot {
    _Atomic uint64_t digest; /* 0: free */
    atomic_bool labelled;
    _Atomic uint64_t label[LABEL_WORDS];
    _Atomic int64_t sum[SUMS], low, high;
};

struct about {
    atomic_bool begun;
    atomic_bool complete; /* not if the process was killed meanwhile */
    char text[TOTALS_ABOUT_BYTES];
};

struct offered {
    _Atomic int64_t native_mflops, mflops, calls, saved; /* saved: nanoseconds */
};

struct totals {
    uint64_t version; /* VERSION in a table that is complete */
    int32_t maker;    /* its process */
    atomic_bool left; /* by its maker */
    _Atomic int writer;
    _Atomic unsigned facts;
    _Atomic int processes;
    _Atomic int64_t time, dropped;
    /* GPUs that are starting; nanoseconds of all starts, of these less the time of their begin. */
    _Atomic int64_t starts, starting;
    struct offered offered[GPU_PRECISIONS];
    struct slot slot[TOTALS_ROWS];
    struct about about[TOTALS_ABOUTS][2]; /* for people, as JSON */
};

#define VERSION (0x616363656c000300 + sizeof(struct totals))

static struct totals *map(int fd)
{
    void *at = mmap(NULL, sizeof(struct totals), PROT_READ | PROT_WRITE,
                    MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    return at == MAP_FAILED ? NULL : at;
}

static struct totals *make_totals(int fd)
{
    struct totals *totals = map(fd);
    if (totals) {
        totals->maker = getpid();
        totals->version = VERSION;
    }
    return totals;
}

struct totals *totals_make(void)
{
    return make_totals(-1);
}

struct totals *totals_make_in(int fd)
{
    return ftruncate(fd, sizeof(struct totals)) == 0 ? make_totals(fd) : NULL;
}

struct totals *totals_open(const char *path)
{
    struct totals *totals = NULL;
    struct stat st;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size == sizeof(struct totals))
        totals = map(fd);
    close(fd);
    if (totals && totals->version != VERSION) {
        munmap(totals, sizeof *totals);
        return NULL;
    }
    return totals;
}

/* Whether the process has ended, and its parent has not waited for it yet. One whose main thread
 * has ended alone is in the same state, but has other threads. */
static bool is_zombie(pid_t process)
{
    enum { NAME = 2, THREADS = 20 }; /* fields, see proc(5) */
    char path[32], stat[512];
    struct accel_text text;
    text_start(&text, path, sizeof path);
    text_string(&text, "/proc/");
    text_integer(&text, process);
    text_string(&text, "/stat");
    text_end(&text);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    const ssize_t n = file_read(fd, stat, sizeof stat - 1);
    close(fd);
    stat[n > 0 ? n : 0] = 0;
    const char *at = strrchr(stat, ')'); /* the end of the name, which may have any characters */
    if (!at || (strncmp(at, ") Z", 3) != 0 && strncmp(at, ") X", 3) != 0))
        return false;
    for (int field = NAME; at && field < THREADS; field++)
        at = strchr(at + 1, ' ');
    return at && strtol(at, NULL, 10) <= 1;
}

static bool is_gone(pid_t process)
{
    return (kill(process, 0) != 0 && errno == ESRCH) || is_zombie(process);
}

bool totals_is_mine(struct totals *totals)
{
    return totals->maker == getpid() || atomic_load(&totals->left) || is_gone(totals->maker);
}

int totals_maker(const struct totals *totals)
{
    return totals->maker;
}

bool totals_become_writer(struct totals *totals)
{
    int had = atomic_load(&totals->writer);
    return (had == 0 || (had != getpid() && is_gone(had))) &&
           atomic_compare_exchange_strong(&totals->writer, &had, getpid());
}

bool totals_leave_writer(struct totals *totals)
{
    int self = getpid();
    return atomic_compare_exchange_strong(&totals->writer, &self, 0);
}

void totals_know(struct totals *totals, unsigned facts)
{
    if ((atomic_load_explicit(&totals->facts, memory_order_relaxed) & facts) != facts)
        atomic_fetch_or(&totals->facts, facts);
}

void totals_tell(struct totals *totals, int part, bool json, const char *text)
{
    struct about *about = &totals->about[part][json];
    const size_t length = strlen(text);
    if (length >= sizeof about->text || atomic_exchange(&about->begun, true))
        return;
    memcpy(about->text, text, length + 1);
    atomic_store_explicit(&about->complete, true, memory_order_release);
}

const char *totals_told(struct totals *totals, int part, bool json)
{
    struct about *about = &totals->about[part][json];
    return atomic_load_explicit(&about->complete, memory_order_acquire) ? about->text : NULL;
}

/* ---- Its rows ---- */

/* 0 would be a free row. */
static uint64_t digest_of(const void *words, size_t bytes)
{
    return hash_bytes(words, bytes) | UINT64_C(1) << 63;
}

static void write_label(struct slot *slot, const union label *label)
{
    for (int i = 0; i < LABEL_WORDS; i++)
        atomic_store_explicit(&slot->label[i], label->word[i], memory_order_relaxed);
    atomic_store_explicit(&slot->labelled, true, memory_order_release);
}

/* Returns the label's row, NULL: all are taken. */
static struct slot *find_slot(struct totals *totals, const union label *label)
{
    const uint64_t digest = digest_of(label, sizeof *label);
    for (uint64_t i = 0; i < TOTALS_ROWS; i++) {
        struct slot *slot = &totals->slot[(digest + i) % TOTALS_ROWS];
        uint64_t found = atomic_load_explicit(&slot->digest, memory_order_relaxed);
        if (!found && atomic_compare_exchange_strong(&slot->digest, &found, digest))
            found = digest;
        if (found != digest)
            continue;
        if (!atomic_load_explicit(&slot->labelled, memory_order_relaxed))
            write_label(slot, label);
        return slot;
    }
    return NULL;
}

static void add_to_sum(struct slot *slot, enum totals_sum sum, int64_t value)
{
    if (value)
        atomic_fetch_add_explicit(&slot->sum[sum], value, memory_order_relaxed);
}

static int64_t nanoseconds(double ms)
{
    return (int64_t)(ms * 1e6);
}

/* ---- Sizes ---- */

struct size {
    struct accel_fields fields; /* first: the operation has a pointer to it */
    int64_t largest;
};

/* m, n and k of BLAS and LAPACK; vectors, training points and queries of machine learning. */
static void note_size(const struct accel_fields *fields, const char *name, int64_t value)
{
    static const char *const sizes[] = {"m", "n", "k", "l", "train", "test"};
    struct size *size = (struct size *)fields;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (value > size->largest && strcmp(name, sizes[i]) == 0)
            size->largest = value;
}

static void no_string(const struct accel_fields *fields, const char *name, const char *value)
{
    (void)fields;
    (void)name;
    (void)value;
}

static int64_t largest_size(const struct accel_call *call)
{
    struct size size = {{note_size, no_string}, 0};
    if (*call->routine->name)
        accel_describe(call, &size.fields);
    return size.largest;
}

/* A class has sizes from a power of four up to the next. */
static uint8_t size_class(int64_t size)
{
    return size > 0 ? (uint8_t)(1 + (63 - __builtin_clzll((uint64_t)size)) / 2) : 0;
}

static void widen(struct slot *slot, int64_t size)
{
    int64_t low = atomic_load_explicit(&slot->low, memory_order_relaxed), high;
    while ((low == 0 || size < low) && !atomic_compare_exchange_weak(&slot->low, &low, size))
        continue;
    high = atomic_load_explicit(&slot->high, memory_order_relaxed);
    while (size > high && !atomic_compare_exchange_weak(&slot->high, &high, size))
        continue;
}

/* ---- Operands that come again ---- */

static int64_t bytes_again(struct totals_part *part, const struct accel_call *call)
{
    int64_t again = 0;
    for (int i = 0; i < ACCEL_SPANS; i++) {
        const struct accel_span *x = &call->span[i];
        if (!x->ptr || x->access != ACCEL_READ || x->place != ACCEL_HOST || x->array)
            continue;
        const uint64_t shape[] = {(uintptr_t)x->ptr, (uint64_t)x->rows, (uint64_t)x->cols,
                                  (uint64_t)x->ld};
        const uint64_t digest = digest_of(shape, sizeof shape);
        _Atomic uint64_t *seen =
            &part->operand[digest % (sizeof part->operand / sizeof *part->operand)];
        if (atomic_exchange_explicit(seen, digest, memory_order_relaxed) == digest)
            again += accel_bytes(x);
    }
    return again;
}

/* ---- Counting ---- */

static int64_t now(void)
{
    return nanoseconds(accel_now_ms());
}

void totals_starting(struct totals *totals, bool begins)
{
    const int64_t at = now();
    /* A reader in between gets too much, which promises nothing. */
    if (begins)
        atomic_fetch_add(&totals->starts, 1);
    atomic_fetch_add(&totals->starting, begins ? -at : at);
    if (!begins)
        atomic_fetch_sub(&totals->starts, 1);
}

static double read_starting(struct totals *totals, bool take)
{
    const int64_t sum = atomic_load(&totals->starting) + atomic_load(&totals->starts) * now();
    if (take)
        atomic_fetch_sub(&totals->starting, sum);
    return (double)sum * 1e-9;
}

void totals_begin(struct totals_part *part, struct totals *totals)
{
    part->totals = totals;
    atomic_store(&part->joined, false);
    atomic_store(&part->thread, NULL);
    atomic_store(&part->seen, now());
}

static void note_time(struct totals_part *part)
{
    const int64_t until = now(), from = atomic_exchange(&part->seen, until);
    atomic_fetch_add_explicit(&part->totals->time, until - from, memory_order_relaxed);
}

static void note_process(struct totals_part *part)
{
    const void *first = NULL, *const thread = &errno;
    if (!atomic_load_explicit(&part->joined, memory_order_relaxed) &&
        !atomic_exchange(&part->joined, true))
        atomic_fetch_add(&part->totals->processes, 1);
    if (!atomic_compare_exchange_strong(&part->thread, &first, thread) && first != thread)
        totals_know(part->totals, TOTALS_THREADS);
    note_time(part);
}

static union label label_of(const struct accel_record *record, int64_t size)
{
    const char *name = record->call->routine->name;
    union label label = {.word = {0}};
    strncpy(label.is.name, *name ? name : record->symbol, sizeof label.is.name - 1);
    strncpy(label.is.ran, record->ran, sizeof label.is.ran - 1);
    label.is.why = (uint8_t)record->why;
    label.is.inner = record->depth > 0;
    label.is.class = size_class(size);
    return label;
}

static void add_times(struct slot *slot, const struct accel_record *record)
{
    const bool on_cpu = strcmp(record->ran, "cpu") == 0;
    const double instead = on_cpu ? record->decision.est_gpu_ms : record->decision.est_cpu_ms;
    if (record->ms < 0) {
        add_to_sum(slot, UNTIMED, 1);
        return;
    }
    add_to_sum(slot, TIME, nanoseconds(record->ms));
    if (instead > 0) {
        add_to_sum(slot, ESTIMATED, nanoseconds(record->ms));
        add_to_sum(slot, INSTEAD, nanoseconds(instead));
    }
}

/* Counts what a call would have gained in the precision that is offered: where both the estimate
 * and the measured time say so. */
static void add_offer(struct totals *totals, const struct accel_record *record)
{
    const struct accel_offer *offer = &record->offer;
    const bool on_gpu = strcmp(record->ran, "cpu") != 0;
    struct offered *sum = &totals->offered[offer->precision];
    double saved = record->ms - offer->est_gpu_ms;
    if (on_gpu && record->decision.est_own_ms < record->ms)
        saved = record->decision.est_own_ms - offer->est_gpu_ms;
    if (offer->precision == GPU_NATIVE || (!on_gpu && record->why != ACCEL_SLOWER) ||
        record->ms < 0 || !(saved > 0))
        return;
    atomic_store_explicit(&sum->native_mflops, (int64_t)(offer->native_gflops * 1e3),
                          memory_order_relaxed);
    atomic_store_explicit(&sum->mflops, (int64_t)(offer->gflops * 1e3), memory_order_relaxed);
    atomic_fetch_add_explicit(&sum->calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&sum->saved, nanoseconds(saved), memory_order_relaxed);
}

void totals_add(struct totals_part *part, const struct accel_record *record)
{
    const int64_t size = largest_size(record->call);
    const union label label = label_of(record, size);
    struct slot *slot = find_slot(part->totals, &label);
    note_process(part);
    add_offer(part->totals, record);
    if (!slot) {
        atomic_fetch_add(&part->totals->dropped, 1);
        return;
    }
    add_to_sum(slot, CALLS, 1);
    add_times(slot, record);
    add_to_sum(slot, UP, record->up_bytes);
    add_to_sum(slot, DOWN, record->down_bytes);
    add_to_sum(slot, KEPT, record->kept_bytes);
    if (record->up_bytes > 0)
        add_to_sum(slot, AGAIN, accel_min(bytes_again(part, record->call), record->up_bytes));
    if (size > 0)
        widen(slot, size);
}

void totals_end(struct totals_part *part)
{
    if (atomic_load(&part->joined))
        note_time(part);
    if (part->totals->maker == getpid())
        atomic_store(&part->totals->left, true);
}

/* ---- Reading ---- */

static int64_t get(_Atomic int64_t *sum, bool take)
{
    return take ? atomic_exchange(sum, 0) : atomic_load(sum);
}

bool totals_read(struct totals *totals, int i, bool take, struct totals_row *row)
{
    struct slot *slot = &totals->slot[i];
    union label label;
    int64_t sum[SUMS];
    if (!atomic_load(&slot->digest) ||
        !atomic_load_explicit(&slot->labelled, memory_order_acquire) ||
        atomic_load(&slot->sum[CALLS]) <= 0)
        return false;
    for (int w = 0; w < LABEL_WORDS; w++)
        label.word[w] = atomic_load_explicit(&slot->label[w], memory_order_relaxed);
    for (int s = 0; s < SUMS; s++)
        sum[s] = get(&slot->sum[s], take);
    *row = (struct totals_row){.why = label.is.why < ACCEL_WHYS ? label.is.why : ACCEL_ERROR,
                               .inner = label.is.inner,
                               .low = get(&slot->low, take),
                               .high = get(&slot->high, take),
                               .calls = sum[CALLS],
                               .untimed = sum[UNTIMED],
                               .seconds = (double)sum[TIME] * 1e-9,
                               .estimated = (double)sum[ESTIMATED] * 1e-9,
                               .instead = (double)sum[INSTEAD] * 1e-9,
                               .up = sum[UP],
                               .down = sum[DOWN],
                               .kept = sum[KEPT],
                               .again = sum[AGAIN]};
    memcpy(row->name, label.is.name, sizeof row->name - 1);
    memcpy(row->ran, label.is.ran, sizeof row->ran - 1);
    return true;
}

struct totals_sums totals_read_sums(struct totals *totals, bool take)
{
    struct totals_sums sums = {.facts = atomic_load(&totals->facts),
                               .processes = take ? atomic_exchange(&totals->processes, 0)
                                                 : atomic_load(&totals->processes),
                               .seconds = (double)get(&totals->time, take) * 1e-9,
                               .starting = read_starting(totals, take),
                               .dropped = get(&totals->dropped, take)};
    for (int i = 0; i < GPU_PRECISIONS; i++) {
        struct offered *offered = &totals->offered[i];
        sums.precision[i] = (struct totals_precision){
            .native_gflops = (double)atomic_load(&offered->native_mflops) * 1e-3,
            .gflops = (double)atomic_load(&offered->mflops) * 1e-3,
            .calls = get(&offered->calls, take),
            .saved = (double)get(&offered->saved, take) * 1e-9};
    }
    return sums;
}
