/* Two verifiers over one database whose rows are put back to a copy, at any moment: all of them, or
   one or two tables, while the verifiers run, are stopped in order, killed, or started. It is a
   model of Losses, Memory, DatabaseWatch and Restart in Sources/Fleet/SallyportVerifier.

   Each two seconds a verifier beats: it raises its number (n, in `worker`) and its mark (in
   `state`), looks at the distrust (in `fleet`), and then writes its record, on a disk of its own. A
   save looks at its mark. What is not above what was acknowledged, or a distrust that is lower than
   known, is a loss: distrust is raised to a number that was never there, and every code of before
   counts as used. Where another one has raised it since, and has gone on for longer than a record
   may lag, the verifier first waits for two beats of that one. The second of them shows that the
   first was found whole: one beat alone may have raised what was put back. When the time for that
   is over, it raises distrust itself.

   One that is started compares the rows with its record: what is below it is a loss. Where the other
   one has gone on since, it waits for its beats likewise. Its own first beat comes at once after the
   check, and then it compares the other one's rows with those of the check: nobody else may see what
   went back between the two. Shown: the code is accepted once.

   A host keeps the mark and the distrust that a verifier wrote down last, and shows them before it
   asks: what is above the database, under its distrust or a higher one, is a loss too.

   WHOLE: all tables, or all but `fleet`. APART: a question is loaded and saved at different moments.
   TOGETHER: all tables and both verifiers' disks, as machines that are put back.
   What is known to be accepted twice is shown as well, SOON_AFTER: a copy that was made within four
   seconds after one had stopped, put back when the other one has gone on and stopped, where the
   first is started alone.

   Left out: what is put back before each that runs has beaten twice since the copy (four seconds),
   or TOGETHER before the host has a later mark, or is so long before it asks that the number has
   come up to its mark; a process that stands still; `fleet` alone as the second of two; failover,
   floors and rows of one person (failover.pml); the conditions of a save (fleet.pml); backup codes,
   which are refused for a time instead.

   Tests/Models/run checks it, and then without each of the rules, where it must fail. */

#ifndef RESTORES
#define RESTORES 1
#endif
#ifndef STARTS
#define STARTS 2
#endif
#ifndef BEATS
#define BEATS 4
#endif

/* The tables, and a copy of them. */
typedef Rows {
  bool used; /* state: the user's row, the distrust that it was saved under, and the marks */
  byte trusted, mark[2];
  byte n[2]; /* worker */
  byte since[2]; /* beats of the other one since its last */
  byte distrust /* fleet */
};
Rows db, was;
bool copied;
#ifdef TOGETHER
byte shown, shown_by, shown_under; /* the host's mark */
byte record_was[2], recorded_was[2], noted_was[2]; /* a copy of the disks */
#define LATEST(a, b) (a > b -> a : b)
#ifdef WITHOUT_MARK
#define IS_SEEN true
#else
#define IS_SEEN (shown_under < db.distrust || \
  shown_under == db.distrust && shown <= db.mark[shown_by])
#endif
#define KNOWN LATEST(ME.distrust, shown_under)
/* Beats alone bring the number up to the mark that the host has still to show. */
#define IS_IN_TIME (shown_under != db.distrust || shown_by != me || db.mark[me] + 1 != shown)
#else
#define IS_SEEN true
#define KNOWN ME.distrust
#define IS_IN_TIME true
#endif
byte top; /* the highest distrust that there ever was */
byte told, restores, starts;

mtype = { down, waits, lost, checked, open };
typedef Verifier {
  mtype is;
  byte n, mark, distrust; /* acknowledged; the highest that is known */
  byte turns, before; /* while it waits: beats of the other one, and the distrust */
  byte least, marked; /* of the other one, when it looked last */
#ifdef APART
  bool loaded, used; /* a question under way */
  byte under;
#endif
  byte known; /* the other one's n */
  byte record, recorded, noted /* on its disk: mark, distrust, known */;
  bool accepted; /* since the copy */
  byte beaten;
  bool looked
};
Verifier v[2];

