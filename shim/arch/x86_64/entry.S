/*
 * Entry points for x86-64, System V ABI: https://gitlab.com/x86-psABIs/x86-64-ABI, section 3.2.3.
 * On the way to the original, an entry changes only r10, r11 and the flags, which carry no
 * argument. On the way to BLAS it also changes rax, which has an argument only if the function is
 * variadic; on the way to what may be another library's function, to 8.
 */
#include "shim/arch/entry.h"
#include "shim/arch/frame_x86_64.h"

/* ---- The gate ORs the sizes into r11. ---- */

.macro collect operand, whole
    .if first_size && \whole
        mov \operand, %r11
    .elseif first_size
        mov \operand, %r11d
    .elseif \whole
        or \operand, %r11
    .else
        or \operand, %r11d
    .endif
    .set first_size, 0
.endm

/* Collects the size that an argument has or points to. A register is collected whole: the gate of
 * an LP64 name compares the lower half alone. */
.macro collect_argument at, by_value
    .set register, 0
    .irp name, rdi, rsi, rdx, rcx, r8, r9
        .set register, register + 1
        .if register == \at && \by_value
            collect %\name, 1
        .elseif register == \at
            collect (%\name), width64
        .endif
    .endr
    .if \at > 6 && \by_value
        collect 8*(\at-6)(%rsp), width64
    .elseif \at > 6
        mov 8*(\at-6)(%rsp), %r10
        collect (%r10), width64
    .endif
.endm

/* Loads a size with its sign, if `at` is `number`, the place of a register. */
.macro load_size_in number, at, by_value, register, half, into
    .if \at == \number && \by_value && width64
        mov %\register, %\into
    .elseif \at == \number && \by_value
        movslq %\half, %\into
    .elseif \at == \number && width64
        mov (%\register), %\into
    .elseif \at == \number
        movslq (%\register), %\into
    .endif
.endm

.macro load_size at, by_value, into
    .if \at > 6
        .error "a size of a matrix is expected in a register"
    .endif
    load_size_in 1, \at, \by_value, rdi, edi, \into
    load_size_in 2, \at, \by_value, rsi, esi, \into
    load_size_in 3, \at, \by_value, rdx, edx, \into
    load_size_in 4, \at, \by_value, rcx, ecx, \into
    load_size_in 5, \at, \by_value, r8, r8d, \into
    load_size_in 6, \at, \by_value, r9, r9d, \into
.endm

.macro compare_product at, other, by_value, most
    load_size \at, \by_value, r11
    load_size \other, \by_value, r10
    imul %r10, %r11
    cmp $\most, %r11
    jae 9f
.endm

.macro more_than_one at
    .if \at <= 6
        .error "the number of groups is expected on the stack"
    .endif
    .if cblas
        cmpl $1, 8*(\at-6)(%rsp)
    .else
        mov 8*(\at-6)(%rsp), %r10
        cmpl $1, (%r10)
    .endif
    jne 9f
.endm

.macro compare_sizes
    .if width64
        cmp accel_gate(%rip), %r11
    .else
        cmp accel_gate(%rip), %r11d
    .endif
    jae 9f
.endm

/* Goes to label 9 unless the first argument points to a struct whose count is small. Six
 * instructions: a look-up at the second place has 14. */
.macro gate_count
    test %rdi, %rdi
    jz 9f
    mov accel_count_at + 4*own(%rip), %r10d
    cmpl $small_count, -1(%rdi,%r10)
    jae 9f
.endm

/*
 * ---- Loads rax with the original of this call site, from its place in the table or the next one;
 * goes to label 7 if neither has it. Reads the target between two looks at the key: see
 * accel_site_key in entry.h. ----
 */

.macro find_site
    movabs $(index << ACCEL_SITE_ENTRY_SHIFT), %r11
    add (%rsp), %r11
    imul $ACCEL_SITE_HASH, %r11d, %r10d
    shr $(32 - ACCEL_SITE_BITS), %r10d
    lea accel_site_key + 8*ACCEL_SITE_OFFSET(index)(%rip), %rax
    lea (%rax,%r10,8), %r10
    cmp %r11, (%r10)
    jne 8f
    mov accel_site_target - accel_site_key(%r10), %rax
    cmp %r11, (%r10)
    jne 7f
.endm

/* find_site goes on here if its first place has another key. */
.macro find_second_site
8:  cmp %r11, 8(%r10)
    jne 7f
    mov accel_site_target - accel_site_key + 8(%r10), %rax
    cmp %r11, 8(%r10)
    jne 7f
.endm

/* A function that is not BLAS may be variadic: then al is at least the number of vector registers
 * with arguments. The table leads to such functions of other names than BLAS's. */
.macro jump_site
    .if from_library
        mov %rax, %r11
        mov $8, %eax
        jmp *%r11
    .else
        jmp *%rax
    .endif
.endm

/* Label 7: the call site is not in the table. */
.macro missed
7:  mov $8, %eax
    jump_slow
.endm

/* ---- Jumps. For bound entries, rax points to their slots. ---- */

.macro landing
.endm

.macro jump_to_slot
    jmp *accel_slot_enter + 8*index(%rip)
.endm

.macro jump_forward
    jmp *accel_slot_forward + 8*index(%rip)
.endm

