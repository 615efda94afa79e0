/* Waits in poll() for a message of an SCTP peer, after a notification that its own setsockopt() caused: without I-DATA and with it.
   It switches on net.sctp.intl_enable and the loopback interface. As root: cc -O2 -o wakeup wakeup.c && ./wakeup */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SCTP_PRIMARY_ADDR 6
#define SCTP_FRAGMENT_INTERLEAVE 18
#define SCTP_INTERLEAVING_SUPPORTED 125
#define SCTP_EVENT 127
#define SCTP_PEER_ADDR_CHANGE (1 << 15 | 2)

struct assoc_value { int32_t id; uint32_t value; };
struct event { int32_t id; uint16_t type; uint8_t on; };
struct primary { int32_t id; struct sockaddr_storage address; } __attribute__((packed, aligned(4)));

static void need(int result, const char *what)
{
	if (result < 0) {
		printf("%s: %s\n", what, strerror(errno));
		exit(1);
	}
}

static void prepare(void)
{
	struct ifreq loopback = { .ifr_name = "lo" };
	int any = socket(AF_INET, SOCK_DGRAM, 0), setting = open("/proc/sys/net/sctp/intl_enable", O_WRONLY);
	need(setting, "net.sctp.intl_enable");
	need(write(setting, "1", 1), "net.sctp.intl_enable");
	need(ioctl(any, SIOCGIFFLAGS, &loopback), "lo");
	loopback.ifr_flags |= IFF_UP;
	need(ioctl(any, SIOCSIFFLAGS, &loopback), "lo");
	close(setting);
	close(any);
}

static int endpoint(int interleaves)
{
	int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), level = 2;
	struct assoc_value on = { 0, 1 };
	need(s, "socket");
	if (interleaves) {
		need(setsockopt(s, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level), "SCTP_FRAGMENT_INTERLEAVE");
		need(setsockopt(s, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &on, sizeof on), "SCTP_INTERLEAVING_SUPPORTED");
	}
	return s;
}

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void measure(const char *what, int interleaves)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct event changes = { 0, SCTP_PEER_ADDR_CHANGE, 1 };
	struct primary primary = { 0 };
	socklen_t size = sizeof here;
	int server = endpoint(interleaves), client = endpoint(interleaves), peer, woken;
	char buffer[1000];
	double begun;
	pid_t sender;

	need(bind(server, (struct sockaddr *)&here, sizeof here), "bind");
	need(getsockname(server, (struct sockaddr *)&here, &size), "getsockname");
	need(listen(server, 1), "listen");
	need(connect(client, (struct sockaddr *)&here, sizeof here), "connect");
	peer = accept(server, NULL, NULL);
	need(peer, "accept");
	/* Setting the peer's only address as the primary one changes nothing, but causes a notification. */
	need(setsockopt(client, IPPROTO_SCTP, SCTP_EVENT, &changes, sizeof changes), "SCTP_EVENT");
	memcpy(&primary.address, &here, sizeof here);
	need(setsockopt(client, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &primary, sizeof primary), "SCTP_PRIMARY_ADDR");
	need(recv(client, buffer, sizeof buffer, 0), "recv");
	fflush(stdout);
	sender = fork();
	if (!sender) {
		usleep(100000);
		_exit(send(peer, "!", 1, 0) != 1);
	}
	begun = now_ms();
	woken = poll(&(struct pollfd){ client, POLLIN, 0 }, 1, 5000);
	printf("%s: poll() returns %d after %.0f ms of 5000; the message was sent after 100\n", what, woken, now_ms() - begun);
	waitpid(sender, NULL, 0);
	close(peer);
	close(client);
	close(server);
}

int main(void)
{
	prepare();
	measure("DATA  ", 0);
	measure("I-DATA", 1);
	return 0;
}
