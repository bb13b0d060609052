/* Two verifiers over a database that fails over to a standby, which may lack commits that were
   acknowledged. Sources/Fleet/SallyportVerifier/Status/DatabaseWatch.swift is what it is a model of.

   SYNCHRONOUS: a commit is acknowledged when one of two standbys has it, and the one that has
   received most is promoted, so nothing is lost; shown without any of the rules below. LAGGING: the
   same, but either of them may be promoted. Else commits are acknowledged at once.

   Each statement of a verifier raises its own number n. A verifier that connects to another primary
   than before compares the n that it finds with what was acknowledged to it, and posts that it has
   looked. No verifier answers before both have posted, or the time for that is over. If an n is too low,
   if a verifier has not posted, or if it was started again and so remembers nothing, distrust is
   raised in the same statement: every code up to now counts as used in each row that was saved
   under a lower distrust. The statements of the check raise n as well, since they may be lost by
   the next failover. What was loaded from the former primary is loaded again. An acknowledgment
   from it that is read only after the check counts as unknown. And "another primary" is more than
   another timeline: two standbys of one primary that are promoted one after the other may both
   begin the same one. A verifier that is started again and finds that its row was posted for this
   primary has lost nothing. Shown: no code of an authenticator lets in twice.

   PUT_BACK: no failover, but somebody puts a user's row back as it was. A verifier that remembers a
   higher version of it (the floor) then counts every code as used. One that does not, since it
   never saw that version or was started again, cannot see it: that is shown to fail as well, and so
   is a backup code after a failover that loses commits, since distrust leaves backup codes alone.

   Left out: clocks (distrust is a number here, and the row keeps the one that was loaded with it);
   later time steps; counters; an old primary that goes on after the promotion, which must be
   fenced; more than one connection of a verifier; a verifier whose first row is among what is lost;
   older files put in the place of newer ones; what fleet.pml shows.

   Tests/Models/run checks it, and then without each of the rules, where it must fail. */

#ifdef PUT_BACK
#define FAILOVERS 0
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#define COPIES 3
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif

/* One copy of the database. */
typedef Copy {
  bool used; /* the user's row: the code has been accepted, */
  byte version;
  byte trusted; /* and the distrust that was told when it was saved */
  byte distrust;
  byte n[2], posted[2]; /* the rows of the verifiers: posted for which primary */
  byte timeline;
  byte source, commits /* received, and from which primary */
};
Copy db[COPIES];
byte primary; /* which copy */
byte promotions; /* how many; a number for each primary */
bool gone[COPIES];
byte attempts, told;
bool restarted;

#define DB db[primary]
#ifdef WITHOUT_THE_PROMOTION
#define IDENTITY (DB.timeline + 1)
#else
#define IDENTITY (promotions + 1)
#endif

#define CONNECTED (connection == promotions)
#define HAS(i) (i != primary && !gone[i] && db[i].source == promotions && db[i].commits >= commit)
#if defined(SYNCHRONOUS) || defined(LAGGING)
#define ACKNOWLEDGED (CONNECTED && (HAS(0) || HAS(1) || HAS(2)))
#else
#define ACKNOWLEDGED CONNECTED
#endif

#ifdef WITHOUT_MEMORY
#define UNKNOWN_BEFORE false
#else
#define UNKNOWN_BEFORE !before
#endif

/* The code is a backup code: distrust does not make its loss good. */
#ifdef BACKUP_CODE
#define DISTRUSTED false
#else
#define DISTRUSTED true
#endif

#if defined(PUT_BACK) && !defined(WITHOUT_FLOOR)
#define RAISE_FLOOR floor = next
#else
#define RAISE_FLOOR true
#endif

/* A statement of the check. It raises n above what was acknowledged. */
inline post(loss) {
  DB.distrust = DB.distrust + (loss);
#ifdef WITHOUT_COUNTING
  DB.n[me] = (DB.n[me] < acked -> acked : DB.n[me]);
#else
  DB.n[me] = (DB.n[me] < acked -> acked : DB.n[me]) + 1;
#endif
  DB.posted[me] = IDENTITY;
  n = DB.n[me];
  DB.commits++;
  commit = DB.commits
}

