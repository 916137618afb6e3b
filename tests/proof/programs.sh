# Times whole programs by processes that take turns: sourced by scripts/gpu-proof. `accel estimate`
# has the first turn of each, which also shows whose calls NVBLAS could see; then a program runs
# alone with all cores, with libaccel as it is installed, and with libaccel and a calibration. What
# gains most comes first; when all have had a turn, each has more while the time allows. Every
# process starts CUDA anew. What each takes is in programs.tsv: program, what, value.

every_program="solve svc eigenvalues hpl singular_values kernel_ridge least_squares svm_train pca ridge_cv nmf liblinear gaussian_process torch_linalg torch_mlp logistic kmeans kalman image"

# Programs whose training ends at a tolerance: by how much their outputs may differ.
trained='svc svm_train liblinear logistic kmeans torch_mlp'
trained_rtol=0.01

program_limit=40     # seconds that a program may take alone
libaccel_limit=20    # seconds that it may take besides with libaccel, and twice what it takes alone
most_program_turns=5 # of each player

note_program() { printf '%s\t%s\t%s\n' "$1" "$2" "${3//[$'\t\n']/ }" >> "$parts/programs.tsv"; }

of_programs() { awk -F '\t' -v name="$1" -v what="$2" '$1 == name && $2 == what { print $3 }' "$parts/programs.tsv"; }

# scaled N: as scripts/programs/inputs.py has it.
scaled() { awk -v n="$1" -v scale="$PROGRAM_SCALE" -v least="${2:-2}" 'BEGIN { n = int(n * scale + 0.5); print n < least ? least : n }'; }

seconds_of() { awk -v us="$1" 'BEGIN { printf "%.3f", us / 1e6 }'; }

# ---- What the programs are ----

# hpl_input N NB: of one process. HPC Challenge's Linpack writes to a file of its own (device 8).
hpl_input() {
    cat << INPUT
HPLinpack benchmark input file

HPL.out      output file name
8            device out
1            problem sizes
$1 N
1            block sizes
$2 NB
0            row-major process mapping
1            process grids
1            P
1            Q
16.0         threshold
1            panel factorisations
2            right-looking
1            recursive stopping criteria
4            NBMIN
1            panels in recursion
2            NDIV
1            recursive panel factorisations
1            Crout
1            broadcasts
1            modified ring
1            lookahead depths
0            depth
2            mixed swapping
64           swapping threshold
0            L1 transposed
0            U transposed
1            equilibration
8            memory alignment in doubles
INPUT
}

# rows_of_letter FILE, rows_of_images FILE: in libsvm's format.
rows_of_letter() {
    LD_LIBRARY_PATH=$kit "$kit/xz" -dc "$kit/data/letter.xz" 2> /dev/null | head -n "$(scaled 12000 300)" > "$1"
}
rows_of_images() {
    local count
    count=$(scaled 5000 100)
    paste -d ' ' <(gzip -dc "$kit/data/train-labels-idx1-ubyte.gz" 2> /dev/null | tail -c +9 2> /dev/null | head -c "$count" | od -An -v -tu1 -w1) \
        <(gzip -dc "$kit/data/train-images-idx3-ubyte.gz" 2> /dev/null | tail -c +17 2> /dev/null | head -c $((784 * count)) | od -An -v -tu1 -w784) |
        awk '{ printf "%d", $1; for (i = 2; i <= NF; i++) if ($i) printf " %d:%.3f", i - 1, $i / 255; print "" }' > "$1"
}

# a_program_of_the_bundle NAME TEXT FILE COMMAND
a_program_of_the_bundle() {
    about=$2 command=(sh -c "$4")
    [ -x "$kit/bin/$3" ] || missing="the bundle has no $3"
}

