/*
 * A thread that gives idle device memory back after a while. It is made when something lies idle and ends when nothing does, so
 * that it keeps no process alive. The program's signals are not for it; a fork's child does not have it; it enters CUDA as calls do,
 * so exit() waits for it (ending.h).
 */
#ifndef ACCEL_IDLE_H
#define ACCEL_IDLE_H

/* Something lies idle. Where there can be no thread, it is given back at once. Our context must be current; thread-safe. */
void idle_watch(void);

/* Waits until the thread is not in CUDA. Where nothing is idle, it does not enter again. */
void idle_await(void);

#endif
