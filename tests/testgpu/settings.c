/*
 * What the environment asks for. A value that cannot be read ends the program: a test that runs
 * with other settings than it believes proves nothing.
 *
 *   TESTGPU_DEVICES     how many, default 1; CUDA_VISIBLE_DEVICES chooses among them by number
 *   TESTGPU_MEMORY      bytes,...: of device 0, 1, ..., with K, M or G; default 1G
 *   TESTGPU_NAME        name,...: of device 0, 1, ..., default "Test GPU"
 *   TESTGPU_ATTRIBUTES  NUMBER=VALUE[/VALUE...],...: what cuDeviceGetAttribute() answers of these,
 *                       rather than what an H100 has; the numbers are cuda.h's, the values of
 *                       device 0, 1, ...: the last one holds for all further devices, too
 *   TESTGPU_CUBLAS_MINOR  1 to 99: the minor version of cuBLAS, and what that version can do
 *   TESTGPU_MODES       MODE,...: of device 0, 1, ...: default; exclusive; taken (exclusive, and
 *                       another process has it); prohibited; failing; full (there is no memory for
 *                       a context)
 *   TESTGPU_TAKEN       bytes,...: of device 0, 1, ..., the memory that other processes have
 *   TESTGPU_THREADS     the most threads in a block of a kernel of gpu/own/, up to 1024; default 16
 *   TESTGPU_DELAY_US    each copy and kernel starts up to so much later, default 200; 0: at once
 *   TESTGPU_WAKE_US     each wait for the device returns up to so much later, default 0
 *   TESTGPU_SEED        of the delays; the report says which was used
 *   TESTGPU_FAIL        FUNCTION:N[+][=CODE],...: the N-th call (+: and all after it) fails; *:N
 *                       counts all calls, async:N copies and kernels as they run
 *   TESTGPU_WRONG       [ROUTINE:]N[+]: the N-th kernel that runs, of whatever kind or of that
 *                       routine (gemm, gesvdp), has 1 added to one element of its result. A kernel
 *                       of gpu/own/ counts if it is named: what its last argument points to is a
 *                       double
 *   TESTGPU_REPORT      a path, %p is the process id: the report at exit is appended
 *   TESTGPU_TRACE       a path: a line for every call, and for every operation that runs
 *   TESTGPU_EXIT_EARLY  1: the driver is gone when exit() begins, not with its own destructor
 *
 * How fast the device is; without these, as fast as the machine. What is computed and copied counts
 * into the time; the rest is waited. Kernels, copies up and copies down each have an engine of the
 * device, whatever their stream. The report has a line with what each engine's operations lasted.
 *
 * Of TESTGPU_MEMORY, _NAME, _UP_GBPS, _DOWN_GBPS and _GFLOPS the last value holds for all further
 * devices, too.
 *
 *   TESTGPU_UP_GBPS     rate,...: of device 0, 1, ..., 10^9 bytes a second from the host to the
 *                       device; default 0: at once
 *   TESTGPU_DOWN_GBPS   and back
 *   TESTGPU_LAUNCH_US   each kernel, copy and fill lasts so much longer than the rates make it, a
 *                       routine of cuSOLVER for each kernel of its chain, a transform for each of
 *                       its dimensions; default 0
 *   TESTGPU_PEER_GBPS   10^9 bytes a second from one device to another that may use its memory; 0:
 *                       at once. Without it, no device can reach another one's memory.
 *                       TESTGPU_ATTRIBUTES=115=0: there are no memory pools
 *   TESTGPU_GFLOPS      rate,...: of device 0, 1, ..., 10^9 operations a second on real numbers of
 *                       double precision, twice as many on those of single precision. A
 *                       multiplication and an addition of complex numbers have 8. Device memory
 *                       moves a byte in the time of 4 operations: a kernel lasts as the slower of
 *                       both makes it, and what only moves (Level 2, geam, copies and fills inside
 *                       the device) by its bytes. A transform of n points has 5 n log2(n)
 *                       operations, of real ones half as many, and moves its input and its output
 *                       once for each dimension. Default 0: as fast as the machine
 *   TESTGPU_HALF        a kernel whose smallest size is s computes at s / (s + HALF) of the rate;
 *                       default 256
 *   TESTGPU_BUSY        0 to 95: percent of the device's time that others have. What kernels last
 *                       is divided by what is left, and each waits for up to as many hundredths of
 *                       a millisecond
 *   TESTGPU_START_MS    what a process's start takes: a tenth the first cuInit, the rest the first
 *                       context; default 0
 *   TESTGPU_START_FILE  a path: the first context is not there before this file is
 *   TESTGPU_LOAD_MS     what loading each of the four libraries takes; default 0
 *   TESTGPU_MEMORY_US   what each call takes that takes device memory, pinned memory or managed
 *                       memory, or gives it back; default 0
 *   TESTGPU_PIN_MS      what pinning 10^9 bytes of host memory takes besides, at an allocation or a
 *                       registration; default 0
 *   TESTGPU_INFO_US     what each cuMemGetInfo takes; default 0. The report has a line with the
 *                       sums of these three
 *   TESTGPU_FIRST_MS    what the first call of each function of cuBLAS, cuSOLVER and cuFFT takes
 *                       that puts a kernel on a stream, or makes a handle; default 0
 *   TESTGPU_HELPER      a path: each call of cuBLAS, cuSOLVER and cuFFT that puts a kernel on a
 *                       stream, or makes a handle, opens this library and closes it
 *   TESTGPU_DATA        0: kernels compute nothing but what tells of success, and copies and fills
 *                       of more than 256 KiB move nothing, between devices both ends alone, for
 *                       sizes that the machine has no time or memory for. Device and pinned memory
 *                       is then zero at first; there is no image of kernels. Default 1
 *   TESTGPU_PAGEABLE    1: copies of host memory that is not pinned are slower, and none is
 *                       asynchronous. 2: they are as copies of pinned memory. Default 0: as 1, and
 *                       asynchronous copies of such memory are a misuse
 *   TESTGPU_SCALES      1: cuBLAS's products scale their result where alpha or k is 0, as in BLAS.
 *                       Its documentation does not say so. Default 0: they leave it as it is
 *   TESTGPU_LAST_PIVOT  Default 1: potrf of a lower triangle says something else of some pivots
 *                       that fail, those whose number is a multiple of 64, in complex double
 *                       precision of 32: INFO is one more, and 0 of the last pivot, which is no
 *                       number then (as an H100 does with CUDA 13.0: docs/measurements). 2: sygvd,
 *                       too, says INFO = 0 of the last pivot, and its eigenvalues are no numbers
 *                       (an H100's says some other INFO); 3: that its last pivot is no number,
 *                       alone. 0: none of this
 *   TESTGPU_ORDER       0: memory that operations of two streams use in no order (order.c) is no
 *                       misuse, nor that a copy's source in pinned memory is written before the
 *                       copy runs, and its target there keeps its contents till then. Default 1
 *
 * The rates, TESTGPU_LAUNCH_US, _MEMORY_US, _PIN_MS and _INFO_US may have a decimal point.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "driver.h"

struct settings settings;

static void refuse(const char *name, const char *text)
{
    fprintf(stderr, "testgpu: cannot read %s=%s\n", name, text);
    abort();
}

static unsigned long long number_in(const char *name, const char *text, bool suffix)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    int shift = 0;
    if (suffix && *end != '\0') {
        const char *units = "KMG";
        const char *unit = strchr(units, *end);
        if (unit != NULL) {
            shift = 10 * (int)(unit - units + 1);
            end++;
        }
    }
    if (end == text || *end != '\0' || errno != 0 || *text == '-')
        refuse(name, text);
    return value << shift;
}

static unsigned long long number(const char *name, unsigned long long otherwise, bool suffix)
{
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? otherwise : number_in(name, text, suffix);
}

static unsigned number_up_to(const char *name, unsigned otherwise, unsigned most)
{
    unsigned long long value = number(name, otherwise, false);
    if (value > most)
        refuse(name, getenv(name));
    return (unsigned)value;
}

/* Read by hand: what a decimal point is to strtod is the program's choice. */
static double decimal_in(const char *name, const char *text)
{
    double value = 0, unit = 1;
    bool digits = false, point = false;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at == '.' && !point) {
            point = true;
        } else if (*at >= '0' && *at <= '9') {
            digits = true;
            value = 10 * value + (*at - '0');
            unit *= point ? 10 : 1;
        } else {
            refuse(name, text);
        }
    }
    value /= unit;
    if (!digits || !(value <= 1e9))
        refuse(name, text);
    return value;
}

