/*
 * How many instructions of libaccel a forwarded call runs, for every exported name: the processor's trap flag stops at
 * each, and those are counted that lie in libaccel. Opened by a program as Python opens an extension module, with
 * entry_provider.c as the BLAS.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "entry_cost.h"
#include "ops/blas/pass.h"
#include "ops/names.h"
#include "shim/arch/x86_64/entry.h"
#include "ops/manglings.def"

#define DECLARE(abi, width, trust, symbol, sibling)            void symbol(void);
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args) ACCEL_MANGLINGS(DECLARE, name, NAME)
#define LAPACK(name, NAME, op, dtype, flops, args)             ACCEL_LAPACK_MANGLINGS(DECLARE, name, NAME)
#include "ops/blas/blas.def"
#undef ROUTINE
#undef LAPACK

#define ADDRESS(abi, width, trust, symbol, sibling)            symbol,
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args) ACCEL_MANGLINGS(ADDRESS, name, NAME)
#define LAPACK(name, NAME, op, dtype, flops, args)             ACCEL_LAPACK_MANGLINGS(ADDRESS, name, NAME)
static void (*const entries[])(void) = {
#include "ops/blas/blas.def"
};
#undef ROUTINE
#undef LAPACK

static uintptr_t first, last; /* libaccel's code */
static volatile long steps;

static int find_libaccel(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size, (void)data;
    if (!strstr(info->dlpi_name, "libaccel.so"))
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X)) {
            first = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            last = first + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

#define TRAP_FLAG 0x100

/* Counts until the call has left libaccel: each step costs a signal. */
static void on_trap(int signal, siginfo_t *info, void *context)
{
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    uintptr_t at = (uintptr_t)registers[REG_RIP];
    (void)signal, (void)info;
    if (at >= first && at < last)
        steps++;
    else if (steps > 0)
        registers[REG_EFL] &= ~(greg_t)TRAP_FLAG;
}

/* Leads to the function at step_target with the arguments and the stack of its own caller, stepping. */
void step_into(void);
__attribute__((visibility("hidden"))) void *step_target;
__asm__(".text\n"
        ".hidden step_into\n"
        "step_into:\n"
        "    pushfq\n"
        "    orq $0x100, (%rsp)\n"
        "    popfq\n"
        "    jmp *step_target(%rip)\n");

/* A small call that is valid and not empty. */
static struct accel_call sample(const struct accel_routine *routine)
{
    static double memory[64];
    struct accel_call call = {.routine = routine,
                              .layout = ACCEL_COLUMN_MAJOR,
                              .batch = 1,
                              .groups = 1,
                              .size = {1, 1, 1},
                              .scalar = {{1, 0}, {1, 0}}};
    for (int i = 0; i < routine->args; i++)
        if (routine->arg[i].kind == ACCEL_ARG_FLAG)
            call.flag[routine->arg[i].slot] = routine->arg[i].allowed[0];
    for (int i = 0; i < ACCEL_MATRICES; i++)
        call.span[i] = (struct accel_span){
            .ptr = memory, .rows = 1, .cols = 1, .ld = 1, .inc = 1, .stride = 1};
    return call;
}

static long count(void (*entry)(void), uint32_t index)
{
    const struct accel_mangling *mangling = accel_name_mangling(index);
    const struct accel_call call = sample(accel_name_routine(index));
    int width = mangling->width ? mangling->width : 32;
    void *function;
    memcpy(&function, &entry, sizeof function);
    struct blas_words words;
    const struct accel_passed passed = blas_pass(&words, mangling->abi, width, &call);
    accel_invoke(function, &passed); /* finds the original */
    steps = 0;
    step_target = function;
    accel_invoke((void *)(uintptr_t)step_into, &passed);
    return steps;
}

static void start_counting(void)
{
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    dl_iterate_phdr(find_libaccel, NULL);
    sigaction(SIGTRAP, &action, NULL);
}

/* Prints `symbol instructions` for every name. bound: of pointers that dlsym() hands out. */
int entry_cost(int bound);
int entry_cost(int bound)
{
    start_counting();
    for (uint32_t i = 0; i < accel_name_count; i++) {
        void (*entry)(void) = entries[i];
        if (bound) {
            void *found = dlsym(RTLD_DEFAULT, accel_names[i].symbol);
            memcpy(&entry, &found, sizeof entry);
        }
        printf("%s %ld\n", accel_names[i].symbol, count(entry, i));
    }
    fflush(stdout);
    return 0;
}

/* Prints `place instructions` for every call site, when all have been used. */
int call_site_cost(void);
int call_site_cost(void)
{
    start_counting();
    for (int site = 0; site < CALL_SITES; site++)
        call_site(site);
    for (int site = 0; site < CALL_SITES; site++) {
        steps = 0;
        __asm__ volatile("pushfq\n orq $0x100, (%%rsp)\n popfq" ::: "memory", "cc");
        call_site(site);
        __asm__ volatile("pushfq\n andq $~0x100, (%%rsp)\n popfq" ::: "memory", "cc");
        printf("%d %ld\n", site, steps);
    }
    fflush(stdout);
    return 0;
}
