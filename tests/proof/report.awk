# Makes the report of a run out of what its steps have written, lines with fields separated by tabs:
#   machine.tsv  name, value
#   steps.tsv    step, status, seconds, note
#   checks.tsv   step, check, status, seconds, note
#   measures.tsv name, value (- for one that cannot be had), unit or reason
#   timings.tsv  routine, n, player, round, ms, operations, bytes in, bytes out, ran, why
# -v format=json|markdown|ratios (the table of times alone, for people at a terminal).
#
# The time of a player is the median of its rounds. The player libaccel_gpu, "forced", is the one
# whose operands all cross the link in each call. The floor of a call is what no program could be
# faster than on this machine: the longest of the bytes that it reads over the measured rate of
# pinned copies up, those that it writes over the rate down, and its operations over the peak of
# products that the device was measured to have in the call's type. What a factorisation is compared
# with besides is cuSOLVER's time on a matrix that is on the device already, and the copies up and
# down, one after the other.

BEGIN { FS = "\t" }

function base(path) {
    sub(/^.*\//, "", path)
    return path
}

base(FILENAME) == "machine.tsv" { machine[++machines] = $1; value_of[$1] = $2 }
base(FILENAME) == "steps.tsv" { step[++steps] = $0 }
base(FILENAME) == "checks.tsv" { check[++checks] = $0 }
base(FILENAME) == "measures.tsv" && NF >= 2 {
    measure[++measures] = $0
    if ($2 != "-")
        measured[$1] = $2
}
base(FILENAME) == "timings.tsv" {
    key = $1 SUBSEP $2
    if (!(key in seen)) {
        seen[key] = 1
        call[++calls] = key
        operations[key] = $6
        bytes_in[key] = $7
        bytes_out[key] = $8
    }
    runs[key, $3] = runs[key, $3] (runs[key, $3] == "" ? "" : " ") $5
    ran[key, $3] = $9
    why[key, $3] = $10
}

# ---- Numbers ----

function median(text,    part, n, i, j, t) {
    n = split(text, part, " ")
    if (n == 0)
        return ""
    for (i = 2; i <= n; i++)
        for (j = i; j > 1 && part[j - 1] + 0 > part[j] + 0; j--) {
            t = part[j]
            part[j] = part[j - 1]
            part[j - 1] = t
        }
    return n % 2 ? part[(n + 1) / 2] + 0 : (part[n / 2] + part[n / 2 + 1]) / 2
}

# libaccel's time: forced, where it alone has played.
function own_ms(key) {
    return median(runs[key, runs[key, "libaccel"] == "" ? "libaccel_gpu" : "libaccel"])
}

function over(a, b) {
    return a == "" || b == "" || b == 0 ? "" : a / b
}

# Milliseconds of a part of a floor; rates are in units of 10^9 a second.
function part_ms(amount, rate) {
    return rate == "" || rate == 0 ? "" : amount / rate * 1e-6
}

function floor_ms(up, flops, down,    most) {
    if (up == "" || flops == "" || down == "")
        return ""
    most = up > flops ? up : flops
    return down > most ? down : most
}

function floors(key,    routine, order, type) {
    routine = order = key
    sub(SUBSEP ".*", "", routine)
    sub(".*" SUBSEP, "", order)
    type = substr(routine, 1, 1)
    up_ms = part_ms(bytes_in[key], measured["pinned_up"])
    down_ms = part_ms(bytes_out[key], measured["pinned_down"])
    flops_ms = part_ms(operations[key], measured[type "gemm_peak"])
    least_ms = floor_ms(up_ms, flops_ms, down_ms)
    solver_ms = measured["cusolver_" routine "_" order]
    resident_ms = solver_ms == "" || up_ms == "" || down_ms == "" ? "" : solver_ms + up_ms + down_ms
}

# ---- JSON ----

function quoted(text) {
    # A backslash, and what was found: of two in the text, awks make one or two.
    gsub(/\\/, "\\\\&", text)
    gsub(/"/, "\\\"", text)
    gsub(/[\001-\037]/, " ", text)
    return "\"" text "\""
}

function is_number(text) {
    return text ~ /^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$/
}

function json(value) {
    return value == "" ? "null" : is_number(value "") ? value "" : quoted(value "")
}

# A number that is computed here.
function computed(value) {
    return value == "" ? "null" : sprintf("%.9g", value)
}

function json_player(key, player,    text) {
    if (runs[key, player] == "")
        return "null"
    text = runs[key, player]
    gsub(/ /, ", ", text)
    return "{\"ms\": " computed(median(runs[key, player])) ", \"runs\": [" text "], \"ran\": " json(ran[key, player]) \
        ", \"why\": " json(why[key, player]) "}"
}

function json_call(key,    name, accel, forced) {
    split(key, name, SUBSEP)
    floors(key)
    accel = own_ms(key)
    forced = median(runs[key, "libaccel_gpu"])
    return "{\"routine\": " quoted(name[1]) ", \"n\": " name[2] ", \"operations\": " operations[key] \
        ", \"bytes_in\": " bytes_in[key] ", \"bytes_out\": " bytes_out[key] \
        ",\n     \"cpu\": " json_player(key, "cpu") ",\n     \"nvblas\": " json_player(key, "nvblas") \
        ",\n     \"libaccel\": " json_player(key, "libaccel") ",\n     \"libaccel_gpu\": " json_player(key, "libaccel_gpu") \
        ",\n     \"floor\": {\"up_ms\": " computed(up_ms) ", \"down_ms\": " computed(down_ms) ", \"operations_ms\": " computed(flops_ms) \
        ", \"ms\": " computed(least_ms) "}" \
        ",\n     \"resident\": {\"cusolver_ms\": " computed(solver_ms) ", \"ms\": " computed(resident_ms) "}" \
        ",\n     \"ratio\": {\"cpu_over_libaccel\": " computed(over(median(runs[key, "cpu"]), accel)) \
        ", \"nvblas_over_libaccel\": " computed(over(median(runs[key, "nvblas"]), accel)) \
        ", \"libaccel_over_floor\": " computed(over(accel, least_ms)) \
        ", \"libaccel_over_resident\": " computed(over(accel, resident_ms)) \
        ", \"forced_over_floor\": " computed(over(forced, least_ms)) \
        ", \"forced_over_resident\": " computed(over(forced, resident_ms)) "}}"
}

function print_json(    i, f) {
    print "{\n  \"format\": \"accel-gpu-proof 1\",\n  \"machine\": {"
    for (i = 1; i <= machines; i++)
        print "    " quoted(machine[i]) ": " quoted(value_of[machine[i]]) (i < machines ? "," : "")
    print "  },\n  \"steps\": ["
    for (i = 1; i <= steps; i++) {
        split(step[i], f, FS)
        print "    {\"step\": " quoted(f[1]) ", \"status\": " quoted(f[2]) ", \"seconds\": " json(f[3]) ", \"note\": " quoted(f[4]) "}" (i < steps ? "," : "")
    }
    print "  ],\n  \"checks\": ["
    for (i = 1; i <= checks; i++) {
        split(check[i], f, FS)
        print "    {\"step\": " quoted(f[1]) ", \"check\": " quoted(f[2]) ", \"status\": " quoted(f[3]) ", \"seconds\": " json(f[4]) \
            ", \"note\": " quoted(f[5]) "}" (i < checks ? "," : "")
    }
    print "  ],\n  \"measures\": {"
    for (i = 1; i <= measures; i++) {
        split(measure[i], f, FS)
        print "    " quoted(f[1]) ": " (f[2] == "-" ? "{\"value\": null, \"why\": " quoted(f[3]) "}" \
            : "{\"value\": " json(f[2]) ", \"unit\": " quoted(f[3]) "}") (i < measures ? "," : "")
    }
    print "  },\n  \"timings\": ["
    for (i = 1; i <= calls; i++)
        print "    " json_call(call[i]) (i < calls ? "," : "")
    print "  ]\n}"
}

# ---- Tables ----

function shown_ms(ms) {
    return ms == "" ? "-" : sprintf(ms < 10 ? "%.3f" : ms < 100 ? "%.2f" : "%.1f", ms)
}

function shown_ratio(ratio) {
    return ratio == "" ? "-" : sprintf(ratio < 10 ? "%.2f" : "%.1f", ratio)
}

function row(key, pattern,    name, cpu, peer, accel, forced) {
    split(key, name, SUBSEP)
    floors(key)
    cpu = median(runs[key, "cpu"])
    peer = median(runs[key, "nvblas"])
    accel = own_ms(key)
    forced = median(runs[key, "libaccel_gpu"])
    return sprintf(pattern, name[1], name[2], shown_ms(cpu), shown_ms(peer), shown_ms(accel), \
        runs[key, "libaccel"] == "" ? "forced" : ran[key, "libaccel"] == "" ? "-" : ran[key, "libaccel"], shown_ms(forced), shown_ms(least_ms), shown_ratio(over(cpu, accel)), \
        shown_ratio(over(peer, accel)), shown_ratio(over(forced, least_ms)), shown_ms(resident_ms), shown_ratio(over(forced, resident_ms)))
}

function print_ratios(    i) {
    printf "%-7s %6s %10s %10s %10s %-9s %10s %10s %12s %15s %15s %11s %17s\n", "call", "n", "CPU ms", "NVBLAS ms", "libaccel", "ran", "forced", \
        "floor ms", "CPU/libaccel", "NVBLAS/libaccel", "forced/floor", "resident ms", "forced/resident"
    for (i = 1; i <= calls; i++)
        printf "%s\n", row(call[i], "%-7s %6s %10s %10s %10s %-9s %10s %10s %12s %15s %15s %11s %17s")
}

function print_markdown(    i, f) {
    print "# " value_of["gpu"] ", " value_of["date"] "\n\nMade by `scripts/gpu-proof`. Milliseconds are medians; matrices are square, of order n, in host memory.\n"
    print "| | |\n|---|---|"
    for (i = 1; i <= machines; i++)
        print "| " machine[i] " | " value_of[machine[i]] " |"
    print "\n## Times\n"
    print "`libaccel` decides by itself, by the calibration of the same run where it was made; `forced` is `ACCEL_POLICY=gpu` and `ACCEL_RESIDENT=off`: all operands cross the link in each call. The floor is the longest of: bytes up and bytes down over"
    print "the measured rates of pinned copies, operations over the measured peak of the device. Resident is what cuSOLVER takes on a matrix that is on the device"
    print "already, and these copies.\n"
    print "| call | n | CPU ms | NVBLAS ms | libaccel ms | ran | forced ms | floor ms | CPU / libaccel | NVBLAS / libaccel | forced / floor | resident ms | forced / resident |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= calls; i++)
        print row(call[i], "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |")
    print "\n## The machine\n\n| | | |\n|---|---|---|"
    for (i = 1; i <= measures; i++) {
        split(measure[i], f, FS)
        print "| " f[1] " | " f[2] " | " f[3] " |"
    }
    print "\n## Steps\n\n| step | | s | |\n|---|---|---|---|"
    for (i = 1; i <= steps; i++) {
        split(step[i], f, FS)
        print "| " f[1] " | " f[2] " | " f[3] " | " f[4] " |"
    }
    print "\n## Checks\n\n| step | check | | s | |\n|---|---|---|---|---|"
    for (i = 1; i <= checks; i++) {
        split(check[i], f, FS)
        print "| " f[1] " | " f[2] " | " f[3] " | " f[4] " | " f[5] " |"
    }
}

END {
    if (format == "json")
        print_json()
    else if (format == "markdown")
        print_markdown()
    else
        print_ratios()
}
