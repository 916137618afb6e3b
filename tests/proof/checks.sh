# The steps of scripts/gpu-proof but the times: each says its results by `check`. Sourced by it.

# ---- Building ----

# A driver to link to, if there is one: where the loader finds it, else in folders that it need not
# know, else the toolkit's stand-in for linking.
driver_to_link() {
    local name
    for name in "$(LD_PRELOAD=libcuda.so.1 ldd /bin/true 2> /dev/null | sed -n 's/.* => \(.*libcuda\.so\.1\) .*/\1/p' | head -n 1)" \
        /usr/lib/x86_64-linux-gnu/libcuda.so.1 /usr/lib64/libcuda.so.1 /usr/lib/wsl/lib/libcuda.so.1 /usr/local/cuda/compat/libcuda.so.1 \
        "$cuda"/{lib64,targets/x86_64-linux/lib}/stubs/libcuda.so; do
        if [ -e "$name" ]; then
            echo "$name"
            return
        fi
    done
}

step_build() {
    local begun=$SECONDS log=$logs/build warnings link
    local -a settings=(BUILD="$build" CUDA_HOME="$cuda" CUDA_INCLUDE="$cuda/include" WERROR= CC="${CC:-gcc}")
    [ -z "$regret" ] || settings+=(regret-programs)
    # Only the C tests are built here: those in Fortran are in the bundle, and the test GPU needs a
    # static OpenBLAS, g++ and CUDA 13's headers.
    link=$(driver_to_link)
    [ -z "$link" ] || settings+=(CUDA_DRIVER="$link")
    if limited "$make" -s -j "$cores" "${settings[@]}" all proof-programs > "$log" 2>&1; then
        warnings=$(grep -c 'warning:' "$log")
        step_note="$warnings warnings"
        check build "libaccel and the tests" ok $((SECONDS - begun)) "$step_note"
        # Without nvcc or g++ there can be none; that a compiler refuses them is a failure.
        if [ ! -s "$build/gpu/own/own.fatbin" ]; then
            check build "kernels of our own" "$(grep -q '^compile-kernels: .* fails: ' "$log" && echo failed || echo "not here")" 0 "$(grep '^compile-kernels: ' "$log" | tail -n 1)"
        fi
    else
        cp "$log" "$logs/failed-build"
        check build "libaccel and the tests" failed $((SECONDS - begun)) "$(grep -E 'error|Error' "$log" | head -n 1)"
        tail -n 20 "$log"
    fi
}

# status_of STEP: by those of its checks. What was left out might have been here.
status_of() {
    awk -F '\t' -v step="$1" '$1 == step { n[$3]++ } END {
        print n["failed"] ? "failed" : n["ok"] ? "ok" : n["not here"] && !n["left out"] ? "not here" : "left out" }' "$parts/checks.tsv"
}

# ---- Jobs: some at once, each with what is left of the step's time ----

folder= # of a job: for its files
job_number=0

# Most of a check's time is the CPU's, which computes what the result should be.
jobs_at_once() { echo $((cores < 8 ? cores : 8)); }

# run_jobs NAME COMMAND NAME COMMAND…: a command is a function with words, which puts its note on
# stdout's last line and returns 0 where all is right, 3 where what it needs is not here.
run_jobs() {
    local name command
    while [ $# -gt 0 ]; do
        name=$1 command=$2
        shift 2
        while [ "$(jobs -rp | wc -l)" -ge "$(jobs_at_once)" ]; do wait -n; done
        if [ $((step_end - SECONDS)) -lt 3 ]; then
            left_out "$step_name" "$name" "no time is left"
            continue
        fi
        job_number=$((job_number + 1))
        run_job "$name" "$command" "$logs/$step_name-$job_number" &
    done
    wait
}

run_job() {
    local name=$1 log=$3 begun=$SECONDS status words
    read -ra words <<< "$2"
    folder=$log.files
    mkdir -p "$folder"
    "${words[@]}" > "$log" 2>&1
    status=$?
    if [ -e "$folder/cut" ]; then
        left_out "$step_name" "$name" "not finished after $((SECONDS - begun)) s, when the step's time was over"
        return
    fi
    case $status in
    0) check "$step_name" "$name" ok $((SECONDS - begun)) "$(tail -n 1 "$log")" ;;
    3) check "$step_name" "$name" "not here" $((SECONDS - begun)) "$(tail -n 1 "$log")" ;;
    *)
        { echo "==== $step_name: $name" && tail -c 20000 "$log"; } > "$logs/failed-$(basename "$log")"
        check "$step_name" "$name" failed $((SECONDS - begun)) "$(tail -n 1 "$log")"
        ;;
    esac
}

# new_folder NAME: one for what follows outside of jobs.
new_folder() {
    folder=$logs/$1.files
    rm -rf "$folder"
    mkdir -p "$folder"
}

# left_out_if_cut STEP CHECK BEGUN: whether the step's time has cut something short, since the
# folder is there; and says so.
left_out_if_cut() {
    [ -e "$folder/cut" ] || return 1
    left_out "$1" "$2" "not finished after $((SECONDS - $3)) s, when the step's time was over"
}

# limited COMMAND…: for as long as the step may last; what that cuts short is marked, because it is
# no failure.
limited() {
    local status
    # Waited for, so that a signal is answered at once.
    timeout -k 2 $((step_end > SECONDS ? step_end - SECONDS : 1)) "$@" <&0 &
    wait $!
    status=$?
    # Who is short of memory may be killed, too, and sooner.
    if [ "$SECONDS" -ge "$step_end" ] && { [ $status -eq 124 ] || [ $status -eq 137 ]; }; then
        echo "not finished in the step's time" >&2
        [ -z "${folder:-}" ] || : > "$folder/cut"
    fi
    return $status
}

# A program under libaccel, all on the GPU, with a table of what ran where in $folder/table.
on_gpu() {
    limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_SUMMARY=json ACCEL_LOG_FILE="$folder/table" OPENBLAS_NUM_THREADS=1 "$@"
}

# The table of a run: something ran on the GPU, and nothing stayed away but what must. Prints how
# much, or what is wrong.
all_on_gpu() {
    [ -s "$folder/table" ] || { echo "libaccel has decided nothing" && return 1; }
    grep '"event": "summary"' "$folder/table" | grep -o '{"routine": [^}]*}' |
        sed -E 's/.*"routine": "([^"]*)".*"ran": "([^"]*)", "why": "([^"]*)".*"calls": ([0-9]+).*/\1 \2 \3 \4/' |
        awk '$2 ~ /^gpu[0-9]+$/ { gpu += $4 }
         $2 == "cpu" || $2 ~ /\+cpu$/ {
             if ($3 ~ /^(empty|bad_argument|workspace_query|unsupported|user)$/) cpu += $4
             else { wrong += $4; if (!first) first = $1 " ran=" $2 " why=" $3 } }
         END {
             if (wrong) print wrong " calls were not on the GPU: " first
             else if (!gpu) print "nothing ran on the GPU"
             else print gpu " calls on the GPU, " cpu + 0 " that must not be"
             exit wrong || !gpu }'
}

# ---- What a device alone can show ----

