#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "dispatch/decide.h"
#include "dispatch/cost/known_gpus.h"
#include "dispatch/cost/model.h"
#include "call/shape.h"
#include "ops/typical.h"
#include "ops/op.h"
#include "tests/lib/routine.h"

static struct model_work work_of(const char *name, int64_t m, int64_t n, int64_t k)
{
    const int64_t size[ACCEL_DIMENSIONS] = {m, n, k, k};
    struct accel_call call;
    struct model_work work;
    shape_typical(&call, routine(name), size);
    model_work_of(&call, false, &work);
    return work;
}

static void assert_near(double a, double b, double relative)
{
    if (!(fabs(a - b) <= relative * fabs(b)))
        fail_msg("%g is not near %g", a, b);
}

static void work_of_a_product(void **state)
{
    const int64_t size[ACCEL_DIMENSIONS] = {64, 32, 128, 0};
    struct accel_call call;
    struct model_work work;
    (void)state;
    shape_typical(&call, routine("dgemm"), size);
    model_work_of(&call, false, &work);
    assert_near(work.term[MODEL_CALL], 1, 0);
    assert_near(work.term[MODEL_STEP], 32, 0);
    assert_near(work.term[MODEL_ELEMENT], (64 * 128 + 128 * 32 + 64 * 32) * 1e-6, 1e-12);
    assert_near(work.term[MODEL_OPERATION], 2.0 * 64 * 32 * 128 * 1e-9, 1e-12);
    assert_near(work.up_bytes, 8 * (64 * 128 + 128 * 32 + 64 * 32), 0);
    assert_near(work.down_bytes, 8 * 64 * 32, 0);
    assert_near((double)work.place[ACCEL_m], 6, 0);
    assert_near((double)work.place[ACCEL_n], 5, 0);
    assert_near((double)work.place[ACCEL_k], 7, 0);
    assert_near((double)work.place[ACCEL_nrhs], 0, 0);
    /* What is there already is not moved; without beta C is not read. */
    call.span[ACCEL_a].place = ACCEL_DEVICE;
    call.blas.scalar[ACCEL_beta].re = 0;
    model_work_of(&call, false, &work);
    assert_near(work.up_bytes, 8 * 128 * 32, 0);
    assert_near(work.down_bytes, 8 * 64 * 32, 0);
}

/* Of a triangle of LAPACK's, little more than what is stored goes up, and comes down; eigenvectors
 * take all of its place. */
static void triangles_of_lapack(void **state)
{
    const int64_t size[ACCEL_DIMENSIONS] = {4000, 4000, 4000, 10};
    const double whole = 8.0 * 4000 * 4000, sides = 8.0 * 4000 * 10;
    struct accel_call call;
    struct model_work work;
    (void)state;
    shape_typical(&call, routine("dtrtri"), size);
    model_work_of(&call, true, &work);
    assert_in_range((int64_t)work.up_bytes, (int64_t)(0.5 * whole), (int64_t)(0.55 * whole));
    assert_in_range((int64_t)work.down_bytes, (int64_t)(0.5 * whole), (int64_t)(0.55 * whole));
    shape_typical(&call, routine("dpotrs"), size);
    model_work_of(&call, true, &work);
    assert_in_range((int64_t)(work.up_bytes - sides), (int64_t)(0.5 * whole),
                    (int64_t)(0.55 * whole));
    assert_near(work.down_bytes, sides, 0);
    shape_typical(&call, routine("dsyevd"), size);
    model_work_of(&call, true, &work);
    assert_in_range((int64_t)work.up_bytes, (int64_t)(0.5 * whole), (int64_t)(0.55 * whole));
    assert_true(work.down_bytes >= whole);
    shape_typical(&call, routine("dgetrf"), size);
    model_work_of(&call, true, &work);
    assert_near(work.up_bytes, whole, 0);
}

/* A matrix that all products read goes up once: with a stride of 0, or one pointer again and
 * again. */
