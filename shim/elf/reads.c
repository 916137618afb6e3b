#define _GNU_SOURCE
#include "reads.h"

#include <string.h>
#include <sys/mman.h>

#include "real_linker.h"
#include "shim/arch/instruction.h"

/* ---- The state on a way through the code ---- */

/* An address that is known: of an argument, or in the function's frame, from where the stack's
 * pointer was at the entry. */
struct tag {
    enum { NOT_KNOWN, ARGUMENT, FRAME } kind : 8;
    int argument : 8;
    int offset : 16;
};
_Static_assert(sizeof(struct tag) == 4, "small");

enum {
    INSTRUCTIONS = 1000, /* at most are followed in a function */
    WAYS = 32,           /* wait to be followed */
    DEEPEST = 4,         /* calls within calls */
    OBJECTS = 3,
    SEEN = 512, /* a power of two */
    FRAME_BELOW = 1024,
    FRAME_ABOVE = 128,
    SLOTS = (FRAME_BELOW + FRAME_ABOVE) / 8
};

struct code_path {
    uintptr_t at;
    int depth, object;
    struct tag reg[ACCEL_REGISTERS], slot[SLOTS];
};

struct code_walk {
    struct accel_reads *reads;
    struct accel_code object[OBJECTS];
    int objects, left; /* instructions */
    int first, count;  /* ways that wait, in a ring */
    struct code_path way[WAYS];
    uintptr_t seen[SEEN];
};

static const struct tag not_known = {.kind = NOT_KNOWN};

static struct tag moved(struct tag tag, int64_t by)
{
    const int64_t offset = tag.offset + by;
    if (tag.kind == NOT_KNOWN || offset < INT16_MIN || offset > INT16_MAX)
        return not_known;
    tag.offset = (int16_t)offset;
    return tag;
}

static struct tag *slot_at(struct code_path *way, struct tag address)
{
    const int place = (address.offset + FRAME_BELOW) / 8;
    if (address.kind != FRAME || address.offset + FRAME_BELOW < 0 || place >= SLOTS)
        return NULL;
    return &way->slot[place];
}

static struct tag *reg_of(struct code_path *way, int reg)
{
    return reg == ACCEL_NO_REGISTER ? NULL : &way->reg[reg];
}

static struct tag tag_of(const struct code_path *way, int reg)
{
    return reg == ACCEL_NO_REGISTER ? not_known : way->reg[reg];
}

/* ---- What is seen ---- */

static void note_access(struct code_walk *walk, struct tag address, int size)
{
    struct accel_read *read = &walk->reads->argument[address.argument];
    if (address.kind != ARGUMENT || size < 4 || address.offset < 0)
        return;
    if (address.offset == 0)
        read->sizes |= (uint8_t)(size == 4    ? ACCEL_READS_4
                                 : size == 8  ? ACCEL_READS_8
                                 : size == 10 ? ACCEL_READS_10
                                              : ACCEL_READS_16);
    if (address.offset + size > read->end)
        read->end = address.offset + size;
}

static void note_use(struct code_walk *walk, struct tag value, int size)
{
    struct accel_read *read = &walk->reads->argument[value.argument];
    if (value.kind != ARGUMENT || value.offset != 0)
        return;
    read->half |= size == 4;
    read->whole |= size == 8;
}

static void note_uses(struct code_walk *walk, const struct code_path *way,
                      const struct accel_instruction *i)
{
    for (int reg = 0; reg < ACCEL_REGISTERS; reg++) {
        if (i->halves >> reg & 1)
            note_use(walk, way->reg[reg], 4);
        if (i->whole >> reg & 1)
            note_use(walk, way->reg[reg], 8);
    }
}

/* ---- One instruction ---- */

static struct tag load_tag(struct code_walk *walk, struct code_path *way, struct tag address,
                           int size)
{
    const struct tag *slot = slot_at(way, address);
    note_access(walk, address, size);
    if (!slot)
        return not_known;
    if (size != 8)
        note_use(walk, *slot, size);
    return size == 8 && address.offset % 8 == 0 ? *slot : not_known;
}

static void store_tag(struct code_walk *walk, struct code_path *way, struct tag address, int size,
                      struct tag value)
{
    note_access(walk, address, size);
    for (int byte = 0; byte < size; byte += 8) {
        struct tag *slot = slot_at(way, moved(address, byte));
        if (slot)
            *slot = size == 8 && address.offset % 8 == 0 ? value : not_known;
    }
}

/* Computes with memory. */
static void touch(struct code_walk *walk, struct code_path *way, struct tag address, int size)
{
    struct tag *slot = slot_at(way, address);
    if (slot)
        note_use(walk, *slot, size);
    store_tag(walk, way, address, size, slot ? *slot : not_known);
}