# Programs that end whatever libaccel's thread is at: loading CUDA, starting it, nothing any more. A
# job is a subshell, which draws anew.
ending_job() {
    local ends=0 failed=0 most=3000000 number=40 i delay status
    RANDOM=$1
    [ -z "$few" ] || most=300000 number=6
    for ((i = 0; i < number; i++)); do
        [ $((step_end - SECONDS)) -ge 5 ] || break
        delay=$(((RANDOM * 32768 + RANDOM) % most * i / number))
        limited env LD_PRELOAD="$build/libaccel.so" OPENBLAS_NUM_THREADS=1 "$build/proof/ending" "$delay" > "$folder/out" 2>&1
        status=$?
        ends=$((ends + 1))
        [ $status -ne 0 ] || continue
        [ ! -e "$folder/cut" ] || break
        failed=$((failed + 1))
        echo "after $delay us: exit status $status $(tail -n 1 "$folder/out")"
    done
    echo "$ends programs ended, $failed of them wrongly"
    [ $failed -eq 0 ] && [ $ends -gt 0 ]
}

# Operands on the device, k = 0, m and n of 0 to 2: each routine with a k scales by beta on the GPU.
zero_k_job() {
    limited env LD_PRELOAD="$build/libaccel.so $driver" ACCEL_POLICY=gpu ACCEL_LOG=1 ACCEL_LOG_FILE="$folder/log" OPENBLAS_NUM_THREADS=1 \
        "$build/tests/cuda_program" -l "$build/tests/liblacking.so" -f y -n 2 -k 0 -s "$1" -c $((few ? 2 : 20)) || return 1
    awk '{ sym = ran = k = ""
           for (i = 1; i <= NF; i++) {
               if ($i ~ /^sym=/) sym = substr($i, 5)
               if ($i ~ /^ran=/) ran = substr($i, 5)
               if ($i ~ /^k=/) k = substr($i, 3) }
           if (k == "") next
           all[sym] = 1
           if (k == 0 && ran ~ /^gpu/) { zero[sym] = 1; calls++ } }
         END { for (sym in all) { n++; if (!(sym in zero)) { print sym ": never with k = 0 on the GPU"; wrong = 1 } }
               print calls + 0 " calls of " n + 0 " routines with k = 0"; exit wrong || !calls }' "$folder/log"
}

# sytrf by one and sytrs by the other, both ways; laswp; INFO. ACCEL_CPU keeps some routines on the
# CPU.
rules_job() {
    on_gpu env ACCEL_CPU="$1" "$build/proof/lapack_rules" || return 1
    all_on_gpu
}

# The first and the second call of each routine, in ms: first-calls.tsv. Loading and compiling for a
# type is in the first one.
first_calls_job() {
    local program log=$folder/log
    for program in "random_calls -f y -n 64 -c 2" "random_lapack -f tyesmv -n 24 -c 2 -k well"; do
        # shellcheck disable=SC2086
        limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_LOG=1 ACCEL_LOG_FILE="$log" OPENBLAS_NUM_THREADS=1 \
            "$build/tests/"$program > "$folder/out" 2>&1 || { tail -n 5 "$folder/out" && return 1; }
    done
    awk '{ sym = ran = ms = ""
           for (i = 1; i <= NF; i++) {
               if ($i ~ /^sym=/) sym = substr($i, 5)
               if ($i ~ /^ran=/) ran = substr($i, 5)
               if ($i ~ /^ms=/) ms = substr($i, 4) }
           if (ran ~ /^gpu/ && ++seen[sym] == 1) { first[sym] = ms; order[++n] = sym }
           if (ran ~ /^gpu/ && seen[sym] == 2) second[sym] = ms }
         END { for (i = 1; i <= n; i++) print order[i] "\t" first[order[i]] "\t" second[order[i]] }' "$log" > "$out/first-calls.tsv"
    awk -F '\t' '$2 > most { most = $2; worst = $1 " " $2 " ms, then " $3 " ms" }
                 END { print NR " routines; the slowest first call: " worst; exit !NR }' "$out/first-calls.tsv"
}

step_device() {
    # One after the other: times are among them, and what fails first says most.
    run_jobs "first and second calls" first_calls_job
    run_jobs "programs that end" "ending_job $RANDOM"
    run_jobs "k = 0" "zero_k_job $RANDOM" "sytrf of the GPU, sytrs of the CPU; laswp; info" "rules_job ?sytrs,?hetrs" \
        "sytrf of the CPU, sytrs of the GPU" "rules_job ?sytrf,?hetrf" "n = 1" "random_job random_calls -l $build/tests/liblacking.so -f y -n 1 -s $RANDOM -c 30" \
        "n = 1, LAPACK" "random_lapack_job random_lapack -f tyesmv -n 1 -s $RANDOM -c 6" "capture" "device_job cuda_program -f y -n 20 -c 1"
}

# ---- Unit tests ----

unit_job() {
    local program=$1 output plan seen
    output=$(limited env CMOCKA_MESSAGE_OUTPUT=TAP TEST_REAL_GPU=1 TEST_IMAGES="$kit/data" LD_PRELOAD="${2:-}" "$program")
    local status=$?
    printf '%s\n' "$output"
    plan=$(printf '%s\n' "$output" | sed -n 's/^1\.\.\([0-9]*\)$/\1/p')
    # Of a test that is skipped, cmocka 1.1.5 says "not ok 1 # SKIP", a later one "ok 1 # SKIP".
    seen=$(printf '%s\n' "$output" | grep -c -E '^(ok|not ok [0-9]+ # SKIP)')
    echo "$seen of ${plan:-no} tests"
    [ $status -eq 0 ] && [ "${plan:-none}" = "$seen" ]
}

step_unit() {
    local source program
    local -a list=() others
    # If time runs out, it is not for those that use the GPU. An old build folder may have programs
    # without a source.
    mapfile -t others < <(printf '%s\n' tests/*/test_*.c tests/*/*/test_*.c | grep -v '^tests/gpu/')
    for source in tests/gpu/test_*.c "${others[@]}"; do
        program=$build/tests/$(basename "$source" .c)
        case $program in
        */test_cuda_api | */test_two_devices | */test_lent_memory | */test_device | */test_bench_plan) continue ;; # these need the test GPU
        */test_gpu) list+=("test_gpu" "unit_job $program $driver") ;;
        *) [[ $source == tests/testgpu/* ]] || list+=("${program##*/}" "unit_job $program") ;;
        esac
    done
    run_jobs "${list[@]}"
}

# ---- Random calls ----

# Each result is judged by the program itself, against its own computation in higher precision.
random_job() {
    on_gpu "$build/tests/$1" "${@:2}" > "$folder/out" 2> "$folder/err" || {
        tail -n 20 "$folder/err"
        tail -n 1 "$folder/out"
        return 1
    }
    echo "$(tail -n 1 "$folder/out"); $(all_on_gpu)"
    all_on_gpu > /dev/null
}

