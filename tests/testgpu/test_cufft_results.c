/* The stand-in for cuFFT computes what direct sums do: lengths, dimensions, layouts. */
#include <math.h>
#include "test_cufft.h"

static const cufftType types[] = {CUFFT_C2C, CUFFT_Z2Z, CUFFT_R2C, CUFFT_D2Z, CUFFT_C2R, CUFFT_Z2D};
enum { TYPES = sizeof types / sizeof *types };

/* Each type, in place and not, complex ones in both directions. */
static int check_types(struct transform t, bool packed)
{
    for (int i = 0; i < TYPES; i++)
        for (int place = 0; place < (packed ? 2 : 1); place++)
            for (int sign = -1; sign <= 1; sign += 2) {
                t.type = types[i];
                t.in_place = place == 1;
                t.sign = from_real(&t) ? -1 : to_real(&t) ? 1 : sign;
                if (t.sign == sign)
                    CHECK(check_transform(&t) == 0);
            }
    return 0;
}

static int rows(void)
{
    begin();
    for (int n = 1; n <= 40; n++)
        CHECK(check_types((struct transform){.rank = 1, .n = {n}, .batch = 1}, true) == 0);
    return 0;
}

/* Primes, and lengths of several. */
static int longer_rows(void)
{
    static const int lengths[] = {97, 121, 128, 210, 257, 343, 394, 1009, 1024};
    begin();
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        struct transform t = {
            .type = CUFFT_Z2Z, .rank = 1, .n = {lengths[i]}, .batch = 1, .sign = 1};
        CHECK(check_transform(&t) == 0);
        t.type = CUFFT_R2C;
        t.sign = -1;
        CHECK(check_transform(&t) == 0);
    }
    return 0;
}

static int dimensions(void)
{
    static const struct transform all[] = {
        {.rank = 1, .n = {12}, .batch = 5},       {.rank = 2, .n = {5, 6}, .batch = 1},
        {.rank = 2, .n = {37, 4}, .batch = 2},    {.rank = 2, .n = {1, 9}, .batch = 3},
        {.rank = 3, .n = {2, 3, 4}, .batch = 3},  {.rank = 3, .n = {5, 1, 7}, .batch = 1},
        {.rank = 3, .n = {4, 41, 2}, .batch = 1}, {.rank = 3, .n = {3, 4, 1}, .batch = 2},
    };
    begin();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(check_types(all[i], true) == 0);
    return 0;
}

/* Elements apart, arrays within each other, planes and rows with gaps, one side unlike the other.
 * The first of the embeds is not looked at. */
static int layouts(void)
{
    static const struct transform all[] = {
        {.rank = 1,
         .n = {6},
         .batch = 3,
         .inembed = {0},
         .istride = 2,
         .idist = 13,
         .onembed = {0},
         .ostride = 3,
         .odist = 1},
        {.rank = 1,
         .n = {7},
         .batch = 4,
         .inembed = {0},
         .istride = 4,
         .idist = 1,
         .onembed = {0},
         .ostride = 1,
         .odist = 9},
        {.rank = 2,
         .n = {3, 4},
         .batch = 2,
         .inembed = {0, 5},
         .istride = 1,
         .idist = 17,
         .onembed = {0, 6},
         .ostride = 2,
         .odist = 40},
        {.rank = 3,
         .n = {2, 3, 4},
         .batch = 2,
         .inembed = {0, 4, 6},
         .istride = 1,
         .idist = 50,
         .onembed = {0, 3, 5},
         .ostride = 2,
         .odist = 1},
    };
    begin();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        CHECK(check_types(all[i], false) == 0);
    return 0;
}

