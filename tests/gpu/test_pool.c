/*
 * What the pool of device memory does while the driver is slow, which frees only when all work of
 * the context is done: see gpu/cuda/pool.c. Who asks for what is there does not wait for that; who
 * needs what is being freed does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "gpu/cuda/device.h"
#include "tests/lib/devices.h"
#include "tests/lib/gate.h"

enum { SMALL = 100 << 10, LARGE = 600 << 10, BUDGET = 1 << 20 };

static struct cuda_device *device;
static __typeof__(cuda_api) real;
static struct gate gate;

static CUresult free_slowly(CUdeviceptr block)
{
    gate_pass(&gate);
    return real.cuMemFree_p(block);
}

static CUresult allocate_slowly(CUdeviceptr *block, size_t bytes)
{
    gate_pass(&gate);
    return real.cuMemAlloc_p(block, bytes);
}

static CUresult free_in_vain(CUdeviceptr block)
{
    real.cuMemFree_p(block);
    return CUDA_ERROR_UNKNOWN;
}

static CUresult little_is_free(size_t *left, size_t *all)
{
    *left = *all = LARGE / 2;
    return CUDA_SUCCESS;
}

static CUdeviceptr get(int64_t bytes)
{
    CUdeviceptr block = 0;
    bool grew;
    return pool_get(device, bytes, &block, &grew) == GPU_OK ? block : 0;
}

static void *trim(void *unused)
{
    struct gpu_scope scope;
    if (gpu_enter(device, &scope) == GPU_OK) {
        pool_trim(device);
        gpu_leave(&scope);
    }
    return unused;
}

/* Gets a block, and says whether the driver had gone on before. */
static void *get_large(void *bytes)
{
    struct gpu_scope scope;
    bool after = false;
    if (gpu_enter(device, &scope) != GPU_OK)
        return NULL;
    CUdeviceptr block = get((int64_t)(intptr_t)bytes);
    if (block) {
        after = atomic_load(&gate.passed);
        pool_put(device, block);
    }
    gpu_leave(&scope);
    return block ? after ? "after" : "before" : "not";
}

static struct gpu_scope scope;

static int begin(void **state)
{
    (void)state;
    real = cuda_api;
    gate_init(&gate);
    /* Whoever leaves idle memory takes the idle thread to look after it: tests do what that does by
     * themselves, when they want. */
    atomic_store(&device->watched, true);
    return gpu_enter(device, &scope) == GPU_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    cuda_api = real;
    pool_trim(device);
    gpu_leave(&scope);
    return 0;
}

static pthread_t begin_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
    return thread;
}

static void others_do_not_wait_for_a_free(void **state)
{
    (void)state;
    pool_put(device, get(LARGE));
    CUDA(cuMemFree) = free_slowly;
    pthread_t thread = begin_thread(trim, NULL);
    sem_wait(&gate.reached);
    CUdeviceptr block = get(SMALL);
    assert_int_not_equal(block, 0);
    pool_put(device, block);
    pool_settle(device);
    assert_true(pool_has_idle(device));
    assert_true(pool_available(device, &(struct gpu_user){.id = 0}) >= SMALL);
    bool waited = atomic_load(&gate.passed);
    sem_post(&gate.open);
    sem_post(&gate.open); /* the small one may go, too */
    pthread_join(thread, NULL);
    assert_false(waited);
}

static void others_do_not_wait_for_an_allocation(void **state)
{
    (void)state;
    pool_put(device, get(SMALL));
    CUDA(cuMemAlloc) = allocate_slowly;
    pthread_t thread = begin_thread(get_large, (void *)(intptr_t)LARGE);
    sem_wait(&gate.reached);
    CUdeviceptr block = get(SMALL);
    bool waited = atomic_load(&gate.passed);
    pool_put(device, block);
    sem_post(&gate.open);
    pthread_join(thread, NULL);
    assert_int_not_equal(block, 0);
    assert_false(waited);
}

/* The budget counts what has not gone yet, and what is going is not missing. */
static void who_needs_the_room_waits(void **state)
{
    void *when;
    (void)state;
    pool_put(device, get(LARGE));
    CUDA(cuMemFree) = free_slowly;
    pthread_t first = begin_thread(trim, NULL);
    sem_wait(&gate.reached);
    pthread_t second = begin_thread(get_large, (void *)(intptr_t)(LARGE / 4 * 5));
    const struct timespec while_it_asks = {0, 50000000};
    nanosleep(&while_it_asks, NULL);
    sem_post(&gate.open);
    pthread_join(first, NULL);
    sem_post(&gate.open);
    pthread_join(second, &when);
    assert_string_equal(when, "after");
}