# Of LAPACK INFO must be what it is without libaccel, too; what the CPU's library gets wrong itself
# is counted, and no failure. BLAS stays on the CPU: where LAPACK runs there, on matrices with
# infinities, the order in which BLAS adds decides which sums are NaN, and so INFO.
random_lapack_job() {
    local program=$build/tests/$1
    shift
    limited env OPENBLAS_NUM_THREADS=1 "$program" "$@" -o "$folder/native" > "$folder/out" 2>&1
    on_gpu env ACCEL_CPU='blas2:*,blas3:*' "$program" "$@" -o "$folder/gpu" > "$folder/out" 2> "$folder/err"
    if ! tail -n 1 "$folder/out" | grep -q 'cases, .* calls, '; then
        tail -n 3 "$folder/err"
        echo "it has not come to its end: $(tail -n 1 "$folder/out")"
        return 1
    fi
    awk -F ' [|] ' 'NR == FNR { outcome[$1] = $2; native += $2 ~ /WRONG/; next }
        !($1 in outcome) { missing++; next }
        { calls++; was = outcome[$1]; now = $2
          if (now ~ /WRONG/ && was !~ /WRONG/) { print "wrong: " $0; wrong++ }
          sub(/ .*/, "", was); sub(/ .*/, "", now)
          if (was != now) { print "without libaccel " was ": " $0; other++ } }
        END { print calls + 0 " calls, " wrong + 0 " wrong (" native + 0 " without libaccel), " other + 0 " other INFOs, " missing + 0 " not made without libaccel"
              exit wrong || other || missing || !calls }' "$folder/native" "$folder/gpu" > "$folder/comparison" || {
        cat "$folder/comparison"
        return 1
    }
    echo "$(tail -n 1 "$folder/comparison"); $(all_on_gpu)"
    all_on_gpu > /dev/null
}

# stays_job SEED CALLS: random calls on a few matrices, whose operands stay on the device or do not:
# the same results, bit for bit, within the bounds of verification.
stays_job() {
    local setting
    for setting in off hash auto; do
        limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_RESIDENT=$setting ACCEL_VERIFY=all ACCEL_LOG=1 ACCEL_LOG_FILE="$folder/$setting.log" \
            OPENBLAS_NUM_THREADS=1 AGAIN_SEED="$1" "$build/tests/again" mixed "$2" > "$folder/$setting" || return 1
    done
    awk '{ for (i = 1; i <= NF; i++) {
               if ($i ~ /^ran=gpu/) gpu++
               if ($i ~ /^kept_mb=/) kept[FILENAME]++
               if ($i ~ /^verify=/ && substr($i, 8) + 0 > 1) { print "wrong: " $0; wrong++ } } }
         END { hash = kept[ARGV[2]] + 0; off = kept[ARGV[1]] + 0
               print gpu + 0 " calls on the GPU, " wrong + 0 " wrong, " hash " found an operand there"
               exit wrong || !gpu || !hash || off }' "$folder/off.log" "$folder/hash.log" "$folder/auto.log" > "$folder/calls" || { cat "$folder/calls" && return 1; }
    for setting in hash auto; do
        cmp -s "$folder/off" "$folder/$setting" && continue
        echo "seed $1, $setting: other results than without: $(diff "$folder/off" "$folder/$setting" | sed -n 2p)"
        return 1
    done
    cat "$folder/calls"
}

# Programs with memory of their own on the device.
device_job() {
    limited env LD_PRELOAD="$build/libaccel.so $driver" ACCEL_POLICY=gpu ACCEL_SUMMARY=json ACCEL_LOG_FILE="$folder/table" \
        OPENBLAS_NUM_THREADS=1 "$build/tests/$1" "${@:2}" || return 1
    all_on_gpu
}

# LAPACKE's names have nothing behind them.
lapacke_job() { device_job lapacke liblapacke.so.3 LAPACKE_ ""; }

step_random() {
    local count=150 lapack=20 larger=160 largest=300 interface width
    local -a list=()
    [ -z "$few" ] || count=3 lapack=1 larger=40 largest=100
    # Those that take longest first. -f: what Debian's OpenBLAS is known to get wrong.
    list+=("device memory" "device_job cuda_program -f y -c $((few ? 1 : 5))"
        "operands that stay" "stays_job $RANDOM $((few ? 60 : 200))"
        "device memory, LAPACK" "device_job device_lapack"
        "Fortran calls" "device_job fortran_calls"
        "LAPACKE" lapacke_job
        "larger" "random_job random_calls -f y -n $largest -s $RANDOM -c 2"
        "LAPACK" "random_lapack_job random_lapack -f tyesmv -s $RANDOM -c $lapack"
        "LAPACK, ILP64" "random_lapack_job random_lapack64 -f tyesmv -s $RANDOM -c $lapack"
        "LAPACK, larger" "random_lapack_job random_lapack -f tyesmv -s $RANDOM -n $larger -c 1")
    for interface in fortran no-lengths cblas-column cblas-row; do
        for width in "" 64; do
            list+=("$interface${width:+, ILP64}" "random_job random_calls$width -l $build/tests/liblacking$width.so -f y -i $interface -s $RANDOM -c $count")
        done
    done
    list+=("8 threads" "random_job random_calls -f y -n 60 -s $RANDOM -c $((count / 10 + 1)) 8")
    run_jobs "${list[@]}"
}

# ---- Other precisions, where the user asks for them ----

# precision_job PRECISION ROUTINES: emulation and bf16x9 are held to the bound of native precision
# by the program itself, TF32 to its own by ACCEL_VERIFY. 3: the machine lacks it, or cuBLAS has
# computed all in native precision.
precision_job() {
    local precision=$1 status
    limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_PRECISION="$precision" ACCEL_VERIFY=all ACCEL_LOG=1 ACCEL_LOG_FILE="$folder/log" \
        CUBLAS_EMULATION_STRATEGY=eager OPENBLAS_NUM_THREADS=1 \
        "$build/tests/random_calls" -f y -r "$2" -n "$3" -s "$4" -c "$5" > "$folder/out" 2> "$folder/err"
    status=$?
    if grep "cannot compute in $precision" "$folder/err"; then return 3; fi
    awk -v precision="$precision" '/ event=/ { next }
         { used = ""; verify = ""
           for (i = 1; i <= NF; i++) {
               if ($i ~ /^precision=/) used = substr($i, 11)
               if ($i ~ /^verify=/) verify = substr($i, 8) }
           native += used == "native"
           if (used != precision) next
           calls++
           if (verify == "") open++
           if (verify != "unknown" && verify + 0 > worst) worst = verify + 0 }
         END { print calls + 0 " calls in " precision ", " native + 0 " that cuBLAS has made natively; the worst error is " worst + 0 " of its bound"
               exit worst > 1 || open ? 1 : calls ? 0 : 3 }' "$folder/log" || return $?
    [ "$precision" = tf32 ] || [ $status -eq 0 ] || { tail -n 3 "$folder/err" && return 1; }
}

step_precision() {
    local size=200 count=30 rank_k='syrk|herk|syr2k|her2k'
    [ -z "$few" ] || size=100 count=20
    run_jobs emulated "precision_job emulated [dz]@(gemm|$rank_k) $size $RANDOM $count" \
        tf32 "precision_job tf32 [sc]@(gemm|$rank_k|symm|hemm|trmm|trsm) $size $RANDOM $count" \
        bf16x9 "precision_job bf16x9 [sc]@(gemm|$rank_k) $size $RANDOM $count"
}

# ---- A GPU that several processes share; machines of other kinds ----

# two_ranks SEED CALLS MPS: two ranks make random calls at the same time. MPS: 1 if it must serve
# them, else a dot.
two_ranks() {
    local rank status=0
    local -a process=()
    for rank in 0 1; do
        limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_LOG=json ACCEL_LOG_FILE="$folder/log.$rank" OPENBLAS_NUM_THREADS=1 \
            OMPI_COMM_WORLD_RANK=$rank OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=$rank OMPI_COMM_WORLD_LOCAL_SIZE=2 CUDA_VISIBLE_DEVICES=0 \
            "$build/tests/random_calls" -f y -s "$1" -c "$2" > "$folder/out.$rank" 2> "$folder/err.$rank" &
        process+=($!)
    done
    for rank in 0 1; do
        wait "${process[$rank]}" || status=1
        grep -q '"event": *"gpu".*"sharers": *2, *"mps": *'"$3" "$folder/log.$rank" || { echo "rank $rank is not one of two on a GPU, with mps=$3" && status=1; }
    done
    tail -n 3 "$folder"/err.?
    echo "$(tail -n 1 "$folder/out.0"); $(tail -n 1 "$folder/out.1")"
    return $status
}

