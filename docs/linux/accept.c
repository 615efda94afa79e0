/* Measures accept() on a non-blocking listener without a pending connection, for SCTP and TCP.
   cc -O2 -o accept accept.c && ./accept */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e3 + t.tv_nsec / 1e6;
}

static void measure(const char *name, int protocol)
{
	struct sockaddr_in here = { .sin_family = AF_INET };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, protocol);
	double begun;
	int calls, error = 0;

	if (listener < 0 || bind(listener, (struct sockaddr *)&here, sizeof here) || listen(listener, 5)) {
		printf("%s: %s\n", name, strerror(errno));
		return;
	}
	begun = now_ms();
	for (calls = 0; calls < 100; calls++)
		if (accept(listener, NULL, NULL) < 0)
			error = errno;
	printf("%-4s accept() without a connection: %s, %.3f ms a call\n", name, strerror(error),
	       (now_ms() - begun) / calls);
	close(listener);
}

int main(void)
{
	measure("tcp", IPPROTO_TCP);
	measure("sctp", IPPROTO_SCTP);
	return 0;
}
