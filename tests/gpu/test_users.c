/*
 * Device memory of several users (gpu_host.user): what one has left there, no other one reads or
 * finds; while one alone is there, nothing is cleared; each has so much.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/lib/refusing_driver.h"

enum { ALICE = 1001, BOB = 1002, BYTES = 100 << 10 };

static int cleared; /* how often memory was */

static CUresult clear_and_count(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    cleared++;
    return real.cuMemsetD8Async_p(to, value, bytes, stream);
}

static CUresult clear_in_vain(CUdeviceptr to, unsigned char value, size_t bytes, CUstream stream)
{
    (void)to, (void)value, (void)bytes, (void)stream;
    return CUDA_ERROR_UNKNOWN;
}

/* As a new pool is. */
static int begin(void **state)
{
    const int begun = begin_work(state);
    pool_trim(device);
    device->pool.first_owner = 0;
    device->pool.shared = false;
    CUDA(cuMemsetD8Async) = clear_and_count;
    cleared = 0;
    return begun;
}

static void become(uint64_t id, int64_t most)
{
    work.host->user = (struct gpu_user){id, most};
}

/* A call that takes memory and writes there. */
static void write_secret(uint64_t user, int64_t bytes)
{
    char *secret = filled(bytes, 'x');
    const struct host_rectangle from = host_whole(secret, bytes, 1, bytes, 1);
    become(user, 0);
    assert_int_equal(stream_ctx_upload(work.ctx, (struct dmat){memory_of(bytes), bytes}, &from),
                     GPU_OK);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    free(secret);
}

/* A call that takes memory, and brings down what is in it. Returns how many bytes are the
 * secret's. */
static int64_t read_secret(uint64_t user, int64_t bytes)
{
    char *seen = filled(bytes, '?');
    int64_t cols, rows, secret = 0;
    const struct host_rectangle to = host_whole(seen, bytes, 1, bytes, 1);
    become(user, 0);
    assert_int_equal(
        stream_ctx_download(work.ctx, &to, (struct dmat){memory_of(bytes), bytes}, &cols, &rows),
        GPU_OK);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    for (int64_t i = 0; i < bytes; i++)
        secret += seen[i] == 'x';
    free(seen);
    return secret;
}

static void what_one_has_left_no_other_one_reads(void **state)
{
    (void)state;
    write_secret(ALICE, BYTES);
    assert_int_equal(read_secret(ALICE, BYTES), BYTES); /* it is that memory */
    assert_int_equal(cleared, 0);
    assert_int_equal(read_secret(BOB, BYTES), 0);
    assert_int_equal(cleared, 1);
}

static void nor_of_a_block_that_is_larger(void **state)
{
    (void)state;
    write_secret(ALICE, BYTES);
    assert_int_equal(read_secret(BOB, BYTES * 3 / 4), 0); /* it is Bob's from then on */
    assert_int_equal(read_secret(BOB, BYTES), 0);
    assert_int_equal(cleared, 1);
}

static void nor_of_what_the_driver_gives_again(void **state)
{
    (void)state;
    write_secret(ALICE, BYTES);
    become(BOB, 0);
    const CUdeviceptr other = memory_of(4096);
    (void)other;
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    write_secret(ALICE, BYTES);
    pool_trim(device);
    assert_int_equal(read_secret(BOB, BYTES), 0);
    assert_int_equal(cleared, 2);
}

static void what_cannot_be_cleared_is_nobody_s(void **state)
{
    gpu_address memory;
    (void)state;
    write_secret(ALICE, BYTES);
    become(BOB, 0);
    CUDA(cuMemsetD8Async) = clear_in_vain;
    assert_int_not_equal(gpu_memory(&work)->take(&work, BYTES, &memory), GPU_OK);
    gpu_memory(&work)->drop(&work);
    CUDA(cuMemsetD8Async) = clear_and_count;
    assert_int_equal(read_secret(BOB, BYTES), 0);
    assert_int_equal(cleared, 1);
}

static void own_memory_is_taken_first(void **state)
{
    (void)state;
    write_secret(ALICE, BYTES);
    write_secret(BOB, BYTES);
    assert_int_equal(cleared, 1);
    for (int i = 0; i < 4; i++) {
        become(i % 2 ? ALICE : BOB, 0);
        const CUdeviceptr first = memory_of(BYTES);
        become(i % 2 ? BOB : ALICE, 0);
        assert_int_not_equal(memory_of(BYTES), first);
        assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    }
    assert_int_equal(cleared, 2); /* the second one's first block */
}

