# The step `serve` of scripts/gpu-proof: what an owner of the GPU (accel serve) brings its clients
# and costs them, beside CUDA in each of their processes. Sourced by it.

# Both have one GPU, also on a machine with several: so their times can be compared.
first_gpu=${CUDA_VISIBLE_DEVICES-0}
first_gpu=${first_gpu%%,*}

# by WAY COMMAND…: with CUDA in the process itself, or by the server.
by() {
    local way=$1
    shift
    case $way in
    process) set -- ACCEL_SERVER=off ACCEL_START=wait "$@" ;;
    served) set -- ACCEL_SERVER="$server_socket" "$@" ;;
    esac
    limited env CUDA_VISIBLE_DEVICES="$first_gpu" ACCEL_POLICY=gpu OPENBLAS_NUM_THREADS=1 "$@"
}

server_metric() { "$build/accel" top --socket="$server_socket" --metrics 2> /dev/null | sed -n "s/^$1 //p"; }

# start_server NAME=VALUE…: in this environment. Sets $server_pid; false where it has said why there
# is none.
start_server() {
    env "$@" "$build/accel" serve --socket="$server_socket" --idle=0 > "$folder/server" 2>&1 &
    server_pid=$!
    while kill -0 "$server_pid" 2> /dev/null && ! grep -q ', at ' "$folder/server"; do
        if time_is_over; then
            : > "$folder/cut"
            return 1
        fi
        sleep 0.05
    done
    grep -q ', at ' "$folder/server"
}

# runs_there WAY: whether a product runs where it is to run.
runs_there() {
    local chosen='chosen=' status
    [ "$1" != served ] || chosen='chosen=server '
    rm -f "$folder/log"
    by "$1" LD_PRELOAD="$build/libaccel.so" ACCEL_LOG=1 ACCEL_LOG_FILE="$folder/log" "$build/tests/steps" dgemm:100:2 > "$folder/out" 2> "$folder/err"
    status=$?
    [ $status -eq 0 ] && grep -q "event=gpu .*$chosen" "$folder/log" && [ "$(grep -c 'sym=dgemm_ .*ran=gpu0 ' "$folder/log")" -eq 2 ] &&
        { [ "$1" = served ] || ! grep -q 'chosen=server ' "$folder/log"; }
}

# serve_pair NAME UNIT FACTOR COMMAND…: the figure of a command of build/tests/served_times with
# both, which take turns; FACTOR: its unit's share of a millisecond, or "rate BYTES". The programs
# that are timed are to have libaccel: starts and together load it themselves.
serve_pair() {
    local name=$1 unit=$2 factor=$3 begun=$SECONDS way round rounds=3 ms preload="$build/libaccel.so"
    local -A figures=() median=()
    shift 3
    case $1 in starts | together) preload='' ;; esac
    [ -z "$quick" ] || rounds=1
    for ((round = 0; round < rounds; round++)); do
        for way in process served; do
            ms=$(by "$way" LD_PRELOAD="$preload" "$build/tests/served_times" "$@" 2> "$folder/err")
            if left_out_if_cut serve "$name" "$begun"; then
                return
            elif ! [[ $ms =~ ^[0-9.]+$ ]]; then
                check serve "$name" failed $((SECONDS - begun)) "$way: $(tail -n 1 "$folder/err")"
                return
            fi
            figures[$way]+="$ms "
        done
    done
    for way in process served; do
        median[$way]=$(tr ' ' '\n' <<< "${figures[$way]}" | grep . | sort -n | awk -v factor="$factor" '{ ms[NR] = $1 }
            END { m = ms[int((NR + 1) / 2)]; printf "%.6g", split(factor, word, " ") == 2 ? word[2] / m * 1e-6 : m * factor }')
        printf 'serve_%s_%s\t%s\t%s\n' "$name" "$way" "${median[$way]}" "$unit" >> "$parts/measures.tsv"
    done
    check serve "$name" ok $((SECONDS - begun)) "${median[process]} $unit with CUDA in the process, ${median[served]} $unit by the server"
}