# The service is one of our own, in a folder of its own.
mps_job() {
    command -v nvidia-cuda-mps-control > /dev/null || { echo "there is no nvidia-cuda-mps-control on the PATH" && return 3; }
    export CUDA_MPS_PIPE_DIRECTORY=$folder/mps CUDA_MPS_LOG_DIRECTORY=$folder/mps
    mkdir "$folder/mps"
    limited nvidia-cuda-mps-control -d > "$folder/out" 2>&1 || { echo "MPS does not start here: $(tail -n 1 "$folder/out")" && return 3; }
    trap 'echo quit | limited nvidia-cuda-mps-control > /dev/null 2>&1' EXIT # of this job's shell
    two_ranks "$1" "$2" 1
}

# products_on DEVICES ORDER ROUTINE: exact products, each compared. Prints where the last one ran,
# and its milliseconds.
products_on() {
    limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_START=wait ACCEL_DEVICES="$1" ACCEL_LOG=json ACCEL_LOG_FILE="$folder/log.$1" \
        "$build/tests/steps" "$3:$2:4" > "$folder/out" 2> "$folder/err" || { tail -n 5 "$folder/err" "$folder/out" && return 1; }
    sed -n 's/.*"sym": *"'"$3"'_".*"ran": *"\([^"]*\)".*"ms": *\([0-9.]*\).*/\1 \2/p' "$folder/log.$1" | tail -n 1
}

# several_job ORDER ROUTINE: products that all GPUs of the machine share.
several_job() {
    local gpus one all
    gpus=$(limited "$build/accel" doctor --json 2> /dev/null | grep -c '"says": *"gpu[0-9]')
    [ "$gpus" -gt 1 ] || { echo "the machine has one GPU" && return 3; }
    one=$(products_on 0 "$1" "$2") || { echo "$one" && return 1; }
    all=$(products_on all "$1" "$2") || { echo "$all" && return 1; }
    echo "$2 of order $1, $gpus GPUs: ${one#* } ms on ${one% *}, ${all#* } ms on ${all% *}"
    case $all in
    *+cpu* | cpu*) return 1 ;;
    *+*) ;;
    *) echo "by its figures, this machine's copies are too slow for more than one GPU to be faster" && return 3 ;;
    esac
}

# solutions_on DEVICES ORDER: a system of a matrix of three times the memory that may be used,
# solved twice; the program judges the residuals. Prints where the last one ran, and its
# milliseconds.
solutions_on() {
    limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_START=wait ACCEL_DEVICES="$1" ACCEL_MEMORY=$(($2 * $2 * 8 / 3 / 1024))K ACCEL_LOG=json \
        ACCEL_LOG_FILE="$folder/log.$1" "$build/tests/steps" "solve:$2:2" > "$folder/out" 2> "$folder/err" || { tail -n 5 "$folder/err" "$folder/out" && return 1; }
    sed -n 's/.*"sym": *"dgesv_".*"ran": *"\([^"]*\)".*"ms": *\([0-9.]*\).*/\1 \2/p' "$folder/log.$1" | tail -n 1
}

# factors_job ORDER: LU of a matrix that is too large for one GPU, on all of them.
factors_job() {
    local gpus one all
    gpus=$(limited "$build/accel" doctor --json 2> /dev/null | grep -c '"says": *"gpu[0-9]')
    [ "$gpus" -gt 1 ] || { echo "the machine has one GPU" && return 3; }
    one=$(solutions_on 0 "$1") || { echo "$one" && return 1; }
    all=$(solutions_on all "$1") || { echo "$all" && return 1; }
    echo "dgesv of order $1, in a third of its matrix's memory, $gpus GPUs: ${one#* } ms on ${one% *}, ${all#* } ms on ${all% *}"
    case $all in
    *cpu*) return 1 ;;
    *+*) ;;
    *) echo "by its figures, this machine's copies are too slow for more than one GPU to be faster" && return 3 ;;
    esac
}

# place_job SEED CALLS: random calls whose inputs kernels read in the host's memory, or whose pages
# move to the GPU.
place_job() {
    local c2c said="" status=0
    for c2c in place migrate auto; do
        limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_C2C=$c2c ACCEL_LOG=2 ACCEL_LOG_FILE="$folder/log.$c2c" OPENBLAS_NUM_THREADS=1 \
            "$build/tests/random_calls" -f y -s "$1" -c "$2" > "$folder/out.$c2c" 2> "$folder/err.$c2c" || status=1
        if grep -q "does not use the host's page tables" "$folder/err.$c2c"; then
            echo "the GPU does not use the host's page tables, as Grace's do: operands in host memory are copied (the machine is $(uname -m))"
            return 3
        fi
        said+="$c2c: $(tail -n 1 "$folder/out.$c2c"), $(grep -c "event=in_place" "$folder/log.$c2c") operands in place, $(grep -c "event=migrate" "$folder/log.$c2c") moved; "
        [ $status -eq 0 ] || tail -n 3 "$folder/err.$c2c"
    done
    grep -q "event=in_place" "$folder/log.place" || { echo "nothing is read in place" && status=1; }
    echo "${said%; }"
    return $status
}

step_shared() {
    local count=20 order=16384
    [ -z "$few" ] || count=2 order=768
    run_jobs "two ranks that take turns" "two_ranks $RANDOM $count ."
    run_jobs "two ranks by MPS" "mps_job $RANDOM $count" "several GPUs" "several_job $order dgemm" "triangles over several GPUs" "several_job $order dsyrk" "LAPACK over several GPUs" "factors_job $order" "host memory in place" "place_job $RANDOM $count"
}

# ---- The reference test programs ----

blas_job() {
    mkdir "$folder/run"
    (cd "$folder/run" && on_gpu "$kit/blas/$1" < "$kit/blas/$1.in") > "$folder/out" 2>&1 || {
        tail -n 5 "$folder/out"
        return 1
    }
    # The Fortran ones write a file.
    cat "$folder"/run/* >> "$folder/out" 2> /dev/null
    local passed wrong
    passed=$(grep -cE 'PASSED THE (COMPUTATIONAL )?TESTS' "$folder/out")
    wrong=$(grep -cE 'FAIL|NOT DETECTED|SUSPECT|\*\*\*\*' "$folder/out")
    grep -E 'FAIL|NOT DETECTED|SUSPECT' "$folder/out" | head -n 5
    echo "$passed passed, $wrong not; $(all_on_gpu)"
    [ "$passed" -ge 6 ] && [ "$wrong" -eq 0 ] && all_on_gpu > /dev/null
}

step_blas() {
    local level letter
    local -a list=()
    for level in 3 2; do
        for letter in d s z c; do
            [ -z "$few" ] || [ "$letter$level" = d3 ] || continue
            list+=("x${letter}blat$level" "blas_job x${letter}blat$level" "cblas_x${letter}blat$level" "blas_job cblas_x${letter}blat$level")
        done
    done
    run_jobs "${list[@]}"
}

# Of what a LAPACK test program prints: a line for each thing that is tested, with how many tests
# failed and were run. Of those of ?geev, some ask for the same bits with and without left vectors,
# which are the CPU's: they count, as run ones too, only where they fail, and are left out.
verdicts() {
    awk '/All tests for .* passed/ {
             what = $0; sub(/.*All tests for (the )?/, "", what); sub(/ +passed.*/, "", what); sub(/ routines$/, "", what)
             n = $0; if (!sub(/.*\( */, "", n)) n = 1; run[what] += n + 0; next }
         /EV -- / { unequal = 0 }
         /test\( [567]\)=/ { unequal++ }
         /: +[0-9]+ +out of +[0-9]+/ {
             what = $0; sub(/: +[0-9]+ +out of.*/, "", what); sub(/^ +/, "", what)
             less = what ~ /EV$/ ? unequal : 0
             n = $0; sub(/.*: +/, "", n); failed[what] += n - less
             sub(/.*out of +/, "", n); run[what] += n - less; next }
         /passed the tests of the error exits/ { run["error exits"]++ }
         /End of tests/ { run["programs that ended"]++ }
         END { for (what in run) print what "\t" failed[what] + 0 "\t" run[what] }' "$1" | sort
}

