/* Machines and calls by which splits are judged in virtual time: by a unit test, and in the table
 * of `make bench`. */
#ifndef SPLIT_CASES_H
#define SPLIT_CASES_H

#include "dispatch/cost/split.h"

struct split_machine {
    const char *name;
    int count;
    double gflops[8]; /* of the devices; the last holds for all further ones */
    double gbps;      /* of each link */
};
extern const struct split_machine split_machines[];
extern const int split_machine_count;

/* So much that the host limits nothing. */
#define SPLIT_NO_LIMIT 1e9

struct split_device split_device_of(double gflops, double gbps);

/* Sets the devices of a machine. Returns their number. */
int split_devices_of(const struct split_machine *machine, struct split_device device[SPLIT_MOST]);

/* Makes a call of a routine, whose operands have addresses that nobody may touch, and beta = 0.
 * Returns false if there is no such routine. */
bool split_call_of(struct accel_call *call, const char *name, int64_t m, int64_t n, int64_t k);

#endif