# find_program NAME: sets $command, $about (what it does), $around (its environment), and $missing
# to what it needs and is not here.
find_program() {
    local name=$1 file=$root/scripts/programs/$1.py data=$programs/$1.data modules
    missing='' around=(env)
    case $name in
    hpl)
        a_program_of_the_bundle hpl "HPL: High Performance Linpack of order $(scaled 14000 100), one process" xhpl \
            "'$kit/bin/xhpl' && grep -c PASSED hpccoutf.txt"
        ;;
    svm_train)
        a_program_of_the_bundle svm_train "libsvm's svm-train, 12,000 letters" svm-train \
            "'$kit/bin/svm-train' -q -c 10 -g 0.5 '$data' model && grep -E '^(nr_class|total_sv)' model"
        [ -n "$missing" ] || [ -s "$data" ] || rows_of_letter "$data"
        ;;
    liblinear)
        a_program_of_the_bundle liblinear "liblinear's liblinear-train -s 0, 5,000 images of Fashion-MNIST" liblinear-train \
            "'$kit/bin/liblinear-train' -q -s 0 -c 0.1 '$data' model && head -n 60 model"
        [ -n "$missing" ] || [ -s "$data" ] || rows_of_images "$data"
        ;;
    *)
        around=("${outside[@]}")
        command=("$python" "$file")
        about=$(sed -n '1s/"""\(.*\)"""/\1/p' "$file")
        modules=$(sed -nE 's/^(import|from) ([a-zA-Z_]+).*/\2/p' "$file" | sed 's/^inputs$/numpy/' | sort -u)
        if [ -z "$python" ]; then
            missing="there is no python3"
        else
            # shellcheck disable=SC2086
            missing=$("${outside[@]}" "$python" -c 'import sys, importlib.util as u; print(*[m for m in sys.argv[1:] if not u.find_spec(m)])' $modules 2> "$logs/programs-python")
            if [ $? -ne 0 ]; then
                missing="$python does not work: $(tail -n 1 "$logs/programs-python")"
            elif [ -n "$missing" ]; then
                missing="$python has no $missing"
            fi
        fi
        ;;
    esac
}

