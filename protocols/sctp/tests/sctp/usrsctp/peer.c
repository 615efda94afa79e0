/* Runs usrsctp, FreeBSD's SCTP, without threads and in virtual time.
 *
 *   peer client|server STREAMS INTERLEAVING RESETS DEFAULTS
 *
 * Each frame on standard input is a command with its time; its results are written to standard output, followed by a frame DONE.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <usrsctp.h>

/* The library supports this option, but its header does not define it. */
#ifndef SCTP_INTERLEAVING_SUPPORTED
#define SCTP_INTERLEAVING_SUPPORTED 0x00001206
#endif

enum { SERVER_PORT = 5000, CLIENT_PORT = 5001, ROOM = 1 << 20 };

/* The interval of the library's own timer thread, in microseconds. */
enum { TICK = 10000 };

/* Commands up to ABORT, then results; PACKET is both. */
enum kind { PACKET, TIME, CONNECT, SEND, RESET, CLOSE, ABORT, CONNECTED, PART, RESET_OUTGOING, RESET_INCOMING, CLOSED, LOST, DONE };

/* In the machine's byte order; `length` octets follow. */
struct frame {
    uint32_t kind, time /* us */, stream, is_unordered, length;
    /* Maximum number of retransmissions, or -1 for no limit. */
    int32_t most;
    /* PART: whether it is the last one. DONE: whether the command cannot be performed now. */
    uint32_t flag;
};

static int is_client, streams, interleaving, resets, defaults;
static struct socket *listener, *association;
static uint32_t now, ticked;
static unsigned char octets[ROOM];

/* Replaces the clock that the library reads. */
int gettimeofday(struct timeval *time, void *unused) {
    time->tv_sec = 1 + now / 1000000;
    time->tv_usec = now % 1000000;
    return 0;
}

/* Replaces the source of random numbers that the library opens, so that runs are reproducible. */
int open(const char *path, int flags, ...) {
    return openat(AT_FDCWD, strcmp(path, "/dev/urandom") == 0 ? "/dev/zero" : path, flags);
}

static void must(int is_fine, const char *what) {
    if (!is_fine) {
        perror(what);
        exit(1);
    }
}

static void say(struct frame what, const void *about) {
    must(fwrite(&what, sizeof what, 1, stdout) == 1, "say");
    must(fwrite(about, 1, what.length, stdout) == what.length, "say");
}

static int transmit(void *to, void *packet, size_t length, uint8_t tos, uint8_t is_whole) {
    say((struct frame){ .kind = PACKET, .length = length }, packet);
    return 0;
}

static void advance(uint32_t until) {
    while (until - ticked >= TICK) {
        now = ticked += TICK;
        usrsctp_handle_timers(TICK / 1000);
    }
    now = until;
}

static void set(struct socket *of, int level, int option, const void *value, socklen_t length, const char *what) {
    must(usrsctp_setsockopt(of, level, option, value, length) == 0, what);
}

static void configure(struct socket *of) {
    int yes = 1, room = ROOM;
    struct sctp_initmsg init = { .sinit_num_ostreams = streams, .sinit_max_instreams = 64 };
    /* RFC 9260 section 9.2: a shutdown, including the data still queued, may take five times RTO.Max. */
    struct sctp_rtoinfo rto = { .srto_initial = 100, .srto_min = 50, .srto_max = 60000 };
    struct sctp_event changes = { .se_type = SCTP_ASSOC_CHANGE, .se_on = 1 };
    set(of, IPPROTO_SCTP, SCTP_INITMSG, &init, sizeof init, "open streams");
    set(of, IPPROTO_SCTP, SCTP_RECVRCVINFO, &yes, sizeof yes, "hear of streams");
    set(of, IPPROTO_SCTP, SCTP_EVENT, &changes, sizeof changes, "hear of its state");
    if (!defaults) {
        set(of, IPPROTO_SCTP, SCTP_RTOINFO, &rto, sizeof rto, "set its timers");
        set(of, IPPROTO_SCTP, SCTP_NODELAY, &yes, sizeof yes, "send at once");
        set(of, SOL_SOCKET, SO_RCVBUF, &room, sizeof room, "have room");
        set(of, SOL_SOCKET, SO_SNDBUF, &room, sizeof room, "have room");
    }
    if (resets) {
        struct sctp_assoc_value requests = { .assoc_value = SCTP_ENABLE_RESET_STREAM_REQ };
        struct sctp_event events = { .se_type = SCTP_STREAM_RESET_EVENT, .se_on = 1 };
        set(of, IPPROTO_SCTP, SCTP_ENABLE_STREAM_RESET, &requests, sizeof requests, "allow resets");
        set(of, IPPROTO_SCTP, SCTP_EVENT, &events, sizeof events, "hear of resets");
    }
    if (interleaving) {
        /* Parts of messages on several streams may alternate: RFC 6458 section 8.1.20. */
        int level = 2;
        struct sctp_assoc_value on = { .assoc_value = 1 };
        set(of, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level, "deliver in parts");
        set(of, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &on, sizeof on, "interleave");
    }
}

/* Returns an AF_CONN address, whose packets this program delivers itself. */
static struct sockaddr_conn at(int port) {
    return (struct sockaddr_conn){ .sconn_family = AF_CONN, .sconn_port = htons(port), .sconn_addr = &now };
}

