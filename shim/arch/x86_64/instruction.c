/* Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A
 * (opcode map). */
#include "shim/arch/instruction.h"

#include <string.h>

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

const int accel_argument_registers[] = {RDI, RSI, RDX, RCX, R8, R9};
const int accel_argument_register_count = 6, accel_stack_register = RSP, accel_stack_arguments = 8;
const uint32_t accel_changed_by_calls = 1u << RAX | 1u << RCX | 1u << RDX | 1u << RSI | 1u << RDI |
                                        1u << R8 | 1u << R9 | 1u << R10 | 1u << R11;

/* The opcode maps: of one byte, 0F, 0F 38, 0F 3A. */
enum map { MAP_ONE, MAP_0F, MAP_0F38, MAP_0F3A };

struct instruction_decoder {
    const uint8_t *at, *end;
    const uint8_t *begin;
    bool broken; /* it goes beyond the end, or is not known */
    /* prefixes */
    bool narrow, elsewhere, wide; /* 66; FS, GS, or half an address; REX.W or VEX.W */
    int repeat;                   /* F2, F3 or 0 */
    int reg_high, index_high, base_high, vvvv;
    bool vector;      /* VEX or EVEX */
    bool evex;        /* an offset of one byte counts operands */
    bool one_for_all; /* one element in memory stands for all of a vector */
    int vector_size;  /* bytes of its registers */
    enum map map;
    uint8_t code;
    /* ModRM */
    bool has_memory, by_ip, short_offset;
    int reg, rm;
};

static uint8_t next_byte(struct instruction_decoder *r)
{
    if (r->at >= r->end) {
        r->broken = true;
        return 0;
    }
    return *r->at++;
}

static int64_t next_integer(struct instruction_decoder *r, int bytes)
{
    int64_t value = 0;
    for (int i = 0; i < bytes; i++)
        value |= (int64_t)((uint64_t)next_byte(r) << 8 * i);
    const int unused = 64 - 8 * bytes;
    return unused > 0 && bytes > 0 ? (int64_t)((uint64_t)value << unused) >> unused : value;
}

/* ---- Prefixes and opcodes ---- */

static void read_rex(struct instruction_decoder *r, uint8_t rex)
{
    r->wide = rex & 8;
    r->reg_high = rex & 4 ? 8 : 0;
    r->index_high = rex & 2 ? 8 : 0;
    r->base_high = rex & 1 ? 8 : 0;
}

static void set_prefix_of_vector(struct instruction_decoder *r, int pp)
{
    r->narrow = pp == 1;
    r->repeat = pp == 2 ? 0xf3 : pp == 3 ? 0xf2 : 0;
}

static void read_vex(struct instruction_decoder *r, bool long_form)
{
    const uint8_t first = next_byte(r), second = long_form ? next_byte(r) : first;
    const int map = long_form ? first & 31 : MAP_0F;
    r->vector = true;
    r->reg_high = first & 0x80 ? 0 : 8;
    r->index_high = long_form && !(first & 0x40) ? 8 : 0;
    r->base_high = long_form && !(first & 0x20) ? 8 : 0;
    r->wide = long_form && (second & 0x80);
    r->vvvv = ~second >> 3 & 15;
    r->vector_size = second & 4 ? 32 : 16;
    set_prefix_of_vector(r, second & 3);
    r->broken |= map < MAP_0F || map > MAP_0F3A;
    r->map = (enum map)map;
    r->code = next_byte(r);
}

static void read_evex(struct instruction_decoder *r)
{
    const uint8_t first = next_byte(r), second = next_byte(r), third = next_byte(r);
    const int map = first & 7;
    r->vector = r->evex = true;
    r->one_for_all = third & 0x10;
    r->reg_high = first & 0x80 ? 0 : 8;
    r->index_high = first & 0x40 ? 0 : 8;
    r->base_high = first & 0x20 ? 0 : 8;
    r->wide = second & 0x80;
    r->vvvv = ~second >> 3 & 15;
    r->vector_size = third & 0x40 ? 64 : third & 0x20 ? 32 : 16;
    set_prefix_of_vector(r, second & 3);
    r->broken |= map < MAP_0F || map > MAP_0F3A;
    r->map = (enum map)map;
    r->code = next_byte(r);
}

