/* Prints the extensions that INIT and INIT ACK list (RFC 5061 section 4.2.7), captured on the loopback interface by an AF_PACKET socket.
   It switches on net.sctp.intl_enable and the loopback interface. As root: cc -O2 -o extensions extensions.c && ./extensions */
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
	struct assoc_value on = { 0, 1 };
	need(s, "socket");
	need(setsockopt(s, IPPROTO_SCTP, SCTP_FRAGMENT_INTERLEAVE, &level, sizeof level), "SCTP_FRAGMENT_INTERLEAVE");
	need(setsockopt(s, IPPROTO_SCTP, SCTP_INTERLEAVING_SUPPORTED, &on, sizeof on), "SCTP_INTERLEAVING_SUPPORTED");
	return s;
}

int main(void)
{
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(5001) };
	static unsigned char packet[65536];
	int tap, server, client;

	prepare();
	tap = socket(AF_PACKET, SOCK_DGRAM, htons(ETH_P_IP));
	server = endpoint();
	client = endpoint();
	need(tap, "AF_PACKET");
	need(bind(server, (struct sockaddr *)&here, sizeof here), "bind");
	need(listen(server, 1), "listen");
	need(connect(client, (struct sockaddr *)&here, sizeof here), "connect");
	for (struct pollfd ready = { tap, POLLIN, 0 }; poll(&ready, 1, 200) > 0;) {
		ssize_t octets = recv(tap, packet, sizeof packet, 0);
		int chunk = (packet[0] & 15) * 4 + 12, end, at;
		if (octets < chunk + 20 || packet[9] != IPPROTO_SCTP || (packet[chunk] != 1 && packet[chunk] != 2))
			continue;
		printf("%s:", packet[chunk] == 1 ? "INIT" : "INIT ACK");
		end = chunk + (packet[chunk + 2] << 8 | packet[chunk + 3]);
		for (at = chunk + 20; at + 4 <= end;) {
			int kind = packet[at] << 8 | packet[at + 1], size = packet[at + 2] << 8 | packet[at + 3];
			if (kind == 0xc000)
				printf(" FORWARD TSN is supported;");
			if (kind == 0x8008)
				for (int extension = 4; extension < size; extension++)
					printf(" 0x%02x", packet[at + extension]);
			if (size < 4)
				break;
			at += (size + 3) & ~3;
		}
		printf("\n");
	}
	return 0;
}