static void leave_frame(struct code_walk *walk, struct code_path *way, int from)
{
    struct tag *stack = &way->reg[accel_stack_register];
    *stack = way->reg[from];
    way->reg[from] = load_tag(walk, way, *stack, 8);
    *stack = moved(*stack, 8);
}

static void push_tag(struct code_walk *walk, struct code_path *way, struct tag value)
{
    struct tag *stack = &way->reg[accel_stack_register];
    *stack = moved(*stack, -8);
    store_tag(walk, way, *stack, 8, value);
}

/* By as much as it may be at most: then what is below is not taken for what is above. */
static void align(struct code_path *way, int64_t multiple)
{
    struct tag *stack = &way->reg[accel_stack_register];
    if (stack->kind == FRAME)
        *stack = moved(*stack, ((stack->offset + multiple) & multiple) - stack->offset);
}

static void put_tag(struct code_path *way, int to, struct tag value)
{
    if (to != ACCEL_NO_REGISTER)
        way->reg[to] = value;
}

static void follow(struct code_walk *walk, struct code_path *way, const struct accel_instruction *i)
{
    struct tag *base = reg_of(way, i->base);
    if (base)
        *base = moved(*base, i->before);
    const struct tag address = base && !i->indexed ? moved(*base, i->offset) : not_known;
    struct tag value = not_known, second = not_known;
    note_uses(walk, way, i);
    switch (i->action) {
    case ACCEL_MOVE:
        value = tag_of(way, i->from);
        break;
    case ACCEL_ADDRESS:
        value = address;
        break;
    case ACCEL_LOAD:
        value = load_tag(walk, way, address, i->size);
        if (i->to2 != ACCEL_NO_REGISTER)
            second = load_tag(walk, way, moved(address, i->size), i->size);
        break;
    case ACCEL_STORE:
        store_tag(walk, way, address, i->size, tag_of(way, i->from));
        if (i->to2 != ACCEL_NO_REGISTER)
            store_tag(walk, way, moved(address, i->size), i->size, tag_of(way, i->to2));
        break;
    case ACCEL_PUSH:
        push_tag(walk, way, load_tag(walk, way, address, i->size));
        break;
    case ACCEL_LEAVE:
        leave_frame(walk, way, i->from);
        break;
    case ACCEL_ALIGN:
        align(way, i->offset);
        break;
    case ACCEL_OTHER:
        if (i->size)
            touch(walk, way, address, i->size);
        if (i->to2 != ACCEL_NO_REGISTER)
            touch(walk, way, moved(address, i->size), i->size);
    }
    for (int reg = 0; reg < ACCEL_REGISTERS; reg++)
        if (i->kills >> reg & 1)
            way->reg[reg] = not_known;
    if (base)
        *base = moved(*base, i->after);
    put_tag(way, i->to, value);
    if (i->action == ACCEL_LOAD)
        put_tag(way, i->to2, second);
}

/* ---- Where it goes on ---- */

/* Returns whether an address has been seen; later, it has. */
static bool is_seen(struct code_walk *walk, uintptr_t at)
{
    uint32_t place = (uint32_t)(at * 0x9e3779b1u) >> 16;
    for (int tries = 0; tries < 8; tries++, place++) {
        uintptr_t *seen = &walk->seen[place % SEEN];
        if (*seen == at)
            return true;
        if (!*seen) {
            *seen = at;
            return false;
        }
    }
    return true; /* it is not followed */
}

static void add_way(struct code_walk *walk, const struct code_path *from, uintptr_t at, int object,
                    int depth)
{
    if (walk->count == WAYS || depth > DEEPEST || !at || is_seen(walk, at))
        return;
    struct code_path *way = &walk->way[(walk->first + walk->count) % WAYS];
    walk->count++;
    *way = *from;
    way->at = at;
    way->object = object;
    way->depth = depth;
}

/* Returns the number of the object with the code at an address; -1 if it has none, or libaccel has
 * it. */
static int object_at(struct code_walk *walk, uintptr_t at)
{
    for (int i = 0; i < walk->objects; i++)
        if (accel_code_readable(&walk->object[i], at))
            return i;
    if (walk->objects == OBJECTS || !walk->object[0].is_loaded)
        return -1;
    const struct link_map *object = accel_object_of((const void *)at);
    struct accel_code *code = &walk->object[walk->objects];
    if (!object || object == accel_own_object() || !accel_code_of_object(code, object) ||
        !accel_code_readable(code, at))
        return -1;
    return walk->objects++;
}

/* Functions that do not come back: what lies behind a call of them is another function's. */
static bool ends(const char *name)
{
    static const char *const names[] = {
        "abort",         "exit",           "_exit",         "__stack_chk_fail",
        "__assert_fail", "_gfortran_stop", "_gfortran_err", "_gfortran_runtime_error"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strncmp(name, names[i], strlen(names[i])) == 0)
            return true;
    return false;
}