#define ME v[me]
#define OTHER (1 - me)

#ifdef WITHOUT_COUNTER
#define IS_ABOVE true
#define IS_SAVED true
#else
#define IS_ABOVE (db.n[me] > ME.n && db.mark[me] > ME.mark)
#define IS_SAVED (db.mark[me] >= ME.mark)
#endif
#define IS_LATEST (db.distrust >= ME.distrust)
#ifdef WITHOUT_RECORD
#define WENT_BACK false
#define IS_OWN true
#else
#define WENT_BACK (db.mark[me] < ME.record || db.distrust < ME.recorded)
#define IS_OWN (db.mark[me] <= ME.record + 1) /* the last one may not be written down */
#endif
#ifdef WITHOUT_THE_OTHERS
#define HAS_GONE_ON(seen) false
#else
#define HAS_GONE_ON(seen) (db.n[OTHER] > seen + 1) /* that may not be written down */
#endif
#ifdef WITHOUT_LOOKING_AGAIN
#define IS_UNMOVED true
#else
#define IS_UNMOVED (db.n[OTHER] >= ME.least && db.mark[OTHER] >= ME.marked)
#endif
#define IS_LAST (db.since[me] <= 1)
#ifdef WITH_ONE_BEAT
#define ENOUGH 1
#else
#define ENOUGH 2
#endif

#ifdef APART
#define FORGET_QUESTION ME.loaded = false; ME.used = false; ME.under = 0
#define IS_ASKED ME.loaded
#else
#define FORGET_QUESTION
#define IS_ASKED false
#endif

inline forget() {
  ME.is = down;
  ME.n = 0; ME.mark = 0; ME.distrust = 0; ME.known = 0;
  ME.turns = 0; ME.before = 0; ME.least = 0; ME.marked = 0; ME.looked = false;
  FORGET_QUESTION
}

inline believe() {
  ME.n = db.n[me]; ME.mark = db.mark[me];
  ME.distrust = (db.distrust > ME.distrust -> db.distrust : ME.distrust)
}

inline note() {
  ME.least = db.n[OTHER];
  ME.marked = db.mark[OTHER];
  ME.looked = true
}

inline begin() { ME.is = checked; ME.turns = 0; ME.before = 0; note() }

inline raise() {
  top++;
  db.distrust = top;
  db.n[me]++;
  ME.distrust = db.distrust
}

/* The statement. Whether it was whole is asked before what it gave is believed. */
inline beat() {
  db.n[me]++;
  db.mark[me]++;
  db.since[me] = 0;
  db.since[OTHER]++
}

inline write() {
  ME.known = db.n[OTHER];
  ME.record = ME.mark;
  ME.recorded = ME.distrust;
  ME.noted = ME.known;
  ME.beaten = (ME.beaten < 2 -> ME.beaten + 1 : 2)
}

inline lose() {
  ME.is = lost;
  FORGET_QUESTION
}

#define IS_USED (db.used || db.trusted < db.distrust)

inline save(distrust_loaded, is_right) {
  db.used = true;
  db.trusted = distrust_loaded;
  if
  :: IS_SAVED ->
     told = told + is_right;
     ME.accepted = true;
     assert(told <= 1)
  :: else -> lose()
  fi
}

inline wait() {
  ME.is = waits;
  note();
  ME.turns = 0;
  ME.before = ME.distrust
}

/* One that waits looks ten times as often, and once it has seen enough beats itself at once. */
#define MAY_BEAT (IS_IN_TIME && db.n[me] < BEATS && db.mark[me] < BEATS && v[OTHER].is != checked && \
  (v[OTHER].is != waits || v[OTHER].least >= db.n[me]))