static void shared_matrices_go_up_once(void **state)
{
    static double a[1];
    static void *pointers[100];
    const int64_t size[ACCEL_DIMENSIONS] = {256, 8, 256, 0};
    struct accel_call call;
    struct model_work work;
    (void)state;
    shape_typical(&call, routine("dgemm_batch_strided"), size);
    shape_operands(&call);
    call.batch = 100;
    call.blas.scalar[ACCEL_beta].re = 0;
    const double b = 256 * 8 * 8 * 100.0, one = 256 * 256 * 8;
    model_work_of(&call, true, &work);
    assert_near(work.up_bytes, 100 * one + b, 0);
    call.span[ACCEL_a].stride = 0;
    model_work_of(&call, true, &work);
    assert_near(work.up_bytes, one + b, 0);
    assert_near(work.down_bytes, b, 0);
    for (int i = 0; i < 100; i++)
        pointers[i] = a;
    call.span[ACCEL_a].array = pointers;
    call.span[ACCEL_a].ptr = a;
    model_work_of(&call, true, &work);
    assert_near(work.up_bytes, one + b, 0);
    /* Pointers that a wrong argument keeps BLAS from reading are not read. */
    call.span[ACCEL_a].array = (void **)(uintptr_t)8;
    call.span[ACCEL_a].ptr = NULL;
    model_work_of(&call, true, &work);
    assert_near(work.up_bytes, 100 * one + b, 0);
}

/* Times made of the four terms are found again, also at sizes that were not measured. */
static void fit_finds_the_terms(void **state)
{
    const double truth[MODEL_TERMS] = {0.05, 0.0002, 0.3, 0.4};
    struct model_work works[12];
    struct model_curve curve = {.points = 0};
    double ms[12];
    int count = 0;
    (void)state;
    for (int64_t n = 16; n <= 2048; n *= 2) {
        works[count++] = work_of("dgetrf", n, n, 0);
        if (n <= 128)
            works[count++] = work_of("dgetrf", 16 * n, n, 0);
    }
    for (int p = 0; p < count; p++) {
        ms[p] = 0;
        for (int i = 0; i < MODEL_TERMS; i++)
            ms[p] += truth[i] * works[p].term[i];
    }
    model_fit(&curve, works, ms, count);
    for (int i = 0; i < MODEL_TERMS; i++)
        assert_near(curve.ms[i], truth[i], 1e-6);
    const struct model_work beyond = work_of("dgetrf", 16384, 16384, 0);
    double expected = 0;
    for (int i = 0; i < MODEL_TERMS; i++)
        expected += truth[i] * beyond.term[i];
    assert_near(model_ms(&curve, &beyond), expected, 1e-6);
}

/* What fits no terms is met where it was measured, and nearly so close by. */
static void curve_passes_through_the_points(void **state)
{
    struct model_work works[5];
    struct model_curve curve = {.points = 0};
    const double ms[5] = {0.001, 0.5, 0.7, 40, 90};
    (void)state;
    for (int p = 0; p < 5; p++)
        works[p] = work_of("dgemm", (int64_t)32 << p, (int64_t)32 << p, (int64_t)32 << p);
    model_fit(&curve, works, ms, 5);
    assert_int_equal(curve.points, 5);
    for (int p = 0; p < 5; p++) {
        assert_near(model_ms(&curve, &works[p]), ms[p], 0.05);
        for (int i = 0; i < MODEL_TERMS; i++)
            assert_true(curve.ms[i] >= 0);
    }
}

/* The rate of operations is never thought to be more than ten times what was measured: beyond the
 * measured sizes it decides. */
static void rates_are_not_made_up(void **state)
{
    struct model_work works[3];
    struct model_curve curve = {.points = 0};
    const double ms[3] = {1, 1, 1}; /* whatever the size */
    (void)state;
    for (int p = 0; p < 3; p++)
        works[p] = work_of("dgemm", (int64_t)64 << p, (int64_t)64 << p, (int64_t)64 << p);
    model_fit(&curve, works, ms, 3);
    const struct model_work large = work_of("dgemm", 16384, 16384, 16384);
    double measured = works[2].term[MODEL_OPERATION] / 1; /* Gflop in a millisecond */
    assert_true(model_ms(&curve, &large) >= 0.99 * large.term[MODEL_OPERATION] / (10 * measured));
}

/* A tenth more or less in what was measured of times that grow with the order says nothing of the
 * operations. */
static void noise_is_no_rate(void **state)
{
    struct model_work works[5];
    struct model_curve curve = {.points = 0};
    const double ms[5] = {1.105, 2.291, 4.242, 7.67, 15.77};
    (void)state;
    for (int p = 0; p < 5; p++)
        works[p] = work_of("ssyev", 0, (int64_t)12 << p, 0);
    model_fit(&curve, works, ms, 5);
    const struct model_work beyond = work_of("ssyev", 0, 512, 0);
    assert_true(model_ms(&curve, &beyond) > 35);
    assert_true(model_ms(&curve, &beyond) < 85);
}

