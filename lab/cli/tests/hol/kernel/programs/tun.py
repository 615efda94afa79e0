"""Creates a TUN interface, sends an echo request through it, and reads the reply; then waits for a tick of times(2)."""

import fcntl
import os
import socket
import struct

# linux/if_tun.h, linux/sockios.h
TUNSETIFF, SIOCSIFADDR, SIOCSIFNETMASK, SIOCSIFFLAGS = 0x400454CA, 0x8916, 0x891C, 0x8914
IFF_TUN, IFF_NO_PI, IFF_UP = 0x0001, 0x1000, 0x0001
NAME = struct.pack("16s", b"tun0")
NODE, REMOTE = socket.inet_aton("192.0.2.1"), socket.inet_aton("192.0.2.2")
ICMP, ECHO_REPLY, ECHO_REQUEST = 1, 0, 8


def checksum(octets):
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    total = (total & 0xFFFF) + (total >> 16)
    return ~(total + (total >> 16)) & 0xFFFF


def request():
    """Returns an IPv4 packet with an ICMP echo request. RFC 791, RFC 792."""
    echo = struct.pack("!BBHHH", ECHO_REQUEST, 0, 0, 7, 1)
    echo = echo[:2] + struct.pack("!H", checksum(echo)) + echo[4:]
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(echo), 0, 0, 64, ICMP, 0, REMOTE, NODE)
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + echo


def create():
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, NAME + struct.pack("H22x", IFF_TUN | IFF_NO_PI))
    control = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for setting, value in (SIOCSIFADDR, NODE), (SIOCSIFNETMASK, b"\xff\xff\xff\x00"):
        fcntl.ioctl(control, setting, NAME + struct.pack("HH4s8x", socket.AF_INET, 0, value))
    fcntl.ioctl(control, SIOCSIFFLAGS, NAME + struct.pack("H14x", IFF_UP))
    return tun


tun = create()
os.write(tun, request())
reply = os.read(tun, 2048)
print("reply" if (reply[9], reply[20]) == (ICMP, ECHO_REPLY) else reply)

begin = os.times().elapsed
while os.times().elapsed == begin:
    pass
print("tick")
