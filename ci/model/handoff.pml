/* The handoff protocol, to be searched in full by spin: every order of messages, steps, routing
 * decisions and cancels of a small job. ci/model/run.sh runs it.
 *
 * Part here            In the code
 * home()               actors/gateway, actors/request: admission, cancel, `release`, `released`
 * scheduler()          actors/scheduler_state: on_handoff, on_release, plan, on_step_done
 * accept()             runtime/policy/handoff: a turn that is not newer is stale
 * lease(), evict()     runtime/policy/block_ledger: parked first (least recent), then younger ones
 * THRESHOLD()          the delayed batching thresholds in force, by the live count as known here
 * from_home, from_peer actors/link: order per sender is kept, senders may overtake one another
 *
 * Left out: what tokens are. A request counts its committed tokens; with the first its KV needs one
 * block more. Model 0 proposes and stays, or drops the proposal and asks the next; the others commit
 * and return, commit and stay, or (but for the last) drop and ask the next. No timeouts: they are a
 * safety net and must not be needed. CANCELS requests at most are cancelled, at any moment; REPEATS
 * handoffs (0 or 1) arrive twice.
 *
 * Properties: no invalid end state (nobody waits for ever); the assertions (one turn holder, a stale
 * or late turn changes nothing, the oldest is in every step, blocks are neither lost nor lent twice,
 * pools end full); <>done (every request ends).
 *
 * -DBROKEN_RULE takes thresholds with sum(B_i - 1) >= live requests, -DBROKEN_COUNT keeps them from
 * falling when requests end: both must deadlock, which shows that the search would find it.
 */
#ifndef MODELS
#define MODELS 2
#endif
#ifndef REQUESTS
#define REQUESTS 3
#endif
#ifndef POOL
#define POOL 2
#endif
#ifndef LENGTH
#define LENGTH 2
#endif
#ifndef CANCELS
#define CANCELS 1
#endif
#ifndef REPEATS
#define REPEATS 0
#endif

#define NONE 255
#define AT(m, r) ((m) * REQUESTS + (r))
#define NEED(r) (committed[r] == 0 -> 1 : 2)

/* In force at a scheduler that believes so many requests to live. Its belief lags behind: it knows of
 * every request that it has, and may miss releases still on their way. */
#ifdef BROKEN_RULE
#define THRESHOLD(m) (live[m] >= 3 -> (m == 0 -> 2 : 3) : (live[m] == 2 -> 2 : 1))
#elif MODELS > 2
#define THRESHOLD(m) (live[m] >= 3 -> (m == 0 -> 1 : 2) : (live[m] == 2 && m == 2 -> 2 : 1))
#elif defined(EAGER_ENTRY)
#define THRESHOLD(m) (m == 0 -> 1 : live[m])
#else
#define THRESHOLD(m) (live[m] >= 3 -> 2 : (live[m] == 2 && m == 1 -> 2 : 1))
#endif

mtype = { announce, release, finished, released };

chan from_home[MODELS] = [2 * REQUESTS] of { mtype, byte };
chan from_peer[MODELS * MODELS] = [REQUESTS + 1] of { byte, byte }; /* request, turn */
chan to_home = [2 * MODELS * REQUESTS] of { mtype, byte };

byte committed[REQUESTS];
bit ended[REQUESTS];   /* finished or cancelled, as home knows */
byte answers[REQUESTS]; /* `released` that came back */
bit may_repeat = REPEATS;
bit done = 0;

/* Of each scheduler and request. */
bit known[MODELS * REQUESTS];
bit buried[MODELS * REQUESTS];
bit has_turn[MODELS * REQUESTS];
bit in_step[MODELS * REQUESTS];
bit doomed[MODELS * REQUESTS];
byte turn[MODELS * REQUESTS];
byte age[MODELS * REQUESTS];   /* order of arrival, from 1; 0: never came */
byte blocks[MODELS * REQUESTS];
byte parked[MODELS * REQUESTS]; /* 1: least recently; 0: in use or without blocks */
bit refused[MODELS * REQUESTS]; /* lost its blocks in the lease under way */

