/* Prints the fragment sequence numbers of an I-DATA message (RFC 8260 section 2.1), captured on the loopback interface by an AF_PACKET socket.
   It switches on net.sctp.intl_enable and the loopback interface. As root: cc -O2 -o fragment-numbers fragment-numbers.c && ./fragment-numbers */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/ethernet.h>
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

#define SCTP_FRAGMENT_INTERLEAVE 18
#define SCTP_INTERLEAVING_SUPPORTED 125
#define SCTP_MAXSEG 13

struct assoc_value { int32_t id; uint32_t value; };

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

static int endpoint(void)
{
	int s = socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), level = 2;
	struct assoc_value on = { 0, 1 }, most = { 0, 500 };
	need(s, "socket");
	need(setsockopt(s, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level), "SCTP_FRAGMENT_INTERLEAVE");
	need(setsockopt(s, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &on, sizeof on), "SCTP_INTERLEAVING_SUPPORTED");
	need(setsockopt(s, IPPROTO_SCTP, SCTP_MAXSEG, &most, sizeof most), "SCTP_MAXSEG");
	return s;
}

int main(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(5001) };
	static char message[2500], packet[65536];
	int tap, server, client, peer;

	prepare();
	tap = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
	server = endpoint();
	client = endpoint();
	need(tap, "AF_PACKET");
	need(bind(server, (struct sockaddr *)&here, sizeof here), "bind");
	need(listen(server, 1), "listen");
	need(connect(client, (struct sockaddr *)&here, sizeof here), "connect");
	peer = accept(server, NULL, NULL);
	need(peer, "accept");
	need(send(client, message, sizeof message, 0), "send");
	for (struct pollfd ready = { tap, POLLIN, 0 }; poll(&ready, 1, 200) > 0;) {
		ssize_t octets = recv(tap, packet, sizeof packet, 0);
		int at = (packet[0] & 15) * 4 + 12;
		if (octets < 0 || (unsigned char)packet[9] != IPPROTO_SCTP)
			continue;
		while (at + 4 <= octets) {
			unsigned char *chunk = (unsigned char *)packet + at;
			int long_ = chunk[2] << 8 | chunk[3];
			if (chunk[0] == 64 && long_ >= 20) {
				uint32_t tsn, mid, word;
				memcpy(&tsn, chunk + 4, 4), memcpy(&mid, chunk + 12, 4), memcpy(&word, chunk + 16, 4);
				printf("I-DATA %s%s MID %u %s %u, %d octets\n", chunk[1] & 2 ? "B" : "-", chunk[1] & 1 ? "E" : "-",
				       ntohl(mid), chunk[1] & 2 ? "PPID" : "FSN", ntohl(word), long_ - 20);
			}
			if (long_ < 4)
				break;
			at += (long_ + 3) & ~3;
		}
	}
	return 0;
}
