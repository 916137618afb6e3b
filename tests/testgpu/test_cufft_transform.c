/* One transform by the stand-in for cuFFT, beside direct sums in long double precision. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "test_cufft.h"

typedef long double complex exact;

static bool is_single(const struct transform *t)
{
    return t->type == CUFFT_C2C || t->type == CUFFT_R2C || t->type == CUFFT_C2R;
}

bool from_real(const struct transform *t)
{
    return t->type == CUFFT_R2C || t->type == CUFFT_D2Z;
}

bool to_real(const struct transform *t)
{
    return t->type == CUFFT_C2R || t->type == CUFFT_Z2D;
}

/* Sizes as of three dimensions. */
static void sizes_of(const struct transform *t, long long *n)
{
    for (int i = 0; i < 3; i++)
        n[i] = i < 3 - t->rank ? 1 : t->n[i - (3 - t->rank)];
}

/* One side, as the documentation has it. */
struct room {
    bool real;
    long long row, width; /* elements of a row; from row to row */
    long long plane, stride, dist, height;
    size_t element, elements;
    unsigned char *bytes;
};

static struct room room_of(const struct transform *t, bool output)
{
    long long n[3];
    sizes_of(t, n);
    struct room room = {.real = output ? to_real(t) : from_real(t)};
    const bool half = !room.real && (from_real(t) || to_real(t));
    const long long *embed = output ? t->onembed : t->inembed;
    room.row = half ? n[2] / 2 + 1 : n[2];
    room.width = room.real && t->in_place ? 2 * (n[2] / 2 + 1) : room.row;
    room.height = n[1];
    room.stride = 1;
    room.dist = n[0] * n[1] * room.width;
    if (t->istride != 0) {
        room.width = t->rank > 1 ? embed[t->rank - 1] : room.row;
        room.height = t->rank > 2 ? embed[1] : n[1];
        room.stride = output ? t->ostride : t->istride;
        room.dist = output ? t->odist : t->idist;
    }
    room.plane = room.width * room.height;
    room.element = (is_single(t) ? 4 : 8) * (room.real ? 1 : 2);
    room.elements =
        (size_t)((t->batch - 1) * room.dist +
                 ((n[0] - 1) * room.plane + (n[1] - 1) * room.width + room.row - 1) * room.stride +
                 1);
    return room;
}

static long long place(const struct room *room, long long b, long long i, long long j, long long k)
{
    return b * room->dist + (i * room->plane + j * room->width + k) * room->stride;
}

static void write_to(const struct transform *t, struct room *room, long long at, exact z)
{
    const double complex x = (double complex)z;
    const enum type type = room->real ? (is_single(t) ? S : D) : is_single(t) ? C : Z;
    narrow(type, &x, room->bytes + (size_t)at * room->element, 1);
}

static exact read_from(const struct transform *t, const struct room *room, long long at)
{
    const enum type type = room->real ? (is_single(t) ? S : D) : is_single(t) ? C : Z;
    return widen(type, room->bytes, (size_t)at);
}

/* Of each dimension a sum for each element. */
static void direct(exact *z, const long long *n, int sign)
{
    const long long points = n[0] * n[1] * n[2];
    for (int d = 0; d < 3; d++) {
        const long long count = n[d], step = d == 2 ? 1 : d == 1 ? n[2] : n[1] * n[2];
        exact *roots = malloc((size_t)count * sizeof *roots),
              *sums = malloc((size_t)count * sizeof *sums);
        for (long long k = 0; k < count; k++) {
            const long double angle = 2 * acosl(-1) * k / count;
            roots[k] = cosl(angle) + sign * sinl(angle) * I;
        }
        for (long long first = 0; first < points; first++) {
            if (first / step % count != 0)
                continue;
            for (long long k = 0; k < count; k++) {
                sums[k] = 0;
                for (long long j = 0; j < count; j++)
                    sums[k] += z[first + j * step] * roots[j * k % count];
            }
            for (long long k = 0; k < count; k++)
                z[first + k * step] = sums[k];
        }
        free(roots);
        free(sums);
    }
}

/* A Hermitian one where the result is to be real: element k is the conjugate of -k. */
static void make_array(const struct transform *t, const long long *n, exact *z)
{
    const long long points = n[0] * n[1] * n[2];
    double complex *noisy = malloc((size_t)points * sizeof *noisy);
    for (long long p = 0; p < points; p++) {
        const double complex x = from_real(t) ? noise() : complex_of(noise(), noise());
        noisy[p] = is_single(t) ? (double complex)(float complex)x : x;
    }
    for (long long p = 0; p < points; p++) {
        const long long i = p / (n[1] * n[2]), j = p / n[2] % n[1], k = p % n[2];
        const long long mirrored =
            ((n[0] - i) % n[0] * n[1] + (n[1] - j) % n[1]) * n[2] + (n[2] - k) % n[2];
        const double complex sum = noisy[p] + conj(noisy[mirrored]);
        z[p] = !to_real(t) ? noisy[p] : is_single(t) ? (float complex)sum : sum;
    }
    free(noisy);
}