byte arrivals[MODELS];
byte parked_count[MODELS];
byte free[MODELS];
byte live[MODELS];
byte waiting[MODELS];
bit stepping[MODELS];

/* Loop counters of atomic steps: no part of the state. */
hidden byte u, v, k, victim;

inline know(m, r) {
  if
  :: !known[AT(m, r)] -> known[AT(m, r)] = 1; live[m]++
  :: else
  fi
}

inline unpark(m, r) {
  if
  :: parked[AT(m, r)] > 0 ->
     for (u : 0 .. REQUESTS - 1) {
       if
       :: parked[AT(m, u)] > parked[AT(m, r)] -> parked[AT(m, u)]--
       :: else
       fi
     }
     parked[AT(m, r)] = 0;
     parked_count[m]--
  :: else
  fi
}

inline give_back(m, r) {
  unpark(m, r);
  free[m] = free[m] + blocks[AT(m, r)];
  blocks[AT(m, r)] = 0;
  assert(free[m] <= POOL)
}

inline park(m, r) {
  if
  :: blocks[AT(m, r)] > 0 ->
     unpark(m, r);
     parked_count[m]++;
     parked[AT(m, r)] = parked_count[m]
  :: else
  fi
}

/* Frees something for `needy`; victim stays NONE if there is nothing. */
inline evict(m, needy) {
  victim = NONE;
  for (v : 0 .. REQUESTS - 1) {
    if
    :: parked_count[m] > 0 && parked[AT(m, v)] == 1 -> victim = v
    :: parked_count[m] == 0 && v != needy && blocks[AT(m, v)] > 0 && !in_step[AT(m, v)] &&
       age[AT(m, v)] > age[AT(m, needy)] &&
       (victim == NONE || age[AT(m, v)] > age[AT(m, (victim == NONE -> 0 : victim))]) -> victim = v
    :: else
    fi
  }
  if
  :: victim != NONE -> give_back(m, victim); refused[AT(m, victim)] = 1
  :: else
  fi
}

/* Blocks for all that wait, oldest first; those that get them are in the step. */
inline lease(m) {
  for (k : 1 .. REQUESTS) {
    for (r : 0 .. REQUESTS - 1) {
      if
      :: age[AT(m, r)] == k && has_turn[AT(m, r)] && !refused[AT(m, r)] ->
         unpark(m, r);
         do
         :: NEED(r) > blocks[AT(m, r)] && NEED(r) - blocks[AT(m, r)] > free[m] ->
            evict(m, r);
            if
            :: victim == NONE -> break
            :: else
            fi
         :: else ->
            if
            :: NEED(r) > blocks[AT(m, r)] ->
               free[m] = free[m] - (NEED(r) - blocks[AT(m, r)]);
               blocks[AT(m, r)] = NEED(r)
            :: else
            fi;
            in_step[AT(m, r)] = 1;
            stepping[m] = 1;
            break
         od
      :: else
      fi
    }
  }
  for (r : 0 .. REQUESTS - 1) {
    refused[AT(m, r)] = 0
  }
  assert(stepping[m]); /* the oldest is always in the step */
  r = 0
}

inline accept(m, r, t) {
  if
  :: buried[AT(m, r)] -> skip           /* late */
  :: !buried[AT(m, r)] && t <= turn[AT(m, r)] -> skip /* stale */
  :: else ->
     for (u : 0 .. MODELS - 1) {
       assert(!has_turn[AT(u, r)])
     }
     know(m, r);
     if
     :: age[AT(m, r)] == 0 -> arrivals[m]++; age[AT(m, r)] = arrivals[m]
     :: else
     fi;
     turn[AT(m, r)] = t;
     has_turn[AT(m, r)] = 1;
     waiting[m]++
  fi
}

inline lose_turn(m, r) {
  has_turn[AT(m, r)] = 0;
  waiting[m]--
}

/* Gives back all; the request is forgotten but for its tombstone. */
inline forget(m, r) {
  give_back(m, r);
  if
  :: has_turn[AT(m, r)] -> lose_turn(m, r)
  :: else
  fi;
  doomed[AT(m, r)] = 0;
  to_home!released(r)
}

