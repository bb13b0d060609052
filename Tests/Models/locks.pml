/* How logins at once wait for the lock of a user's state: LockBytes.acquire in
   Sources/Login/SallyportSystem/Store/Lock.swift, in every order in which their steps can come. Each call of
   fcntl is one step; a try that fails is made again until it is given up.

   A known place waits for the lock alone and announces that. A stranger takes the gate, looks for an
   announcement, takes the lock and lets the gate go. It stands back for one announcement, but not
   for ever: here until a known place has saved, there for a time in which one does. Shown: there is one save at a time, a stranger
   comes at most once between a known place that waits and its save, none of them waits for ever for
   another that waits, and the known place gets in however many strangers come.

   Tests/Models/run checks it, and then without each of the rules, where it must fail. */

/* shows: owner-waits */
#ifndef STRANGERS
#define STRANGERS 3
#endif

bool locked, gate, announced, entered;
bool turn; /* another one after each save of the known place */
byte saving; /* saves at this moment */
byte passed; /* strangers who took the lock since the known place announced itself */

inline take(what) { atomic { !what -> what = true } }

inline take_lock() {
#ifdef WITHOUT_LOCK
  skip
#else
  take(locked)
#endif
}

inline save() {
  saving++;
  assert(saving == 1);
  saving--;
  locked = false
}

/* Of a process that waits: the five seconds are over. Patient ones wait for ever, and a patient known
   place comes once, so that those who are left over must get on by themselves. */
#ifdef PATIENT
#define GIVES_UP false
#define COMES_AGAIN false
#else
#define GIVES_UP true
#define COMES_AGAIN true
#endif

active proctype known() {
  do
  :: if
     :: take_lock()
     :: locked ->
#ifndef WITHOUT_ANNOUNCEMENT
        atomic { announced = true; passed = 0 };
#endif
        if
        :: take_lock()
        :: GIVES_UP -> announced = false; goto again
        fi
     fi;
     announced = false;
     turn = !turn;
     save();
     entered = true;
again:
     if
     :: COMES_AGAIN
     :: !COMES_AGAIN -> break
     fi
  od
}

active [STRANGERS] proctype stranger() {
  bool mine;
  do
  ::
#ifdef WITHOUT_ORDER
     if
     :: _pid % 2 -> take_lock(); take(gate); gate = false; goto inside
     :: else
     fi;
#endif
#ifndef WITHOUT_GATE
     if
     :: take(gate)
     :: GIVES_UP -> goto again
     fi;
#endif
     mine = turn;
stand:
#ifndef WITHOUT_LOOKING
     if
     :: !announced
     :: announced && turn != mine
     :: announced && GIVES_UP -> gate = false; goto again
     fi;
#endif
     if
     :: take_lock()
     :: locked -> goto stand
     fi;
     atomic { passed = (announced -> passed + 1 : 0) };
     assert(passed <= 1);
#ifndef WITHOUT_LETTING_GO
     gate = false;
#endif
inside:
     save();
again: skip
  od
}

/* Strangers come again and again, and never keep the known place out. */
ltl gets_in { <> entered }