proctype verifier(byte me) {
end:
  do
  /* A question: the same code each time. */
#ifdef APART
  :: d_step {
       ME.is == open && !ME.loaded && !IS_USED ->
       if
       :: !IS_LATEST || db.trusted > db.distrust || !IS_SEEN -> lose()
       :: else ->
          ME.loaded = true;
          ME.used = IS_USED;
          ME.under = db.distrust;
          ME.distrust = (db.distrust > ME.distrust -> db.distrust : ME.distrust)
       fi
     }
  :: d_step {
       ME.is == open && ME.loaded ->
       if /* else another one has saved: see fleet.pml */
       :: !db.used -> save(ME.under, !ME.used)
       :: else
       fi;
       FORGET_QUESTION
     }
#else
  :: d_step {
       ME.is == open && !IS_USED ->
       if
       :: !IS_LATEST || db.trusted > db.distrust || !IS_SEEN -> lose()
       :: else ->
          ME.distrust = (db.distrust > ME.distrust -> db.distrust : ME.distrust);
          save(db.distrust, true)
       fi
     }
#endif
#ifdef TOGETHER
  :: d_step { /* The host is given a mark. */
       ME.is == open && (shown != ME.record || shown_by != me || shown_under != ME.recorded) ->
       if
       :: IS_SEEN -> shown = ME.record; shown_by = me; shown_under = ME.recorded
       :: else -> lose()
       fi
     }
#endif
  :: d_step {
       ME.is == open && MAY_BEAT ->
       beat();
       if
       :: IS_ABOVE && IS_LATEST -> believe(); write()
       :: else -> lose()
       fi
     }
  :: d_step { /* for the first time: then it looks whether something went back while it looked */
       ME.is == checked && MAY_BEAT ->
       beat();
       if
       :: IS_ABOVE && IS_LATEST && IS_UNMOVED ->
          believe(); write();
          ME.is = open; ME.least = 0; ME.marked = 0; ME.looked = false
       :: else -> lose()
       fi
     }
  /* It is stopped in order: then nothing of its own is under way. */
  :: d_step {
       ME.is == open && !IS_ASKED && MAY_BEAT ->
       beat();
       if
       :: IS_ABOVE && IS_LATEST -> believe(); write()
       :: else
       fi;
       forget()
     }
  :: d_step { ME.is != down -> forget() } /* it is killed */
  /* It has found a loss. */
  :: d_step {
       ME.is == lost ->
       if
       :: db.distrust <= KNOWN -> believe(); raise(); begin()
       :: else -> /* another one has raised it */
          believe();
          if
          :: db.n[OTHER] >= ME.known && !HAS_GONE_ON(ME.known) -> begin()
          :: else -> wait()
          fi
       fi
     }
  /* It is started. */
  :: d_step {
       ME.is == down && starts < STARTS ->
       starts++;
       ME.distrust = ME.recorded;
       if
       :: WENT_BACK && db.distrust <= ME.recorded -> believe(); raise(); begin()
       :: WENT_BACK && db.distrust > ME.recorded ->
          believe();
          if
          :: IS_LAST -> begin()
          :: else -> wait()
          fi
       :: else ->
          believe();
          if
          :: IS_OWN && !HAS_GONE_ON(ME.noted) -> begin()
          :: else -> wait()
          fi
       fi
     }
  :: d_step {
       ME.is == waits && (db.n[OTHER] != ME.least || db.mark[OTHER] != ME.marked) ->
       ME.turns = (db.n[OTHER] > ME.least && db.mark[OTHER] > ME.marked -> ME.turns + 1 : 0);
       note();
       if
       :: ME.turns >= ENOUGH -> begin()
       :: else
       fi
     }
  :: d_step { /* its time is over */
       ME.is == waits ->
#ifndef WITHOUT_VOUCHING
       if
       :: db.distrust <= ME.before -> raise()
       :: else
       fi;
#endif
       begin()
     }
  od
}

/* Each that has accepted anything since the copy, or runs, has beaten twice since. */
#define RIPE(i) ((v[i].beaten == 2 || !v[i].beaten && !v[i].accepted && v[i].is != open) && \
  (v[i].looked || v[i].is != checked))
