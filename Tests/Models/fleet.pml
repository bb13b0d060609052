/* Logins of one user on two hosts, answered by two verifiers over one row of a database. It is a model
   of Relay, VerifierPool, LoginHandler and FleetStore.

   A host sends an attempt to one verifier. It asks the other one only where nothing was sent, which
   here is the same as having chosen the other one. The verifier queues the attempts of a user,
   loads the row, decides, and saves under the condition that the version is still the one that it
   loaded. If no row was changed, it loads again. The save is a process of its own: the database may
   carry it out late, when the verifier is gone or waits no longer, or never. Then the outcome is
   unknown, and the attempt is refused. A verifier that crashes is one that waits no longer and
   tells nobody; so is an answer that gets lost. The host may stop waiting at any time and begin its
   next login; an answer carries the nonce of its question. Shown: no code of an authenticator and
   no backup code lets in twice.

   Left out: time; the throttle; the other time steps, counters and backup codes (one of each stands
   for all, since all are in the same row); sealing; changes of the enrollment; other users. The
   database loses nothing that it has acknowledged. Hosts that can ask nobody are in reserve.pml.

   Tests/Models/run checks it, and then without each of the rules, where it must fail. */

#define ATTEMPTS 3 /* two of the first host, one behind the other, and one of the second */

/* The bits of the row: what has been accepted. */
#define CODE 1
#define BACKUP_CODE 2

byte version, body; /* the row */
byte told[3]; /* how often a login with this response was let in */

/* What is under way of each attempt: the question to one of the verifiers, the save, the answer. A
   refusal is no better than silence. */
mtype = { zero, one }; /* rows that a save has changed, once that is known */
typedef Attempt { byte asks, response; bool saves; byte loaded, next; mtype rows; bool accepted };
Attempt attempts[ATTEMPTS];

/* Where an answer arrives: at its question, or without the nonce at any listener on the connection. */
#ifdef WITHOUT_NONCE
#define ANSWER attempts[i - i % 2].accepted
#else
#define ANSWER attempts[i].accepted
#endif

inline carry_out(i) {
  atomic {
    attempts[i].saves ->
    if
#ifdef WITHOUT_VERSION
    :: true ->
#else
    :: version == attempts[i].loaded ->
#endif
       body = attempts[i].next;
       version++;
       attempts[i].rows = one
    :: else -> attempts[i].rows = zero
    fi;
    attempts[i].saves = false;
    attempts[i].loaded = 0;
    attempts[i].next = 0
  }
}

active proctype database() {
end:
  do
  :: carry_out(0)
  :: carry_out(1)
  :: carry_out(2)
  od
}

#define TAKE(n) attempts[n].asks == _pid -> i = n

/* The verifiers are processes 1 and 2. */
active [2] proctype verifier() {
  byte i;
  bool right;
end:
  do
  :: atomic {
       if
       :: TAKE(0)
       :: TAKE(1)
       :: TAKE(2)
       fi;
       attempts[i].asks = 0
     };
load:
     atomic {
       right = !(body & attempts[i].response);
       attempts[i].loaded = version;
       attempts[i].next = body | attempts[i].response;
       attempts[i].rows = 0;
       attempts[i].saves = true
     };
#ifdef WITHOUT_WAITING
     ANSWER = right;
#endif
     atomic {
       if
       :: attempts[i].rows == one -> ANSWER = right
       :: attempts[i].rows == zero -> goto load
       :: true /* unknown */
#ifdef WITHOUT_REFUSING
          -> ANSWER = right
#endif
       fi;
       attempts[i].response = 0;
       attempts[i].rows = 0;
       right = false;
       i = 0
     }
  od
}

proctype host(byte i, last) {
  byte response;
  do
  :: i > last -> break
  :: else ->
     atomic {
       if
       :: response = CODE
       :: i -> response = BACKUP_CODE /* both bits, and both verifiers, are alike */
       fi;
       attempts[i].response = response;
       if
       :: attempts[i].asks = 1
       :: i -> attempts[i].asks = 2
       fi
     };
     atomic {
       if
       :: ANSWER -> ANSWER = false; told[response]++; assert(told[response] <= 1)
       :: true /* refused */
       fi;
       i++;
       response = 0
     }
  od
}

init { atomic { run host(0, 1); run host(2, 2) } }
