/*
 * uint64_t accel_invoke(fn, gpr, xmm, words, stack): a call with argument registers and stack words given as
 * data. System V ABI for x86-64.
 */
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
    lea 1(%rcx), %rax
    and $-2, %rax
    shl $3, %rax
    sub %rax, %rsp
1:  test %rcx, %rcx
    jz 2f
    dec %rcx
    mov (%r8,%rcx,8), %rax
    mov %rax, (%rsp,%rcx,8)
    jmp 1b
2:  mov %rdi, %r11
    mov %rsi, %rax
    movups 0(%rdx), %xmm0
    movups 16(%rdx), %xmm1
    movups 32(%rdx), %xmm2
    movups 48(%rdx), %xmm3
    movups 64(%rdx), %xmm4
    movups 80(%rdx), %xmm5
    movups 96(%rdx), %xmm6
    movups 112(%rdx), %xmm7
    mov 0(%rax), %rdi
    mov 8(%rax), %rsi
    mov 16(%rax), %rdx
    mov 24(%rax), %rcx
    mov 32(%rax), %r8
    mov 40(%rax), %r9
    xor %eax, %eax
    call *%r11
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size accel_invoke, . - accel_invoke

    .section .note.GNU-stack, "", @progbits