/* In place with layouts, of complex elements and of padded rows. */
static int layouts_in_place(void)
{
    struct transform t = {.rank = 2,
                          .n = {3, 5},
                          .batch = 2,
                          .inembed = {0, 6},
                          .istride = 2,
                          .idist = 40,
                          .onembed = {0, 6},
                          .ostride = 2,
                          .odist = 40,
                          .sign = 1,
                          .type = CUFFT_Z2Z,
                          .in_place = true};
    struct transform real = {.rank = 2,
                             .n = {3, 5},
                             .batch = 2,
                             .inembed = {0, 8},
                             .istride = 1,
                             .idist = 26,
                             .onembed = {0, 4},
                             .ostride = 1,
                             .odist = 13,
                             .sign = -1,
                             .type = CUFFT_D2Z,
                             .in_place = true};
    begin();
    CHECK(check_transform(&t) == 0);
    CHECK(check_transform(&real) == 0);
    return 0;
}

/* Of many elements: their squares add up to as many times those of the input, and some results are
 * sums. */
static int large(void)
{
    enum { N = 3 << 16, LOOKED_AT = 4 };
    static double complex x[N], y[N];
    cufftHandle plan;
    CUdeviceptr at;
    size_t bytes;
    long double before = 0, after = 0;
    begin();
    OK(cuMemAlloc(&at, sizeof x));
    for (int i = 0; i < N; i++) {
        x[i] = complex_of(noise(), noise());
        before += creal(x[i] * conj(x[i]));
    }
    OK(cuMemcpyHtoD(at, x, sizeof x));
    FFT_OK(cufftCreate(&plan));
    FFT_OK(make_rows(plan, N, CUFFT_Z2Z, 1, &bytes));
    FFT_OK(cufftExecZ2Z(plan, (void *)at, (void *)at, CUFFT_FORWARD));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(y, at, sizeof y));
    for (int i = 0; i < N; i++)
        after += creal(y[i] * conj(y[i]));
    CHECK(fabsl(after / before / N - 1) < 1e-14L);
    for (int i = 0; i < LOOKED_AT; i++) {
        const long long k = 12345 * i + 1;
        long double complex sum = 0;
        for (long long j = 0; j < N; j++) {
            const long double angle = -2 * acosl(-1) * (j * k % N) / N;
            sum += x[j] * (cosl(angle) + sinl(angle) * I);
        }
        CHECK(cabsl(sum - y[k]) < 1e-14L * sqrtl(before) * 10);
    }
    FFT_OK(cufftDestroy(plan));
    OK(cuMemFree(at));
    return 0;
}

/* Imaginary parts that a Hermitian input has not, and FFTW ignores. */
static int not_hermitian(void)
{
    struct fft f;
    size_t bytes;
    cufftHandle plan;
    const double complex half[] = {3, 0, 0, 0, 5};
    const double complex other[] = {3 + 1 * I, 0, 0, 0, 5 + 2 * I};
    double right[8], wrong[8];
    CHECK(fft_set_up(&f) == 0);
    FFT_OK(cufftCreate(&plan));
    FFT_OK(make_rows(plan, 8, CUFFT_Z2D, 1, &bytes));
    OK(cuMemcpyHtoD(f.in, half, sizeof half));
    FFT_OK(cufftExecZ2D(plan, (void *)f.in, (void *)f.out));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(right, f.out, sizeof right));
    OK(cuMemcpyHtoD(f.in, other, sizeof other));
    FFT_OK(cufftExecZ2D(plan, (void *)f.in, (void *)f.out));
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(wrong, f.out, sizeof wrong));
    CHECK(right[0] == 8 && right[1] == -2 && wrong[0] == 11 && wrong[1] == -3);
    FFT_OK(cufftDestroy(plan));
    return fft_tear_down(&f);
}

const struct scenario cufft_result_scenarios[] = {
    {"cufft_rows", rows, {0}, {" fft_c2c=", " fft_r2c=", " fft_c2r="}},
    {"cufft_longer_rows", longer_rows, {0}, {0}},
    {"cufft_dimensions", dimensions, {0}, {0}},
    {"cufft_layouts", layouts, {0}, {0}},
    {"cufft_layouts_in_place", layouts_in_place, {0}, {0}},
    {"cufft_large", large, {0}, {0}},
    {"cufft_not_hermitian", not_hermitian, {0}, {"leaked device_bytes=0 "}},
    {0},
};
