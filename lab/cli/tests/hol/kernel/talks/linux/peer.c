/* Linux' own SCTP (RFC 6458), in datagrams of UDP (RFC 6951) over loopback.
 *
 *   peer client|server PEER_UDP_PORT MESSAGES SIZE STREAMS UNORDERED RETRANSMISSIONS ECHO END INTERLEAVING RESETS
 *
 * END: client-closes, client-aborts, server-closes or server-aborts, when all is done. Says at the end what it got.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/sctp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SERVER_PORT = 5000, CLIENT_PORT = 5001, LONGEST = 1 << 20, MOST_STREAMS = 8 };

static int is_client, messages, size, streams, unordered, retransmissions, echo, interleaving, resets;
static const char *end;
static int association;
static volatile int got, wrong, own_resets, peer_resets;
static const char *volatile ended = "not";

static void must(int is_fine, const char *what) {
    if (!is_fine) {
        perror(what);
        exit(1);
    }
}

/* A message says its number, and all octets behind that follow from it. */
static void fill(unsigned char *message, unsigned number, int length) {
    unsigned there = htonl(number);
    memcpy(message, &there, 4);
    for (int at = 4; at < length; at++)
        message[at] = (unsigned char)(number * 31 + at * 7);
}

static int is_whole(const unsigned char *message, int length) {
    static unsigned char due[LONGEST];
    unsigned number;
    if (length != size)
        return 0;
    memcpy(&number, message, 4);
    fill(due, ntohl(number), length);
    return memcmp(message, due, length) == 0;
}

static void send_on(int stream, const unsigned char *message, int length, int is_last) {
    struct sctp_sendv_spa how = { .sendv_flags = SCTP_SEND_SNDINFO_VALID };
    how.sendv_sndinfo.snd_sid = stream;
    how.sendv_sndinfo.snd_flags = unordered ? SCTP_UNORDERED : 0;
    if (retransmissions >= 0 && !is_last) {
        how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
        how.sendv_prinfo.pr_policy = SCTP_PR_SCTP_RTX;
        how.sendv_prinfo.pr_value = retransmissions;
    }
    struct iovec all = { (void *)message, length };
    ssize_t sent;
    /* While its stream is being reset it takes nothing. */
    while ((sent = sctp_sendv(association, &all, 1, NULL, 0, &how, sizeof how, SCTP_SENDV_SPA, 0)) < 0 &&
           resets && errno == EAGAIN)
        usleep(1000);
    must(sent == length, "send");
}

static void be_gone(void) {
    struct linger at_once = { 1, 0 };
    setsockopt(association, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(association);
    ended = "aborted";
}

/* RFC 6525 section 6.3.2. */
static void reset(const uint16_t *stream_list, int count) {
    struct sctp_reset_streams *what = calloc(1, sizeof *what + count * sizeof *stream_list);
    what->srs_flags = SCTP_STREAM_RESET_OUTGOING;
    what->srs_number_streams = count;
    memcpy(what->srs_stream_list, stream_list, count * sizeof *stream_list);
    must(setsockopt(association, IPPROTO_SCTP, SCTP_RESET_STREAMS, what,
                            sizeof *what + count * sizeof *stream_list) == 0,
         "reset streams");
    free(what);
}

/* A server answers a reset with its own, as data channels are closed. */
static void hear(const union sctp_notification *news) {
    const struct sctp_stream_reset_event *event = &news->sn_strreset_event;
    int count = (event->strreset_length - sizeof *event) / sizeof(uint16_t);
    if (news->sn_header.sn_type != SCTP_STREAM_RESET_EVENT)
        return;
    must(!(event->strreset_flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED)), "have streams reset");
    if (event->strreset_flags & SCTP_STREAM_RESET_OUTGOING_SSN)
        own_resets += count ? count : streams;
    if (!(event->strreset_flags & SCTP_STREAM_RESET_INCOMING_SSN))
        return;
    peer_resets += count ? count : streams;
    if (!is_client)
        reset(event->strreset_stream_list, count);
}

/* Until the association is over; a server does what it has to when it has all. */
static void *read_all(void *unused) {
    static unsigned char messages_of[MOST_STREAMS][LONGEST], part[LONGEST];
    static int length_of[MOST_STREAMS];
    for (;;) {
        struct sctp_rcvinfo where;
        struct sockaddr_in from;
        socklen_t from_length = sizeof from, where_length = sizeof where;
        unsigned kind = 0;
        int flags = 0;
        struct iovec room = { part, LONGEST };
        ssize_t read = sctp_recvv(association, &room, 1, (struct sockaddr *)&from, &from_length, &where,
                                     &where_length, &kind, &flags);
        if (read <= 0) {
            /* Linux says so to who has closed. */
            ended = read == 0 || errno == ENOTCONN ? "closed" : "reset";
            return unused;
        }
        if (flags & MSG_NOTIFICATION) {
            hear((const union sctp_notification *)part);
            continue;
        }
        /* Parts of messages on several streams may alternate. */
        int stream = where.rcv_sid, length = length_of[stream] + read;
        unsigned char *message = messages_of[stream];
        must(length <= LONGEST, "keep a message");
        memcpy(message + length_of[stream], part, read);
        length_of[stream] = flags & MSG_EOR ? 0 : length;
        if (!(flags & MSG_EOR))
            continue;
        wrong += !is_whole(message, length);
        if (!is_client && echo)
            send_on(stream, message, length, 1);
        got++;
        /* Who reads keeps the association from being closed. */
        if (is_client && got == messages && strcmp(end, "client-aborts") == 0)
            return unused;
        if (!is_client && got == messages && strcmp(end, "server-closes") == 0)
            shutdown(association, SHUT_WR);
        if (!is_client && got == messages && strcmp(end, "server-aborts") == 0) {
            be_gone();
            return unused;
        }
    }
}