# With libaccel no more may fail than without, and as many tests are run. BLAS stays on the CPU: it
# makes nine calls of ten, and has had its own tests.
lapack_job() {
    local program=$kit/lapack/$1 data=$kit/lapack/$2
    (cd "$folder" && limited env OPENBLAS_NUM_THREADS=1 "$program" < "$data") > "$folder/native" 2>&1
    (cd "$folder" && on_gpu env ACCEL_CPU='blas2:*,blas3:*' "$program" < "$data") > "$folder/out" 2>&1 || {
        tail -n 5 "$folder/out"
        return 1
    }
    verdicts "$folder/native" > "$folder/verdicts.native"
    verdicts "$folder/out" > "$folder/verdicts.gpu"
    awk -F '\t' 'NR == FNR { failed[$1] = $2; run[$1] = $3; all += $3; next }
        { seen[$1] = 1; tests += $3; bad += $2; known += failed[$1]
          if (run[$1] != $3 || $2 > failed[$1]) { print "not as without libaccel: " $1 ": " $2 " of " $3 " failed, without " failed[$1] + 0 " of " run[$1] + 0; wrong = 1 } }
        END { for (what in run) if (!(what in seen)) { print "missing: " what; wrong = 1 }
              print tests + 0 " tests, " bad + 0 " failed, " known + 0 " without libaccel"; exit wrong || !tests }' \
        "$folder/verdicts.native" "$folder/verdicts.gpu" > "$folder/comparison" || {
        grep -E '\*\*\*|test ?\( *[0-9]' "$folder/out" | head -n 10
        tail -n 1 "$folder/comparison"
        head -n 4 "$folder/comparison"
        return 1
    }
    echo "$(tail -n 1 "$folder/comparison"); $(all_on_gpu)"
    all_on_gpu > /dev/null
}

step_lapack() {
    local program data
    local -a list=()
    while read -r program data; do
        case $few:$program in :* | 1:xlintstd) list+=("${data%.in}" "lapack_job $program $data") ;; esac
    done < "$kit/lapack/list"
    run_jobs "${list[@]}"
}

# ---- compute-sanitizer ----

sanitizer_job() {
    local sanitizer=$1 log=$folder/out
    shift
    limited "$sanitizer" --tool memcheck --target-processes all --error-exitcode 9 env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu \
        ACCEL_SUMMARY=json ACCEL_LOG_FILE="$folder/table" OPENBLAS_NUM_THREADS=1 "$build/tests/$1" "${@:2}" > "$log" 2>&1
    local status=$?
    if grep -q 'Device not supported' "$log"; then
        echo "compute-sanitizer does not support this device"
        return 3
    fi
    grep -E '^=+ (Invalid|Error|Program hit)' "$log" | sort | uniq -c | head -n 10
    [ $status -eq 0 ] || tail -n 5 "$log"
    echo "$(grep 'ERROR SUMMARY' "$log" | sed 's/^=* *//'); $(all_on_gpu)"
    [ $status -eq 0 ] && all_on_gpu > /dev/null
}

step_sanitizer() {
    local sanitizer
    sanitizer=$(command -v compute-sanitizer || ls "$cuda/bin/compute-sanitizer" "$cuda"/compute-sanitizer/compute-sanitizer 2> /dev/null | head -n 1)
    if [ -z "$sanitizer" ]; then
        check sanitizer memcheck "not here" 0 "the toolkit has no compute-sanitizer"
        return
    fi
    run_jobs "BLAS" "sanitizer_job $sanitizer random_calls -f y -n 30 -c 1" \
        "LAPACK" "sanitizer_job $sanitizer random_lapack -f tyesmv -n 20 -c 1 -r d*"
}

# ---- The machine ----

step_measure() {
    local begun=$SECONDS status name
    new_folder measure
    limited "$build/proof/measure" ${quick:+--quick} > "$parts/measures.tsv" 2> "$logs/measure"
    status=$?
    if left_out_if_cut measure "the machine" "$begun"; then
        :
    elif [ $status -eq 0 ]; then
        check measure "the machine" ok $((SECONDS - begun)) ""
    else
        cp "$logs/measure" "$logs/failed-measure"
        check measure "the machine" failed $((SECONDS - begun)) "exit status $status $(tail -n 1 "$logs/measure")"
    fi
    awk -F '\t' '$2 == "-" { print "not measured: " $1 ": " $3 }' "$parts/measures.tsv" | while read -r line; do say "$line"; done
    # What nothing can be judged without.
    awk -F '\t' '$2 != "-" { print $1 }' "$parts/measures.tsv" > "$logs/measured"
    for name in pinned_up pinned_down dgemm_peak sgemm_peak zgemm_peak; do
        grep -qx "$name" "$logs/measured" || check measure "$name" "$([ -e "$folder/cut" ] && echo "left out" || echo failed)" 0 "it was not measured"
    done
    for name in $(wrong_solutions); do
        check measure "${name%=*}" failed 0 "our own kernel and the device's BLAS differ by ${name#*=}"
    done
}

# Solutions of up to a half, whose rounding errors are of the size of 1e-15. "nan" and "inf" have no
# digit at their end.
wrong_solutions() {
    awk -F '\t' '$1 ~ /^solve_.*_difference$/ && $2 != "-" && ($2 !~ /[0-9]$/ || $2 + 0 > 1e-10) { print $1 "=" $2 }' "$parts/measures.tsv"
}

step_calibrate() {
    local begun=$SECONDS time=$((step_end - SECONDS - 10))
    [ -z "$quick" ] || time=2
    new_folder calibrate
    if [ "$time" -lt 1 ]; then
        left_out calibrate "accel calibrate" "no time is left"
    elif limited "$build/accel" calibrate --seconds "$time" --output "$work/model" > "$logs/calibrate" 2>&1 && grep -q '^\[gpu' "$work/model"; then
        cp "$work/model" "$out/accel.model"
        check calibrate "accel calibrate" ok $((SECONDS - begun)) ""
    else
        rm -f "$work/model"
        ! left_out_if_cut calibrate "accel calibrate" "$begun" || return 0
        cp "$logs/calibrate" "$logs/failed-calibrate"
        check calibrate "accel calibrate" failed $((SECONDS - begun)) "$(tail -n 1 "$logs/calibrate")"
    fi
}