static double decimal(const char *name)
{
    const char *text = getenv(name);
    return text == NULL || *text == '\0' ? 0 : decimal_in(name, text);
}

static const char *path_setting(const char *name)
{
    const char *text = getenv(name);
    return text != NULL && *text != '\0' ? strdup(text) : NULL;
}

/* What a setting says of one device. */
typedef void card_reader(struct card *card, const char *name, const char *word);

static void read_memory(struct card *card, const char *name, const char *word)
{
    card->memory = number_in(name, word, true);
}

static void read_taken(struct card *card, const char *name, const char *word)
{
    card->taken = number_in(name, word, true);
    if (card->taken > card->memory)
        refuse(name, word);
}

static void read_name(struct card *card, const char *name, const char *word)
{
    if (strlen(word) >= sizeof card->name)
        refuse(name, word);
    strcpy(card->name, word);
}

static void read_up(struct card *card, const char *name, const char *word)
{
    card->up_gbps = decimal_in(name, word);
}

static void read_down(struct card *card, const char *name, const char *word)
{
    card->down_gbps = decimal_in(name, word);
}

static void read_gflops(struct card *card, const char *name, const char *word)
{
    card->gflops = decimal_in(name, word);
}

static void read_mode(struct card *card, const char *name, const char *word)
{
    static const char *const names[] = {"default",    "exclusive", "taken",
                                        "prohibited", "failing",   "full"};
    int mode = 0;
    while (mode < MODES && strcmp(names[mode], word) != 0)
        mode++;
    if (mode == MODES)
        refuse(name, word);
    card->mode = (enum device_mode)mode;
}

