/*
 * What logs say about a run's time, in sentences.
 */
#ifndef ACCEL_TOOL_ADVICE_H
#define ACCEL_TOOL_ADVICE_H

#include "log_seen.h"

typedef void advice_say(void *context, const char *sentence);

/* Where calls took longer than they were expected to take on the other side, or failed: a sentence
 * for each routine, class of sizes, place and reason, the largest loss first, at most `most`.
 * Returns how many there were to say; none if the time is less than a hundredth of all. */
int advice_lost(const struct log_seen *seen, int most, advice_say *say, void *context);

/* What a setting would bring: the summary's hints (report/hints.h). Returns how many. */
int advice_hints(const struct log_seen *seen, advice_say *say, void *context);

#endif
