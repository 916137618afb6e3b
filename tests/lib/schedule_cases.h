/* Calls and links by which schedules are judged in virtual time: by a unit test, and in the table
 * of `make bench`. */
#ifndef SCHEDULE_CASES_H
#define SCHEDULE_CASES_H

#include "gpu/plan/schedule.h"

struct schedule_case {
    const char *name;
    struct schedule_call call;
    bool single; /* precision */
};
extern const struct schedule_case schedule_cases[];
extern const int schedule_case_count;

struct schedule_link {
    const char *name;
    struct schedule_rates rates;
    double single; /* its rate in single precision over that in double */
};
extern const struct schedule_link schedule_links[];
extern const int schedule_link_count;

/* A schedule and what it is compared with, in milliseconds. */
struct schedule_judged {
    struct schedule schedule;
    struct schedule_rates rates;
    int64_t memory_bytes;
    struct schedule_times times;
    /* Of the engines: bytes up, down, and operations at the rate of the whole call; bytes as sent
     * where memory is short */
    double longest;
    /* Longest or more: no schedule is faster, or where memory is short, none that sends so much */
    double bound;
    double once; /* no schedule is faster, whatever the memory */
};

/* Makes the schedule of a case. part: the memory over the operands' bytes; 0: as much as it likes.
 * Returns false on a failure. */
bool schedule_judge(const struct schedule_case *c, const struct schedule_link *link, double part,
                    struct schedule_judged *judged);

#endif
