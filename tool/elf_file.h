/*
 * What an executable or a library says of itself: how it is linked, and which names of BLAS and LAPACK it defines. (System V gABI,
 * chapters 4 and 5.)
 */
#ifndef ACCEL_TOOL_ELF_FILE_H
#define ACCEL_TOOL_ELF_FILE_H

#include <stdbool.h>

enum elf_kind {
    ELF_UNKNOWN,
    ELF_SCRIPT, /* begins with "#!" */
    ELF_OTHER,  /* for another machine, with 32 bits, or for another C library than glibc */
    ELF_STATIC, /* the dynamic linker has no part in it */
    ELF_DYNAMIC
};

struct elf_file {
    enum elf_kind kind;
    char interpreter[256]; /* of a script: the program, with its first word of arguments */
    /* Names of BLAS and LAPACK that it defines, for others to see; for itself alone */
    int exported, hidden;
};

/* False with errno if the file cannot be read. */
bool elf_file_read(struct elf_file *file, const char *path);

/* Fewer names do not make a library of BLAS: it may use them for something else. */
enum { ELF_BLAS_NAMES = 8 };

#endif
