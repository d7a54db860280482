/* Makes the Nth allocation, thread or file operation of a process fail (exhaustion.cpp). For C. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTNEXTLINE(readability-identifier-naming): a name for C */
enum exhaustion_kind {
  EXHAUSTION_ALLOCATION, /* operator new */
  EXHAUSTION_THREAD,
  EXHAUSTION_OPEN,
  EXHAUSTION_WRITE,
  EXHAUSTION_SYNC,
  EXHAUSTION_CLOSE,
  EXHAUSTION_RENAME,
  EXHAUSTION_KINDS
};

/* Makes the `nth` call of that kind fail, counted from now, starting at 1; `stays`: every later one too. */
void exhaustion_arm(enum exhaustion_kind kind, long nth, int stays);
/* Stops failing calls and returns whether the fault had struck. */
int exhaustion_disarm(void);
/* Live allocations of operator new. */
long exhaustion_live(void);

#ifdef __cplusplus
}
#endif
