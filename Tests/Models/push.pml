/* How an enrollment moves from the files of a machine to the fleet, while people log in at the
   machine and elsewhere in the fleet. It is a model of MoveToFleet, ManagementHandler and of what reads the
   machine and elsewhere in the fleet. It is a model of MoveToFleet, ManagementHandler and of what
   reads the mark.
   `push` takes the lock of the user's state, marks the user's file "fleet" and makes that durable,
   sends the enrollment with its state to the fleet (put), and when that is acknowledged deletes the
   files and lets the lock go. It may crash between any two of these steps, which opens the lock,
   and the answer to the put may be lost, or the put be carried out late or never; then it is run
   again from the start. A put of an enrollment that the fleet has takes over what was used, which
   is nothing here. A login at the machine reads the mark first: without it, it takes the lock, looks
   at the mark once more and is answered by the files; with it, or without files, it is answered by the
   fleet (in the code it is refused with it, which lets in less). Shown: no code lets in
   twice, on either side, and the enrollment is never nowhere.

   Left out: what fleet.pml shows (a login by the fleet is one step); a fleet that has the name
   under another id, and secrets that stand on several machines: there a code is good once on each
   until its last push; a mark that is taken back where nothing was sent; the way back (take); a machine that loses what was durable.

   Tests/Models/run checks it, and then without each of the rules, where it must fail. */

bool locked, mark, used; /* the user's files here */
bool here = true;
bool in_fleet, used_in_fleet; /* the row */
bool acknowledged; /* of the put sent last */
chan puts = [2] of { bool };

byte told; /* how often a login with the code was let in */

inline let_in() {
  atomic {
    told++;
    assert(told <= 1)
  }
}

inline ask_fleet() {
  atomic {
    right = in_fleet && !used_in_fleet;
    used_in_fleet = used_in_fleet || in_fleet
  }
}

proctype login_here() {
  bool right;
  if
  :: here && !mark
  :: else -> ask_fleet(); goto answer
  fi;
  atomic { !locked -> locked = true };
  if
#ifdef WITHOUT_LOOKING_AGAIN
  :: true
#else
  :: here && !mark
  :: else -> goto unlock
#endif
  fi;
  right = !used;
  used = true;
unlock:
  locked = false;
answer:
  if
  :: right -> let_in()
  :: else
  fi
}

proctype login_elsewhere() {
  bool right;
  ask_fleet();
  if
  :: right -> let_in()
  :: true /* the answer is lost */
  fi
}

active proctype database() {
  bool sent;
end:
  do
  :: atomic {
       puts ? sent ->
       if
#ifdef WITHOUT_ONCE
       :: true ->
#else
       :: !in_fleet ->
#endif
          in_fleet = true;
          used_in_fleet = sent
       :: else
       fi;
       acknowledged = true;
       sent = false
     }
  od
}

#ifdef WITHOUT_LOCK
#define LOCK(is) true
#else
#define LOCK(is) locked = is
#endif

/* The end of this run, and the next one; also where nothing is heard in time. */
#define CRASH atomic { runs < 2 -> runs++; LOCK(false); goto again }
#define MAY_CRASH if :: CRASH :: true fi

active proctype push() {
  byte runs;
again:
#ifndef WITHOUT_LOCK
  atomic { !locked -> locked = true };
#endif
  if
  :: here
  :: else -> goto done /* an earlier run came that far */
  fi;
#ifndef WITHOUT_MARK
  mark = true;
  MAY_CRASH;
#endif
  atomic { acknowledged = false; puts ! used };
#ifndef WITHOUT_ACKNOWLEDGMENT
  if
  :: acknowledged
  :: CRASH
  fi;
#endif
  MAY_CRASH;
  atomic { here = false; mark = false; used = false; assert(in_fleet) };
  MAY_CRASH;
done:
  LOCK(false)
}

init { atomic { run login_here(); run login_here(); run login_elsewhere(); run login_elsewhere() } }