static void the_workspace_is_cleared_between_users(void **state)
{
    char seen[4096];
    (void)state;
    if (stream_ctx_prepare_beside(work.ctx) != GPU_OK)
        skip();
    assert_int_equal(stream_ctx_serve(work.ctx, ALICE), GPU_OK);
    cleared = 0;
    char *secret = filled(sizeof seen, 'x');
    const struct host_rectangle from = host_whole(secret, sizeof seen, 1, sizeof seen, 1),
                                to = host_whole(seen, sizeof seen, 1, sizeof seen, 1);
    const struct dmat workspace = {work.ctx->workspace, sizeof seen};
    assert_int_equal(stream_ctx_upload(work.ctx, workspace, &from), GPU_OK);
    assert_int_equal(stream_ctx_serve(work.ctx, ALICE), GPU_OK);
    assert_int_equal(cleared, 0);
    assert_int_equal(stream_ctx_serve(work.ctx, BOB), GPU_OK);
    assert_int_equal(stream_ctx_download_whole(work.ctx, &to, workspace), GPU_OK);
    for (size_t i = 0; i < sizeof seen; i++)
        assert_int_equal(seen[i], 0);
    free(secret);
}

/* ---- The device cache ---- */

static CUdeviceptr cache_as(uint64_t user, const struct gpu_key *key)
{
    become(user, 0);
    const CUdeviceptr memory = memory_of(BYTES);
    assert_int_equal(gpu_memory(&work)->cache(&work, memory, key), GPU_OK);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    return memory;
}

static CUdeviceptr find_as(uint64_t user, const struct gpu_key *key)
{
    gpu_address memory = 0;
    become(user, 0);
    const bool found = gpu_memory(&work)->find(&work, key, 0, &memory);
    assert_int_equal(found, work.device->functions->has_cached(work.device, key, user));
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    return found ? memory : 0;
}

static void what_one_has_cached_no_other_one_finds(void **state)
{
    const struct gpu_key key = {{1, 2}};
    (void)state;
    const CUdeviceptr of_alice = cache_as(ALICE, &key);
    assert_int_equal(find_as(ALICE, &key), of_alice);
    assert_int_equal(find_as(BOB, &key), 0);
    assert_int_equal(find_as(0, &key), 0);
    const CUdeviceptr of_bob = cache_as(BOB, &key);
    assert_int_not_equal(of_bob, of_alice);
    assert_int_equal(find_as(ALICE, &key), of_alice);
    assert_int_equal(find_as(BOB, &key), of_bob);
    become(BOB, 0);
    gpu_memory(&work)->invalidate(&work, &key);
    assert_int_equal(find_as(BOB, &key), 0);
    assert_int_equal(find_as(ALICE, &key), of_alice);
}

/* ---- How much each may have ---- */

static void calls_of_a_user_have_so_much(void **state)
{
    gpu_address memory;
    (void)state;
    become(ALICE, 3 * BYTES);
    assert_true(gpu_memory(&work)->available(&work) <= 3 * BYTES);
    memory_of(BYTES);
    memory_of(BYTES);
    assert_true(gpu_memory(&work)->available(&work) < BYTES + BYTES / 2);
    assert_int_equal(gpu_memory(&work)->take(&work, 2 * BYTES, &memory), GPU_NO_MEMORY);
    become(BOB, 3 * BYTES);
    memory_of(2 * BYTES);
    become(ALICE, 3 * BYTES);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
    memory_of(3 * BYTES);
    assert_int_equal(gpu_work_give_back(&work), GPU_OK);
}

static void bytes_are_counted_by_user(void **state)
{
    const struct gpu_key key = {{3, 4}};
    const uint64_t alice = ALICE, bob = BOB;
    int64_t held, cached, of_all, cached_of_all;
    (void)state;
    write_secret(ALICE, 9 * BYTES);
    write_secret(BOB, 4 * BYTES);
    cache_as(BOB, &key);
    gpu_count_memory(work.device, &alice, &held, &cached);
    assert_true(held >= 9 * BYTES && held < 12 * BYTES && cached == 0);
    gpu_count_memory(work.device, &bob, &held, &cached);
    assert_true(held >= 5 * BYTES && cached >= BYTES && cached < held);
    gpu_count_memory(work.device, NULL, &of_all, &cached_of_all);
    assert_true(of_all >= held + 9 * BYTES && cached_of_all == cached);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end_work)
    const struct CMUnitTest tests[] = {TEST(what_one_has_left_no_other_one_reads),
                                       TEST(nor_of_a_block_that_is_larger),
                                       TEST(nor_of_what_the_driver_gives_again),
                                       TEST(what_cannot_be_cleared_is_nobody_s),
                                       TEST(own_memory_is_taken_first),
                                       TEST(the_workspace_is_cleared_between_users),
                                       TEST(what_one_has_cached_no_other_one_finds),
                                       TEST(calls_of_a_user_have_so_much),
                                       TEST(bytes_are_counted_by_user)};
    return cmocka_run_group_tests(tests, start_work, stop_device);
}