static void start(void) {
    usrsctp_init_nothreads(0, transmit, NULL);
    usrsctp_register_address(&now);
    struct socket *opened = usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    must(opened != NULL, "open a socket");
    configure(opened);
    usrsctp_set_non_blocking(opened, 1);
    struct sockaddr_conn own = at(is_client ? CLIENT_PORT : SERVER_PORT);
    must(usrsctp_bind(opened, (struct sockaddr *)&own, sizeof own) == 0, "bind");
    if (is_client) {
        association = opened;
    } else {
        listener = opened;
        must(usrsctp_listen(listener, 1) == 0, "listen");
    }
}

static int send_message(const struct frame *what) {
    struct sctp_sendv_spa how = { .sendv_flags = SCTP_SEND_SNDINFO_VALID };
    how.sendv_sndinfo.snd_sid = what->stream;
    how.sendv_sndinfo.snd_flags = what->is_unordered ? SCTP_UNORDERED : 0;
    if (what->most >= 0) {
        how.sendv_flags |= SCTP_SEND_PRINFO_VALID;
        how.sendv_prinfo.pr_policy = SCTP_PR_SCTP_RTX;
        how.sendv_prinfo.pr_value = what->most;
    }
    return usrsctp_sendv(association, octets, what->length, NULL, 0, &how, sizeof how, SCTP_SENDV_SPA, 0) >= 0;
}

/* Resets outgoing streams: RFC 6525 section 6.3.2. */
static int reset(const struct frame *what) {
    struct sctp_reset_streams *how = calloc(1, sizeof *how + what->length);
    how->srs_flags = SCTP_STREAM_RESET_OUTGOING;
    how->srs_number_streams = what->length / sizeof *how->srs_stream_list;
    memcpy(how->srs_stream_list, octets, what->length);
    int is_done = usrsctp_setsockopt(association, IPPROTO_SCTP, SCTP_RESET_STREAMS, how, sizeof *how + what->length) == 0;
    free(how);
    return is_done;
}

static int be_gone(void) {
    struct linger at_once = { 1, 0 };
    set(association, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once, "linger");
    usrsctp_close(association);
    association = NULL;
    return 1;
}

static int call(void) {
    struct sockaddr_conn server = at(SERVER_PORT);
    return usrsctp_connect(association, (struct sockaddr *)&server, sizeof server) == 0 || errno == EINPROGRESS;
}

/* Performs a command; returns whether it could be performed. */
static int act(const struct frame *what) {
    switch (what->kind) {
    case PACKET:
        usrsctp_conninput(&now, octets, what->length, 0);
        return 1;
    case TIME:
        return 1;
    case CONNECT:
        return call();
    case SEND:
        return send_message(what);
    case RESET:
        return reset(what);
    case CLOSE:
        return usrsctp_shutdown(association, SHUT_WR) == 0;
    case ABORT:
        return be_gone();
    }
    must(0, "know what to do");
    return 0;
}

static void hear(const union sctp_notification *news) {
    if (news->sn_header.sn_type == SCTP_ASSOC_CHANGE) {
        int state = news->sn_assoc_change.sac_state;
        if (state == SCTP_COMM_UP)
            say((struct frame){ .kind = CONNECTED }, NULL);
        else
            say((struct frame){ .kind = state == SCTP_SHUTDOWN_COMP ? CLOSED : LOST }, NULL);
    }
    if (news->sn_header.sn_type == SCTP_STREAM_RESET_EVENT) {
        const struct sctp_stream_reset_event *event = &news->sn_strreset_event;
        int length = event->strreset_length - sizeof *event, flags = event->strreset_flags;
        must(!(flags & (SCTP_STREAM_RESET_DENIED | SCTP_STREAM_RESET_FAILED)), "have streams reset");
        if (flags & SCTP_STREAM_RESET_OUTGOING_SSN)
            say((struct frame){ .kind = RESET_OUTGOING, .length = length }, event->strreset_stream_list);
        if (flags & SCTP_STREAM_RESET_INCOMING_SSN)
            say((struct frame){ .kind = RESET_INCOMING, .length = length }, event->strreset_stream_list);
    }
}

static void read_all(void) {
    static union {
        unsigned char part[ROOM];
        union sctp_notification news;
    } read;
    if (!association && listener && (association = usrsctp_accept(listener, NULL, NULL)) != NULL)
        usrsctp_set_non_blocking(association, 1);
    while (association) {
        struct sctp_rcvinfo where = { 0 };
        struct sockaddr_conn from;
        socklen_t from_length = sizeof from, where_length = sizeof where;
        unsigned kind = 0;
        int flags = 0;
        ssize_t length = usrsctp_recvv(association, &read, sizeof read, (struct sockaddr *)&from, &from_length, &where,
                                       &where_length, &kind, &flags);
        if (length <= 0)
            return;
        if (flags & MSG_NOTIFICATION)
            hear(&read.news);
        else
            say((struct frame){ .kind = PART, .stream = where.rcv_sid, .length = length, .flag = !!(flags & MSG_EOR) }, &read);
    }
}

int main(int count, char **words) {
    struct frame what;
    must(count == 6, "peer: five words");
    is_client = strcmp(words[1], "client") == 0;
    streams = atoi(words[2]), interleaving = atoi(words[3]), resets = atoi(words[4]), defaults = atoi(words[5]);
    start();
    while (fread(&what, sizeof what, 1, stdin) == 1) {
        must(what.length <= ROOM && fread(octets, 1, what.length, stdin) == what.length, "hear");
        advance(what.time);
        int is_done = act(&what);
        must(is_done || errno == EAGAIN || errno == EALREADY || errno == EBUSY, "do it");
        read_all();
        say((struct frame){ .kind = DONE, .flag = !is_done }, NULL);
        fflush(stdout);
    }
    _Exit(0);
}
