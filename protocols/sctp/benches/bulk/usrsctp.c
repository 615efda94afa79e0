/* Transfers bulk data over usrsctp, both ends in one process, in virtual time: see main.rs.
 *
 *   usrsctp MESSAGES OCTETS MTU DELAY_US BUFFER
 *
 * Prints the processor time of the process in nanoseconds.
 */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <usrsctp.h>

enum { SERVER_PORT = 5000, CLIENT_PORT = 5001, TICK = 10000 };

struct packet {
    struct packet *next;
    uint64_t due;
    size_t length;
    unsigned char octets[];
};

static uint64_t now, ticked, delay;
static int mtu, buffer;
static struct packet *first, **last = &first;

/* Replaces the clock that the library reads. */
int gettimeofday(struct timeval *time, void *unused) {
    time->tv_sec = 1 + now / 1000000;
    time->tv_usec = now % 1000000;
    return 0;
}

static void must(int is_fine, const char *what) {
    if (!is_fine) {
        perror(what);
        exit(1);
    }
}

static int transmit(void *to, void *octets, size_t length, uint8_t tos, uint8_t is_whole) {
    struct packet *packet = malloc(sizeof *packet + length);
    *packet = (struct packet){ .due = now + delay, .length = length };
    memcpy(packet->octets, octets, length);
    *last = packet;
    last = &packet->next;
    return 0;
}

static struct sockaddr_conn at(int port) {
    return (struct sockaddr_conn){ .sconn_family = AF_CONN, .sconn_port = htons(port), .sconn_addr = &now };
}

static struct socket *opened(int port) {
    struct sockaddr_conn own = at(port);
    struct sctp_paddrparams path = { .spp_flags = SPP_PMTUD_DISABLE, .spp_pathmtu = mtu };
    struct socket *it = usrsctp_socket(AF_CONN, SOCK_STREAM, IPPROTO_SCTP, NULL, NULL, 0, NULL);
    must(it != NULL, "open a socket");
    usrsctp_setsockopt(it, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
    usrsctp_setsockopt(it, SOL_SOCKET, SO_SNDBUF, &buffer, sizeof buffer);
    must(usrsctp_setsockopt(it, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &path, sizeof path) == 0, "set the MTU");
    usrsctp_set_non_blocking(it, 1);
    must(usrsctp_bind(it, (struct sockaddr *)&own, sizeof own) == 0, "bind");
    return it;
}

/* Advances to the next packet, or to the next timer interval. */
static void go_on(void) {
    uint64_t next = ticked + TICK;
    if (first && first->due < next)
        next = first->due;
    now = next;
    if (now == ticked + TICK) {
        ticked = now;
        usrsctp_handle_timers(TICK / 1000);
    }
    while (first && first->due <= now) {
        struct packet *packet = first;
        if (!(first = packet->next))
            last = &first;
        usrsctp_conninput(&now, packet->octets, packet->length, 0);
        free(packet);
    }
}

int main(int count, char **words) {
    static unsigned char octets[1 << 16], got[1 << 16];
    must(count == 6, "usrsctp: five words");
    long messages = atol(words[1]), size = atol(words[2]), sent = 0, received = 0;
    mtu = atoi(words[3]), delay = atol(words[4]), buffer = atoi(words[5]);
    usrsctp_init_nothreads(0, transmit, NULL);
    usrsctp_register_address(&now);
    struct socket *listener = opened(SERVER_PORT), *client = opened(CLIENT_PORT), *server = NULL;
    must(usrsctp_listen(listener, 1) == 0, "listen");
    struct sockaddr_conn to = at(SERVER_PORT);
    must(usrsctp_connect(client, (struct sockaddr *)&to, sizeof to) == 0 || errno == EINPROGRESS, "connect");
    while (!server) {
        go_on();
        server = usrsctp_accept(listener, NULL, NULL);
    }
    usrsctp_set_non_blocking(server, 1);
    while (received < messages) {
        while (sent < messages && usrsctp_sendv(client, octets, size, NULL, 0, NULL, 0, SCTP_SENDV_NOINFO, 0) == size)
            sent++;
        go_on();
        for (;;) {
            struct sockaddr_conn from;
            socklen_t from_length = sizeof from, none = 0;
            unsigned kind = 0;
            int flags = 0;
            ssize_t length = usrsctp_recvv(server, got, sizeof got, (struct sockaddr *)&from, &from_length, NULL, &none, &kind, &flags);
            if (length <= 0)
                break;
            must(length == size && (flags & MSG_EOR), "have a message whole");
            received++;
        }
    }
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    printf("%lld\n", used.tv_sec * 1000000000LL + used.tv_nsec);
    fflush(stdout);
    _Exit(0);
}
