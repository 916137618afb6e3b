/*
 * struct accel_result accel_invoke(fn, passed): see entry.h. In the System V ABI for x86-64, rdi
 * has the address of the result; rbx keeps it during the call.
 */
#include "shim/arch/entry.h"

    .text
    .balign 16
    .globl accel_invoke
    .hidden accel_invoke
    .type accel_invoke, @function
accel_invoke:
    .cfi_startproc
    push %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    mov %rsp, %rbp
    .cfi_def_cfa_register %rbp
    push %rbx
    .cfi_offset %rbx, -24
    sub $8, %rsp
    mov %rdi, %rbx
    mov ACCEL_PASSED_STACK_WORDS(%rdx), %r8
    mov ACCEL_PASSED_STACK(%rdx), %r9
    lea 1(%r8), %rax
    and $-2, %rax
    shl $3, %rax
    sub %rax, %rsp
1:  test %r8, %r8
    jz 2f
    dec %r8
    mov (%r9,%r8,8), %rax
    mov %rax, (%rsp,%r8,8)
    jmp 1b
2:  mov %rsi, %r11
    mov ACCEL_PASSED_GPR(%rdx), %rax
    mov ACCEL_PASSED_FPR(%rdx), %rcx
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    movups 16*\n(%rcx), %xmm\n
    .endr
    mov 0(%rax), %rdi
    mov 8(%rax), %rsi
    mov 16(%rax), %rdx
    mov 24(%rax), %rcx
    mov 32(%rax), %r8
    mov 40(%rax), %r9
    xor %eax, %eax
    call *%r11
    mov %rax, 0(%rbx)
    mov %rdx, 8(%rbx)
    movups %xmm0, 16(%rbx)
    movups %xmm1, 32(%rbx)
    mov %rbx, %rax
    mov -8(%rbp), %rbx
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size accel_invoke, . - accel_invoke

    .section .note.GNU-stack, "", @progbits
