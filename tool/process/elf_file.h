/*
 * What an executable or a library says of itself: how it is linked, which names of BLAS and LAPACK
 * it defines, and whether it needs AddressSanitizer's shared runtime. (System V gABI, chapter 4.)
 */
#ifndef ACCEL_TOOL_ELF_FILE_H
#define ACCEL_TOOL_ELF_FILE_H

#include <stdbool.h>

enum elf_kind {
    ELF_UNKNOWN,
    ELF_SCRIPT, /* begins with "#!" */
    ELF_OTHER,  /* a dynamic linker could not load libaccel into it: see enum elf_other */
    ELF_STATIC, /* the dynamic linker has no part in it */
    ELF_DYNAMIC
};

enum elf_other { ELF_MACHINE, ELF_32_BITS, ELF_MUSL, ELF_C_LIBRARY };

struct elf_file {
    enum elf_kind kind;
    enum elf_other
        other; /* of ELF_OTHER: it is for another machine, for 32 bits, musl or another C library */
    /* Of a script: the program, with its arguments; of an ELF file, its dynamic linker. */
    char interpreter[256];
    /* Names of BLAS and LAPACK that it defines, for others to see; for itself alone */
    int exported, hidden;
    char
        asan[64]; /* AddressSanitizer's shared runtime, as it is linked to that; empty: it is not */
    bool asan_options; /* it defines __asan_default_options() itself */
};

/* False with errno if the file cannot be read. */
bool elf_file_read(struct elf_file *file, const char *path);

/* The same without the names of BLAS, which take a while in a large program. */
bool elf_file_read_kind(struct elf_file *file, const char *path);

/* Fewer names do not make a library of BLAS: it may use them for something else. */
enum { ELF_BLAS_NAMES = 8 };

#endif