/* VALUE,...: of each device in turn. last: of all further ones, too. */
static void read_cards(const char *name, const char *otherwise, card_reader *read, bool last)
{
    const char *text = getenv(name);
    char *copy = strdup(text != NULL && *text != '\0' ? text : otherwise), *rest = NULL;
    const char *word = strtok_r(copy, ",", &rest);
    for (int i = 0; i < DEVICES_MAX && word != NULL; i++) {
        read(&settings.card[i], name, word);
        const char *next = strtok_r(NULL, ",", &rest);
        if (next != NULL && i == DEVICES_MAX - 1)
            refuse(name, text);
        word = next != NULL || !last ? next : word;
    }
    free(copy);
}

static void read_all_cards(void)
{
    read_cards("TESTGPU_MEMORY", "1G", read_memory, true);
    read_cards("TESTGPU_TAKEN", "", read_taken, false);
    read_cards("TESTGPU_NAME", "Test GPU", read_name, true);
    read_cards("TESTGPU_UP_GBPS", "0", read_up, true);
    read_cards("TESTGPU_DOWN_GBPS", "0", read_down, true);
    read_cards("TESTGPU_GFLOPS", "0", read_gflops, true);
    read_cards("TESTGPU_MODES", "", read_mode, false);
}

/* NUMBER=VALUE[/VALUE...],... */
static void read_attributes(void)
{
    const char *text = getenv("TESTGPU_ATTRIBUTES");
    const char *at = text != NULL ? text : "";
    while (*at != '\0') {
        char *end;
        struct attribute_setting *one = &settings.attribute[settings.attributes];
        one->which = (int)strtol(at, &end, 10);
        if (end == at || *end != '=' || settings.attributes++ == ATTRIBUTES_MAX)
            refuse("TESTGPU_ATTRIBUTES", text);
        do {
            at = end + 1;
            one->value[one->values++] = (int)strtol(at, &end, 10);
        } while (*end == '/' && end != at && one->values < DEVICES_MAX);
        if (end == at || (*end != ',' && *end != '\0'))
            refuse("TESTGPU_ATTRIBUTES", text);
        at = *end == ',' ? end + 1 : end;
    }
}

