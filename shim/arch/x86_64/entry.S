/*
 * Entry points for x86-64, System V ABI: https://gitlab.com/x86-psABIs/x86-64-ABI, section 3.2.3.
 * Registers used before the original is reached: r10, r11, which carry no argument, and flags; rax, which has one where a function
 * is variadic, only on the way to BLAS.
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

/*
 * ---- The gate collects the sizes with OR in r11 and compares once: a size at or above the gate makes the OR
 * so, and since the gate is a power of two, nothing else does. position counts the INTEGER-class arguments
 * from 1. ----
 */

.macro collect operand64, operand32
    .if first_size
        .if width64
            mov \operand64, %r11
        .else
            mov \operand32, %r11d
        .endif
    .else
        .if width64
            or \operand64, %r11
        .else
            or \operand32, %r11d
        .endif
    .endif
    .set first_size, 0
.endm

.macro collect_register reg64, reg32
    .if cblas
        collect %\reg64, %\reg32
    .else
        collect (%\reg64), (%\reg64)
    .endif
.endm

.macro collect_stack
    .if cblas
        collect 8*(position-6)(%rsp), 8*(position-6)(%rsp)
    .else
        mov 8*(position-6)(%rsp), %r10
        collect (%r10), (%r10)
    .endif
.endm

.macro arg_word
    .set position, position + 1
.endm

.macro arg_scalar
    .if cblas & !is_complex
    .else
        .set position, position + 1
    .endif
.endm

/* Of the Fortran interface alone, of LAPACKE alone. */
.macro arg_fortran
    .if !lapacke
        .set position, position + 1
    .endif
.endm

.macro arg_lapacke
    .if lapacke
        .set position, position + 1
    .endif
.endm

.macro arg_real
    .if !cblas
        .set position, position + 1
    .endif
.endm

.macro arg_size
    .set position, position + 1
    .if position == 1
        collect_register rdi, edi
    .elseif position == 2
        collect_register rsi, esi
    .elseif position == 3
        collect_register rdx, edx
    .elseif position == 4
        collect_register rcx, ecx
    .elseif position == 5
        collect_register r8, r8d
    .elseif position == 6
        collect_register r9, r9d
    .else
        collect_stack
    .endif
.endm

/*
 * Arrays of sizes may have no elements, so they are read once the number of groups is known, which is a later
 * argument. More than one group goes to the slow stub, which looks at all; of one, m and n count, which are among
 * the registers.
 */
.macro arg_sizes
    .set position, position + 1
    .if first_array == 0
        .set first_array, position
    .elseif second_array == 0
        .set second_array, position
    .endif
.endm

.macro collect_array at
    .if \at == 3
        collect (%rdx), (%rdx)
    .elseif \at == 4
        collect (%rcx), (%rcx)
    .elseif \at == 5
        collect (%r8), (%r8)
    .else
        .error "an array of sizes in another place"
    .endif
.endm

.macro arg_groups
    .set position, position + 1
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
    collect_array first_array
    collect_array second_array
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
 * ---- The original of this call site, to rax: at its place in the table, or at the next. The target is read
 * between two looks at the key: see entry.h. ----
 */

.macro find_site missing
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
    jne \missing
.endm

/* Where find_site goes on. */
.macro find_second_site missing
8:  cmp %r11, 8(%r10)
    jne \missing
    mov accel_site_target - accel_site_key + 8(%r10), %rax
    cmp %r11, 8(%r10)
    jne \missing
.endm

/* ---- One exported entry. gate_args is redefined for every routine. ---- */

.macro entry symbol
    .balign 16
    .globl \symbol
    .type \symbol, @function
\symbol:
    jmp *accel_slot_enter + 8*index(%rip)
    .size \symbol, . - \symbol

    /* One original for all callers. Right behind the symbol's jump: the same cache line mostly. */
.Lgate\@:
    gate_sizes
    jmp *accel_slot_forward + 8*index(%rip)
