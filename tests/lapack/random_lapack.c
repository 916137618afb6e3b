/*
 * random_lapack [-s seed] [-c count] [-n size] [-r routines] [-k kinds] [-l library] [-p prefix]
 *               [-x suffix] [-f faults] [-o report] [threads]
 *
 * Random calls of LAPACK routines, each result judged by cpu_ref/residual.h and all other memory
 * watched.
 *   -s  the first case's seed; the next one's is one more. A seed makes the same case anywhere
 *   -c  cases of each routine and type
 *   -n  the greatest m and n
 *   -r  which routines, as dgetrf: a pattern as bash's extglob has them
 *   -k  which kinds of matrices (sources.c): the same
 *   -l  a library instead of the linked one, with -p and -x before and behind its names
 *   -f  what the library gets wrong and is not asked for: see cases.h
 *   -o  a file with a line for each call: case, arguments, kind | info, ratio, memory that has
 *       changed but must not have, a digest of all arrays
 * Wrong calls are described on stderr. The last line is "N cases, N calls, N wrong, infos DIGEST";
 * before it, "lacks: NAME NAME" names what the library has not.
 */
#define _GNU_SOURCE
#include <fnmatch.h>
#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>

#include "cases.h"

/* ---- All cases ---- */

struct totals {
    int cases, calls, wrong;
    uint64_t infos;
};

static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

static void case_name(char *name, size_t size, const char *routine, enum accel_dtype dtype)
{
    snprintf(name, size, "%c%s", "sdcz"[dtype], routine);
    if (!accel_is_complex(dtype))
        return;
    if (strncmp(routine, "or", 2) == 0)
        memcpy(name + 1, "un", 2);
    if (strncmp(routine, "sye", 3) == 0 || strncmp(routine, "syg", 3) == 0)
        memcpy(name + 1, "he", 2);
}

static void one_case(const struct options *options, const struct lapack_case *which,
                     enum accel_dtype dtype, unsigned long seed, struct totals *totals)
{
    struct test test = {.options = options, .dtype = dtype};
    case_name(test.name, sizeof test.name, which->routine, dtype);
    snprintf(test.number, sizeof test.number, "-s %lu", seed);
    test.random.state = mix(0xcbf29ce484222325u, test.name) + seed * 0xd1342543de82ef95u;
    which->make(&test);
    if (test.call.pending)
        judge(&test, 0);
    totals->cases++;
    totals->calls += test.calls;
    totals->wrong += test.wrong;
    totals->infos = (totals->infos ^ test.infos) * 0x100000001b3u;
}

static bool is_wanted(const struct options *options, const struct lapack_case *which,
                      enum accel_dtype dtype)
{
    char name[24];
    case_name(name, sizeof name, which->routine, dtype);
    return (accel_is_complex(dtype) || !which->complex_only) &&
           fnmatch(options->wanted, name, FNM_EXTMATCH) == 0 &&
           library_find(&options->library, name);
}

static const struct lapack_case *const all_cases[] = {linear_cases, orthogonal_cases,
                                                      spectral_cases, singular_cases};

static struct totals run_cases(const struct options *options)
{
    struct totals totals = {0};
    for (int i = 0; i < options->count; i++)
        for (size_t group = 0; group < sizeof all_cases / sizeof *all_cases; group++)
            for (const struct lapack_case *which = all_cases[group]; which->routine; which++)
                for (int dtype = 0; dtype < ACCEL_DTYPES; dtype++)
                    if (is_wanted(options, which, (enum accel_dtype)dtype))
                        one_case(options, which, (enum accel_dtype)dtype,
                                 options->seed + (unsigned long)i, &totals);
    return totals;
}

static void say_lacking(const struct options *options)
{
    bool first = true;
    for (int i = 0; library_name(i); i++) {
        if (library_find(&options->library, library_name(i)))
            continue;
        printf("%s %s", first ? "lacks:" : "", library_name(i));
        first = false;
    }
    printf("%s", first ? "" : "\n");
}

/* ---- Options and threads ---- */

static FILE *report_file(const char *path)
{
    FILE *file = fopen(path, "w");
    if (!file) {
        perror(path);
        exit(2);
    }
    /* A crash must not lose what was there before it. */
    setvbuf(file, NULL, _IOLBF, 0);
    return file;
}

static int read_options(struct options *options, int argc, char **argv)
{
    int option;
    *options = (struct options){.library = {.prefix = "", .suffix = ""},
                                .seed = 1,
                                .count = 10,
                                .max_size = 40,
                                .wanted = "*",
                                .kinds = "*",
                                .faults = ""};
    while ((option = getopt(argc, argv, "+s:c:n:r:k:l:p:x:f:o:")) != -1) {
        switch (option) {
        case 's':
            options->seed = strtoul(optarg, NULL, 10);
            break;
        case 'c':
            options->count = atoi(optarg);
            break;
        case 'n':
            options->max_size = atoi(optarg);
            break;
        case 'r':
            options->wanted = optarg;
            break;
        case 'k':
            options->kinds = optarg;
            break;
        case 'l':
            options->library.path = optarg;
            break;
        case 'p':
            options->library.prefix = optarg;
            break;
        case 'x':
            options->library.suffix = optarg;
            break;
        case 'f':
            options->faults = optarg;
            break;
        case 'o':
            options->report = report_file(optarg);
            break;
        default:
            exit(2);
        }
    }
    library_open(&options->library);
    return optind;
}

struct worker {
    pthread_t thread;
    struct options options;
    struct totals totals;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    worker->totals = run_cases(&worker->options);
    return NULL;
}

int main(int argc, char **argv)
{
    struct options options;
    struct worker workers[64];
    struct totals totals = {0};
    int at = read_options(&options, argc, argv);
    int threads = at < argc ? atoi(argv[at]) : 1;
    if (threads < 1 || threads > 64)
        return 2;
    for (int i = 0; i < threads; i++) {
        workers[i].options = options;
        workers[i].options.seed += (unsigned long)i * 1000000;
        if (threads == 1)
            work(&workers[i]);
        else if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            return 2;
    }
    for (int i = 0; i < threads; i++) {
        if (threads > 1)
            pthread_join(workers[i].thread, NULL);
        totals.cases += workers[i].totals.cases;
        totals.calls += workers[i].totals.calls;
        totals.wrong += workers[i].totals.wrong;
        totals.infos ^= workers[i].totals.infos;
    }
    say_lacking(&options);
    printf("%d cases, %d calls, %d wrong, infos %016lx\n", totals.cases, totals.calls, totals.wrong,
           (unsigned long)totals.infos);
    return totals.wrong != 0 || totals.cases == 0;
}
