#define _GNU_SOURCE
#include "log_inner.h"

#include <math.h>
#include <string.h>

static uint64_t key_of(const struct log_line *line)
{
    static const char *const names[] = {"host", "pid", "tid"};
    uint64_t key = 14695981039346656037u;
    for (size_t i = 0; i <= sizeof names / sizeof *names; i++) {
        const char *text = i == 0 ? line->path : log_string(line, names[i - 1]);
        for (; text && *text; text++)
            key = (key ^ (unsigned char)*text) * 1099511628211u;
        key = (key ^ 0xff) * 1099511628211u;
    }
    return key | 1;
}

/* Returns the thread of a line. Once all places are taken, threads share them. */
static struct inner_thread *find_thread(struct log_inner *inner, const struct log_line *line)
{
    const uint64_t key = key_of(line);
    uint64_t at = key;
    for (;; at++) {
        struct inner_thread *thread = &inner->thread[at % INNER_THREADS];
        if (thread->key == key)
            return thread;
        if (thread->key == 0 || inner->threads == INNER_THREADS) {
            inner->threads += thread->key == 0;
            *thread = (struct inner_thread){.key = key};
            return thread;
        }
    }
}

double log_inner_own_ms(struct log_inner *inner, const struct log_line *line, double ms)
{
    struct inner_thread *thread = find_thread(inner, line);
    const int depth = (int)fmin(fmax(0, log_number(line, "depth", 0)), INNER_DEPTHS - 2);
    const double below = thread->below_ms[depth + 1];
    memset(&thread->below_ms[depth + 1], 0, (INNER_DEPTHS - 1 - (size_t)depth) * sizeof(double));
    thread->below_ms[depth] += fmax(0, ms);
    return ms < 0 ? ms : fmax(0, ms - below);
}