9:  jmp .Lslow\@

    /* The same for bound entries: rax has their slots. */
.Lcompare\@:
    gate_sizes
    jmp *ACCEL_SLOT_FORWARD(%rax)
9:  jmp *ACCEL_SLOT_SLOW(%rax)

    /* The original depends on the caller. */
.Lbycaller\@:
    find_site .Lmissed\@
    jmp *%rax
    find_second_site .Lmissed\@
    jmp *%rax

    /* The same, and then the gate: only the look-up tells that this is BLAS and has sizes. */
.Lbycaller_gate\@:
    find_site .Lmissed\@
    gate_sizes
    jmp *%rax
9:  jmp .Lslow\@
    find_second_site .Lmissed\@
    gate_sizes
    jmp *%rax
9:  jmp .Lslow\@

    /* A function that is not BLAS may be variadic: then al is a bound on the number of vector registers with arguments. */
.Lmissed\@:
    mov $8, %eax
    jmp .Lslow\@

    entry_tables .Lgate\@, .Lcompare\@, .Lbycaller\@, .Lbycaller_gate\@, .Lslow\@
.endm

/* The slow stub, and where the parts are. */
.macro entry_tables gate, compare, bycaller, bycaller_gate, slow
    .pushsection accel_entries.slow, "ax", @progbits
    .balign ACCEL_SLOW_SIZE
\slow:
    mov $index, %r11d
    jmp slow_common
    .popsection
    .pushsection accel_tables, "a", @progbits
    .long \gate - accel_blocks
    .long \compare - accel_blocks, \bycaller - accel_blocks, \bycaller_gate - accel_blocks
    .popsection
    .set index, index + 1
.endm

/* The same for a function that is not BLAS's: only its operation can read its arguments, so the gate lets every call into the slow stub. */
.macro entry_without_gate symbol
    .balign 16
    .globl \symbol
    .type \symbol, @function
\symbol:
    jmp *accel_slot_enter + 8*index(%rip)
    .size \symbol, . - \symbol
.Lgate\@:
    jmp .Lslow\@
.Lcompare\@:
    jmp *ACCEL_SLOT_SLOW(%rax)
.Lbycaller\@:
    find_site .Lmissed\@
    jmp *%rax
    find_second_site .Lmissed\@
    jmp *%rax
.Lmissed\@:
    mov $8, %eax
    jmp .Lslow\@
    entry_tables .Lgate\@, .Lcompare\@, .Lbycaller\@, .Lgate\@, .Lslow\@
.endm

#define FLAG(x, letters)                         arg_word;
#define SIZE(x)                                  arg_size;
#define SCALAR(x)                                arg_scalar;
#define REAL(x)                                  arg_real;
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
#define WORK(x)                                  arg_fortran;
#define LWORK(x)                                 arg_fortran;
#define INFO(x)                                  arg_fortran;
#define EXTRA(x)                                 arg_lapacke;

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
#define OWN_ENTRY(name, symbol)          entry_without_gate symbol;
#define FUNCTION(name, op, dtype, names) names(OWN_ENTRY, name)

    .section accel_tables, "a", @progbits
    .balign 8
    .globl accel_code
    .hidden accel_code
    .type accel_code, @object
accel_code:

    .section accel_entries.slow, "ax", @progbits
    .balign 64
    .globl accel_slow_blocks
    .hidden accel_slow_blocks
    .type accel_slow_blocks, @object
accel_slow_blocks:

    /* Behind all other code, as the stubs below: what a program's start runs lies close together, and little of the file becomes resident. */
    .section accel_entries, "ax", @progbits
    .balign 64
    .globl accel_blocks
    .hidden accel_blocks
    .type accel_blocks, @object
accel_blocks:
    .cfi_startproc
    .set index, 0