static void read_opcode(struct instruction_decoder *r)
{
    uint8_t byte = next_byte(r);
    for (;; byte = next_byte(r)) {
        if (byte == 0x66)
            r->narrow = true;
        else if (byte == 0xf2 || byte == 0xf3)
            r->repeat = byte;
        else if (byte == 0x64 || byte == 0x65 || byte == 0x67)
            r->elsewhere = true;
        else if (byte != 0x2e && byte != 0x36 && byte != 0x3e && byte != 0x26 && byte != 0xf0)
            break;
    }
    if (byte == 0xc5 || byte == 0xc4) {
        read_vex(r, byte == 0xc4);
        return;
    }
    if (byte == 0x62) {
        read_evex(r);
        return;
    }
    if ((byte & 0xf0) == 0x40) {
        read_rex(r, byte);
        byte = next_byte(r);
    }
    r->map = MAP_ONE;
    if (byte == 0x0f) {
        byte = next_byte(r);
        r->map = byte == 0x38 ? MAP_0F38 : byte == 0x3a ? MAP_0F3A : MAP_0F;
        if (r->map != MAP_0F)
            byte = next_byte(r);
    }
    r->code = byte;
}

static bool has_modrm(const struct instruction_decoder *r)
{
    const uint8_t code = r->code;
    if (r->map == MAP_ONE)
        return code < 0x40 ? (code & 7) < 4
                           : code == 0x63 || code == 0x69 || code == 0x6b ||
                                 (code >= 0x80 && code <= 0x8f) || code == 0xc0 || code == 0xc1 ||
                                 code == 0xc6 || code == 0xc7 || (code >= 0xd0 && code <= 0xd3) ||
                                 (code >= 0xd8 && code <= 0xdf) || code == 0xf6 || code == 0xf7 ||
                                 code == 0xfe || code == 0xff;
    if (r->map == MAP_0F)
        return !(code == 0x05 || code == 0x06 || code == 0x08 || code == 0x09 || code == 0x0b ||
                 code == 0x0e || (code >= 0x30 && code <= 0x37) || code == 0x77 ||
                 (code >= 0x80 && code <= 0x8f && !r->vector) || (code >= 0xa0 && code <= 0xa2) ||
                 (code >= 0xa8 && code <= 0xaa) || (code >= 0xc8 && code <= 0xcf));
    return true;
}

static void read_memory(struct instruction_decoder *r, struct accel_instruction *i, int mod)
{
    const int rm = r->rm & 7;
    int bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
    r->has_memory = true;
    r->short_offset = mod == 1;
    i->base = r->rm;
    if (rm == RSP) {
        const uint8_t sib = next_byte(r);
        i->indexed = ((sib >> 3 & 7) | r->index_high) != RSP;
        i->base = (sib & 7) | r->base_high;
        if ((sib & 7) == RBP && mod == 0) {
            i->base = ACCEL_NO_REGISTER;
            bytes = 4;
        }
    } else if (rm == RBP && mod == 0) {
        r->by_ip = true;
        i->base = ACCEL_NO_REGISTER;
        bytes = 4;
    }
    i->offset = next_integer(r, bytes);
    if (r->elsewhere)
        i->base = ACCEL_NO_REGISTER;
}

static void read_modrm(struct instruction_decoder *r, struct accel_instruction *i)
{
    const uint8_t modrm = next_byte(r);
    const int mod = modrm >> 6;
    r->reg = (modrm >> 3 & 7) | r->reg_high;
    r->rm = (modrm & 7) | r->base_high;
    if (mod != 3)
        read_memory(r, i, mod);
}