.macro jump_slow
    jmp accel_slow_blocks + ACCEL_SLOW_SIZE*index
.endm

.macro jump_bound_forward
    jmp *ACCEL_SLOT_FORWARD(%rax)
.endm

.macro jump_bound_slow
    jmp *ACCEL_SLOT_SLOW(%rax)
.endm

.macro slow_stub number
    mov $\number, %r11d
    jmp slow_common
.endm

.macro bound_entry
.Lbound\@:
    jmp *accel_bound_slots + ACCEL_SLOTS_SIZE*bound + ACCEL_SLOT_ENTER(%rip)
    .org .Lbound\@ + ACCEL_BOUND_SLOW
    mov $(index + bound), %r11d
    jmp slow_common
    .org .Lbound\@ + ACCEL_BOUND_GATE
    lea accel_bound_slots + ACCEL_SLOTS_SIZE*bound(%rip), %rax
    jmp *ACCEL_SLOT_COMPARE(%rax)
    .org .Lbound\@ + ACCEL_BOUND_BLOCK
    .set bound, bound + 1
.endm

#include "shim/arch/entries.inc"

    .section .text.lead_to_slow_stubs, "ax", @progbits
    .balign 16
    .type lead_to_slow_stubs, @gnu_indirect_function
lead_to_slow_stubs:
    .cfi_startproc
    sub $8, %rsp
    .cfi_adjust_cfa_offset 8
    lea accel_slot_enter(%rip), %rax
    lea accel_slow_blocks(%rip), %rdx
    /* Eight slots at a time, two in each register. */
    movq %rdx, %xmm0
    lea ACCEL_SLOW_SIZE(%rdx), %rcx
    movq %rcx, %xmm1
    punpcklqdq %xmm1, %xmm0
    mov $2*ACCEL_SLOW_SIZE, %ecx
    movq %rcx, %xmm4
    punpcklqdq %xmm4, %xmm4
    movdqa %xmm0, %xmm1
    paddq %xmm4, %xmm1
    movdqa %xmm1, %xmm2
    paddq %xmm4, %xmm2
    movdqa %xmm2, %xmm3
    paddq %xmm4, %xmm3
    psllq $2, %xmm4
    mov $(index + 7)/8, %ecx
1:  movaps %xmm0, (%rax)
    movaps %xmm1, 16(%rax)
    movaps %xmm2, 32(%rax)
    movaps %xmm3, 48(%rax)
    paddq %xmm4, %xmm0
    paddq %xmm4, %xmm1
    paddq %xmm4, %xmm2
    paddq %xmm4, %xmm3
    add $64, %rax
    dec %ecx
    jnz 1b
    call accel_bindings_relocate
    lea accel_slow_blocks(%rip), %rax
    add $8, %rsp
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_endproc
    .size lead_to_slow_stubs, . - lead_to_slow_stubs

/* ---- r11d: the entry's number. Saves the argument registers as a struct accel_frame, and calls
 * accel_enter(). ---- */

.macro frame_registers move
    .set at, 0
    .irp register, rdi, rsi, rdx, rcx, r8, r9
    \move mov, %\register, at
    .set at, at + 8
    .endr
    .set at, ACCEL_FRAME_FPR
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
    \move movaps, %xmm\n, at
    .set at, at + 16
    .endr
    \move mov, %rax, ACCEL_FRAME_RAX
.endm

.macro save instruction, register, at
    \instruction \register, \at(%rsp)
.endm

.macro load instruction, register, at
    \instruction \at(%rsp), \register
.endm

    .text
    .balign 16
    .type slow_common, @function
slow_common:
    .cfi_startproc
    sub $ACCEL_FRAME_SIZE, %rsp
    .cfi_adjust_cfa_offset ACCEL_FRAME_SIZE
    frame_registers save
    mov %r11d, %edi
    mov %rsp, %rsi
    call accel_enter
    mov %rax, %r11
    frame_registers load
    add $ACCEL_FRAME_SIZE, %rsp
    .cfi_adjust_cfa_offset -ACCEL_FRAME_SIZE
    test %r11, %r11
    jz 1f
    jmp *%r11
1:  ret
    .cfi_endproc
    .size slow_common, . - slow_common

/*
 * ---- dlsym: the real one judges its caller by the return address (RTLD_NEXT, RTLD_DEFAULT), so a
 * look-up of a name that is not ours leaves here by a tail jump. ----
 */

    .balign 16
    .globl dlsym
    .type dlsym, @function
dlsym:
    .cfi_startproc
    sub $24, %rsp
    .cfi_adjust_cfa_offset 24
    mov %rdi, (%rsp)
    mov 24(%rsp), %rdx
    call accel_dlsym_hook
    mov (%rsp), %rdi
    add $24, %rsp
    .cfi_adjust_cfa_offset -24
    cmp $ACCEL_DLSYM_REAL, %eax
    jae 1f
    mov %rdx, %rax
    ret
1:  mov %rdx, %rsi
    ja 2f
    .hidden accel_real_dlsym
    jmp *accel_real_dlsym(%rip)
2:  .hidden accel_next_dlsym
    jmp *accel_next_dlsym(%rip)
    .cfi_endproc
    .size dlsym, . - dlsym

    .section .note.GNU-stack, "", @progbits
