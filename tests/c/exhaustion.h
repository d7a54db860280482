/* Lets the Nth allocation, thread or file operation of a process fail (exhaustion.cpp). For C. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

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

/* From now on the `nth` of that kind fails, from 1; with `stays` all that follow it too. */
void exhaustion_arm(enum exhaustion_kind kind, long nth, int stays);
/* Whether it has failed. Nothing fails from now on. */
int exhaustion_disarm(void);
/* Allocations of operator new that live. */
long exhaustion_live(void);

#ifdef __cplusplus
}
#endif