/* A call may plan with what is leaving: it waits for that where it asks for the memory. */
static void what_is_leaving_can_be_had(void **state)
{
    (void)state;
    pool_put(device, get(LARGE));
    const int64_t before = pool_available(device, &(struct gpu_user){.id = 0});
    CUDA(cuMemFree) = free_slowly;
    pthread_t thread = begin_thread(trim, NULL);
    sem_wait(&gate.reached);
    const int64_t meanwhile = pool_available(device, &(struct gpu_user){.id = 0});
    sem_post(&gate.open);
    pthread_join(thread, NULL);
    assert_int_equal(meanwhile, before);
    assert_int_equal(pool_available(device, &(struct gpu_user){.id = 0}), before);
}

static void a_failing_free_is_the_end_of_the_block(void **state)
{
    (void)state;
    for (int i = 0; i < 5; i++) { /* of more than the budget in all */
        pool_put(device, get(LARGE));
        CUDA(cuMemFree) = free_in_vain;
        pool_trim(device);
        cuda_api = real;
        assert_false(pool_has_idle(device));
    }
    CUdeviceptr block = get(LARGE);
    assert_int_not_equal(block, 0);
    pool_put(device, block);
}

/* ---- Kept blocks ---- */

static CUdeviceptr find(uint64_t key)
{
    const struct gpu_key wanted = {{key, 1}};
    CUdeviceptr block = 0;
    return pool_find(device, &wanted, 0, 0, &block) ? block : 0;
}

static CUdeviceptr keep(uint64_t key, int64_t bytes)
{
    const struct gpu_key own = {{key, 1}};
    const CUdeviceptr block = get(bytes);
    pool_cache(device, block, &own);
    return block;
}

static void what_is_kept_is_found_by_all(void **state)
{
    (void)state;
    const CUdeviceptr block = keep(7, SMALL);
    assert_int_equal(find(8), 0);
    assert_true(find(7) == block && find(7) == block); /* three have it */
    pool_put(device, block);
    pool_put(device, block);
    assert_false(pool_has_idle(device));
    pool_put(device, block);
    assert_true(pool_has_idle(device));
    const CUdeviceptr other = get(SMALL); /* nobody else writes to it */
    assert_true(other != block && find(7) == block);
    pool_put(device, other);
    pool_put(device, block);
}

/* Another process may tell the key of something else. */
static void what_is_smaller_than_wanted_is_not_found(void **state)
{
    const struct gpu_key own = {{7, 1}};
    CUdeviceptr block;
    (void)state;
    const CUdeviceptr kept = keep(7, SMALL);
    assert_false(pool_find(device, &own, 0, 2 * SMALL, &block));
    pool_put(device, kept);
    assert_true(pool_find(device, &own, 0, SMALL, &block) && block == kept);
    pool_put(device, kept);
    assert_false(pool_find(device, &own, 0, 2 * SMALL, &block) || !pool_has_idle(device));
}

static void what_is_kept_is_listed(void **state)
{
    uint64_t word[4];
    (void)state;
    const CUdeviceptr blocks[] = {keep(7, SMALL), get(SMALL), keep(8, SMALL)};
    assert_int_equal(pool_list_cached(device, 0, word, 4), 2);
    assert_int_equal(word[0] + word[1], 15);
    assert_int_equal(pool_list_cached(device, 0, word, 1), 1);
    assert_int_equal(pool_list_cached(device, 1, word, 4), 0); /* another user */
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
        pool_put(device, blocks[i]);
}

static void the_second_of_a_key_is_not_kept(void **state)
{
    (void)state;
    const CUdeviceptr first = keep(7, SMALL), second = keep(7, SMALL);
    pool_put(device, first);
    pool_put(device, second);
    assert_true(find(7) == first && get(SMALL) == second);
    pool_put(device, first);
    pool_put(device, second);
}

static void what_is_kept_gives_way(void **state)
{
    (void)state;
    const CUdeviceptr used = keep(1, SMALL);
    pool_put(device, keep(2, LARGE - 2 * SMALL));
    const CUdeviceptr block = get(LARGE); /* it does not fit beside both */
    assert_true(block && find(2) == 0 && find(1) == used);
    pool_put(device, used);
    pool_put(device, used);
    pool_put(device, block);
    pool_trim(device);
    assert_int_equal(find(1), 0);
}