# Sets $model to the setting that names the calibration of this run, if there is one.
find_model() {
    model=()
    [ ! -s "$work/model" ] || model=(ACCEL_MODEL="$work/model")
}

# ---- libsvm, liblinear, FNN ----

# pair_value NAME TEXT: the value in "name value" pairs.
pair_value() { sed -n "s/.*\b$1 \([^ ]*\).*/\1/p" <<< "$2"; }

# note_ml NAME: the times in $native and $accelerated, the lines of time_ml without and with
# libaccel, as measures.
note_ml() {
    local what
    for what in train predict; do
        printf '%s_%s_cpu\t%s\tms\n' "$1" "$what" "$(pair_value "${what}_ms" "$native")"
        printf '%s_%s_libaccel\t%s\tms\n' "$1" "$what" "$(pair_value "${what}_ms" "$accelerated")"
    done | awk -F '\t' '$2 != ""' >> "$parts/measures.tsv"
}

ran_on_gpu() { grep -Eq "sym=$1 .*ran=gpu0 " "$logs/ml-log" 2> /dev/null; }

# The models of $native and $accelerated agree in size, sums and predictions, to the tolerance of
# training.
models_agree() {
    awk -v a="$native" -v b="$accelerated" 'BEGIN {
        split(a, x, " "); n = split(b, y, " ")
        for (i = 1; i <= n; i += 2) {
            if (x[i] ~ /_ms$/) continue
            d = x[i + 1] - y[i + 1]; if (d < 0) d = -d
            m = x[i + 1] < 0 ? -x[i + 1] : x[i + 1]
            compared++
            # mawk holds NaN equal to all.
            if (x[i + 1] !~ /[0-9]$/ || y[i + 1] !~ /[0-9]$/ || d > 0.001 * m + 0.001) {
                print x[i] ": " x[i + 1] ", with libaccel " y[i + 1]; wrong = 1 } }
        exit wrong || !compared }'
}

# ml_check NAME SYMBOL LEAST ARGUMENT…: time_ml with libaccel, all on the GPU. LEAST: of its
# predictions, so many must be right; empty: its model must agree with one that is trained without
# libaccel.
ml_check() {
    local name=$1 symbol=$2 least=$3 begun=$SECONDS native='' accelerated wrong='' right
    shift 3
    if [ $((step_end - SECONDS)) -lt 5 ]; then
        left_out ml "$name" "no time is left"
        return
    fi
    new_folder ml
    rm -f "$logs/ml-log"
    [ -n "$least" ] || native=$(limited env OPENBLAS_NUM_THREADS="$cores" "$build/proof/time_ml" "$@" 2> "$logs/ml-error")
    accelerated=$(limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_LOG=1 ACCEL_LOG_FILE="$logs/ml-log" \
        "$build/proof/time_ml" "$@" 2> "$logs/ml-error")
    note_ml "$name"
    right=$(pair_value right "$accelerated")
    if left_out_if_cut ml "$name" "$begun"; then
        return
    elif [ -z "$accelerated" ]; then
        wrong="no result: $(tail -n 1 "$logs/ml-error")"
    elif ! ran_on_gpu "$symbol"; then
        wrong="not on the GPU: $(grep "sym=$symbol " "$logs/ml-log" 2> /dev/null | tail -n 1)"
    elif [ "$symbol" = svm_train ] && [ "$(pair_value vectors "$accelerated")" -ge 256 ] && ! ran_on_gpu svm_predict_values; then
        wrong="predictions not on the GPU: $(grep sym=svm_predict_values "$logs/ml-log" 2> /dev/null | tail -n 1)"
    elif [ -n "$least" ]; then
        [ "${right:-0}" -ge "$least" ] || wrong="${right:-none} predictions are right, at least $least should be"
    else
        wrong=$(models_agree) || wrong=${wrong:-no model without libaccel}
    fi
    if [ -n "$wrong" ]; then
        check ml "$name" failed $((SECONDS - begun)) "$wrong"
    else
        check ml "$name" ok $((SECONDS - begun)) "${native:+$native; with libaccel }$accelerated"
    fi
}

# Whole sets of R's packages, each with a C and gamma that predict well. Where $few is set, so many
# of their rows.
check_sets() {
    local name rows c gamma
    while read -r name rows c gamma; do
        LD_LIBRARY_PATH=$kit "$kit/xz" -dc "$kit/data/$name.xz" > "$work/$name"
        ml_check "$name" svm_train "" text "$work/$name" $((few ? rows : 0)) 1000 "$c" "$gamma"
        rm -f "$work/$name"
    done << 'SETS'
letter 270 10 0.5
shuttle 150 100 1
spam 100 10 0.1
SETS
}

step_ml() {
    local images=$work/images labels=$work/labels samples=4000 rows=1000000 all=60000 predicted=10000 right=8000 queries=50
    [ -z "$few" ] || samples=300 rows=2000 all=270 predicted=20 right=12 queries=20
    gzip -dc "$kit/data/train-images-idx3-ubyte.gz" > "$images" && gzip -dc "$kit/data/train-labels-idx1-ubyte.gz" > "$labels"
    ml_check "svm_$samples" svm_train "" svm "$images" "$labels" $samples 200 10 0.02
    ml_check "linear_$rows" train "" linear $rows 100 2
    ml_check "svm_$all" svm_train $right svm "$images" "$labels" $all $predicted
    ml_check "knn_$all" get_KNNX_brute "" knn "$images" $all $queries 5 "$kit/lib/FNN/libs/FNN.so" "$build/proof/libR.so"
    check_sets # last: what the CPU needs for them is not known
    rm -f "$images" "$labels"
}

# ---- The same matrix again and again ----

# From the fourth call on a matrix may be on the device, and known to be unchanged.
later_ms() {
    awk '{ n = 0
           for (i = 4; i < NF; i++) ms[++n] = $i
           for (i = 2; i <= n; i++)
               for (j = i; j > 1 && ms[j - 1] + 0 > ms[j] + 0; j--) { t = ms[j]; ms[j] = ms[j - 1]; ms[j - 1] = t }
           if (n) print ms[int((n + 1) / 2)] }' <<< "$1"
}

