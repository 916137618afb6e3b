#define _GNU_SOURCE
#include "cpu.h"

#include <sched.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __aarch64__

#    include <fcntl.h>
#    include <sys/auxv.h>
#    include <unistd.h>

#    include "base/file/file.h"
#    include "base/text/text.h"

/* Part numbers of designs by Arm Limited (implementer 0x41), from their technical reference
 * manuals, MIDR_EL1. */
static const struct design {
    unsigned part;
    const char *name;
} designs[] = {{0xd0c, "Neoverse-N1"}, {0xd40, "Neoverse-V1"}, {0xd42, "Cortex-A78AE"},
               {0xd49, "Neoverse-N2"}, {0xd4f, "Neoverse-V2"}, {0xd85, "Cortex-X925"}};

static const char hex[] = "0123456789abcdef";

static bool read_hex(const char *text, uint64_t *number)
{
    *number = 0;
    if (strncmp(text, "0x", 2) != 0)
        return false;
    for (const char *at = text + 2; *at && *at != '\n'; at++) {
        const char *digit = strchr(hex, *at);
        if (!digit)
            return false;
        *number = *number << 4 | (uint64_t)(digit - hex);
    }
    return true;
}

static void put_hex(struct accel_text *text, unsigned number)
{
    text_string(text, "0x");
    for (int shift = 8; shift >= 0; shift -= 4)
        text_char(text, hex[number >> shift & 0xf]);
}

/* Reads the first processor's MIDR_EL1, also where processors differ:
 * Documentation/arch/arm64/cpu-feature-registers.rst of Linux. The thread's own, which the same
 * document lets programs read, is for systems without that file. */
static bool find_midr(uint64_t *midr)
{
    char text[32] = "";
    const int fd =
        open("/sys/devices/system/cpu/cpu0/regs/identification/midr_el1", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd >= 0 ? file_read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0)
        close(fd);
    if (length > 0 && read_hex(text, midr))
        return true;
    const bool readable = getauxval(AT_HWCAP) & HWCAP_CPUID;
    if (readable)
        __asm__("mrs %0, midr_el1" : "=r"(*midr));
    return readable;
}

void cpu_name(char name[CPU_NAME_BYTES])
{
    struct accel_text text;
    uint64_t midr;
    text_start(&text, name, CPU_NAME_BYTES);
    if (!find_midr(&midr)) {
        text_string(&text, "unknown");
        text_end(&text);
        return;
    }
    const unsigned implementer = midr >> 24 & 0xff, variant = midr >> 20 & 0xf,
                   part = midr >> 4 & 0xfff, revision = midr & 0xf;
    const char *design = NULL;
    for (size_t i = 0; implementer == 0x41 && i < sizeof designs / sizeof *designs; i++)
        if (designs[i].part == part)
            design = designs[i].name;
    text_string(&text, design ? design : "implementer ");
    if (!design) {
        put_hex(&text, implementer);
        text_string(&text, " part ");
        put_hex(&text, part);
    }
    text_string(&text, " r");
    text_integer(&text, variant);
    text_string(&text, "p");
    text_integer(&text, revision);
    text_end(&text);
}

bool cpu_is_amd(void)
{
    return false;
}

#else

#    include <cpuid.h>

void cpu_name(char name[CPU_NAME_BYTES])
{
    unsigned brand[13] = {0};
    bool known = true;
    for (unsigned i = 0; known && i < 3; i++)
        known = __get_cpuid(0x80000002 + i, &brand[4 * i], &brand[4 * i + 1], &brand[4 * i + 2],
                            &brand[4 * i + 3]);
    const char *first = (const char *)brand;
    while (*first == ' ')
        first++;
    size_t length = strlen(first);
    while (length > 0 && first[length - 1] == ' ')
        length--;
    if (!known) {
        first = "unknown";
        length = strlen(first);
    }
    memcpy(name, first, length);
    name[length] = 0;
}

bool cpu_is_amd(void)
{
    enum { UNKNOWN, NO, YES };
    static atomic_int known; /* CPUID takes some microseconds on a virtual machine */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == UNKNOWN) {
        char maker[12] = "";
        unsigned most, part[3] = {0};
        if (__get_cpuid(0, &most, &part[0], &part[2], &part[1]))
            memcpy(maker, part, sizeof maker);
        answer = memcmp(maker, "AuthenticAMD", sizeof maker) == 0 ||
                         memcmp(maker, "HygonGenuine", sizeof maker) == 0
                     ? YES
                     : NO;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == YES;
}

#endif

int cpu_usable(void)
{
    cpu_set_t set[8];
    if (sched_getaffinity(0, sizeof set, set) != 0)
        return 1;
    const int count = CPU_COUNT_S(sizeof set, set);
    return count > 0 ? count : 1;
}