# Programs of the machine's Python have the environment that they have without this script; with the
# toolkit's folders, where libaccel finds no CUDA without.
find_surroundings() {
    python=$(command -v python3 || command -v python || true)
    local -a plain=(env -u LIBRARY_PATH -u CPATH -u OPENBLAS_CORETYPE)
    outside=("${plain[@]}" LD_LIBRARY_PATH="$inherited")
    if [ -n "$toolkit_libraries" ] && ! limited "${outside[@]}" "$build/accel" doctor > "$logs/programs-doctor" 2>&1; then
        outside=("${plain[@]}" LD_LIBRARY_PATH="${inherited:+$inherited:}$toolkit_libraries")
    fi
    # The longest of the names that accel estimate knows which is a part of the GPU's.
    estimated_gpu=$("$build/accel" estimate --gpu list | awk -v gpu="$gpu" '
        function plain(text) { text = tolower(text); gsub(/[- ]/, "", text); return text }
        BEGIN { gpu = plain(gpu); longest = ""; best = "H100" }
        { sub(/  .*/, ""); name = plain($0)
          if (index(gpu, name) && length(name) > length(longest)) { longest = name; best = $0 } }
        END { print best }')
    export PROGRAM_DATA=$kit/data
}

# ---- Turns ----

# play NAME PLAYER LIMIT WORD…: runs $command, behind settings or a command in its environment, as a
# whole process in a folder of its own. Sets $took to the microseconds and appends them to
# programs.tsv, or sets $why.
play() {
    local name=$1 player=$2 limit=$3 begun status left=$((step_end - SECONDS))
    shift 3
    place=$programs/$name.$player why=''
    rm -rf "$place"
    mkdir -p "$place"
    [ "$name" != hpl ] || hpl_input "$(scaled 14000 100)" "$(scaled 384 32)" > "$place/hpccinf.txt"
    begun=${EPOCHREALTIME//[.,]/}
    (cd "$place" && exec timeout -k 2 $((left < limit ? left > 0 ? left : 1 : limit)) "${around[@]}" "$@" "${command[@]}") < /dev/null > "$place/out" 2> "$place/err" &
    wait $!
    status=$?
    took=$((${EPOCHREALTIME//[.,]/} - begun))
    if [ $status -eq 0 ]; then
        [ "$player" = estimate ] || note_program "$name" "$player" "$(seconds_of $took)"
        return 0
    fi
    if { [ $status -eq 124 ] || [ $status -eq 137 ]; } && [ $((took / 1000000)) -ge $((left < limit ? left : limit)) ]; then
        why="not finished after $limit s, its limit"
        [ "$left" -ge "$limit" ] || why="not finished in the step's time"
    else
        why="exit status $status, $(sed '/^accel estimate: what a GPU/,$d' "$place/err" | grep -v '^ *$' | tail -n 1)"
    fi
    return 1
}

# With libaccel, a program may take as long as alone, and some seconds.
with_libaccel() {
    local name=$1 player=$2 limit=$((alone_us / 1000000 * 2 + libaccel_limit))
    shift 2
    ! play "$name" "$player" $limit "$@" LD_PRELOAD="$build/libaccel.so" || return 0
    if [[ $why == *"step's time" ]]; then
        left_out programs "$name, $player" "$why"
    else
        cp "$place/err" "$logs/failed-program-$name-$player"
        check programs "$name, $player" failed $((took / 1000000)) "with libaccel: $why; alone it ends well"
    fi
    return 1
}

# has_turn NAME PLAYER: one of the three.
has_turn() {
    case $2 in
    alone) play "$1" alone "$program_limit" ;;
    libaccel) with_libaccel "$1" libaccel ;;
    calibrated)
        with_libaccel "$1" calibrated "${calibration[@]}" ACCEL_SUMMARY=json ACCEL_LOG_FILE="$programs/$1.table"
        ;;
    esac
}

# Of the calls that took a tenth of a millisecond and more: NVBLAS has these names alone.
seen_by_nvblas() { grep -Eo ' sym=[sdcz](gemm|symm|hemm|syrk|herk|syr2k|her2k|trmm|trsm)_? ' "$programs/$1.log" 2> /dev/null | sort -u | sed 's/ sym=//' | xargs; }

# estimate_program NAME: what accel estimate says before the program has run on a GPU. False where
# it cannot be run.
estimate_program() {
    local name=$1 saved
    rm -f "$programs/$name.log"
    if ! play "$name" estimate "$program_limit" ACCEL_LOG=1 ACCEL_LOG_MIN_MS=0.1 ACCEL_LOG_FILE="$programs/$name.log" "$build/accel" estimate --gpu "$estimated_gpu" --; then
        left_out programs "$name" "without a GPU: $why"
        return 1
    fi
    saved=$(sed -n 's/^[0-9]* process.* s in all; \(-*[0-9.]*\) s would be saved.*/\1/p' "$place/err" | tail -n 1)
    note_program "$name" estimate "$(awk -v us="$took" -v saved="${saved:-0}" 'BEGIN { printf "%.3f", us / 1e6 - saved }')"
}

# nvblas_turns NAME: NVBLAS as it is shipped, with pinned operands, and by other tiles than of 2048;
# the better one of the first two goes on. What takes longer than the best so far is cut.
nvblas_turns() {
    local name=$1 seen variant best='' base='' limit=$((alone_us / 1000000 * 2 + 10)) setting tile why_not='' around_before=("${around[@]}")
    [ -n "$nvblas" ] || return 0
    seen=$(seen_by_nvblas "$name")
    if [ -z "$seen" ]; then
        note_program "$name" nvblas_note "sees none of its calls"
        return 0
    fi
    around=(env -u LIBRARY_PATH -u CPATH LD_LIBRARY_PATH="${toolkit_libraries:+$toolkit_libraries:}$LD_LIBRARY_PATH")
    for variant in shipped pinned 1024 4096 8192; do
        [ $((step_end - SECONDS)) -ge 3 ] || { why_not="no time is left" && break; }
        setting='' tile=''
        case $variant in
        pinned) setting=NVBLAS_AUTOPIN_MEM_ENABLED ;;
        [0-9]*) setting=$base tile="NVBLAS_TILE_DIM $variant" ;;
        esac
        printf '%s\n' "NVBLAS_LOGFILE $programs/nvblas.log" "NVBLAS_CPU_BLAS_LIB $kit/lib/libopenblas.so.0" "NVBLAS_GPU_LIST 0" "$setting" "$tile" > "$programs/nvblas.conf"
        if play "$name" "nvblas_$variant" "$limit" LD_PRELOAD="$nvblas" NVBLAS_CONFIG_FILE="$programs/nvblas.conf"; then
            if [ -z "$best" ] || [ "$took" -lt "$best" ]; then
                best=$took limit=$((took / 1000000 + 1))
                [[ $variant == [0-9]* ]] || base=$setting
            fi
        else
            why_not=$why
        fi
    done
    around=("${around_before[@]}")
    [ -n "$best" ] || check programs "$name, NVBLAS" "not here" 0 "$why_not"
    note_program "$name" nvblas_note "sees $seen"
}