/* `i` had beaten for the last time before the copy, and the other one not more than once since. */
#ifdef SOON_AFTER
#define NOT_SOON(i) true
#else
#define NOT_SOON(i) (was.mark[i] != v[i].record || was.n[1 - i] > v[i].noted + 1 || \
  !v[1 - i].accepted)
#endif

inline since_now() {
  v[0].accepted = false; v[0].beaten = 0; v[0].looked = false;
  v[1].accepted = false; v[1].beaten = 0; v[1].looked = false
}

#ifdef TOGETHER
inline copy_disks() {
  record_was[0] = v[0].record; record_was[1] = v[1].record;
  recorded_was[0] = v[0].recorded; recorded_was[1] = v[1].recorded;
  noted_was[0] = v[0].noted; noted_was[1] = v[1].noted
}

inline put_back(i) {
  v[i].is = down;
  v[i].n = 0; v[i].mark = 0; v[i].distrust = 0; v[i].known = 0;
  v[i].turns = 0; v[i].before = 0; v[i].least = 0; v[i].marked = 0;
#ifdef APART
  v[i].loaded = false; v[i].used = false; v[i].under = 0;
#endif
  v[i].record = record_was[i]; v[i].recorded = recorded_was[i]; v[i].noted = noted_was[i]
}
#endif

inline copy_state(to, from) {
  to.used = from.used; to.trusted = from.trusted;
  to.mark[0] = from.mark[0]; to.mark[1] = from.mark[1]
}

inline copy_worker(to, from) {
  to.n[0] = from.n[0]; to.n[1] = from.n[1];
  to.since[0] = from.since[0]; to.since[1] = from.since[1]
}

#define MAY_RESTORE (copied && restores < RESTORES && RIPE(0) && RIPE(1) && \
  NOT_SOON(0) && NOT_SOON(1))

active proctype database() {
  d_step {
    v[0].is = open; v[1].is = open;
    db.n[0] = 1; db.n[1] = 1; db.mark[0] = 1; db.mark[1] = 1;
    v[0].n = 1; v[1].n = 1; v[0].mark = 1; v[1].mark = 1;
    v[0].record = 1; v[1].record = 1; v[0].noted = 1; v[1].noted = 1; v[0].known = 1; v[1].known = 1;
    v[0].beaten = 2; v[1].beaten = 2
  };
  atomic { run verifier(0); run verifier(1) };
end:
  do
  :: d_step {
       !copied ->
       copied = true;
       copy_state(was, db); copy_worker(was, db); was.distrust = db.distrust;
#ifdef TOGETHER
       copy_disks();
#endif
       since_now()
     }
#ifdef TOGETHER
  :: d_step {
       copied && restores < RESTORES &&
       (shown_under > was.distrust || shown > was.mark[shown_by]) ->
       restores++;
       copy_state(db, was); copy_worker(db, was); db.distrust = was.distrust;
       put_back(0); put_back(1);
       since_now()
     }
#else
  :: d_step { /* another copy takes its place */
       copied && restores && restores < RESTORES &&
       (was.distrust != db.distrust) ->
       copy_state(was, db); copy_worker(was, db); was.distrust = db.distrust;
       since_now()
     }
  :: d_step {
       MAY_RESTORE ->
       restores++;
       copy_state(db, was); copy_worker(db, was); db.distrust = was.distrust;
       since_now()
     }
  :: d_step { MAY_RESTORE -> restores++; copy_state(db, was) }
#ifndef WHOLE
  :: d_step { MAY_RESTORE -> restores++; db.distrust = was.distrust }
  :: d_step {
       MAY_RESTORE ->
       restores++;
       copy_state(db, was); db.distrust = was.distrust
     }
  :: d_step {
       MAY_RESTORE ->
       restores++;
       copy_state(db, was); copy_worker(db, was)
     }
#endif
#endif
  od
}
