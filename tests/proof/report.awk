# Makes the report of a run out of what its steps have written, lines with fields separated by tabs:
#   machine.tsv  name, value
#   steps.tsv    step, status, seconds, note
#   checks.tsv   step, check, status, seconds, note
#   measures.tsv name, value (- for one that cannot be had), unit or reason
#   timings.tsv  routine, n, player, round, ms, operations, bytes in, bytes out, ran, why
#   programs.tsv program, what, value: of tests/proof/programs.sh
# -v format=json|markdown|ratios|programs (the tables of times alone, for people at a terminal)
# |program-sums.
#
# The time of a player is the median of its rounds. The player libaccel_gpu, "forced", is the one
# whose operands all cross the link in each call. The floor of a call is what no program could be
# faster than on this machine: the longest of the bytes that it reads over the measured rate of
# pinned copies up, those that it writes over the rate down, and its operations over the peak of
# products that the device was measured to have in the call's type. What a factorisation is compared
# with besides is cuSOLVER's time on a matrix that is on the device already, and the copies up and
# down, one after the other. NVBLAS is the fastest of the players that differ in its settings.

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

base(FILENAME) == "programs.tsv" {
    if (!($1 in known_program)) {
        known_program[$1] = 1
        program[++programs] = $1
    }
    if ($2 ~ /^(alone|libaccel|calibrated|nvblas_(shipped|pinned|[0-9]+))$/)
        turns[$1, $2] = turns[$1, $2] (turns[$1, $2] == "" ? "" : " ") $3
    else
        of_program[$1, $2] = $3
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

# The one of these players of a call that is the fastest.
function best_of(key, players,    player, n, i, best, ms, least) {
    n = split(players, player, " ")
    best = player[1]
    for (i = 1; i <= n; i++) {
        ms = median(runs[key, player[i]])
        if (ms != "" && (least == "" || ms < least)) {
            least = ms
            best = player[i]
        }
    }
    return best
}

# NVBLAS and cuBLASXt at their best.
function best_nvblas(key) {
    return best_of(key, "nvblas nvblas_pinned nvblas_1024 nvblas_4096 nvblas_8192")
}

function best_cublasxt(key) {
    return best_of(key, "cublasxt_1024 cublasxt_2048 cublasxt_4096")
}

function json_best(key, name, player) {
    return "\"" name "\": " json_player(key, player) ", \"" name "_best\": " (median(runs[key, player]) == "" ? "null" : quoted(player))
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

# ---- Programs ----

# NVBLAS at its best; what sees none of a program's calls leaves it as it is alone.
function weigh(name,    variant, n, i, s) {
    alone_s = median(turns[name, "alone"])
    libaccel_s = median(turns[name, "libaccel"])
    calibrated_s = median(turns[name, "calibrated"])
    estimate_s = of_program[name, "estimate"]
    nvblas_s = best_variant = ""
    n = split("shipped pinned 1024 4096 8192", variant, " ")
    for (i = 1; i <= n; i++) {
        s = median(turns[name, "nvblas_" variant[i]])
        if (s != "" && (nvblas_s == "" || s < nvblas_s)) {
            nvblas_s = s
            best_variant = variant[i]
        }
    }
    blind = of_program[name, "nvblas_note"] == "sees none of its calls"
    if (blind)
        nvblas_s = alone_s
    gain = over(alone_s, libaccel_s)
}

# Sums of the programs that gain a tenth and more, and what else is said of these together.
function sum_programs(    i) {
    gaining = timed = sum_alone = sum_nvblas = sum_libaccel = sum_calibrated = sum_estimate = 0
    for (i = 1; i <= programs; i++) {
        weigh(program[i])
        timed += gain != ""
        if (gain == "" || gain < 1.1)
            continue
        gaining++
        sum_alone += alone_s
        sum_libaccel += libaccel_s
        sum_estimate += estimate_s
        sum_nvblas = nvblas_s == "" || sum_nvblas == "" ? "" : sum_nvblas + nvblas_s
        sum_calibrated = calibrated_s == "" || sum_calibrated == "" ? "" : sum_calibrated + calibrated_s
    }
    if (!gaining)
        sum_alone = sum_nvblas = sum_libaccel = sum_calibrated = sum_estimate = ""
    estimate_off = gaining ? over(sum_estimate - sum_libaccel, sum_libaccel) : ""
}

function shown_s(s) {
    return s == "" ? "-" : sprintf("%.2f", s)
}

function program_row(name, pattern) {
    weigh(name)
    return sprintf(pattern, name, shown_s(alone_s), blind ? "sees none" : nvblas_s == "" ? "-" : shown_s(nvblas_s) " (" best_variant ")", shown_s(libaccel_s), \
        shown_s(calibrated_s), shown_s(estimate_s), shown_ratio(gain), shown_ratio(over(nvblas_s, libaccel_s)), \
        dash(of_program[name, "gpu_calls"]), dash(of_program[name, "outputs"]), of_program[name, "about"])
}

function dash(text) {
    return text == "" ? "-" : text
}

function sums_text() {
    sum_programs()
    if (!gaining)
        return timed + 0 " programs, none of which gains a tenth"
    return timed " programs; the " gaining " that gain take " shown_s(sum_alone) " s alone, " (sum_nvblas == "" ? "" : shown_s(sum_nvblas) " s with NVBLAS at its best, ") \
        shown_s(sum_libaccel) " s with libaccel (" shown_ratio(over(sum_alone, sum_libaccel)) " times as fast as alone" \
        (sum_nvblas == "" ? "" : ", " shown_ratio(over(sum_nvblas, sum_libaccel)) " times as fast as NVBLAS") "), " \
        (sum_calibrated == "" ? "" : shown_s(sum_calibrated) " s with a calibration; ") "accel estimate had said " shown_s(sum_estimate) " s, " \
        sprintf("%+.0f %%", 100 * estimate_off)
}

function print_programs(    i) {
    if (!programs)
        return
    pattern = "%-17s %8s %16s %9s %11s %9s %15s %16s %10s %8s  %s\n"
    printf pattern, "program", "alone s", "NVBLAS s", "libaccel", "calibrated", "estimate", "alone/libaccel", "NVBLAS/libaccel", "GPU calls", "outputs", ""
    for (i = 1; i <= programs; i++)
        printf "%s", program_row(program[i], pattern)
    print sums_text()
}

function markdown_programs(    i) {
    print "## Programs\n"
    print "Whole processes from start to end, in seconds; medians. `alone`: with all cores; `NVBLAS`: the best of five settings (which one), or that it sees none of the program's calls; `libaccel`: as it"
    print "is installed, without a calibration; `calibrated`: with one; `estimate`: what `accel estimate --gpu \"" value_of["estimated_gpu"] "\"` had said before.\n"
    print "| program | alone | NVBLAS | libaccel | calibrated | estimate | alone / libaccel | NVBLAS / libaccel | GPU calls | outputs | what it does |"
    print "|---|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= programs; i++)
        printf "%s", program_row(program[i], "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |\n")
    print "\n" sums_text() ".\n"
}

function json_turns(name, player,    text) {
    text = turns[name, player]
    if (text == "")
        return "null"
    gsub(/ /, ", ", text)
    return "{\"s\": " computed(median(turns[name, player])) ", \"runs\": [" text "]}"
}

function json_program(name,    variant, n, i, tried) {
    weigh(name)
    n = split("shipped pinned 1024 4096 8192", variant, " ")
    for (i = 1; i <= n; i++)
        if (turns[name, "nvblas_" variant[i]] != "")
            tried = tried (tried == "" ? "" : ", ") quoted(variant[i]) ": " json_turns(name, "nvblas_" variant[i])
    return "{\"program\": " quoted(name) ", \"about\": " quoted(of_program[name, "about"]) \
        ",\n     \"alone\": " json_turns(name, "alone") ", \"libaccel\": " json_turns(name, "libaccel") ", \"calibrated\": " json_turns(name, "calibrated") \
        ",\n     \"nvblas\": {\"s\": " computed(nvblas_s) ", \"best\": " json(best_variant) ", \"note\": " json(of_program[name, "nvblas_note"]) ", \"tried\": {" tried "}}" \
        ",\n     \"estimate_s\": " computed(estimate_s) ", \"gpu_calls\": " json(of_program[name, "gpu_calls"]) ", \"outputs\": " json(of_program[name, "outputs"]) \
        ",\n     \"ratio\": {\"alone_over_libaccel\": " computed(gain) ", \"nvblas_over_libaccel\": " computed(over(nvblas_s, libaccel_s)) "}}"
}

function json_sums() {
    sum_programs()
    return "{\"gaining\": " gaining ", \"alone_s\": " computed(sum_alone) ", \"nvblas_s\": " computed(sum_nvblas) ", \"libaccel_s\": " computed(sum_libaccel) \
        ", \"calibrated_s\": " computed(sum_calibrated) ", \"estimate_s\": " computed(sum_estimate) ", \"estimate_off\": " computed(estimate_off) "}"
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
        ",\n     \"cpu\": " json_player(key, "cpu") ",\n     " json_best(key, "nvblas", best_nvblas(key)) ",\n     " json_best(key, "cublasxt", best_cublasxt(key)) \
        ",\n     \"libaccel\": " json_player(key, "libaccel") ",\n     \"libaccel_gpu\": " json_player(key, "libaccel_gpu") \
        ",\n     \"floor\": {\"up_ms\": " computed(up_ms) ", \"down_ms\": " computed(down_ms) ", \"operations_ms\": " computed(flops_ms) \
        ", \"ms\": " computed(least_ms) "}" \
        ",\n     \"resident\": {\"cusolver_ms\": " computed(solver_ms) ", \"ms\": " computed(resident_ms) "}" \
        ",\n     \"ratio\": {\"cpu_over_libaccel\": " computed(over(median(runs[key, "cpu"]), accel)) \
        ", \"nvblas_over_libaccel\": " computed(over(median(runs[key, best_nvblas(key)]), accel)) \
        ", \"cublasxt_over_libaccel\": " computed(over(median(runs[key, best_cublasxt(key)]), accel)) \
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
    print "  },\n  \"programs\": ["
    for (i = 1; i <= programs; i++)
        print "    " json_program(program[i]) (i < programs ? "," : "")
    print "  ],\n  \"program_sums\": " json_sums() ",\n  \"timings\": ["
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

function row(key, pattern,    name, cpu, peer, engine, accel, forced) {
    split(key, name, SUBSEP)
    floors(key)
    cpu = median(runs[key, "cpu"])
    peer = median(runs[key, best_nvblas(key)])
    engine = median(runs[key, best_cublasxt(key)])
    accel = own_ms(key)
    forced = median(runs[key, "libaccel_gpu"])
    return sprintf(pattern, name[1], name[2], shown_ms(cpu), shown_ms(peer), shown_ms(engine), shown_ms(accel), \
        runs[key, "libaccel"] == "" ? "forced" : ran[key, "libaccel"] == "" ? "-" : ran[key, "libaccel"], shown_ms(forced), shown_ms(least_ms), shown_ratio(over(cpu, accel)), \
        shown_ratio(over(peer, accel)), shown_ratio(over(engine, accel)), shown_ratio(over(forced, least_ms)), shown_ms(resident_ms), shown_ratio(over(forced, resident_ms)))
}

function print_ratios(    i) {
    printf "%-7s %6s %10s %10s %11s %10s %-9s %10s %10s %12s %15s %17s %15s %11s %17s\n", "call", "n", "CPU ms", "NVBLAS ms", "cuBLASXt ms", "libaccel", "ran", "forced", \
        "floor ms", "CPU/libaccel", "NVBLAS/libaccel", "cuBLASXt/libaccel", "forced/floor", "resident ms", "forced/resident"
    for (i = 1; i <= calls; i++)
        printf "%s\n", row(call[i], "%-7s %6s %10s %10s %11s %10s %-9s %10s %10s %12s %15s %17s %15s %11s %17s")
}

# Its figures with CUDA in each process, and by a server.
function serve_row(name, about,    process, served) {
    process = measured["serve_" name "_process"]
    served = measured["serve_" name "_served"]
    if (process != "" && served != "")
        printf "| %s | %.4g | %.4g | %s |\n", about, process, served, shown_ratio(served / process)
}

function markdown_serve() {
    if (measured["serve_start_process"] == "")
        return
    print "## accel serve\n"
    print "| | CUDA in the process | by the server | served / process |\n|---|---|---|---|"
    serve_row("start", "a process of one `dgemm` (order 1000; 300 with `--quick`), from exec to its end, ms")
    serve_row("call", "a warm `dgemm` of order 64, µs")
    serve_row("call_after_pause", "the same, behind a pause of 5 ms, µs")
    serve_row("up_and_down", "512 MiB up and down (2 MiB with `--quick`), GB/s")
    serve_row("eight_clients", "eight processes at a time, each a product of the same matrix (order 4000; 600 with `--quick`) and 16 columns, ms")
    if (measured["serve_eight_clients_sent"] != "")
        print "\nFor the eight, the server has sent their matrix to the GPU " measured["serve_eight_clients_sent"] " times."
    print ""
}

function print_markdown(    i, f) {
    print "# " value_of["gpu"] ", " value_of["date"] "\n\nMade by `scripts/gpu-proof`. Milliseconds are medians; matrices are square, of order n, in host memory.\n"
    print "| | |\n|---|---|"
    for (i = 1; i <= machines; i++)
        print "| " machine[i] " | " value_of[machine[i]] " |"
    print ""
    if (programs)
        markdown_programs()
    markdown_serve()
    print "## Times\n"
    print "`libaccel` decides by itself, by the calibration of the same run where it was made; `forced` is `ACCEL_POLICY=gpu` and `ACCEL_RESIDENT=off`: all operands cross the link in each call. The floor is the longest of: bytes up and bytes down over"
    print "the measured rates of pinned copies, operations over the measured peak of the device. Resident is what cuSOLVER takes on a matrix that is on the device"
    print "already, and these copies. NVBLAS: the best of five settings. cuBLASXt: a program that calls it itself, on operands that it has pinned before, outside of this time; the best of three tiles.\n"
    print "| call | n | CPU ms | NVBLAS ms | cuBLASXt ms | libaccel ms | ran | forced ms | floor ms | CPU / libaccel | NVBLAS / libaccel | cuBLASXt / libaccel | forced / floor | resident ms | forced / resident |"
    print "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for (i = 1; i <= calls; i++)
        print row(call[i], "| `%s` | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s | %s |")
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
    else if (format == "programs")
        print_programs()
    else if (format == "program-sums")
        print sums_text()
    else
        print_ratios()
}
