/*
 * The entry points: data that the assembler (entries.inc, and each architecture's entry.S and
 * invoke.S) and the C side share.
 *
 * Every exported name jumps to its slot. The slot leads to one of
 *   the original        if nothing can pay: registers and stack are as the caller left them
 *   the by-caller stub  the same if callers have different originals: finds it by return address
 *   the gate            jumps to the slow stub if a size is at or above accel_gate, or a matrix of
 *                       Level 2 has ACCEL_LEAST_CACHED_BYTES, else to `forward`
 *   the slow stub       saves the argument registers and calls accel_enter()
 *
 * Bound entries are the same for function pointers that dlsym() hands out: a pool of identical
 * stubs; the routine and the original of one are set when it is handed out.
 *
 * shim/ has the exported names: in shim/arch/ their entries, for each architecture; in shim/elf/
 * the search for the caller's original. It includes dispatch/, ops/, base/ and headers of gpu/.
 */
#ifndef ACCEL_ENTRY_H
#define ACCEL_ENTRY_H

#define ACCEL_BOUND_ENTRIES 3584

#define ACCEL_ENTRIES_MAX 8192 /* exported and bound; a site's key has 16 bits for the number */

/* Code layout of a bound entry, in bytes. */
#define ACCEL_BOUND_BLOCK 64
#define ACCEL_BOUND_SLOW  16
#define ACCEL_BOUND_GATE  32

/* Bytes from one exported entry's slow stub to the next. */
#define ACCEL_SLOW_SIZE 16

/* struct accel_slots */
#define ACCEL_SLOT_ENTER   0
#define ACCEL_SLOT_FORWARD 8
#define ACCEL_SLOT_SLOW    16
#define ACCEL_SLOT_COMPARE 24
#define ACCEL_SLOTS_SIZE   32

/* The call-site table that the by-caller stubs read. A call's place is the upper ACCEL_SITE_BITS of
 * the 32-bit product of its return address and ACCEL_SITE_HASH, plus an offset of its entry,
 * because one return address may call many entries. A stub looks at this place and the next. */
#define ACCEL_SITE_BITS          14
#define ACCEL_SITE_HASH          0x9e3779b1 /* 2^32 / the golden ratio: regular distances spread */
#define ACCEL_SITE_OFFSETS       0x2000     /* a power of two */
#define ACCEL_SITE_OFFSET(entry) (((entry)*9) & (ACCEL_SITE_OFFSETS - 1))
#define ACCEL_SITES              ((1 << ACCEL_SITE_BITS) + ACCEL_SITE_OFFSETS)
/* User addresses are below 2^47 on x86-64, below 2^48 on AArch64
 * (Documentation/arch/arm64/memory.rst of Linux) unless a program asks for others. */
#define ACCEL_SITE_ENTRY_SHIFT 48

/* GPU_LEAST_CACHED_BYTES of gpu/device/gpu.h */
#define ACCEL_LEAST_CACHED_BYTES 0x100000

/* struct accel_passed */
#define ACCEL_PASSED_GPR         0
#define ACCEL_PASSED_FPR         8
#define ACCEL_PASSED_STACK       16
#define ACCEL_PASSED_STACK_WORDS 24
#define ACCEL_PASSED_X8          32

/* struct accel_dlsym_answer */
#define ACCEL_DLSYM_FOUND 0
#define ACCEL_DLSYM_REAL  1
#define ACCEL_DLSYM_NEXT  2

#ifndef __ASSEMBLER__

#    include <stdatomic.h>
#    include <stddef.h>
#    include <stdint.h>
#    include <string.h>

#    include "call/passing.h"

#    ifdef __aarch64__
#        include "frame_aarch64.h"
#    else
#        include "frame_x86_64.h"
#    endif

/* Of a bound entry. slots.c writes them under its lock; the stubs read them without one. */
struct accel_slots {
    _Atomic(void *) enter;   /* target of the entry's jump */
    _Atomic(void *) forward; /* the original */
    _Atomic(void *) slow;    /* its slow stub */
    _Atomic(void *) compare; /* the compare part of the routine's gate */
};

_Static_assert(offsetof(struct accel_passed, gpr) == ACCEL_PASSED_GPR &&
                   offsetof(struct accel_passed, fpr) == ACCEL_PASSED_FPR &&
                   offsetof(struct accel_passed, stack) == ACCEL_PASSED_STACK &&
                   offsetof(struct accel_passed, stack_words) == ACCEL_PASSED_STACK_WORDS &&
                   offsetof(struct accel_passed, x8) == ACCEL_PASSED_X8,
               "layout of arguments: invoke.S");
_Static_assert(offsetof(struct accel_result, fpr) == 16, "layout of results: invoke.S");
_Static_assert(offsetof(struct accel_slots, forward) == ACCEL_SLOT_FORWARD, "slot layout");
_Static_assert(offsetof(struct accel_slots, slow) == ACCEL_SLOT_SLOW, "slot layout");
_Static_assert(offsetof(struct accel_slots, compare) == ACCEL_SLOT_COMPARE, "slot layout");
_Static_assert(sizeof(struct accel_slots) == ACCEL_SLOTS_SIZE, "slot layout");

/* The same two slots for exported entries, in the order of the routine table, then of the
 * manglings. `enter` leads to the slow stub as soon as the library is relocated. */
extern _Atomic(void *) accel_slot_enter[], accel_slot_forward[];
extern struct accel_slots accel_bound_slots[ACCEL_BOUND_ENTRIES];
/* For each exported name that is not BLAS's: 1 + the offset of the int that its gate reads
 * (op->foreign->count_at); 0: not known yet, UINT32_MAX: its gate is not used. Set once, before the
 * entry leads to the gate. */
extern _Atomic uint32_t accel_count_at[];
extern const char accel_blocks[];       /* code of the exported entries */
extern const char accel_slow_blocks[];  /* their slow stubs */
extern const char accel_bound_blocks[]; /* code of the bound entries */
extern const uint32_t accel_entry_count;

/* The parts of an exported entry: offsets from accel_blocks. */
extern const struct accel_entry_code {
    uint32_t gate, compare, bycaller, bycaller_gate;
} accel_code[];

/* A power of two, 0 or UINT64_MAX. A size at or above it goes to the slow stub. The comparison is
 * unsigned, so negative sizes do, too. */
extern _Atomic uint64_t accel_gate;

/* key = return address + (entry << ACCEL_SITE_ENTRY_SHIFT); 0: free. A writer clears the key,
 * writes the target, then the key; the stub reads the key, the target, and the key again. */
extern _Atomic uint64_t accel_site_key[ACCEL_SITES];
extern _Atomic(void *) accel_site_target[ACCEL_SITES];

/* To which the exported dlsym jumps: the C library's; and the next one behind libaccel's, which is
 * another preload's if there is one. */
extern _Atomic(void *) accel_real_dlsym, accel_next_dlsym;

/* Called by the slow stubs. Returns the address to jump to, with registers and stack as the caller
 * left them; NULL if the call has been done: then accel_frame_return() has put its result into the
 * frame. */
void *accel_enter(uint32_t entry, struct accel_frame *frame);

struct accel_dlsym_answer {
    uint64_t who;  /* ACCEL_DLSYM_FOUND: we answer; _REAL, _NEXT: that one answers */
    void *address; /* the answer, or the name that is looked up */
};

/* Called by the exported dlsym. */
struct accel_dlsym_answer accel_dlsym_hook(void *handle, const char *name, uintptr_t ret);

/* Calls fn with these arguments; returns the registers that carry results. */
struct accel_result accel_invoke(void *fn, const struct accel_passed *passed);

#endif
#endif