static void learning(void **state)
{
    const struct model_rates rates = model_cpu_rates(2);
    const struct model_work work = work_of("dgemm", 500, 500, 500),
                            near = work_of("dgemm", 520, 490, 505),
                            far = work_of("dgemm", 500, 8, 8);
    struct model_curve curve;
    (void)state;
    model_nominal_cpu(&curve, routine("dgemm"), &rates);
    double before = model_ms(&curve, &work), far_before = model_ms(&curve, &far);
    /* One slow run is not the truth; several are. */
    model_learn(&curve, &work, 100 * before);
    assert_true(model_ms(&curve, &work) < 2.1 * before);
    for (int i = 0; i < 40; i++)
        model_learn(&curve, &work, 3 * before);
    assert_near(model_ms(&curve, &work), 3 * before, 0.1);
    assert_near(model_ms(&curve, &near), 3 * before, 0.15);
    assert_true(model_ms(&curve, &far) < 1.5 * far_before);
    /* A process that is stopped, or whose memory is swapped in; but what lasts is seen soon. */
    model_learn(&curve, &work, 3000 * before);
    assert_near(model_ms(&curve, &work), 3 * before, 0.15);
    model_learn(&curve, &work, 3 * before);
    model_learn(&curve, &work, 3000 * before);
    assert_near(model_ms(&curve, &work), 3 * before, 0.15);
    for (int i = 0; i < 20; i++)
        model_learn(&curve, &work, 30 * before);
    assert_true(model_ms(&curve, &work) > 20 * before);
    /* A fast run is one that the machine can do. */
    model_learn(&curve, &work, before);
    assert_near(model_ms(&curve, &work), before, 0.05);
    assert_int_equal(curve.points, 1);
    /* More sizes than there is room for. */
    for (int64_t n = 4; n < 4 * 3 * MODEL_POINTS; n += 2) {
        const struct model_work other = work_of("dgemm", n * n, n, 2);
        for (int run = 0; run < 60; run++)
            model_learn(&curve, &other, 1);
        assert_true(curve.points <= MODEL_POINTS);
        assert_near(model_ms(&curve, &other), 1, 0.3);
    }
    /* What cannot be is not learned. */
    struct model_curve same = curve;
    model_learn(&curve, &work, 0);
    model_learn(&curve, &work, NAN);
    model_learn(&curve, &work, -1);
    assert_memory_equal(&same, &curve, sizeof curve);
}

/* Few points, or points of one size, leave the terms as they were: what is far from them is not
 * made up. */
static void few_points_correct(void **state)
{
    const struct model_rates rates = model_gpu_rates();
    const struct model_work small = work_of("dgemm", 500, 500, 500),
                            large = work_of("dgemm", 8000, 8000, 8000);
    struct model_curve curve;
    (void)state;
    model_nominal_gpu(&curve, routine("dgemm"), &rates);
    double before = model_ms(&curve, &large), ms = 0.4;
    model_fit(&curve, &small, &ms, 1);
    assert_near(model_ms(&curve, &small), 0.4, 0.05);
    assert_true(model_ms(&curve, &large) < 3 * before);
}

/* Every routine of BLAS and LAPACK, at sizes from 1 to 2^20, on both sides: finite, positive, and
 * not less for more. */
static void nominal_times_grow(void **state)
{
    const struct model_rates cpu = model_cpu_rates(16), gpu = model_gpu_rates();
    (void)state;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        struct model_curve on_cpu, on_gpu;
        double cpu_before = 0, gpu_before = 0;
        if (!accel_is_blas(&accel_routines[i]))
            continue;
        model_nominal_cpu(&on_cpu, &accel_routines[i], &cpu);
        model_nominal_gpu(&on_gpu, &accel_routines[i], &gpu);
        for (int64_t n = 1; n <= 1 << 20; n *= 2) {
            const int64_t size[ACCEL_DIMENSIONS] = {n, n, n, n};
            struct accel_call call;
            struct model_work work;
            shape_typical(&call, &accel_routines[i], size);
            model_work_of(&call, false, &work);
            const double cpu_ms = model_ms(&on_cpu, &work);
            model_work_of(&call, true, &work);
            const double gpu_ms = model_ms(&on_gpu, &work);
            assert_true(isfinite(cpu_ms) && cpu_ms > 0 && cpu_ms >= cpu_before);
            assert_true(isfinite(gpu_ms) && gpu_ms > 0 && gpu_ms >= gpu_before);
            cpu_before = cpu_ms;
            gpu_before = gpu_ms;
        }
    }
}