static void configure(int socket, int peer_port) {
    int yes = 1, room = LONGEST;
    struct sctp_initmsg init = { .sinit_num_ostreams = streams, .sinit_max_instreams = 64 };
    struct sctp_rtoinfo rto = { .srto_initial = 100, .srto_min = 50, .srto_max = 1000 };
    struct sctp_udpencaps encapsulation = { .sue_address.ss_family = AF_INET, .sue_port = htons(peer_port) };
    setsockopt(socket, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init);
    setsockopt(socket, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto);
    setsockopt(socket, IPPROTO_SCTP, SCTP_RECVRCVINFO, &yes, sizeof yes);
    setsockopt(socket, IPPROTO_SCTP, SCTP_NODELAY, &yes, sizeof yes);
    setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
    must(setsockopt(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, sizeof encapsulation) == 0,
         "encapsulate");
    if (resets) {
        struct sctp_assoc_value requests = { .assoc_value = SCTP_ENABLE_RESET_STREAM_REQ };
        struct sctp_event events = { .se_type = SCTP_STREAM_RESET_EVENT, .se_on = 1 };
        must(setsockopt(socket, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &requests, sizeof requests) == 0, "allow resets");
        must(setsockopt(socket, IPPROTO_SCTP, SCTP_EVENT, &events, sizeof events) == 0, "hear of resets");
    }
    if (interleaving) {
        /* Parts of messages on several streams may alternate: RFC 6458 section 8.1.20. */
        int level = 2;
        struct sctp_assoc_value on = { .assoc_value = 1 };
        must(setsockopt(socket, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level) == 0, "deliver in parts");
        must(setsockopt(socket, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &on, sizeof on) == 0, "interleave");
    }
}

static struct sockaddr_in here(int port) {
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

static void serve(int socket) {
    must(listen(socket, 1) == 0, "listen");
    puts("ready");
    association = accept(socket, NULL, NULL);
    must(association >= 0, "accept");
    read_all(NULL);
}

static void ask(int socket) {
    static unsigned char message[LONGEST];
    struct sockaddr_in server = here(SERVER_PORT);
    pthread_t reader;
    association = socket;
    must(connect(socket, (struct sockaddr *)&server, sizeof server) == 0, "connect");
    must(pthread_create(&reader, NULL, read_all, NULL) == 0, "start a thread");
    for (int number = 0; number < messages; number++) {
        int done = resets ? number / resets : 0;
        if (done && number % resets == 0) {
            uint16_t all[MOST_STREAMS];
            for (int stream = 0; stream < streams; stream++)
                all[stream] = stream;
            int before = (done - 1) * streams;
            while ((got < number || own_resets < before || peer_resets < before) && strcmp(ended, "not") == 0)
                usleep(1000);
            reset(all, streams);
        }
        fill(message, number, size);
        send_on(number % streams, message, size, number + streams >= messages);
    }
    while (echo && got < messages && strcmp(ended, "not") == 0)
        usleep(1000);
    if (strcmp(end, "client-closes") == 0)
        shutdown(socket, SHUT_WR);
    pthread_join(reader, NULL);
    if (strcmp(end, "client-aborts") == 0)
        be_gone();
}

int main(int count, char **words) {
    must(count == 12, "peer: eleven words");
    setvbuf(stdout, NULL, _IOLBF, 0);
    is_client = strcmp(words[1], "client") == 0;
    messages = atoi(words[3]), size = atoi(words[4]), streams = atoi(words[5]);
    unordered = atoi(words[6]), retransmissions = atoi(words[7]), echo = atoi(words[8]);
    end = words[9], interleaving = atoi(words[10]), resets = atoi(words[11]);
    /* Whatever happens, it does not stay. */
    alarm(45);
    int opened = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
    must(opened >= 0, "open a socket");
    configure(opened, atoi(words[2]));
    struct sockaddr_in own = here(is_client ? CLIENT_PORT : SERVER_PORT);
    must(bind(opened, (struct sockaddr *)&own, sizeof own) == 0, "bind");
    (is_client ? ask : serve)(opened);
    printf("got %d wrong %d resets %d %d ended %s\n", got, wrong, own_resets, peer_resets, ended);
    /* What it has to say to its peer may be lost. */
    usleep(500000);
    _exit(0);
}
