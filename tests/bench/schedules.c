/* Prints, of schedules in virtual time, the link, the call, the memory, the milliseconds, and their
 * ratios to the longest engine and to the bound: tests/lib/schedule_cases.h. With the argument
 * `splits`, of calls on several devices: the machine, the call, the devices that share it, the
 * milliseconds, and their ratio to the time at the sum of all devices' rates:
 * tests/lib/split_cases.h. With `panels`, of LAPACK's factorisations of matrices that fit: the
 * link, the call, the milliseconds in panels, and their ratios to one copy up and one kernel, and
 * to the longest engine; and the microseconds of CPU time to choose the panels the first time, and
 * to find the choice again. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "gpu/plan/panels.h"
#include "ops/lapack/in_panels.h"
#include "ops/op.h"
#include "tests/lib/schedule_cases.h"
#include "tests/lib/split_cases.h"

/* peer_gbps: between the devices; 0: they do not lend each other anything. */
static bool print_split(const struct split_machine *machine, const char *name, double peer_gbps,
                        double host_gbps)
{
    struct split_device device[SPLIT_MOST];
    const int count = split_devices_of(machine, device);
    struct accel_call call;
    struct split split;
    double peaks = 0;
    if (!split_call_of(&call, name, 16384, 16384, 16384))
        return false;
    for (int k = 0; k < count; k++) {
        device[k].rates.peer = peer_gbps;
        peaks += device[k].rates.compute * 1e6;
    }
    split_make(&split, &call, device, count, host_gbps);
    const double ms = split.count > 1 ? split.ms : split.whole_ms;
    printf("%s%s%s|%s 16384|%d of %d devices|%.4f|%.4f\n", machine->name,
           peer_gbps > 0 ? " with NVLink" : "", host_gbps < SPLIT_NO_LIMIT ? ", slow host" : "",
           name, split.count, count, ms, ms * peaks / accel_flops(&call));
    return true;
}

/* Also of H100 with NVLink, and behind a host that packs 45 GB/s for all of them. */
static int print_splits(void)
{
    static const char *const names[] = {"dgemm", "dsymm", "dsyrk", "dtrsm"};
    bool printed = true;
    for (int i = 0; i < split_machine_count; i++)
        for (size_t r = 0; r < sizeof names / sizeof *names; r++) {
            const struct split_machine *machine = &split_machines[i];
            printed = printed && print_split(machine, names[r], 0, SPLIT_NO_LIMIT);
            for (int way = 0; strstr(machine->name, "H100") && way < 3; way++)
                printed = printed && print_split(machine, names[r], way == 0 ? 0 : 300,
                                                 way == 1 ? SPLIT_NO_LIMIT : 45);
        }
    return printed ? 0 : 1;
}

static double cpu_us(void)
{
    return 1e6 / CLOCKS_PER_SEC * (double)clock();
}

/* Prints nothing of a matrix that comes up as a whole: no panels are faster. */
static void print_factorisation(const struct schedule_link *link, const char *name,
                                const struct panels_call *panels,
                                const struct schedule_rates *rates)
{
    enum { AGAIN = 1000 };
    const double start = cpu_us(), ms = panels_in_core_ms(panels, rates), chosen = cpu_us();
    for (int i = 0; i < AGAIN; i++)
        panels_in_core_ms(panels, rates);
    const double again = (cpu_us() - chosen) / AGAIN;
    if (ms >= 0)
        printf("%s|%s %d|%.4f|%.4f|%.4f|%.3f|%.3f\n", link->name, name, (int)panels->n, ms,
               ms / panels_whole_ms(panels, rates), ms / panels_floor(panels, rates),
               chosen - start, again);
}

static int print_panels(void)
{
    static const struct {
        const char *name;
        enum panels_kind kind;
    } factored[] = {{"dpotrf", PANELS_CHOLESKY}, {"dgetrf", PANELS_LU}, {"dgeqrf", PANELS_QR}};
    for (int l = 0; l < schedule_link_count; l++)
        for (size_t r = 0; r < sizeof factored / sizeof *factored; r++)
            for (int64_t n = 1024; n <= 16384; n *= 2) {
                struct accel_call call;
                if (!split_call_of(&call, factored[r].name, n, n, n))
                    return 1;
                const struct accel_op *op = accel_op_of(call.routine);
                const struct panels_call panels = lapack_factoring(&call, factored[r].kind);
                struct schedule_rates rates = schedule_links[l].rates;
                rates.compute *= op->cost->nominal.gpu_share;
                rates.column_ms = op->cost->nominal.gpu_step_ms;
                rates.row_ms = schedule_nominal.row_ms;
                print_factorisation(&schedule_links[l], factored[r].name, &panels, &rates);
            }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "splits") == 0)
        return print_splits();
    if (argc > 1 && strcmp(argv[1], "panels") == 0)
        return print_panels();
    static const double parts[] = {0, 0.4};
    for (int l = 0; l < schedule_link_count; l++)
        for (int c = 0; c < schedule_case_count; c++)
            for (int p = 0; p < 2; p++) {
                struct schedule_judged judged;
                if (!schedule_judge(&schedule_cases[c], &schedule_links[l], parts[p], &judged))
                    return 1;
                printf("%s|%s|%s|%.4f|%.4f|%.4f\n", schedule_links[l].name, schedule_cases[c].name,
                       p ? "0.4 of the memory" : "ample memory", judged.times.ms,
                       judged.times.ms / judged.longest, judged.times.ms / judged.bound);
                schedule_free(&judged.schedule);
            }
    return 0;
}
