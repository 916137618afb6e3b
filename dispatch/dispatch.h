/*
 * The dispatcher: takes canonical calls, decides, runs them on the GPU or has the caller's original
 * run them, and logs. Knows neither ELF nor CUDA. All functions are thread-safe unless said
 * otherwise.
 *
 * Of dispatch/, the way of a call: it includes report/, ops/, cpu_ref/, base/ and the headers of gpu/. dispatch/cost/ is the cost model.
 */
#ifndef ACCEL_DISPATCH_H
#define ACCEL_DISPATCH_H

#include "ops/call.h"
#include "ops/passing.h"

enum dispatch_level {
    DISPATCH_SEE_NOTHING, /* nothing to decide and nothing to log: calls need not come here */
    DISPATCH_SEE_LARGE,   /* only calls with a size at or above the gate */
    DISPATCH_SEE_ALL
};

struct dispatch_attention {
    enum dispatch_level level;
    uint64_t gate; /* elements; for DISPATCH_SEE_LARGE */
};

/* A CPU library, as its callers' originals lie in it. Constant, but for what threads() answers; thread-safe. */
struct dispatch_library {
    const char *name; /* what a calibration knows it by: its file's name and size */
    const char *path; /* the dynamic linker's; empty: the program itself, NULL: not known */
    /* How many threads it computes with, as it is set now; at least 1. */
    int (*threads)(const struct dispatch_library *library);
    /* Runs a call of BLAS. False where it has no such routine. */
    bool (*run)(const struct dispatch_library *library, const struct accel_call *call);
};

/* How the dispatcher reaches back to whoever called. */
struct dispatch_caller {
    const char *symbol; /* the name that was called; constant */
    uintptr_t site;     /* where from: the return address */
    /* The library that has the original; never NULL. */
    const struct dispatch_library *(*library)(void *context);
    unsigned long long (*loads)(
        void); /* a number that changes when the program has loaded something */
    /* Whether a loaded object's path is such a one. */
    bool (*loaded)(bool (*is)(const char *path));
    /* The original, with the arguments of a part of the caller's call, NULL: with the caller's own. */
    void (*forward)(void *context, const struct accel_call *part);
    void (*original)(void *context, const struct accel_call *call); /* the original, with these */
    /* Tells the program that the GPU has done the call. */
    void (*succeed)(void *context, const struct accel_call *call);
    const struct accel_passed *passed;
    void *context;
};

/* Reads the environment and the config files, once: from a constructor, or at the first question before that. In an
 * AT_SECURE process it reads nothing and turns everything off. */
void dispatch_start(void);

/* Prints the summary and writes what is kept, if asked for; from a destructor. Calls no CUDA: the driver may be gone. */
void dispatch_end(void);

/* false: ACCEL=0. */
bool dispatch_is_on(void);

/* Whether this is the child of a vfork(2) of a process that uses the GPU: it must leave that process's memory as it is. */
bool dispatch_is_borrowed(void);

/* ACCEL_ORIGINAL as it was set, NULL if it was not. */
const char *dispatch_original_libraries(void);

/* Which calls are worth bringing here, as of now. Cheap. */
struct dispatch_attention dispatch_attention(void);

/* Whether nobody wants to see a call in parts, which the entries' gate cannot tell. Cheap. */
bool dispatch_passes_over(const struct accel_routine *routine, const struct accel_passed *passed);

/* Decides a call, or each of its parts, and sees it through. Returns true when it has been done, false when the original
 * is still to be called. Ends the process with a message where a result can no longer be made right
 * (the device was lost after it had overwritten the caller's matrix). */
bool dispatch_call(struct accel_call *call, const struct dispatch_caller *caller);

/* Logs that a name has been called which is not BLAS here, or whose integers cannot be told; of another library, which is not a
 * version that is known, or whose arguments are not. */
void dispatch_not_known(const char *symbol);

#endif
