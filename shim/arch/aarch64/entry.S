/*
 * Entry points for AArch64: Procedure Call Standard for the Arm 64-bit Architecture,
 * https://github.com/ARM-software/abi-aa, aapcs64, section 6.1.1. On the way to the original, an
 * entry changes x9 to x11, x16, x17 and the flags, which carry no argument: x9 to x15 are
 * temporary, x16 and x17 a linker's. Every indirect jump is through x16: a landing pad for calls
 * takes it.
 *
 * Loads are not in order by themselves. Who finds a new target in a slot must not read older data
 * than what was there when it was written: the address of that data is made of the target's, which
 * is an order that processors keep (an address dependency: Arm Architecture Reference Manual for
 * A-profile, DDI 0487, B2.3).
 */
#include "shim/arch/aarch64/assembler.inc"
#include "shim/arch/frame_aarch64.h"
#include "shim/arch/entry.h"

.macro load register, symbol:vararg
    adrp \register, \symbol
    ldr \register, [\register, :lo12:\symbol]
.endm

.macro address register, symbol:vararg
    adrp \register, \symbol
    add \register, \register, :lo12:\symbol
.endm

/* Loads the address, and makes it depend on x16, which holds the target that has led here. */
.macro address_after_target register, symbol:vararg
    eor x17, x16, x16
    address \register, \symbol
    add \register, \register, x17
.endm

/* ---- The gate ORs the sizes into x9. ---- */

.macro collect register
    .if first_size
        mov x9, \register
    .else
        orr x9, x9, \register
    .endif
    .set first_size, 0
.endm

.macro load_integer register
    .if width64
        ldr x10, [\register]
    .else
        ldr w10, [\register]
    .endif
.endm

/* A register is collected whole, and so is the stack's word: the gate of an LP64 name compares the
 * lower half alone. */
.macro collect_argument at, by_value
    .set register, 0
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
        .set register, register + 1
        .if register == \at && \by_value
            collect x\n
        .elseif register == \at
            load_integer x\n
            collect x10
        .endif
    .endr
    .if \at > 8
        ldr x10, [sp, 8*(\at-9)]
        .if \by_value == 0
            load_integer x10
        .endif
        collect x10
    .endif
.endm

/* Loads a size with its sign. */
.macro load_size at, by_value, into
    .if \at > 8
        .error "a size of a matrix is expected in a register"
    .endif
    .set register, 0
    .irp n, 0, 1, 2, 3, 4, 5, 6, 7
        .set register, register + 1
        .if register == \at && \by_value && width64
            mov \into, x\n
        .elseif register == \at && \by_value
            sxtw \into, w\n
        .elseif register == \at && width64
            ldr \into, [x\n]
        .elseif register == \at
            ldrsw \into, [x\n]
        .endif
    .endr
.endm

.macro compare_product at, other, by_value, most
    load_size \at, \by_value, x9
    load_size \other, \by_value, x10
    mul x9, x9, x10
    mov x10, \most
    cmp x9, x10
    b.hs 9f
.endm

.macro more_than_one at
    .if \at <= 8
        .error "the number of groups is expected on the stack"
    .endif
    ldr x10, [sp, 8*(\at-9)]
    .if cblas == 0
        ldr w10, [x10]
    .endif
    cmp w10, 1
    b.ne 9f
.endm

.macro compare_sizes
    load x10, accel_gate
    .if width64
        cmp x9, x10
    .else
        cmp w9, w10
    .endif
    b.hs 9f
.endm

.macro gate_count
    cbz x0, 9f
    address_after_target x10, accel_count_at + 4*own
    ldr w10, [x10]
    add x10, x0, x10
    ldur w10, [x10, -1]
    movz w9, small_count & 0xffff
    movk w9, small_count >> 16, lsl 16
    cmp w10, w9
    b.hs 9f
.endm

/*
 * ---- Loads x16 with the original of this call site, from its place in the table or the next one;
 * goes to label 7 if neither has it. Reads the target between two looks at the key: see
 * accel_site_key in entry.h. ----
 */

/* Goes to `other` if the place at x11 has another key than x9. */
.macro look_at_site other
    ldar x10, [x11]
    cmp x10, x9
    b.ne \other
    add x10, x11, (8*ACCEL_SITES) >> 12, lsl 12
    ldar x16, [x10]
    ldr x10, [x11]
    cmp x10, x9
    b.ne 7f
.endm

.if (8*ACCEL_SITES) & 0xfff
    .error "the targets are expected whole pages behind the keys"
.endif

.macro find_site
    movz x9, index, lsl ACCEL_SITE_ENTRY_SHIFT
    add x9, x9, x30
    movz w10, ACCEL_SITE_HASH & 0xffff
    movk w10, ACCEL_SITE_HASH >> 16, lsl 16
    mul w10, w9, w10
    lsr w10, w10, 32 - ACCEL_SITE_BITS
    address x11, accel_site_key + 8*ACCEL_SITE_OFFSET(index)
    add x11, x11, x10, lsl 3
    look_at_site 8f
.endm

/* find_site goes on here if its first place has another key. */
.macro find_second_site
8:  add x11, x11, 8
    look_at_site 7f
.endm

.macro jump_site
    br x16
.endm