static int immediate_bytes(const struct instruction_decoder *r)
{
    const uint8_t code = r->code;
    const int some = r->narrow ? 2 : 4;
    if (r->map == MAP_0F3A)
        return 1;
    if (r->map == MAP_0F38)
        return 0;
    if (r->map == MAP_0F)
        return code >= 0x80 && code <= 0x8f && !r->vector ? 4
               : (code >= 0x70 && code <= 0x73) || code == 0xa4 || code == 0xac || code == 0xba ||
                       code == 0xc2 || (code >= 0xc4 && code <= 0xc6)
                   ? 1
                   : 0;
    if (code < 0x40)
        return (code & 7) == 4 ? 1 : (code & 7) == 5 ? some : 0;
    if (code >= 0xb8 && code <= 0xbf)
        return r->wide ? 8 : some;
    if (code == 0xf6 || code == 0xf7)
        return (r->reg & 7) > 1 ? 0 : code == 0xf6 ? 1 : some;
    if (code == 0xe8 || code == 0xe9)
        return 4;
    if (code == 0x68 || code == 0x69 || code == 0x81 || code == 0xa9 || code == 0xc7)
        return some;
    if (code == 0xc2)
        return 2;
    return code == 0x6a || code == 0x6b || (code >= 0x70 && code <= 0x7f) || code == 0x80 ||
                   code == 0x83 || code == 0xa8 || (code >= 0xb0 && code <= 0xb7) || code == 0xc0 ||
                   code == 0xc1 || code == 0xc6 || (code >= 0xe0 && code <= 0xe3) || code == 0xeb
               ? 1
               : 0;
}

/* ---- Sizes of operands in memory ---- */

static int general_size(const struct instruction_decoder *r)
{
    return r->wide ? 8 : r->narrow ? 2 : 4;
}

static int x87_size(const struct instruction_decoder *r)
{
    const int what = r->reg & 7;
    switch (r->code) {
    case 0xd8:
    case 0xda:
        return 4;
    case 0xd9:
        return what < 4 ? 4 : 2;
    case 0xdb:
        return what < 4 ? 4 : 10;
    case 0xdc:
        return 8;
    case 0xdd:
        return what < 4 ? 8 : 2;
    case 0xdf:
        return what < 4 ? 2 : what & 1 ? 8 : 10;
    default:
        return 2;
    }
}

/* Of the instructions that have a form for one element and one for a whole register. */
static int scalar_or_packed(const struct instruction_decoder *r)
{
    return r->repeat == 0xf3 ? 4 : r->repeat == 0xf2 ? 8 : r->vector_size;
}

static int vector_size_0f(const struct instruction_decoder *r)
{
    const uint8_t code = r->code;
    switch (code) {
    case 0x10:
    case 0x11:
    case 0x51:
    case 0x52:
    case 0x53:
    case 0x58:
    case 0x59:
    case 0x5c:
    case 0x5d:
    case 0x5e:
    case 0x5f:
    case 0xc2:
        return scalar_or_packed(r);
    case 0x12:
        return r->repeat == 0xf3 || (r->repeat && r->vector_size > 16) ? r->vector_size : 8;
    case 0x13:
    case 0x17:
    case 0xd6:
        return 8;
    case 0x16:
        return r->repeat ? r->vector_size : 8;
    case 0x2a:
        return r->repeat ? (r->wide ? 8 : 4) : 8;
    case 0x2c:
    case 0x2d:
        return r->repeat == 0xf3 ? 4 : 8;
    case 0x2e:
    case 0x2f:
        return r->narrow ? 8 : 4;
    case 0x5a:
        return r->repeat || r->narrow ? scalar_or_packed(r) : r->vector_size / 2;
    case 0x6e:
        return r->wide ? 8 : 4;
    case 0x7e:
        return r->repeat == 0xf3 || r->wide ? 8 : 4;
    case 0xe6:
        return r->repeat == 0xf3 ? r->vector_size / 2 : r->vector_size;
    case 0xc4:
        return 2;
    case 0xae:
        return 4;
    default:
        return r->vector_size;
    }
}

static int vector_size_0f38(const struct instruction_decoder *r)
{
    const uint8_t code = r->code;
    if (code >= 0xf0)
        return r->wide ? 8 : 4;
    if (code >= 0x96 && code <= 0xbf && r->vector && (code & 1) && (code & 15) >= 9)
        return r->wide ? 8 : 4; /* multiply and add of one element */
    if ((code & 0xe8) == 0x20 && (code & 7) < 6) {
        static const uint8_t longer[] = {2, 4, 8, 2, 4, 2}; /* by so much elements become */
        return r->vector_size / longer[code & 7];
    }
    switch (code) {
    case 0x18:
    case 0x58:
        return 4;
    case 0x19:
    case 0x59:
        return 8;
    case 0x1a:
    case 0x5a:
        return 16;
    case 0x1b:
    case 0x5b:
        return 32;
    case 0x78:
        return 1;
    case 0x79:
        return 2;
    default:
        return r->vector_size;
    }
}

