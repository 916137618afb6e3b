#define _GNU_SOURCE
#include "dispatch.h"

#include <sys/auxv.h>

#include "startup_banner.h"
#include "census.h"
#include "copies.h"
#include "decision_cache.h"
#include "devices.h"
#include "guided.h"
#include "fatal.h"
#include "run.h"
#include "small.h"
#include "select.h"
#include "base/file/shared_file.h"
#include "base/host/cpu.h"
#include "base/host/fork_server.h"
#include "base/host/program.h"
#include "base/thread/forks.h"
#include "base/output/output.h"
#include "dispatch/cost/cost.h"
#include "gpu/device/exit_guard.h"
#include "gpu/remote/remote.h"
#include "ops/blas/pass.h"
#include "ops/op.h"
#include "ops/rules/rules.h"
#include "report/estimate.h"
#include "report/log.h"
#include "report/metrics.h"
#include "report/report.h"
#include "report/summary.h"
#include "report/totals.h"
#include "report/trace.h"

static struct accel_settings settings;
static struct accel_ranks ranks;
static atomic_bool ready; /* dispatch_start() is complete */

/* ---- Start and end ---- */

static void start_reports(void)
{
    log_start(settings.log, settings.log_file, settings.log_min_ms);
    if (settings.summary)
        summary_start(settings.log == ACCEL_LOG_JSON ? ACCEL_SUMMARY_JSON : settings.summary,
                      settings.log_file, settings.summary_table, settings.log == ACCEL_LOG_OFF);
    summary_know((settings.resident != ACCEL_RESIDENT_OFF ? TOTALS_KEEPS : 0) |
                 (settings_wait(&settings, ranks.mpi) ? TOTALS_WAITS : 0));
    if (settings.metrics_dir)
        metrics_start(settings.metrics_dir);
    if (settings.trace)
        trace_start(settings.trace, TRACE_BYTES);
    if (settings.estimate && device_pretend(devices_at(0))) {
        settings.require_gpu = false; /* all runs on the CPU */
        static struct simulated_start_rules rules;
        const struct cost_first first = cost_first_calls(atomic_load(&devices_at(0)->curves));
        rules = (struct simulated_start_rules){.cuda_ms = first.start_ms,
                                               .kernels_ms = first.kernels_ms,
                                               .solver_ms = first.solver_ms,
                                               .begins_ms = DEVICE_GAIN_MS,
                                               .waits_from_ms = SELECT_WAITS_FROM_MS};
        estimate_start(settings.estimate_dir, &rules);
    }
}

static void prepare_machine(void)
{
    const int cores = cpu_usable();
    gpu_look_for_devices();
    ranks_read(&ranks);
    const bool adapts = !settings_wait(&settings, ranks.mpi);
    if (settings.devices.kind == ACCEL_DEVICES_NONE)
        settings.policy = ACCEL_POLICY_CPU;
    cost_start(&settings, cores, adapts, ranks.mpi && ranks.rank > 0);
    shared_file_prepare();
    if (settings.server)
        remote_prepare(settings.server[0] ? settings.server : NULL);
    devices_prepare(&settings, &ranks);
    select_start(&settings, cores, adapts);
    run_start(&settings, adapts);
    census_start(&settings);
}

void dispatch_start(void)
{
    static atomic_flag begun = ATOMIC_FLAG_INIT;
    if (atomic_flag_test_and_set(&begun))
        return;
    forks_begin();
    settings_read(&settings);
    if (!getauxval(AT_SECURE)) /* nothing is written there */
        output_start();
    if (settings.on) {
        program_note();
        settings_check_routines(&settings, accel_routines, accel_routine_count);
        prepare_machine();
        start_reports();
    }
    atomic_store_explicit(&ready, true, memory_order_release);
}

/* False while dispatch_start() runs: that is at start-up, when the program has one thread. */
bool dispatch_is_on(void)
{
    if (!atomic_load_explicit(&ready, memory_order_acquire))
        dispatch_start();
    return atomic_load_explicit(&ready, memory_order_acquire) && settings.on;
}

