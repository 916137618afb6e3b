/*
 * Entry points for x86-64, System V ABI: https://gitlab.com/x86-psABIs/x86-64-ABI, section 3.2.3.
 * On the way to the original, an entry changes only r10, r11 and the flags, which carry no argument. On the way to BLAS it also
 * changes rax, which has an argument only if the function is variadic.
 */
#include "entry.h"
#include "ops/manglings.def"

#define DTYPE_COMPLEX_FLOAT32    0
#define DTYPE_COMPLEX_FLOAT64    0
#define DTYPE_COMPLEX_COMPLEX64  1
#define DTYPE_COMPLEX_COMPLEX128 1
#define ABI_CBLAS_FORTRAN        0
#define ABI_CBLAS_CBLAS          1
#define ABI_CBLAS_LAPACKE        1
#define ABI_LAPACKE_FORTRAN      0
#define ABI_LAPACKE_CBLAS        0
#define ABI_LAPACKE_LAPACKE      1

/* ---- Symbols that only the C side sees ---- */

.macro hidden symbol
    .globl \symbol
    .hidden \symbol
    .type \symbol, @object
.endm

/*
 * ---- The gate ORs the sizes into r11 and compares once. The gate is a power of two, so the OR is at or above it exactly if
 * a size is. position counts the INTEGER-class arguments from 1. ----
 */

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

/* Collects the size that an argument has or points to. A register is collected whole: the gate of an LP64 name compares the lower
 * half alone. */
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

/* An argument that the gate does not read, of the interfaces for which `condition` holds. */
.macro arg_word condition=1
    .if \condition
        .set position, position + 1
    .endif
.endm

.macro arg_size
    arg_word
    collect_argument position, cblas
.endm

/*
 * An array of sizes may have no element, so it is read after the number of groups, which is a later argument. A call with
 * more than one group goes to the slow stub. With one group, the gate reads the first two arrays: m and n.
 */
.macro arg_sizes
    arg_word
    .if first_array == 0
        .set first_array, position
    .elseif second_array == 0
        .set second_array, position
    .endif
.endm

.macro arg_groups
    arg_word
    .if position <= 6
        .error "the number of groups is expected on the stack"
    .endif
    .if cblas
        cmpl $1, 8*(position-6)(%rsp)
    .else
        mov 8*(position-6)(%rsp), %r10
        cmpl $1, (%r10)
    .endif
    jne 9f
    collect_argument first_array, 0
    collect_argument second_array, 0
.endm

/* Goes to label 9 if a size is at or above the gate. */
.macro gate_sizes
    .set position, cblas
    .set first_size, 1
    .set first_array, 0
    .set second_array, 0
    gate_args
    .if width64
        cmp accel_gate(%rip), %r11
    .else
        cmp accel_gate(%rip), %r11d
    .endif
    jae 9f
.endm

/*
 * ---- Loads rax with the original of this call site, from its place in the table or the next one; goes to label 7 if neither
 * has it. Reads the target between two looks at the key: see accel_site_key in entry.h. ----
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

/* ---- One exported entry. gate_args is redefined for every routine. ---- */

#define SLOW_STUB accel_slow_blocks + ACCEL_SLOW_SIZE*index

.macro exported symbol
    .balign 16
    .globl \symbol
    .type \symbol, @function
\symbol:
    jmp *accel_slot_enter + 8*index(%rip)
    .size \symbol, . - \symbol
.endm

.macro jump_by_caller
    find_site
    jmp *%rax
    find_second_site
    jmp *%rax
.endm

/* Label 7: the call site is not in the table. A function that is not BLAS may be variadic: then al is at least the number of
 * vector registers with arguments. */
.macro site_missed
7:  mov $8, %eax
    jmp SLOW_STUB
.endm

/* Ends an entry: stores the offsets of its parts. */
.macro entry_parts gate, compare, bycaller, bycaller_gate
    .pushsection accel_tables, "a", @progbits
    .long \gate - accel_blocks, \compare - accel_blocks
    .long \bycaller - accel_blocks, \bycaller_gate - accel_blocks
    .popsection
    .set index, index + 1
.endm

.macro entry symbol
    exported \symbol

    /* If all callers have one original. Directly behind the symbol's jump: mostly in the same cache line. */
.Lgate\@:
    gate_sizes
    jmp *accel_slot_forward + 8*index(%rip)
