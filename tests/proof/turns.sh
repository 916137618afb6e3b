# Times calls by processes that take turns: sourced by scripts/gpu-proof, whose `now`, `check` and
# `left_out` it uses.
#
# Each player is build/proof/time_calls, with another library in LD_PRELOAD or none. Per routine and
# order: all make their inputs, each has a turn that warms up and is not counted, then one after the
# other, as often as the time allows; who begins changes from round to round. A player that would
# take too long for a call sits it out, and where memory is short, libaccel_gpu plays alone. Each
# player judges its first result of a call and an order (time_calls); the figures of its others must
# be that of the first, and all players'. The player libaccel_log writes a log, and is not timed: on
# the CPU a routine of LAPACK makes thousands of calls, each a line. It repeats libaccel's calls,
# whose number libaccel's decisions depend on.

declare -A player_to player_from player_pid player_lost player_command player_restarted

# start_player NAME COMMAND…: the command is time_calls behind its environment.
start_player() {
    local name=$1 to from
    shift
    player_command[$name]=$(printf '%q ' "$@")
    rm -f "$turns/$name.in" "$turns/$name.out"
    mkfifo "$turns/$name.in" "$turns/$name.out"
    "$@" < "$turns/$name.in" > "$turns/$name.out" 2> "$turns/$name.err" &
    player_pid[$name]=$!
    exec {to}> "$turns/$name.in" {from}< "$turns/$name.out"
    player_to[$name]=$to
    player_from[$name]=$from
}

# family_of PLAYER: nvblas or cublasxt, of which several play with other settings, and the best one
# counts; else nothing.
family_of() {
    case $1 in nvblas* | cublasxt*) echo "${1%%_*}" ;; esac
}

# NVBLAS and cuBLASXt are not what is proved: what goes wrong with them is said, and is no failure.
player_failed() {
    check timings "$1" "$([ -n "$(family_of "$1")" ] && echo "not here" || echo failed)" 0 "$2"
}

time_is_over() { [ "$(now)" -ge "$step_end" ]; }

lose_player() {
    local name=$1 why=$2
    player_lost[$name]=$why
    kill -9 "${player_pid[$name]}" 2> /dev/null
    player_failed "$name" "$why; $(tail -n 2 "$turns/$name.err" | tr '\n\t' '  ')"
}

# restart_gpu: libaccel_gpu, without which no call is timed, has a second try after a failure; what
# it does not depend on calls before, as libaccel's decisions do.
restart_gpu() {
    local name=libaccel_gpu to from
    [ -z "${player_restarted[$name]:-}" ] && ! time_is_over || return 1
    player_restarted[$name]=1
    to=${player_to[$name]} from=${player_from[$name]}
    exec {to}>&- {from}<&-
    wait "${player_pid[$name]}" 2> /dev/null
    unset "player_lost[$name]"
    eval "start_player $name ${player_command[$name]}"
}

# tell NAME REQUEST, then hear NAME SECONDS: the answer is in $answer. False where the player is
# lost. One that the end of the step's time cuts short has not failed.
tell() {
    [ -z "${player_lost[$1]:-}" ] && printf '%s\n' "$2" >&"${player_to[$1]}"
}

hear() {
    local status
    answer=
    [ -z "${player_lost[$1]:-}" ] || return 1
    read -r -t "$2" answer <&"${player_from[$1]}"
    status=$?
    if [ $status -gt 128 ] && time_is_over; then
        player_lost[$1]="the step's time is over"
        kill -9 "${player_pid[$1]}" 2> /dev/null
        left_out timings "$1" "not finished in the step's time: $request"
    elif [ $status -gt 128 ]; then
        lose_player "$1" "no answer within $2 s to $request"
    elif [ $status -ne 0 ]; then
        lose_player "$1" "it has ended at $request"
    fi
    case $status:$answer in 0:error*) player_failed "$1" "$request: $answer" ;; esac
    case $status:$answer in 0:error* | [1-9]*) return 1 ;; esac
}

stop_players() {
    local name to from
    for name in "${players[@]}"; do
        tell "$name" quit 2> /dev/null
        to=${player_to[$name]} from=${player_from[$name]}
        exec {to}>&- {from}<&-
    done
    sleep 0.5
    for name in "${players[@]}"; do
        kill -9 "${player_pid[$name]}" 2> /dev/null
        wait "${player_pid[$name]}" 2> /dev/null
    done
}

# Where the last call of a routine ran, and why: "gpu0 faster".
decision_of() {
    local log=$turns/$1.log
    [ "$1" != libaccel ] || log=$turns/libaccel_log.log
    [ -s "$log" ] || return 0
    grep -F "sym=${2}_ " "$log" | tail -n 1 | sed -n 's/.* ran=\([^ ]*\) why=\([^ ]*\).*/\1 \2/p'
}