inline bury(m, r) {
  know(m, r);
  buried[AT(m, r)] = 1;
#ifndef BROKEN_COUNT
  live[m]--;
#endif
  if
  :: in_step[AT(m, r)] -> doomed[AT(m, r)] = 1
  :: else -> forget(m, r)
  fi
}

inline hand_over(m, r, to) {
  lose_turn(m, r);
  park(m, r);
  from_peer[(m) * MODELS + (to)]!r, turn[AT(m, r)] + 1;
  if
  :: may_repeat -> may_repeat = 0; from_peer[(m) * MODELS + (to)]!r, turn[AT(m, r)] + 1
  :: skip
  fi
}

inline commit(m, r) {
  committed[r]++;
  if
  :: committed[r] == LENGTH -> lose_turn(m, r); park(m, r); to_home!finished(r)
  :: else
  fi
}

inline route(m, r) {
  if
  :: m == 0 || m < MODELS - 1 -> hand_over(m, r, m + 1)
  :: m == 0 -> commit(m, r)
  :: m > 0 -> commit(m, r)
  :: m > 0 ->
     commit(m, r);
     if
     :: has_turn[AT(m, r)] -> hand_over(m, r, 0)
     :: else
     fi
  fi
}

inline step_done(m) {
  stepping[m] = 0;
  for (r : 0 .. REQUESTS - 1) {
    if
    :: in_step[AT(m, r)] ->
       in_step[AT(m, r)] = 0;
       if
       :: doomed[AT(m, r)] -> forget(m, r)
       :: else -> route(m, r)
       fi
    :: else
    fi
  }
  r = 0
}

proctype scheduler(byte m) {
  byte r, t, over;
  do
  :: atomic { from_home[m]?announce(r) ->
       if
       :: m == 0 -> accept(m, r, 1)
       :: else -> know(m, r)
       fi;
       r = 0
     }
  :: atomic { from_home[m]?release(r) -> bury(m, r); over++; r = 0 }
  :: atomic { from_peer[0 * MODELS + m]?r, t -> accept(m, r, t); r = 0; t = 0 }
  :: atomic { from_peer[1 * MODELS + m]?r, t -> accept(m, r, t); r = 0; t = 0 }
#if MODELS > 2
  :: atomic { from_peer[2 * MODELS + m]?r, t -> accept(m, r, t); r = 0; t = 0 }
#endif
  :: atomic { !stepping[m] && waiting[m] > 0 && waiting[m] >= THRESHOLD(m) -> lease(m) }
  :: atomic { stepping[m] -> step_done(m) }
  :: atomic { over == REQUESTS && !stepping[m] -> break }
  od;
  assert(free[m] == POOL && live[m] == 0 && waiting[m] == 0)
}

inline end(r) {
  ended[r] = 1;
  for (m : 0 .. MODELS - 1) {
    from_home[m]!release(r)
  }
  m = 0
}

proctype home() {
  byte r, m, next, over;
  byte cancels;
  select(cancels : 0 .. CANCELS);
  do
  :: atomic { next < REQUESTS ->
       for (m : 0 .. MODELS - 1) {
         from_home[m]!announce(next)
       }
       m = 0;
       next++
     }
  :: atomic { to_home?finished(r) ->
       if
       :: !ended[r] -> end(r)
       :: else
       fi;
       r = 0
     }
  :: atomic { to_home?released(r) ->
       answers[r]++;
       assert(ended[r] && answers[r] <= MODELS);
       over = over + (answers[r] == MODELS -> 1 : 0);
       r = 0
     }
  :: atomic { cancels > 0 && next > 0 ->
       cancels--;
       select(r : 0 .. next - 1);
       if
       :: !ended[r] -> end(r)
       :: else
       fi;
       r = 0
     }
  :: over == REQUESTS -> break
  od;
  done = 1
}

init {
  byte i;
  atomic {
    for (i : 0 .. MODELS - 1) {
      free[i] = POOL;
      run scheduler(i)
    }
    run home()
  }
}

ltl ends { <> done }
