/*
 * What libaccel knows of a function that is none of BLAS or LAPACK.
 */
#ifndef ACCEL_OP_FOREIGN_H
#define ACCEL_OP_FOREIGN_H

#include "call.h"
#include "passing.h"

struct guide;

/* The machine-learning libraries, each with a place in ACCEL_ML. */
enum accel_ml {
    ACCEL_NO_ML, /* BLAS, LAPACK, and other libraries that no setting turns off */
    ACCEL_LIBSVM,
    ACCEL_LIBLINEAR,
    ACCEL_XGBOOST,
    ACCEL_LIGHTGBM
};

/* Bits 1 << enum accel_ml: the libraries whose models stay the same within their own tolerances. */
#define ACCEL_ML_SAME (1u << ACCEL_LIBSVM | 1u << ACCEL_LIBLINEAR)

/* What there is to report of a call of a library that computes on the GPU by itself
 * (ops/guide.h). */
enum guide_news {
    GUIDE_NOTHING,     /* no decision was made */
    GUIDE_ON_GPU,      /* the library has been told to use the device */
    GUIDE_NO_DEVICE,   /* device() has answered that there is none */
    GUIDE_UNSUPPORTED, /* the library cannot use a GPU here */
    GUIDE_FAILED,      /* the library has failed on the GPU, and has computed on the CPU instead */
    GUIDE_NO_MEMORY /* the same for lack of memory, or libaccel had none to tell the library with */
};

/* Appends fields to a line of the log, in the order of the calls. */
struct accel_fields {
    void (*integer)(const struct accel_fields *fields, const char *name, int64_t value);
    void (*string)(const struct accel_fields *fields, const char *name, const char *value);
};

/* A function of another library: which versions of it are known, how its arguments are read, and
 * its result is given and judged. BLAS and LAPACK have the routine's row for that. */
struct accel_foreign {
    enum accel_ml ml;
    bool nests; /* the original's own calls are decided for themselves */
    /* Arguments that are integers or pointers; 0: none of them is on the stack. */
    size_t words;
    /* Returns a number greater than 0 if the operation knows the provider's function, such as by
     * its version: that of its layout of structs and arguments, which calls have in passed->layout.
     * NULL: it knows none. Other calls go to the original, untouched. Negative: so do these, and
     * nothing is said of them, because the function's own calls are decided. */
    int (*accepts)(const struct accel_provider *provider);
    /* Returns, of a layout, the offset of an int in the struct that the first argument points to,
     * which says how large a call is: the entries forward calls in which it is below
     * routine->small. The cost's sizes()[0] must be that int, and the original read the struct
     * unless the pointer is NULL. Negative: the entries cannot tell. NULL: as negative. */
    int (*count_at)(int layout);
    /* Fills in the spans and call->own; all else is set for a single product. Returns false if it
     * does not understand the arguments: the original gets the call, untouched. */
    bool (*parse)(struct accel_call *call, const struct accel_passed *passed);
    /* Gives the log the fields that say what was called. */
    void (*describe)(const struct accel_call *call, const struct accel_fields *fields);
    /* The library can compute on the GPU by itself: tells it to, before or instead of the
     * original's run. NULL: it cannot, or need not be told. Then there is no decision: of what
     * follows and of the other groups nothing counts but instead(). */
    enum guide_news (*guide)(struct guide *guide);
    /* Stores in *word what the original gets in place of one of the caller's arguments, and returns
     * the number of that argument, from
     * 0. Negative: the original gets the caller's arguments as they are. NULL: as negative. */
    int (*instead)(const struct accel_call *call, uint64_t *word);
    /* Fills in the result registers after a call that the GPU has done. */
    void (*complete)(const struct accel_call *call, struct accel_result *result);
    /* Returns the error of what the GPU has left divided by its bound; negative: it cannot be
     * judged. NULL: the rules' check() tells. */
    double (*judge)(const struct accel_call *call);
};

#endif