# Whether two figures agree: to 8 digits, to 6 in single precision. They are sums, in which errors
# of rounding cancel.
figures_agree() {
    awk -v a="$1" -v b="$2" -v single="$3" 'BEGIN {
        d = a - b; if (d < 0) d = -d
        m = a < 0 ? -a : a
        # mawk holds NaN equal to all.
        exit !(a ~ /[0-9]$/ && b ~ /[0-9]$/ && d <= (single ? 1e-6 : 1e-8) * m + 1e-30) }'
}

# What players' calls have taken at their largest orders so far: "PLAYER ROUTINE" is the key.
declare -A last_ms last_n

# A call of this order tells how long larger ones take.
probed=512

# estimated PLAYER ROUTINE N: the seconds of a call; 0 where nothing is known. By the cube of the
# order, but by a small call on the GPU, which takes most of its time to start, by the square.
# libaccel has the call where it is fastest.
estimated() {
    local player known=
    for player in "$1" $([ "$1" != libaccel ] || echo cpu libaccel_gpu); do
        [ -z "${last_ms[$player $2]:-}" ] || known+="$player ${last_ms[$player $2]} ${last_n[$player $2]}"$'\n'
    done
    awk -v n="$3" -v probed=$probed 'NF {
            s = $2 * (n / $3) ^ ($1 == "libaccel_gpu" && $3 <= probed ? 2 : 3) / 1000
            if (!found++ || s < least) least = s }
        END { printf "%.1f", least }' <<< "$known"
}

# probe PLAYER ROUTINE N CALLS: learns from calls of this order what they take.
probe() {
    local ms
    request="$2 $3"
    tell "$1" "$request $4" && hear "$1" $((step_end > $(now) ? step_end - $(now) + 5 : 1)) || return 0
    read -r ms _ <<< "$answer"
    last_ms["$1 $2"]=$ms last_n["$1 $2"]=$3
}

is_over() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > b) }'; }

# probe_first PLAYER ROUTINE N: sees to it that something is known of the player's calls: above
# twice the order $probed, it first makes small ones. What small ones take is too much of a guess to
# leave a player out, unless it is far too slow: then larger ones tell, which take no longer than
# half of what a call may.
probe_first() {
    local part seconds
    [ "$1" != libaccel_log ] && [ "$3" -gt $((2 * probed)) ] || return 0
    [ -n "${last_ms[$1 $2]:-}" ] || probe "$1" "$2" $probed 3
    for part in 4 2; do
        [ -n "${last_ms[$1 $2]:-}" ] && [ $(($3 / part)) -gt "${last_n[$1 $2]}" ] || continue
        seconds=$(estimated "$1" "$2" "$3")
        is_over "$seconds" "$most_call_seconds" && ! is_over "$seconds" "$(awk -v s="$most_call_seconds" -v part=$part 'BEGIN { print s * part ^ 2 }')" || continue
        probe "$1" "$2" $(($3 / part)) 1
    done
}

# outplayed PLAYER ROUTINE: one of a family that has taken 1.3 times as long as another one at the
# same order has no more turns with that routine.
outplayed() {
    local other family
    family=$(family_of "$1")
    [ -n "$family" ] && [ "${last_n[$1 $2]:-0}" -gt $probed ] || return 1
    for other in "${players[@]}"; do
        [ "$(family_of "$other")" = "$family" ] && [ "${last_n[$other $2]:-0}" -ge "${last_n[$1 $2]}" ] || continue
        awk -v a="${last_ms[$1 $2]}" -v an="${last_n[$1 $2]}" -v b="${last_ms[$other $2]}" -v bn="${last_n[$other $2]}" 'BEGIN { exit !(a / an ^ 3 > 1.3 * b / bn ^ 3) }' && return 0
    done
    return 1
}

# plays PLAYER ROUTINE N: whether it can make the call at all.
plays() {
    # NVBLAS and cuBLASXt have Level 3 alone.
    case $(family_of "$1"):$2 in ?*:*rf | ?*:*dd | ?*:*evd) return 1 ;; esac
    ! outplayed "$1" "$2" || return 1
    [ -z "${player_lost[$1]:-}" ] && { [ "$3" -lt "$alone" ] || [ "$1" = libaccel_gpu ]; }
}