/* Returns the code that a slot leads to, 0 if it cannot be told. In *name its name, NULL if it has
 * none. The object's own function before what the dynamic linker has bound the name to, which may
 * be ours; it may also still be going to bind it. */
static uintptr_t target_of_slot(const struct code_walk *walk, int object, uintptr_t slot,
                                const char **name)
{
    const struct accel_code *code = &walk->object[object];
    *name = accel_code_slot_name(code, slot);
    const void *own = *name && **name ? accel_code_function(code, *name) : NULL;
    if (own || !code->is_loaded)
        return (uintptr_t)own;
    const uintptr_t target = accel_code_pointer(code, slot);
    return *name && **name && accel_code_readable(code, target) ? 0 : target;
}

/* Goes on at an address, or through a slot. True: it does not come back. */
static bool go(struct code_walk *walk, const struct code_path *way,
               const struct accel_instruction *i, int depth)
{
    const char *name = NULL;
    uintptr_t target = i->target;
    int object = way->object;
    if (!target)
        return false;
    const struct accel_code *code = &walk->object[object];
    uintptr_t slot = i->by_slot ? target : 0;
    const size_t readable = slot ? 0 : accel_code_readable(code, target);
    if (readable)
        slot = accel_instruction_stub((const uint8_t *)target, readable);
    if (slot)
        target = target_of_slot(walk, object, slot, &name);
    if (name && ends(name))
        return true;
    object = target ? object_at(walk, target) : -1;
    if (object >= 0)
        add_way(walk, way, target, object, depth);
    return false;
}

static void call(struct code_walk *walk, struct code_path *way, const struct accel_instruction *i,
                 bool *over)
{
    struct tag *stack = &way->reg[accel_stack_register];
    const struct tag before = *stack;
    *stack = moved(before, -accel_stack_arguments);
    *over = go(walk, way, i, way->depth + 1);
    *stack = before;
    for (int reg = 0; reg < ACCEL_REGISTERS; reg++)
        if (accel_changed_by_calls >> reg & 1)
            way->reg[reg] = not_known;
}

/* Follows one way to its end. */
static void walk_along(struct code_walk *walk, struct code_path *way)
{
    bool over = false;
    while (!over && walk->left-- > 0) {
        const struct accel_code *code = &walk->object[way->object];
        const struct accel_instruction i =
            accel_instruction_at((const uint8_t *)way->at, accel_code_readable(code, way->at));
        if (!i.length)
            return;
        follow(walk, way, &i);
        if (i.flow == ACCEL_BRANCH)
            go(walk, way, &i, way->depth);
        else if (i.flow == ACCEL_CALL)
            call(walk, way, &i, &over);
        else if (i.flow == ACCEL_JUMP)
            go(walk, way, &i, way->depth);
        over = over || i.flow == ACCEL_JUMP || i.flow == ACCEL_END;
        way->at += (uintptr_t)i.length;
    }
}

static void enter(struct code_path *way)
{
    const int in_registers = accel_argument_register_count;
    for (int i = 0; i < ACCEL_READS_ARGUMENTS; i++) {
        const struct tag argument = {.kind = ARGUMENT, .argument = (int8_t)i};
        const struct tag place = {
            .kind = FRAME, .offset = (int16_t)(accel_stack_arguments + 8 * (i - in_registers))};
        if (i < in_registers)
            way->reg[accel_argument_registers[i]] = argument;
        else
            *slot_at(way, place) = argument;
    }
    way->reg[accel_stack_register] = (struct tag){.kind = FRAME};
}

bool accel_reads_of(struct accel_reads *reads, const struct accel_code *code, const void *function)
{
    memset(reads, 0, sizeof *reads);
    if (!accel_code_readable(code, (uintptr_t)function))
        return false;
    /* Pages, not malloc(): an operand in device memory must not reach the original because the heap
     * is short for once. */
    struct {
        struct code_path way;
        struct code_walk walk;
    } *const memory =
        mmap(NULL, sizeof *memory, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        return false;
    struct code_path *const way = &memory->way;
    struct code_walk *const walk = &memory->walk;
    walk->reads = reads;
    walk->object[0] = *code;
    walk->objects = 1;
    walk->left = INSTRUCTIONS;
    enter(way);
    add_way(walk, way, (uintptr_t)function, 0, 0);
    while (walk->count > 0 && walk->left > 0) {
        *way = walk->way[walk->first];
        walk->first = (walk->first + 1) % WAYS;
        walk->count--;
        walk_along(walk, way);
    }
    munmap(memory, sizeof *memory);
    return true;
}
