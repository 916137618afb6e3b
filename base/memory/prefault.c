#define _GNU_SOURCE
#include "prefault.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/thread/signal_mask.h"
#include "base/thread/thread_spawn.h"

#ifndef MADV_POPULATE_WRITE
#    define MADV_POPULATE_WRITE 23
#endif

/* What a thread takes at a time; of shorter runs, several. */
enum { CHUNK_BYTES = 4 << 20, STACK_BYTES = 256 << 10 };

static int64_t runs_of_chunk(const struct prefault_runs *r)
{
    return r->bytes < CHUNK_BYTES ? CHUNK_BYTES / r->bytes : 1;
}

/* A run that is longer than a chunk is one nevertheless: the kernel is asked for it bit by bit. */
static bool take_run(const struct prefault *p, char *first, int64_t bytes)
{
    char *at = (char *)((uintptr_t)first & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1));
    for (int64_t left = first + bytes - at; left > 0; at += CHUNK_BYTES, left -= CHUNK_BYTES) {
        const int64_t now = left < CHUNK_BYTES ? left : CHUNK_BYTES;
        int result;
        do
            result = madvise(at, (size_t)now, MADV_POPULATE_WRITE);
        while (result != 0 && errno == EINTR && !p->stop);
        if (result != 0 || p->stop)
            return false;
    }
    return true;
}

/* Returns whether there was a chunk with this number, and the kernel has given its pages. */
static bool take_chunk(const struct prefault *p, int64_t number)
{
    for (int i = 0; i < p->sets; i++) {
        const struct prefault_runs *r = &p->runs[i];
        if (r->bytes <= 0 || r->count <= 0)
            continue;
        const int64_t each = runs_of_chunk(r), chunks = (r->count + each - 1) / each;
        if (number >= chunks) {
            number -= chunks;
            continue;
        }
        const int64_t first = number * each,
                      end = r->count - first < each ? r->count : first + each;
        for (int64_t run = first; run < end; run++)
            if (!take_run(p, r->first + run * r->step, r->bytes))
                return false;
        return true;
    }
    return false;
}

static void *run_prefault_thread(void *prefault)
{
    struct prefault *p = prefault;
    thread_spawn_begin("accel-pages");
    while (!p->stop && take_chunk(p, p->next++))
        continue;
    pthread_mutex_lock(&p->lock);
    p->threads--;
    pthread_cond_signal(&p->done);
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

void prefault_begin(struct prefault *p, const struct prefault_runs *runs, int sets, int threads)
{
    sigset_t signals;
    *p = (struct prefault){.runs = runs, .sets = sets};
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->done, NULL);
    signals_but_faults(&signals);
    pthread_sigmask(SIG_BLOCK, &signals, &p->before);
    for (int i = 0; i < threads && i < PREFAULT_MOST; i++) {
        pthread_mutex_lock(&p->lock);
        p->threads++;
        pthread_mutex_unlock(&p->lock);
        if (thread_spawn(run_prefault_thread, p, STACK_BYTES))
            continue;
        pthread_mutex_lock(&p->lock);
        p->threads--;
        pthread_mutex_unlock(&p->lock);
        break;
    }
}

void prefault_end(struct prefault *p)
{
    p->stop = true;
    pthread_mutex_lock(&p->lock);
    while (p->threads > 0)
        pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->done);
    pthread_sigmask(SIG_SETMASK, &p->before, NULL);
}