/* Label 7: the call site is not in the table. */
.macro missed
7:  jump_slow
.endm

/* ---- Jumps. For bound entries, x11 points to their slots. ---- */

.macro jump_to_slot
    load x16, accel_slot_enter + 8*index
    br x16
.endm

.macro jump_forward
    address_after_target x10, accel_slot_forward + 8*index
    ldr x16, [x10]
    br x16
.endm

.macro jump_slow
    b accel_slow_blocks + ACCEL_SLOW_SIZE*index
.endm

.macro jump_bound slot
    ldr x16, [x11, \slot]
    br x16
.endm

.macro jump_bound_forward
    jump_bound ACCEL_SLOT_FORWARD
.endm

.macro jump_bound_slow
    jump_bound ACCEL_SLOT_SLOW
.endm

.macro slow_stub number
    landing
    mov w17, \number
    b slow_common
.endm

.macro bound_entry
.Lbound\@:
    landing
    load x16, accel_bound_slots + ACCEL_SLOTS_SIZE*bound + ACCEL_SLOT_ENTER
    br x16
    .org .Lbound\@ + ACCEL_BOUND_SLOW
    slow_stub "(index + bound)"
    .org .Lbound\@ + ACCEL_BOUND_GATE
    landing
    address x11, accel_bound_slots + ACCEL_SLOTS_SIZE*bound
    jump_bound ACCEL_SLOT_COMPARE
    .org .Lbound\@ + ACCEL_BOUND_BLOCK
    .set bound, bound + 1
.endm

#include "shim/arch/entries.inc"

    .section .text.lead_to_slow_stubs, "ax", @progbits
    .balign 16
    .type lead_to_slow_stubs, @gnu_indirect_function
lead_to_slow_stubs:
    .cfi_startproc
    landing
    stp x29, x30, [sp, -16]!
    .cfi_adjust_cfa_offset 16
    .cfi_offset x29, -16
    .cfi_offset x30, -8
    address x1, accel_slot_enter
    address x0, accel_slow_blocks
    mov w2, index
1:  str x0, [x1], 8
    add x0, x0, ACCEL_SLOW_SIZE
    subs w2, w2, 1
    b.ne 1b
    bl accel_bindings_relocate
    address x0, accel_slow_blocks
    ldp x29, x30, [sp], 16
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -16
    ret
    .cfi_endproc
    .size lead_to_slow_stubs, . - lead_to_slow_stubs

/* ---- w17: the entry's number. Saves the argument registers as a struct accel_frame, and calls
 * accel_enter(). ---- */

.macro frame_registers move
    .irp n, 0, 2, 4, 6
    frame_pair \move, x\n, \n, 8*\n
    .endr
    \move\()r x8, [sp, ACCEL_FRAME_X8]
    .irp n, 0, 2, 4, 6
    frame_pair \move, q\n, \n, ACCEL_FRAME_FPR+16*\n
    .endr
.endm

/* Moves the register and the next one of its kind. */
.macro frame_pair move, first, n, at
    .irp next, 1, 3, 5, 7
    .if \next == \n + 1
    .ifc \first, x\n
    \move\()p x\n, x\next, [sp, \at]
    .else
    \move\()p q\n, q\next, [sp, \at]
    .endif
    .endif
    .endr
.endm

    .text
    .balign 16
    .type slow_common, @function
slow_common:
    .cfi_startproc
    sub sp, sp, ACCEL_FRAME_SIZE
    .cfi_adjust_cfa_offset ACCEL_FRAME_SIZE
    stp x29, x30, [sp, ACCEL_FRAME_RECORD]
    .cfi_offset x29, ACCEL_FRAME_RECORD - ACCEL_FRAME_SIZE
    .cfi_offset x30, ACCEL_FRAME_RECORD + 8 - ACCEL_FRAME_SIZE
    frame_registers st
    add x29, sp, ACCEL_FRAME_RECORD
    mov w0, w17
    mov x1, sp
    bl accel_enter
    mov x16, x0
    frame_registers ld
    ldp x29, x30, [sp, ACCEL_FRAME_RECORD]
    .cfi_restore x29
    .cfi_restore x30
    add sp, sp, ACCEL_FRAME_SIZE
    .cfi_adjust_cfa_offset -ACCEL_FRAME_SIZE
    cbz x16, 1f
    br x16
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
    landing
    stp x29, x30, [sp, -32]!
    .cfi_adjust_cfa_offset 32
    .cfi_offset x29, -32
    .cfi_offset x30, -24
    mov x29, sp
    str x0, [sp, 16]
    mov x2, x30
    bl accel_dlsym_hook
    mov x9, x0
    ldr x0, [sp, 16]
    ldp x29, x30, [sp], 32
    .cfi_restore x29
    .cfi_restore x30
    .cfi_adjust_cfa_offset -32
    cmp x9, ACCEL_DLSYM_REAL
    b.hs 1f
    mov x0, x1
    ret
1:  b.hi 2f
    load x16, accel_real_dlsym
    br x16
2:  load x16, accel_next_dlsym
    br x16
    .cfi_endproc
    .hidden accel_real_dlsym
    .hidden accel_next_dlsym
    .size dlsym, . - dlsym

    .section .note.GNU-stack, "", @progbits
