/*
 * An auditor of the dynamic linker (LD_AUDIT, rtld-audit(7)) that sees every binding and every call, and changes nothing. With
 * TEST_PLTEXIT it also sees what dgemm_ returns: then the linker makes the call itself, and its arguments are a copy.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdlib.h>
#include <string.h>

unsigned la_version(unsigned version)
{
    return version;
}

unsigned la_objopen(struct link_map *map, Lmid_t space, uintptr_t *cookie)
{
    (void)map, (void)space, (void)cookie;
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to,
                       unsigned *flags, const char *name)
{
    (void)index, (void)from, (void)to, (void)flags, (void)name;
    return symbol->st_value;
}

Elf64_Addr la_x86_64_gnu_pltenter(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to,
                                  La_x86_64_regs *registers, unsigned *flags, const char *name,
                                  long *frame)
{
    (void)index, (void)from, (void)to, (void)registers, (void)flags;
    if (getenv("TEST_PLTEXIT") && strcmp(name, "dgemm_") == 0)
        *frame = 128;
    return symbol->st_value;
}

unsigned la_x86_64_gnu_pltexit(Elf64_Sym *symbol, unsigned index, uintptr_t *from, uintptr_t *to,
                               const La_x86_64_regs *registers, La_x86_64_retval *result,
                               const char *name)
{
    (void)symbol, (void)index, (void)from, (void)to, (void)registers, (void)result, (void)name;
    return 0;
}