# repeats_check ROUTINE N SETTING CPU: with ACCEL_RESIDENT=SETTING, all calls on the GPU. CPU: what
# time_repeats printed without libaccel.
repeats_check() {
    local routine=$1 n=$2 setting=$3 cpu=$4 begun=$SECONDS name="$1 $2 $3" line kept ms gbps sent wrong=''
    rm -f "$logs/repeats-log"
    new_folder repeats
    line=$(limited env LD_PRELOAD="$build/libaccel.so" ACCEL_POLICY=gpu ACCEL_RESIDENT="$setting" ACCEL_LOG=1 ACCEL_LOG_FILE="$logs/repeats-log" \
        OPENBLAS_NUM_THREADS="$cores" "$build/proof/time_repeats" "$routine" "$n" 12 2> "$logs/repeats-error") || line=
    if left_out_if_cut repeats "$name" "$begun"; then
        return
    elif [ -z "$line" ]; then
        check repeats "$name" failed $((SECONDS - begun)) "no result: $(tail -n 1 "$logs/repeats-error")"
        return
    fi
    ms=$(later_ms "$line")
    gbps=$(awk -v n="$n" -v ms="$ms" 'BEGIN { printf "%.6g", n * n * 8e-6 / ms }')
    kept=$(grep -c "sym=${routine}_ .*ran=gpu0 .*kept_mb=" "$logs/repeats-log" 2> /dev/null)
    printf 'repeated_%s_%s_%s\t%s\tGB/s\n' "$routine" "$n" "$setting" "$gbps" >> "$parts/measures.tsv"
    figures_agree "${cpu##* }" "${line##* }" 0 || wrong="its sum is ${line##* }, the CPU's ${cpu##* }"
    [ "$(grep -c "sym=${routine}_ .*ran=gpu0 " "$logs/repeats-log" 2> /dev/null)" -eq 12 ] || wrong="not all calls ran on the GPU"
    [ "$setting" != off ] || [ "$kept" -eq 0 ] || wrong="$kept calls found their matrix on the GPU"
    [ "$setting" != hash ] || [ "$kept" -ge 9 ] || wrong="$kept calls of 12 found their matrix on the GPU"
    # 1 to 6: what each call took.
    printf '%s' "$line" | awk -v name="repeated_${routine}_${n}_${setting}_call" '{ for (i = 1; i <= 6 && i < NF; i++) printf "%s_%d\t%s\tms\n", name, i, $i }' >> "$parts/measures.tsv"
    # With the kernel's record of writes, the fourth call sends less than a hundredth of the matrix;
    # of a small one, 16 vectors are more.
    if [ "$setting" = auto ] && ! grep -q 'event=untracked' "$logs/repeats-log" && [ "$kept" -gt 0 ]; then
        sent=$(grep "sym=${routine}_ " "$logs/repeats-log" | awk -v n="$n" 'NR == 4 { for (i = 1; i <= NF; i++) if (sub(/^up_mb=/, "", $i)) print ($i < n * n * 8e-8 * (n < 4096 ? 10 : 1) ? "little" : $i) }')
        [ "$sent" = little ] || wrong="the fourth call sent $sent MB up"
    fi
    check repeats "$name" "$([ -n "$wrong" ] && echo failed || echo ok)" $((SECONDS - begun)) "${wrong:+$wrong; }$gbps GB/s from the fourth call on; $kept calls of 12 found their matrix on the GPU"
}

step_repeats() {
    local routine setting cpu begun n=16384
    [ -z "$few" ] || n=512 # 2 MB: smaller matrices do not stay
    for routine in dgemv dgemm; do
        begun=$SECONDS
        new_folder repeats
        cpu=$(limited env OPENBLAS_NUM_THREADS="$cores" "$build/proof/time_repeats" $routine $n 12 2> "$logs/repeats-error")
        ! left_out_if_cut repeats "$routine $n" "$begun" || continue
        printf 'repeated_%s_%s_cpu\t%s\tGB/s\n' $routine $n "$(awk -v n=$n -v ms="$(later_ms "$cpu")" 'BEGIN { printf "%.6g", ms ? n * n * 8e-6 / ms : 0 }')" >> "$parts/measures.tsv"
        for setting in off hash auto; do
            if [ $((step_end - SECONDS)) -lt 5 ]; then
                left_out repeats "$routine $n $setting" "no time is left"
            else
                repeats_check $routine $n $setting "$cpu"
            fi
        done
    done
}

# ---- When copies and kernels ran ----

# trace_figures NAME FILE: of the last call in a trace, in milliseconds from its begin, when each
# kind of step began and ended, and how long steps of that kind were under way; the call's time; and
# how many steps the trace has not.
trace_figures() {
    awk -v name="trace_$1" '
        function field(key,    text) { text = $0; if (!sub(".*\"" key "\": ", "", text)) return 0; sub(/[,}].*/, "", text); return text + 0 }
        /"cat": "(up|compute|down)"/ { kind[++steps] = /"cat": "up"/ ? "up" : /"cat": "down"/ ? "down" : "compute"; from[steps] = field("ts"); to[steps] = from[steps] + field("dur") }
        /"cat": "call"/ { begin = field("ts"); end = begin + field("dur"); left_out = more; more = 0 }
        /"name": "further steps are left out"/ { more += field("steps") }
        END {
            if (!begin) exit 1
            for (i = 1; i <= steps; i++) {
                if (from[i] < begin || from[i] > end) continue
                k = kind[i]
                if (!(k in first) || from[i] < first[k]) first[k] = from[i]
                if (to[i] > last[k]) last[k] = to[i]
                busy[k] += to[i] - (from[i] > until[k] ? from[i] : until[k] < to[i] ? until[k] : to[i])
                if (to[i] > until[k]) until[k] = to[i]
            }
            printf "%s\t%.4f\tms\n%s_left_out\t%d\tsteps\n", name, (end - begin) / 1000, name, left_out
            for (k in first) printf "%s_%s_from\t%.4f\tms\n%s_%s_until\t%.4f\tms\n%s_%s_busy\t%.4f\tms\n",
                name, k, (first[k] - begin) / 1000, name, k, (last[k] - begin) / 1000, name, k, busy[k] / 1000
        }' "$2" >> "$parts/measures.tsv"
}

# trace_check NAME COMMAND…: runs a program whose last call is traced, by the calibration of this
# run where there is one. It judges its own results.
trace_check() {
    local name=$1 begun=$SECONDS file=$logs/trace-$1.json status
    local -a model
    find_model
    shift
    if [ $((step_end - SECONDS)) -lt 4 ]; then
        left_out traces "$name" "no time is left"
        return
    fi
    rm -f "$file"
    new_folder traces
    limited env OPENBLAS_NUM_THREADS="$cores" LD_PRELOAD="$build/libaccel.so" ACCEL_START=wait ACCEL_TRACE="$file" "${model[@]}" "$@" > "$logs/trace-out" 2>&1
    status=$?
    if left_out_if_cut traces "$name" "$begun"; then
        return
    elif [ $status -ne 0 ] || grep -q '^error' "$logs/trace-out"; then
        check traces "$name" failed $((SECONDS - begun)) "exit status $status, $(tail -n 1 "$logs/trace-out")"
    elif trace_figures "$name" "$file" && [ "$(grep -c "^trace_${name}_" "$parts/measures.tsv")" -ge 9 ]; then
        check traces "$name" ok $((SECONDS - begun)) "$(sed -n "s/^trace_${name}\t\([^\t]*\).*/\1 ms/p" "$parts/measures.tsv")"
    else
        check traces "$name" failed $((SECONDS - begun)) "no trace of its last call: $(tail -n 1 "$logs/trace-out")"
    fi
}