serve_checks() {
    local way up n=8192 shared=4000 order=1000 starts=9 calls=400 updates=9
    [ -z "$quick" ] || n=512 shared=600 order=300 starts=2 calls=60 updates=3
    for way in process served; do
        if ! runs_there "$way"; then
            check serve "calls" failed 0 "$way: they do not run there: $(tail -n 1 "$folder/err") $(tail -n 1 "$folder/log" 2> /dev/null)"
            return
        fi
    done
    check serve calls ok 0 "they run on the GPU, with CUDA in the process and by the server"
    serve_pair start ms 1 starts $starts "$build/libaccel.so" "$build/tests/steps" "dgemm:$order:1"
    serve_pair call us 1000 calls 64 $calls 0
    serve_pair call_after_pause us 1000 calls 64 $((calls / 4)) 5
    serve_pair up_and_down GB/s "rate $((2 * 8 * n * n))" updates $n $updates
    up=$(server_metric accel_serve_upload_bytes_total)
    ACCEL_RESIDENT=hash serve_pair eight_clients ms 1 together 8 "$build/libaccel.so" "$build/tests/served_times" thin $shared 1
    [ -z "$up" ] || printf 'serve_eight_clients_sent\t%s\tmatrices for eight clients\n' \
        "$(awk -v a="$up" -v b="$(server_metric accel_serve_upload_bytes_total)" -v n=$shared -v rounds="$([ -z "$quick" ] && echo 3 || echo 1)" 'BEGIN { printf "%.4g", (b - a) / (8 * n * n * rounds) }')" >> "$parts/measures.tsv"
}

# several_gpus: whether programs have all GPUs that a server has, and each has one, with right
# results.
several_gpus() {
    local gpus i programs=() right=0 used begun=$SECONDS
    gpus=$(sed -n 's/^accel serve: \([0-9]*\) x .*/\1/p' "$folder/server")
    if [ -z "$gpus" ]; then
        check serve "several GPUs" "not here" 0 "the machine has one GPU, or one of a kind"
        return
    fi
    rm -f "$folder"/log.*
    for ((i = 0; i < 2 * gpus; i++)); do
        limited env ACCEL_SERVER="$server_socket" ACCEL_POLICY=gpu OPENBLAS_NUM_THREADS=1 LD_PRELOAD="$build/libaccel.so" ACCEL_LOG=1 \
            ACCEL_LOG_FILE="$folder/log.$i" "$build/tests/steps" during:3000:500 > "$folder/out.$i" 2>> "$folder/err" &
        programs+=($!)
    done
    for ((i = 0; i < 2 * gpus; i++)); do
        wait "${programs[i]}" && grep -q ' 0 wrong' "$folder/out.$i" && ((right++))
    done
    ! left_out_if_cut serve "several GPUs" "$begun" || return
    used=$(sed -n 's/.* ran=\(gpu[0-9]*\) .*/\1/p' "$folder"/log.* | sort | awk '$1 != last && NR > 1 { printf "%s: %d calls, ", last, n; n = 0 } { last = $1; n++ } END { if (n) printf "%s: %d calls", last, n }')
    check serve "several GPUs" "$([ "$right" -eq $((2 * gpus)) ] && [ "$(grep -o 'gpu[0-9]*:' <<< "$used" | wc -l)" -eq "$gpus" ] && echo ok || echo failed)" \
        $((SECONDS - begun)) "$right of $((2 * gpus)) programs have right results; $used"
}

end_server() {
    kill "$server_pid"
    wait "$server_pid"
}

step_serve() {
    local server_socket server_pid status sockets begun=$SECONDS
    # A socket's path has little room.
    sockets=$(mktemp -d) || { check serve "the server" failed 0 "no folder for its socket" && return; }
    server_socket=$sockets/serve
    new_folder serve
    if start_server CUDA_VISIBLE_DEVICES="$first_gpu"; then
        serve_checks
        end_server
        status=$?
        check serve "the server" "$([ $status -eq 0 ] && echo ok || echo failed)" $((SECONDS - begun)) "$(tail -n 1 "$folder/server")"
    elif ! left_out_if_cut serve "the server" "$begun"; then
        check serve "the server" failed $((SECONDS - begun)) "it does not start: $(tail -n 1 "$folder/server")"
    fi
    if start_server; then
        several_gpus
        end_server
    fi
    kill "$server_pid" 2> /dev/null
    rm -r "$sockets"
}
