/*
 * CUDA C for the C++ compiler: what gpu/own/own.cuh gives the sources of gpu/own/ on the test GPU.
 * Threads of a block take turns, one kernel of the process at a time; the compiler's
 * instrumentation (-fsanitize=thread) reports each access to memory (kernel_memory.c).
 */
#ifndef TESTGPU_KERNEL_H
#define TESTGPU_KERNEL_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
#    include <utility>
extern "C" {
#endif

struct testgpu_index {
    unsigned x, y, z;
};

/* A kernel of the test GPU, in the section own_kernels: aligned so that no compiler leaves gaps
 * there. */
struct __attribute__((aligned(64))) testgpu_kernel {
    const char *name;
    void (*run)(void **arguments);
    unsigned threads;    /* the most of a block */
    size_t count;        /* of arguments */
    const size_t *bytes; /* of each */
};

/* Of the thread that runs; they stay the same as long as it lives. */
struct testgpu_index testgpu_thread_index(void) __attribute__((const));
struct testgpu_index testgpu_block_index(void) __attribute__((const));
struct testgpu_index testgpu_block_size(void) __attribute__((const));
struct testgpu_index testgpu_grid_size(void) __attribute__((const));
void *testgpu_shared_bytes(void) __attribute__((const));

void testgpu_barrier(const char *file, int line);
void testgpu_grid_barrier(unsigned long long *arrived, const char *file, int line);
void testgpu_fence(void);
/* Before an atomic operation on the bytes. */
void testgpu_atomic(const void *address, size_t bytes);

#ifdef __cplusplus
}

#    define threadIdx testgpu_thread_index()
#    define blockIdx  testgpu_block_index()
#    define blockDim  testgpu_block_size()
#    define gridDim   testgpu_grid_size()
#    define __device__
#    define __host__
#    define __global__
#    define __forceinline__           inline __attribute__((always_inline))
#    define __align__(bytes)          __attribute__((aligned(bytes)))
#    define __shared__                static __attribute__((section("own_shared")))
#    define __syncthreads()           testgpu_barrier(__FILE__, __LINE__)
#    define __threadfence()           testgpu_fence()
#    define own_grid_barrier(arrived) testgpu_grid_barrier(arrived, __FILE__, __LINE__)
#    define OWN_SHARED(type, name)    type *const name = (type *)testgpu_shared_bytes()

/* What is no access of the kernel's own. */
#    define TESTGPU_UNWATCHED __attribute__((no_sanitize("thread")))

#    define OWN_KERNEL(name, ...) OWN_KERNEL_FOR(1024, name, __VA_ARGS__)
#    define OWN_KERNEL_FOR(most, name, ...)                                                        \
        extern "C" __attribute__((noipa)) void name(__VA_ARGS__);                                  \
        static TESTGPU_UNWATCHED void name##_run(void **arguments)                                 \
        {                                                                                          \
            testgpu_apply(name, arguments);                                                        \
        }                                                                                          \
        static const struct testgpu_kernel name##_kernel                                           \
            __attribute__((section("own_kernels"), used)) =                                        \
                testgpu_describe(#name, name##_run, most, name);                                   \
        extern "C" void name(__VA_ARGS__)

template <typename... Parameters> struct testgpu_parameters {
    static constexpr size_t bytes[sizeof...(Parameters)] = {sizeof(Parameters)...};
};
template <typename... Parameters>
constexpr size_t testgpu_parameters<Parameters...>::bytes[sizeof...(Parameters)];

template <typename... Parameters>
constexpr testgpu_kernel testgpu_describe(const char *name, void (*run)(void **), unsigned threads,
                                          void (*)(Parameters...))
{
    return {name, run, threads, sizeof...(Parameters), testgpu_parameters<Parameters...>::bytes};
}

template <typename... Parameters, size_t... I>
TESTGPU_UNWATCHED void testgpu_apply_each(void (*kernel)(Parameters...), void **arguments,
                                          std::index_sequence<I...>)
{
    kernel(*(Parameters *)arguments[I]...);
}
template <typename... Parameters>
TESTGPU_UNWATCHED void testgpu_apply(void (*kernel)(Parameters...), void **arguments)
{
    testgpu_apply_each(kernel, arguments, std::index_sequence_for<Parameters...>());
}

/* The value type is that of the memory: T(v) in CUDA's own overloads. */
template <typename T> struct testgpu_same {
    typedef T type;
};
#    define TESTGPU_ATOMIC(name, result)                                                           \
        template <typename T>                                                                      \
        static TESTGPU_UNWATCHED T name(T *address, typename testgpu_same<T>::type value)          \
        {                                                                                          \
            testgpu_atomic(address, sizeof *address);                                              \
            const T old = *(volatile T *)address;                                                  \
            *(volatile T *)address = (result);                                                     \
            return old;                                                                            \
        }
TESTGPU_ATOMIC(atomicAdd, old + value)
TESTGPU_ATOMIC(atomicSub, old - value)
TESTGPU_ATOMIC(atomicExch, value)
TESTGPU_ATOMIC(atomicMin, value < old ? value : old)
TESTGPU_ATOMIC(atomicMax, value > old ? value : old)
TESTGPU_ATOMIC(atomicOr, old | value)
TESTGPU_ATOMIC(atomicAnd, old &value)
#    undef TESTGPU_ATOMIC
template <typename T>
static TESTGPU_UNWATCHED T atomicCAS(T *address, typename testgpu_same<T>::type expected,
                                     typename testgpu_same<T>::type value)
{
    testgpu_atomic(address, sizeof *address);
    const T old = *(volatile T *)address;
    if (old == expected)
        *(volatile T *)address = value;
    return old;
}

template <typename A, typename B> static auto min(A a, B b)
{
    return b < a ? b : a;
}
template <typename A, typename B> static auto max(A a, B b)
{
    return a < b ? b : a;
}

/* CUDA's, which the compiler does not fuse; the CPUs that these are compiled for fuse nothing. */
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}

#endif

#endif
