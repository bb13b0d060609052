/* A backup code on two hosts that are cut off from the verifiers and come back. It is a model
   of Reserve, ReserveSync and ReserveHandler.

   A host keeps the backup codes of those who have logged in there, with what is used of them: the
   reserve. A login of which nothing could be sent is answered by the reserve, under the lock of that
   file. What was sent is never verified there, also if no answer comes. Before a host sends anything
   again, the bits of its reserve go up and are joined to those of the row; that may be done twice,
   so it is done again until it is acknowledged. An accepted login brings back the used bits of the
   row, which are joined to those of the reserve before the answer is passed on. Shown: a code lets
   in at most once through the verifiers and once on each host that was cut off; and not once more
   after the bits of the host have gone up, nor through the verifiers on the host that has accepted
   it.

   Left out: what fleet.pml shows (here a verifier loads, decides and saves in one step, and joins
   bits in one step); "the database is away", which a verifier says before it verifies, and which is
   the same to a host as a cut; other codes of the set; a new set of codes, which has another id and
   takes no bits of the old one; people who are removed while the host is cut off; how long a
   reserve is good. Codes of authenticators are never verified by a reserve. A service that starts
   again first sends the bits up, as after a cut.

   Tests/Models/run checks it, and then without each of the rules, where it must fail. */

#define HOSTS 2

bool used; /* the row: the backup code has been accepted */
bool reserve[HOSTS]; /* the same in the file of a host */
bool up[HOSTS] = true; /* what is used in the reserve has gone up */
bool cut[HOSTS], was_cut[HOSTS];

byte told; /* how often the code let in through the verifiers */
byte told_away[HOSTS]; /* and by the reserve */
bool raised; /* it is acknowledged that the bit of a reserve has gone up */

inline let_in(counter) {
  counter++;
  assert(counter <= 1);
  assert(told + told_away[0] + told_away[1] <= 1 + was_cut[0] + was_cut[1])
}

/* Logins at a host, one behind the other. `code`: with the backup code, else with a code of an
   authenticator. `late`: sent after the code was accepted here, or after its bit has gone up. */
proctype person(byte host, logins) {
  bool code, right, burned, late;
  do
  :: logins == 0 -> break
  :: else ->
     atomic {
       logins--;
       if
       :: code = true
       :: code = false
       fi
     };
     if
     :: cut[host] -> goto away
     :: atomic {
#ifdef WITHOUT_BITS_FIRST
          !cut[host] ->
#else
          !cut[host] && up[host] ->
#endif
          late = raised || told_away[host]
        }
     fi;
     if
     :: atomic {
          right = !(code && used);
          used = used || code;
          burned = used
        }
     :: goto unknown /* never carried out */
     fi;
     if
     :: atomic {
          right ->
#ifdef WITHOUT_JOINING
          reserve[host] = burned;
#else
          reserve[host] = reserve[host] || burned;
#endif
          if
          :: code -> assert(!late); let_in(told)
          :: else
          fi;
          goto done
        }
     :: true /* refused; or the answer is lost */
     fi;
unknown:
#ifndef WITHOUT_REFUSING
     goto done;
#endif
away:
     atomic {
       if
       :: code && !reserve[host] -> reserve[host] = true; up[host] = false
       :: else -> goto done
       fi
     };
     let_in(told_away[host]);
done:
     atomic { code = false; right = false; burned = false; late = false }
  od
}

/* The service of the host that is cut off sends up what is used in its reserve. */
active proctype service() {
  bool sent;
end:
  do
  :: !cut[0] && !up[0] ->
     sent = reserve[0];
     if
     :: used = used || sent
     :: true /* never carried out */
#ifndef WITHOUT_ACKNOWLEDGMENT
        -> goto again
#endif
     fi;
     if
     :: atomic {
#ifdef WITHOUT_LOOKING_AGAIN
          up[0] = true;
#else
          up[0] = (sent == reserve[0]);
#endif
          raised = raised || sent
        }
     :: true /* the answer is lost */
     fi;
again:
     sent = false
  od
}

/* The first host is cut off once; the other one never is. */
active proctype cable() {
  atomic { cut[0] = true; was_cut[0] = true; up[0] = false };
  cut[0] = false
}

init { atomic { run person(0, 1); run person(0, 2); run person(1, 1) } }
