/*
 * The dispatcher: takes canonical calls, decides, runs them on the GPU or has the caller's original
 * run them, and reports. Knows neither ELF nor CUDA. All functions are thread-safe unless said
 * otherwise.
 *
 * dispatch/ is the way of a call. It includes report/, ops/, cpu_ref/, base/ and the headers of
 * gpu/. dispatch/cost/ is the cost model.
 */
#ifndef ACCEL_DISPATCH_H
#define ACCEL_DISPATCH_H

#include "dispatch/cost/cpu_library.h"
#include "call/call.h"
#include "call/passing.h"

enum dispatch_level {
    DISPATCH_SEE_NOTHING, /* nothing to decide and nothing to report: calls bypass the dispatcher */
    DISPATCH_SEE_LARGE,   /* only calls with a size at or above the gate */
    DISPATCH_SEE_ALL
};

struct dispatch_filter {
    enum dispatch_level level;
    uint64_t gate; /* elements; for DISPATCH_SEE_LARGE */
    bool matrices; /* so are calls of Level 2 whose matrix may be on the device, or come there */
};

/* The caller of a routine, and the functions by which the dispatcher reaches back to it. */
struct dispatch_caller {
    const char *symbol; /* the name that was called; constant */
    uintptr_t site;     /* where from: the return address */
    uint64_t kind; /* a hash of site, letters and sizes; 0: they do not tell all of the call's */
    int depth; /* inside how many calls whose originals this thread runs; 0: the program's own */
    /* How the calling thread computes and no GPU does, such as "rounds_down": the log's word,
     * constant. NULL: as a GPU. */
    const char *arithmetic;
    /* The library that has the original; never NULL. */
    const struct dispatch_library *(*library)(void *context);
    /* Returns a number that changes when the program has loaded something. */
    unsigned long long (*loads)(void);
    /* Whether is() is true of any loaded object. */
    bool (*loaded)(bool (*is)(const char *path));
    /* Runs the original with the arguments of a part of the caller's call; NULL: with the caller's
     * own. */
    void (*forward)(void *context, const struct accel_call *part);
    /* Runs the original with the arguments of this call. */
    void (*original)(void *context, const struct accel_call *call);
    /* Tells the program that the GPU has done the call. */
    void (*succeed)(void *context, const struct accel_call *call);
    /* Runs wait(argument) as it runs an original: the thread may end there, and a handler may leave
     * it by siglongjmp(3). */
    void (*pause)(void *context, void (*wait)(void *argument), void *argument);
    const struct accel_passed *passed;
    const struct accel_result *result; /* of the original's last run */
    void *context;
};

/* Reads the environment and the config files, once: from a constructor, or at the first question
 * before that. In an AT_SECURE process it reads nothing and turns everything off. */
void dispatch_start(void);

/* Prints the summary and writes the calibration, if they are asked for. Called from a destructor;
 * calls no CUDA, whose driver may be gone. */
void dispatch_end(void);

/* Whether libaccel is on: ACCEL=0, ACCEL_EXCLUDE and AT_SECURE turn it off. */
bool dispatch_is_on(void);

/* Whether this is the child of a vfork(2) of a process that uses the GPU: it must not change that
 * process's memory. */
bool dispatch_is_borrowed(void);

/* Returns the value of ACCEL_ORIGINAL, NULL if it is not set. */
const char *dispatch_original_libraries(void);

/* Returns which calls are worth bringing here now. Cheap. */
struct dispatch_filter dispatch_filter(void);

/* Whether a call in parts may bypass the dispatcher, which the entries' gate cannot tell. Cheap. */
bool dispatch_passes_over(const struct accel_routine *routine, const struct accel_passed *passed);

/* Whether a call of this kind (struct dispatch_caller) is for the original, as the last ones like
 * it were: it need not be read. loads: as in dispatch_caller. Cheap. */
bool dispatch_is_decided(uint64_t kind, unsigned long long (*loads)(void));

/* Decides a call, or each of its parts, and runs it. Returns true if it has been done, false if the
 * original is still to be called. Ends the process with a message if a result can no longer be made
 * right (the device was lost after it had overwritten the caller's matrix). */
bool dispatch_call(struct accel_call *call, const struct dispatch_caller *caller);

/* Whether ACCEL_ML lets calls of this routine's library be accelerated; true of all others. */
bool dispatch_takes_library(const struct accel_routine *routine);

/* Reports a call of an exported name that is not BLAS in this program, or whose integers have an
 * unknown width; in another library, of one that is turned off or of an unknown version, or with
 * unknown arguments. Of the caller, it needs the symbol, the depth and the library. */
void dispatch_not_known(const struct accel_routine *routine, const struct dispatch_caller *caller);

#endif
