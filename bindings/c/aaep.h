/* AAEP for assistive technology: listen to AI agents, and let people answer them.
 *
 * A subscriber is a number. One that was closed, or never was, is an error and does no harm. Texts are
 * UTF-8 and end with a zero byte. Every function may be called from any thread; only one thread at a
 * time waits for the news of a subscriber, and any other may reply or close meanwhile.
 *
 * Nothing here answers for the person. A reply is sent at most once, and only when the program gives it.
 * That it was sent does not mean that it counts: ask_ended tells the outcome.
 *
 * Link with -laaep_c. A whole program is in examples/c/subscriber.c. */

#ifndef AAEP_H
#define AAEP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t aaep_subscriber;

/* What aaep_next gives. */
#define AAEP_NEWS 1     /* there is news */
#define AAEP_NOTHING 0  /* nothing new came in time */
#define AAEP_OVER (-1)  /* the subscription is over, and nothing more comes */
#define AAEP_ERROR (-2) /* it could not be done; aaep_last_error says why */

/* Subscribes to the producer at an address, such as http://127.0.0.1:7117, https://, ws://, wss://,
 * unix:/path, unix: for the hub of this person, grpc://, grpcs:// or stdio:PROGRAM ARGUMENT.
 *
 * options is NULL or a JSON object with some of these members:
 *   subscriber_id, subscriber_name, subscriber_version   who listens
 *   bearer             the token that proves it
 *   capabilities       what it can take, as in a subscription.request; it can answer unless that says no
 *   without_handshake  true for a producer that just speaks
 *   pins               the path of a file in which the keys of producers are remembered
 *   insecure_allow_plain_http   true lets plain HTTP leave this machine
 *
 * Gives a subscriber, or 0. When the line breaks later, it comes back by itself and misses nothing. */
aaep_subscriber aaep_connect(const char *url, const char *options);

/* Waits for what is new, at most this many milliseconds, or for as long as it takes if that is negative.
 * With AAEP_NEWS, *line is one JSON object, to be given back with aaep_free; otherwise it is NULL.
 * Its member news says what it is:
 *   event              with words, fit for a terminal, and event, which has them as they came
 *   ask                a question: reply_token, remaining_ms, can_reply, words, event. Its words are all
 *                      that the person needs to decide: the action, the consequence, the risk, whether it
 *                      can be undone, the tool, what silence means. Present them whole before a yes
 *   ask_ended          reply_token and state: resolved (with outcome and decided_by), withdrawn, expired,
 *                      forgotten, or unknown: the line broke or the producer reported an error after the
 *                      answer was sent, so nobody knows whether it counts. Say so; a later ask_ended may
 *                      tell the outcome
 *   answer_not_counted reply_token, remaining_ms, error, message: the producer says that the answer does not
 *                      count, for instance because its disk is full. Say so, with message made fit for your
 *                      device; the question is open again, and the person may answer once more
 *   ask_time_changed   reply_token, remaining_ms, paused
 *   gap                something of session_id was not heard
 *   reconnecting, reconnected, terms_changed, refused, violation, left_out, without_handshake
 *   ended              how and message; AAEP_OVER follows
 * and others in later versions. An event is always the last member. A program that does not call this
 * slows the producer; nothing is dropped. */
int aaep_next(aaep_subscriber subscriber, int timeout_ms, char **line);

/* Says what the person answered, one of:
 *   {"reply_token": "rpl_...", "decision": "accept"}     or "reject"; decided_by, decision_rationale
 *   {"reply_token": "rpl_...", "response": "blue"}       text, true or false, or a number; decided_by
 *   {"reply_token": "rpl_...", "type": "agentvoice:ask.extend", "by_seconds": 30}
 *   {"reply_token": "rpl_...", "type": "agentvoice:ask.presented"}   also ask.pause, ask.resume
 * Gives 1 when it is on its way, otherwise AAEP_ERROR and nothing was sent or nobody knows whether it
 * arrived; aaep_last_error says which. While the line is broken it waits, at most until time is over. */
int aaep_reply(aaep_subscriber subscriber, const char *reply);

/* Says goodbye. Whoever waits in aaep_next is told that it is over. */
void aaep_close(aaep_subscriber subscriber);

/* Why the last call of this thread failed, in a sentence for people; empty if it did not. The text stays
 * until the next call of this thread. It is not to be freed. */
const char *aaep_last_error(void);

/* Gives back a line from aaep_next, once. NULL is fine. */
void aaep_free(char *line);

/* The version of this library. It is not to be freed. */
const char *aaep_version(void);

#ifdef __cplusplus
}
#endif

#endif
