# Reads the exported names in the order of their entries, one a line, and writes the table in which
# ops/names.c looks them up by the hash that .gnu.hash has, without its lowest bit: its lower part
# is a name's place; there, or behind it, is its upper part with the entry's number, plus 1. 0:
# nobody's place.
function hash_of(text,    hash, i) {
    hash = 5381
    for (i = 1; i <= length(text); i++)
        hash = (hash * 33 + code[substr(text, i, 1)]) % 4294967296
    return int(hash / 2)
}
BEGIN {
    for (i = 1; i < 128; i++)
        code[sprintf("%c", i)] = i
}
{
    hash[NR] = hash_of($1)
}
END {
    places = 2
    while (places < 2 * NR)
        places *= 2
    for (entry = 1; entry <= NR; entry++) {
        at = hash[entry] % places
        while (at in place)
            at = (at + 1) % places
        place[at] = hash[entry] - hash[entry] % places + entry
    }
    for (at = 0; at < places; at++)
        printf "%d,\n", place[at]
}