# compare_outputs NAME: by the rules of accel diff, of what has been printed already. The estimate's
# run, on the CPU, is the second one without libaccel.
compare_outputs() {
    local name=$1 at=$programs/$1.diff player status
    local -a rtol=()
    mkdir -p "$at"
    case " $trained " in *" $name "*) rtol=(--rtol "$trained_rtol") ;; esac
    for player in libaccel calibrated; do
        [ -n "${cost[$name $player]:-}" ] || continue
        cat "$programs/$name.alone/out" >> "$at/1"
        cat "$programs/$name.estimate/out" >> "$at/2"
        cat "$programs/$name.$player/out" >> "$at/3"
    done
    [ -s "$at/1" ] || return 0
    printf '%s\n' 'n=$(cat turn 2> /dev/null || echo 0)' 'n=$((n + 1))' 'echo $n > turn' 'cat $n' > "$at/print"
    (cd "$at" && limited "$build/accel" diff "${rtol[@]}" -- sh print) < /dev/null > "$at/said" 2>&1
    status=$?
    case $status in
    0) note_program "$name" outputs same ;;
    1)
        note_program "$name" outputs differ
        cp "$at/said" "$logs/failed-program-$name-outputs"
        check programs "$name, outputs" failed 0 "with libaccel others than alone: $(grep -m 1 'DIFFERS;' "$at/said")"
        ;;
    *)
        note_program "$name" outputs unknown
        left_out programs "$name, outputs" "accel diff cannot tell: $(tail -n 1 "$at/said")"
        ;;
    esac
}