#include "ops/routines.def"
    .cfi_endproc

    .section .rodata
    .balign 4
    .globl accel_entry_count
    .hidden accel_entry_count
    .type accel_entry_count, @object
    .size accel_entry_count, 4
accel_entry_count:
    .long index
    .if index + ACCEL_BOUND_ENTRIES > ACCEL_ENTRIES_MAX
    .error "too many names: ACCEL_ENTRIES_MAX"
    .endif

/*
 * ---- Every exported entry leads to its slow stub before any call can come in. The dynamic linker calls this for the one relocation
 * that asks for it, below: a relocation for each entry would make three times as many pages of the file resident. ----
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

/* ---- The pool of bound entries; their indexes follow the exported ones'. ---- */

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
    .globl accel_bound_blocks
    .hidden accel_bound_blocks
    .type accel_bound_blocks, @object
accel_bound_blocks:
    .cfi_startproc
    .set bound, 0
    .rept ACCEL_BOUND_ENTRIES
    bound_entry
    .endr
    .cfi_endproc

    .macro zeroed symbol, bytes
    .globl \symbol
    .hidden \symbol
    .type \symbol, @object
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

/* ---- r11d = entry. Saves the argument registers as struct accel_frame. ---- */

    .text
    .balign 16
    .type slow_common, @function
slow_common:
    .cfi_startproc
    sub $ACCEL_FRAME_SIZE, %rsp
    .cfi_adjust_cfa_offset ACCEL_FRAME_SIZE
    mov %rdi, 0(%rsp)
    mov %rsi, 8(%rsp)
    mov %rdx, 16(%rsp)
    mov %rcx, 24(%rsp)
    mov %r8, 32(%rsp)
    mov %r9, 40(%rsp)
    movaps %xmm0, ACCEL_FRAME_XMM+0(%rsp)
    movaps %xmm1, ACCEL_FRAME_XMM+16(%rsp)
    movaps %xmm2, ACCEL_FRAME_XMM+32(%rsp)
    movaps %xmm3, ACCEL_FRAME_XMM+48(%rsp)
    movaps %xmm4, ACCEL_FRAME_XMM+64(%rsp)
    movaps %xmm5, ACCEL_FRAME_XMM+80(%rsp)
    movaps %xmm6, ACCEL_FRAME_XMM+96(%rsp)
    movaps %xmm7, ACCEL_FRAME_XMM+112(%rsp)
    mov %rax, ACCEL_FRAME_RAX(%rsp)
    mov %r11d, %edi
    mov %rsp, %rsi
    call accel_enter
    mov %rax, %r11
    mov ACCEL_FRAME_RAX(%rsp), %rax
    mov 0(%rsp), %rdi
    mov 8(%rsp), %rsi
    mov 16(%rsp), %rdx
    mov 24(%rsp), %rcx
    mov 32(%rsp), %r8
    mov 40(%rsp), %r9
    movaps ACCEL_FRAME_XMM+0(%rsp), %xmm0
    movaps ACCEL_FRAME_XMM+16(%rsp), %xmm1
    movaps ACCEL_FRAME_XMM+32(%rsp), %xmm2
    movaps ACCEL_FRAME_XMM+48(%rsp), %xmm3
    movaps ACCEL_FRAME_XMM+64(%rsp), %xmm4
    movaps ACCEL_FRAME_XMM+80(%rsp), %xmm5
    movaps ACCEL_FRAME_XMM+96(%rsp), %xmm6
    movaps ACCEL_FRAME_XMM+112(%rsp), %xmm7
    add $ACCEL_FRAME_SIZE, %rsp
    .cfi_adjust_cfa_offset -ACCEL_FRAME_SIZE
    test %r11, %r11
    jz 1f
    jmp *%r11
1:  ret
    .cfi_endproc
    .size slow_common, . - slow_common

/*
 * ---- dlsym: the real one judges its caller by the return address (RTLD_NEXT, RTLD_DEFAULT), so a name
 * that is none of ours leaves here by a tail jump. ----
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