9:  jmp SLOW_STUB

    /* The same for bound entries; rax points to their slots. */
.Lcompare\@:
    gate_sizes
    jmp *ACCEL_SLOT_FORWARD(%rax)
9:  jmp *ACCEL_SLOT_SLOW(%rax)

    /* If the original depends on the caller. */
.Lbycaller\@:
    jump_by_caller

    /* The same with a gate, behind the look-up: only the look-up tells that this is BLAS and has sizes. */
.Lbycaller_gate\@:
    find_site
    gate_sizes
    jmp *%rax
9:  jmp SLOW_STUB
    find_second_site
    gate_sizes
    jmp *%rax
9:  jmp SLOW_STUB
    site_missed
    entry_parts .Lgate\@, .Lcompare\@, .Lbycaller\@, .Lbycaller_gate\@
.endm

/* Goes to label 9 unless the first argument points to a struct whose count is small. Six instructions: a look-up at the second place
 * has 14. */
.macro gate_count
    test %rdi, %rdi
    jz 9f
    mov accel_count_at + 4*own(%rip), %r10d
    cmpl $small_count, -1(%rdi,%r10)
    jae 9f
.endm

/* A function that is not BLAS. slots.c uses its gate only if the operation has told where the count is, and keeps calls of another
 * layout out of the site table. */
.macro entry_of_function symbol
    exported \symbol
.Lgate\@:
    gate_count
    jmp *accel_slot_forward + 8*index(%rip)
9:  jmp SLOW_STUB
.Lcompare\@:
    gate_count
    jmp *ACCEL_SLOT_FORWARD(%rax)
9:  jmp *ACCEL_SLOT_SLOW(%rax)
.Lbycaller\@:
    jump_by_caller
.Lbycaller_gate\@:
    find_site
    gate_count
    jmp *%rax
9:  jmp SLOW_STUB
    find_second_site
    gate_count
    jmp *%rax
9:  jmp SLOW_STUB
    site_missed
    entry_parts .Lgate\@, .Lcompare\@, .Lbycaller\@, .Lbycaller_gate\@
    .set own, own + 1
.endm

#define FLAG(x, letters)                         arg_word;
#define SIZE(x)                                  arg_size;
#define SCALAR(x)                                arg_word "!cblas | is_complex";
#define REAL(x)                                  arg_word !cblas;
#define MATRIX(x, access, rows, cols, by)        arg_word;
#define NARROW(x, dtype, access, rows, cols, by) arg_word;
#define VECTOR(x, access, length, other, by)     arg_word;
#define LD(x, matrix)                            arg_word;
#define INC(x, vector)                           arg_word;
#define STRIDE(x, matrix)                        arg_word;
#define BATCH(x)                                 arg_word;
#define FLAGS(x, letters)                        arg_word;
#define SIZES(x)                                 arg_sizes;
#define SCALARS(x)                               arg_word;
#define MATRICES(x, access, rows, cols, by)      arg_word;
#define LDS(x, matrix)                           arg_word;
#define BATCHES(x)                               arg_word;
#define GROUPS(x)                                arg_groups;
#define OTHER(x, slot, access, rows, cols)       arg_word;
#define ARRAY(x, slot, dtype, access, length)    arg_word;
#define COUNT(x)                                 arg_word;
#define INTEGER(x)                               arg_word;
#define WORK(x)                                  arg_word !lapacke;
#define LWORK(x)                                 arg_word !lapacke;
#define INFO(x)                                  arg_word !lapacke;
#define EXTRA(x)                                 arg_word lapacke;

#define ENTRY(abi, width, trust, symbol, sibling)                                                  \
    .set cblas, ABI_CBLAS_##abi;                                                                   \
    .set lapacke, ABI_LAPACKE_##abi;                                                               \
    .set width64, width == 64;                                                                     \
    entry symbol;

#define ENTRIES(manglings, name, NAME, dtype, args)                                                \
    .set is_complex, DTYPE_COMPLEX_##dtype;                                                        \
    .macro gate_args;                                                                              \
    args;                                                                                          \
    .endm;                                                                                         \
    manglings(ENTRY, name, NAME)                                                                   \
    .purgem gate_args;
#define ROUTINE(name, NAME, op, dtype, row_major, flops, args)                                 \
    ENTRIES(ACCEL_MANGLINGS, name, NAME, dtype, args)