static int vector_size_0f3a(const struct instruction_decoder *r)
{
    switch (r->code) {
    case 0x0a:
    case 0x17:
    case 0x21:
        return 4;
    case 0x0b:
        return 8;
    case 0x14:
    case 0x20:
        return 1;
    case 0x15:
        return 2;
    case 0x18:
    case 0x19:
    case 0x38:
    case 0x39:
        return 16; /* parts of a vector */
    case 0x1a:
    case 0x1b:
    case 0x3a:
    case 0x3b:
        return 32;
    case 0x16:
    case 0x22:
        return r->wide ? 8 : 4;
    default:
        return r->vector_size;
    }
}

/* ---- What an instruction does ---- */

static uint32_t bit(int reg)
{
    return 1u << reg;
}

/* Notes that a register's value is computed with; a part of less than 32 bits tells nothing. */
static void mark_used(struct accel_instruction *i, int reg, int size)
{
    if (size == 8)
        i->whole |= bit(reg);
    else if (size == 4)
        i->halves |= bit(reg);
}

static void use_rm(const struct instruction_decoder *r, struct accel_instruction *i, int size)
{
    if (!r->has_memory)
        mark_used(i, r->rm, size);
}

static void kill_rm(const struct instruction_decoder *r, struct accel_instruction *i)
{
    if (!r->has_memory)
        i->kills |= bit(r->rm);
}

static void set_sum(struct accel_instruction *i, int reg, int64_t value)
{
    i->action = ACCEL_ADDRESS;
    i->to = i->base = reg;
    i->offset = value;
}

/* add, or, adc, sbb, and, sub, xor, cmp: of two operands. */
static void arithmetic(struct instruction_decoder *r, struct accel_instruction *i)
{
    const int size = r->code & 1 ? general_size(r) : 1;
    const bool compares = r->code >= 0x38, to_reg = r->code & 2;
    i->size = size;
    if (r->has_memory || r->reg != r->rm || compares) {
        mark_used(i, r->reg, size);
        use_rm(r, i, size);
    }
    if (compares)
        return;
    if (to_reg)
        i->kills |= bit(r->reg);
    else
        kill_rm(r, i);
}

static void arithmetic_with_constant(struct instruction_decoder *r, struct accel_instruction *i,
                                     int64_t value)
{
    const int size = r->code == 0x80 ? 1 : general_size(r), what = r->reg & 7;
    i->size = size;
    use_rm(r, i, size);
    if (what == 7)
        return;
    kill_rm(r, i);
    if (r->has_memory || size != 8)
        return;
    if (what == 0 || what == 5)
        set_sum(i, r->rm, what == 0 ? value : -value);
    if (what == 4 && r->rm == RSP && value < 0) {
        i->action = ACCEL_ALIGN;
        i->offset = value;
        i->kills = 0;
    }
}

static void move(struct instruction_decoder *r, struct accel_instruction *i)
{
    const int size = r->code & 1 ? general_size(r) : 1;
    const bool to_reg = r->code & 2;
    const int to = to_reg ? r->reg : r->rm, from = to_reg ? r->rm : r->reg;
    i->size = size;
    if (r->has_memory) {
        i->action = to_reg ? ACCEL_LOAD : ACCEL_STORE;
        i->to = to_reg ? to : ACCEL_NO_REGISTER;
        i->from = to_reg ? ACCEL_NO_REGISTER : from;
        if (!to_reg)
            mark_used(i, from, size);
        return;
    }
    if (size == 8) {
        i->action = ACCEL_MOVE;
        i->to = to;
        i->from = from;
    } else {
        mark_used(i, from, size);
        i->kills |= bit(to);
    }
}

