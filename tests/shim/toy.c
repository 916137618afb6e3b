/*
 * libtoy.so. TOY_VERSION: 100 or another. With TOY_WITNESS its function notes what it is called with, and returns a value in each register
 * that results come back in.
 */
#include "toy_call.h"
#include "tests/toy/toy.h"

struct seen toy_seen;

int toy_version(void)
{
    return TOY_VERSION;
}

#ifdef TOY_WITNESS
__asm__(".text\n"
        ".globl toy_score\n"
        ".type toy_score, @function\n"
        "toy_score:\n"
        "    mov toy_seen@GOTPCREL(%rip), %r11\n"
        "    mov %rdi, 0(%r11)\n"
        "    mov %rsi, 8(%r11)\n"
        "    mov %rdx, 16(%r11)\n"
        "    mov %rcx, 24(%r11)\n"
        "    mov %r8, 32(%r11)\n"
        "    mov %r9, 40(%r11)\n"
        "    mov %rbx, 48(%r11)\n"
        "    mov %rbp, 56(%r11)\n"
        "    mov %r12, 64(%r11)\n"
        "    mov %r13, 72(%r11)\n"
        "    mov %r14, 80(%r11)\n"
        "    mov %r15, 88(%r11)\n"
        "    movups %xmm0, 96(%r11)\n"
        "    movups %xmm1, 112(%r11)\n"
        "    movups %xmm2, 128(%r11)\n"
        "    movups %xmm3, 144(%r11)\n"
        "    movups %xmm4, 160(%r11)\n"
        "    movups %xmm5, 176(%r11)\n"
        "    movups %xmm6, 192(%r11)\n"
        "    movups %xmm7, 208(%r11)\n"
        "    mov 8(%rsp), %r10\n"
        "    mov %r10, 224(%r11)\n"
        "    mov 16(%rsp), %r10\n"
        "    mov %r10, 232(%r11)\n"
        "    mov %rsp, 240(%r11)\n"
        "    mov $0x1111, %eax\n"
        "    mov $0x2222, %edx\n"
        "    cvtsi2sd %eax, %xmm0\n"
        "    cvtsi2sd %edx, %xmm1\n"
        "    ret\n"
        ".size toy_score, . - toy_score\n");
#else
double toy_score(const struct toy_model *model, const double *x)
{
    double score = model->bias;
    for (int i = 0; i < model->features; i++)
        score += model->weights[i] * x[i];
    return score;
}
#endif