void dispatch_end(void)
{
    if (!dispatch_is_on())
        return;
    struct cost_curves *curves[DEVICES_MOST];
    const int count = devices_count();
    for (int i = 0; i < count; i++)
        curves[i] = atomic_load(&devices_at(i)->curves);
    report_end();
    cost_end(curves, count);
}

bool dispatch_is_borrowed(void)
{
    return devices_are_borrowed();
}

const char *dispatch_original_libraries(void)
{
    dispatch_is_on();
    return settings.original;
}

struct dispatch_filter dispatch_filter(void)
{
    const struct dispatch_filter none = {.level = DISPATCH_SEE_NOTHING, .gate = UINT64_MAX};
    return dispatch_is_on() ? select_filter(devices_first()) : none;
}

/* ---- A call, or a part of one ---- */

/* Whether ACCEL_REQUIRE=gpu forbids that the CPU runs a call that the GPU has not done. */
static bool is_forbidden(const struct task *task, const struct accel_record *record)
{
    /* A matrix that only the program's LAPACK can report on is no fallback. */
    const bool refused = record->why == ACCEL_UNSUPPORTED && record->refused;
    /* Nor is a call after exit() has begun: CUDA is not called any more. */
    /* Nor is one that would pay only if its matrix were still on the GPU, or only later ones. */
    const bool pays = record->why != ACCEL_SLOWER && !task->host.prefetches;
    return !gpu_is_gone() &&
           (task->fallback || (settings.require_gpu && pays && record->decision.gpu && !refused));
}

/* Reports a call that has run, if it is timed. */
static void tell(struct accel_record *record, const struct dispatch_caller *caller)
{
    if (record->ms >= 0)
        record->has_info = blas_info(record->call, caller->passed, caller->result, &record->info);
    report_decision(record);
}

/* Runs it on the CPU. False: the caller is to call the original, when our frames have left the
 * stack. held: it is waited for, so it is to run here if it can. */
static bool run_on_cpu(struct task *task, bool held, struct accel_record *record)
{
    const struct accel_call *const call = task->call;
    /* A query touches no operand. */
    const bool readable =
                   record->decision.why == ACCEL_WORKSPACE_QUERY || copies_host_can_read(call),
               part = accel_is_part(call);
    record->ms = -1;
    /* The original may leave by longjmp or by an exception, from its error handler. */
    if (record->decision.why == ACCEL_BAD_ARGUMENT || task->together ||
        (readable && record->why == ACCEL_UNSUPPORTED && !part)) {
        report_decision(record);
        return false;
    }
    if (readable && !held && !report_takes(record) && !part && !run_is_worth_watching(task))
        return false;
    if (readable)
        run_forward(task, record);
    else
        run_on_copies(task, record);
    tell(record, task->caller);
    return true;
}

/* together: the caller passes all parts of the call to the original at once. */
static bool see_through(struct accel_call *call, const struct dispatch_caller *caller,
                        bool together)
{
    struct dispatch_device *const first = devices_first();
    struct task task;
    if (census_is_on()) { /* the tool has said what is wrong with the settings */
        census_note_hold(!fork_server_is_this() && select_is_held(caller));
        census_note(caller->library(caller->context), caller->symbol, caller->passed->width);
        return false;
    }
    fatal_settings(&settings);
    select_rule_out_gpu(first, call, caller);
    if (call->op->foreign && call->op->foreign->guide)
        return guided_call(first, call, caller, &settings);
    if (!accel_is_part(call) &&
        (dispatch_filter().level == DISPATCH_SEE_NOTHING || select_is_negligible(call, caller)))
        return false;
    exit_guard_hold(caller->depth == 0);
    task_begin(&task, call, caller, first);
    task.together = together;
    select_call(&task);
    if (caller->kind)
        decision_cache_note(caller->kind, task.clear, contention_cpu_calls());
    if (task.decision.gpu && together) { /* the GPU became ready after would_run() */
        task.decision.gpu = false;
        task.decision.why = ACCEL_WARMING;
        task_drop_plan(&task);
    }
    struct accel_record record = record_of(call, caller->symbol, caller->site, task.decision);
    record.depth = caller->depth;
    record.offer = task.offer;
    record.arithmetic = record.why == ACCEL_UNSUPPORTED ? task.arithmetic : NULL;
    startup_banner_process(task.device, task.library, task.threads);
    const bool done = device_state(task.device) == DEVICE_ESTIMATED
                          ? run_for_estimate(&task, &record)
                          : record.decision.gpu && run_on_gpu(&task, &record);
    task_drop_plan(&task); /* the original may not come back here */
    if (done) {
        exit_guard_release();
        tell(&record, caller);
        return true;
    }
    if (is_forbidden(&task, &record))
        fatal_cpu(task.device, caller, record.why);
    const bool ends = exit_guard_has_begun();
    if (!ends)
        exit_guard_release();
    const bool has_run = run_on_cpu(&task, ends, &record);
    if (ends)
        exit_guard_release();
    return has_run;
}

