/* Prints, of schedules in virtual time, the link, the call, the memory, the milliseconds, and their ratios to the longest engine and to the
 * bound: tests/lib/schedule_cases.h. With the argument `splits`, of calls on several devices: the machine, the call, the devices that share
 * it, the milliseconds, and their ratio to the time at the sum of all devices' rates: tests/lib/split_cases.h. */
#include <stdio.h>
#include <string.h>

#include "ops/op.h"
#include "tests/lib/schedule_cases.h"
#include "tests/lib/split_cases.h"

static int print_splits(void)
{
    static const char *const names[] = {"dgemm", "dsymm", "dsyrk", "dtrsm"};
    for (int i = 0; i < split_machine_count; i++)
        for (size_t r = 0; r < sizeof names / sizeof *names; r++) {
            struct split_device device[SPLIT_MOST];
            const int count = split_devices_of(&split_machines[i], device);
            struct accel_call call;
            struct split split;
            double peaks = 0;
            if (!split_call_of(&call, names[r], 16384, 16384, 16384))
                return 1;
            split_make(&split, &call, device, count, SPLIT_NO_LIMIT);
            for (int k = 0; k < count; k++)
                peaks += device[k].rates.compute * 1e6;
            const double ms = split.count > 1 ? split.ms : split.whole_ms;
            printf("%s|%s 16384|%d of %d devices|%.4f|%.4f\n", split_machines[i].name, names[r],
                   split.count, count, ms, ms * peaks / call.routine->flops(&call));
        }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "splits") == 0)
        return print_splits();
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
