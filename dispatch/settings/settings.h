/*
 * The settings, from the environment and the config files. Read once at start; constant afterwards.
 */
#ifndef ACCEL_SETTINGS_H
#define ACCEL_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "pattern.h"
#include "call/call.h"
#include "report/log.h"
#include "report/summary.h"

enum accel_policy { ACCEL_POLICY_AUTO, ACCEL_POLICY_GPU, ACCEL_POLICY_CPU };
enum accel_start { ACCEL_START_BACKGROUND, ACCEL_START_WAIT, ACCEL_START_PROGRAM };
enum accel_resident { ACCEL_RESIDENT_AUTO, ACCEL_RESIDENT_HASH, ACCEL_RESIDENT_OFF };
/* Operands in host memory, on a device that uses the host's page tables. */
enum accel_c2c {
    ACCEL_C2C_AUTO,   /* whichever is estimated to take less time */
    ACCEL_C2C_PLACE,  /* kernels read them where they are */
    ACCEL_C2C_COPY,   /* they are copied to the device */
    ACCEL_C2C_MIGRATE /* their pages move to the device and stay there */
};
enum accel_verify_action { ACCEL_VERIFY_WARN, ACCEL_VERIFY_CPU, ACCEL_VERIFY_ABORT };

/* The devices that may be used, by CUDA's numbers. */
enum accel_devices_kind {
    ACCEL_DEVICES_AUTO, /* one for each process */
    ACCEL_DEVICES_NONE,
    ACCEL_DEVICES_ALL,
    ACCEL_DEVICES_LIST
};
#define ACCEL_DEVICES_MAX 64
struct accel_devices {
    enum accel_devices_kind kind;
    int count; /* of a list: at least 1, in the user's order, each once, below ACCEL_DEVICES_MAX */
    int number[ACCEL_DEVICES_MAX];
};

struct accel_settings {
    bool on;
    enum accel_log_level log;
    const char *log_file; /* a pattern, NULL: stderr */
    double log_min_ms;
    const char *trace;       /* a pattern, NULL: none */
    const char *metrics_dir; /* NULL: none */
    enum accel_summary summary;
    enum accel_policy policy;
    struct accel_pattern gpu_routines, cpu_routines; /* always, never on the GPU */
    bool require_gpu;
    enum accel_start start;
    bool start_given; /* by the user */
    bool learn;
    unsigned ml; /* libraries that are accelerated, as bits 1 << enum accel_ml */
    struct accel_devices devices;
    double memory_share; /* of the device memory; counts if memory_bytes is 0 */
    int64_t memory_bytes;
    unsigned char precision[ACCEL_ROUTINES_MOST]; /* enum gpu_precision: asked for, by routine */
    enum accel_resident resident; /* whether unchanged inputs are cached from call to call */
    enum accel_c2c c2c;
    uint64_t verify_every; /* of so many results of the GPU, one is checked; 0: none */
    enum accel_verify_action verify_action;
    const char *model; /* the calibration's path; NULL: no folder for it is known */
    bool model_given;  /* by the user */
    /* The socket of the process that owns the GPUs; empty: where one is usually; NULL: none is used
     */
    const char *server;
    const char *cuda_dir; /* NULL: none */
    const char *original; /* NULL: none */
    /* The value of a promise (ACCEL_REQUIRE, ACCEL_VERIFY, ACCEL_VERIFY_ACTION) cannot be read: the
     * program must not call BLAS. */
    bool broken_promise;
    /* For the tool's own use: */
    const char *estimate;      /* a GPU's name, NULL: none */
    const char *estimate_dir;  /* NULL: none */
    const char *called;        /* a file's path, NULL: none */
    const char *summary_table; /* a file's path, NULL: none */
};

/* The sources of settings beside the environment. */
struct settings_sources {
    const char *system_file; /* the config file of the lowest rank; NULL: none */
    const char *program;     /* the executable's name, for ACCEL_EXCLUDE; empty: not known */
    bool secure; /* AT_SECURE: the environment is another user's. Nothing is read, all is off */
    bool whole;  /* for the tool: ACCEL=0 and ACCEL_EXCLUDE leave the other settings as they are */
};

/* Fills `settings`, each from the first that has it: the environment, the file that ACCEL_CONFIG
 * names, the user's file, the system's. A value that cannot be read leaves the default, and is
 * remembered (complaints.h). If `on` is false, because of ACCEL or ACCEL_EXCLUDE, only `original`
 * is set, unless all are wanted; but where ACCEL=0 is of a lower rank than the user's
 * ACCEL_REQUIRE=gpu, that is a broken promise. Not thread-safe. Strings are copied, and stay valid
 * until the next call. Keeps errno. */
void settings_read_from(struct accel_settings *settings, const struct settings_sources *sources);

/* The same with /etc/accel.conf, this program, and AT_SECURE. */
void settings_read(struct accel_settings *settings);

/* What is found while settings are read, for the tool. Strings are valid during the call. */
struct setting_found {
    const char *name, *value;
    const char *file; /* NULL: the environment */
    int line;
    bool understood; /* false: the default counts */
};
struct settings_watch {
    /* Gets the value that counts of each setting that is set somewhere. */
    void (*value)(void *context, const struct setting_found *found);
    /* Gets each config file that is looked for: read (fault NULL), refused, or not there (error
     * ENOENT). */
    void (*file)(void *context, const char *path, const char *fault, int error);
    void *context;
};

/* settings_read() for the tool: all settings, whatever ACCEL and ACCEL_EXCLUDE say. watch: gets
 * what is found where; may be NULL. */
void settings_read_whole(struct accel_settings *settings, const struct settings_watch *watch);

/* Whether calls wait while the GPU starts, if no call makes it another way: ranks of MPI wait for
 * each other anyway. */
static inline bool settings_wait(const struct accel_settings *settings, bool mpi)
{
    return settings->start_given ? settings->start == ACCEL_START_WAIT : mpi;
}

/* Remembers as a complaint the first item of gpu_routines, and of cpu_routines, that matches none
 * of the `count` routines. After settings_read(); not thread-safe. */
void settings_check_routines(const struct accel_settings *settings,
                             const struct accel_routine *routines, uint32_t count);

#endif