#define LAPACK(name, NAME, op, dtype, flops, args)                                             \
    ENTRIES(ACCEL_LAPACK_MANGLINGS, name, NAME, dtype, args)
#define OWN_ENTRY(name, symbol)          entry_of_function symbol;
#define FUNCTION(name, op, dtype, small, names)                                                \
    .set small_count, small;                                                                   \
    names(OWN_ENTRY, name)

    .section accel_tables, "a", @progbits
    .balign 8
    hidden accel_code
accel_code:

    .section accel_entries.slow, "ax", @progbits
    .balign 64
    hidden accel_slow_blocks
accel_slow_blocks:

    /* Behind all other code, as the stubs below: so the code that a program's start runs lies close together, and few pages of
     * the file become resident. */
    .section accel_entries, "ax", @progbits
    .balign 64
    hidden accel_blocks
accel_blocks:
    .cfi_startproc
    .set index, 0
    .set own, 0
#include "ops/routines.def"
    .cfi_endproc

    .section accel_entries.slow
    .set slow, 0
    .rept index
    .balign ACCEL_SLOW_SIZE
    mov $slow, %r11d
    jmp slow_common
    .set slow, slow + 1
    .endr

    .section .rodata
    .balign 4
    hidden accel_entry_count
    .size accel_entry_count, 4
accel_entry_count:
    .long index
    .if index + ACCEL_BOUND_ENTRIES > ACCEL_ENTRIES_MAX
    .error "too many names: ACCEL_ENTRIES_MAX"
    .endif

/*
 * ---- Makes every exported entry lead to its slow stub, before any call can come in. The dynamic linker calls this function
 * for the one relocation below. A relocation for each entry would make three times as many pages of the file resident. ----
 */

    .section .text.lead_to_slow_stubs, "ax", @progbits
    .balign 16
    .type lead_to_slow_stubs, @gnu_indirect_function
lead_to_slow_stubs:
    .cfi_startproc
    lea accel_slot_enter(%rip), %rax
    lea accel_slow_blocks(%rip), %rdx
    mov $index, %ecx
1:  mov %rdx, (%rax)
    add $ACCEL_SLOW_SIZE, %rdx
    add $8, %rax
    dec %ecx
    jnz 1b
    mov %rdx, %rax
    ret
    .cfi_endproc
    .size lead_to_slow_stubs, . - lead_to_slow_stubs

    .section .data.rel.ro, "aw", @progbits
    .balign 8
    .quad lead_to_slow_stubs

/* ---- The pool of bound entries; their numbers follow those of the exported entries. ---- */

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

    .section accel_entries, "ax", @progbits
    .balign 64
    hidden accel_bound_blocks
accel_bound_blocks:
    .cfi_startproc
    .set bound, 0
    .rept ACCEL_BOUND_ENTRIES
    bound_entry
    .endr
    .cfi_endproc

.macro zeroed symbol, bytes
    hidden \symbol
    .size \symbol, (\bytes)
\symbol:
    .zero (\bytes)
.endm

    .bss
    .balign 4096
    zeroed accel_slot_enter, 8*index
    .balign 64
    zeroed accel_slot_forward, 8*index
    zeroed accel_bound_slots, ACCEL_BOUND_ENTRIES*ACCEL_SLOTS_SIZE
    zeroed accel_site_key, 8*ACCEL_SITES
    zeroed accel_site_target, 8*ACCEL_SITES
    zeroed accel_gate, 8
    zeroed accel_count_at, 4*own + 4

/* ---- r11d: the entry's number. Saves the argument registers as a struct accel_frame, and calls accel_enter(). ---- */

.macro frame_registers move
    .set at, 0
    .irp register, rdi, rsi, rdx, rcx, r8, r9
    \move mov, %\register, at
    .set at, at + 8
    .endr
    .set at, ACCEL_FRAME_XMM
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
 * ---- dlsym: the real one judges its caller by the return address (RTLD_NEXT, RTLD_DEFAULT), so a look-up of a name that is
 * not ours leaves here by a tail jump. ----
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
    test %rax, %rax
    jz 1f
    mov %rdx, %rax
    ret
1:  mov %rdx, %rsi
    .hidden accel_real_dlsym
    jmp *accel_real_dlsym(%rip)
    .cfi_endproc
    .size dlsym, . - dlsym

    .section .note.GNU-stack, "", @progbits
