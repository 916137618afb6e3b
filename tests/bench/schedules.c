/* Prints, of schedules in virtual time, the link, the call, the memory, the milliseconds, and their ratios to the longest engine and to the
 * bound: tests/lib/schedule_cases.h. */
#include <stdio.h>

#include "tests/lib/schedule_cases.h"

int main(void)
{
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
