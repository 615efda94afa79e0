"""A server that echoes, and a client that asks it twenty times and prints how long it waited, in ms."""
import asyncio
import sys
import time


async def serve(reader, writer):
    while octets := await reader.read(65536):
        writer.write(octets)
        await writer.drain()
    writer.close()


async def ask():
    reader, writer = await asyncio.open_connection("server", 7000)
    for _ in range(20):
        begin = time.monotonic()
        writer.write(b"x" * 128)
        await reader.readexactly(128)
        print(f"{(time.monotonic() - begin) * 1e3:.2f}")
    writer.close()
    await writer.wait_closed()


async def main():
    if sys.argv[1] == "serve":
        server = await asyncio.start_server(serve, "0.0.0.0", 7000)
        await server.serve_forever()
    await ask()


asyncio.run(main())