/* The largest block without contents goes first, then the kept one that nobody has asked for for
 * longest; two are less than a quarter. */
static void the_last_used_stay(void **state)
{
    (void)state;
    CUDA(cuMemGetInfo) = little_is_free;
    for (uint64_t key = 1; key <= 3; key++)
        pool_put(device, keep(key, SMALL));
    pool_put(device, get(LARGE));
    pool_put(device, find(1));
    pool_settle(device);
    const CUdeviceptr first = find(1), second = find(2), third = find(3);
    assert_true(first && !second && third);
    pool_put(device, first);
    pool_put(device, third);
}

/* As if so much time had passed. */
static void let_pass(double ms)
{
    for (int i = 0; i < device->pool.count; i++)
        device->pool.block[i].idle_since -= ms;
}

static void what_is_kept_stays_for_seconds(void **state)
{
    (void)state;
    const CUdeviceptr kept = keep(1, SMALL);
    pool_put(device, get(SMALL));
    pool_put(device, kept);
    let_pass(9000);
    assert_true(pool_give_back(device));
    assert_int_equal(device->pool.count, 1);
    assert_true(find(1) == kept);
    pool_put(device, kept);
    let_pass(10000);
    assert_false(pool_give_back(device));
    assert_int_equal(find(1), 0);
}

/* ---- Memory that other devices may use ---- */

static CUdeviceptr get_lent(int64_t bytes)
{
    CUdeviceptr block = 0;
    bool grew;
    const enum gpu_status status = pool_get_lent(device, bytes, &block, &grew);
    if (status == GPU_UNSUPPORTED && is_real_gpu())
        skip(); /* of a virtual GPU's driver, for one */
    return status == GPU_OK ? block : 0;
}

static void what_is_lent_is_for_lending(void **state)
{
    const struct gpu_key key = {{7, 1}};
    CUdeviceptr found;
    (void)state;
    const CUdeviceptr lent = get_lent(SMALL);
    pool_cache(device, lent, &key);
    assert_true(lent && !pool_find(device, &key, 0, 0, &found));
    pool_put(device, lent);
    const CUdeviceptr other = get(SMALL);
    assert_true(other && other != lent);
    pool_put(device, other);
    assert_true(get_lent(SMALL) == lent && get(SMALL) == other);
    pool_put(device, lent);
    pool_put(device, other);
}

/* The budget is that of all blocks; the driver's free memory that of the blocks that are left. */
static void what_is_lent_counts_and_gives_way(void **state)
{
    (void)state;
    const CUdeviceptr lent = get_lent(LARGE);
    assert_true(lent && !get(BUDGET - LARGE + 1) && !get_lent(BUDGET - LARGE + 1));
    pool_put(device, lent);
    assert_true(device->pool.idle == device->pool.total && device->pool.total >= LARGE);
    const CUdeviceptr block = get(LARGE);
    assert_true(block && block != lent);
    assert_int_equal(device->pool.count, 1);
    pool_put(device, block);
    let_pass(1000);
    assert_false(pool_give_back(device));
    assert_int_equal(device->pool.total, 0);
}

/* ---- What others do while the driver refuses ---- */

static CUdeviceptr of_another;
static int refusals;

