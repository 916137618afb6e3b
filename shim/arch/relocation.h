/*
 * The kinds of relocations that name a symbol and are no calls, by the ABIs' numbers (<elf.h>):
 * https://gitlab.com/x86-psABIs/x86-64-ABI, section 4.4; https://github.com/ARM-software/abi-aa,
 * aaelf64, "Relocation".
 */
#ifndef ACCEL_RELOCATION_H
#define ACCEL_RELOCATION_H

#include <elf.h>
#include <stdbool.h>
#include <stdint.h>

enum accel_relocation {
    ACCEL_RELOCATION_OTHER,
    ACCEL_RELOCATION_ADDRESS,    /* a place gets the symbol's address */
    ACCEL_RELOCATION_COPY,       /* a place gets the variable's bytes */
    ACCEL_RELOCATION_TLS_MODULE, /* a place gets the number of the object that has the variable */
    ACCEL_RELOCATION_TLS_OFFSET, /* its offset in that object's block */
    ACCEL_RELOCATION_TLS_POINT,  /* its offset from the thread pointer */
    ACCEL_RELOCATION_TLS_PAIR,   /* the second word after a function that returns it */
};

static inline bool accel_relocation_is_tls(enum accel_relocation kind)
{
    return kind >= ACCEL_RELOCATION_TLS_MODULE;
}

#ifdef __aarch64__

static inline uintptr_t accel_thread_pointer(void)
{
    uintptr_t pointer;
    __asm__("mrs %0, tpidr_el0" : "=r"(pointer));
    return pointer;
}

static inline bool accel_relocation_is_call(uint32_t type)
{
    return type == R_AARCH64_JUMP_SLOT;
}

static inline bool accel_relocation_is_address(uint32_t type)
{
    return type == R_AARCH64_GLOB_DAT || type == R_AARCH64_ABS64;
}

static inline enum accel_relocation accel_relocation_of(uint32_t type)
{
    if (accel_relocation_is_address(type))
        return ACCEL_RELOCATION_ADDRESS;
    switch (type) {
    case R_AARCH64_COPY:
        return ACCEL_RELOCATION_COPY;
    case R_AARCH64_TLS_DTPMOD:
        return ACCEL_RELOCATION_TLS_MODULE;
    case R_AARCH64_TLS_DTPREL:
        return ACCEL_RELOCATION_TLS_OFFSET;
    case R_AARCH64_TLS_TPREL:
        return ACCEL_RELOCATION_TLS_POINT;
    case R_AARCH64_TLSDESC:
        return ACCEL_RELOCATION_TLS_PAIR;
    }
    return ACCEL_RELOCATION_OTHER;
}

#else

static inline uintptr_t accel_thread_pointer(void)
{
    uintptr_t pointer;
    __asm__("mov %%fs:0, %0" : "=r"(pointer));
    return pointer;
}

static inline bool accel_relocation_is_call(uint32_t type)
{
    return type == R_X86_64_JUMP_SLOT;
}

static inline bool accel_relocation_is_address(uint32_t type)
{
    return type == R_X86_64_64 || type == R_X86_64_GLOB_DAT;
}

static inline enum accel_relocation accel_relocation_of(uint32_t type)
{
    if (accel_relocation_is_address(type))
        return ACCEL_RELOCATION_ADDRESS;
    switch (type) {
    case R_X86_64_COPY:
        return ACCEL_RELOCATION_COPY;
    case R_X86_64_DTPMOD64:
        return ACCEL_RELOCATION_TLS_MODULE;
    case R_X86_64_DTPOFF64:
        return ACCEL_RELOCATION_TLS_OFFSET;
    case R_X86_64_TPOFF64:
        return ACCEL_RELOCATION_TLS_POINT;
    case R_X86_64_TLSDESC:
        return ACCEL_RELOCATION_TLS_PAIR;
    }
    return ACCEL_RELOCATION_OTHER;
}

#endif
#endif
