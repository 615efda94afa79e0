/* SCTP_PR_SCTP_RTX with 0 retransmissions over a path without loss: how much arrives, and how many messages the sender reports as abandoned.
   It switches on the loopback interface. As root: cc -O2 -o retransmissions retransmissions.c && ./retransmissions */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define SCTP_MAXSEG 13
#define SCTP_DEFAULT_PRINFO 114
#define SCTP_PR_ASSOC_STATUS 115
#define SCTP_PR_SCTP_RTX 0x20

struct assoc_value { int32_t id; uint32_t value; };
struct default_prinfo { int32_t id; uint32_t value; uint16_t policy; };
struct prstatus { int32_t id; uint16_t stream, policy; uint64_t unsent, sent; };

static void need(int result, const char *what)
{
	if (result < 0) {
		printf("%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void raise_loopback(void)
{
	struct ifreq loopback = { .ifr_name = "lo" };
	int any = socket(AF_INET, SOCK_DGRAM, 0);
	need(ioctl(any, SIOCGIFFLAGS, &loopback), "lo");
	loopback.ifr_flags |= IFF_UP;
	need(ioctl(any, SIOCSIFFLAGS, &loopback), "lo");
	close(any);
}

/* Reads until nothing arrives for a second; counts whole messages and octets. */
static void read_all(int peer, int *messages, long *octets)
{
	static char buffer[65536];
	struct pollfd ready = { peer, POLLIN, 0 };
	while (poll(&ready, 1, 1000) > 0) {
		struct iovec part = { buffer, sizeof buffer };
		struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
		ssize_t read = recvmsg(peer, &header, 0);
		if (read <= 0)
			return;
		*octets += read;
		*messages += !!(header.msg_flags & MSG_EOR);
	}
}

static void measure(const char *what, size_t length, int count, int limited)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct default_prinfo limit = { 0, 0, SCTP_PR_SCTP_RTX };
	struct prstatus status = { 0, 0, SCTP_PR_SCTP_RTX, 0, 0 };
	struct assoc_value most = { 0, 500 };
	socklen_t size = sizeof here, status_size = sizeof status;
	char *message = calloc(1, length);
	int server = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), client = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP);
	int peer, messages = 0;
	long octets = 0;

	need(bind(server, (struct sockaddr *)&here, sizeof here), "bind");
	need(getsockname(server, (struct sockaddr *)&here, &size), "getsockname");
	need(listen(server, 1), "listen");
	need(setsockopt(client, IPPROTO_SCTP, SCTP_MAXSEG, &most, sizeof most), "SCTP_MAXSEG");
	if (limited)
		need(setsockopt(client, IPPROTO_SCTP, SCTP_DEFAULT_PRINFO, &limit, sizeof limit), "SCTP_DEFAULT_PRINFO");
	need(connect(client, (struct sockaddr *)&here, sizeof here), "connect");
	peer = accept(server, NULL, NULL);
	need(peer, "accept");
	for (int sent = 0; sent < count; sent++) {
		need(send(client, message, length, 0), "send");
		usleep(10000);
	}
	read_all(peer, &messages, &octets);
	need(getsockopt(client, IPPROTO_SCTP, SCTP_PR_ASSOC_STATUS, &status, &status_size), "SCTP_PR_ASSOC_STATUS");
	printf("%-15s %d sent: %d whole, %ld octets arrive; sprstat_abandoned_sent %llu\n", what, count, messages, octets,
	       (unsigned long long)status.sent);
	free(message);
	close(peer);
	close(client);
	close(server);
}

int main(void)
{
	raise_loopback();
	measure("100 B, reliable", 100, 10, 0);
	measure("100 B, RTX 0", 100, 10, 1);
	measure("150 kB, reliable", 150000, 1, 0);
	measure("150 kB, RTX 0", 150000, 1, 1);
	return 0;
}