/* Another call takes a block meanwhile and puts it back. */
static CUresult refuse_beside_another(CUdeviceptr *block, size_t bytes)
{
    if (refusals++ > 0)
        return real.cuMemAlloc_p(block, bytes);
    pool_put(device, get(SMALL));
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* It has what was put back in the meantime given back, and so has room. */
static void what_is_put_back_meanwhile_gives_way(void **state)
{
    (void)state;
    refusals = 0;
    CUDA(cuMemAlloc) = refuse_beside_another;
    const CUdeviceptr block = get(LARGE);
    assert_int_not_equal(block, 0);
    assert_int_equal(refusals, 3);
    assert_int_equal(device->pool.count, 1);
    pool_put(device, block);
}

static pthread_t giver;

static void *put_and_trim(void *unused)
{
    struct gpu_scope scope;
    if (gpu_enter(device, &scope) == GPU_OK) {
        pool_put(device, get(SMALL));
        pool_trim(device);
        gpu_leave(&scope);
    }
    return unused;
}

/* Another thread gives one back, which the driver is slow to free. */
static CUresult refuse_beside_a_free(CUdeviceptr *block, size_t bytes)
{
    if (refusals++ > 0)
        return real.cuMemAlloc_p(block, bytes);
    giver = begin_thread(put_and_trim, NULL);
    sem_wait(&gate.reached);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

/* The gate opens when somebody waits for what leaves: the linker sends calls here. */
static bool waiting_opens;
int __real_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *mutex)
{
    if (waiting_opens)
        sem_post(&gate.open);
    return __real_pthread_cond_wait(condition, mutex);
}

static void what_is_leaving_meanwhile_is_waited_for(void **state)
{
    (void)state;
    refusals = 0;
    waiting_opens = true;
    CUDA(cuMemAlloc) = refuse_beside_a_free;
    CUDA(cuMemFree) = free_slowly;
    const CUdeviceptr block = get(LARGE);
    waiting_opens = false;
    assert_int_equal(pthread_join(giver, NULL), 0);
    CUDA(cuMemFree) = real.cuMemFree_p;
    assert_true(block && atomic_load(&gate.passed));
    pool_put(device, block);
}

static CUresult refuse_once(CUdeviceptr *block, size_t bytes)
{
    return refusals++ > 0 ? real.cuMemAlloc_p(block, bytes) : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult take_while_it_frees(CUdeviceptr block)
{
    CUDA(cuMemFree) = real.cuMemFree_p;
    of_another = get(LARGE);
    return real.cuMemFree_p(block);
}

/* What the driver frees for one call, another one gets: they have no more than the budget. */
static void the_budget_holds_while_the_driver_frees(void **state)
{
    (void)state;
    pool_put(device, get(SMALL));
    refusals = 0;
    CUDA(cuMemAlloc) = refuse_once;
    CUDA(cuMemFree) = take_while_it_frees;
    assert_int_equal(get(LARGE), 0);
    assert_int_not_equal(of_another, 0);
    assert_in_range(device->pool.total, LARGE, BUDGET);
    pool_put(device, of_another);
}

static void a_pool_has_so_many_blocks(void **state)
{
    const int64_t budget = device->budget;
    static CUdeviceptr block[POOL_BLOCKS];
    (void)state;
    device->budget = INT64_C(64) << 20;
    for (int i = 0; i < POOL_BLOCKS; i++)
        assert_int_not_equal(block[i] = get(4096), 0);
    assert_int_equal(get(4096), 0);
    pool_put(device, block[7]);
    assert_int_equal(get(4096), block[7]);
    pool_put(device, block[7]); /* a larger one takes its place */
    assert_int_not_equal(block[7] = get(LARGE), 0);
    for (int i = 0; i < POOL_BLOCKS; i++)
        pool_put(device, block[i]);
    device->budget = budget;
}

static int start(void **state)
{
    *state = start_device(tested_gpu(), (struct gpu_config){.memory_bytes = BUDGET});
    device = cuda_device_of(*state);
    return device ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(others_do_not_wait_for_a_free, begin, end),
        cmocka_unit_test_setup_teardown(others_do_not_wait_for_an_allocation, begin, end),
        cmocka_unit_test_setup_teardown(who_needs_the_room_waits, begin, end),
        cmocka_unit_test_setup_teardown(what_is_leaving_can_be_had, begin, end),
        cmocka_unit_test_setup_teardown(a_failing_free_is_the_end_of_the_block, begin, end),
        cmocka_unit_test_setup_teardown(what_is_kept_is_found_by_all, begin, end),
        cmocka_unit_test_setup_teardown(the_second_of_a_key_is_not_kept, begin, end),
        cmocka_unit_test_setup_teardown(what_is_kept_gives_way, begin, end),
        cmocka_unit_test_setup_teardown(the_last_used_stay, begin, end),
        cmocka_unit_test_setup_teardown(what_is_kept_stays_for_seconds, begin, end),
        cmocka_unit_test_setup_teardown(what_is_smaller_than_wanted_is_not_found, begin, end),
        cmocka_unit_test_setup_teardown(what_is_kept_is_listed, begin, end),
        cmocka_unit_test_setup_teardown(what_is_lent_is_for_lending, begin, end),
        cmocka_unit_test_setup_teardown(what_is_lent_counts_and_gives_way, begin, end),
        cmocka_unit_test_setup_teardown(what_is_put_back_meanwhile_gives_way, begin, end),
        cmocka_unit_test_setup_teardown(what_is_leaving_meanwhile_is_waited_for, begin, end),
        cmocka_unit_test_setup_teardown(the_budget_holds_while_the_driver_frees, begin, end),
        cmocka_unit_test_setup_teardown(a_pool_has_so_many_blocks, begin, end),
    };
    return cmocka_run_group_tests(tests, start, stop_device);
}
