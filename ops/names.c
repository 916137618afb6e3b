#include "names.h"

#include "op.h"
#include "call/shape.h"
#include "call/lapack_shape.h"

#include "manglings.def"

/* ---- The routine table as C data ---- */

#define ARG(x, kind, array, slot)   {#x, ACCEL_ARG_##kind, array, ACCEL_##slot, 0, 0, 0, 0, 0, ""},
#define FLAG_ARG(x, array, letters) {#x, ACCEL_ARG_FLAG, array, ACCEL_##x, 0, 0, 0, 0, 0, letters},
#define OPERAND(x, kind, array, dtype, access, rows, cols, by)                                     \
    {#x,           ACCEL_ARG_##kind, array,      ACCEL_##x,     ACCEL_##access,                    \
     ACCEL_##rows, ACCEL_##cols,     ACCEL_##by, ACCEL_##dtype, ""},

#define FLAG(x, letters)                  FLAG_ARG(x, false, letters)
#define SIZE(x)                           ARG(x, SIZE, false, x)
#define SCALAR(x)                         ARG(x, SCALAR, false, x)
#define REAL(x)                           ARG(x, REAL, false, x)
#define MATRIX(x, access, rows, cols, by) OPERAND(x, MATRIX, false, SAME, access, rows, cols, by)
#define NARROW(x, dtype, access, rows, cols, by)                                                   \
    OPERAND(x, MATRIX, false, dtype, access, rows, cols, by)
#define VECTOR(x, access, length, other, by)                                                       \
    OPERAND(x, VECTOR, false, SAME, access, length, other, by)
#define LD(x, matrix)                       ARG(x, LD, false, matrix)
#define INC(x, vector)                      ARG(x, INC, false, vector)
#define STRIDE(x, matrix)                   ARG(x, STRIDE, false, matrix)
#define BATCH(x)                            ARG(x, BATCH, false, a)
#define GROUPS(x)                           ARG(x, GROUPS, false, a)
#define FLAGS(x, letters)                   FLAG_ARG(x, true, letters)
#define SIZES(x)                            ARG(x, SIZE, true, x)
#define SCALARS(x)                          ARG(x, SCALAR, true, x)
#define MATRICES(x, access, rows, cols, by) OPERAND(x, MATRIX, true, SAME, access, rows, cols, by)
#define LDS(x, matrix)                      ARG(x, LD, true, matrix)
#define BATCHES(x)                          ARG(x, BATCH, true, a)
/* Operands whose names are not their slots'. */
#define NAMED(x, kind, slot, dtype, access, rows, cols)                                            \
    {#x,           ACCEL_ARG_##kind, false,        ACCEL_##slot,  ACCEL_##access,                  \
     ACCEL_##rows, ACCEL_##cols,     ACCEL_noflag, ACCEL_##dtype, ""},
#define OTHER(x, slot, access, rows, cols)    NAMED(x, MATRIX, slot, SAME, access, rows, cols)
#define ARRAY(x, slot, dtype, access, length) NAMED(x, VECTOR, slot, dtype, access, length, length)
#define COUNT(x)                              NAMED(x, VECTOR, found, INTEGERS, WRITE, one, one)
#define INTEGER(x)                            ARG(x, INTEGER, false, x)
#define WORK(x)                               ARG(x, WORK, false, a)
#define TOLD(x, length)                       ARG(x, WORK, false, length)
#define LWORK(x)                              ARG(x, LWORK, false, x)
#define INFO(x)                               ARG(x, INFO, false, a)
#define EXTRA(x)                              ARG(x, EXTRA, false, a)

/* Places in ops.def: unlike pointers, they need no relocation. */
enum {
#define OP(name) OP_##name,
#include "ops.def"
#undef OP
};

#define LENGTH(...)                                                                                \
    (int)(sizeof((const struct accel_arg[]){__VA_ARGS__}) / sizeof(struct accel_arg))

#define ROUTINE(name, NAME, op, dtype, row_major, flop_count, ...)                                 \
    {#name, OP_##op, ACCEL_##dtype, ACCEL_##row_major, 0, LENGTH(__VA_ARGS__), {__VA_ARGS__}},
#define LAPACK(name, NAME, op, dtype, ...) ROUTINE(name, NAME, op, dtype, TO_FORTRAN, __VA_ARGS__)
#define FUNCTION(symbol, operation, type, least, names)                                            \
    {.name = #symbol,                                                                              \
     .op = OP_##operation,                                                                         \
     .dtype = ACCEL_##type,                                                                        \
     .row_major = ACCEL_TO_FORTRAN,                                                                \
     .small = (least)},
__attribute__((section("accel_tables"))) const struct accel_routine accel_routines[] = {
#include "ops/routines.def"
};
#undef ROUTINE
#undef FUNCTION

const uint32_t accel_routine_count = sizeof accel_routines / sizeof accel_routines[0];
_Static_assert(sizeof accel_routines / sizeof accel_routines[0] <= ACCEL_ROUTINES_MOST,
               "tables by routine have room");

enum {
#define ROUTINE(name, ...) PLACE_##name,
#define FUNCTION(name, ...)
#include "ops/routines.def"
#undef ROUTINE
#undef FUNCTION
    BLAS_ROUTINES /* rows of BLAS and LAPACK, which come first; those of other libraries follow */
};

double accel_flops(const struct accel_call *call)
{
    const ptrdiff_t place = call->routine - accel_routines;
    if (place >= BLAS_ROUTINES)
        return accel_op_flops(call);
    const double m = (double)call->blas.size[ACCEL_m], n = (double)call->blas.size[ACCEL_n],
                 k = (double)call->blas.size[ACCEL_k],
                 order = (double)accel_call_size(call, ACCEL_order), batch = (double)call->batch,
                 nrhs = (double)call->blas.size[ACCEL_nrhs], mn = m < n ? m : n, mx = m < n ? n : m,
                 vectors = call->op->traits.group == ACCEL_LAPACK && lapack_wants_vectors(call);
    switch (place) {
#define ROUTINE(name, NAME, op, dtype, row_major, flop_count, ...)                                 \
    case PLACE_##name:                                                                             \
        return (flop_count) * (accel_is_complex(ACCEL_##dtype) ? 4 : 1);
#define FUNCTION(name, ...)
#include "ops/routines.def"
#undef ROUTINE
#undef LAPACK
#undef FUNCTION
    }
    return 0; /* no row has that place */
}

/* ---- Every name of every routine ---- */

#define NAME_PAIR(abi, width, trust, symbol, sibling) {#symbol, #sibling},
#define ROUTINE(name, NAME, op, dtype, row_major, flop_count, ...)                                 \
    ACCEL_MANGLINGS(NAME_PAIR, name, NAME)
#define LAPACK(name, NAME, op, dtype, flop_count, ...) ACCEL_LAPACK_MANGLINGS(NAME_PAIR, name, NAME)
#define OWN_NAME(name, symbol)                         {#symbol, #symbol},
#define FUNCTION(name, op, dtype, small, names)        names(OWN_NAME, name)
__attribute__((section("accel_tables"))) const struct accel_name accel_names[] = {
#include "ops/routines.def"
};
#undef ROUTINE
#undef LAPACK
#undef FUNCTION

const uint32_t accel_name_count = sizeof accel_names / sizeof accel_names[0];

/* isamax is in nearly every BLAS: see shim/elf/provider.c. LAPACKE has no isamax. */
#define MANGLING(abi, width, trust, symbol, sibling) {ACCEL_ABI_##abi, width, trust, #sibling},
static const struct accel_mangling manglings[] = {ACCEL_MANGLINGS(MANGLING, isamax, ISAMAX)};
static const struct accel_mangling lapack_manglings[] = {
    ACCEL_LAPACK_MANGLINGS(MANGLING, isamax, ISAMAX)};
static const struct accel_mangling own_mangling = {ACCEL_ABI_OWN, 0, true, ""};

enum { MANGLINGS = sizeof manglings / sizeof manglings[0] };
_Static_assert(sizeof manglings == sizeof lapack_manglings, "entries are counted alike");

const uint32_t accel_mangling_count = MANGLINGS;

enum {
#define FUNCTION(name, op, dtype, small, names) FUNCTION_##name,
#include "functions.def"
    FUNCTIONS
#undef FUNCTION
};

/* For each name of another library: its function. An extra element, for no such name. */
#define OWNER(name, symbol)                     FUNCTION_##name,
#define FUNCTION(name, op, dtype, small, names) names(OWNER, name)
static const uint16_t owners[] = {
#include "functions.def"
    FUNCTIONS};
#undef FUNCTION

/* The exported names of each function. An extra element, for no function. */
#define ONE_MORE(name, symbol)                  +1
#define FUNCTION(name, op, dtype, small, names) 0 names(ONE_MORE, name),
static const uint8_t names_of[] = {
#include "functions.def"
    0};
#undef FUNCTION

const uint32_t accel_blas_name_count = BLAS_ROUTINES * MANGLINGS;

const struct accel_mangling *accel_name_mangling(uint32_t entry)
{
    if (entry >= accel_blas_name_count)
        return &own_mangling;
    bool lapack = accel_is_lapack(accel_name_routine(entry));
    return &(lapack ? lapack_manglings : manglings)[entry % MANGLINGS];
}

const struct accel_routine *accel_name_routine(uint32_t entry)
{
    if (entry >= accel_blas_name_count)
        return &accel_routines[BLAS_ROUTINES + owners[entry - accel_blas_name_count]];
    return &accel_routines[entry / MANGLINGS];
}

/* The Makefile makes it from the same table, by names_places.awk. Libraries have tens of thousands
 * of names, few of them ours: one that is not is seldom compared. */
__attribute__((section("accel_tables"))) static const uint32_t places[] = {
#include "names_places.inc"
};
enum { PLACES = sizeof places / sizeof places[0] };
_Static_assert(PLACES >= 2 * (sizeof accel_names / sizeof accel_names[0]),
               "names_places.inc does not match the routine table");

/* strcmp() by hand: a program's own strcmp (a sanitizer's, say) may not be ready at the first
 * dlsym, or may itself call dlsym. */
static int compare_names(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return (unsigned char)*a - (unsigned char)*b;
}

int accel_name_find_hashed(const char *symbol, uint32_t hash)
{
    const uint32_t wanted = hash >> 1;
    for (uint32_t at = wanted % PLACES; places[at]; at = (at + 1) % PLACES) {
        const uint32_t entry = places[at] % PLACES - 1;
        if (places[at] / PLACES == wanted / PLACES &&
            compare_names(symbol, accel_names[entry].symbol) == 0)
            return (int)entry;
    }
    return -1;
}

int accel_name_find(const char *symbol)
{
    return accel_name_find_hashed(symbol, accel_name_hash(symbol));
}

/* Returns the place of a function without names from place i on, FUNCTIONS after the last. */
static int next_unnamed(int i)
{
    while (i < FUNCTIONS && names_of[i] > 0)
        i++;
    return i;
}

const struct accel_routine *accel_name_called(const char *symbol)
{
    const int entry = accel_name_find(symbol);
    if (entry >= 0)
        return accel_name_routine((uint32_t)entry);
    for (int i = next_unnamed(0); i < FUNCTIONS; i = next_unnamed(i + 1))
        if (compare_names(symbol, accel_routines[BLAS_ROUTINES + i].name) == 0)
            return &accel_routines[BLAS_ROUTINES + i];
    return NULL;
}

bool accel_name_has_outer(const struct accel_routine *routine)
{
    if (accel_is_blas(routine))
        return false;
    for (int i = next_unnamed(0); i < FUNCTIONS; i = next_unnamed(i + 1))
        if (accel_routines[BLAS_ROUTINES + i].op == routine->op)
            return true;
    return false;
}

const struct accel_routine *accel_name_outer(const struct accel_routine *routine,
                                             const char *symbol)
{
    const struct accel_routine *const outer =
        accel_name_find(symbol) < 0 ? accel_name_called(symbol) : NULL;
    return outer && outer->op == routine->op ? outer : NULL;
}