static void load_address(struct instruction_decoder *r, struct accel_instruction *i)
{
    if (!r->wide || i->indexed || i->base == ACCEL_NO_REGISTER) {
        if (i->base != ACCEL_NO_REGISTER)
            mark_used(i, i->base, general_size(r));
        i->kills |= bit(r->reg);
        return;
    }
    mark_used(i, i->base, 8);
    i->action = ACCEL_ADDRESS;
    i->to = r->reg;
}

static void go(struct accel_instruction *i, enum accel_flow flow, const uint8_t *target)
{
    i->flow = flow;
    i->target = (uintptr_t)target;
}

static void push_register(struct accel_instruction *i, int reg)
{
    i->action = ACCEL_STORE;
    i->from = reg;
    i->base = RSP;
    i->before = -8;
    i->size = 8;
}

static void pop(struct accel_instruction *i, int reg)
{
    i->action = ACCEL_LOAD;
    i->to = reg;
    i->base = RSP;
    i->after = 8;
    i->size = 8;
}

static void group_f6(struct instruction_decoder *r, struct accel_instruction *i)
{
    const int what = r->reg & 7;
    i->size = r->code & 1 ? general_size(r) : 1;
    use_rm(r, i, i->size);
    if (what >= 4)
        i->kills |= bit(RAX) | bit(RDX);
    else if (what >= 2)
        kill_rm(r, i);
}

static void group_ff(struct instruction_decoder *r, struct accel_instruction *i)
{
    const int what = r->reg & 7;
    if (what < 2) {
        i->size = general_size(r);
        use_rm(r, i, i->size);
        kill_rm(r, i);
    } else if (what == 2 || what == 4) {
        i->by_slot = r->has_memory && r->by_ip;
        go(i, what == 2 ? ACCEL_CALL : ACCEL_JUMP, i->by_slot ? r->at + i->offset : NULL);
        i->base = ACCEL_NO_REGISTER;
    } else if (what == 6 && r->has_memory) {
        i->action = ACCEL_PUSH;
        i->size = 8;
    } else if (what == 6) {
        push_register(i, r->rm);
    } else {
        r->broken = true;
    }
}

static void one_byte_modrm(struct instruction_decoder *r, struct accel_instruction *i,
                           int64_t value)
{
    const uint8_t code = r->code;
    if (code < 0x40) {
        arithmetic(r, i);
        return;
    }
    if (code >= 0xd8) {
        if (code <= 0xdf)
            i->size = x87_size(r);
        if (code == 0xdf && !r->has_memory)
            i->kills |= bit(RAX); /* fnstsw */
    }
    switch (code) {
    case 0x63:
        i->size = 4;
        use_rm(r, i, 4);
        i->kills |= bit(r->reg);
        break;
    case 0x69:
    case 0x6b:
        i->size = general_size(r);
        use_rm(r, i, i->size);
        i->kills |= bit(r->reg);
        break;
    case 0x80:
    case 0x81:
    case 0x83:
        arithmetic_with_constant(r, i, value);
        break;
    case 0x84:
    case 0x85:
        i->size = code & 1 ? general_size(r) : 1;
        mark_used(i, r->reg, i->size);
        use_rm(r, i, i->size);
        break;
    case 0x86:
    case 0x87:
        i->size = code & 1 ? general_size(r) : 1;
        i->kills |= bit(r->reg);
        kill_rm(r, i);
        break;
    case 0x88:
    case 0x89:
    case 0x8a:
    case 0x8b:
        move(r, i);
        break;
    case 0x8d:
        load_address(r, i);
        break;
    case 0x8c:
    case 0x8e:
        kill_rm(r, i);
        break;
    case 0x8f:
        r->broken = true;
        break;
    case 0xc0:
    case 0xc1:
    case 0xd0:
    case 0xd1:
    case 0xd2:
    case 0xd3:
        i->size = code & 1 ? general_size(r) : 1;
        use_rm(r, i, i->size);
        kill_rm(r, i);
        break;
    case 0xc6:
    case 0xc7:
        i->size = code & 1 ? general_size(r) : 1;
        kill_rm(r, i);
        break;
    case 0xf6:
    case 0xf7:
        group_f6(r, i);
        break;
    case 0xfe:
        i->size = 1;
        kill_rm(r, i);
        break;
    case 0xff:
        group_ff(r, i);
        break;
    default:
        break;
    }
}

