/* Source: Arm Architecture Reference Manual for A-profile, "A64 Instruction Set Encoding". */
#include "shim/arch/instruction.h"

#include <string.h>

enum { X0, X16 = 16, LINK = 30, ZERO = 31, STACK = 31 };

const int accel_argument_registers[] = {0, 1, 2, 3, 4, 5, 6, 7};
const int accel_argument_register_count = 8, accel_stack_register = STACK,
          accel_stack_arguments = 0;
const uint32_t accel_changed_by_calls = 0x7ffff | 1u << LINK;

static uint32_t field(uint32_t word, int high, int low)
{
    return word >> low & (uint32_t)((1ull << (high - low + 1)) - 1);
}

static int64_t signed_field(uint32_t word, int high, int low)
{
    const int unused = 63 - (high - low);
    return (int64_t)((uint64_t)field(word, high, low) << unused) >> unused;
}

static int rd(uint32_t word)
{
    return (int)field(word, 4, 0);
}

static int rn(uint32_t word)
{
    return (int)field(word, 9, 5);
}

static int rm(uint32_t word)
{
    return (int)field(word, 20, 16);
}

static bool is_whole(uint32_t word)
{
    return word >> 31;
}

static void kill(struct accel_instruction *i, int reg)
{
    if (reg != ZERO)
        i->kills |= 1u << reg;
}

static void mark_used(struct accel_instruction *i, int reg, bool whole)
{
    if (reg == ZERO)
        return;
    if (whole)
        i->whole |= 1u << reg;
    else
        i->halves |= 1u << reg;
}

static void go(struct accel_instruction *i, enum accel_flow flow, const uint8_t *code,
               int64_t words)
{
    i->flow = flow;
    i->target = (uintptr_t)(code + 4 * words);
}

/* ---- With a constant ---- */

static void add_constant(struct accel_instruction *i, uint32_t word)
{
    const int64_t value = (int64_t)field(word, 21, 10) << (field(word, 22, 22) ? 12 : 0);
    const bool sets_flags = field(word, 29, 29);
    if (rn(word) != STACK)
        mark_used(i, rn(word), is_whole(word));
    if (!is_whole(word) || sets_flags) {
        kill(i, rd(word));
        return;
    }
    i->action = ACCEL_ADDRESS;
    i->to = rd(word);
    i->base = rn(word);
    i->offset = field(word, 30, 30) ? -value : value;
}

static void bit_field(struct accel_instruction *i, uint32_t word)
{
    const uint32_t last = field(word, 15, 10);
    if (!is_whole(word) || last == 31)
        mark_used(i, rn(word), false);
    else if (last > 31)
        mark_used(i, rn(word), true);
    kill(i, rd(word));
}

static void with_constant(struct accel_instruction *i, uint32_t word)
{
    switch (field(word, 25, 23)) {
    case 2:
        add_constant(i, word);
        break;
    case 4:
        mark_used(i, rn(word), is_whole(word));
        i->kills |= 1u << rd(word); /* or the stack's pointer */
        break;
    case 6:
        bit_field(i, word);
        break;
    default:
        kill(i, rd(word));
    }
}

/* ---- Branches ---- */

static void branch(struct accel_instruction *i, uint32_t word, const uint8_t *code)
{
    if ((word & 0x7c000000) == 0x14000000) {
        go(i, is_whole(word) ? ACCEL_CALL : ACCEL_JUMP, code, signed_field(word, 25, 0));
    } else if ((word & 0xff000000) == 0x54000000) {
        go(i, ACCEL_BRANCH, code, signed_field(word, 23, 5));
    } else if ((word & 0x7e000000) == 0x34000000) {
        mark_used(i, rd(word), is_whole(word));
        go(i, ACCEL_BRANCH, code, signed_field(word, 23, 5));
    } else if ((word & 0x7e000000) == 0x36000000) {
        const uint32_t tested = field(word, 31, 31) << 5 | field(word, 23, 19);
        if (tested == 31 || tested == 63) /* the sign */
            mark_used(i, rd(word), tested == 63);
        go(i, ACCEL_BRANCH, code, signed_field(word, 18, 5));
    } else if ((word & 0xfe000000) == 0xd6000000) {
        i->flow = field(word, 22, 21) == 1 ? ACCEL_CALL
                  : field(word, 22, 21)    ? ACCEL_END
                                           : ACCEL_JUMP;
    } else if ((word & 0xff000000) == 0xd4000000) {
        i->flow = ACCEL_END;
    } else if ((word & 0xfff00000) == 0xd5300000) {
        kill(i, rd(word)); /* mrs */
    }
}