/* Each routine of BLAS and LAPACK has a size, an operand, and flags of its own letters in the call
 * that is typical for it. */
static void typical_calls_are_right(void **state)
{
    const int64_t size[ACCEL_DIMENSIONS] = {7, 7, 7, 7};
    (void)state;
    for (uint32_t i = 0; i < accel_routine_count; i++) {
        struct accel_call call;
        if (!accel_is_blas(&accel_routines[i]))
            continue;
        shape_typical(&call, &accel_routines[i], size);
        for (int a = 0; a < call.routine->args; a++) {
            const struct accel_arg *arg = &call.routine->arg[a];
            if (arg->kind == ACCEL_ARG_FLAG)
                assert_non_null(strchr(arg->allowed, call.blas.flag[arg->slot]));
        }
        /* laswp does not say how many rows its matrix has */
        assert_true(accel_rules_of(call.op)->rows ||
                    (call.span[ACCEL_a].rows > 0 && call.span[ACCEL_a].cols > 0));
    }
}

static void gpus_by_name(void **state)
{
    static const struct {
        const char *said, *known;
    } expected[] = {{"NVIDIA H100 80GB HBM3", "H100"},
                    {"NVIDIA H100 PCIe", "H100 PCIe"},
                    {"NVIDIA H100 NVL", "H100 NVL"},
                    {"NVIDIA H200", "H200"},
                    {"NVIDIA A100-SXM4-40GB", "A100 40GB"},
                    {"NVIDIA A100-SXM4-80GB", "A100 80GB"},
                    {"NVIDIA A100 80GB PCIe", "A100 80GB"},
                    {"Tesla V100-SXM2-16GB", "V100"},
                    {"Tesla V100-PCIE-32GB", "V100 PCIe"},
                    {"Tesla T4", "T4"},
                    {"NVIDIA GeForce RTX 4090", "RTX 4090"},
                    {"NVIDIA L40S", "L40S"},
                    {"NVIDIA A10", "A10"},
                    {"NVIDIA GH200 480GB", "GH200"},
                    {"h200", "H200"},
                    {"l4", "L4"}};
    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct known_gpu *gpu = known_gpu_find(expected[i].said);
        assert_non_null(gpu);
        assert_string_equal(gpu->name, expected[i].known);
    }
    assert_null(known_gpu_find("Test GPU"));
    assert_true(known_gpu_find("NVIDIA GH200 480GB")->place_gbps == 450);
    assert_true(known_gpu_find("NVIDIA H100 80GB HBM3")->place_gbps == 0);
    assert_true(known_gpu_find("GB10")->integrated && known_gpu_find("GB10")->place_gbps == 273);
    assert_true(known_gpu_find("Orin")->integrated && known_gpu_find("Orin")->place_gbps == 0);
    assert_null(known_gpu_find(""));
    assert_null(known_gpu_find("H1"));
    for (const struct known_gpu *gpu = known_gpus; gpu->name[0]; gpu++) {
        assert_ptr_equal(known_gpu_find(gpu->name), gpu);
        assert_true(gpu->tflops[0] >= gpu->tflops[1] && gpu->tflops[1] > 0);
        assert_true(gpu->memory_gbps > 0 && gpu->memory_gb > 0 && gpu->up_gbps > 0);
    }
}

