"""A PCP client written only from the formats of RFC 6887, independent of the server's code.

pcp.py GATEWAY OWN-ADDRESS OUTSIDE: sends the requests of a host, and compares each answer with the RFC.
"""

import socket
import struct
import sys

GATEWAY, OWN, OUTSIDE = sys.argv[1:]
ANNOUNCE, MAP, PEER = 0, 1, 2
UDP, TCP = 17, 6
NONCE = b"twelve octet"


def mapped(address):
    """Section 5: IPv4 in 128 bits."""
    return b"\0" * 10 + b"\xff\xff" + socket.inet_aton(address)


def request(opcode, lifetime, payload=b"", own=OWN, version=2):
    """Section 7.1, figure 2."""
    return struct.pack("!BBHI", version, opcode, 0, lifetime) + mapped(own) + payload


def mapping(port, external=0, protocol=UDP, nonce=NONCE, address="0.0.0.0"):
    """Section 11.1, figure 9; and the first part of figure 11."""
    return nonce + struct.pack("!BxxxHH", protocol, port, external) + mapped(address)


def option(code, value=b""):
    """Section 7.3, figure 4."""
    return struct.pack("!BBH", code, 0, len(value)) + value + b"\0" * (-len(value) % 4)


def prefix(bits, port, address):
    """Section 13.3, figure 16: a FILTER."""
    return option(3, struct.pack("!BBH", 0, 96 + bits, port) + mapped(address))


class Host:
    def __init__(self):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((OWN, 0))
        self.socket.settimeout(5)

    def ask(self, octets):
        """Section 7.2, figure 3: result, lifetime, epoch and the rest of an answer."""
        self.socket.sendto(octets, (GATEWAY, 5351))
        answer, sender = self.socket.recvfrom(2000)
        assert sender == (GATEWAY, 5351), sender
        assert len(answer) % 4 == 0 and 24 <= len(answer) <= 1100, len(answer)
        version, opcode, _, result, lifetime, epoch = struct.unpack("!BBBBII", answer[:12])
        assert version == 2 and opcode == octets[1] | 0x80, (version, opcode)
        assert answer[12:24] == b"\0" * 12, "reserved"
        assert 0 <= epoch < 3600, epoch
        return result, lifetime, answer[24:]

    def granted(self, octets):
        """Section 11.1, figure 10: the port, what stands for it, the lifetime."""
        result, lifetime, rest = self.ask(octets)
        assert result == 0, result
        assert rest[:12] == NONCE and rest[12:18] == octets[36:42], "nonce, protocol and port come back"
        (external,) = struct.unpack("!H", rest[18:20])
        assert rest[20:36] == mapped(OUTSIDE), rest[20:36]
        return external, lifetime, rest[36:]


def main():
    host = Host()
    assert host.ask(request(ANNOUNCE, 0)) == (0, 0, b""), "section 14.1"

    external, lifetime, _ = host.granted(request(MAP, 600, mapping(5004, 40123)))
    assert (external, lifetime) == (40123, 600), "section 11.3: the suggested port if it is free"
    again = host.granted(request(MAP, 900, mapping(5004)))
    assert again[:2] == (40123, 900), "section 11.3: a mapping that there is, is prolonged"
    stolen = host.ask(request(MAP, 0, mapping(5004, nonce=b"another one!")))
    assert stolen[0] == 2, "section 11.3: NOT_AUTHORIZED for another nonce"

    exact = request(MAP, 600, mapping(5006, 40123) + option(2))
    result, lifetime, rest = host.ask(exact)
    assert (result, rest) == (11, exact[24:]), "section 13.2: CANNOT_PROVIDE_EXTERNAL, with the request"
    assert lifetime > 0, "section 7.4: for how long that is so"
    exact = request(MAP, 600, mapping(5006, 40124) + option(2))
    assert host.granted(exact) == (40124, 600, option(2)), "section 7.3: options that were heeded come back"

    friends = prefix(24, 0, "10.2.0.0")
    external, _, options = host.granted(request(MAP, 600, mapping(8080, 40125, TCP) + friends))
    assert (external, options) == (40125, friends), "section 13.3"
    many = request(MAP, 600, mapping(8081, 0, TCP) + friends + prefix(24, 0, "10.3.0.0"))
    assert host.ask(many)[0] == 13, "section 13.3: EXCESSIVE_REMOTE_PEERS"

    peer = struct.pack("!HH", 6000, 0) + mapped("10.2.0.2")
    external, lifetime, rest = host.granted(request(PEER, 300, mapping(5008) + peer))
    assert external >= 1024 and lifetime == 300 and rest == peer, "section 12.1, figure 12"

    assert host.ask(request(MAP, 600, mapping(5010), own="10.1.0.77"))[0] == 12, "section 8.3: ADDRESS_MISMATCH"
    assert host.ask(request(MAP, 600, mapping(5010) + option(1, mapped("10.1.0.3"))))[0] == 5, "THIRD_PARTY"
    assert host.ask(request(MAP, 600, mapping(5010) + option(2, b"1234")))[0] == 6, "MALFORMED_OPTION"
    assert host.ask(request(MAP, 600, mapping(5010)[:-4]))[0] == 3, "MALFORMED_REQUEST"
    assert host.ask(request(7, 600))[0] == 4, "UNSUPP_OPCODE"
    assert host.ask(request(MAP, 600, mapping(5010, protocol=1)))[0] == 9, "UNSUPP_PROTOCOL"
    assert host.ask(request(ANNOUNCE, 0, version=3))[0] == 1, "section 9: UNSUPP_VERSION, and ours is 2"

    assert host.ask(request(MAP, 0, mapping(5006)))[:2] == (0, 0), "section 15.1: given back"
    external, _, _ = host.granted(request(MAP, 600, mapping(5012, 40124)))
    assert external == 40124, "and free for another"
    print("all answers are as in RFC 6887")


main()