static void one_byte(struct instruction_decoder *r, struct accel_instruction *i, int64_t value)
{
    const uint8_t code = r->code;
    const int low = (code & 7) | r->base_high;
    if (code < 0x40 && (code & 7) < 6) { /* with a constant, in rax */
        mark_used(i, RAX, (code & 7) == 5 ? general_size(r) : 1);
        if (code < 0x38)
            i->kills |= bit(RAX);
    } else if (code >= 0x50 && code <= 0x57) {
        push_register(i, low);
    } else if (code >= 0x58 && code <= 0x5f) {
        pop(i, low);
    } else if (code == 0x68 || code == 0x6a) {
        push_register(i, ACCEL_NO_REGISTER);
    } else if (code >= 0x70 && code <= 0x7f) {
        go(i, ACCEL_BRANCH, r->at + value);
    } else if (code >= 0x90 && code <= 0x97) {
        if (low != RAX)
            i->kills |= bit(RAX) | bit(low);
    } else if (code == 0x98) {
        mark_used(i, RAX, r->wide ? 4 : 2);
        i->kills |= bit(RAX);
    } else if (code == 0x99) {
        mark_used(i, RAX, general_size(r));
        i->kills |= bit(RDX);
    } else if (code == 0xa8 || code == 0xa9) {
        mark_used(i, RAX, code & 1 ? general_size(r) : 1);
    } else if (code >= 0xa4 && code <= 0xaf) {
        i->kills |= bit(RAX) | bit(RCX) | bit(RSI) | bit(RDI);
    } else if (code >= 0xb0 && code <= 0xbf) {
        i->kills |= bit(low);
    } else if (code == 0xc9) {
        i->action = ACCEL_LEAVE;
        i->from = RBP;
    } else if (code == 0xc2 || code == 0xc3 || code == 0xcc || code == 0xf4) {
        i->flow = ACCEL_END;
    } else if (code >= 0xe0 && code <= 0xe3) {
        i->kills |= bit(RCX);
        go(i, ACCEL_BRANCH, r->at + value);
    } else if (code == 0xe8) {
        go(i, ACCEL_CALL, r->at + value);
    } else if (code == 0xe9 || code == 0xeb) {
        go(i, ACCEL_JUMP, r->at + value);
    } else if (code != 0x9b && code != 0x9e && code != 0x9f && code != 0xf5 &&
               (code < 0xf8 || code > 0xfd)) {
        r->broken = true;
    }
}

/* Of 0F: those that compute in general registers. False: it is another. */
static bool general_0f(struct instruction_decoder *r, struct accel_instruction *i, int64_t value)
{
    const uint8_t code = r->code;
    const int size = general_size(r);
    if (code >= 0x80 && code <= 0x8f) {
        go(i, ACCEL_BRANCH, r->at + value);
    } else if ((code >= 0x40 && code <= 0x4f) || code == 0xaf || code == 0xb8 || code == 0xbc ||
               code == 0xbd) {
        i->size = size;
        use_rm(r, i, size);
        i->kills |= bit(r->reg);
    } else if (code >= 0x90 && code <= 0x9f) {
        i->size = 1;
        kill_rm(r, i);
    } else if (code == 0xb6 || code == 0xb7 || code == 0xbe || code == 0xbf) {
        i->size = code & 1 ? 2 : 1;
        i->kills |= bit(r->reg);
    } else if (code >= 0xc8 && code <= 0xcf) {
        i->kills |= bit((code & 7) | r->base_high);
    } else if (code == 0x05 || code == 0x31 || code == 0xa2 || (code == 0x01 && !r->has_memory)) {
        i->kills |= bit(RAX) | bit(RBX) | bit(RCX) | bit(RDX) | bit(R11);
    } else if (code == 0x0b) {
        i->flow = ACCEL_END;
    } else if (code == 0x0d || (code >= 0x18 && code <= 0x1f)) {
        i->base = ACCEL_NO_REGISTER; /* prefetches, hints */
    } else if (code == 0xa0 || code == 0xa8) {
        push_register(i, ACCEL_NO_REGISTER); /* fs, gs */
    } else if (code == 0xa1 || code == 0xa9) {
        pop(i, ACCEL_NO_REGISTER);
    } else if (code == 0xc3) {
        i->action = ACCEL_STORE;
        i->from = r->reg;
        i->size = size;
    } else if (code == 0xb0 || code == 0xb1 || code == 0xc0 || code == 0xc1 || code == 0xc7 ||
               code == 0xa3 || code == 0xa4 || code == 0xa5 || code == 0xab || code == 0xac ||
               code == 0xad || code == 0xae || code == 0xb3 || code == 0xba || code == 0xbb) {
        i->size = code == 0xb0 || code == 0xc0 ? 1 : code == 0xc7 ? (r->wide ? 16 : 8) : size;
        i->kills |= bit(RAX) | bit(RDX) | bit(r->reg);
        kill_rm(r, i);
    } else {
        return false;
    }
    return true;
}