static void whole_cards_by_exact_name(void **state)
{
    static const char *const whole[] = {"NVIDIA H200",
                                        "NVIDIA H100 80GB HBM3",
                                        "NVIDIA H100 PCIe",
                                        "NVIDIA A100-SXM4-40GB",
                                        "NVIDIA A100 80GB PCIe",
                                        "NVIDIA GH200 480GB",
                                        "Tesla V100-SXM2-32GB",
                                        "NVIDIA GeForce RTX 4090",
                                        "NVIDIA RTX 6000 Ada Generation",
                                        "NVIDIA GB200",
                                        "NVIDIA GB10",
                                        "NVIDIA H20",
                                        "NVIDIA RTX PRO 6000 Blackwell Server Edition"};
    /* An instance, a vGPU, and other cards. */
    static const char *const others[] = {"NVIDIA H200 MIG 1g.18gb",
                                         "NVIDIA A100-SXM4-40GB MIG 1g.5gb",
                                         "GRID A100-10C",
                                         "NVIDIA A40-24Q",
                                         "NVIDIA A100-3-20C",
                                         "NVIDIA A10G",
                                         "NVIDIA H200 NVL-2-35C",
                                         "NVIDIA GeForce RTX 4090 Laptop GPU",
                                         "NVIDIA GeForce RTX 4090 D",
                                         "Test GPU"};
    (void)state;
    for (size_t i = 0; i < sizeof whole / sizeof *whole; i++)
        assert_non_null(known_gpu_whole(whole[i]));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_null(known_gpu_whole(others[i]));
}

static void slices_by_profile(void **state)
{
    const struct known_gpu *card = known_gpu_find("NVIDIA H200 MIG 1g.18gb");
    (void)state;
    assert_string_equal(card->name, "H200");
    struct known_gpu slice = known_gpu_slice(card, "NVIDIA H200 MIG 1g.18gb");
    assert_true(slice.tflops[1] == card->tflops[1] / 8 && slice.memory_gb == 18);
    assert_true(slice.memory_gbps > 600 && slice.memory_gbps < 620);
    slice = known_gpu_slice(card, "h200 mig 3g.71gb");
    assert_true(slice.tflops[0] == card->tflops[0] * 3 / 8 && slice.memory_gb == 71);
    slice = known_gpu_slice(card, "H200 MIG 7g.141gb");
    assert_true(slice.tflops[0] == card->tflops[0] && slice.memory_gbps == card->memory_gbps);
    slice = known_gpu_slice(card, "NVIDIA H200");
    assert_memory_equal(&slice, card, sizeof slice);
}

/* A name is of a whole card, or of an instance with its profile. */
static void names_of_known_gpus(void **state)
{
    static const char *const good[] = {"NVIDIA H100 80GB HBM3",
                                       "H100 PCIe",
                                       "NVIDIA H100 NVL",
                                       "h200",
                                       "A100-SXM4-40GB",
                                       "Tesla V100-DGXS-32GB",
                                       "NVIDIA RTX PRO 6000 Blackwell Server Edition",
                                       "NVIDIA H200 MIG 1g.18gb",
                                       "NVIDIA H100 80GB HBM3 MIG 7g.80gb",
                                       "A100 mig 1c.3g.20gb",
                                       "H100 MIG 1g.10gb+me"};
    static const char *const wrong[] = {"H100 MIG",
                                        "H100 MIG 1g",
                                        "H100 MIG 1g.",
                                        "H100 MIG 9g.80gb",
                                        "H100 MIG 0g.10gb",
                                        "H100 MIG 1g.gb",
                                        "H100 MIG x",
                                        "H100 1g.10gb",
                                        "H100 MIG 1g.10 gb",
                                        "h100 foo bar",
                                        "H100 foo MIG 1g.10gb",
                                        "GRID A100-10C",
                                        "NVIDIA GeForce RTX 4090 Laptop GPU"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_null(known_gpu_fault(good[i]));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_non_null(known_gpu_fault(wrong[i]));
    for (const struct known_gpu *gpu = known_gpus; gpu->name[0]; gpu++)
        assert_null(known_gpu_fault(gpu->name));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_of_a_product),
        cmocka_unit_test(shared_matrices_go_up_once),
        cmocka_unit_test(triangles_of_lapack),
        cmocka_unit_test(fit_finds_the_terms),
        cmocka_unit_test(curve_passes_through_the_points),
        cmocka_unit_test(rates_are_not_made_up),
        cmocka_unit_test(noise_is_no_rate),
        cmocka_unit_test(learning),
        cmocka_unit_test(few_points_correct),
        cmocka_unit_test(nominal_times_grow),
        cmocka_unit_test(typical_calls_are_right),
        cmocka_unit_test(gpus_by_name),
        cmocka_unit_test(whole_cards_by_exact_name),
        cmocka_unit_test(slices_by_profile),
        cmocka_unit_test(names_of_known_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