/* Until it is connected and both have posted. `before`: the primary that it has checked. */
inline connect() {
#ifdef WITHOUT_ROWS
  connection = promotions
#else
  do
  :: atomic { CONNECTED && before == IDENTITY -> break }
  :: atomic {
       !CONNECTED || before != IDENTITY ->
       connection = promotions;
       if /* started again, and the row says that nothing has failed over since */
       :: !before && DB.posted[me] == IDENTITY -> before = IDENTITY; acked = DB.n[me]
       :: else
       fi;
       if
       :: before != IDENTITY -> post(UNKNOWN_BEFORE || DB.n[me] < acked)
       :: else -> break
       fi
     };
     if
     :: atomic { ACKNOWLEDGED -> acked = n };
        if
        :: atomic { CONNECTED && DB.posted[1 - me] == IDENTITY -> before = IDENTITY }
        :: atomic {
             CONNECTED && DB.posted[1 - me] != IDENTITY -> /* the time is over */
#ifdef WITHOUT_THE_MISSING
             before = IDENTITY
           }
#else
             post(1)
           };
           if
           :: atomic { ACKNOWLEDGED -> acked = n; before = IDENTITY }
           :: !CONNECTED
           fi
#endif
        :: !CONNECTED
        fi
     :: !CONNECTED
     fi
  od
#endif
}

#define LET_IN told = told + !used; assert(told <= 1)

proctype verifier(byte me) {
  byte connection, before = 1, acked, floor; /* what it remembers */
  byte n, commit, loaded, next, distrust;
  bool used;
  do
  :: atomic { !restarted && me == 0 -> /* both are alike */
       restarted = true;
       before = 0;
       acked = 0;
       floor = 0;
       connection = 255
     }
  :: connect();
end: /* no more attempts */
     atomic { attempts < ATTEMPTS -> attempts++ };
load:
     if
     :: atomic {
          CONNECTED ->
          loaded = DB.version;
          distrust = DB.distrust;
          used = DB.used || (DISTRUSTED && (DB.trusted < distrust || loaded < floor));
          next = (loaded < floor -> floor : loaded) + 1
        }
     :: atomic { !CONNECTED -> goto done }
     fi;
#ifdef WITHOUT_LOADING_AGAIN
     connect();
#endif
     if
     :: atomic {
          CONNECTED && DB.version == loaded ->
          DB.version = next;
          DB.used = true;
          DB.trusted = distrust;
          DB.n[me]++;
          n = DB.n[me];
          DB.commits++;
          commit = DB.commits
        }
     :: atomic { CONNECTED && DB.version != loaded -> goto load }
     :: atomic { !CONNECTED -> goto done }
     fi;
     if
     :: atomic { ACKNOWLEDGED -> acked = n; RAISE_FLOOR; LET_IN }
#ifdef WITHOUT_CLOSING
     :: ACKNOWLEDGED -> connect(); LET_IN /* the acknowledgment is read after the check */
#endif
#ifdef WITHOUT_REFUSING
     :: LET_IN
#endif
     :: true /* unknown */
     fi;
done:
     atomic { used = false; loaded = 0; next = 0; distrust = 0; n = 0; commit = 0 }
  od
}

inline copy(i) {
  d_step {
    i != primary && !gone[i] && (db[i].source != promotions || db[i].commits != DB.commits) ->
    db[i].used = DB.used;
    db[i].version = DB.version;
    db[i].trusted = DB.trusted;
    db[i].distrust = DB.distrust;
    db[i].n[0] = DB.n[0];
    db[i].n[1] = DB.n[1];
    db[i].posted[0] = DB.posted[0];
    db[i].posted[1] = DB.posted[1];
    db[i].timeline = DB.timeline;
    db[i].source = promotions;
    db[i].commits = DB.commits
  }
}

/* Of two standbys `i` has received no less than `other`. */
#ifdef SYNCHRONOUS
#define MAY_BE(i, other) (gone[other] || db[i].source > db[other].source || \
  (db[i].source == db[other].source && db[i].commits >= db[other].commits))
#else
#define MAY_BE(i, other) true
#endif

inline promote(i, other) {
  d_step {
    promotions < FAILOVERS && i != primary && !gone[i] && MAY_BE(i, other) ->
    gone[primary] = true;
    primary = i;
    promotions++;
    DB.timeline++;
    DB.source = promotions
  }
}

/* The standbys receive, and are promoted. */
active proctype databases() {
#ifdef PUT_BACK
  bool put_back;
#endif
  atomic {
    db[0].posted[0] = 1; db[0].posted[1] = 1;
    db[1].posted[0] = 1; db[1].posted[1] = 1;
    db[2].posted[0] = 1; db[2].posted[1] = 1;
#ifdef WITHOUT_RESTART
    restarted = true;
#endif
#ifndef PUT_BACK
    run verifier(1);
#endif
    run verifier(0)
  };
end:
  do
  :: copy(1)
  :: copy(2)
  :: promote(1, 2)
  :: promote(2, 1)
#ifdef PUT_BACK
  :: atomic { !put_back -> put_back = true; DB.version = 0; DB.used = false }
#endif
  od
}