step_traces() {
    local call n thin=16384
    local -a calls=("dgemm 4096" "dgemm 8192" "dsyrk 4096" "dsyrk 8192" "dtrsm 4096" "dtrsm 8192" "dtrsm 16384" "dpotrf 4096" "dpotrf 8192" "dgetrf 8192" "dgeqrf 8192")
    [ -z "$few" ] || calls=("dgemm 800" "dtrsm 900") thin=512
    for call in "${calls[@]}"; do
        n=${call#* }
        printf '%s 3\n' "$call" > "$logs/trace-in"
        trace_check "${call% *}_$n" ACCEL_POLICY=gpu ACCEL_RESIDENT=off "$build/proof/time_calls" < "$logs/trace-in"
    done
    trace_check "thin_$thin" ACCEL_POLICY=gpu "$build/proof/time_repeats" dgemm "$thin" 8
}

# ---- Matrices above the device's memory ----

# time_forced N SETTING…: the milliseconds of the second of two calls of dpotrf on the GPU, whose
# decisions go to the log `panels`.
time_forced() {
    local n=$1
    shift
    printf 'dpotrf %s 1\n' "$n" "$n" | limited env OPENBLAS_NUM_THREADS="$cores" LD_PRELOAD="$build/libaccel.so" ACCEL_START=wait ACCEL_POLICY=gpu \
        ACCEL_RESIDENT=off ACCEL_LOG=1 ACCEL_LOG_FILE="$logs/panels" "$@" "$build/proof/time_calls" | awk 'NR == 2 && $1 ~ /^[0-9.]+$/ { print $1 }'
}

# dpotrf in half the memory that its matrix has, beside one that fits.
step_panels() {
    local n=16384 whole parts_ms share begun=$SECONDS
    [ -z "$quick" ] || n=256
    new_folder panels
    whole=$(time_forced "$n")
    rm -f "$logs/panels"
    parts_ms=$(time_forced "$n" ACCEL_MEMORY=$((n * n * 4 / 1024))K)
    if left_out_if_cut panels "dpotrf $n" "$begun"; then
        return
    elif [ -z "$whole" ] || [ -z "$parts_ms" ]; then
        check panels "dpotrf $n" failed $((SECONDS - begun)) "it was not timed"
    elif [ "$(grep -c 'sym=dpotrf_ .* ran=gpu0 why=forced' "$logs/panels")" -ne 2 ]; then
        check panels "dpotrf $n" failed $((SECONDS - begun)) "it did not run on the GPU in panels: $(grep -F sym=dpotrf_ "$logs/panels" | tail -n 1)"
    else
        share=$(awk -v a="$whole" -v b="$parts_ms" 'BEGIN { printf "%.3g", 100 * a / b }')
        printf '%s\t%s\t%s\n' "dpotrf_${n}_whole" "$whole" ms "dpotrf_${n}_in_panels" "$parts_ms" ms dpotrf_in_panels_rate "$share" % >> "$parts/measures.tsv"
        check panels "dpotrf $n" ok $((SECONDS - begun)) "in half of its memory: $share % of the rate of one that fits"
    fi
}

# ---- Times ----

# Sets $nvblas, or $no_nvblas to why there is none. The test GPU's own is made by a test.
find_nvblas() {
    local folder
    nvblas='' no_nvblas="the toolkit has no libnvblas.so"
    if [ -n "$test_gpu" ]; then
        nvblas=$(ls "$test_gpu"/libnvblas.so.1? 2> /dev/null | head -n 1)
        no_nvblas="it needs a real GPU"
        return
    fi
    for folder in "$cuda/lib64" "$cuda/lib" "$cuda/targets/x86_64-linux/lib"; do
        [ -n "$nvblas" ] || nvblas=$(ls "$folder"/libnvblas.so.1? 2> /dev/null | head -n 1)
    done
}

# nvblas_settings VARIANT: as it is shipped, with pinned operands, or with these by tiles of that
# order.
nvblas_settings() {
    printf '%s\n' "NVBLAS_LOGFILE $turns/nvblas.log" "NVBLAS_CPU_BLAS_LIB $kit/lib/libopenblas.so.0" "NVBLAS_GPU_LIST 0"
    case $1 in pinned | [0-9]*) echo NVBLAS_AUTOPIN_MEM_ENABLED ;; esac
    case $1 in [0-9]*) echo "NVBLAS_TILE_DIM $1" ;; esac
}

# Sets $no_cublasxt to why there is none; nothing where a call of it goes well.
find_cublasxt() {
    no_cublasxt=$({ echo "dgemm 64 1" | limited "$build/proof/time_calls_xt" 2>&1 | tail -n 1; } || true)
    case $no_cublasxt in [0-9]*) no_cublasxt='' ;; '') no_cublasxt="time_calls_xt does not answer" ;; esac
}

step_timings() {
    local before after variant no_cublasxt
    local -a cpu=(env OPENBLAS_NUM_THREADS="$cores" OPENBLAS_THREAD_TIMEOUT=20) accel model
    players=(cpu libaccel libaccel_gpu libaccel_log)
    find_model
    accel=("${cpu[@]}" LD_PRELOAD="$build/libaccel.so" ACCEL_START=wait "${model[@]}")
    start_player cpu "${cpu[@]}" "$build/proof/time_calls"
    start_player libaccel "${accel[@]}" "$build/proof/time_calls"
    start_player libaccel_gpu "${accel[@]}" ACCEL_POLICY=gpu ACCEL_RESIDENT=off ACCEL_LOG=1 ACCEL_LOG_FILE="$turns/libaccel_gpu.log" \
        "$build/proof/time_calls"
    start_player libaccel_log "${accel[@]}" ACCEL_LOG=1 ACCEL_LOG_FILE="$turns/libaccel_log.log" "$build/proof/time_calls"
    if [ -z "$nvblas" ]; then
        check timings NVBLAS "not here" 0 "$no_nvblas"
    else
        for variant in nvblas nvblas_pinned nvblas_1024 nvblas_4096 nvblas_8192; do
            nvblas_settings "${variant#nvblas_}" > "$turns/$variant.conf"
            players+=("$variant")
            start_player "$variant" "${cpu[@]}" LD_PRELOAD="$nvblas" NVBLAS_CONFIG_FILE="$turns/$variant.conf" "$build/proof/time_calls"
        done
    fi
    find_cublasxt
    if [ -n "$no_cublasxt" ]; then
        check timings cuBLASXt "not here" 0 "$no_cublasxt"
    else
        for variant in 1024 2048 4096; do
            players+=("cublasxt_$variant")
            start_player "cublasxt_$variant" "${cpu[@]}" CUBLASXT_BLOCK_DIM="$variant" "$build/proof/time_calls_xt"
        done
    fi
    before=$(wc -l < "$parts/checks.tsv")
    # shellcheck disable=SC2086
    time_calls ${sizes//,/ }
    after=$(tail -n +$((before + 1)) "$parts/checks.tsv" | grep -c "$(printf '\tfailed\t')")
    stop_players
    step_note="$(cut -f 1,2 "$parts/timings.tsv" | sort -u | wc -l) calls"
    if [ ! -s "$parts/timings.tsv" ] && [ "$after" -eq 0 ] && tail -n +$((before + 1)) "$parts/checks.tsv" | grep -q "$(printf '\tleft out\t')"; then
        left_out timings "calls" "none was timed"
    elif [ ! -s "$parts/timings.tsv" ]; then
        check timings "calls" failed 0 "none was timed"
    elif ! grep -q "$(printf '\tlibaccel_gpu\t.*\tgpu0\t')" "$parts/timings.tsv"; then
        check timings "calls" failed 0 "none ran on the GPU"
    elif [ "$after" -eq 0 ]; then
        check timings "calls" ok 0 "$step_note"
    fi
    tail -n 3 "$turns"/*.err | sed '/^$/d' > "$logs/timings-errors"
}

# ---- What the decisions lose ----

step_regret() {
    local begun=$SECONDS
    if ! command -v python3 > /dev/null; then
        check regret record-all "not here" 0 "it needs python3"
    elif limited python3 -B tests/regret/record-all "$out/regret" > "$logs/regret" 2>&1; then
        check regret record-all ok $((SECONDS - begun)) "$(tail -n 1 "$logs/regret")"
    else
        cp "$logs/regret" "$logs/failed-regret"
        check regret record-all failed $((SECONDS - begun)) "$(tail -n 1 "$logs/regret")"
    fi
}
