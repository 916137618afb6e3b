/*
 * struct accel_result accel_invoke(fn, passed): see entry.h. x8 has the address of the result
 * (aapcs64, section 6.9); x19 keeps it during the call.
 */
#include "shim/arch/aarch64/assembler.inc"
#include "shim/arch/entry.h"

    .text
    .balign 16
    .globl accel_invoke
    .hidden accel_invoke
    .type accel_invoke, @function
accel_invoke:
    .cfi_startproc
    landing
    stp x29, x30, [sp, -32]!
    .cfi_def_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov x29, sp
    .cfi_def_cfa_register x29
    str x19, [x29, 16]
    .cfi_offset x19, -16
    mov x19, x8
    ldr x9, [x1, ACCEL_PASSED_STACK_WORDS]
    ldr x10, [x1, ACCEL_PASSED_STACK]
    add x11, x9, 1
    and x11, x11, -2
    sub sp, sp, x11, lsl 3
1:  cbz x9, 2f
    sub x9, x9, 1
    ldr x11, [x10, x9, lsl 3]
    str x11, [sp, x9, lsl 3]
    b 1b
2:  mov x16, x0
    ldr x9, [x1, ACCEL_PASSED_GPR]
    ldr x10, [x1, ACCEL_PASSED_FPR]
    ldp q0, q1, [x10]
    ldp q2, q3, [x10, 32]
    ldp q4, q5, [x10, 64]
    ldp q6, q7, [x10, 96]
    ldr x8, [x1, ACCEL_PASSED_X8]
    ldp x0, x1, [x9]
    ldp x2, x3, [x9, 16]
    ldp x4, x5, [x9, 32]
    ldp x6, x7, [x9, 48]
    blr x16
    stp x0, x1, [x19]
    stp q0, q1, [x19, 16]
    stp q2, q3, [x19, 48]
    mov sp, x29
    ldr x19, [sp, 16]
    .cfi_restore x19
    ldp x29, x30, [sp], 32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_def_cfa sp, 0
    ret
    .cfi_endproc
    .size accel_invoke, . - accel_invoke

    .section .note.GNU-stack, "", @progbits