static void vector(struct instruction_decoder *r, struct accel_instruction *i)
{
    const uint8_t code = r->code;
    i->size = r->map == MAP_0F     ? vector_size_0f(r)
              : r->map == MAP_0F38 ? vector_size_0f38(r)
                                   : vector_size_0f3a(r);
    if (r->one_for_all)
        i->size = r->wide ? 8 : 4;
    if (r->evex && r->short_offset)
        i->offset *= i->size;
    if (r->map == MAP_0F && (code == 0x2a || code == 0x6e))
        use_rm(r, i, r->wide ? 8 : 4);
    if (r->map == MAP_0F && (code == 0x2c || code == 0x2d || code == 0x50 || code == 0xd7 ||
                             code == 0xc5 || (r->vector && code == 0x93)))
        i->kills |= bit(r->reg);
    if (r->map == MAP_0F38 && code >= 0xf0)
        i->kills |= bit(r->reg) | (r->vector ? bit(r->vvvv) : 0);
    if (r->map == MAP_0F3A && code == 0xf0)
        i->kills |= bit(r->reg);
    if ((r->map == MAP_0F && code == 0x7e && r->repeat != 0xf3) ||
        (r->map == MAP_0F3A && code >= 0x14 && code <= 0x17))
        kill_rm(r, i);
}

struct accel_instruction accel_instruction_at(const uint8_t *at, size_t readable)
{
    struct accel_instruction i = {.to = ACCEL_NO_REGISTER,
                                  .to2 = ACCEL_NO_REGISTER,
                                  .from = ACCEL_NO_REGISTER,
                                  .base = ACCEL_NO_REGISTER};
    const size_t most = ACCEL_INSTRUCTION_BYTES;
    struct instruction_decoder r = {.begin = at, .at = at, .vector_size = 16};
    r.end = at + (readable < most ? readable : most);
    read_opcode(&r);
    const bool modrm = has_modrm(&r);
    if (modrm && !r.broken)
        read_modrm(&r, &i);
    const int64_t value = next_integer(&r, immediate_bytes(&r));
    if (r.broken)
        return i;
    if (r.map == MAP_ONE && modrm)
        one_byte_modrm(&r, &i, value);
    else if (r.map == MAP_ONE)
        one_byte(&r, &i, value);
    else if (r.map != MAP_0F || r.vector || !general_0f(&r, &i, value))
        vector(&r, &i);
    if (!r.has_memory && i.action != ACCEL_LOAD && i.action != ACCEL_STORE)
        i.size = 0;
    i.length = r.broken ? 0 : (int)(r.at - r.begin);
    return i;
}

uintptr_t accel_instruction_stub(const uint8_t *code, size_t readable)
{
    struct accel_instruction i = accel_instruction_at(code, readable);
    if (i.length == 4 && readable > 4 && memcmp(code, "\xf3\x0f\x1e\xfa", 4) == 0) /* endbr64 */
        i = accel_instruction_at(code + 4, readable - 4);
    return i.length && i.flow == ACCEL_JUMP && i.by_slot ? i.target : 0;
}