void settings_read(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    settings.devices = (int)number("TESTGPU_DEVICES", 1, false);
    if (settings.devices > DEVICES_MAX)
        settings.devices = DEVICES_MAX;
    settings.delay_us = (unsigned)number("TESTGPU_DELAY_US", 200, false);
    settings.wake_us = (unsigned)number_up_to("TESTGPU_WAKE_US", 0, 1u << 30);
    settings.seed =
        number("TESTGPU_SEED", (unsigned long long)now.tv_nsec ^ (unsigned)getpid(), false);
    settings.launch_us = decimal("TESTGPU_LAUNCH_US");
    settings.memory_us = decimal("TESTGPU_MEMORY_US");
    settings.pin_ms = decimal("TESTGPU_PIN_MS");
    settings.info_us = decimal("TESTGPU_INFO_US");
    settings.half = number_up_to("TESTGPU_HALF", 256, 1u << 30);
    settings.busy = number_up_to("TESTGPU_BUSY", 0, 95);
    settings.threads = number_up_to("TESTGPU_THREADS", 16, 1024);
    settings.start_ms = number_up_to("TESTGPU_START_MS", 0, 1u << 30);
    settings.start_file = path_setting("TESTGPU_START_FILE");
    settings.load_ms = number_up_to("TESTGPU_LOAD_MS", 0, 1u << 30);
    settings.helper = path_setting("TESTGPU_HELPER");
    settings.first_ms = number_up_to("TESTGPU_FIRST_MS", 0, 1u << 30);
    settings.data = number_up_to("TESTGPU_DATA", 1, 1) != 0;
    settings.pageable =
        (enum pageable)number_up_to("TESTGPU_PAGEABLE", PAGEABLE_MISUSED, PAGEABLE_UNTOLD);
    settings.scales = number_up_to("TESTGPU_SCALES", 0, 1) != 0;
    settings.last_pivot = number_up_to("TESTGPU_LAST_PIVOT", 1, 3);
    settings.order = number_up_to("TESTGPU_ORDER", 1, 1) != 0;
    settings.early_end = number("TESTGPU_EXIT_EARLY", 0, false) != 0;
    settings.cublas_minor = (int)number_up_to("TESTGPU_CUBLAS_MINOR", 0, 99);
    const char *peers = getenv("TESTGPU_PEER_GBPS");
    settings.peers = peers != NULL && *peers != '\0';
    settings.peer_gbps = decimal("TESTGPU_PEER_GBPS");
    read_attributes();
    read_all_cards();
    settings.report = path_setting("TESTGPU_REPORT");
    settings.trace = path_setting("TESTGPU_TRACE");
}

void settings_path(const char *pattern, char *path, size_t size)
{
    const char *mark = strstr(pattern, "%p");
    if (mark == NULL)
        snprintf(path, size, "%s", pattern);
    else
        snprintf(path, size, "%.*s%d%s", (int)(mark - pattern), pattern, (int)getpid(), mark + 2);
}

/* xorshift64* */
uint64_t random_next(uint64_t *state)
{
    uint64_t x = *state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    *state = x;
    return x * 0x2545f4914f6cdd1dull;
}

void random_pause(uint64_t *state, unsigned longest_us)
{
    if (longest_us == 0)
        return;
    long ns = (long)((random_next(state) >> 16) % ((uint64_t)longest_us * 1000 + 1));
    struct timespec pause = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
    nanosleep(&pause, NULL);
}

/* The calling thread's generator. */
static uint64_t *thread_random(void)
{
    static _Thread_local uint64_t state;
    if (state == 0)
        state = settings.seed * 2 + (uintptr_t)&state + 1;
    return &state;
}

void testgpu_linger(void)
{
    if (settings.delay_us != 0 && random_next(thread_random()) % 4 == 0) {
        struct timespec pause = {.tv_nsec = 1000};
        nanosleep(&pause, NULL);
    }
}

void random_delay(void)
{
    random_pause(thread_random(), settings.delay_us);
}

void wake_up_late(void)
{
    if (settings.wake_us == 0)
        return;
    testgpu_unlock();
    random_pause(thread_random(), settings.wake_us);
    testgpu_lock();
}