# choose_players ROUTINE N: sets $chosen to those that can make the call soon enough, and in the
# memory that there is, $seconds_each to what a round of theirs takes, and $bytes to the memory of
# each. False where nobody can; says who cannot.
choose_players() {
    local name seconds slow=''
    chosen=() seconds_each=0 bytes=''
    if [ -n "${player_lost[libaccel_gpu]:-}" ] && ! restart_gpu; then
        left_out timings "$1 $2" "libaccel_gpu is lost: ${player_lost[libaccel_gpu]}"
        return 1
    fi
    for name in "${players[@]}"; do
        ! plays "$name" "$1" "$2" || probe_first "$name" "$1" "$2"
    done
    for name in "${players[@]}"; do
        plays "$name" "$1" "$2" || continue
        seconds=$(estimated "$name" "$1" "$2")
        # The one with the log takes as long as the one that it repeats.
        [ "$name" != libaccel_log ] || seconds=$(estimated libaccel "$1" "$2")
        if is_over "$seconds" "$most_call_seconds"; then
            slow+="${slow:+, }$name (about $seconds s)"
            continue
        fi
        seconds_each=$(awk -v a="$seconds_each" -v b="$seconds" 'BEGIN { print a + b }')
        chosen+=("$name")
        request="memory $1 $2"
        if [ -z "$bytes" ]; then
            tell "$name" "$request" && hear "$name" 5 && bytes=$answer
        fi
    done
    [ -z "$slow" ] || left_out timings "$1 $2: some players" "a call would take too long: $slow"
    case " ${chosen[*]} " in
    *" libaccel_gpu "*) ;;
    *) return 1 ;;
    esac
    within() { awk -v bytes="$bytes" -v processes="$1" '/^MemAvailable:/ { exit !(bytes * processes < $2 * 1024 * 0.7) }' /proc/meminfo; }
    if ! within ${#chosen[@]}; then
        within 1 || { left_out timings "$1 $2" "this machine has too little memory" && return 1; }
        left_out timings "$1 $2: players but libaccel_gpu" "this machine has too little memory"
        chosen=(libaccel_gpu)
        seconds_each=$(estimated libaccel_gpu "$1" "$2")
    fi
}

# time_call ROUTINE N: all rounds of $chosen. Returns 1 where nobody can make the call, 2 where time
# has run out.
time_call() {
    local routine=$1 n=$2 name round rounds figure first at ms operations in out calls reference='' reference_of='' wrong='' limit line
    local -a preparing=() playing=() timed=() decision
    request="$routine $n"
    limit=$((step_end - $(now) + 5))
    for name in "${chosen[@]}"; do
        tell "$name" "prepare $request" && preparing+=("$name")
    done
    for name in "${preparing[@]}"; do
        hear "$name" "$limit" && [ "$name" != libaccel_log ] && playing+=("$name")
    done
    if [ ${#playing[@]} -eq 0 ]; then
        time_is_over && return 2
        return 1
    fi
    rounds=1
    for ((round = 0; round <= rounds; round++)); do
        for ((at = 0; at < ${#playing[@]}; at++)); do
            first=$(((at + round) % ${#playing[@]}))
            name=${playing[first]}
            sleep 0.05 # OpenBLAS's threads spin after a call: as long as one player's calls follow each other (OPENBLAS_THREAD_TIMEOUT)
            limit=$((step_end - $(now) + 5))
            [ "$limit" -gt 1 ] || return 2
            [[ " $wrong " != *" $name "* ]] || continue
            tell "$name" "$request" && hear "$name" "$limit" || { wrong+=" $name" && continue; }
            read -r ms figure operations in out calls <<< "$answer"
            if [ "$name" = libaccel ] && [[ " ${chosen[*]} " == *" libaccel_log "* ]] && tell libaccel_log "$request $calls"; then
                hear libaccel_log "$limit"
            fi
            last_ms["$name $routine"]=$ms last_n["$name $routine"]=$n
            if [ -z "$reference" ]; then
                # The first that plays, the CPU where it does, sets what the others must give.
                reference=$figure reference_of=$name
                [ "$round" -gt 0 ] || rounds=$(awk -v ms="$ms" -v most="$most_rounds" 'BEGIN { r = ms < 100 ? 5 : ms < 1000 ? 3 : 1; print r < most ? r : most }')
            elif ! figures_agree "$reference" "$figure" "$([ "${routine:0:1}" = s ] && echo 1 || echo 0)"; then
                player_failed "$name" "$request: its figure is $figure, that of $reference_of $reference"
            fi
            if [ "$round" -gt 0 ]; then
                timed+=("$(printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s' "$routine" "$n" "$name" "$round" "$ms" "$operations" "$in" "$out")")
            fi
        done
    done
    for line in "${timed[@]}"; do
        read -r _ _ name _ <<< "$line"
        read -ra decision <<< "$(decision_of "$name" "$routine")"
        printf '%s\t%s\t%s\n' "$line" "${decision[0]:-}" "${decision[1]:-}" >> "$parts/timings.tsv"
    done
    return 0
}

# time_calls SIZES…: the routines of $calls at the sizes, the small ones of all first. What would
# take too long is left out.
time_calls() {
    local n routine left
    local -a chosen
    local seconds_each bytes
    for n in "$@"; do
        for routine in $calls; do
            if time_is_over; then # to ask how long it would take is over, too
                left_out timings "$routine $n" "no time is left"
                continue
            fi
            choose_players "$routine" "$n" || continue
            left=$((step_end - $(now)))
            # All make and fill their matrices first, and copy and read them beside the calls: some
            # 2e9 bytes a second.
            if awk -v left="$left" -v s="$seconds_each" -v bytes="$bytes" -v players=${#chosen[@]} 'BEGIN { exit left >= 4 + 2 * s + bytes * players / 2e9 }'; then
                left_out "timings" "$routine $n" "no time is left"
                continue
            fi
            time_call "$routine" "$n"
            case $? in
            1) check timings "$routine $n" failed 0 "nobody could make the call" ;;
            2) left_out timings "$routine $n" "time has run out on the way" ;;
            esac
        done
    done
}
