#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TYPES(R, name)   R(s##name) R(d##name) R(c##name) R(z##name)
#define REAL(R, name)    R(s##name) R(d##name)
#define COMPLEX(R, name) R(c##name) R(z##name)
#define ROUTINES(R)                                                                                \
    TYPES(R, getrf)                                                                                \
    TYPES(R, getrs)                                                                                \
    TYPES(R, gesv)                                                                                 \
    TYPES(R, getri)                                                                                \
    TYPES(R, potrf)                                                                                \
    TYPES(R, potrs)                                                                                \
    TYPES(R, posv)                                                                                 \
    TYPES(R, potri)                                                                                \
    TYPES(R, lauum)                                                                                \
    TYPES(R, trtrs)                                                                                \
    TYPES(R, trtri)                                                                                \
    TYPES(R, sytrf)                                                                                \
    TYPES(R, sytrs)                                                                                \
    TYPES(R, sysv)                                                                                 \
    COMPLEX(R, hetrf)                                                                              \
    COMPLEX(R, hetrs)                                                                              \
    COMPLEX(R, hesv)                                                                               \
    TYPES(R, geqrf)                                                                                \
    REAL(R, orgqr)                                                                                 \
    COMPLEX(R, ungqr)                                                                              \
    REAL(R, ormqr)                                                                                 \
    COMPLEX(R, unmqr)                                                                              \
    TYPES(R, gels)                                                                                 \
    TYPES(R, gelsd)                                                                                \
    TYPES(R, gelss)                                                                                \
    TYPES(R, gelsy)                                                                                \
    REAL(R, syev)                                                                                  \
    COMPLEX(R, heev)                                                                               \
    REAL(R, syevd)                                                                                 \
    COMPLEX(R, heevd)                                                                              \
    REAL(R, syevr)                                                                                 \
    COMPLEX(R, heevr)                                                                              \
    REAL(R, syevx)                                                                                 \
    COMPLEX(R, heevx)                                                                              \
    REAL(R, sygv)                                                                                  \
    COMPLEX(R, hegv)                                                                               \
    REAL(R, sygvd)                                                                                 \
    COMPLEX(R, hegvd)                                                                              \
    REAL(R, sygvx)                                                                                 \
    COMPLEX(R, hegvx)                                                                              \
    TYPES(R, gesvd)                                                                                \
    TYPES(R, gesdd)                                                                                \
    TYPES(R, geev)                                                                                 \
    TYPES(R, laswp)                                                                                \
    TYPES(R, lacpy)

/* Weak: not every LAPACK has every routine. */
#define R(name) extern lapack_function name##_ __attribute__((weak));
ROUTINES(R)
#undef R

/* No table of addresses: ld 2.40 leaves weak names that nothing defines at link time to the dynamic
 * linker in code alone. */
static lapack_function *linked(const char *name)
{
#define R(routine)                                                                                 \
    if (strcmp(name, #routine) == 0)                                                               \
        return routine##_;
    ROUTINES(R)
#undef R
    return NULL;
}

const char *library_name(int i)
{
#define R(name) #name,
    static const char *const names[] = {ROUTINES(R) NULL};
#undef R
    return names[i];
}

void library_open(struct library *library)
{
    library->handle = RTLD_DEFAULT;
    if (!library->path)
        return;
    library->handle = dlopen(library->path, RTLD_NOW | RTLD_LOCAL);
    if (!library->handle) {
        fprintf(stderr, "%s\n", dlerror());
        exit(2);
    }
}

lapack_function *library_find(const struct library *library, const char *name)
{
    lapack_function *found;
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s_%s", library->prefix, name, library->suffix);
    /* Under libaccel the linked names are always there, so the look-up says if LAPACK has it. */
    void *address = dlsym(library->handle, symbol);
    if (!address)
        return NULL;
    if (!library->path)
        return linked(name);
    memcpy(&found, &address, sizeof found);
    return found;
}

/* Pointers and lengths alike are passed as words. */
typedef void *w;
typedef void words_8(w, w, w, w, w, w, w, w);
typedef void words_16(w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w);
typedef void words_24(w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w);
typedef void words_32(w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w, w,
                      w, w, w, w, w, w);

#define WORDS_8(a)  a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7]
#define WORDS_16(a) WORDS_8(a), a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15]
#define WORDS_24(a) WORDS_16(a), a[16], a[17], a[18], a[19], a[20], a[21], a[22], a[23]
#define WORDS_32(a) WORDS_24(a), a[24], a[25], a[26], a[27], a[28], a[29], a[30], a[31]

void library_call(lapack_function *function, void *const *arguments, int count)
{
    /* Behind the last argument of a call there may be anything. */
    void *a[32];
    for (int i = 0; i < 32; i++)
        a[i] = i < count ? arguments[i] : (void *)(uintptr_t)0xdead;
    if (count <= 8)
        ((words_8 *)function)(WORDS_8(a));
    else if (count <= 16)
        ((words_16 *)function)(WORDS_16(a));
    else if (count <= 24)
        ((words_24 *)function)(WORDS_24(a));
    else
        ((words_32 *)function)(WORDS_32(a));
}
