/* A subscriber in C: prints what agents say, and lets the person at the keyboard answer.
 *
 * cc -I bindings/c examples/c/subscriber.c -L target/debug -laaep_c -o subscriber
 * ./subscriber http://127.0.0.1:7117 */

#include <aaep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy of a text of ours from a line, to be freed; an event stands behind all of them. Whole: what is cut
 * off a question would be decided unheard. */
static char *member(const char *line, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = strstr(line, key);
    char *text = at ? malloc(strlen(at)) : NULL, *end = text;
    if (!text) return NULL;
    for (at += strlen(key); *at && *at != '"'; at++) {
        if (*at == '\\' && at[1]) at++;
        *end++ = *at;
    }
    *end = 0;
    return text;
}

static int is(const char *text, const char *wanted) { return text && strcmp(text, wanted) == 0; }

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "Say where: %s URL\n", argv[0]), 2;
    aaep_subscriber subscriber = aaep_connect(argv[1], "{\"subscriber_id\": \"c-subscriber\"}");
    if (!subscriber) return fprintf(stderr, "%s\n", aaep_last_error()), 2;
    printf("Listening.\n");
    fflush(stdout);
    char *line, answer[64], reply[512];
    while (aaep_next(subscriber, -1, &line) == AAEP_NEWS) {
        char *news = member(line, "news"), *words = member(line, "words"), *state = member(line, "state");
        char *token = member(line, "reply_token");
        int is_gone = 0;
        if (is(news, "event") && words && *words) printf("%s\n", words);
        if (is(news, "ask") && words && token) {
            printf("%s Type accept or reject:\n", words);
            fflush(stdout);
            /* Whoever types anything else has not answered. Without a keyboard there is nobody to ask. */
            is_gone = !fgets(answer, sizeof answer, stdin);
            if (!is_gone) answer[strcspn(answer, "\r\n")] = 0;
            if (!is_gone && (is(answer, "accept") || is(answer, "reject"))) {
                snprintf(reply, sizeof reply, "{\"reply_token\":\"%s\",\"decision\":\"%s\"}", token, answer);
                if (aaep_reply(subscriber, reply) != 1) printf("%s\n", aaep_last_error());
            }
        }
        if (is(news, "ask_ended") && state) printf("The question is %s.\n", state);
        fflush(stdout);
        free(news), free(words), free(state), free(token);
        aaep_free(line);
        if (is_gone) break;
    }
    aaep_close(subscriber);
    return 0;
}
