/*
 * Which call runs next on the devices that several processes of several users share: start-time
 * fair queueing in two levels (P. Goyal, H. Vin, H. Cheng, "Start-time fair queueing", 1996). Of
 * the users whose calls wait, the one is next that has had the least time of all devices by its
 * weight; of its processes likewise; of a process's calls the first. Who had nothing to do
 * meanwhile is not owed for that, and nobody is punished for time that nobody else wanted.
 *
 * All wait in one order, and a call runs on the device where its process's last one ran, which may
 * have inputs of it: elsewhere if that has no place, or others compute there while a device with
 * fewer processes computes nothing. A new process begins where the fewest are.
 *
 * Calls are small or large; some places on a device are for small ones alone, so that these wait
 * for small ones alone. These functions take no lock and read no clock: the caller passes the time,
 * in milliseconds.
 */
#ifndef ACCEL_SERVE_FAIR_ORDER_H
#define ACCEL_SERVE_FAIR_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Who shares: a user, or a process of one. */
struct fair_share {
    double had;      /* time of the device by weight, of calls that have ended */
    double weight;   /* > 0 */
    int waiting;     /* calls */
    int running;     /* calls */
    double begun_ms; /* the sum of the times at which these have begun */
    double clock;    /* of those within: what each that comes is taken to have had */
};

struct fair_user {
    struct fair_share share;
    uint64_t id;
    struct fair_process *processes;
    struct fair_user *next;
};

struct fair_process {
    struct fair_share share;
    struct fair_user *user;
    int pid, lanes;
    int device;                      /* where its last call ran, or the first is to run */
    struct fair_call *first, **last; /* that wait */
    struct fair_process *next;
};

struct fair_call {
    struct fair_process *process;
    struct fair_call *next;
    uint64_t number; /* in which order they have come */
    double came_ms, began_ms;
    int device; /* where it runs */
    bool large;
};

enum { FAIR_DEVICES_MOST = 16 };

struct fair_device {
    int running, large_running; /* calls */
    int processes;
    bool is_out; /* no call runs there any more */
};

struct fair_order {
    int places, large_places; /* calls that may run on a device; large ones of them */
    int devices;
    struct fair_device device[FAIR_DEVICES_MOST];
    uint64_t calls; /* so far */
    double clock;   /* of users */
    struct fair_user *users;
};

void fair_order_begin(struct fair_order *order, int devices, int places, int large_places);

/* Frees it, when all have left. */
void fair_order_free(struct fair_order *order);

/* Enters one more lane of a process. Returns NULL without memory. */
struct fair_process *fair_order_join(struct fair_order *order, uint64_t user, double weight,
                                     int pid);

/* Leaves it, with no call under way. What a user has had is kept. */
void fair_order_leave(struct fair_order *order, struct fair_process *process);

/* No call gets a place on a device any more; its processes go to others. Returns whether that is
 * news. */
bool fair_order_leave_out(struct fair_order *order, int device);

/* A call waits from now on. *call is the caller's, until it has ended or been cancelled. */
void fair_order_wait(struct fair_order *order, struct fair_call *call, struct fair_process *process,
                     bool large, double now_ms);

/* Whether a call of a process would run at once, if it were the only one to wait; *device: where,
 * or where the process is. */
bool fair_order_has_place(const struct fair_order *order, const struct fair_process *process,
                          bool large, int *device);

/* Returns the next call that runs, from now on, on its `device`; NULL: none may. */
struct fair_call *fair_order_next(struct fair_order *order, double now_ms);

/* A call that waits does not any more. */
void fair_order_cancel(struct fair_call *call);

/* A call that runs has ended. counts: its time does; not that of one that has set up what others
 * use, too. */
void fair_order_end(struct fair_order *order, struct fair_call *call, bool counts, double now_ms);

#endif
