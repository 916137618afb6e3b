/*
 * toy_call score    prints what toy_score() returns
 * toy_call witness  with a library that notes what it is called with (TOY_WITNESS): prints, for each of some calls, what of the registers
 *                   and of the stack is not as it was passed, and what has been returned
 */
#include <stdio.h>
#include <string.h>

#include "tests/toy/toy.h"
#include "toy_call.h"

enum { FEATURES = 1000 };
static double weights[FEATURES], x[FEATURES];
static const struct toy_model model = {FEATURES, weights, 0.5};

/* What is there after a call. */
struct after {
    uint64_t saved[6];
    uint64_t rax, rdx;
    double xmm[2];
    uint64_t stack[2];
    uint64_t rsp_before, rsp;
};

/* Calls toy_score() with all registers and two words of the stack as given. */
void call_with(const struct seen *in, struct after *out);
__asm__(".text\n"
        "call_with:\n"
        "    push %rbx\n"
        "    push %rbp\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    push %rsi\n"
        "    sub $16, %rsp\n"
        "    mov %rsp, 96(%rsi)\n"
        "    mov %rdi, %rax\n"
        "    mov 224(%rax), %r10\n"
        "    mov %r10, 0(%rsp)\n"
        "    mov 232(%rax), %r10\n"
        "    mov %r10, 8(%rsp)\n"
        "    movups 96(%rax), %xmm0\n"
        "    movups 112(%rax), %xmm1\n"
        "    movups 128(%rax), %xmm2\n"
        "    movups 144(%rax), %xmm3\n"
        "    movups 160(%rax), %xmm4\n"
        "    movups 176(%rax), %xmm5\n"
        "    movups 192(%rax), %xmm6\n"
        "    movups 208(%rax), %xmm7\n"
        "    mov 48(%rax), %rbx\n"
        "    mov 56(%rax), %rbp\n"
        "    mov 64(%rax), %r12\n"
        "    mov 72(%rax), %r13\n"
        "    mov 80(%rax), %r14\n"
        "    mov 88(%rax), %r15\n"
        "    mov 0(%rax), %rdi\n"
        "    mov 8(%rax), %rsi\n"
        "    mov 16(%rax), %rdx\n"
        "    mov 24(%rax), %rcx\n"
        "    mov 32(%rax), %r8\n"
        "    mov 40(%rax), %r9\n"
        "    call *toy_score@GOTPCREL(%rip)\n"
        "    mov 16(%rsp), %r11\n"
        "    mov %rbx, 0(%r11)\n"
        "    mov %rbp, 8(%r11)\n"
        "    mov %r12, 16(%r11)\n"
        "    mov %r13, 24(%r11)\n"
        "    mov %r14, 32(%r11)\n"
        "    mov %r15, 40(%r11)\n"
        "    mov %rax, 48(%r11)\n"
        "    mov %rdx, 56(%r11)\n"
        "    movsd %xmm0, 64(%r11)\n"
        "    movsd %xmm1, 72(%r11)\n"
        "    mov 0(%rsp), %r10\n"
        "    mov %r10, 80(%r11)\n"
        "    mov 8(%rsp), %r10\n"
        "    mov %r10, 88(%r11)\n"
        "    mov %rsp, 104(%r11)\n"
        "    add $24, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbp\n"
        "    pop %rbx\n"
        "    ret\n");

static void compare(const char *what, const void *one, const void *other, size_t bytes)
{
    if (memcmp(one, other, bytes) != 0)
        printf(" %s", what);
}

static void witness(void)
{
    struct seen in;
    struct after after;
    for (size_t i = 0; i < sizeof in / 8; i++)
        ((uint64_t *)&in)[i] = 0x4000000000000000 + 0x123456789ab * i;
    in.gpr[0] = (uintptr_t)&model;
    in.gpr[1] = (uintptr_t)x;
    call_with(&in, &after);
    in.rsp = after.rsp_before - 8;
    printf("differs:");
    compare("gpr", in.gpr, toy_seen.gpr, sizeof in.gpr);
    compare("xmm", in.xmm, toy_seen.xmm, sizeof in.xmm);
    compare("saved", in.saved, toy_seen.saved, sizeof in.saved);
    compare("stack", in.stack, toy_seen.stack, sizeof in.stack);
    compare("rsp", &in.rsp, &toy_seen.rsp, sizeof in.rsp);
    compare("saved-after", in.saved, after.saved, sizeof in.saved);
    compare("stack-after", in.stack, after.stack, sizeof in.stack);
    compare("rsp-after", &after.rsp_before, &after.rsp, sizeof after.rsp);
    printf("; returned: %llx %llx %g %g\n", (unsigned long long)after.rax,
           (unsigned long long)after.rdx, after.xmm[0], after.xmm[1]);
}

int main(int argc, char **argv)
{
    for (int i = 0; i < FEATURES; i++) {
        weights[i] = i % 7 - 3;
        x[i] = i % 5 - 1;
    }
    for (int call = 0; call < 3; call++)
        if (argc == 2 && strcmp(argv[1], "witness") == 0)
            witness();
        else
            printf("score %.17g\n", toy_score(&model, x));
    return 0;
}