/* ---- Memory ---- */

static void set_register(struct accel_instruction *i, bool loads, bool vector, int reg)
{
    i->action = vector ? ACCEL_OTHER : loads ? ACCEL_LOAD : ACCEL_STORE;
    if (vector)
        return;
    if (loads)
        i->to = reg == ZERO ? ACCEL_NO_REGISTER : reg;
    else
        i->from = reg == ZERO ? ACCEL_NO_REGISTER : reg;
    if (!loads && i->size >= 4)
        mark_used(i, reg, i->size == 8);
}

static void move_base(struct accel_instruction *i, bool before, bool after, int64_t value)
{
    if (before)
        i->before = (int)value;
    else if (after)
        i->after = (int)value;
    else
        i->offset = value;
}

static void pair(struct accel_instruction *i, uint32_t word)
{
    const bool vector = field(word, 26, 26), loads = field(word, 22, 22);
    const int kind = (int)field(word, 31, 30), mode = (int)field(word, 24, 23);
    i->size = vector ? 4 << kind : kind == 2 ? 8 : 4;
    i->base = rn(word);
    set_register(i, loads, vector, rd(word));
    i->to2 = (int)field(word, 14, 10);
    move_base(i, mode == 3, mode == 1, signed_field(word, 21, 15) * i->size);
}

static void single(struct accel_instruction *i, uint32_t word)
{
    const bool vector = field(word, 26, 26), scaled = field(word, 24, 24);
    const uint32_t kind = field(word, 23, 22), mode = field(word, 11, 10);
    const int size = vector && (kind & 2) ? 16 : 1 << field(word, 31, 30);
    const bool prefetches = !vector && kind == 2 && size == 8;
    i->base = rn(word);
    i->size = size;
    if (prefetches) {
        i->size = 0;
        return;
    }
    set_register(i, vector ? kind & 1 : kind != 0, vector, rd(word));
    if (!vector && kind > 1 && i->to >= 0) { /* with its sign: no copy */
        i->kills |= 1u << i->to;
        i->to = ACCEL_NO_REGISTER;
    }
    if (scaled)
        i->offset = (int64_t)field(word, 21, 10) * size;
    else if (field(word, 21, 21))
        i->indexed = true;
    else
        move_base(i, mode == 3, mode == 1, signed_field(word, 20, 12));
}

static void memory(struct accel_instruction *i, uint32_t word)
{
    if ((word & 0x3a000000) == 0x28000000) {
        pair(i, word);
    } else if ((word & 0x3a000000) == 0x38000000) {
        single(i, word);
    } else if ((word & 0x3b000000) == 0x18000000) {
        if (!field(word, 26, 26))
            kill(i, rd(word)); /* a constant */
    } else if ((word & 0xbffff000) == 0x0d40c000) {
        i->base = rn(word); /* ld1r: one element for all */
        i->size = 1 << field(word, 11, 10);
    } else if ((word & 0x3f000000) == 0x08000000) { /* exclusive, ordered */
        kill(i, rd(word));
        kill(i, (int)field(word, 14, 10));
        kill(i, rm(word));
    }
}

/* ---- Registers ---- */

static void logical(struct accel_instruction *i, uint32_t word)
{
    if ((word & 0xffe0ffe0) == 0xaa0003e0 && rm(word) != ZERO) {
        if (rd(word) == ZERO)
            return;
        i->action = ACCEL_MOVE;
        i->to = rd(word);
        i->from = rm(word);
        return;
    }
    mark_used(i, rn(word), is_whole(word));
    mark_used(i, rm(word), is_whole(word));
    kill(i, rd(word));
}