static int execute(const struct transform *t, cufftHandle plan, CUdeviceptr in, CUdeviceptr out)
{
    void *from = (void *)in, *to = (void *)out;
    switch (t->type) {
    case CUFFT_C2C:
        FFT_OK(cufftExecC2C(plan, from, to, t->sign));
        break;
    case CUFFT_Z2Z:
        FFT_OK(cufftExecZ2Z(plan, from, to, t->sign));
        break;
    case CUFFT_R2C:
        FFT_OK(cufftExecR2C(plan, from, to));
        break;
    case CUFFT_D2Z:
        FFT_OK(cufftExecD2Z(plan, from, to));
        break;
    case CUFFT_C2R:
        FFT_OK(cufftExecC2R(plan, from, to));
        break;
    default:
        FFT_OK(cufftExecZ2D(plan, from, to));
    }
    return 0;
}

/* Elements become `gone`, one by one; what is left is what lay between them. */
static void take_away(const struct transform *t, struct room *room, int gone)
{
    long long n[3];
    sizes_of(t, n);
    for (long long b = 0; b < t->batch; b++)
        for (long long i = 0; i < n[0]; i++)
            for (long long j = 0; j < n[1]; j++)
                for (long long k = 0; k < room->row; k++)
                    memset(room->bytes + (size_t)place(room, b, i, j, k) * room->element, gone,
                           room->element);
}

static bool all_are(const unsigned char *bytes, int value, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

enum { GAP = 0x33 };

/* In memory that ends where the elements do. */
static int compute(const struct transform *t, struct room *in, struct room *out)
{
    CUdeviceptr from, to;
    cufftHandle plan;
    size_t bytes;
    struct transform p = *t; /* the parameters are not const */
    const bool packed = t->istride == 0;
    const size_t in_bytes = in->elements * in->element, out_bytes = out->elements * out->element;
    const size_t larger = in_bytes > out_bytes ? in_bytes : out_bytes;
    OK(cuMemAlloc(&from, t->in_place ? larger : in_bytes));
    if (t->in_place)
        to = from;
    else
        OK(cuMemAlloc(&to, out_bytes));
    OK(cuMemcpyHtoD(to, out->bytes, out_bytes));
    OK(cuMemcpyHtoD(from, in->bytes, in_bytes));
    FFT_OK(cufftCreate(&plan));
    FFT_OK(cufftMakePlanMany64(plan, t->rank, p.n, packed ? NULL : p.inembed, t->istride, t->idist,
                               packed ? NULL : p.onembed, t->ostride, t->odist, t->type, t->batch,
                               &bytes));
    CHECK(execute(t, plan, from, to) == 0);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(out->bytes, to, out_bytes));
    unsigned char *before = malloc(in_bytes);
    memcpy(before, in->bytes, in_bytes);
    OK(cuMemcpyDtoH(in->bytes, from, in_bytes));
    if (!t->in_place && !to_real(t))
        CHECK(memcmp(before, in->bytes, in_bytes) == 0);
    free(before);
    FFT_OK(cufftDestroy(plan));
    OK(cuMemFree(from));
    if (!t->in_place)
        OK(cuMemFree(to));
    return 0;
}

int check_transform(const struct transform *t)
{
    long long n[3];
    sizes_of(t, n);
    const long long points = n[0] * n[1] * n[2];
    struct room in = room_of(t, false), out = room_of(t, true);
    exact *z = malloc((size_t)(points * t->batch) * sizeof *z);
    long double error = 0, norm = 0;
    in.bytes = malloc(in.elements * in.element);
    out.bytes = malloc(out.elements * out.element);
    memset(in.bytes, GAP, in.elements * in.element);
    memset(out.bytes, GAP, out.elements * out.element);
    for (long long p = 0; p < points * t->batch; p++) {
        const long long b = p / points, rest = p % points;
        if (rest == 0)
            make_array(t, n, z + p);
        if (rest % n[2] < in.row)
            write_to(t, &in, place(&in, b, rest / (n[1] * n[2]), rest / n[2] % n[1], rest % n[2]),
                     z[p]);
    }
    for (long long b = 0; b < t->batch; b++)
        direct(z + b * points, n, t->sign);
    CHECK(compute(t, &in, &out) == 0);
    for (long long p = 0; p < points * t->batch; p++) {
        const long long b = p / points, rest = p % points;
        if (rest % n[2] >= out.row)
            continue;
        const exact found = read_from(
            t, &out, place(&out, b, rest / (n[1] * n[2]), rest / n[2] % n[1], rest % n[2]));
        const exact wanted = to_real(t) ? (exact)creall(z[p]) : z[p];
        error += creall((found - wanted) * conjl(found - wanted));
        norm += creall(wanted * conjl(wanted));
    }
    const long double bound =
        1.2L * (is_single(t) ? FLT_EPSILON : DBL_EPSILON) * sqrtl(log2l(points));
    if (!(sqrtl(error) <= bound * sqrtl(norm))) {
        fprintf(stderr, "type %#x, n %lld %lld %lld, batch %lld: error %Lg of %Lg\n",
                (unsigned)t->type, n[0], n[1], n[2], t->batch, sqrtl(error / norm), bound);
        return 1;
    }
    if (!t->in_place) {
        take_away(t, &out, GAP);
        CHECK(all_are(out.bytes, GAP, out.elements * out.element));
        if (to_real(t)) {
            unsigned char gone[16];
            memset(gone, 0xff, sizeof gone);
            CHECK(memcmp(in.bytes, gone, in.element) == 0);
            CHECK(memcmp(in.bytes + (in.elements - 1) * in.element, gone, in.element) == 0);
        }
    }
    free(in.bytes);
    free(out.bytes);
    free(z);
    return 0;
}
