/* A listener in C: prints what agents say, and lets the person at the keyboard answer.
 *
 * cc -I bindings/c examples/c/listener.c -L target/debug -laaep_c -o listener
 * ./listener http://127.0.0.1:7117 */

#include <aaep.h>
#include <stdio.h>
#include <string.h>

/* Copies a text of ours from a line; an event stands behind all of them. Returns 0 if there is none. */
static int member(const char *line, const char *name, char *text, size_t size) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\":\"", name);
    const char *at = strstr(line, key);
    if (!at) return 0;
    at += strlen(key);
    size_t length = 0;
    while (at[length] && at[length] != '"' && length + 2 < size)
        length += at[length] == '\\' && at[length + 1] ? 2 : 1;
    memcpy(text, at, length);
    text[length] = 0;
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) return fprintf(stderr, "Say where: %s URL\n", argv[0]), 2;
    aaep_listener listener = aaep_connect(argv[1], "{\"subscriber_id\": \"c-listener\"}");
    if (!listener) return fprintf(stderr, "%s\n", aaep_last_error()), 2;
    printf("Listening.\n");
    fflush(stdout);
    char *line, news[64], words[1024], token[256], answer[64], reply[512];
    while (aaep_next(listener, -1, &line) == AAEP_NEWS) {
        if (!member(line, "news", news, sizeof news)) strcpy(news, "");
        if (!member(line, "words", words, sizeof words)) strcpy(words, "");
        if (strcmp(news, "event") == 0 && *words) printf("%s\n", words);
        if (strcmp(news, "ask") == 0 && member(line, "reply_token", token, sizeof token)) {
            printf("%s Type accept or reject:\n", words);
            fflush(stdout);
            /* Whoever types anything else has not answered. Without a keyboard there is nobody to ask. */
            if (!fgets(answer, sizeof answer, stdin)) break;
            answer[strcspn(answer, "\r\n")] = 0;
            if (strcmp(answer, "accept") == 0 || strcmp(answer, "reject") == 0) {
                snprintf(reply, sizeof reply, "{\"reply_token\":\"%s\",\"decision\":\"%s\"}", token, answer);
                if (aaep_reply(listener, reply) != 1) printf("%s\n", aaep_last_error());
            }
        }
        if (strcmp(news, "ask_ended") == 0 && member(line, "state", words, sizeof words))
            printf("The question is %s.\n", words);
        fflush(stdout);
        aaep_free(line);
    }
    aaep_close(listener);
    return 0;
}