static void add_registers(struct accel_instruction *i, uint32_t word)
{
    const bool extended = field(word, 21, 21);
    const bool whole = extended ? field(word, 14, 13) == 3 : is_whole(word);
    if (!extended || rn(word) != STACK)
        mark_used(i, rn(word), is_whole(word));
    if (!extended || field(word, 14, 13) > 1)
        mark_used(i, rm(word), whole);
    if (extended && !field(word, 29, 29))
        i->kills |= 1u << rd(word); /* or the stack's pointer */
    else
        kill(i, rd(word));
}

static void three_sources(struct accel_instruction *i, uint32_t word)
{
    const bool widens = field(word, 21, 21);
    mark_used(i, rn(word), is_whole(word) && !widens);
    mark_used(i, rm(word), is_whole(word) && !widens);
    kill(i, rd(word));
}

static void registers(struct accel_instruction *i, uint32_t word)
{
    const uint32_t kind = field(word, 28, 24);
    if (kind == 10) {
        logical(i, word);
    } else if (kind == 11) {
        add_registers(i, word);
    } else if (kind == 27) {
        three_sources(i, word);
    } else {
        const bool compares = (word & 0x1fe00000) == 0x1a400000;
        if (compares || field(word, 23, 21) == 6)
            mark_used(i, rn(word), is_whole(word));
        if (!compares)
            kill(i, rd(word));
    }
}

static void vector(struct accel_instruction *i, uint32_t word)
{
    const bool converts = (word & 0x5f20fc00) == 0x1e200000;
    const uint32_t kind = field(word, 18, 16);
    if (converts && (kind == 2 || kind == 3 || kind == 7))
        mark_used(i, rn(word), is_whole(word));
    else if (converts || (word & 0x5f200000) == 0x1e000000 ||
             (word & 0xbfe0ec00) == 0x0e002c00) /* fixed point; smov, umov */
        kill(i, rd(word));
}

struct accel_instruction accel_instruction_at(const uint8_t *code, size_t readable)
{
    struct accel_instruction i = {.to = ACCEL_NO_REGISTER,
                                  .to2 = ACCEL_NO_REGISTER,
                                  .from = ACCEL_NO_REGISTER,
                                  .base = ACCEL_NO_REGISTER};
    uint32_t word;
    if (readable < sizeof word)
        return i;
    memcpy(&word, code, sizeof word);
    const uint32_t group = field(word, 28, 25);
    i.length = sizeof word;
    if (group == 8 || group == 9)
        with_constant(&i, word);
    else if (group == 10 || group == 11)
        branch(&i, word, code);
    else if ((group & 5) == 4)
        memory(&i, word);
    else if ((group & 7) == 5)
        registers(&i, word);
    else if ((group & 7) == 7)
        vector(&i, word);
    else if (group == 2) /* SVE: some count in a general register */
        kill(&i, rd(word));
    else
        i.length = 0;
    return i;
}

/* A procedure linkage table's: adrp x16, PAGE; ldr x17, [x16, SLOT]; add x16, x16, SLOT; br x17.
 * (System V ABI for Arm 64) */
uintptr_t accel_instruction_stub(const uint8_t *code, size_t readable)
{
    uint32_t word[4];
    if (readable < sizeof word + 4)
        return 0;
    memcpy(word, code, sizeof word);
    if (word[0] == 0xd503245f) { /* bti c */
        code += 4;
        memcpy(word, code, sizeof word);
    }
    if ((word[0] & 0x9f00001f) != (0x90000000 | X16) || (word[1] & 0xffc003ff) != 0xf9400211)
        return 0;
    const int64_t pages =
        (int64_t)((uint64_t)signed_field(word[0], 23, 5) << 2 | field(word[0], 30, 29));
    return ((uintptr_t)code & ~(uintptr_t)4095) + (uintptr_t)(pages * 4096) +
           8 * (uintptr_t)field(word[1], 21, 10);
}