/* ---- A call in parts ---- */

static bool next_part(struct accel_call *part, const struct dispatch_caller *caller)
{
    return part->op->rules->next(part, caller->passed);
}

/* Whether a part is for the GPU, or for copies. */
static bool would_run(struct accel_call *call, const struct dispatch_caller *caller)
{
    struct task task;
    if (census_is_on())
        return false;
    task_begin(&task, call, caller, devices_first());
    select_rule_out_gpu(task.device, call, caller);
    select_call(&task);
    task_drop_plan(&task);
    return !copies_host_can_read(call) || task.decision.gpu;
}

/* If no part is for the GPU, or an argument is wrong, the original runs the whole call. */
static bool call_parts(const struct accel_call *first, const struct dispatch_caller *caller)
{
    struct accel_call part = *first;
    bool whole = true;
    do {
        if (accel_call_fault(&part))
            return see_through(&part, caller, false);
        whole = whole && !would_run(&part, caller);
    } while (next_part(&part, caller));
    part = *first;
    do {
        see_through(&part, caller, whole);
    } while (next_part(&part, caller));
    if (whole)
        caller->forward(caller->context, NULL);
    return true;
}

bool dispatch_call(struct accel_call *call, const struct dispatch_caller *caller)
{
    return accel_is_part(call) ? call_parts(call, caller) : see_through(call, caller, false);
}

bool dispatch_passes_over(const struct accel_routine *routine, const struct accel_passed *passed)
{
    enum dispatch_level level;
    if (!accel_is_batch(routine) || (level = dispatch_filter().level) == DISPATCH_SEE_ALL)
        return false;
    const int64_t largest = accel_op_of(routine)->rules->largest(routine, passed);
    return largest >= 0 && (level == DISPATCH_SEE_NOTHING || small_is_size(largest));
}

bool dispatch_takes_library(const struct accel_routine *routine)
{
    const struct accel_foreign *foreign = accel_op_of(routine)->foreign;
    const enum accel_ml ml = foreign ? foreign->ml : ACCEL_NO_ML;
    return ml == ACCEL_NO_ML || (dispatch_is_on() && (settings.ml & 1u << ml));
}

bool dispatch_is_decided(uint64_t kind, unsigned long long (*loads)(void))
{
    return select_is_decided(kind, loads);
}

void dispatch_not_known(const struct accel_routine *routine, const struct dispatch_caller *caller)
{
    static const struct accel_routine no_routine = {.args = 0};
    const struct accel_call call = {.routine = &no_routine, .op = accel_op_of(&no_routine)};
    const struct accel_decision decision = {
        .why = dispatch_takes_library(routine) ? ACCEL_UNSUPPORTED : ACCEL_USER};
    struct accel_record record = record_of(&call, caller->symbol, 0, decision);
    record.depth = caller->depth;
    if (census_is_on()) {
        census_note(caller->library(caller->context), caller->symbol, CENSUS_UNKNOWN);
        return;
    }
    fatal_settings(&settings);
    report_decision(&record);
}