# first_turns NAME: of all players.
first_turns() {
    local name=$1 player ended=''
    find_program "$name"
    note_program "$name" about "$about"
    if [ -n "$missing" ]; then
        check programs "$name" "not here" 0 "$missing"
    elif [ $((step_end - SECONDS)) -lt 4 ]; then
        left_out programs "$name" "no time is left"
    elif ! estimate_program "$name"; then
        :
    elif ! play "$name" alone "$program_limit"; then
        left_out programs "$name" "alone: $why"
    else
        alone_us=$took ended=1
        cost[$name alone]=$took
        for player in libaccel calibrated; do
            [ "$player" != calibrated ] || [ ${#calibration[@]} -gt 0 ] || continue
            has_turn "$name" "$player" && cost[$name $player]=$took || ended=''
        done
        [ ! -s "$programs/$name.table" ] || note_program "$name" gpu_calls "$(gpu_calls "$name")"
        nvblas_turns "$name"
        compare_outputs "$name"
    fi
    if [ -n "$ended" ]; then
        played+=("$name")
        [ "$(of_programs "$name" outputs)" = differ ] || check programs "$name" ok $((alone_us / 1000000)) "$(seconds_of "$alone_us") s alone, $(seconds_of "${cost[$name libaccel]}") s with libaccel"
    fi
}

gpu_calls() { grep -o '{"routine": [^}]*}' "$programs/$1.table" | sed -E 's/.*"ran": "([^"]*)".*"calls": ([0-9]+).*/\1 \2/' | awk '$1 ~ /gpu/ { n += $2 } END { print n + 0 }'; }

# more_turns: while each of a program's players has time for one. Who begins changes.
more_turns() {
    local turn name player needed at
    local -a players
    for ((turn = 2; turn <= most_program_turns; turn++)); do
        for name in "${played[@]}"; do
            players=(alone libaccel)
            [ -z "${cost[$name calibrated]:-}" ] || players+=(calibrated)
            needed=1000000
            for player in "${players[@]}"; do needed=$((needed + cost[$name $player] * 11 / 10)); done
            [ $((step_end - SECONDS)) -gt $((needed / 1000000)) ] || continue
            find_program "$name"
            alone_us=${cost[$name alone]}
            for ((at = 0; at < ${#players[@]}; at++)); do
                has_turn "$name" "${players[(at + turn) % ${#players[@]}]}" || break
            done
        done
    done
}

# The bundle's libraries, and those of the machine's Python. --quick does without, unless it has the
# step that calibrates.
calibrate_programs() {
    local begun=$SECONDS seconds=$((program_seconds / 16))
    if [ -n "$quick" ]; then
        calibration=(ACCEL_POLICY=gpu ACCEL_START=wait)
        case " $only " in *" calibrate "*) seconds=1 ;; *) return ;; esac
    fi
    limited "$build/accel" calibrate --seconds "$seconds" --output "$programs/model" > "$logs/programs-calibrate" 2>&1 ||
        { left_out programs "a calibration" "$(tail -n 1 "$logs/programs-calibrate")" && return; }
    calibration+=(ACCEL_MODEL="$programs/model")
    [ -z "$python" ] || limited "${outside[@]}" "$build/accel" calibrate --seconds "$seconds" --output "$programs/model" -- "$python" -c '
try:
    import numpy as np
    a = np.eye(300)
    np.linalg.solve(a @ a, a)
    from scipy.linalg import blas, lu_factor
    blas.dgemm(1, a, a), lu_factor(a)
except ImportError:
    pass' >> "$logs/programs-calibrate" 2>&1 || say "programs: no calibration of $python: $(tail -n 1 "$logs/programs-calibrate")"
    say "programs: calibrated in $((SECONDS - begun)) s"
}

step_programs() {
    local name missing about why place took alone_us
    # Settings of libaccel with a calibration. --quick: all on the GPU, whose results are compared.
    local -a outside around command calibration=() played=()
    local -A cost
    local programs=$work/programs python estimated_gpu
    # The test GPU takes what time it needs.
    [ -z "$quick" ] || local program_limit=300 libaccel_limit=600 most_program_turns=2
    rm -rf "$programs"
    mkdir -p "$programs"
    new_folder programs
    find_surroundings
    machine estimated_gpu "$estimated_gpu"
    machine python "$([ -z "$python" ] || "$python" --version 2>&1)"
    machine program_scale "$PROGRAM_SCALE"
    [ -n "$nvblas" ] || check programs NVBLAS "not here" 0 "$no_nvblas"
    calibrate_programs
    for name in $wanted_programs; do first_turns "$name"; done
    more_turns
    step_note="$(awk -v format=program-sums -f tests/proof/report.awk "$parts/programs.tsv")"
    rm -rf "$programs"/*.data
}
