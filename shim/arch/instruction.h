/*
 * One instruction, as far as it tells what becomes of addresses in general registers. Each
 * architecture's instruction.c reads its code. Pure.
 */
#ifndef ACCEL_INSTRUCTION_H
#define ACCEL_INSTRUCTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ACCEL_NO_REGISTER = -1,
    ACCEL_REGISTERS = 32,        /* at most; their numbers are those of the architecture */
    ACCEL_INSTRUCTION_BYTES = 15 /* of the longest one */
};

enum accel_action {
    ACCEL_OTHER,   /* registers of `kills` get other values */
    ACCEL_MOVE,    /* `to` gets what is in `from` */
    ACCEL_ADDRESS, /* `to` gets the address of the memory operand */
    ACCEL_LOAD,    /* `to`, and `to2` from 8 bytes behind, get `size` bytes of it */
    ACCEL_STORE,   /* the same the other way round */
    ACCEL_PUSH,    /* its 8 bytes go to the stack */
    ACCEL_LEAVE,   /* the stack's pointer gets `from`; then `from` comes off the stack */
    ACCEL_ALIGN    /* the stack's pointer becomes a multiple of -offset */
};

enum accel_flow { ACCEL_NEXT, ACCEL_BRANCH, ACCEL_JUMP, ACCEL_CALL, ACCEL_END };

struct accel_instruction {
    int length; /* bytes; 0: it is not known */
    enum accel_action action;
    enum accel_flow flow;
    bool by_slot;     /* target is the place of a pointer to the code */
    uintptr_t target; /* of a branch, jump or call; 0: not known */

    int to, to2, from; /* registers, or ACCEL_NO_REGISTER */
    int base;          /* of the memory operand; ACCEL_NO_REGISTER: not in memory of a register's */
    bool indexed;      /* by another register, too: the address is not known */
    int64_t offset;    /* from base */
    int size;          /* bytes that are read or written there; 0: none */
    int before, after; /* by which base is moved before the access, and after it */

    uint32_t kills;         /* registers with other values after it */
    uint32_t halves, whole; /* registers whose lower 32 bits, or all 64, it computes with */
};

/* Registers by their meaning: those of a function's first arguments, the stack's pointer, and
 * those that a call changes. At a function's entry, its further arguments lie so many bytes behind
 * the stack's pointer, and a call moves that so far. */
extern const int accel_argument_registers[], accel_argument_register_count, accel_stack_register,
    accel_stack_arguments;
extern const uint32_t accel_changed_by_calls;

/* Reads the instruction at an address; at most `readable` bytes. */
struct accel_instruction accel_instruction_at(const uint8_t *code, size_t readable);

/* If several instructions at an address jump to where a slot leads, returns the slot, else 0. */
uintptr_t accel_instruction_stub(const uint8_t *code, size_t readable);

#endif
