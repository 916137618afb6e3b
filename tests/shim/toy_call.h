/* What a call of toy_score() finds in the registers and on the stack: toy.c notes it, toy_call.c compares. */
#ifndef TOY_CALL_H
#define TOY_CALL_H

#include <stdint.h>

struct seen {
    uint64_t gpr[6];   /* rdi rsi rdx rcx r8 r9 */
    uint64_t saved[6]; /* rbx rbp r12 r13 r14 r15 */
    double xmm[8][2];
    uint64_t stack[2]; /* behind the return address */
    uint64_t rsp;
};

extern struct seen toy_seen;

#endif
